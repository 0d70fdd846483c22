//! The behaviour tests, each file a module; a directory holds what several files use.

mod promise;

mod safe_code;
mod session;
mod suites;
