//! The growing circular buffer under every queue of this crate that hands tasks out in order of
//! index.
//!
//! Source: Chase and Lev, *Dynamic Circular Work-Stealing Deque* (SPAA 2005), for the ring that
//! grows by copying and lets slow thieves finish on the old one. The marks, and all that follows
//! from them, are ours.
//!
//! # Claim, then copy
//!
//! The papers' thief copies the task out of its slot first and claims it second, so it may copy a
//! slot that the owner is writing. That needs tasks that fit an atomic word. Here the order is
//! reversed. A thief *claims* an index by its queue's protocol, *copies* the task out of the slot,
//! which no thread may overwrite meanwhile, and says that the index is *finished*. A task can be of
//! any type and any size, lives in the ring itself, and no slot is ever read and written at the
//! same time. It costs a thief a store, and the owner nothing until it has gone once around the
//! ring.
//!
//! # How the owner knows what is free
//!
//! The owner keeps two private indices: all indices below `reclaimed` are finished, and the slots
//! up to `limit = reclaimed + capacity` are free. A push compares the tail with `limit` and loads
//! no word that thieves write. At the limit it learns how far thieves have come. If that frees
//! nothing, the ring is full (or one thief has slept through a whole lap), and it moves to a ring
//! twice as large.
//!
//! Each index is consumed once: by a thief, which says so, or, where the protocol makes the owner
//! advance the thieves' index itself, by the owner, which does the same. An index that the owner
//! pops at its own end is not consumed; it will be pushed again.
//!
//! *In order, one word.* All indices below `finished` are finished. The thief that has claimed the
//! very index at `finished` moves the word past its claim, by a plain store: no other thread has
//! that index. So thieves that finish in the order of their claims, as a single thief always does,
//! write a word of a line that they have just written, and the owner reads only that word.
//!
//! *Out of order, marks.* A thief that finds `finished` short of its first index leaves one mark
//! for all that it has claimed, at the slot of that first index. The mark is the index with the
//! bits that number the slot replaced by the number of claimed indices, less one. A claim is no
//! larger than the ring, so that fits. The other bits are the lap: no other index of this slot has
//! the same. The owner walks from `finished` upwards, from claim to claim, and moves the word to
//! where it comes to an end. It passes a claim only if that is marked, so its holder no longer
//! moves the word, and it stops before any holder that still may. All who move the word move it
//! past whole claims, so the index that the owner looks at is always the first of one.
//!
//! *By the owner, its own record.* An owner that takes one index after another from the thieves'
//! end would make them wait for the line of `finished` each time. It may instead set a bit that
//! nobody else reads. Such an index is as good as marked, when the owner walks; the word stops
//! there until then, and thieves mark what is above.
//!
//! A queue may know its indices by their low 32 bits alone: `finished` has them all, and is at most
//! a capacity, 2^30, behind what a thief has claimed, or the owner would not have pushed so far.
//!
//! *Slot reuse.* The owner writes a slot for index `i + capacity` only after it has read, with
//! acquire, that `i` is finished. The thief said so after its copy, with release, and handed on
//! what it had acquired from earlier moves of `finished`. So the copy is over.
//!
//! *Moving.* The owner copies all of the old ring, bit by bit, before it publishes the new one; an
//! index claimed but not finished is then in both. Its thief finds it in whichever ring it loads
//! and may mark it there, so the owner looks for a missing mark in all rings that it still keeps.
//! Both only read the old slot.
//!
//! *In two arrays.* A ring may keep the larger part of a task beside its slot ([`Storage`]). Both
//! parts are the index's: written before it can be claimed, read before it is finished, and copied
//! together; all that is said of a slot holds for the two.
//!
//! *Reclamation.* No thief can hold a ring that was retired at limit `end` once `reclaimed` has
//! reached `end`. A thief loads the ring after it has claimed some index `i`, having read a tail
//! above `i`. If `i < end`, the index is finished by now, and so is the thief's use of the ring. If
//! `i >= end`, the tail it read was above `end`. That tail was stored after the next ring was
//! published, because no tail above the limit had been stored before, and the ring moved at the
//! limit. It was read with acquire, so the thief sees the next ring. (Of several indices claimed at
//! once the last decides.) So a freed slot also frees rings. There is no epoch to pin and no hazard
//! pointer to publish, and a retired ring is gone after at most one lap.
//!
//! *At once.* A ring that was left need not wait for a lap where no thief is at one, since a thief
//! holds a ring only from its claim to its finish. That is seen where all claims of a queue are
//! made by read-modify-writes of one word, which then counts them:
//!
//! | | the owner has left a ring | | a thief |
//! |---|---|---|---|
//! | R1 | publishes the new ring (Release) | T1 | claims: a read-modify-write of the claims' word (Acquire) |
//! | R2 | reads the claims' word by a read-modify-write (Release) | T2 | loads the ring (Acquire) |
//! | R3 | loads `finished` (Acquire) | T3 | copies |
//! | R4 | if R2's are finished, frees all but the new ring | T4 | finishes: `finished`, or a mark (Release) |
//!
//! The word has one order of changes. *T1 after R2*: T1 acquires from R2, or from a later change
//! that goes on with what R2 releases, so T2 finds the ring of R1 or a newer one. Such a change is
//! a read-modify-write, or a store by the owner, which releases, too. *T1 before R2*: R2 has
//! counted the claim, and R3 says that it is finished. `finished` has moved past it by the store of
//! its own thief, of another, which had acquired what `finished` said before, or of the owner,
//! which had acquired the mark; so T4 comes before R4. R2 may be a load nowhere: a claim that comes
//! after a load need not see R1. `finished` is never ahead of the claims, and less than 2^32
//! behind, so that the low 32 bits say whether they are equal.
//!
//! [`The`](crate::The)'s thieves do T1 to T4 under a lock: its owner takes that between R1 and R4,
//! if it is free, and no thief is at a ring. [`Thep`](crate::Thep)'s claim by a store, and what its
//! owner left goes a lap later. If there is a claim just then, the owner asks again at the next
//! limit, if the ring did not go by itself before.
//!
//! The owner never waits for a thief that was descheduled between its claim and its end: a lap
//! later it moves to a ring twice as large.
//!
//! *Shrinking.* In a time slice of such a thief, milliseconds, the owner of a queue that never had
//! a thousand tasks at once may push half a million, and its ring has as many slots then. From then
//! on each task would be taken from memory that no cache has. So a ring records the capacity that
//! tasks have *needed*: a ring that was full, with more than half of it unclaimed tasks, needed
//! twice as much. The owner of a larger ring looks once in `needed` pushes whether a ring of that
//! capacity has slots for the unfinished indices, and a quarter of them free. If so it moves there.
//! That is the same move: while nothing is *given back*, the limit only rises, so the ring is again
//! left at a tail above which none has been stored. The indices from `reclaimed` to the tail are
//! copied. They include every index that a thief has claimed and not finished. So a claim still
//! fits in any ring that its thief may have loaded, and a mark in that ring is found as long as it
//! is looked for.
//!
//! *Given back.* The owner of a queue that needs its memory no more may leave a large ring for a
//! small one at any tail, if no index is unfinished ([`Buffer::shrink`]). Then the limit of the new
//! ring may be below tails that were stored before. So each ring has an `end` of its own: the
//! highest limit so far at which a ring was left. *Reclamation* asks for no more than that no tail
//! above `end` had been stored before the next ring was published.
//!
//! An index that was used before may be used again after the move, and its task is in the new ring
//! alone. So the queue must fulfil a condition: who claims an index acquires what the owner
//! released after its *last* push there. [`Split`](crate::Split) does. Its thieves claim by a
//! compare-and-swap of a word, after the owner's share of that very push in the order of the word's
//! changes. (`growing.rs`, "Second".) Where nothing is unfinished nothing is shared, so no claim
//! comes before the owner's next share, and the large ring goes *at once*.
//!
//! *Memory.* Each of the rings that were left for larger ones is at most half as large as the next.
//! A ring is left for a smaller one only if the number of unfinished indices is below the smaller
//! one's slots. So the larger rings are freed within the next lap, or are kept by thieves that
//! sleep at an index of that one lap. Before the owner can leave a second large ring all indices
//! below are finished, and the first is freed. After a ring was *given back*, `end` is the limit
//! that it had. Until thieves have come that far, later rings go *at once*, or with the queue.

