//! The behaviour tests, each file a module; a directory holds what several files use.

mod buffering;
#[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
mod filtered;
mod own_process;

mod asymmetric;
mod defaults;
mod early;
mod full;
mod safe_code;
mod seccomp;
mod unasked;
