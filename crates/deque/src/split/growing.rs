//! The split deque as one of the family: any task, any number of them, [`Owner`] and [`Thief`].
//!
//! Source: as [`Queue`](super::Queue); the tasks lie in the growing ring of [`ring`](crate::ring).
//!
//! # How it works
//!
//! The owner's head and its idea of the split are private, and so are all tasks between them. To push and
//! to pop it loads one word that others write, the *alarm*, and compares its head with it. The alarm
//! stands at the split, so that a head that has come down to it stops there; a thief that finds nothing
//! shared raises it above any head, and so stops the owner at its next push or pop. The owner then shares
//! the older half of what it has. At the split it takes the younger half of the shared tasks back.
//!
//! # Why it is correct
//!
//! Who takes which index is [`Bounds`]' affair: a thief by stepping the tail over it, the owner by
//! pulling the split below it, both by a compare-and-swap of one word. Hence no fence policy. A claimed
//! index is copied and marked as `ring` says, which asks for two things. What the owner wrote must be
//! visible to the claim: `share` releases, a claim acquires. And a thief that claims an index pushed
//! after the ring was exchanged must see the new ring: it does, since the `share` that made the index
//! claimable came later than the exchange. Indices are handed out by `Bounds` in 32 bits, which is all
//! that a ring needs to know of them.

mod emplace;

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::{Bounds, Claim, Context};
use crate::handles::methods;
use crate::owned::Owned;
use crate::ring::{
    CapacityError, Claimed, DEFAULT_CAPACITY, NoMemory, Rings, Room, Storage, Whole,
};
use crate::{ExactlyOnce, OutOfMemory, Owner, Steal, Thief};

/// The most tasks that a thief takes at once. A share of a million tasks, say, would take it longer to carry
/// away than to run, through a ring that must grow for it.
const MOST: u32 = 128;

/// Above any head: these start below 2^32, and 2^62 pushes take a century.
const RAISED: u64 = 1 << 62;

struct Shared<T, M: Memory, S: Storage<T>> {
    thieves: CachePadded<ThievesLine<T, M, S>>,
    /// The split as the owner sees it, or [`RAISED`].
    alarm: CachePadded<M::Word>,
    owner: CachePadded<Owned<Private<T, M, S>>>,
}

/// What only the owner touches.
struct Private<T, M: Memory, S: Storage<T>> {
    head: Cell<u64>,
    /// The split: tasks from here to `head` are private.
    bottom: Cell<u64>,
    room: Room<T, M, S>,
}

/// What thieves write, and an owner that meets them.
struct ThievesLine<T, M: Memory, S: Storage<T>> {
    bounds: Bounds<M>,
    rings: Rings<T, M, S>,
}

impl<T, M: Memory, S: Storage<T>> Shared<T, M, S> {
    /// Whether a push or pop that has left the head at `head` may go its way: no thief has asked, and
    /// `head` is above the split.
    #[inline(always)]
    fn undisturbed(&self, head: u64) -> bool {
        // Relaxed: a request seen late is answered late, and the owner knows its split by itself.
        head > self.alarm.load(Ordering::Relaxed)
    }
}

/// The owner of a split deque.
///
/// Thieves can take only what it has shared, and it shares when one has asked: the first steal from a
/// deque of private tasks finds it empty, and so do all until the owner's next push or pop. An owner
/// that is dropped shares all that is left.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Owner::push) | lock-free, amortised constant | a load; one locked addition if a thief has asked |
/// | [`pop`](Owner::pop) | lock-free | as a push; one compare-and-swap where it comes down to the split |
/// | [`steal`](Thief::steal), [`steal_half`](Thief::steal_half) | lock-free: `Retry` means that another thread got tasks | one compare-and-swap |
///
/// ```
/// use poach_deque::{Split, Steal};
///
/// let (owner, mine): (Split<u32>, Split<u32>) = (Split::new(), Split::new());
/// let thief = owner.thief();
/// (0..7).for_each(|task| owner.push(task));
/// assert_eq!(thief.steal(), Steal::Empty);
/// owner.push(7);
/// // Tasks 0 to 3 are shared now, and half of these are stolen at once.
/// assert_eq!(thief.steal_half(&mine), Steal::Success(0));
/// assert_eq!(mine.pop(), Some(1));
/// assert_eq!(thief.steal(), Steal::Success(2));
/// assert_eq!(owner.pop(), Some(7));
/// ```
pub struct Split<T: Send, M: Memory = Machine, C: Context + Send = (), S: Storage<T> = Whole> {
    shared: Arc<Shared<T, M, S>>,
    context: C,
    not_sync: PhantomData<Cell<()>>,
}

