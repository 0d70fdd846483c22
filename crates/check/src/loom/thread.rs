//! Threads of a model.
#![expect(unsafe_code, reason = "scoped threads borrow, and statics last as long as the program")]

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

pub use std::thread::panicking;

use super::execution::{self, Local, Registered, Static};
use crate::engine;
use crate::machine::{Access, Change};
use crate::raw;

pub(super) fn running() -> usize {
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
    let (result, thread) = start(body, None, Location::caller());
    JoinHandle { result, thread }
}

type Place<T> = StdArc<StdMutex<Option<std::thread::Result<T>>>>;

fn start<'a, F, T>(
    body: F,
    name: Option<String>,
    site: &'static Location<'static>,
) -> (Place<T>, Thread)
where
    F: FnOnce() -> T + 'a,
    T: 'a,
{
    let result = StdArc::new(StdMutex::new(None));
    let place = StdArc::clone(&result);
    let job: Box<dyn FnOnce() + 'a> = Box::new(move || {
        // What the body has captured is dropped when it returns.
        let value = if execution::with(|execution| execution.settings.catches_panics) {
            let value = engine::catch_own(body);
            let (panicked, thread) = (value.is_err(), running());
            execution::with(|execution| execution.threads[thread].panicked = panicked);
            value
        } else {
            Ok(body())
        };
        *place.lock().expect("nobody panics with it") = Some(value);
        drop(place);
        drop_locals();
    });
    // SAFETY: what is borrowed for 'a is so by scoped threads alone, and `scope` does not return, nor
    // unwind, before they have ended. An execution that is given up runs to the end of each thread, or
    // leaves all of them where they are for good.
    let job = unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'a>, Box<dyn FnOnce()>>(job) };
    let count = execution::with(|execution| execution.count.place());
    let registered =
        execution::with(|execution| Registered::new(name.clone(), &execution.settings));
    let index = engine::spawn(count, site, job);
    execution::with(|execution| {
        debug_assert_eq!(index, execution.threads.len());
        execution.threads.push(registered);
    });
    (result, Thread { index, name })
}

fn takes_panic(index: usize) -> bool {
    execution::with(|execution| std::mem::take(&mut execution.threads[index].panicked))
}

#[track_caller]
fn result_of<T>(place: &Place<T>, thread: &Thread) -> std::thread::Result<T> {
    raw::join(thread.index);
    takes_panic(thread.index);
    let value = place.lock().expect("nobody panics with it").take();
    value.unwrap_or_else(|| Err(Box::new("the thread panicked")))
}

/// A thread that can be waited for.
pub struct JoinHandle<T> {
    result: Place<T>,
    thread: Thread,
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended and all its stores are in memory, and returns its result.
    ///
    /// # Errors
    ///
    /// What the thread has panicked with, if the model's
    /// [builder](super::model::BuilderOn::panics_are_results) wants to know. Without that a panic is
    /// a violation, and ends the execution.
    ///
    /// # Panics
    ///
    /// Never: a thread that has ended has left its result.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        result_of(&self.result, &self.thread)
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

