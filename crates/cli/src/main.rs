//! The program `poach`.

fn main() {}
