//! THEP: THE whose owner echoes what it has seen of the thieves, so that a thief in doubt need not
//! refuse but can wait.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 5 and
//! Figure 5 (lines 84-130). `push`, `pop`, `head`, `tail`, `echo` are `put`, `take`, `H`, `T`, `P`
//! there.
//!
//! # How it works
//!
//! As [`the`](crate::the), but `head` is a pair of 32 bits each: the index, and a heartbeat `s`
//! that each steal steps up as it raises the index. A pop that meets no thief writes the heartbeat
//! that it read to `echo`. A thief within delta waits, holding the lock, until `echo` shows
//! its own heartbeat, or the queue is empty, or the owner has gone, or the tasks have grown past
//! delta.
//!
//! # Why it is correct
//!
//! Beyond delta it is FF-THE. Within it: a pop stores `tail`, reads `head`, and stores `echo`, with
//! release. A thief that reads its heartbeat in `echo`, with acquire, sees that pop's `tail` and
//! all before it. Each later pop reads `head` after a pop that had seen the thief's, so it sees it
//! too (loads of one word do not go back). So the `tail` that the thief reads next is as good as
//! exact: pops that it does not show will meet the thief. This needs no bound and no total store
//! order. So a thief to which the system refuses the policy's fence waits for the echo, whatever it
//! sees, and asks the owner to fence ([`StoreLoad::ask_owner`]).
//!
//! The thief cannot wait for an owner that waits for it. An owner comes for the lock only after it
//! has stored a `tail` at or below the index that the thief wants; the thief then finds the queue
//! empty and lets go (lines 115-116). It does wait for an owner that neither pops nor goes. Owners
//! of work-stealing queues pop until the queue is empty; but their task at hand may be long, so
//! `steal` *blocks*, and other thieves get [`Steal::Retry`] meanwhile.
//!
//! *A thief that is the owner's thread* would wait for itself. [`Thief::steal_half`] sees it by the
//! queue that it is to push to: that thread's loads show its own stores, so `tail` is exact as it
//! is, and there is nothing to wait for. [`Thief::steal`] cannot see it, and waits for ever.
//!
//! *Wrapping.* An index of 32 bits is enough to order `head` and `tail`, which are never 2^31
//! apart. A heartbeat comes back after 2^32 steals, and a thief must not take an echo from then for
//! its own. There are three of them:
//!
//! - An echo that a pop at work has still to store. That pop read `head` no more than 2^30
//!   heartbeats ago. A steal that steps the heartbeat takes a task or finds the queue emptied by a
//!   pop, and a queue holds at most 2^30 while its owner does not push.
//! - An echo that was stored and is not seen yet. A thread that has taken a task pushed after it
//!   has acquired a `tail` that came after it, and thieves hand on what they saw by the lock; so it
//!   is not older either.
//! - The echo that is there, of an owner that has only pushed since. A pop that met a thief clears
//!   it (line 95); any other leaves it, for as long as the owner likes. So a thief whose heartbeat
//!   begins a *lap* of 2^16 looks at it, and if it lies within that lap, goes on from the heartbeat
//!   after it (`lap.rs`). An echo that comes later is one of the other two.
//!
//! *What the policy may count on.* A pop that meets no thief stores `echo`, to a line of its own,
//! after it has stored `tail`; a pop that meets one takes the lock, which is a full fence. So
//! between the stores of `tail` of two pops there is always one store to another line. A client of
//! a bounded policy counts it: its own stores and one
//! ([`Delta::documented`](poach_memory::Delta::documented)`(1)` if it promises none). A delta for
//! no store between pops is right too, and has each pop make one more.
//!
//! *What hands a task over.* As in [`chase_lev`](crate::chase_lev).
//!
//! *When a thread may say that the queue is empty.* As in [`the`](crate::the).
//!
//! # The lines of Figure 5
//!
//! | lines | what | here |
//! |---|---|---|
//! | 85-87 | `H`, `P`, `T` | `head`, `echo`, the owner's `tail` |
//! | 89-92, 106 | `take` | `pop` |
//! | 93-102 | `take` that meets a thief | `pop_contended` |
//! | 103-104 | `take` echoes | `pop` |
//! | 108-113 | `steal` raises `head` and steps the heartbeat | `steal_as` |
//! | 114-118 | `steal` waits for the echo | `within_delta` |
//! | 119-120, 126, 128-129 | `steal` takes the task | the end of `steal_as` |
//! | 121-123 | `steal` withdraws | `steal_as` |
//!
//! # Departures
//!
//! As in [`the`](crate::the), a thief answers [`Steal::Retry`] where the paper's waits for the
//! lock.

