//! Cilk's THE queue and its fence-free form FF-THE: a lock for thieves, which the owner takes only
//! when it meets one.
//!
//! Source: Frigo, Leiserson and Randall, *The Implementation of the Cilk-5 Multithreaded Language*
//! (1998). Morrison and Afek give it in *Fence-Free Work Stealing on Bounded TSO Processors*,
//! Figures 2a and 2b (lines 1-28), and with delta Figure 3 (FF-THE, lines 56-69). There `push`,
//! `pop`, `head`, `tail` are `put`, `take`, `H`, `T`.
//!
//! # How it works
//!
//! Tasks have indices; those from `head` up to `tail` are in the queue. The owner lowers `tail` to
//! the task that it wants, then reads `head`; a thief, holding the lock, raises `head` above the
//! task that it wants, then reads `tail`. The thread that finds that the two have crossed
//! withdraws: the thief puts `head` back, the owner waits for the lock and looks again. The owner
//! wins a conflict over one task.
//!
//! # Why it is correct
//!
//! Both take the task at `i` only if the thief's load missed the owner's store `tail = i` and the
//! owner's load missed the thief's `head = i + 1`. The policy forbids that ([`StoreLoad`]), or says
//! that a thief's load misses at most `delta` stores. Then a thief takes a task only if `tail` is
//! more than `head + delta`: the owner has not stored `tail = head` yet, and when it does, its load
//! sees the thief (Figure 3). A thief within delta asks the policy to resolve, and else puts `head`
//! back and aborts. So does a thief to which the system refuses the policy's fence, whatever it
//! sees; it asks the owner to fence ([`StoreLoad::ask_owner`]). Two thieves exclude each other by
//! the lock, and so do a thief and an owner that has seen `tail` below `head`.
//!
//! The thief raises `head` by a swap, a full fence on a processor with total store order, since the
//! policies with a delta have no fence of their own (the paper's `fence()` in `steal`).
//!
//! *What hands a task over.* As in [`chase_lev`](crate::chase_lev): each store of `tail` releases,
//! a thief's load acquires.
//!
//! *When a thread may say that the queue is empty.* A `head` at `tail` does not say so: the thief
//! that has raised it may yet put it back and leave its task. So a thief decides once it holds
//! `head` and the lock, or by `gone`: that index moves only when a task is certainly stolen, by the
//! holder of the lock, and never down. A thief that finds `tail` at or below it, read in this
//! order, has seen an empty queue. A thief that finds a task goes on to the lock, and answers
//! [`Steal::Retry`] if another has it.
//!
//! # The lines of the figures
//!
//! | lines | what | here |
//! |---|---|---|
//! | Figure 2a | `put` | `try_push` of `owner_line` |
//! | Figure 2a, Figure 2b 1-2 and 12 | `take` | `pop` |
//! | 3-10 | `take` that meets a thief | `pop_contended` |
//! | 15-19, Figure 3 56-60 | `steal` raises `head` | `steal`, which looks first whether there is a task |
//! | 20-25, Figure 3 61-66 | `steal` decides | `steal`; in doubt it asks the policy, and looks again: `certain` |
//! | 21, Figure 3 62 | `steal` takes the task | `Shared::take` |
//! | 23-24, Figure 3 64-65 | `steal` withdraws | the end of `steal` |
//!
//! *Departure.* The paper's thief waits for the lock; this one answers [`Steal::Retry`], so that
//! thieves do not queue up behind a thief that has lost its processor.

use poach_memory::{Machine, Memory, Ordering, StoreLoad, Word};

use crate::lock::Lock;
use crate::owner_line::{Shared, Thieves, fenced};
use crate::ring::{Buffer, CapacityError, Rings};
use crate::traits::Steal;

struct Words<M: Memory> {
    /// Only written by the holder of the lock.
    head: M::Word,
    /// All tasks below this index are gone: `head` without what a thief may still put back. Never
    /// comes down. Only written by the holder of the lock.
    gone: M::Word,
    lock: Lock<M>,
}

impl<M: Memory> Thieves for Words<M> {
    fn new(index: u64) -> Self {
        let (head, gone) = (M::Word::new(index), M::Word::new(index));
        Words { head, gone, lock: Lock::new() }
    }

    #[inline(always)]
    fn gone(&self) -> u64 {
        // Acquire: what the thief that moved `gone` here had seen of `tail`, the load of `tail`
        // that follows must not miss.
        self.gone.load(Ordering::Acquire)
    }

    #[inline]
    fn release_left<T, N: Memory>(&self, buffer: &Buffer<T, N>, rings: &Rings<T, N>) {
        let Words { head, lock, .. } = self;
        // Thieves take under the lock: there is none at a ring, and the next has acquired the lock.
        if let Some(_held) = lock.try_lock() {
            // Relaxed: `head` is written under the lock only.
            buffer.release_left(rings, || head.load(Ordering::Relaxed) as u32);
        }
    }
}

