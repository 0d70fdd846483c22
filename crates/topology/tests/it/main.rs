//! The behaviour tests, each file a module.

#![forbid(unsafe_code)]

// They write and read files, which Miri keeps from its programs.
#[cfg(not(miri))]
mod machines;
