//! Writes `include/poach.h` from the source: `cargo run -p poach-capi --example header`.
//!
//! `tests/it/header.rs` says whether it is current.

use std::process::ExitCode;

fn main() -> ExitCode {
    let root = env!("CARGO_MANIFEST_DIR");
    match cbindgen::generate(root) {
        Ok(bindings) => {
            bindings.write_to_file(format!("{root}/include/poach.h"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the header could not be written: {error}");
            ExitCode::FAILURE
        }
    }
}
