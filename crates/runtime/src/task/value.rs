//! A spawned closure as a value of 64 bytes.
//!
//! A closure of up to [`INLINE`] bytes is stored in the task; a larger one in a box. Either way the
//! task is moved, by value, into a queue's slot and out again.
//!
//! A worker's own queue keeps a task in two parts ([`InTwo`]): most closures are small, a reference
//! or two. With them and the vtable a slot of 32 bytes is full, half a cache line. A larger closure
//! lies beside it.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

use poach_deque::split::{Context, Split, Storage};
use poach_memory::Machine;

/// Bytes of a closure that a [`Task`] holds without allocating.
pub(crate) const INLINE: usize = 56;

/// Bytes of a closure that stand in a worker's queue beside the vtable.
const IN_HEAD: usize = 24;

type Payload = [MaybeUninit<u64>; INLINE / 8];

/// A task in a worker's queue: its [`Head`] in a slot, and the closure, if it is larger than
/// [`IN_HEAD`], beside.
pub(crate) enum InTwo {}

/// A worker's queue of spawned tasks.
pub(crate) type Queue<C> = Split<Task, Machine, C, InTwo>;

pub(crate) struct Head {
    vtable: &'static Vtable,
    payload: [MaybeUninit<u64>; IN_HEAD / 8],
}

/// A closure to be run once, by the thread that holds it.
///
/// A closure that is counted returns [`Ended`]; any other returns nothing.
pub(crate) struct Task {
    vtable: &'static Vtable,
    payload: Payload,
}

/// The end of a task, and the count that it is still in, if any. Its runner takes it off there.
///
/// The task does not do so itself, since its runner often knows that count already, and can sum
/// many ends in a register first.
#[derive(Clone, Copy)]
#[repr(transparent)]
#[must_use = "a task that is not taken off is waited for for ever"]
pub(crate) struct Ended {
    /// Null if the task was not counted.
    pub(crate) counted_in: *const (),
}

impl From<()> for Ended {
    #[inline(always)]
    fn from((): ()) -> Ended {
        Ended { counted_in: ptr::null() }
    }
}