mod buffer;
mod capacity;
mod claimed;
mod storage;

use core::cell::Cell as StdCell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use poach_memory::{Cell, Memory, Ordering, Pointer, Word};

pub(crate) use buffer::Buffer;
pub use capacity::CapacityError;
pub(crate) use capacity::{DEFAULT_CAPACITY, MAX_CAPACITY, check_capacity};
pub(crate) use claimed::{Claim, Claimed, drop_rest};
pub use storage::{Storage, Whole};

/// A ring could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

type Slot<T, M> = <M as Memory>::Cell<MaybeUninit<T>>;

struct Ring<T, M: Memory, S: Storage<T>> {
    heads: Box<[Slot<S::Head, M>]>,
    /// As many, or none if a rest has no bytes.
    rests: Box<[Slot<S::Rest, M>]>,
    /// `marks[i & mask] == (i & !mask) + n - 1 - unmarked` says that the `n` indices from `i` on
    /// are finished.
    marks: Box<[M::Word]>,
    /// What a mark of 0 stands for, a lap that no index has which is looked at. So the marks are
    /// memory of zeros, of which only the pages exist where thieves have left marks.
    unmarked: u64,
    /// A bit for each slot whose index the owner has finished without telling anyone. Only the
    /// owner looks.
    mine: Box<[StdCell<u64>]>,
    /// The ring before this one, if the owner still keeps it. Only the owner looks.
    older: M::Pointer<Ring<T, M, S>>,
    /// No tail above this was stored before the next ring was published; until this ring is
    /// retired, before this one was. Only the owner looks.
    end: M::Word,
    /// The capacity that tasks have needed: see "Shrinking".
    needed: usize,
}