fenced! {
    /// The owner of a THE queue with fence policy `P`.
    ///
    /// | operation | progress | cost |
    /// |---|---|---|
    /// | [`push`](crate::Owner::push) | lock-free, amortised constant | no fence |
    /// | [`pop`](crate::Owner::pop) | blocking where it meets a thief at one task, else wait-free | the policy's |
    /// | [`steal`](Thief::steal) | `Retry` while another thief steals, else wait-free | a lock, a swap, and the policy's |
    ///
    /// ```
    /// use poach_deque::{Bounded, Delta, FfThe, Steal};
    ///
    /// // A processor with 56 store buffer entries, and no promise about stores between pops.
    /// // SAFETY: owner and thief are one thread here, whose loads see its own stores.
    /// let delta = unsafe { Delta::new(56, 0) }?;
    /// let Ok(policy) = Bounded::new(delta) else { return Ok(()) };
    /// let owner: FfThe<u32> = FfThe::with_policy(policy);
    /// let thief = owner.thief();
    /// owner.push(0);
    /// // Within delta of the owner the thief cannot know that the owner has not taken the task.
    /// assert_eq!(thief.steal(), Steal::Abort);
    /// (1..100).for_each(|task| owner.push(task));
    /// assert_eq!(thief.steal(), Steal::Success(0));
    /// # Ok::<(), poach_memory::delta::DeltaError>(())
    /// ```
    The
}

impl<T: Send, P: StoreLoad<M>, M: Memory> The<T, P, M> {
    /// Takes the youngest task (`take`).
    #[inline(always)]
    pub fn pop(&self) -> Option<T> {
        let shared = &*self.shared;
        // Relaxed: only the owner stores it.
        let index = shared.owner.tail.load(Ordering::Relaxed).wrapping_sub(1);
        // Release: see "What hands a task over".
        shared.owner.tail.store(index, Ordering::Release);
        shared.owner.policy.owner();
        // Relaxed: the policy orders it after the store, and nothing is read on the strength of it
        // but what the owner wrote itself.
        let head = shared.thieves.head.load(Ordering::Relaxed);
        if (index.wrapping_sub(head) as i64) < 0 && !shared.pop_contended(index) {
            return None;
        }
        // SAFETY: no thief takes `index` now (module comment), so it is the owner's.
        Some(unsafe { self.buffer().read(index) })
    }
}

impl<T, P, M: Memory> Shared<T, P, M, Words<M>> {
    /// The owner has seen `head` above the task that it wants (lines 3-10). Whether the
    /// task is its own after all.
    #[cold]
    #[inline(never)]
    fn pop_contended(&self, index: u64) -> bool {
        let held = self.thieves.lock.lock();
        let next = index.wrapping_add(1);
        // Relaxed: `head` is written under the lock only.
        let head = self.thieves.head.load(Ordering::Relaxed);
        let gone = head.wrapping_sub(next) as i64 >= 0;
        if gone {
            // Release: see "What hands a task over".
            self.owner.tail.store(next, Ordering::Release);
        }
        drop(held);
        !gone
    }

    /// A thief takes the task at `head`, above which it has raised `head`.
    ///
    /// # Safety
    ///
    /// The caller has the lock and is certain of the task, having acquired a tail above it.
    #[inline(always)]
    unsafe fn take(&self, head: u64) -> T {
        // Release: pairs with the acquire in `Words::gone`.
        self.thieves.gone.store(head.wrapping_add(1), Ordering::Release);
        // SAFETY: the task is the caller's alone, as it says.
        unsafe { self.thieves.rings.take(head) }
    }
}

impl<T: Send, P: StoreLoad<M>, M: Memory> Thief<T, P, M> {
    /// Takes the oldest task (`steal`).
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let shared = &*self.shared;
        if shared.len() == 0 {
            return Steal::Empty;
        }
        let Some(held) = shared.thieves.lock.try_lock() else { return Steal::Retry };
        // Relaxed: `head` is written under the lock only.
        let head = shared.thieves.head.load(Ordering::Relaxed);
        // SeqCst: a full fence where the policy relies on total store order; elsewhere the policy's
        // own fence orders it before the load of `tail`.
        shared.thieves.head.swap(head.wrapping_add(1), Ordering::SeqCst);
        let certain = shared.owner.policy.try_thief();
        let refusal = match self.length(head) {
            ..=0 => Steal::Empty,
            length if certain && length as u64 > shared.owner.policy.delta() => {
                // SAFETY: the owner has not taken `head` and will not (module comment), the lock
                // keeps thieves out, and `length` acquired a tail above it.
                return Steal::Success(unsafe { shared.take(head) });
            }
            _ if !self.certain() => Steal::Abort,
            _ if self.length(head) <= 0 => Steal::Empty,
            // SAFETY: the owner has not taken `head` and will not, and the lock keeps thieves out.
            _ => return Steal::Success(unsafe { shared.take(head) }),
        };
        // Relaxed: an owner that still sees `head` raised comes for the lock, whose release
        // follows.
        shared.thieves.head.store(head, Ordering::Relaxed);
        drop(held);
        refusal
    }

    #[inline(always)]
    fn length(&self, head: u64) -> i64 {
        // Acquire: pairs with the owner's release stores of `tail`.
        self.shared.owner.tail.load(Ordering::Acquire).wrapping_sub(head) as i64
    }

    /// Within delta, or without a fence: whether the next load of `tail` is exact.
    #[cold]
    #[inline(never)]
    fn certain(&self) -> bool {
        let owner = &self.shared.owner;
        let certain = owner.policy.resolve() || owner.is_closed();
        if !certain {
            owner.policy.ask_owner();
        }
        certain
    }
}
