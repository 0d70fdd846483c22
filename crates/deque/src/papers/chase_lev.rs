//! The Chase-Lev deque: its owner pays a compare-and-swap for the last task only, thieves pay one
//! each.
//!
//! Source: Chase and Lev, *Dynamic Circular Work-Stealing Deque* (SPAA 2005), as Morrison and Afek
//! give it in *Fence-Free Work Stealing on Bounded TSO Processors*, Figures 2a and 2c (lines
//! 29-54), and with delta Figure 4 (FF-CL, lines 70-82). The orderings follow Lê, Pop, Cohen
//! and Zappa Nardelli, *Correct and Efficient Work-Stealing for Weak Memory Models* (2013). `push`,
//! `pop`, `head`, `tail` are `put`, `take`, `H`, `T` there.
//!
//! # How it works
//!
//! Tasks have indices; those from `head` up to `tail` are in the queue. The owner pushes at `tail`.
//! To pop, it lowers `tail` to `t`, then reads `head`: above `head` the task `t` is its own at
//! once; at `head` it is the last, and the owner competes for it as a thief would. A thief reads
//! `head`, then `tail`, and takes the task at `head` by moving `head` on with a compare-and-swap.
//!
//! # Why it is correct
//!
//! A task at index `i` is taken by the owner alone (it stored `tail = i`, then read `head < i`), or
//! by the thread that moves `head` from `i` to `i + 1`, which happens once. Suppose that both
//! happened. Then a thief moved `head` to `i + 1` having seen a `tail` above `i` from before the
//! owner's store. And the owner's load of `head` missed `head = i` or more, that is missed what the
//! thief had read before. The policy stands between the two accesses on each side and forbids
//! exactly this ([`StoreLoad`]). The owner's load sees what the thief saw of `head`, or the thief's
//! load sees the owner's store, or misses no more than `delta` of its stores. Each pop lowers
//! `tail` by one, so a thief that sees a tail of more than `head + delta` knows that the owner has
//! not stored `tail = head` yet; when it does, it finds itself at the last task and competes.
//! Within delta the thief asks the policy to resolve, and else aborts (Figure 4). So does a thief
//! to which the system refuses the policy's fence, whatever it sees; it asks the owner to fence
//! ([`StoreLoad::ask_owner`]).
//!
//! *What hands a task over.* Each store of `tail` releases, pops' too, since the tail that a thief
//! reads may be a pop's; a thief acquires it. What happens to the slot is `ring`'s
//! affair.
//!
//! *The end of the owner.* An owner that is dropped closes its line after its last store of `tail`.
//! A thief that sees it (acquire) sees them all, so delta is 0.
//!
//! # The lines of the figures
//!
//! | lines | what | here |
//! |---|---|---|
//! | Figure 2a | `put` | `try_push` of `owner_line` |
//! | Figure 2a, Figure 2c 29-30 | `take` of a task above `head` | `pop` |
//! | 31-34 | `take` from an empty queue | `pop_last`, which stores what line 36 does: `head` is there |
//! | 35-40 | `take` of the last task | `pop_last`; line 36 after line 37 |
//! | 46-49, Figure 4 72-75 | `steal` looks for a task | `steal`, before the policy's fence and after it |
//! | Figure 4 76-77 | `steal` in doubt | `resolve`, which asks the policy first |
//! | 50-53, Figure 4 78-81 | `steal` takes it | `steal`: the exchange comes first, then the task is read |
//! | 45, 52, Figure 4 71, 80 | `steal` begins again | left to the caller: [`Steal::Retry`] |

use poach_memory::{Machine, Memory, Ordering, StoreLoad, Word};

use crate::owner_line::{Shared, Thieves, fenced};
use crate::ring::{Buffer, CapacityError, Rings};
use crate::traits::Steal;

struct Words<M: Memory> {
    head: M::Word,
}

impl<M: Memory> Thieves for Words<M> {
    fn new(index: u64) -> Self {
        Words { head: M::Word::new(index) }
    }

    #[inline(always)]
    fn gone(&self) -> u64 {
        // Relaxed: lengths are estimates.
        self.head.load(Ordering::Relaxed)
    }

    #[inline]
    fn release_left<T, N: Memory>(&self, buffer: &Buffer<T, N>, rings: &Rings<T, N>) {
        // Release: pairs with the claims, whose exchange acquires; see "At once" in `ring`.
        buffer.release_left(rings, || self.head.fetch_add(0, Ordering::AcqRel) as u32);
    }
}