    /// Lets the thread go on from its [`park`], or from its next `park`. Under TSO it is a store,
    /// and may wait in this thread's buffer like any other store.
    #[track_caller]
    pub fn unpark(&self) {
        let token = execution::with(|execution| Rc::clone(&execution.threads[self.index].token));
        if engine::is_weak() {
            token.newest(Change::Swap(0), Access::RELEASE);
        } else {
            token.store(0);
        }
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

/// Waits until another thread unparks this thread. It may also return without that, as often as the
/// model's [builder](super::model::BuilderOn::spurious_wakeups) says.
#[track_caller]
pub fn park() {
    if execution::wakes_spuriously() {
        return;
    }
    let index = running();
    let token = execution::with(|execution| Rc::clone(&execution.threads[index].token));
    token.wait_as(0, Change::Or(1), Access::ACQUIRE);
}

/// [`park`], but it may return at any time: a model has no clock.
#[track_caller]
pub fn park_timeout(_: Duration) {
    let index = running();
    let token = execution::with(|execution| Rc::clone(&execution.threads[index].token));
    if token.load_as(Access::RELAXED) != 0 {
        raw::pause();
    }
    token.newest(Change::Or(1), Access::ACQUIRE);
}

/// [`yield_now`]: a model has no clock.
#[track_caller]
pub fn sleep(_: Duration) {
    raw::pause();
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
        let (result, thread) = start(body, self.name, Location::caller());
        Ok(JoinHandle { result, thread })
    }
}

/// Lets threads borrow what is outside of `body`: as [`std::thread::scope`].
///
/// # Panics
///
/// If `body` panics; or if a thread has, was not joined, and its panic is no violation.
#[track_caller]
pub fn scope<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope { threads: RefCell::default(), invariant: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    let mut panicked = false;
    loop {
        // A thread of the scope may make another.
        let Some(index) = scope.threads.borrow_mut().pop() else { break };
        raw::join(index);
        panicked |= takes_panic(index);
    }
    match result {
        Ok(_) if panicked => panic!("a scoped thread panicked"),
        Ok(value) => value,
        Err(payload) => resume_unwind(payload),
    }
}

/// What [`scope`] hands out.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    /// The threads that must have ended when the scope ends.
    threads: RefCell<Vec<usize>>,
    invariant: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

impl<'scope> Scope<'scope, '_> {
    /// Makes a thread that ends before the scope does.
    ///
    /// # Panics
    ///
    /// As [`spawn`].
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + 'scope,
        T: 'scope,
    {
        let (result, thread) = start(body, None, Location::caller());
        self.threads.borrow_mut().push(thread.index);
        ScopedJoinHandle { result, thread, scope: PhantomData }
    }
}

/// A thread of a [`scope`] that can be waited for.
pub struct ScopedJoinHandle<'scope, T> {
    result: Place<T>,
    thread: Thread,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// As [`JoinHandle::join`].
    ///
    /// # Errors
    ///
    /// As [`JoinHandle::join`].
    ///
    /// # Panics
    ///
    /// Never: a thread that has ended has left its result.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        result_of(&self.result, &self.thread)
    }

    /// The thread.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").field("thread", &self.thread).finish_non_exhaustive()
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

fn clear<T: 'static>(value: &dyn Any) -> bool {
    let value = value.downcast_ref::<RefCell<Option<T>>>().and_then(RefCell::take);
    value.is_some()
}

/// The first that was made first, and what their destructors make anew.
pub(super) fn drop_locals() {
    let thread = running();
    let all = || execution::with(|execution| execution.threads[thread].locals.clone());
    while all().iter().filter(|local| (local.clear)(&*local.value)).count() > 0 {}
    execution::with(|execution| execution.threads[thread].locals.clear());
}

/// A static that is made anew in each execution, from [`lazy_static!`](super::lazy_static!).
pub struct Lazy<T: 'static> {
    init: fn() -> T,
}

impl<T: 'static> Lazy<T> {
    #[doc(hidden)]
    pub const fn __new(init: fn() -> T) -> Self {
        Lazy { init }
    }

    /// The value of this execution, which is dropped when all threads have ended.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        let key = std::ptr::from_ref(self).addr();
        let thread = 1 << running();
        // The static, and whether this thread has heard of it before.
        let known = || {
            execution::with(|execution| {
                let mut statics = execution.statics.iter_mut();
                let found = statics.find(|known| known.key == key)?;
                let heard = found.heard & thread != 0;
                found.heard |= thread;
                Some((found.clone(), heard))
            })
        };
        let (found, heard) = known().unwrap_or_else(|| {
            let value: Rc<dyn Any> = Rc::new((self.init)());
            let made = Static { key, value, word: Rc::new(raw::Raw::common(0)), heard: thread };
            made.word.newest(Change::Swap(1), Access::STRONG);
            // Another thread may have come before that step.
            known().unwrap_or_else(|| {
                execution::with(|execution| execution.statics.push(made.clone()));
                (made, true)
            })
        });
        if !heard {
            // What its maker did happens before.
            found.word.newest(Change::Or(0), Access::ACQUIRE);
        }
        let value: *const T = found.value.downcast_ref().expect("a key has one type");
        // SAFETY: the execution keeps the value until all its threads have ended. No reference to a
        // static leaves the execution's threads: a model keeps nothing between executions.
        unsafe { &*value }
    }
}

impl<T: 'static> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").finish_non_exhaustive()
    }
}
