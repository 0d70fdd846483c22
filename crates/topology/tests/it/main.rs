//! The behaviour tests, each file a module.

#![forbid(unsafe_code)]

mod machines;
