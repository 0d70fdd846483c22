//! A queue in which the owner, too, takes the oldest task. It is *closed*, and the owner takes
//! without a locked instruction, until a thief comes.
//!
//! Source: open, it is the FIFO flavour of crossbeam-deque on the ring of `ring`. The request is
//! that of [`biased`](crate::biased). That one end is the owner's alone or everybody's by turns is
//! ours.
//!
//! # How it works
//!
//! Tasks have indices. The owner pushes at `tail`, which only it moves, and only up. Every taker
//! takes the oldest.
//!
//! | word | content | written by |
//! |---|---|---|
//! | `tail` | index | the owner |
//! | `taken` | index: in a closed queue, or a queue closed when the reader looked, the owner has taken what is below | the owner |
//! | `head` | index, whether the queue is *open*, and the parity of the index at which it was opened | below |
//! | `request` | whether a thief has asked (the split request) | thieves raise it, the owner lowers it |
//! | `known` | what a thief has read of `tail`, some time ago | thieves |
//!
//! *Open*: everyone takes by moving the index of `head` up, a thief by a compare-and-swap over one
//! task or over several at once, the owner by an addition. An owner that adds to the index of an
//! empty queue puts it back: nobody takes anything meanwhile, and nobody else pushes.
//!
//! *Closed*: the owner takes, and `head` stays at the index at which the queue was closed.
//!
//! | | owner's pop of index `i` | thief that finds the queue closed |
//! |---|---|---|
//! | 1 | stores `taken = i + 1` | reads `head` |
//! | 2 | [`StoreLoad::owner`] | raises the `request` |
//! | 3 | loads `request`: if it is down, the task is the owner's | [`StoreLoad::try_thief`]; without the fence no more |
//! | 4 | raised: lowers it, opens at `i + 1` by a compare-and-swap of `head` | loads `taken` |
//! | 5 | if that fails a thief has opened: at `i + 1`, and the task is the owner's; or at `i`, and it is in the queue | opens there by a compare-and-swap of `head` |
//!
//! An owner that meets a raised request, at a pop or at a push that finds the ring full, opens the
//! queue. So a thief looks a number of times whether it does, between its steps 2 and 3, and pays
//! for the barrier only if the owner is away. An owner that has popped a number of tasks from an
//! open queue, and no thief any, closes it together with its next pop.
//!
//! # Why it is correct
//!
//! *Open.* A task is taken by the one exchange or addition that steps over its index; `tail` never
//! comes down, so a thief's idea of `tail` is at worst too low.
//!
//! *One period.* From a close to the next opening `head` is one value, and that never comes again:
//! a close moves the index up, since it takes a task. So each period has one opening, by the one
//! exchange that succeeds.
//!
//! *Opened by the owner*, in step 4 or between two operations: at the index that follows what it
//! has taken.
//!
//! *Opened by a thief*, at the index `x` that it has loaded from `taken`. Take a pop of index `i`
//! in that period. By the policy, either it saw the request raised, or the thief's load saw its
//! store of `taken`, so that `x > i`. The first pop that sees the request ends the period for the
//! owner. So all pops before it have taken indices below `x`. That pop itself has stored `i + 1`,
//! which the thief has loaded or not: `x` is `i + 1` or `i`. The parity in `head` tells which,
//! however far thieves have moved the index since.
//!
//! *The request.* The owner lowers it in step 4 alone, before the exchange that ends the period. A
//! thief that has acquired the `head` of a period raises it after the lowering of the periods
//! before; so it stays raised until the owner ends this one. A request that was raised late, for a
//! period that is over, makes the owner open once for nobody.
//!
//! *An older `head`.* A thief may have read that the queue is closed, and then read a `taken` of a
//! later time, when it was open or closed again. Each store of `taken` that steps over a task
//! releases: the thief then reads a tail at or above it, and says `Empty` only if
//! there was nothing. Its exchange of `head` fails.
//!
//! *Handing over.* A thief's acquire of `tail`, or of `known`, pairs with the owner's release: it
//! sees the tasks below. What happens to the slots is `ring`'s affair; the tasks that the owner
//! takes of a closed queue it finishes together, when it opens the queue, or needs their slots.
//!
//! # Emptiness
//!
//! A thief says `Empty` after a full fence and a load of `tail`, as [`len`](crate::Thief::len)
//! answers. So an owner that pushes, executes a full fence and looks for sleepers, and a sleeper
//! that announces itself, executes one and looks for tasks, do not both see nothing. A thief may
//! say `Empty` of a queue whose last task the owner is just popping.
//!
//! # Distance
//!
//! A thief that takes few tasks at a time as the owner pushes or pops them makes both wait for the
//! cache lines of `tail`, `head` and the slots, longer than an operation takes. So a thief that has
//! seen the owner push while it found few tasks, or has lost one of so few, sets a `pace`. From
//! then on a thief that finds few waits that many pauses before it looks again. It doubles the pace
//! until enough tasks come in meanwhile, makes it as much shorter as more than twice as many do,
//! and halves it if fewer have come and gone than one in `SLOW` pauses. By halves in place of that
//! two paces last, and a run has one of two speeds. What is few and enough: `Distance` in
//! `thief.rs`. A thief of a limited number of tasks looks neither at the owner's tail nor at the
//! pace as long as thieves know of tasks enough.

