#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod model;

pub use model::model;
pub use poach_check::loom::c11::{
    MAX_THREADS, Machine, alloc, cell, explore, future, hint, lazy_static, model_on, skip_branch,
    stop_exploring, sync, thread, thread_local,
};
