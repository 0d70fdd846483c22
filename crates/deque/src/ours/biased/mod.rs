//! A deque biased towards its owner: push and pop have neither a fence nor a locked instruction
//! until a thief comes, and one barrier of a thief opens all present tasks to all thieves.
//!
//! Source: the request is that of Lace's split deque ([`split`](crate::split)), the pop's store and
//! load are Chase and Lev's ([`chase_lev`](crate::chase_lev)), and the thieves' index with a tag is
//! ours.
//!
//! # How it works
//!
//! Tasks have indices; those from `top` up to `tail` are in the queue. The owner pushes and pops at
//! `tail`. Thieves take from `top`, but only below a `bound` that somebody has *opened*:
//!
//! | word | content | written by |
//! |---|---|---|
//! | `tail` | index | the owner |
//! | `head` | tag, `top` | thieves move `top`; the owner adds 1 to the tag, which closes what was open |
//! | `open` | tag, `bound` | who opens: tasks from `top` to `bound` may be taken while the tags are equal |
//! | `request` | index | the owner takes a task below it only after it has closed; `RAISED` is above any |
//!
//! | | owner's pop of index `i` | thief that finds nothing open |
//! |---|---|---|
//! | 1 | stores `tail = i` | reads `head` |
//! | 2 | [`StoreLoad::owner`] | raises the `request` |
//! | 3 | loads `request`: `i` is at it or above, the task is the owner's | [`StoreLoad::try_thief`]; without the fence no more |
//! | 4 | below: lowers the `request`, closes by a compare-and-swap of `head` | loads `tail` |
//! | 5 | has the task, opens some of the rest | opens up to that `tail`, with the tag of step 1 |
//!
//! An owner that meets a raised request opens half of its tasks by itself, with two stores and one
//! compare-and-swap. So a thief looks several times for this, between its steps 2 and 3, and pays
//! for the barrier only if the owner is away. An owner that comes back to tasks that a barrier has
//! opened is *eager* for a number of operations. It leaves the request raised and opens with each
//! push and pop, so that the next thief needs no barrier.
//!
//! # Why it is correct
//!
//! *Claim.* A thread that takes from `top` compares and swaps `head`, tag and all, while `open` has
//! the same tag and a bound above. So the tag at the time of the exchange is that of `open`, and
//! one claim remains to be shown: if the tags are equal, the owner takes no index below `bound`
//! before it closes. The owner takes an index without closing only if it has loaded a request at or
//! below it.
//!
//! *Opened by the owner.* It has stored a request of `bound` or more before. Other threads only
//! raise it, and the owner lowers it only right before it closes.
//!
//! *Opened by a thief*, up to the tail `t` that it has loaded, with the tag `g` that it has read in
//! step 1. Take a pop of an index below `t` that loaded a low request. By the policy, either it saw
//! what the thief raised, or the thief's load of `tail` saw the pop's store or a later one. In the
//! second case the pop was over at `t`, and the task below `t` is another one. In the
//! first the owner has lowered the request after it was raised, and closes next. The tag `g` is
//! then over: had the owner closed before step 1, its lowering would come before step 1 and so
//! before the raising (the thief acquires what the close releases).
//!
//! *Late.* A thief may open late, even over what others opened. It writes its own tag and a bound
//! that is good for that tag. Under one tag the owner takes no task after the thief's step 3
//! without closing. So all indices from `top` to `t` stay in the queue.
//!
//! *Nothing left.* An owner that has lowered the request and then finds that thieves have taken all
//! does not close; it raises the request again.
//!
//! *Handing over.* The owner's stores of `tail` release, opening releases, and a claim acquires
//! `open`. What happens to the slots is `ring`'s affair: a claim is of indices below a tail that
//! was acquired.
//!
//! *Tags* and indices in `head` have 32 bits each. An exchange could succeed wrongly only if its
//! thief slept while `head` went through a multiple of 2^32 closes and of 2^32 steals to the very
//! same word. That takes half a minute of closes or steals alone, and then has one chance in 2^32.
//!
//! # Emptiness
//!
//! A thief says `Empty` after a full fence and a load of `tail`, as [`len`](crate::Thief::len)
//! answers. So an owner that pushes, executes a full fence and looks for sleepers, and a sleeper
//! that announces itself, executes one and looks for tasks, do not both see nothing. A thief may
//! say `Empty` of a queue whose last task the owner is just popping.

