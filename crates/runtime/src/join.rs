//! `join`, from the call to the end of both halves: push the second half, run the first, pop the
//! second, or wait for its thief.
//!
//! # Who owns the second half
//!
//! `b` is copied bitwise into the slot at the worker's head, and the original is not dropped. Then
//! exactly one of these happens:
//!
//! - the pop returns [`Popped::Own`]: the slot is free, and its copy is moved out and run here.
//!   (The original could run instead, but its captures would then stay in registers while `a` runs,
//!   and every call in between would save them.)
//! - a thief claims the slot: it moves the copy out, runs it, writes the outcome into the slot and
//!   sets [`Status::DONE`]; the original is forgotten, and the outcome is moved out here.
//!
//! A closure too large for a slot is not copied: the slot holds a pointer to the original, which
//! the thief moves out of this frame. The frame stays, because `join` neither returns nor unwinds
//! before the outcome is there.
//!
//! # Why a token is the top of its stack
//!
//! A [`Worker`] is the topmost head of its thread's stack, as a value. [`Worker::join`] borrows it
//! mutably while its halves run. It hands each half a token of its own, whose lifetime ends with
//! the half. So safe code uses the innermost token, unless it hides another from the borrow
//! checker. Such a token stands below the top, and the push finds its slot occupied and panics. A
//! token cannot stand above the top: it does not outlive the join that made it.
//!
//! A wait for a stolen half, and an unwinding past a half, asks the thread which worker it is, and
//! takes that worker's stack for the token's. The two are the same. A thread becomes another worker
//! on top of one in an interrupt, or by [`ThreadBuilder::run`](crate::config::ThreadBuilder::run)
//! in a task. It does so as the first half of a fork of its own ([`WorkerThread::enter`]), so every
//! token of the stack below stands below its top until that is over.

mod all;
pub(crate) mod forks;

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::panic;
use std::thread;

use poach_deque::split::{Popped, PushError, Pushed, Status};
use poach_memory::Ordering;

use crate::pool::{ThreadPool, global};
use crate::task::half::{Head, Worker};
use crate::task::half::{Slot, descriptor, is_done, take_half, take_outcome};
use crate::task::panic::{Kept, Outcome, quietly};
use crate::worker::current::WorkerThread;

/// Runs `a` and `b`, perhaps in parallel, and returns both results.
///
/// On a worker `a` always runs on the calling thread. `b` runs there after it, unless another
/// worker of the pool has stolen it meanwhile. What the caller does until a thief has finished `b`
/// is up to the pool's [`Waiting`](crate::config::Waiting).
///
/// The pool is that of the calling worker. On a thread that is no worker it is the global one, for
/// which the thread works until the join ends (see
/// [`ThreadPoolBuilder::callers`](crate::ThreadPoolBuilder::callers)). [`Worker::join`] is faster,
/// because it need not look for the worker in a thread-local variable.
///
/// ```
/// # use poach_runtime as poach;
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() <= 1000 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (a, b) = poach::join(|| sum(left), || sum(right));
///     a + b
/// }
///
/// let numbers: Vec<u64> = (0..100_000).collect();
/// assert_eq!(sum(&numbers), 4_999_950_000);
/// ```
///
/// # Panics
///
/// As [`Worker::join`].
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    join_or(global, a, b)
}

/// [`join`], but on a thread that is no worker it uses the pool that `pool` returns instead of the
/// global one: for a library that has a pool of its own and is called on any thread.
///
/// ```
/// # use poach_runtime as poach;
/// use std::sync::LazyLock;
/// use poach::{ThreadPool, join_or};
///
/// static SOLVER: LazyLock<ThreadPool> =
///     LazyLock::new(|| ThreadPool::builder().num_threads(2).build().unwrap());
///
/// fn fib(n: u64) -> u64 {
///     if n < 2 {
///         return n;
///     }
///     let (a, b) = join_or(|| &*SOLVER, || fib(n - 1), || fib(n - 2));
///     a + b
/// }
/// assert_eq!(fib(10), 55);
/// ```
///
/// # Panics
///
/// As [`Worker::join`].
#[inline]
pub fn join_or<'p, A, B, RA, RB>(pool: impl FnOnce() -> &'p ThreadPool, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    WorkerThread::with(|local| match local {
        Some(local) if const { fits_registers::<A, B, RA, RB>() } => outlined_here(local, a, b),
        Some(local) => fork_here(local, a, b),
        None => pool().enter(|| join(a, b)),
    })
}

