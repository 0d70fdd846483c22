//! Threads of a model.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;

use super::execution::{self, Local, Registered};
use crate::engine;
use crate::machine::Change;
use crate::raw;

/// The number of the running thread; that of the model's own outside of all.
fn running() -> usize {
    engine::current().unwrap_or(0)
}

/// Makes a thread. It runs as soon as the search lets it.
///
/// # Panics
///
/// If the execution has [`MAX_THREADS`](crate::MAX_THREADS) threads already.
#[track_caller]
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    start(body, None, Location::caller())
}

fn start<F, T>(body: F, name: Option<String>, site: &'static Location<'static>) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    let result = StdArc::new(StdMutex::new(None));
    let place = StdArc::clone(&result);
    let job = Box::new(move || {
        let value = body();
        *place.lock().expect("nobody panics with it") = Some(value);
        drop_locals();
    });
    let count = execution::with(|execution| execution.count.place());
    let registered = Registered::new(name.clone());
    let index = engine::spawn(count, site, job);
    execution::with(|execution| {
        debug_assert_eq!(index, execution.threads.len());
        execution.threads.push(registered);
    });
    JoinHandle { result, thread: Thread { index, name } }
}

/// A thread that can be waited for.
pub struct JoinHandle<T> {
    result: StdArc<StdMutex<Option<T>>>,
    thread: Thread,
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended and all its stores are in memory, and returns its result. A
    /// thread that panics is a violation, and ends the execution.
    ///
    /// # Errors
    ///
    /// None: the type is that of [`std::thread::JoinHandle::join`].
    ///
    /// # Panics
    ///
    /// Never: a thread that has ended has left its result.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        raw::join(self.thread.index);
        let value = self.result.lock().expect("nobody panics with it").take();
        value.ok_or_else(|| Box::new("the thread panicked") as Box<dyn Any + Send>)
    }

    /// The thread.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("thread", &self.thread).finish_non_exhaustive()
    }
}

/// A thread of the model.
#[derive(Clone, Debug)]
pub struct Thread {
    index: usize,
    name: Option<String>,
}

impl Thread {
    /// What tells it from the execution's other threads.
    pub fn id(&self) -> ThreadId {
        ThreadId(self.index)
    }

    /// The name that [`Builder::name`] gave it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Lets the thread go on from its [`park`], or from its next one. It is a store, and like any
    /// other may wait in this thread's buffer.
    #[track_caller]
    pub fn unpark(&self) {
        let token = execution::with(|execution| Rc::clone(&execution.threads[self.index].token));
        token.store(0);
    }
}

/// What tells a thread from the execution's other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(usize);

/// The running thread.
pub fn current() -> Thread {
    let index = running();
    let name = execution::with(|execution| execution.threads[index].name.clone());
    Thread { index, name }
}

/// Waits until somebody unparks this thread. It does not return without that.
#[track_caller]
pub fn park() {
    let index = running();
    let token = execution::with(|execution| Rc::clone(&execution.threads[index].token));
    token.wait(0, Change::Or(1));
}

/// Gives the turn away until something has changed that this thread has read since it last gave it
/// away. A loop that waits must call this, or [`spin_loop`](super::hint::spin_loop): without, it
/// never ends.
#[track_caller]
pub fn yield_now() {
    raw::pause();
}

/// Makes a thread with a name.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
}

impl Builder {
    /// One without a name.
    pub fn new() -> Self {
        Builder::default()
    }

    /// The thread's name.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Has no effect: every thread has a megabyte.
    #[must_use]
    pub fn stack_size(self, _: usize) -> Self {
        self
    }

    /// Makes the thread.
    ///
    /// # Errors
    ///
    /// None: the type is that of [`std::thread::Builder::spawn`].
    ///
    /// # Panics
    ///
    /// As [`spawn`].
    #[track_caller]
    pub fn spawn<F, T>(self, body: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        Ok(start(body, self.name, Location::caller()))
    }
}

/// A value that each thread has for itself, from [`thread_local!`](super::thread_local).
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn __new(init: fn() -> T) -> Self {
        LocalKey { init }
    }

    /// Uses this thread's value, which is made when it is first used.
    ///
    /// # Panics
    ///
    /// If the thread's values have been dropped, at its end.
    #[track_caller]
    pub fn with<R>(&'static self, act: impl FnOnce(&T) -> R) -> R {
        self.try_with(act).expect("the thread's values are dropped already")
    }

    /// Uses this thread's value, which is made when it is first used.
    ///
    /// # Errors
    ///
    /// If the thread's values have been dropped, at its end.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    pub fn try_with<R>(&'static self, act: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let key = std::ptr::from_ref(self).addr();
        let thread = running();
        let known = || {
            execution::with(|execution| {
                let locals = &execution.threads[thread].locals;
                locals.iter().find(|local| local.key == key).map(|local| Rc::clone(&local.value))
            })
        };
        let value = if let Some(value) = known() {
            value
        } else {
            // Its making may take steps, and may use other keys.
            let value: Rc<dyn Any> = Rc::new(RefCell::new(Some((self.init)())));
            let local = Local { key, value: Rc::clone(&value), clear: clear::<T> };
            execution::with(|execution| execution.threads[thread].locals.push(local));
            value
        };
        let value = value.downcast::<RefCell<Option<T>>>().map_err(|_| AccessError(()))?;
        let borrowed = value.borrow();
        borrowed.as_ref().map(act).ok_or(AccessError(()))
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// The thread's values are dropped already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread's values are dropped already")
    }
}

impl std::error::Error for AccessError {}

/// Drops a value in its place; `false` if it is dropped already.
fn clear<T: 'static>(value: &dyn Any) -> bool {
    let value = value.downcast_ref::<RefCell<Option<T>>>().and_then(RefCell::take);
    value.is_some()
}

/// Drops the running thread's values, the first that was made first, and what their destructors
/// make anew.
pub(super) fn drop_locals() {
    let thread = running();
    let all = || execution::with(|execution| execution.threads[thread].locals.clone());
    while all().iter().filter(|local| (local.clear)(&*local.value)).count() > 0 {}
    execution::with(|execution| execution.threads[thread].locals.clear());
}

/// A static that is made anew in each execution, from [`lazy_static!`](super::lazy_static).
pub struct Lazy<T: 'static> {
    init: fn() -> T,
}

impl<T: 'static> Lazy<T> {
    #[doc(hidden)]
    pub const fn __new(init: fn() -> T) -> Self {
        Lazy { init }
    }

    /// The value of this execution. It lasts as long as the program: a reference to a static does.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        let key = std::ptr::from_ref(self).addr();
        let known = || {
            execution::with(|execution| {
                execution.statics.get(&key).map(|(value, word)| (*value, Rc::clone(word)))
            })
        };
        let value = if let Some((value, word)) = known() {
            // What its maker did happens before.
            word.load();
            value
        } else {
            let value: &'static dyn Any = Box::leak(Box::new((self.init)()));
            let word = Rc::new(raw::Raw::new(0));
            word.change(Change::Swap(1));
            if let Some((first, word)) = known() {
                word.load();
                first
            } else {
                execution::with(|execution| execution.statics.insert(key, (value, word)));
                value
            }
        };
        value.downcast_ref().expect("a key has one type")
    }
}

impl<T: 'static> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").finish_non_exhaustive()
    }
}
