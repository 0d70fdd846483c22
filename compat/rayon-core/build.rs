//! Cargo asks for a build script where a package `links` something.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