mod faces;
// Its coroutines do not know that processor, and Miri does not know them.
#[cfg(all(test, not(target_arch = "s390x"), not(miri)))]
mod model;
mod thief;

use std::marker::PhantomData;
use std::sync::Arc;

use core::cell::Cell;
use poach_memory::{Asymmetric, CachePadded, Machine, Memory, Ordering, StoreLoad, Word};

use crate::handles::handles;
use crate::owned::Owned;
use crate::owners_end::{OwnersEnd, owners_end};
use crate::pacing::LOOKS;
use crate::pacing::fifo::{LONGEST, SHORTEST, WORTH};
use crate::ring::{Buffer, CapacityError, DEFAULT_CAPACITY, Rings};
use crate::traits::{ExactlyOnce, OutOfMemory, Owner, Steal, made};

/// The bits of `head` below the index. An index has 62 bits: the first is below 2^32, and 2^62
/// pushes take a century.
const OPEN: u64 = 1;
const ODD: u64 = 2;
const ONE: u64 = 4;

/// The word `head` of a queue closed at `index`.
#[inline(always)]
fn closed(index: u64) -> u64 {
    index * ONE
}

/// The word `head` of a queue opened at `index`.
#[inline(always)]
fn opened(index: u64) -> u64 {
    (index * ONE) | ((index & 1) * ODD) | OPEN
}

/// The index of `head`.
#[inline(always)]
fn index_of(head: u64) -> u64 {
    head / ONE
}

/// How far `tail` is above the index of `head`.
#[inline(always)]
fn above(tail: u64, head: u64) -> i64 {
    tail.wrapping_sub(index_of(head)) as i64
}

// In this order: see `ends`.
#[repr(C)]
struct Shared<T, M: Memory> {
    owner: CachePadded<OwnerLine<T, M>>,
    request: CachePadded<M::Word>,
    thieves: CachePadded<ThievesLine<M>>,
    /// By itself: what thieves say here they say after they have moved `head`, which others wait
    /// for.
    rings: CachePadded<Rings<T, M>>,
    looks: u32,
}

/// What the owner writes with each operation.
// In this order: see `ends`.
#[repr(C)]
struct OwnerLine<T, M: Memory> {
    tail: M::Word,
    /// Of an open queue: an index at or below that of `head`, for the owner, and for a thief that
    /// has read an older `head`.
    taken: M::Word,
    private: Owned<OwnerState<T, M>>,
    policy: Asymmetric<M>,
}

/// What only the owner touches.
struct OwnerState<T, M: Memory> {
    buffer: Buffer<T, M>,
    /// The word `head` when the owner closed the queue, or `OPEN` alone if it knows that the queue
    /// is open.
    closed: Cell<u64>,
    /// The first index that the owner has taken since, and not finished.
    unfinished: Cell<u64>,
    /// How many tasks the owner has popped from the open queue, and no thief any.
    undisturbed: Cell<u32>,
    /// After how many of these it closes the queue.
    patience: Cell<u32>,
}

/// What everyone who takes a task of an open queue writes.
struct ThievesLine<M: Memory> {
    head: M::Word,
    known: M::Word,
    /// For how many pauses of the processor a thief lets the owner get ahead: see "Distance".
    pace: M::Word,
}

impl<T, M: Memory> Shared<T, M> {
    /// The word `head`, as of an open queue, if `head` is what was read of it. An index as old as
    /// that, or as this call.
    #[inline(always)]
    fn front(&self, head: u64) -> u64 {
        if head & OPEN != 0 {
            return head;
        }
        // Acquire: who reads a tail after this reads none below it.
        closed(self.owner.taken.load(Ordering::Acquire))
    }
}

