//! The behaviour tests and the models, each file a module; a directory holds what several files
//! use.

mod barrierless;
mod c11;
#[cfg(all(target_os = "linux", not(miri)))]
#[path = "../../../memory/tests/it/filtered/mod.rs"]
mod filtered;
mod interrupted;
mod model;
#[path = "../../../memory/tests/it/own_process/mod.rs"]
mod own_process;
mod put_back;
mod stack;
mod storage;
#[allow(clippy::needless_pass_by_value, reason = "a test hands its queue over")]
mod suite;

mod behaviour;
mod crossbeam;
mod idempotent_tag;
mod in_place;
mod injector;
mod model_biased;
mod model_bounds;
mod model_c11;
mod model_c11_queues;
mod model_expose;
mod model_expose_queue;
mod model_fenced;
mod model_left_behind;
mod model_lost;
mod model_never_empty;
mod model_order;
mod model_others;
mod model_own_stores;
mod model_put_off;
mod model_request;
mod model_reused;
mod model_split_queue;
mod model_split_stack;
mod model_two_thieves;
mod own_queue;
mod safe_code;
mod scheduler;
mod seccomp;
mod shrinks;
mod split;
mod split_context;
mod split_looks;
mod split_stack;
mod split_told;
mod st3;
mod stress;