mod faces;
mod thief;

use core::cell::Cell;
use core::marker::PhantomData;
use std::sync::Arc;

use poach_memory::{CachePadded, Full, Machine, Memory, Ordering, StoreLoad, Word};

use crate::handles::handles;
use crate::owned::Owned;
use crate::owners_end::{OwnersEnd, owners_end};
use crate::pacing::LOOKS;
use crate::pacing::biased::{LONGEST, POP, SHORTEST};
use crate::ring::{Buffer, CapacityError, DEFAULT_CAPACITY, Rings};
use crate::traits::{ExactlyOnce, OutOfMemory, Owner, Steal, made};

/// Above any index: these start below 2^32, and 2^62 pushes take a century.
const RAISED: u64 = 1 << 62;

// In this order: see `Fifo::ends`.
#[repr(C)]
struct Shared<T, M: Memory, P> {
    owner: CachePadded<OwnerLine<T, M, P>>,
    request: CachePadded<M::Word>,
    thieves: CachePadded<ThievesLine<T, M>>,
    looks: u32,
}

/// What the owner writes with each operation.
// In this order: see `Fifo::ends`.
#[repr(C)]
struct OwnerLine<T, M: Memory, P> {
    tail: M::Word,
    /// An index at or below `top`: there is no task when the tail is here. Only the owner has it.
    floor: M::Word,
    private: Owned<OwnerState<T, M>>,
    policy: P,
}

/// What only the owner touches.
struct OwnerState<T, M: Memory> {
    buffer: Buffer<T, M>,
    /// What the owner itself has opened last, or another under the same tag, which is the head's.
    opened: Cell<u64>,
    /// For how many pushes it stays eager.
    eager: Cell<u32>,
    /// For how many it will be eager next time.
    next_eager: Cell<u32>,
    /// Whether it was eager last, so that the request is raised whether a thief has asked or not.
    was_eager: Cell<bool>,
}

impl<T, M: Memory> OwnerState<T, M> {
    /// An eager operation at this price.
    #[inline(always)]
    fn spend(&self, price: u32) {
        self.eager.set(self.eager.get().saturating_sub(price));
        self.was_eager.set(true);
    }
}

/// What thieves write, and an owner that meets them.
struct ThievesLine<T, M: Memory> {
    head: M::Word,
    open: M::Word,
    rings: Rings<T, M>,
}

#[inline(always)]
fn pack(tag: u32, index: u64) -> u64 {
    u64::from(tag) << 32 | u64::from(index as u32)
}

#[inline(always)]
fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// The number of tasks; not below 0, as it could be in a queue that was used without its fence.
#[inline(always)]
fn count(tail: u64, top: u32) -> u32 {
    ((tail as u32).wrapping_sub(top) as i32).max(0) as u32
}

/// How many tasks may be taken.
#[inline(always)]
fn opened(head: u64, open: u64) -> u32 {
    let ((tag, top), (opened, bound)) = (unpack(head), unpack(open));
    if tag == opened { count(u64::from(bound), top) } else { 0 }
}

impl<T, M: Memory, P> Shared<T, M, P> {
    fn len(&self) -> usize {
        // Acquire: the thread that moved the head here had seen a tail at or above it; this thread
        // must not see an older one.
        let (_, top) = unpack(self.thieves.head.load(Ordering::Acquire));
        // Pairs with the fence of a thread that has pushed and looks for sleepers: see "Emptiness".
        M::full();
        // Acquire: as a steal that follows would.
        let tail = self.owner.tail.load(Ordering::Acquire);
        count(tail, top) as usize
    }

