//! The behaviour tests, each file a module.

mod header;
mod safe_code;
