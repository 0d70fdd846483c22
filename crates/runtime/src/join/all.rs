//! `join_all` and `join_array`: the forks of several children, pushed one after the other and
//! popped in the reverse order, as Lace's `SPAWN`s and `SYNC`s.
//!
//! # Why it is correct
//!
//! Of `n` children the last is pushed first. The first child is called directly, and then the
//! others are popped. So they run in order if no thief comes, and a thief takes the last one. The
//! stack sees nested joins: pushes at ascending heads, pops of the same heads in the reverse order,
//! and all code in between leaves the stack as it was. The protocol of thieves and owner has no
//! step that [`join`](super) has not.
//!
//! *Children.* They stand in memory of the caller, who does not drop them. A child is moved out
//! once: by this worker when it calls the child, or, as a bitwise copy in the slot, by a thief. The
//! pop says which. The copy of a popped child is not used. A child that does not fit a slot stays
//! in place, and the slot points to it: the caller's frame stays until all have ended.
//!
//! *Results.* This worker writes them in order, and moves a thief's outcome out of the slot in its
//! turn. So when child `i` has panicked, exactly the results below `i` are there.
//!
//! *Panics.* Every child is called, as both halves of a join are. If child `i` panics here, or has
//! panicked in a thief, the children above it are popped and called, or waited for, and their
//! results and panics are dropped. Then the results below `i` are dropped, and the panic of `i`
//! goes on: that of the first child that panicked.
//!
//! *Waits.* Thieves take the lowest task of a stack, so the tasks below a stolen child are stolen,
//! too. They keep their slots, with their outcomes, until their turn comes. The worker runs other
//! tasks above the slot that it waits for, and frees that slot before it goes down to the next one.
//!
//! *The stack's limit.* At most [`FLAT`] children are pushed at a time. A longer run is halved
//! first, by forks, so that a thief takes many at once.

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::panic;
use std::ptr;

use poach_deque::split::{Popped, PushError, Pushed};

use super::{fork, wait};
use crate::task::half::{Head, Slot, Worker, descriptor, take_half};
use crate::task::panic::{Outcome, catch, dispose};

/// The most children pushed at a time: their slots are a page.
const FLAT: usize = 64;