fenced! {
    /// The owner of a Chase-Lev deque with fence policy `P`.
    ///
    /// | operation | progress | cost |
    /// |---|---|---|
    /// | [`push`](crate::Owner::push) | lock-free, amortised constant | no fence |
    /// | [`pop`](crate::Owner::pop) | wait-free | the policy's; one compare-and-swap for the last task |
    /// | [`steal`](Thief::steal) | lock-free: `Retry` means that another thread got a task | the policy's and one compare-and-swap |
    ///
    /// ```
    /// use poach_deque::{ChaseLev, Steal};
    ///
    /// let owner = ChaseLev::<String>::new();
    /// owner.push("old".into());
    /// owner.push("new".into());
    /// let thief = owner.thief();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(thief.steal(), Steal::Success("old".into())));
    /// });
    /// assert_eq!(owner.pop(), Some("new".into()));
    /// assert_eq!(owner.pop(), None);
    /// ```
    ChaseLev
}

impl<T: Send, P: StoreLoad<M>, M: Memory> ChaseLev<T, P, M> {
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
        if index.wrapping_sub(head) as i64 <= 0 {
            return self.pop_last(index, head);
        }
        // SAFETY: `head < index < tail`: no thief will take `index` (module comment), so it is the
        // owner's.
        Some(unsafe { self.buffer().read(index) })
    }

    /// The last task, for which the owner and the thieves compete (lines 31-40).
    #[inline(never)]
    fn pop_last(&self, index: u64, head: u64) -> Option<T> {
        let shared = &*self.shared;
        let next = index.wrapping_add(1);
        // SeqCst, as the thieves': it takes part in the order that the fences of `Full` make.
        let won = index == head
            && shared
                .thieves
                .head
                .compare_exchange(index, next, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok();
        // Whichever thread got the task at `index`, the queue is empty at `index + 1`. Only now,
        // not before the exchange as in Figure 2c (line 36). Otherwise a thief could find the queue
        // empty at `index`, and a later thief find a task at `index + 1`, with no push between.
        // Release: see "What hands a task over".
        shared.owner.tail.store(next, Ordering::Release);
        if !won {
            return None;
        }
        // SAFETY: the compare-and-swap gave `index` to this call alone.
        let task = unsafe { self.buffer().read(index) };
        // SAFETY: the compare-and-swap gave `index` to this call alone; its task has been read.
        unsafe { self.buffer().finish(&shared.thieves.rings, index, 1) };
        Some(task)
    }
}

impl<T: Send, P: StoreLoad<M>, M: Memory> Thief<T, P, M> {
    /// Takes the oldest task (`steal`).
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let shared = &*self.shared;
        let policy = &shared.owner.policy;
        // Acquire: what the thief that moved `head` here had seen, this one must not miss.
        let head = shared.thieves.head.load(Ordering::Acquire);
        // A queue that looks empty is worth no fence: tasks still in the owner's store buffer could
        // be missed a moment earlier just as well. Relaxed: nothing is read on the strength
        // of it.
        if (shared.owner.tail.load(Ordering::Relaxed).wrapping_sub(head) as i64) <= 0 {
            return Steal::Empty;
        }
        let certain = policy.try_thief();
        // Acquire: pairs with the owner's release stores of `tail`.
        let tail = shared.owner.tail.load(Ordering::Acquire);
        let length = tail.wrapping_sub(head) as i64;
        if length <= 0 {
            return Steal::Empty;
        }
        if !certain || length as u64 <= policy.delta() {
            if let Err(refusal) = self.resolve(head) {
                return refusal;
            }
        }
        // SeqCst: it takes part in the order that the fences of `Full` make, so that a later
        // thief's fence comes after that of an owner which missed this.
        match shared.thieves.head.compare_exchange(
            head,
            head.wrapping_add(1),
            Ordering::SeqCst,
            Ordering::Relaxed,
        ) {
            // SAFETY: the exchange claimed `head` for this call alone, and a tail above it was
            // acquired.
            Ok(_) => Steal::Success(unsafe { shared.thieves.rings.take(head) }),
            Err(_) => Steal::Retry,
        }
    }

    /// Within delta, or without a fence: finds out exactly whether there is a task at `head`,
    /// or refuses.
    #[cold]
    #[inline(never)]
    fn resolve(&self, head: u64) -> Result<(), Steal<T>> {
        let shared = &*self.shared;
        if !shared.owner.policy.resolve() && !shared.owner.is_closed() {
            shared.owner.policy.ask_owner();
            return Err(Steal::Abort);
        }
        // Acquire: as in `steal`.
        let tail = shared.owner.tail.load(Ordering::Acquire);
        if (tail.wrapping_sub(head) as i64) <= 0 { Err(Steal::Empty) } else { Ok(()) }
    }
}
