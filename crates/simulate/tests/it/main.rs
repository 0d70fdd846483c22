//! The behaviour tests, each file a module.

mod bad_input;
mod costs;
mod foreign_code;
mod forks;
mod order;