/// A closure that becomes a task in its final place.
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
    pub(crate) fn detached(closure: F) -> Fresh<F>
    where
        F: 'static,
    {
        // SAFETY: 'static.
        unsafe { Fresh::new(closure) }
    }

    #[inline(always)]
    pub(crate) fn task(self) -> Task {
        // SAFETY: by the contract of `new`.
        unsafe { Task::new(self.0) }
    }

    /// Makes the task in a worker's queue.
    #[inline(always)]
    pub(crate) fn push<C: Context + Send>(self, queue: &Queue<C>) {
        let write = |head: *mut Head, rest: *mut Payload, fresh: Self| {
            // SAFETY: the queue gives places in which a task may be written; that it may be made is
            // the contract of `new`.
            unsafe { Task::write(head, rest, fresh.0) };
        };
        // SAFETY: `write` writes a whole task, and knows nothing of the queue.
        let pushed = unsafe { queue.push_in_place(self, write) };
        if let Err(fresh) = pushed {
            fresh.push_with_room(queue);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_with_room<C: Context + Send>(self, queue: &Queue<C>) {
        queue.push(self.task());
    }
}

/// A task in its place, taken out of its queue and not yet run.
///
/// It is used up before its place is reused: functions of this module make it for the time of their
/// own call, or of a task that stays in place.
#[must_use = "a task is run once"]
pub(crate) struct Standing {
    vtable: &'static Vtable,
    small: *mut u64,
    large: *mut Payload,
}

impl Standing {
    /// Runs the closure. Does not unwind: a panic that the closure does not catch ends the process.
    #[inline(always)]
    pub(crate) fn run(self) -> Ended {
        // SAFETY: the vtable knows in which of the two places the closure is, and it is used once.
        unsafe { (self.vtable.run)(self.small, self.large) }
    }

    /// # Safety
    ///
    /// A task stands there as [`InTwo`] has written it, and is used no second time.
    #[inline(always)]
    unsafe fn at(head: *mut Head, rest: *mut Payload) -> Standing {
        // SAFETY: a task stands in the place.
        let vtable = unsafe { (*head).vtable };
        // SAFETY: a task stands in the place.
        let payload = unsafe { &raw mut (*head).payload };
        Standing { vtable, small: payload.cast(), large: rest }
    }
}

/// Gives the youngest task of a queue, if there is one, to `run`, which runs it, straight out of
/// its slot.
#[inline(always)]
pub(crate) fn run_youngest<C: Context + Send>(
    queue: &Queue<C>,
    run: impl FnOnce(Standing) -> Ended,
) -> Option<Ended> {
    let run = |head: *mut Head, rest: *mut Payload| {
        // SAFETY: the queue passes the place of a task, which is used once.
        run(unsafe { Standing::at(head, rest) })
    };
    // SAFETY: a task moves its closure out before it calls it; `run` does not know the queue.
    unsafe { queue.pop_in_place(run) }
}

/// Passes the youngest tasks of a queue to `run`, as `run_youngest` does, as long as that takes
/// only pops and `run` returns true.
#[inline(always)]
pub(crate) fn run_each<C: Context + Send>(queue: &Queue<C>, mut run: impl FnMut(Standing) -> bool) {
    let run = |head: *mut Head, rest: *mut Payload| {
        // SAFETY: the queue passes the place of a task, which is used once.
        run(unsafe { Standing::at(head, rest) })
    };
    // SAFETY: as in `run_youngest`: a task moves its closure out first, and `run` does not know the
    // queue.
    unsafe { queue.pop_each_in_place(run) };
}

/// The operations on a closure of one type.
///
/// Each gets two places: for a closure of up to [`IN_HEAD`] bytes, and for a larger one. In a
/// [`Task`] they are the same.
struct Vtable {
    run: Run,
    drop: unsafe fn(*mut u64, *mut Payload),
    is_large: bool,
}

/// Runs a closure. Of the C ABI, which lets no panic out: see [`unwind`](super::unwind).
type Run = unsafe extern "C" fn(*mut u64, *mut Payload) -> Ended;

impl Vtable {
    const fn of<R: Into<Ended>, F: FnOnce() -> R>() -> Vtable {
        Vtable { run: run::<R, F>, drop: drop_in::<F>, is_large: is_large::<F>() }
    }
}

const fn is_large<F>() -> bool {
    size_of::<F>() > IN_HEAD
}

/// Where an `F` is, of the two places.
#[inline(always)]
fn closure_at<F>(small: *mut u64, large: *mut Payload) -> *mut F {
    if const { is_large::<F>() } { large.cast() } else { small.cast() }
}

// SAFETY: a task is made from a closure that is Send, and is only ever run or dropped by its
// holder.
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
        if const { Task::holds::<F>() } { Task::of(closure) } else { Task::of(Box::new(closure)) }
    }

    /// [`new`](Task::new), of a closure that it holds.
    #[inline(always)]
    fn of<R: Into<Ended>, F: FnOnce() -> R + Send>(closure: F) -> Task {
        assert!(Task::holds::<F>(), "a task has no room for this closure");
        let mut payload: Payload = [MaybeUninit::uninit(); INLINE / 8];
        // SAFETY: the payload is large and aligned enough for an F.
        unsafe { (&raw mut payload).cast::<F>().write(closure) };
        Task { vtable: const { &Vtable::of::<R, F>() }, payload }
    }

    /// As [`new`](Task::new), made in its final place.
    ///
    /// # Safety
    ///
    /// As [`new`](Task::new), and both places are valid for writes.
    #[inline(always)]
    unsafe fn write<R: Into<Ended>, F: FnOnce() -> R + Send>(
        head: *mut Head,
        rest: *mut Payload,
        closure: F,
    ) {
        if !Task::holds::<F>() {
            // SAFETY: by this function's contract.
            unsafe { InTwo::write(Task::of(Box::new(closure)), head, rest) };
            return;
        }
        // SAFETY: within the place.
        let vtable = unsafe { &raw mut (*head).vtable };
        // SAFETY: within the place.
        let payload = unsafe { &raw mut (*head).payload };
        // SAFETY: the place is large enough for a pointer.
        unsafe { vtable.write(const { &Vtable::of::<R, F>() }) };
        // SAFETY: the place is large and aligned enough for an F; bytes that it does not fill may
        // be anything.
        unsafe { closure_at::<F>(payload.cast(), rest).write(closure) };
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

    /// Runs the closure, as [`Standing::run`] does.
    #[inline(always)]
    pub(crate) fn run(self) -> Ended {
        let mut task = ManuallyDrop::new(self);
        let payload = &raw mut task.payload;
        // The payload is what `new` wrote with this vtable; the task is forgotten, so it is not run
        // or dropped again.
        Standing { vtable: task.vtable, small: payload.cast(), large: payload }.run()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let payload = &raw mut self.payload;
        // SAFETY: the payload is what `new` wrote with this vtable, and has not been run.
        unsafe { (self.vtable.drop)(payload.cast(), payload) };
    }
}

