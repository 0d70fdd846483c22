//! What the environment says of pools, where their builder says nothing. Nothing else of the runtime reads it.
//!
//! | variable | what it says | where it is documented |
//! |---|---|---|
//! | `POACH_THREADS` | the number of threads | [`Builder::threads`](crate::Builder::threads) |
//! | `RUST_MIN_STACK` | bytes of call stack, if more than the default | [`Builder::stack_size`](crate::Builder::stack_size) |

use std::env;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::thread;

use super::build_error::{BuildError, MAX_THREADS};

const THREADS: &str = "POACH_THREADS";

/// The number of threads where the builder has none.
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

/// Bytes of call stack a worker gets unless the builder, or the environment, says otherwise.
const STACK: usize = 8 << 20;

/// Bytes of call stack where the builder says none: the default, or what the variable that `std::thread` heeds asks for, if it is
/// more.
pub(super) fn stack() -> usize {
    asked_stack().map_or(STACK, |bytes| bytes.max(STACK))
}

/// Whether the variable says how many.
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
