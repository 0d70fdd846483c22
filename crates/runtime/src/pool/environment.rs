//! The environment variables of pools, read for settings that the builder leaves open. Nothing else
//! of the runtime reads them.
//!
//! | variable | what it says | where it is documented |
//! |---|---|---|
//! | `POACH_THREADS` | the number of threads | [`ThreadPoolBuilder::num_threads`](crate::ThreadPoolBuilder::num_threads) |
//! | `POACH_BARRIER` | `off`: no process-wide barrier | [`ThreadPoolBuilder::without_barrier`](crate::ThreadPoolBuilder::without_barrier) |
//! | `RUST_MIN_STACK` | bytes of call stack, if more than the default | [`ThreadPoolBuilder::stack_size`](crate::ThreadPoolBuilder::stack_size) |

use std::env;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::thread;

use super::build_error::{BuildError, MAX_THREADS};

const THREADS: &str = "POACH_THREADS";
pub(super) const BARRIER: &str = "POACH_BARRIER";

/// Whether pools do without the process-wide barrier.
pub(super) fn without_barrier() -> Result<bool, BuildError> {
    without_barrier_by(env::var_os(BARRIER))
}

fn without_barrier_by(variable: Option<OsString>) -> Result<bool, BuildError> {
    match variable {
        None => Ok(false),
        Some(value) if value.is_empty() || value == "on" => Ok(false),
        Some(value) if value == "off" => Ok(true),
        Some(value) => Err(BuildError::Environment { variable: BARRIER, value }),
    }
}

/// The number of threads, if the builder has none.
pub(super) fn threads() -> Result<usize, BuildError> {
    threads_from(env::var_os(THREADS))
}

fn threads_from(variable: Option<OsString>) -> Result<usize, BuildError> {
    match variable {
        Some(value) if !value.is_empty() => {
            let number = value.to_str().and_then(|number| number.parse().ok());
            let number = number.filter(|number| (1..=MAX_THREADS).contains(number));
            number.ok_or(BuildError::Environment { variable: THREADS, value })
        }
        _ => Ok(thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS)),
    }
}

/// The default bytes of call stack of a worker.
const STACK: usize = 8 << 20;

/// Bytes of call stack, if the builder sets none: the default, or the value of the variable of
/// `std::thread`, if that is more.
pub(super) fn stack() -> usize {
    stack_of(asked_stack())
}

fn stack_of(asked: Option<usize>) -> usize {
    asked.map_or(STACK, |bytes| bytes.max(STACK))
}

/// Whether the variable sets a size.
pub(super) fn is_stack_set() -> bool {
    asked_stack().is_some()
}

fn asked_stack() -> Option<usize> {
    env::var("RUST_MIN_STACK").ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_barrier_is_off_or_on() {
        for (value, off) in
            [(None, false), (Some(""), false), (Some("on"), false), (Some("off"), true)]
        {
            assert_eq!(without_barrier_by(value.map(OsString::from)).unwrap(), off, "{value:?}");
        }
        for wrong in ["nonsense", "OFF", "0", " off"] {
            let error = without_barrier_by(Some(wrong.into())).unwrap_err().to_string();
            assert_eq!(error, format!("POACH_BARRIER={wrong} is neither `on` nor `off`"));
        }
    }

    #[test]
    fn a_call_stack_is_8_mib_or_what_the_environment_says_if_that_is_more() {
        assert_eq!([None, Some(1), Some(8 << 20)].map(stack_of), [8 << 20; 3]);
        assert_eq!(stack_of(Some(9 << 20)), 9 << 20);
    }

    #[test]
    fn the_environment_says_how_many_threads_if_it_says_anything() {
        for number in [3, MAX_THREADS] {
            assert_eq!(threads_from(Some(number.to_string().into())).unwrap(), number);
        }
        for unset in [None, Some(OsString::new())] {
            assert!(matches!(threads_from(unset), Ok(1..=MAX_THREADS)));
        }
        for wrong in ["0", "-1", "two", " 2", "1025", "99999999999999999999999"] {
            let error = threads_from(Some(wrong.into())).unwrap_err();
            let BuildError::Environment { variable, value } = &error else {
                panic!("{error}");
            };
            assert_eq!((*variable, value), ("POACH_THREADS", &OsString::from(wrong)));
            assert!(error.to_string().contains(&format!("POACH_THREADS={wrong} ")), "{error}");
        }
    }
}