/// A thief's handle to a [`Split`] deque. It may outlive the owner.
pub struct Stealer<T, M: Memory = Machine, S: Storage<T> = Whole> {
    shared: Arc<Shared<T, M, S>>,
}

impl<T: Send> Split<T> {
    /// An empty queue with room for 64 tasks before it grows.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T: Send, M: Memory> Split<T, M> {
    /// An empty queue with room for `capacity` tasks before it grows.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0)
    }

    /// As [`with_capacity`](Split::with_capacity), with the first task at `index` (its low 32 bits): for tests
    /// of indices that wrap around.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Split::with_capacity).
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        Self::with_context(capacity, index, ())
    }
}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> Split<T, M, C, S> {
    /// As [`starting_at`](Split::starting_at), for an owner that wants to be told when tasks have
    /// become visible to thieves, and in any [`Storage`].
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Split::with_capacity).
    pub fn with_context(capacity: usize, index: u64, context: C) -> Result<Self, CapacityError> {
        let index = u64::from(index as u32);
        let (rings, room) = Rings::new(capacity, index)?;
        let shared = Arc::new(Shared {
            thieves: CachePadded::new(ThievesLine { bounds: Bounds::new(index as u32), rings }),
            alarm: CachePadded::new(M::Word::new(index)),
            owner: CachePadded::new(Owned::new(Private {
                head: Cell::new(index),
                bottom: Cell::new(index),
                room,
            })),
        });
        Ok(Split { shared, context, not_sync: PhantomData })
    }

    #[inline(always)]
    fn private(&self) -> &Private<T, M, S> {
        // SAFETY: this is the owner's handle, and whoever has the reference has a reference to that.
        unsafe { self.shared.owner.get() }
    }

    /// Slots in the ring now. It doubles when it is full and never shrinks.
    pub fn capacity(&self) -> usize {
        self.private().room.capacity()
    }

    /// Answers a request, if it has something to share. The caller does nothing more with the queue.
    #[cold]
    #[inline(never)]
    fn share(&self) {
        if self.share_half() {
            self.context.shared();
        }
    }

    /// Shares the older half of the private tasks, if there are any.
    fn share_half(&self) -> bool {
        let Private { bottom, head, .. } = self.private();
        let (bottom, head) = (bottom.get(), head.get());
        let private = head.wrapping_sub(bottom);
        if private > 0 {
            self.share_up_to(bottom.wrapping_add(private.div_ceil(2)));
        }
        private > 0
    }

    fn share_up_to(&self, to: u64) {
        // Relaxed: a flag without data. It comes down before the tasks are there to be taken: who takes
        // them all and asks again is not overlooked.
        self.shared.alarm.store(to, Ordering::Relaxed);
        let bottom = &self.private().bottom;
        self.shared.thieves.bounds.share(bottom.get() as u32, to as u32);
        bottom.set(to);
    }

    /// A pop that has come down to the split, or that a thief has stopped.
    #[cold]
    #[inline(never)]
    fn pop_disturbed(&self) -> Option<T> {
        // Relaxed: as in `undisturbed`.
        let asked = self.shared.alarm.load(Ordering::Relaxed) == RAISED;
        let private = self.private();
        let old = private.bottom.get();
        let at_the_split = private.head.get() == old;
        if at_the_split {
            let split = self.shared.thieves.bounds.take_back()?;
            let bottom = old.wrapping_sub(u64::from((old as u32).wrapping_sub(split)));
            private.bottom.set(bottom);
            // Relaxed: as in `share_up_to`. It fails on a raised alarm, which stays until it is answered.
            let _ = self.shared.alarm.compare_exchange(
                old,
                bottom,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        let task = self.pop_private();
        let shared = asked && self.share_half();
        // Last, both: the context may use this queue.
        if at_the_split {
            self.context.took_back();
        }
        if shared {
            self.context.shared();
        }
        Some(task)
    }

    /// Only with `head` above the split.
    #[inline(always)]
    fn pop_private(&self) -> T {
        let Private { head, room, .. } = self.private();
        let index = head.get().wrapping_sub(1);
        head.set(index);
        // SAFETY: `bottom <= index < head`: a task, and no thief can claim it.
        unsafe { room.read(index) }
    }
}

impl<T: Send, M: Memory> Default for Split<T, M> {
    fn default() -> Self {
        match Self::with_capacity(DEFAULT_CAPACITY) {
            Ok(queue) => queue,
            Err(_) => crate::out_of_memory::<T>(),
        }
    }
}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> Owner<T> for Split<T, M, C, S> {
    type Thief = Stealer<T, M, S>;

    #[inline(always)]
    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let Private { head, room, .. } = self.private();
        let index = head.get();
        if !room.has(index)
            && let Err(NoMemory) = room.make(&self.shared.thieves.rings, index)
        {
            return Err(OutOfMemory(task));
        }
        // SAFETY: there is room at the head, above which there is no task, and `shared` keeps the rings.
        unsafe { room.write(index, task) };
        let next = index.wrapping_add(1);
        head.set(next);
        if !self.shared.undisturbed(next) {
            self.share();
        }
        Ok(())
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        if !self.shared.undisturbed(self.private().head.get()) {
            return self.pop_disturbed();
        }
        Some(self.pop_private())
    }

    fn thief(&self) -> Stealer<T, M, S> {
        Stealer { shared: Arc::clone(&self.shared) }
    }

    fn len(&self) -> usize {
        let Private { head, bottom, .. } = self.private();
        head.get().wrapping_sub(bottom.get()) as usize
            + self.shared.thieves.bounds.shared() as usize
    }
}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> ExactlyOnce<T> for Split<T, M, C, S> {}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> Drop for Split<T, M, C, S> {
    fn drop(&mut self) {
        self.share_up_to(self.private().head.get());
    }
}