impl Worker<'_> {
    /// Calls `f` with each of `children`, perhaps in parallel, and returns the results in order.
    ///
    /// The first child is called on this worker. Others may be stolen meanwhile; the rest are
    /// called here, in order. The cost is one join less than there are children, and two
    /// allocations: for the children and for the results. [`join_array`](Worker::join_array)
    /// allocates nothing.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use poach::Worker;
    ///
    /// struct Folder {
    ///     bytes: u64,
    ///     folders: Vec<Folder>,
    /// }
    ///
    /// fn bytes(mut worker: Worker<'_>, folder: &Folder) -> u64 {
    ///     folder.bytes + worker.join_all(&folder.folders, bytes).iter().sum::<u64>()
    /// }
    ///
    /// let leaf = |bytes| Folder { bytes, folders: Vec::new() };
    /// let root = Folder { bytes: 1, folders: vec![leaf(2), leaf(3), leaf(4)] };
    /// assert_eq!(poach::worker(|w| bytes(w, &root)), 10);
    /// ```
    ///
    /// # Panics
    ///
    /// If calls panic: with the payload of the first such child, after all calls have ended. If the
    /// iterator panics, before any call. If the worker's task stack is full, as
    /// [`join`](Worker::join); the children that have been pushed by then are called, and the
    /// others dropped.
    pub fn join_all<I, R, F>(&mut self, children: I, f: F) -> Vec<R>
    where
        I: IntoIterator<Item: Send>,
        F: Fn(Worker<'_>, I::Item) -> R + Sync,
        R: Send,
    {
        let mut children: Vec<I::Item> = children.into_iter().collect();
        let count = children.len();
        let mut results = Vec::with_capacity(count);
        // SAFETY: zero is within the capacity; what stood there is moved out by `all`.
        unsafe { children.set_len(0) };
        // SAFETY: `count` children stand there, which the vector does not drop any more, and the
        // results have room for `count`.
        unsafe { all(self.reborrow(), children.as_ptr(), results.as_mut_ptr(), count, &f) };
        // SAFETY: `all` has written `count` results.
        unsafe { results.set_len(count) };
        results
    }

    /// [`join_all`](Worker::join_all) of an array, into an array. Allocates nothing.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use poach::Worker;
    ///
    /// /// The sum of the numbers from `first` on, ten to the power of `depth` of them.
    /// fn skynet(mut worker: Worker<'_>, first: u64, depth: u32) -> u64 {
    ///     let Some(depth) = depth.checked_sub(1) else { return first };
    ///     let children = std::array::from_fn::<_, 10, _>(|i| first + i as u64 * 10_u64.pow(depth));
    ///     worker.join_array(children, |w, first| skynet(w, first, depth)).iter().sum()
    /// }
    ///
    /// assert_eq!(poach::worker(|w| skynet(w, 0, 3)), 499_500);
    /// ```
    ///
    /// # Panics
    ///
    /// As [`join_all`](Worker::join_all).
    #[inline(always)]
    pub fn join_array<T, R, F, const N: usize>(&mut self, children: [T; N], f: F) -> [R; N]
    where
        T: Send,
        F: Fn(Worker<'_>, T) -> R + Sync,
        R: Send,
    {
        let children = ManuallyDrop::new(children);
        let mut results = MaybeUninit::<[R; N]>::uninit();
        // SAFETY: N children stand there, which are not dropped here, and there is room for N
        // results.
        unsafe { all(self.reborrow(), children.as_ptr(), results.as_mut_ptr().cast(), N, &f) };
        // SAFETY: `all` has written N.
        unsafe { results.assume_init() }
    }
}

/// Calls `f` with each child, and writes the results. If this unwinds, there are none.
///
/// # Safety
///
/// `count` children stand in a row, and are the callee's to move out; there is room for `count`
/// results.
#[inline(always)]
unsafe fn all<T, R, F>(worker: Worker<'_>, children: *const T, results: *mut R, count: usize, f: &F)
where
    T: Send,
    F: Fn(Worker<'_>, T) -> R + Sync,
    R: Send,
{
    if count > FLAT {
        // SAFETY: by this function's contract.
        unsafe { halved(worker, Run { children, results, count, f }) };
    } else if Slot::fits::<(T, &F)>() {
        let half = move |child: *const T| {
            // SAFETY: `flat` moves each child once.
            let child = unsafe { child.read() };
            move |w: Worker<'_>| f(w, child)
        };
        // SAFETY: by this function's contract; a half fits.
        unsafe { flat(worker, children, results, count, half) };
    } else {
        let half = move |child: *const T| {
            let child = Place(child);
            // SAFETY: `flat` moves each child once.
            move |w: Worker<'_>| f(w, unsafe { child.take() })
        };
        // SAFETY: by this function's contract; a half fits.
        unsafe { flat(worker, children, results, count, half) };
    }
}

/// The place of a child that does not fit a slot.
struct Place<T>(*const T);

// SAFETY: the child is moved through it, once.
unsafe impl<T: Send> Send for Place<T> {}

impl<T> Place<T> {
    /// # Safety
    ///
    /// A child stands there, and is moved out once.
    unsafe fn take(self) -> T {
        // SAFETY: by this function's contract.
        unsafe { self.0.read() }
    }
}

/// Children in a row, as [`all`] has them.
struct Run<'f, T, R, F> {
    children: *const T,
    results: *mut R,
    count: usize,
    f: &'f F,
}

// SAFETY: children are moved out through it, results in, and `f` is called through a reference.
unsafe impl<T: Send, R: Send, F: Sync> Send for Run<'_, T, R, F> {}

impl<'f, T, R, F> Run<'f, T, R, F>
where
    T: Send,
    F: Fn(Worker<'_>, T) -> R + Sync,
    R: Send,
{
    /// # Safety
    ///
    /// As [`all`].
    unsafe fn call(self, worker: Worker<'_>) -> Results<R> {
        // The callee moves the children out, also if it unwinds.
        let run = ManuallyDrop::new(self);
        // SAFETY: by this function's contract.
        unsafe { all(worker, run.children, run.results, run.count, run.f) };
        Results { first: run.results, count: run.count }
    }

    /// The first `count` children, and the others.
    ///
    /// # Safety
    ///
    /// There are at least `count`.
    unsafe fn split_at(self, count: usize) -> (Run<'f, T, R, F>, Run<'f, T, R, F>) {
        let run = ManuallyDrop::new(self);
        // SAFETY: within the children, by this function's contract.
        let children = unsafe { run.children.add(count) };
        // SAFETY: within the results, of which there are as many.
        let results = unsafe { run.results.add(count) };
        (Run { count, ..*run }, Run { children, results, count: run.count - count, f: run.f })
    }
}

impl<T, R, F> Drop for Run<'_, T, R, F> {
    /// The fork was refused, or the run abandoned: its children are dropped.
    fn drop(&mut self) {
        for i in 0..self.count {
            // SAFETY: within the children.
            let place = unsafe { self.children.add(i) };
            // SAFETY: each is moved out once: `call` and `split_at` do not drop the run.
            dispose(unsafe { place.read() });
        }
    }
}

/// Results in a row, to be dropped if others panic.
struct Results<R> {
    first: *mut R,
    count: usize,
}

// SAFETY: it owns them.
unsafe impl<R: Send> Send for Results<R> {}

impl<R> Drop for Results<R> {
    fn drop(&mut self) {
        for i in 0..self.count {
            // SAFETY: `count` results stand there.
            let place = unsafe { self.first.add(i) };
            // SAFETY: each is moved out once.
            dispose(unsafe { place.read() });
        }
    }
}

/// [`all`] of more than [`FLAT`] children: forks both halves of them.
///
/// # Safety
///
/// As [`all`].
#[inline(never)]
unsafe fn halved<T, R, F>(worker: Worker<'_>, run: Run<'_, T, R, F>)
where
    T: Send,
    F: Fn(Worker<'_>, T) -> R + Sync,
    R: Send,
{
    let half = run.count / 2;
    // SAFETY: `half` is at most the number of children.
    let (first, second) = unsafe { run.split_at(half) };
    // SAFETY: by this function's contract; the two runs are disjoint.
    let first = move |w: Worker<'_>| unsafe { first.call(w) };
    // SAFETY: as for the first.
    let second = move |w: Worker<'_>| unsafe { second.call(w) };
    mem::forget(fork(worker, first, second));
}

/// [`all`] of at most [`FLAT`] children. `half` turns a child's place into a closure that calls the
/// child.
///
/// Out of line for the reason that a join is (see `outlined`): a recursive program is inlined into
/// the one call here.
///
/// # Safety
///
/// As [`all`]. The closures of `half` may be copied, if only one copy is called, and fit a slot.
#[expect(clippy::needless_pass_by_value, reason = "a caller gives its token up while halves run")]
#[inline(never)]
unsafe fn flat<T, R, H, B>(
    worker: Worker<'_>,
    children: *const T,
    results: *mut R,
    count: usize,
    half: H,
) where
    H: Fn(*const T) -> B + Copy,
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    let mut head = worker.head();
    let mut left = count;
    while left > 1 {
        // SAFETY: within the children.
        let last = unsafe { children.add(left - 1) };
        let pushed = ManuallyDrop::new(half(last));
        // SAFETY: the token says that this thread owns the stack and that its head was the top;
        // the descriptor is a static's address, aligned to 8; a half fits. The pops follow in
        // reverse, here, in `stolen` or in `abandon`, with nothing left above them. The original
        // is not used again, except by `refused`, which was not pushed.
        head = match unsafe { head.push_below_limit(descriptor::<B, R>(), &raw const pushed) } {
            Pushed::Above(above) => above,
            // SAFETY: it was pushed just now, up to the limit.
            Pushed::AtLimit => match unsafe { head.push_at_limit() } {
                Ok(above) => above,
                // SAFETY: the children behind the first `left` are pushed.
                Err(error) => unsafe { refused(error, head, children, left, count, half) },
            },
            // SAFETY: none is pushed.
            Pushed::Occupied => unsafe {
                refused(PushError::Occupied, head, children, left, count, half)
            },
        };
        left -= 1;
    }
    let mut i = 0;
    while i < count {
        let rest = Rest { head, results, i, count, half, makes: PhantomData };
        // SAFETY: within the children; this one was not pushed, or popped, so no other code moves
        // it out.
        let call = half(unsafe { children.add(i) });
        // SAFETY: `head` is the top.
        let result = call(unsafe { Worker::new(head) });
        mem::forget(rest);
        // SAFETY: within the results.
        let place = unsafe { results.add(i) };
        // SAFETY: there is room for a result.
        unsafe { place.write(result) };
        i += 1;
        if i == count {
            return;
        }
        // SAFETY: this child was pushed at the slot below, and those above it are popped.
        head = unsafe { below(head) };
        // SAFETY: this thread owns the stack, and the child is the topmost task.
        if !unsafe { head.pop_above_floor() }
            // SAFETY: it was not popped; this thread owns the stack, and the results before it are
            // there.
            && unsafe { stolen::<T, R, H, B>(head, results, i, count, half) }
        {
            return;
        }
    }
}

/// The head at the slot below.
///
/// # Safety
///
/// The calling thread owns the stack, and has pushed a task there.
#[inline(always)]
pub(super) unsafe fn below(head: Head) -> Head {
    // SAFETY: there is a slot below, by this function's contract.
    let slot = unsafe { head.as_ptr().sub(1) };
    // SAFETY: the slot is ready: a task was pushed to it.
    unsafe { Head::from_ptr(slot) }
}

/// The rest of a pop of child `i` that is more than a few stores. Returns whether a thief has it.
/// Then thieves have the children behind it, too, and all their results have been written.
///
/// # Safety
///
/// As [`abandon`], and `pop_above_floor` was called at `head`, where child `i` was pushed, and said
/// false.
#[cold]
#[inline(never)]
unsafe fn stolen<T, R, H, B>(
    mut head: Head,
    results: *mut R,
    i: usize,
    count: usize,
    half: H,
) -> bool
where
    H: Fn(*const T) -> B,
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    // SAFETY: by this function's contract.
    if unsafe { head.pop_at_floor() } == Popped::Own {
        return false;
    }
    let mut outcome = wait::<R>(head);
    for i in i.. {
        // SAFETY: within the results.
        let place = unsafe { results.add(i) };
        match outcome {
            // SAFETY: there is room for a result.
            Ok(result) => unsafe { place.write(result) },
            Err(payload) => {
                // SAFETY: by this function's contract.
                unsafe { abandon(head, results, i, count, half) };
                panic::resume_unwind(payload)
            }
        }
        if i + 1 == count {
            break;
        }
        // SAFETY: the next child was pushed there.
        head = unsafe { below(head) };
        // SAFETY: those above it are popped.
        outcome = unsafe { finish::<B, R>(head) };
    }
    true
}

/// Pops a child and calls it, or waits for its thief.
///
/// # Safety
///
/// The calling thread owns the stack, and the topmost task is a child that was pushed at `head`.
unsafe fn finish<B, R>(head: Head) -> Outcome<R>
where
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    // SAFETY: by this function's contract.
    if unsafe { head.pop() } == Popped::Stolen {
        return wait(head);
    }
    // SAFETY: this thread owns the stack.
    let slot = unsafe { head.slot() };
    // SAFETY: the slot holds what was pushed, and by the pop it is this thread's.
    let half = unsafe { take_half::<B>(slot) };
    // SAFETY: the top is `head` again.
    catch(|| half(unsafe { Worker::new(head) }))
}