/// `length` new ones, if there is memory for them.
pub(crate) fn array<A>(length: usize, new: impl Fn() -> A) -> Result<Box<[A]>, NoMemory> {
    let mut array = Vec::new();
    array.try_reserve_exact(length).map_err(|_| NoMemory)?;
    array.extend((0..length).map(|_| new()));
    Ok(array.into_boxed_slice())
}

impl<T, M: Memory, S: Storage<T>> Ring<T, M, S> {
    /// A ring in which no index from `reclaimed` on is marked.
    fn allocate(capacity: usize, reclaimed: u64, needed: usize) -> Result<*mut Self, NoMemory> {
        let rests = if size_of::<S::Rest>() == 0 { 0 } else { capacity };
        let mut ring: Vec<Self> = Vec::new();
        ring.try_reserve_exact(1).map_err(|_| NoMemory)?;
        ring.push(Ring {
            heads: M::cells(capacity).ok_or(NoMemory)?,
            rests: M::cells(rests).ok_or(NoMemory)?,
            marks: M::zeros(capacity).ok_or(NoMemory)?,
            // The marks looked at are those of indices from `reclaimed` on.
            unmarked: reclaimed.wrapping_sub(capacity as u64),
            mine: array(capacity.div_ceil(64), || StdCell::new(0))?,
            older: M::Pointer::new(ptr::null_mut()),
            end: M::Word::new(reclaimed),
            needed,
        });
        Ok(Box::into_raw(ring.into_boxed_slice()).cast())
    }

    /// # Safety
    ///
    /// `ring` came from [`allocate`](Ring::allocate), has not been freed, and nobody uses it.
    unsafe fn free(ring: *mut Self) {
        // SAFETY: `allocate` made it of a boxed slice of one; the caller says that it is still
        // whole and no longer used.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(ring, 1)) });
    }

    #[inline(always)]
    fn head(&self, index: u64) -> &Slot<S::Head, M> {
        // A mask in place of a remainder: the capacity is a power of two.
        &self.heads[index as usize & (self.heads.len() - 1)]
    }

    /// Moves the task of `index` out.
    ///
    /// # Safety
    ///
    /// A task stands there, nobody writes it meanwhile, and its bits are used once.
    #[inline(always)]
    unsafe fn read(&self, index: u64) -> T {
        self.head(index).with(|head| {
            let read = |rest: *const S::Rest| {
                // SAFETY: by this function's contract.
                unsafe { S::read(head.cast(), rest) }
            };
            match self.rest(index) {
                Some(rest) => rest.with(|rest| read(rest.cast())),
                None => read(NonNull::dangling().as_ptr()),
            }
        })
    }

