//! The global pool, for calls outside of any pool.

use std::cell::Cell;
use std::sync::OnceLock;

use crossbeam_utils::atomic::AtomicCell;

use super::build_error::BuildError;
use super::{ThreadPool, ThreadPoolBuilder};
use crate::system::process::PerProcess;

static GLOBAL: PerProcess<OnceLock<ThreadPool>> = PerProcess::new();
/// A word and not a `OnceLock`: a thread of the parent may be setting that at a fork, and the child
/// would wait for it.
static GLOBAL_BUILDER: AtomicCell<Option<fn() -> ThreadPoolBuilder<'static>>> =
    AtomicCell::new(None);
const _: () = assert!(AtomicCell::<Option<fn() -> ThreadPoolBuilder<'static>>>::is_lock_free());

/// The global pool, which functions called outside any pool use. It is made at its first use, with
/// the settings of [`ThreadPoolBuilder::set_global`]'s function if there is one, and lasts as long as the
/// program.
///
/// A forked process makes a global pool of its own at *its* first use, in the same way. It does not
/// know the settings that the parent has given to
/// [`build_global`](ThreadPoolBuilder::build_global).
///
/// # Panics
///
/// At its first use, if it cannot be made: with the [`BuildError`]'s text.
#[inline]
pub fn global() -> &'static ThreadPool {
    made().unwrap_or_else(first_use)
}

#[cold]
fn first_use() -> &'static ThreadPool {
    let cannot = |error: BuildError| panic!("the global thread pool could not be made: {error}");
    let Some(_makes) = Makes::begin() else { cannot(BuildError::GlobalWithin) };
    GLOBAL.get().get_or_init(|| {
        let builder = GLOBAL_BUILDER.load().map_or_else(ThreadPool::builder, |builder| builder());
        builder.build().unwrap_or_else(|error| cannot(error))
    })
}

/// Marks this thread as making the global pool, or as waiting for a thread that does, until the
/// value is dropped. Otherwise the user's own code, called by the builder, would wait for itself.
struct Makes;

impl Makes {
    fn begin() -> Option<Makes> {
        (!MAKES.replace(true)).then_some(Makes)
    }
}

impl Drop for Makes {
    fn drop(&mut self) {
        MAKES.set(false);
    }
}

thread_local!(static MAKES: Cell<bool> = const { Cell::new(false) });

/// The global pool, if this process has made it.
fn made() -> Option<&'static ThreadPool> {
    GLOBAL.get().get()
}

impl ThreadPool {
    /// The [global pool](global), if this process has made it.
    pub fn global_if_made() -> Option<&'static ThreadPool> {
        made()
    }
}

/// Makes the global pool, unless there is one.
pub(super) fn set(
    build: impl FnOnce() -> Result<ThreadPool, BuildError>,
) -> Result<(), BuildError> {
    if made().is_some() {
        return Err(BuildError::GlobalExists);
    }
    GLOBAL.get().set(build()?).map_err(|_| BuildError::GlobalExists)
}

impl ThreadPoolBuilder<'static> {
    /// Sets how the global pool is made when it is first used. Unlike
    /// [`build_global`](ThreadPoolBuilder::build_global), it starts no thread: for libraries.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use poach::{ThreadPool, ThreadPoolBuilder, current_num_threads};
    ///
    /// let make = || ThreadPool::builder().num_threads(3).name(|i| format!("solver {i}"));
    /// ThreadPoolBuilder::set_global(make)?;
    /// assert_eq!(current_num_threads(), 3);
    /// assert!(ThreadPoolBuilder::set_global(ThreadPool::builder).is_err()); // too late
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError::GlobalExists`] if the pool has been made, or this function has been called.
    #[doc(alias = "set_global_builder")]
    pub fn set_global(builder: fn() -> ThreadPoolBuilder<'static>) -> Result<(), BuildError> {
        if made().is_some() {
            return Err(BuildError::GlobalExists);
        }
        GLOBAL_BUILDER
            .compare_exchange(None, Some(builder))
            .map(|_| ())
            .map_err(|_| BuildError::GlobalExists)
    }
}