    /// Whether [`len`](Shared::len) is 0, with the fewest instructions between the fence and the
    /// answer.
    #[inline]
    fn is_empty(&self) -> bool {
        // Acquire, here and below, and the fence: as in `len`.
        let (_, top) = unpack(self.thieves.head.load(Ordering::Acquire));
        let next = top.wrapping_add(1);
        M::full();
        let tail = self.owner.tail.load(Ordering::Acquire);
        // Whether the tail is below that: the sign says it without a comparison.
        ((tail as u32).wrapping_sub(next) as i32) < 0
    }
}

impl<T, M: Memory, P> Drop for Shared<T, M, P> {
    fn drop(&mut self) {
        // Relaxed, both: the last handle's going synchronised with all others'.
        let (_, top) = unpack(self.thieves.head.load(Ordering::Relaxed));
        let tail = self.owner.tail.load(Ordering::Relaxed);
        let tasks = count(tail, top);
        // SAFETY: no handle is left, so nobody is between claim and mark and all from `top` to
        // `tail` are tasks.
        unsafe { self.thieves.rings.drop_tasks(tail.wrapping_sub(u64::from(tasks)), tail) };
    }
}

handles! {
    /// The owner of a biased deque with fence policy `P`.
    ///
    /// | operation | progress | cost |
    /// |---|---|---|
    /// | [`push`](Biased::push) | lock-free, amortised constant | a load; one compare-and-swap if a thief has asked |
    /// | [`pop`](Biased::pop) | lock-free | the policy's; one compare-and-swap if a thief has asked or where open tasks begin |
    /// | [`steal`](crate::Thief::steal), [`steal_half`](crate::Thief::steal_half) | lock-free: `Retry` means that another thread got tasks or closed them | one compare-and-swap; the policy's where nothing is open and the owner does not answer |
    ///
    /// ```
    /// use poach_deque::{Biased, Steal};
    ///
    /// let owner: Biased<u32> = Biased::new();
    /// let thief = owner.thief();
    /// (0..8).for_each(|task| owner.push(task));
    /// assert_eq!(thief.steal(), Steal::Success(0));
    /// assert_eq!(owner.pop(), Some(7));
    /// ```
    Biased [T, P: StoreLoad<M> = Full, M: Memory = Machine]
    [T, P: StoreLoad<M>, M: Memory] <T, P, M> of Shared<T, M, P>
}

impl<T> Biased<T> {
    /// An empty queue with a full fence on both sides, and 64 slots at first.
    pub fn new() -> Self {
        Self::with_policy(Full)
    }
}

impl<T> Default for Biased<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, P: StoreLoad<Machine>> Biased<T, P> {
    /// An empty queue with a fence policy, and 64 slots at first.
    pub fn with_policy(policy: P) -> Self {
        made::<T, _, _>(Self::with_capacity(policy, DEFAULT_CAPACITY))
    }

    /// An empty queue with a fence policy, and `capacity` slots at first.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
    pub fn with_capacity(policy: P, capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(policy, capacity, 0, LOOKS)
    }
}

impl<T, P: StoreLoad<M>, M: Memory> Biased<T, P, M> {
    /// As [`with_capacity`](Biased::with_capacity), with the first task at `index` (its low 32
    /// bits), for tests of indices that wrap around, and thieves that look `looks` times for
    /// the owner's answer before they pay for a barrier.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Biased::with_capacity).
    #[doc(hidden)]
    pub fn starting_at(
        policy: P,
        capacity: usize,
        index: u64,
        looks: u32,
    ) -> Result<Self, CapacityError> {
        let index = u64::from(index as u32);
        let (rings, buffer) = Rings::new(capacity, index)?;
        let open = pack(0, index);
        let shared = Arc::new(Shared {
            owner: CachePadded::new(OwnerLine {
                tail: M::Word::new(index),
                floor: M::Word::new(index),
                private: Owned::new(OwnerState {
                    buffer,
                    opened: Cell::new(open),
                    eager: Cell::new(0),
                    next_eager: Cell::new(SHORTEST),
                    was_eager: Cell::new(false),
                }),
                policy,
            }),
            request: CachePadded::new(M::Word::new(index)),
            thieves: CachePadded::new(ThievesLine {
                head: M::Word::new(open),
                open: M::Word::new(open),
                rings,
            }),
            looks,
        });
        Ok(Biased { shared, not_sync: PhantomData })
    }