impl<T, M: Memory> Drop for Shared<T, M> {
    fn drop(&mut self) {
        // Relaxed, both: the last handle's going synchronised with all others'.
        let head = self.thieves.head.load(Ordering::Relaxed);
        let tail = self.owner.tail.load(Ordering::Relaxed);
        let first = tail.wrapping_sub(above(tail, self.front(head)).max(0) as u64);
        // SAFETY: no handle is left, so nobody is between claim and mark, and all of `first..tail`
        // are tasks.
        unsafe { self.rings.drop_tasks(first, tail) };
    }
}

handles! {
    /// The owner of a first-in, first-out queue.
    ///
    /// | operation | progress | cost |
    /// |---|---|---|
    /// | [`push`](Fifo::push) | lock-free, amortised constant | no fence |
    /// | [`pop`](Fifo::pop) | lock-free | that of [`Asymmetric`], where no thief has come for a while; else one addition |
    /// | [`steal`](crate::Thief::steal), [`steal_half`](crate::Thief::steal_half) | lock-free: `Retry` means that another thread got a task | one compare-and-swap; that of [`Asymmetric`] where the queue is closed and the owner does not answer |
    ///
    /// ```
    /// use poach_deque::{Fifo, Steal};
    ///
    /// let owner = Fifo::new();
    /// let thief = owner.thief();
    /// (0..8).for_each(|task| owner.push(task));
    /// assert_eq!((thief.steal(), owner.pop()), (Steal::Success(0), Some(1)));
    /// ```
    Fifo [T, M: Memory = Machine]
    [T, M: Memory] <T, M> of Shared<T, M>
}

impl<T> Fifo<T> {
    /// An empty queue with 64 slots at first.
    pub fn new() -> Self {
        made::<T, _, _>(Self::with_capacity(DEFAULT_CAPACITY))
    }