use std::sync::Arc;

use poach_memory::{CachePadded, Machine, Memory, Ordering, StoreLoad, Word};

use crate::lap::{SILENT, beat_after};
use crate::lock::{Lock, Wait};
use crate::owner_line::{Shared, Thieves, fenced};
use crate::ring::{Buffer, CapacityError, Rings};
use crate::traits::{Here, Owner, Steal};

struct Words<M: Memory> {
    /// The heartbeat that the last pop read, or [`SILENT`]. On a line of its own: see "What the
    /// policy may count on".
    echo: CachePadded<M::Word>,
    /// Heartbeat (high half) and index. Only written by the holder of the lock.
    head: M::Word,
    /// All tasks below this index are gone: `head` without what a thief may still put back. Never
    /// comes down. Only written by the holder of the lock.
    gone: M::Word,
    lock: Lock<M>,
}

#[inline(always)]
fn pack(heartbeat: u32, index: u32) -> u64 {
    u64::from(heartbeat) << 32 | u64::from(index)
}

#[inline(always)]
fn heartbeat(head: u64) -> u32 {
    (head >> 32) as u32
}

/// How far `index` is ahead of `head`; negative if it is behind.
#[inline(always)]
fn ahead(index: u64, head: u64) -> i32 {
    (index as u32).wrapping_sub(head as u32) as i32
}

impl<M: Memory> Thieves for Words<M> {
    fn new(index: u64) -> Self {
        Words {
            echo: CachePadded::new(M::Word::new(SILENT)),
            head: M::Word::new(pack(0, index as u32)),
            gone: M::Word::new(index),
            lock: Lock::new(),
        }
    }

    #[inline(always)]
    fn gone(&self) -> u64 {
        // Acquire: as in `the`.
        self.gone.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn ahead(tail: u64, gone: u64) -> i64 {
        ahead(tail, gone).into()
    }

    /// A thief may wait with a claim: what the owner has left is freed a lap later.
    fn release_left<T, N: Memory>(&self, _: &Buffer<T, N>, _: &Rings<T, N>) {}
}

fenced! {
    /// The owner of a THEP queue with fence policy `P`.
    ///
    /// | operation | progress | cost |
    /// |---|---|---|
    /// | [`push`](Owner::push) | lock-free, amortised constant | no fence |
    /// | [`pop`](Owner::pop) | blocking where it meets a thief at one task, else wait-free | the policy's, and a store |
    /// | [`steal`](Thief::steal) | `Retry` while another thief steals; **waits for the owner's next pop** within the policy's delta of it | a lock, a swap, and the policy's |
    ///
    /// ```
    /// use poach_deque::{Steal, Thep, Unbounded};
    ///
    /// // No bound is known, so a thief always waits for the echo.
    /// let owner = Thep::<u32, Unbounded>::with_policy(Unbounded);
    /// let thief = owner.thief();
    /// (0..1000).for_each(|task| owner.push(task));
    /// std::thread::scope(|scope| {
    ///     let stolen = scope.spawn(|| thief.steal());
    ///     let popped = std::iter::from_fn(|| owner.pop()).count();
    ///     match stolen.join().unwrap() {
    ///         Steal::Success(_) => assert_eq!(popped, 999),
    ///         _ => assert_eq!(popped, 1000),
    ///     }
    /// });
    /// ```
    Thep;
    owner {
        fn here(&self) -> Here<'_> {
            // SAFETY: this is the owner's handle.
            unsafe { Here::owner(self, Arc::as_ptr(&self.shared).cast()) }
        }

        fn is_awaited(&self) -> bool {
            self.awaits()
        }
    }
    thief {
        fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
            self.half(into)
        }
    }
}