/// [`fork_here`], out of line, so that the compiler inlines the program into it: see `outlined`.
#[inline(never)]
fn outlined_here<A, B, RA, RB>(local: &WorkerThread, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    fork_here(local, a, b)
}

/// [`join`] on a worker.
#[inline(always)]
fn fork_here<A, B, RA, RB>(local: &WorkerThread, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let token = local.token();
    let top = token.head();
    fork(
        token,
        move |above| {
            local.hint.set(above.head());
            let result = a();
            // For `b`, which stands at this fork's head, and for later forks.
            local.hint.set(top);
            result
        },
        move |_| b(),
    )
}

/// Where a half of a [`join_context`] runs.
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// It describes the thread that it was made on.
    not_send: PhantomData<*mut ()>,
}

impl FnContext {
    fn new(migrated: bool) -> FnContext {
        FnContext { migrated, not_send: PhantomData }
    }

    /// Whether the half runs on a thread other than the one that called [`join_context`].
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}

/// [`join`] with closures that are told whether they have moved to another thread. A half that
/// has been stolen knows that a worker was idle, which is a reason to split further.
///
/// ```
/// # use poach_runtime as poach;
/// let pool = poach::ThreadPool::builder().num_threads(1).build()?;
/// let migrated = pool.install(|| poach::join_context(|a| a.migrated(), |b| b.migrated()));
/// assert_eq!(migrated, (false, false)); // there is nobody to steal
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// # Panics
///
/// As [`join`].
pub fn join_context<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    join_context_or(global, a, b)
}

/// [`join_context`], with the pool that `pool` returns instead of the global one: see [`join_or`].
///
/// # Panics
///
/// As [`join`].
#[inline]
pub fn join_context_or<'p, A, B, RA, RB>(
    pool: impl FnOnce() -> &'p ThreadPool,
    a: A,
    b: B,
) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    WorkerThread::with(|local| {
        let Some(local) = local else {
            let caller = thread::current().id();
            return pool().enter(|| join_context_from(thread::current().id() != caller, a, b));
        };
        let caller = address(Some(local));
        let migrated = move || WorkerThread::with(address) != caller;
        fork_here(local, || a(FnContext::new(false)), move || b(FnContext::new(migrated())))
    })
}

/// Identifies the current worker by its address.
fn address(local: Option<&WorkerThread>) -> usize {
    local.map_or(0, |local| std::ptr::from_ref(local).addr())
}

/// [`join_context`] on a worker. `migrated` says whether it is another thread than the caller's:
/// then both halves have migrated.
pub(crate) fn join_context_from<A, B, RA, RB>(migrated: bool, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let here = || WorkerThread::with(|local| local.map(|local| local.index));
    // Both halves run in one pool, so the index says which thread it is.
    let caller = here();
    join(|| a(FnContext::new(migrated)), || b(FnContext::new(migrated || here() != caller)))
}