    /// An empty queue with `capacity` slots at first.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0)
    }
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, M: Memory> Fifo<T, M> {
    /// As [`with_capacity`](Fifo::with_capacity), with the first task at `index` (its low 32 bits),
    /// for tests.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Fifo::with_capacity).
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        Self::with_patience(capacity, index, SHORTEST, LOOKS)
    }

    /// The same with an owner that closes the queue after `patience` pops with no thief between
    /// them, or has closed it from the start if that is 0. Thieves look `looks` times for its
    /// answer before they pay for a barrier.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Fifo::with_capacity).
    #[doc(hidden)]
    pub fn with_patience(
        capacity: usize,
        index: u64,
        patience: u32,
        looks: u32,
    ) -> Result<Self, CapacityError> {
        let index = u64::from(index as u32);
        let (rings, buffer) = Rings::new(capacity, index)?;
        let head = if patience == 0 { closed(index) } else { opened(index) };
        let private = OwnerState {
            buffer,
            closed: Cell::new(if patience == 0 { head } else { OPEN }),
            unfinished: Cell::new(index),
            undisturbed: Cell::new(0),
            patience: Cell::new(patience.max(1)),
        };
        let shared = Arc::new(Shared {
            owner: CachePadded::new(OwnerLine {
                tail: M::Word::new(index),
                taken: M::Word::new(index),
                private: Owned::new(private),
                policy: Asymmetric::new(),
            }),
            request: CachePadded::new(M::Word::new(0)),
            thieves: CachePadded::new(ThievesLine {
                head: M::Word::new(head),
                known: M::Word::new(index),
                pace: M::Word::new(0),
            }),
            rings: CachePadded::new(rings),
            looks,
        });
        Ok(Fifo { shared, not_sync: PhantomData })
    }

    #[inline(always)]
    fn private(&self) -> &OwnerState<T, M> {
        // SAFETY: this is the owner's handle, and the returned reference borrows it.
        unsafe { self.shared.owner.private.get() }
    }

    /// The word `taken`.
    #[inline(always)]
    fn taken(&self) -> u64 {
        // Relaxed: only the owner stores it.
        self.shared.owner.taken.load(Ordering::Relaxed)
    }

    /// Takes the oldest task.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let (tail, taken) = (self.tail(), self.taken());
        if tail == taken { None } else { self.pop_after(tail, taken) }
    }

    /// The same if the word `taken`, which is `index`, is not the owner's `tail`. Thieves may have
    /// taken all tasks.
    #[inline(always)]
    pub(crate) fn pop_after(&self, tail: u64, index: u64) -> Option<T> {
        if self.private().closed.get() == OPEN {
            return self.pop_open(tail, index);
        }
        if self.shared.owner.policy.is_inline() {
            self.pop_closed::<true>(tail, index)
        } else {
            self.pop_with_call(tail, index)
        }
    }

    /// As `pop_closed` with a policy that calls a function, which the usual path then saves no
    /// registers for.
    #[cold]
    #[inline(never)]
    fn pop_with_call(&self, tail: u64, index: u64) -> Option<T> {
        self.pop_closed::<false>(tail, index)
    }

    /// Steps 1 to 3 of a pop.
    #[inline(always)]
    fn pop_closed<const INLINE: bool>(&self, tail: u64, index: u64) -> Option<T> {
        let owner = &self.shared.owner;
        // Step 1. Release: pairs with the acquire in `front`.
        owner.taken.store(index.wrapping_add(1), Ordering::Release);
        if INLINE {
            owner.policy.owner_inline();
        } else {
            owner.policy.owner();
        }
        // Step 3. Relaxed: the policy orders it after the store, and nothing is read on the
        // strength of it but what the owner wrote itself.
        if self.shared.request.load(Ordering::Relaxed) != 0 {
            return self.pop_requested(tail, index);
        }
        // SAFETY: the queue is closed, and is opened above `index` at the lowest.
        Some(unsafe { self.private().buffer.read(index) })
    }

    /// Takes the oldest task of an open queue.
    #[inline(never)]
    fn pop_open(&self, tail: u64, taken: u64) -> Option<T> {
        let (shared, private) = (&*self.shared, self.private());
        if private.undisturbed.get() >= private.patience.get() {
            return self.pop_and_close(tail);
        }
        let head = &shared.thieves.head;
        // Release: keeps a thief's acquire of `head` good for what others had seen. Acquire: where
        // the store below follows, the thefts are handed on by the next push, as with
        // crossbeam-deque's.
        let seen = head.fetch_add(ONE, Ordering::AcqRel);
        let tasks = above(tail, seen);
        let index = tail.wrapping_sub(tasks.max(0) as u64);
        if tasks <= 0 {
            // Thieves have taken all. Release: as the read-modify-write of `reserve` does, whose
            // release sequence ends here. Relaxed: who takes a task from here on has acquired a
            // tail above it.
            head.store(seen, Ordering::Release);
            shared.owner.taken.store(index, Ordering::Relaxed);
            private.undisturbed.set(0);
            return None;
        }
        // Release: pairs with the acquire in `front`, by a thief that has read the `head` of an
        // earlier period.
        shared.owner.taken.store(index.wrapping_add(1), Ordering::Release);
        private.undisturbed.set(if index == taken { private.undisturbed.get() + 1 } else { 0 });
        // SAFETY: the addition stepped over `index` for this call alone.
        Some(unsafe { self.take(index) })
    }

    /// Moves the task of `index` out.
    ///
    /// # Safety
    ///
    /// The owner has taken `index`, and not finished it.
    #[inline(always)]
    unsafe fn take(&self, index: u64) -> T {
        let buffer = &self.private().buffer;
        // SAFETY: by this function's contract.
        let task = unsafe { buffer.read(index) };
        // SAFETY: by this function's contract the owner has taken the index; its task has been
        // read.
        unsafe { buffer.finish_privately(index) };
        task
    }

    /// Takes the oldest task of a queue that no thief has come to for a while, and closes it.
    #[cold]
    #[inline(never)]
    fn pop_and_close(&self, tail: u64) -> Option<T> {
        let (shared, private) = (&*self.shared, self.private());
        let head = &shared.thieves.head;
        private.undisturbed.set(0);
        // Relaxed: the exchange validates it.
        let seen = head.load(Ordering::Relaxed);
        let index = tail.wrapping_sub(above(tail, seen).max(0) as u64);
        let (next, now) = (index.wrapping_add(1), closed(index.wrapping_add(1)));
        if index == tail {
            // Relaxed: as in `pop_open`.
            shared.owner.taken.store(index, Ordering::Relaxed);
            return None;
        }
        // Release: as in `pop_open`.
        shared.owner.taken.store(next, Ordering::Release);
        // Release: who reads that the queue is closed (acquire) reads `taken` as it was stored
        // here, or a later value.
        if head.compare_exchange(seen, now, Ordering::Release, Ordering::Relaxed).is_err() {
            // It stores `taken`, since there is no undisturbed pop.
            return self.pop_open(tail, index);
        }
        private.closed.set(now);
        private.unfinished.set(next);
        // SAFETY: the exchange stepped over `index` for this call alone.
        Some(unsafe { self.take(index) })
    }

    /// Steps 4 and 5 of a pop.
    #[cold]
    #[inline(never)]
    fn pop_requested(&self, tail: u64, index: u64) -> Option<T> {
        let next = index.wrapping_add(1);
        self.learn_patience(index);
        self.finish_below(index);
        let start = self.open_at(next);
        if (start ^ opened(next)) & ODD != 0 {
            // A thief has opened the queue at `index`. This stores `taken`: as in `pop_and_close`.
            return self.pop_open(tail, index);
        }
        // SAFETY: the queue was opened above `index`, so that is the owner's; `finish_below` has
        // not finished it.
        Some(unsafe { self.take(index) })
    }

    /// Sets when the owner closes the queue again, after a thief asked for one closed up to
    /// `index`.
    fn learn_patience(&self, index: u64) {
        let private = self.private();
        let since = above(index, private.closed.get()).unsigned_abs();
        let patience = private.patience.get();
        private.patience.set(match since {
            0..WORTH => (2 * patience).min(LONGEST),
            _ => (patience / 2).max(SHORTEST.min(patience)),
        });
    }

    /// Opens a queue that the owner has closed, at `index`, unless a thief has: what `head` was
    /// after that, or is now.
    fn open_at(&self, index: u64) -> u64 {
        let shared = &*self.shared;
        // Relaxed: the exchange releases it; if that fails, the next close does.
        shared.request.store(0, Ordering::Relaxed);
        let now = opened(index);
        let closed = self.private().closed.replace(OPEN);
        // Release: a thief that takes from the open queue sees the tail that this thread has
        // stored. Relaxed: the parity alone is looked at.
        let result =
            shared.thieves.head.compare_exchange(closed, now, Ordering::Release, Ordering::Relaxed);
        result.map_or_else(|opened| opened, |_| now)
    }

    /// Between two operations: finishes what the owner has taken of a closed queue. Opens it if a
    /// thief without a barrier has asked, as the owner may not pop again.
    fn finish_taken(&self) {
        if self.private().closed.get() == OPEN {
            return;
        }
        // Relaxed: if it is not seen here a later push or pop sees it.
        if self.shared.request.load(Ordering::Relaxed) == 0 {
            self.finish_below(self.taken());
        } else {
            self.learn_patience(self.taken());
            self.open();
        }
    }

    /// The same, below an index.
    fn finish_below(&self, index: u64) {
        let OwnerState { buffer, unfinished, .. } = self.private();
        let first = unfinished.replace(index);
        // A ring has at most 2^30 slots.
        let count = index.wrapping_sub(first) as u32;
        if count > 0 {
            // SAFETY: the owner has taken and read these, and finishes them here alone.
            unsafe { buffer.finish(&self.shared.rings, first, count) };
        }
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    #[inline]
    pub fn len(&self) -> usize {
        // Relaxed: the owner knows its own indices, and a thief may change this one at once.
        let head = self.shared.thieves.head.load(Ordering::Relaxed);
        above(self.tail(), self.shared.front(head)) as usize
    }
}

impl<T, M: Memory> OwnersEnd<T, M> for Fifo<T, M> {
    #[inline(always)]
    fn tail_word(&self) -> &M::Word {
        &self.shared.owner.tail
    }

    #[inline(always)]
    fn buffer(&self) -> &Buffer<T, M> {
        &self.private().buffer
    }

    #[inline(always)]
    fn rings(&self) -> &Rings<T, M> {
        &self.shared.rings
    }

    fn tasks(&self) -> usize {
        self.len()
    }

    fn claimed(&self) -> u32 {
        // AcqRel: pairs with `step_over`; see "At once" in `ring`. Of a closed queue the owner has
        // claimed what it has taken.
        let head = self.shared.thieves.head.fetch_add(0, Ordering::AcqRel);
        index_of(self.shared.front(head)) as u32
    }

    #[inline(always)]
    fn attend(&self, _tail: u64) {}

    #[inline(always)]
    fn finish_own(&self) {
        self.finish_taken();
    }
}

owners_end!([M: Memory] Fifo<T, M>);