    /// Copies the bits of the task of `index` from another ring.
    ///
    /// # Safety
    ///
    /// A task was written there, and others at most read it; and nobody else knows this ring.
    unsafe fn copy(&self, index: u64, from: &Self) {
        let has_rest = from.head(index).with(|old| {
            self.head(index).with_mut(|new| {
                // SAFETY: both are places of a head, in two rings, and as `MaybeUninit` its bits
                // may be copied whatever they are.
                unsafe { new.copy_from_nonoverlapping(old, 1) };
            });
            // SAFETY: a task was written there.
            unsafe { S::has_rest(old.cast()) }
        });
        if has_rest {
            if let (Some(old), Some(new)) = (from.rest(index), self.rest(index)) {
                old.with(|old| {
                    new.with_mut(|new| {
                        // SAFETY: a rest was written there.
                        unsafe { new.copy_from_nonoverlapping(old, 1) };
                    });
                });
            }
        }
    }

    /// There is none if it has no bytes.
    #[inline(always)]
    fn rest(&self, index: u64) -> Option<&Slot<S::Rest, M>> {
        if size_of::<S::Rest>() == 0 {
            return None;
        }
        self.rests.get(index as usize & (self.heads.len() - 1))
    }

    /// The mark of `index`, and what is there if one index is finished.
    #[inline(always)]
    fn mark(&self, index: u64) -> (&M::Word, u64) {
        let mask = self.marks.len() - 1;
        let lap = index & !(mask as u64);
        // In bounds: the mask of an array whose length is a power of two.
        (&self.marks[index as usize & mask], lap.wrapping_sub(self.unmarked))
    }

    /// The word of `mine` for `index`, and the bit in it. For the owner alone.
    #[inline(always)]
    fn mine(&self, index: u64) -> (&StdCell<u64>, u64) {
        let slot = index as usize & (self.heads.len() - 1);
        // In bounds: there is a bit for each slot.
        (&self.mine[slot / 64], 1 << (slot % 64))
    }
}

/// The ring as thieves find it. Owns it and its predecessors.
pub(crate) struct Rings<T, M: Memory, S: Storage<T> = Whole> {
    current: M::Pointer<Ring<T, M, S>>,
    /// All indices below are finished.
    finished: M::Word,
}

// SAFETY: a ring's slots are handed from thread to thread by the protocol that the module comment
// states, never shared; so it moves tasks, and asks no more than that tasks may be moved.
unsafe impl<T: Send, M: Memory, S: Storage<T>> Send for Rings<T, M, S> {}
// SAFETY: a ring's slots are handed from thread to thread, never shared.
unsafe impl<T: Send, M: Memory, S: Storage<T>> Sync for Rings<T, M, S> {}

impl<T, M: Memory, S: Storage<T>> Rings<T, M, S> {
    /// A first ring, with `start` the index of the first task, and the owner's view of it.
    pub(crate) fn new(
        capacity: usize,
        start: u64,
    ) -> Result<(Self, Buffer<T, M, S>), CapacityError> {
        check_capacity(capacity)?;
        let ring = Ring::<T, M, S>::allocate(capacity, start, capacity)
            .map_err(|NoMemory| CapacityError::OutOfMemory(capacity))?;
        // SAFETY: just allocated, and the caller keeps both together.
        let buffer = unsafe { Buffer::new(ring, start) };
        let rings = Rings { current: M::Pointer::new(ring), finished: M::Word::new(start) };
        Ok((rings, buffer))
    }