/// The work left if the call of child `i` unwinds; `head` is the child's.
struct Rest<T, R, H, B>
where
    H: Fn(*const T) -> B + Copy,
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    head: Head,
    results: *mut R,
    i: usize,
    count: usize,
    half: H,
    makes: PhantomData<fn(*const T) -> B>,
}

impl<T, R, H, B> Drop for Rest<T, R, H, B>
where
    H: Fn(*const T) -> B + Copy,
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    // Inlined, so that the guard itself needs no memory.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `flat` made it between its pushes and pops.
        unsafe { abandon(self.head, self.results, self.i, self.count, self.half) };
    }
}

/// Child `i` has panicked: the children behind it are finished. Their results and panics are
/// dropped, as are the results before `i`.
///
/// # Safety
///
/// The calling thread owns the stack, whose top `head` is; the children behind `i`, of this `half`,
/// were pushed below it; the results before `i` are there.
#[cold]
#[inline(never)]
unsafe fn abandon<T, R, H, B>(mut head: Head, results: *mut R, i: usize, count: usize, _: H)
where
    H: Fn(*const T) -> B,
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    for _ in i + 1..count {
        // SAFETY: a child was pushed there.
        head = unsafe { below(head) };
        // SAFETY: those above it are popped.
        let outcome = unsafe { finish::<B, R>(head) };
        dispose(outcome);
    }
    drop(Results { first: results, count: i });
}

/// The last of the first `left` children was not pushed.
///
/// # Safety
///
/// The calling thread owns the stack, whose top `head` is; `left` of the `count` children were not
/// pushed and are the callee's, and the others, of this `half`, were pushed below `head`.
#[cold]
#[inline(never)]
unsafe fn refused<T, R, H, B>(
    error: PushError,
    head: Head,
    children: *const T,
    left: usize,
    count: usize,
    half: H,
) -> !
where
    H: Fn(*const T) -> B,
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    // SAFETY: by this function's contract; there are no results.
    unsafe { abandon::<T, R, H, B>(head, ptr::null_mut(), 0, count - left + 1, half) };
    drop(Results { first: children.cast_mut(), count: left });
    panic!("{error}");
}
