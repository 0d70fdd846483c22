//! A spawned closure as a value of 64 bytes.
//!
//! A closure of up to [`INLINE`] bytes is stored in the task; a larger one in a box. Either way the
//! task is moved, by value, into a deque's slot and out again.

use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use poach_deque::Owner;

use crate::registry::Spawns;

/// Bytes of a closure that a [`Task`] holds without allocating.
pub(crate) const INLINE: usize = 56;

type Payload = [MaybeUninit<u64>; INLINE / 8];

/// A closure to be run once, by whoever holds it.
///
/// A closure that is counted somewhere returns [`Ended`]; one that is not, nothing.
pub(crate) struct Task {
    vtable: &'static Vtable,
    payload: Payload,
}

/// That a task has run, and where it is still counted, if anywhere. Its runner takes it off there.
///
/// The task does not do so itself, since its runner often knows that place already, and can count many ends
/// in a register before it says so.
#[derive(Clone, Copy)]
#[must_use = "a task that is not taken off is waited for for ever"]
pub(crate) struct Ended {
    /// Null if the task was not counted.
    pub(super) counted_in: *const (),
}

impl From<()> for Ended {
    #[inline(always)]
    fn from((): ()) -> Ended {
        Ended { counted_in: ptr::null() }
    }
}

/// A closure on its way to become a task, in the place where that will be.
pub(crate) struct Fresh<F>(F);

impl<R: Into<Ended>, F: FnOnce() -> R + Send> Fresh<F> {
    /// # Safety
    ///
    /// As [`Task::new`].
    #[inline(always)]
    pub(crate) unsafe fn new(closure: F) -> Fresh<F> {
        Fresh(closure)
    }

    #[inline(always)]
    pub(crate) fn task(self) -> Task {
        // SAFETY: by the contract of `new`.
        unsafe { Task::new(self.0) }
    }

