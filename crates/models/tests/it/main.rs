//! The behaviour tests, each file a module.

mod orderings;
mod reduction;
mod safe_code;
mod weak_queues;