// SAFETY: the vtable and the words of a small closure go to the head and come from there, those of
// a large one to the rest. The vtable, which is static, says which it is.
unsafe impl Storage<Task> for InTwo {
    type Head = Head;
    type Rest = Payload;

    #[inline(always)]
    unsafe fn write(task: Task, head: *mut Head, rest: *mut Payload) {
        let task = ManuallyDrop::new(task);
        let Task { vtable, payload } = &*task;
        let small = *payload.first_chunk().expect("a head holds no more than a task");
        // SAFETY: by this function's contract.
        unsafe { head.write(Head { vtable, payload: small }) };
        if vtable.is_large {
            // SAFETY: the place has a rest for a large task, by this function's contract.
            unsafe { rest.write(*payload) };
        }
    }

    #[inline(always)]
    unsafe fn read(head: *const Head, rest: *const Payload) -> Task {
        // SAFETY: by this function's contract.
        let Head { vtable, payload: small } = unsafe { head.read() };
        let payload = if vtable.is_large {
            // SAFETY: a large task has a rest, by this function's contract.
            unsafe { rest.read() }
        } else {
            let mut payload: Payload = [MaybeUninit::uninit(); INLINE / 8];
            *payload.first_chunk_mut().expect("a head holds no more than a task") = small;
            payload
        };
        Task { vtable, payload }
    }

    #[inline(always)]
    unsafe fn has_rest(head: *const Head) -> bool {
        // SAFETY: by this function's contract.
        let vtable = unsafe { (*head).vtable };
        vtable.is_large
    }
}

/// # Safety
///
/// Its place of the two holds an `F`, which is moved out.
unsafe extern "C" fn run<R: Into<Ended>, F: FnOnce() -> R>(
    small: *mut u64,
    large: *mut Payload,
) -> Ended {
    // SAFETY: by this function's contract.
    let closure = unsafe { closure_at::<F>(small, large).read() };
    closure().into()
}

/// # Safety
///
/// Its place of the two holds an `F`, which is dropped.
unsafe fn drop_in<F>(small: *mut u64, large: *mut Payload) {
    // SAFETY: by this function's contract.
    unsafe { closure_at::<F>(small, large).drop_in_place() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_holds_56_bytes_and_a_head_24() {
        #[repr(align(16))]
        struct Aligned;
        assert!(Task::holds::<[u64; 7]>() && !Task::holds::<[u64; 8]>());
        assert!(!Task::holds::<Aligned>());
        assert!(!is_large::<[u64; 3]>() && is_large::<[u64; 4]>());
    }
}