    /// Makes the task in a worker's queue.
    #[inline(always)]
    pub(crate) fn push(self, queue: &Spawns) {
        let write = |place: *mut Task, fresh: Self| {
            // SAFETY: the queue gives a place in which a task may be written; that it may be made is the
            // contract of `new`.
            unsafe { Task::write(place, fresh.0) };
        };
        // SAFETY: `write` writes a whole task, and knows nothing of the queue.
        let pushed = unsafe { queue.push_in_place(self, write) };
        if let Err(fresh) = pushed {
            fresh.push_with_room(queue);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_with_room(self, queue: &Spawns) {
        queue.push(self.task());
    }
}

/// Runs the youngest task of a queue, if there is one, as `Task::run` does, straight out of its slot.
/// `found` is called first, and what it returns lives as long as the task runs.
#[inline(always)]
pub(crate) fn run_youngest<G>(queue: &Spawns, found: impl FnOnce() -> G) -> Option<Ended> {
    let run = |place: *mut Task| {
        let _running = found();
        // SAFETY: a task stands in the place.
        let vtable = unsafe { (*place).vtable };
        // SAFETY: as above.
        let payload = unsafe { &raw mut (*place).payload };
        // SAFETY: the payload is what `new` or `write` put there with this vtable, and is used once.
        unsafe { (vtable.run)(payload) }
    };
    // SAFETY: what the vtable runs moves the closure out of the payload before it calls it; `found` knows
    // nothing of the queue.
    unsafe { queue.pop_in_place(run) }
}

struct Vtable {
    run: unsafe fn(*mut Payload) -> Ended,
    drop: unsafe fn(*mut Payload),
}

// SAFETY: a task is made from a closure that is Send, and is only ever run or dropped by its holder.
unsafe impl Send for Task {}

impl Task {
    /// Makes a task of a closure. Allocates only if the closure is larger than [`INLINE`] bytes or
    /// aligned to more than 8.
    ///
    /// # Safety
    ///
    /// What the closure borrows lives until the task has been run or dropped.
    #[inline(always)]
    pub(crate) unsafe fn new<R: Into<Ended>, F: FnOnce() -> R + Send>(closure: F) -> Task {
        let mut payload: Payload = [MaybeUninit::uninit(); INLINE / 8];
        if const { Task::holds::<F>() } {
            // SAFETY: the payload is large and aligned enough for an F.
            unsafe { (&raw mut payload).cast::<F>().write(closure) };
            Task { vtable: const { &Vtable { run: run::<R, F>, drop: drop_in::<F> } }, payload }
        } else {
            // SAFETY: the payload is large and aligned enough for a box.
            unsafe { (&raw mut payload).cast::<Box<F>>().write(Box::new(closure)) };
            let vtable = const { &Vtable { run: run_boxed::<R, F>, drop: drop_in::<Box<F>> } };
            Task { vtable, payload }
        }
    }

    /// As [`new`](Task::new), made where it is to be.
    ///
    /// # Safety
    ///
    /// As [`new`](Task::new), and `place` is valid for writes of a task.
    #[inline(always)]
    unsafe fn write<R: Into<Ended>, F: FnOnce() -> R + Send>(place: *mut Task, closure: F) {
        if !Task::holds::<F>() {
            // SAFETY: by this function's contract.
            let task = unsafe { Task::new(closure) };
            // SAFETY: as above.
            unsafe { place.write(task) };
            return;
        }
        let vtable = const { &Vtable { run: run::<R, F>, drop: drop_in::<F> } };
        // SAFETY: within the place.
        let head = unsafe { &raw mut (*place).vtable };
        // SAFETY: as above.
        let payload = unsafe { &raw mut (*place).payload };
        // SAFETY: as above.
        unsafe { head.write(vtable) };
        // SAFETY: as above, and the payload is large and aligned enough for an F; what it does not fill
        // may be anything.
        unsafe { payload.cast::<F>().write(closure) };
    }

    /// Whether a task holds such a closure without allocating.
    const fn holds<F>() -> bool {
        size_of::<F>() <= INLINE && align_of::<F>() <= 8
    }

    /// A task of a closure that borrows nothing.
    pub(crate) fn detached<R, F>(closure: F) -> Task
    where
        R: Into<Ended>,
        F: FnOnce() -> R + Send + 'static,
    {
        // SAFETY: 'static.
        unsafe { Task::new(closure) }
    }

    /// Runs the closure. If it panics, the panic is the caller's.
    #[inline(always)]
    pub(crate) fn run(self) -> Ended {
        let mut task = ManuallyDrop::new(self);
        // SAFETY: the payload is what `new` wrote with this vtable; the task is forgotten, so it is
        // not run or dropped again.
        unsafe { (task.vtable.run)(&raw mut task.payload) }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: the payload is what `new` wrote with this vtable, and has not been run.
        unsafe { (self.vtable.drop)(&raw mut self.payload) };
    }
}

/// # Safety
///
/// The payload holds an `F`, which is moved out.
unsafe fn run<R: Into<Ended>, F: FnOnce() -> R>(payload: *mut Payload) -> Ended {
    // SAFETY: by this function's contract.
    let closure = unsafe { payload.cast::<F>().read() };
    closure().into()
}

/// # Safety
///
/// The payload holds a boxed `F`, which is moved out.
unsafe fn run_boxed<R: Into<Ended>, F: FnOnce() -> R>(payload: *mut Payload) -> Ended {
    // SAFETY: by this function's contract.
    let closure = unsafe { payload.cast::<Box<F>>().read() };
    closure().into()
}

/// # Safety
///
/// The payload holds an `F`, which is dropped.
unsafe fn drop_in<F>(payload: *mut Payload) {
    // SAFETY: by this function's contract.
    unsafe { payload.cast::<F>().drop_in_place() };
}

/// Runs a closure that must not unwind into its caller, and returns what it panicked with.
pub(crate) fn catch(run: impl FnOnce()) -> Result<(), Box<dyn std::any::Any + Send>> {
    panic::catch_unwind(AssertUnwindSafe(run))
}

/// Ends the process if dropped by a panic: guards code whose frames others rely on.
pub(crate) struct AbortOnUnwind(pub(crate) &'static str);

impl AbortOnUnwind {
    pub(crate) fn disarm(self) {
        mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // A panic inside a destructor that runs because of a panic aborts, with this message.
        panic!("{}", self.0);
    }
}