/// Calls `f` with a [`Worker`] for its thread: the entry to the fast [`Worker::join`].
///
/// On a worker's thread it is that worker. Any other thread becomes a worker of the global pool
/// until `f` returns, or hands `f` over, as by [`ThreadPool::run`](crate::ThreadPool::run).
///
/// ```
/// # use poach_runtime as poach;
/// let (a, b) = poach::worker(|mut w| w.join(|_| 6 * 7, |_| "answers"));
/// assert_eq!((a, b), (42, "answers"));
/// ```
pub fn worker<R: Send>(f: impl FnOnce(Worker<'_>) -> R + Send) -> R {
    WorkerThread::with(|local| match local {
        Some(local) => f(local.token()),
        None => global().run(f),
    })
}

impl Worker<'_> {
    /// Runs `a` and `b`, perhaps in parallel, and returns both results.
    ///
    /// `a` runs at once, on this worker. Another worker of the pool may steal `b` meanwhile. If
    /// none does, `b` runs here after `a`. If one does, this worker runs other tasks until `b`
    /// has ended (see [`Waiting`](crate::config::Waiting)).
    ///
    /// Unless `b` is stolen or another worker asks for work, this costs a few plain stores and two
    /// predictable comparisons more than calling both: no fence, no locked instruction, no
    /// allocation, no thread-local variable. Source: Lace, Figures 1 and 4.
    ///
    /// If the closures and results have up to two words each, the join is a function of its own,
    /// into which a small recursive program is inlined; otherwise it is inlined into its
    /// caller.
    ///
    /// # Panics
    ///
    /// If a closure panics, with its payload, after both have ended; if both panic, with that of
    /// `a`. If the worker's task stack is full
    /// ([`ThreadPoolBuilder::task_stack`](crate::ThreadPoolBuilder::task_stack)).
    #[inline(always)]
    pub fn join<A, B, RA, RB>(&mut self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(Worker<'_>) -> RA + Send,
        B: FnOnce(Worker<'_>) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let token = self.reborrow();
        if const { fits_registers::<A, B, RA, RB>() } {
            outlined(token, a, b)
        } else {
            fork(token, a, b)
        }
    }
}

/// Whether these halves and their results are passed in registers.
pub(crate) const fn fits_registers<A, B, RA, RB>() -> bool {
    const TWO_WORDS: usize = 2 * size_of::<usize>();
    size_of::<A>() <= TWO_WORDS && size_of::<B>() <= TWO_WORDS && size_of::<(RA, RB)>() <= TWO_WORDS
}

/// [`Worker::join`], out of line.
///
/// It is not inlined into the forking function. So the compiler inlines a small forking function
/// into both halves here. A recursive program then becomes one function, which checks before it
/// calls itself whether there is anything to fork, and a leaf costs no call. Inlined the other way
/// round, each leaf saves and restores the registers of the forks, which costs more than the fork
/// itself.
///
/// Only for closures and results that are passed [in registers](fits_registers): larger closures
/// would be written to memory for the call, and again to the slot.
#[inline(never)]
fn outlined<A, B, RA, RB>(worker: Worker<'_>, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(Worker<'_>) -> RA,
    B: FnOnce(Worker<'_>) -> RB + Send,
    RB: Send,
{
    fork(worker, a, b)
}

/// [`Worker::join`] for an `a` that never leaves this thread.
#[expect(clippy::needless_pass_by_value, reason = "a caller gives its token up while halves run")]
#[inline(always)]
pub(crate) fn fork<A, B, RA, RB>(worker: Worker<'_>, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(Worker<'_>) -> RA,
    B: FnOnce(Worker<'_>) -> RB + Send,
    RB: Send,
{
    let head = worker.head();
    let (descriptor, b) = (descriptor::<B, RB>(), ManuallyDrop::new(b));
    let pushed = if Slot::fits::<B>() {
        // SAFETY: the token says that this thread owns the stack and that `head` is its top; the
        // descriptor is a static's address, aligned to 8; B fits. The pop follows in `halves`, with
        // nothing left above it, since halves leave the stack as they found it. The original is not
        // used again, unless the slot points to it.
        unsafe { head.push_below_limit(descriptor, &raw const b) }
    } else {
        let original = &raw const b;
        // SAFETY: a pointer fits; the thread owns the stack, `head` is its top, and the pop
        // follows.
        unsafe { head.push_below_limit(descriptor, &raw const original) }
    };
    if const { fits_registers::<A, B, RA, RB>() } {
        return match pushed {
            // SAFETY: `b` was pushed just now.
            Pushed::Above(above) => unsafe { halves::<A, B, RA, RB>(head, above, a) },
            // SAFETY: `b` was pushed just now, up to the limit.
            Pushed::AtLimit => unsafe { fork_at_limit::<A, B, RA, RB>(head, a) },
            Pushed::Occupied => occupied(ManuallyDrop::into_inner(b)),
        };
    }
    // Here `a` lies in memory. If only the cold paths passed it to another function, the compiler
    // would copy it between the frame's places with loads wider than the stores of its captures.
    // Such a load waits until the stores have left the store buffer.
    let above = match pushed {
        Pushed::Above(above) => above,
        // SAFETY: `b` was pushed just now, up to the limit.
        Pushed::AtLimit => unsafe { above_limit::<B>(head) },
        Pushed::Occupied => occupied(ManuallyDrop::into_inner(b)),
    };
    // SAFETY: `b` was pushed just now.
    unsafe { halves::<A, B, RA, RB>(head, above, a) }
}

/// The rest of a fork whose push is more than a few stores. It is separate so that the short form
/// has no call before its first half, across which it would save the halves' captures.
///
/// # Safety
///
/// This thread owns the stack; `push_below_limit` of a `B` at `head` said `AtLimit` just now, and
/// the original is not used again, unless the slot points to it.
#[cold]
#[inline(never)]
unsafe fn fork_at_limit<A, B, RA, RB>(head: Head, a: A) -> (RA, RB)
where
    A: FnOnce(Worker<'_>) -> RA,
    B: FnOnce(Worker<'_>) -> RB + Send,
    RB: Send,
{
    // SAFETY: by this function's contract.
    let above = unsafe { above_limit::<B>(head) };
    // SAFETY: `b` is pushed now.
    unsafe { halves::<A, B, RA, RB>(head, above, a) }
}

/// The rest of a push that is more than a few stores. Returns the head above the pushed task.
///
/// # Safety
///
/// As for [`fork_at_limit`].
#[cold]
#[inline(never)]
unsafe fn above_limit<B>(head: Head) -> Head {
    // SAFETY: by this function's contract.
    match unsafe { head.push_at_limit() } {
        Ok(above) => above,
        Err(error) => {
            // SAFETY: this thread owns the stack.
            let slot = unsafe { head.slot() };
            // SAFETY: the push failed, but the half stands in the slot, and is taken once.
            drop(unsafe { take_half::<B>(slot) });
            panic!("{error}");
        }
    }
}

/// A fork with a token that is not the innermost join's.
#[cold]
#[inline(never)]
fn occupied<B>(b: B) -> ! {
    drop(b);
    panic!("{}", PushError::Occupied);
}

/// Runs the first half, and the second if it is still there.
///
/// Across the first half's call only `head` is kept. Across the second's, or the wait for it, only
/// the first's result is kept: one saved register, not two.
///
/// # Safety
///
/// This thread owns the stack; a `B` was pushed at `head`, with `above` as the head above, and no
/// other code pops it.
#[inline(always)]
unsafe fn halves<A, B, RA, RB>(head: Head, above: Head, a: A) -> (RA, RB)
where
    A: FnOnce(Worker<'_>) -> RA,
    B: FnOnce(Worker<'_>) -> RB + Send,
    RB: Send,
{
    let armed = Armed(PhantomData::<fn(B) -> RB>);
    // SAFETY: `above` is the top now, until `a` returns.
    let result_a = a(unsafe { Worker::new(above) });
    mem::forget(armed);
    // SAFETY: this thread owns the stack; `a` has popped all that it pushed above.
    if unsafe { head.pop_above_floor() } {
        // SAFETY: the slot holds what was pushed, and by the pop it is this frame's again.
        unsafe { second::<B, RA, RB>(head, result_a) }
    } else {
        // SAFETY: the slot holds what was pushed, which was not popped.
        unsafe { second_at_floor::<B, RA, RB>(head, result_a) }
    }
}

/// Runs the popped second half.
///
/// # Safety
///
/// This thread owns the stack, whose top `head` is; a `B` stands in the slot there.
#[inline(always)]
unsafe fn second<B, RA, RB>(head: Head, result_a: RA) -> (RA, RB)
where
    B: FnOnce(Worker<'_>) -> RB + Send,
    RB: Send,
{
    // SAFETY: the slot at `head` is this thread's.
    let slot = unsafe { head.slot() };
    // SAFETY: by this function's contract.
    let half = unsafe { take_half::<B>(slot) };
    let result_a = Kept::new(result_a);
    // SAFETY: `head` is the top.
    let result_b = half(unsafe { Worker::new(head) });
    (result_a.into_inner(), result_b)
}

/// The rest of a pop that is more than a few stores. If the half was stolen, waits for its result
/// or panic.
///
/// # Safety
///
/// This thread owns the stack; `pop_above_floor` was called at `head`, where a `B` was pushed, and
/// said false.
#[cold]
#[inline(never)]
unsafe fn second_at_floor<B, RA, RB>(head: Head, result_a: RA) -> (RA, RB)
where
    B: FnOnce(Worker<'_>) -> RB + Send,
    RB: Send,
{
    // SAFETY: by this function's contract.
    match unsafe { head.pop_at_floor() } {
        // SAFETY: it was popped, and is what was pushed.
        Popped::Own => unsafe { second::<B, RA, RB>(head, result_a) },
        Popped::Stolen => {
            let result_a = Kept::new(result_a);
            let result_b = wait(head).unwrap_or_else(|payload| panic::resume_unwind(payload));
            (result_a.into_inner(), result_b)
        }
    }
}

/// Marks a pushed second half; dropped only when the first half unwinds. It does not store the
/// head: the frame would have to save it beside the panic's payload.
struct Armed<B, R>(PhantomData<fn(B) -> R>)
where
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send;

impl<B, R> Drop for Armed<B, R>
where
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    // Inlined, so that the guard itself needs no memory.
    #[inline(always)]
    fn drop(&mut self) {
        unwind::<B, R>();
    }
}

/// The first half has panicked. The second is finished all the same, and its result or panic is
/// dropped, before the unwinding goes on.
#[cold]
#[inline(never)]
fn unwind<B, R>()
where
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    // An unwinding half has popped all that it pushed, so the topmost task is the second half.
    let head = WorkerThread::with(|local| own(local).topmost_task());
    // SAFETY: this thread owns the stack, and `join` has pushed this at `head`.
    match unsafe { head.pop() } {
        Popped::Own => {
            // SAFETY: this thread owns the stack.
            let slot = unsafe { head.slot() };
            // SAFETY: the slot holds what `join` has pushed, and by the pop it is this thread's.
            let half = unsafe { take_half::<B>(slot) };
            quietly(|| {
                // SAFETY: the top is `head` again.
                drop(half(unsafe { Worker::new(head) }));
            });
        }
        Popped::Stolen => quietly(|| drop(wait::<R>(head))),
    }
}

/// The second half at `head` was stolen: runs other tasks until it is done.
fn wait<R>(head: Head) -> Outcome<R> {
    wait_until_done(head);
    // SAFETY: the calling thread owns the stack; a slot stays valid while its stolen task is not
    // retired.
    let slot = unsafe { head.slot() };
    // SAFETY: DONE says that the thief has put the outcome of this descriptor's `run` there and
    // does not touch the slot again.
    let outcome = unsafe { take_outcome::<R>(slot) };
    // SAFETY: the outcome was taken, and everything above was popped by the joins that pushed it.
    unsafe { head.retire() };
    outcome
}

/// Runs other tasks until the stolen task at `head` of this thread's stack is done.
pub(crate) fn wait_until_done(head: Head) {
    // SAFETY: this thread owns the stack, and the stolen task keeps its slot.
    let above = unsafe { head.above() };
    // SAFETY: the calling thread owns the stack; a slot stays valid while its stolen task is not
    // retired.
    let slot = unsafe { head.slot() };
    let done = || is_done(slot.status());
    let thief = || {
        // Relaxed: a hint where to steal.
        let status = slot.status().load(Ordering::Relaxed);
        ((status >> Status::THIEF_SHIFT) as usize).checked_sub(1)
    };
    WorkerThread::with(|local| {
        let local = own(local);
        // SAFETY: `above` is the top while this worker waits.
        local.wait(&done, &thief, || unsafe { Worker::new(above) });
    });
}

fn own(local: Option<&WorkerThread>) -> &WorkerThread {
    local.expect("a worker's token is used on its own thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_results_of_two_words_are_in_registers() {
        type Two = [usize; 2];
        type Three = [usize; 3];
        assert!(fits_registers::<Two, Two, usize, usize>());
        assert!(!fits_registers::<Three, Two, usize, usize>());
        assert!(!fits_registers::<Two, Three, usize, usize>());
        assert!(!fits_registers::<Two, Two, usize, Two>());
    }
}