    #[inline(always)]
    fn private(&self) -> &OwnerState<T, M> {
        // SAFETY: this is the owner's handle, and the returned reference borrows it.
        unsafe { self.shared.owner.private.get() }
    }

    /// Takes the youngest task.
    #[inline(always)]
    pub fn pop(&self) -> Option<T> {
        let tail = self.tail();
        // Relaxed: only the owner has it.
        let floor = self.shared.owner.floor.load(Ordering::Relaxed);
        if tail == floor { None } else { self.pop_above_floor(tail) }
    }

    /// The same if `tail`, which is the owner's, is not at the floor.
    #[inline(always)]
    pub(crate) fn pop_above_floor(&self, tail: u64) -> Option<T> {
        if self.shared.owner.policy.is_inline() {
            self.pop_inline::<true>(tail)
        } else {
            self.pop_with_call(tail)
        }
    }

    /// The same with a policy that calls a function, which the usual path then saves no registers
    /// for.
    #[cold]
    #[inline(never)]
    fn pop_with_call(&self, tail: u64) -> Option<T> {
        self.pop_inline::<false>(tail)
    }

    /// Steps 1 to 3 of a pop. There may be no task: then the request is at the tail or above it, as
    /// it is at `top` or above.
    #[inline(always)]
    fn pop_inline<const INLINE: bool>(&self, tail: u64) -> Option<T> {
        let shared = &*self.shared;
        let index = tail.wrapping_sub(1);
        // Release: a thief that reads the tail here sees the tasks below.
        shared.owner.tail.store(index, Ordering::Release);
        if INLINE {
            shared.owner.policy.owner_inline();
        } else {
            shared.owner.policy.owner();
        }
        // Relaxed: the policy orders it after the store, and nothing is read on the strength of it
        // but what the owner wrote itself.
        if tail <= shared.request.load(Ordering::Relaxed) {
            return self.pop_requested(tail);
        }
        // SAFETY: the request is at or below `index`, so no thief takes it before the owner closes
        // (module comment).
        Some(unsafe { self.private().buffer.read(index) })
    }

    /// Steps 4 and 5 of a pop: thieves have asked, or the task may be open, or there is none.
    #[cold]
    #[inline(never)]
    fn pop_requested(&self, tail: u64) -> Option<T> {
        let shared = &*self.shared;
        let index = tail.wrapping_sub(1);
        let closed = self.close(tail, index);
        if !closed {
            // Release: as in `pop`. The queue is empty.
            shared.owner.tail.store(tail, Ordering::Release);
            return None;
        }
        // SAFETY: closed with `index` in the queue, and opened again at most up to `index`.
        Some(unsafe { self.private().buffer.read(index) })
    }

    /// A push to `tail - 1` that has met a raised request.
    #[cold]
    #[inline(never)]
    fn answer(&self, tail: u64) {
        let private = self.private();
        let head = &self.shared.thieves.head;
        if private.eager.get() == 0 {
            // Relaxed: only for the tag, which the owner alone changes.
            let (tag, _) = unpack(head.load(Ordering::Relaxed));
            if !self.is_eager(tag) {
                self.close(tail, tail);
                return;
            }
        }
        let open = pack(unpack(private.opened.get()).0, tail);
        // Release: pairs with the acquire in `claim`. The request stays raised.
        self.shared.thieves.open.store(open, Ordering::Release);
        private.opened.set(open);
        private.spend(1);
        // Relaxed: a hint. An owner whose thieves take all that it pushes stays eager.
        if private.eager.get() == 0 && count(tail, unpack(head.load(Ordering::Relaxed)).1) <= 1 {
            private.eager.set(SHORTEST);
        }
    }

    /// Whether the owner opens at once, for thieves that had to do without it. `tag` is the head's.
    fn is_eager(&self, tag: u32) -> bool {
        let OwnerState { opened, eager, next_eager, .. } = self.private();
        // Relaxed: a hint.
        let open = self.shared.thieves.open.load(Ordering::Relaxed);
        if open != opened.get() && unpack(open).0 == tag {
            eager.set(next_eager.get());
            next_eager.set((2 * next_eager.get()).min(LONGEST));
            opened.set(open);
        }
        eager.get() > 0
    }