    /// A thief moves the task at `index` (its low 32 bits suffice) out. Wait-free.
    ///
    /// # Safety
    ///
    /// The caller has claimed `index` for itself alone, having read (with acquire) a tail above it
    /// that the owner stored (with release) after it wrote the task.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, index: u64) -> T {
        // Acquire: pairs with the release in `Buffer::grow`, whose copies the slot below may be.
        let ring_pointer = self.current.load(Ordering::Acquire);
        // SAFETY: the index is claimed and not finished, so the owner keeps every ring that a thief
        // could have loaded since ("Reclamation").
        let ring = unsafe { &*ring_pointer };
        // SAFETY: the slot holds the task of `index`. The tail that the caller acquired, or the
        // ring acquired above, makes it visible; no thread writes it before the index is finished.
        // Only the caller has the claim to it, so the bits are used once.
        let task = unsafe { ring.read(index) };
        // SAFETY: `index` is the caller's, and the copy is over.
        unsafe { self.finish(ring_pointer, index, 1) };
        task
    }

    /// Says that `count` indices from `first` on (its low 32 bits suffice) are finished.
    ///
    /// # Safety
    ///
    /// They are the caller's, it has copied their tasks out, and it has loaded `ring` since it
    /// claimed them.
    #[inline(always)]
    unsafe fn finish(&self, ring: *const Ring<T, M, S>, first: u64, count: u32) {
        // Acquire: the store below hands on what the thieves before this one had done.
        let finished = self.finished.load(Ordering::Acquire);
        let ahead = (first as u32).wrapping_sub(finished as u32);
        if ahead == 0 {
            // Release: pairs with the acquire in `Buffer::reserve`; the copies are over before it.
            self.finished.store(finished.wrapping_add(u64::from(count)), Ordering::Release);
            return;
        }
        let index = finished.wrapping_add(u64::from(ahead));
        // SAFETY: the indices are claimed and not finished: as in `take`.
        let ring = unsafe { &*ring };
        let (mark, one) = ring.mark(index);
        // Release: pairs with the acquire in `Buffer::marked`; the copies are over before the mark.
        // A ring that was loaded after the claim had all of these indices at once (see
        // "Reclamation"), so there are at most as many as slots.
        mark.store(one.wrapping_add(u64::from(count - 1)), Ordering::Release);
    }

    /// Drops the tasks of `head..tail`, where no other handle to the queue is left.
    ///
    /// A destructor that panics does not keep the others from running.
    ///
    /// # Safety
    ///
    /// These indices hold tasks, none is claimed, and nobody uses the queue any more.
    pub(crate) unsafe fn drop_tasks(&mut self, head: u64, tail: u64) {
        struct Others<'a, T, M: Memory, S: Storage<T>> {
            ring: &'a Ring<T, M, S>,
            next: u64,
            tail: u64,
        }
        impl<T, M: Memory, S: Storage<T>> Drop for Others<'_, T, M, S> {
            fn drop(&mut self) {
                while self.next != self.tail {
                    let index = self.next;
                    self.next = index.wrapping_add(1);
                    // If this destructor panics, the guard goes on with those after it.
                    let others = Others { ring: self.ring, next: self.next, tail: self.tail };
                    // SAFETY: the caller of `drop_tasks` says that the slot holds a task that
                    // nobody else can touch; `next` has passed it, so it is dropped once.
                    drop(unsafe { self.ring.read(index) });
                    core::mem::forget(others);
                }
            }
        }
        // Relaxed: all other handles are gone, and the last one's going synchronised with this.
        let ring = self.current.load(Ordering::Relaxed);
        // SAFETY: the current ring lives until `self` is dropped.
        let ring = unsafe { &*ring };
        // A queue that was used without its fence (`Unfenced`) can end with `head` above `tail`.
        if tail.wrapping_sub(head) as i64 > 0 {
            drop(Others { ring, next: head, tail });
        }
    }
}

impl<T, M: Memory, S: Storage<T>> Drop for Rings<T, M, S> {
    fn drop(&mut self) {
        // Relaxed, here and below: no other handle is left, and only owners wrote `older`.
        let mut ring = self.current.load(Ordering::Relaxed);
        while !ring.is_null() {
            // SAFETY: `ring` is the current ring or a ring that it still keeps; none has been
            // freed.
            let older = unsafe { &*ring }.older.load(Ordering::Relaxed);
            // SAFETY: it is a ring that was kept, and with all handles gone nobody uses it.
            unsafe { Ring::free(ring) };
            ring = older;
        }
    }
}

/// That a thief's `is_empty` says what its `len` says, through some laps of an owner's queue of
/// four slots.
#[cfg(test)]
pub(crate) fn sees_no_task_where_it_counts_none<Q: crate::traits::Owner<usize>>(
    owner: &Q,
    what: &str,
) {
    use crate::traits::Thief as _;
    let thief = owner.thief();
    let agrees = |tasks: usize| {
        assert_eq!((thief.len(), thief.is_empty()), (tasks, tasks == 0), "{what}");
    };
    agrees(0);
    for round in 0..6 {
        for task in 0..3 {
            owner.push(task);
            agrees(task + 1);
        }
        for left in (0..3).rev() {
            if round % 3 == 2 {
                while thief.steal().is_retry() {}
            } else {
                assert!(owner.pop().is_some());
            }
            agrees(left);
        }
        assert_eq!(owner.pop(), None);
        agrees(0);
    }
}

// Its coroutines do not know that processor, and Miri does not know them.
#[cfg(all(test, not(target_arch = "s390x"), not(miri)))]
mod model;

#[cfg(test)]
mod tests;
