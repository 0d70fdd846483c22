//! The behaviour tests, each file a module.

mod examples;
mod in_tokio;