    /// Closes, and opens some of what is below `end`: `end` is `tail`, or one below if the owner
    /// takes the last task. `false` if thieves have taken all below `tail`.
    fn close(&self, tail: u64, end: u64) -> bool {
        let shared = &*self.shared;
        let private = self.private();
        // Relaxed: a hint whether thieves have asked, or the owner has come down to what it had
        // opened.
        let asked = shared.request.load(Ordering::Relaxed) == RAISED;
        // Relaxed: the exchange validates it.
        let mut seen = shared.thieves.head.load(Ordering::Relaxed);
        let mut lowered = false;
        let (tag, bound) = loop {
            let (tag, top) = unpack(seen);
            let tasks = count(tail, top);
            if tasks == 0 {
                if lowered {
                    // Relaxed: to raise it needs no order; see "Nothing left".
                    shared.request.store(RAISED, Ordering::Relaxed);
                }
                // Relaxed: only the owner has it.
                shared.owner.floor.store(tail, Ordering::Relaxed);
                return false;
            }
            let first = tail.wrapping_sub(u64::from(tasks));
            let rest = end - first;
            let eager = self.is_eager(tag);
            let bound = match (eager, asked) {
                (true, _) => end,
                (false, true) => first + rest.div_ceil(2),
                (false, false) => first + rest / 2,
            };
            let request = if eager { RAISED } else { bound };
            // Relaxed: the exchange releases it.
            shared.request.store(request, Ordering::Relaxed);
            lowered |= !eager;
            // Release: who reads the new tag (acquire) raises the request after it was lowered
            // here. The tasks that are left are this thread's own, and what thieves
            // have done with a slot is acquired with `finished`.
            match shared.thieves.head.compare_exchange(
                seen,
                pack(tag.wrapping_add(1), u64::from(top)),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    if eager {
                        private.spend(if end == tail { 1 } else { POP });
                    } else if !private.was_eager.take() && asked {
                        private.next_eager.set(SHORTEST);
                    }
                    private.opened.set(pack(tag.wrapping_add(1), bound));
                    if bound == first {
                        return true;
                    }
                    break (tag.wrapping_add(1), bound);
                }
                Err(now) => seen = now,
            }
        };
        // Release: pairs with the acquire in `claim`, which then sees the tasks.
        shared.thieves.open.store(pack(tag, bound), Ordering::Release);
        true
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        // Relaxed: a thief may change it at once.
        let (_, top) = unpack(self.shared.thieves.head.load(Ordering::Relaxed));
        count(self.tail(), top) as usize
    }
}

impl<T, P: StoreLoad<M>, M: Memory> OwnersEnd<T, M> for Biased<T, P, M> {
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
        &self.shared.thieves.rings
    }

    fn tasks(&self) -> usize {
        self.len()
    }

    fn claimed(&self) -> u32 {
        // AcqRel: pairs with `take_from`; see "At once" in `ring`.
        unpack(self.shared.thieves.head.fetch_add(0, Ordering::AcqRel)).1
    }

    #[inline(always)]
    fn attend(&self, tail: u64) {
        // Relaxed: a request that is seen late is answered late, or by the thief itself. One at the
        // tail is what the owner has lowered it to.
        if tail < self.shared.request.load(Ordering::Relaxed) {
            self.answer(tail);
        }
    }

    #[inline(always)]
    fn finish_own(&self) {}
}

owners_end!([P: StoreLoad<M>, M: Memory] Biased<T, P, M>);

impl<T, P: StoreLoad<M>, M: Memory> Drop for Biased<T, P, M> {
    fn drop(&mut self) {
        let shared = &*self.shared;
        // Relaxed: as in `answer`. The owner takes no more tasks, so all are good to open.
        let (tag, _) = unpack(shared.thieves.head.load(Ordering::Relaxed));
        // Release: pairs with the acquire in `claim`.
        shared.thieves.open.store(pack(tag, self.tail()), Ordering::Release);
    }
}
