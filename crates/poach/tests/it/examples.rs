//! Each example of `examples/` runs to its end.

#![forbid(unsafe_code)]

use std::fmt::Debug;

macro_rules! runs {
    ($($name:ident in $path:literal)*) => {$(
        #[path = $path]
        mod $name;

        #[test]
        fn $name() {
            ends_well(&$name::main());
        }
    )*};
}

runs! {
    cancellation in "../../examples/cancellation.rs"
    first_of_several in "../../examples/first_of_several.rs"
    frame_loop in "../../examples/frame_loop.rs"
    from_chili in "../../examples/from_chili.rs"
    from_crossbeam in "../../examples/from_crossbeam.rs"
    from_rayon in "../../examples/from_rayon.rs"
    from_tokio in "../../examples/from_tokio.rs"
    in_async_program in "../../examples/in_async_program.rs"
    own_scheduler in "../../examples/own_scheduler.rs"
    pipeline in "../../examples/pipeline.rs"
    worker_state in "../../examples/worker_state.rs"
}

/// Some return a result.
fn ends_well(answer: &dyn Debug) {
    let answer = format!("{answer:?}");
    assert!(answer == "()" || answer == "Ok(())", "{answer}");
}