impl<T, M: Memory, S: Storage<T>> Drop for Shared<T, M, S> {
    fn drop(&mut self) {
        let tail = u64::from(self.thieves.bounds.tail());
        let shared = u64::from(self.thieves.bounds.shared());
        // SAFETY: no handle is left, so nobody is between claim and mark; the owner shared all its tasks
        // when it was dropped. Slots are found by the low bits of an index, which `tail` has.
        unsafe { self.thieves.rings.drop_tasks(tail, tail + shared) };
    }
}

impl<T: Send, M: Memory, S: Storage<T>> Stealer<T, M, S> {
    /// Asks the owner to share at its next push or pop. The request stays until it is met. Wait-free.
    pub fn request(&self) {
        // Relaxed, both: a flag without data. It is only written if it must change, so that the owner's
        // copy of the line stays good.
        if self.shared.alarm.load(Ordering::Relaxed) != RAISED {
            self.shared.alarm.store(RAISED, Ordering::Relaxed);
        }
    }

    #[inline]
    fn claim(&self, want: impl FnOnce(u32) -> u32) -> Steal<Claimed<'_, T, M, S>> {
        let shared = &*self.shared;
        match shared.thieves.bounds.claim(want) {
            Claim::Taken { first, count } => {
                // SAFETY: claimed for this call alone, and the claim acquired the `share` that came after
                // the tasks were written.
                Steal::Success(unsafe { shared.thieves.rings.claimed(u64::from(first), count) })
            }
            Claim::Empty => {
                self.request();
                Steal::Empty
            }
            Claim::Lost => Steal::Retry,
        }
    }
}

impl<T: Send, M: Memory, S: Storage<T>> Thief<T> for Stealer<T, M, S> {
    #[inline]
    fn steal(&self) -> Steal<T> {
        match self.claim(|_| 1) {
            Steal::Success(mut claimed) => claimed.next().map_or(Steal::Empty, Steal::Success),
            Steal::Empty => Steal::Empty,
            Steal::Retry | Steal::Abort => Steal::Retry,
        }
    }

    /// Takes the older half of the shared tasks, but at most 128, by one compare-and-swap.
    #[inline]
    fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        match self.claim(|shared| shared.div_ceil(2).min(MOST)) {
            Steal::Success(mut claimed) => {
                let first = claimed.next();
                for task in claimed {
                    into.push(task);
                }
                first.map_or(Steal::Empty, Steal::Success)
            }
            Steal::Empty => Steal::Empty,
            Steal::Retry | Steal::Abort => Steal::Retry,
        }
    }

    /// The number of shared tasks.
    fn len(&self) -> usize {
        self.shared.thieves.bounds.shared() as usize
    }
}

impl<T, M: Memory, S: Storage<T>> Clone for Stealer<T, M, S> {
    fn clone(&self) -> Self {
        Stealer { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> fmt::Debug for Split<T, M, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory, S: Storage<T>> fmt::Debug for Stealer<T, M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer").field("shared", &self.len()).finish_non_exhaustive()
    }
}

methods!(T; [T: Send, M: Memory, C: Context + Send, S: Storage<T>] Split<T, M, C, S>; [T: Send, M: Memory, S: Storage<T>] Stealer<T, M, S>);