impl<T: Send, P: StoreLoad<M>, M: Memory> Thep<T, P, M> {
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
        if ahead(index, head) >= 0 {
            // Release: pairs with the acquire in `Thief::within_delta`; the echo comes after this
            // pop's `tail`.
            shared.thieves.echo.store(u64::from(heartbeat(head)), Ordering::Release);
        } else if !self.pop_contended(index) {
            return None;
        }
        // SAFETY: no thief takes `index` now (module comment), so it is the owner's.
        Some(unsafe { self.buffer().read(index) })
    }

    /// The owner has seen `head` above the task that it wants (lines 93-102). Whether the task is
    /// its own after all.
    #[cold]
    #[inline(never)]
    fn pop_contended(&self, index: u64) -> bool {
        let shared = &*self.shared;
        let held = shared.thieves.lock.lock();
        // Relaxed: no thief waits for an echo while the owner holds the lock.
        shared.thieves.echo.store(SILENT, Ordering::Relaxed);
        // Relaxed: `head` is written under the lock only.
        let head = shared.thieves.head.load(Ordering::Relaxed);
        let next = index.wrapping_add(1);
        let gone = ahead(next, head) <= 0;
        if gone {
            // Release: see "What hands a task over".
            shared.owner.tail.store(next, Ordering::Release);
        }
        drop(held);
        !gone
    }

    /// [`Owner::is_awaited`].
    fn awaits(&self) -> bool {
        // Relaxed, both: a hint. A head above `gone` is raised by a thief that has not yet taken
        // its task.
        let gone = self.shared.thieves.gone.load(Ordering::Relaxed);
        let head = self.shared.thieves.head.load(Ordering::Relaxed);
        ahead(gone, head) < 0
    }
}

impl<T: Send, P: StoreLoad<M>, M: Memory> Thief<T, P, M> {
    /// Takes the oldest task (`steal`).
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        self.steal_as::<false>()
    }

    fn half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        let own = into.here().owns(Arc::as_ptr(&self.shared).cast());
        let steal = || if own { self.steal_as::<true>() } else { self.steal() };
        let half = self.len().div_ceil(2);
        let first = steal();
        if first.is_success() {
            for _ in 1..half {
                let Steal::Success(task) = steal() else { break };
                into.push(task);
            }
        }
        first
    }

    /// A steal, by the owner's own thread (`OWN`) or by any other.
    #[inline(always)]
    fn steal_as<const OWN: bool>(&self) -> Steal<T> {
        let shared = &*self.shared;
        if shared.len() == 0 {
            return Steal::Empty;
        }
        let Some(held) = shared.thieves.lock.try_lock() else { return Steal::Retry };
        // Relaxed: `head` is written under the lock only.
        let head = shared.thieves.head.load(Ordering::Relaxed);
        // Relaxed: an echo that is not seen here is too young to be met.
        let beat = beat_after(heartbeat(head), || shared.thieves.echo.load(Ordering::Relaxed));
        let index = head as u32;
        // SeqCst: a full fence where the policy relies on total store order; elsewhere the policy's
        // own fence, or the echo, orders it before the load of `tail`.
        shared.thieves.head.swap(pack(beat, index.wrapping_add(1)), Ordering::SeqCst);
        // Without its fence the thief knows as much as if delta were endless.
        let certain = shared.owner.policy.try_thief();
        let delta = if certain { shared.owner.policy.delta() } else { u64::MAX };
        let (mut tail, mut length) = self.tail(head);
        if !OWN && length > 0 && u64::from(length as u32) <= delta {
            (tail, length) = self.within_delta(head, beat, delta);
        }
        if length <= 0 {
            // Relaxed: an owner that still sees `head` raised comes for the lock, whose release
            // follows.
            shared.thieves.head.store(pack(beat, index), Ordering::Relaxed);
            drop(held);
            return Steal::Empty;
        }
        let index = tail.wrapping_sub(length as u64);
        // Release: pairs with the acquire in `Words::gone`.
        shared.thieves.gone.store(index.wrapping_add(1), Ordering::Release);
        // SAFETY: the owner has not taken `index` and will not (module comment), the lock keeps
        // thieves out until this returns, and a tail above it was acquired.
        Steal::Success(unsafe { shared.thieves.rings.take(index) })
    }

    /// `tail`, and how far it is ahead of `head`.
    #[inline(always)]
    fn tail(&self, head: u64) -> (u64, i32) {
        // Acquire: pairs with the owner's release stores of `tail`.
        let tail = self.shared.owner.tail.load(Ordering::Acquire);
        (tail, ahead(tail, head))
    }

    /// Waits for certainty (lines 114-118), and returns what [`tail`](Thief::tail) does.
    #[cold]
    #[inline(never)]
    fn within_delta(&self, head: u64, beat: u32, delta: u64) -> (u64, i32) {
        let owner = &*self.shared.owner;
        if owner.policy.resolve() {
            return self.tail(head);
        }
        owner.policy.ask_owner();
        let mut wait = Wait::<M>::new();
        loop {
            // Acquire: pairs with the release of the echo in `pop`.
            if self.shared.thieves.echo.load(Ordering::Acquire) == u64::from(beat)
                || owner.is_closed()
            {
                return self.tail(head);
            }
            let (tail, length) = self.tail(head);
            if length <= 0 || u64::from(length as u32) > delta {
                return (tail, length);
            }
            wait.pause();
        }
    }
}
