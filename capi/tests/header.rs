//! `include/poach.h` is what cbindgen writes from the source.

use std::fs;

#[test]
fn the_header_is_current() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut current = Vec::new();
    cbindgen::generate(root).unwrap().write(&mut current);
    let committed = fs::read(format!("{root}/include/poach.h")).unwrap();
    assert!(
        committed == current,
        "include/poach.h is not what the source says: cargo run -p poach-capi --example header"
    );
}
