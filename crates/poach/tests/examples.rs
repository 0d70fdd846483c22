//! Each example of `examples/` runs to its end.

#![forbid(unsafe_code)]

#[path = "../examples/from_crossbeam.rs"]
mod from_crossbeam;
#[path = "../examples/from_rayon.rs"]
mod from_rayon;
#[path = "../examples/from_tokio.rs"]
mod from_tokio;

macro_rules! runs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            $name::main();
        }
    )*};
}

runs! { from_crossbeam from_rayon }

#[test]
fn from_tokio() {
    from_tokio::main().unwrap();
}
