//! The growing circular buffer under every queue of this crate that hands tasks out in order of index.
//!
//! Source: Chase and Lev, *Dynamic Circular Work-Stealing Deque* (SPAA 2005), for the ring that grows
//! by copying and lets slow thieves finish on the old one. The marks, and all that follows from them,
//! are ours.
//!
//! # Claim, then copy
//!
//! The papers' thief copies the task out of its slot first and claims it second, so it may copy a
//! slot that the owner is writing. That wants tasks that fit an atomic word. Here the order is the
//! other way about: a thief *claims* an index by whatever its queue's protocol is, *copies* the task
//! out of the slot, which nobody may overwrite meanwhile, and *marks* the index as finished. A task
//! can be of any type and any size, lives in the ring itself, and no slot is ever read and written at
//! the same time. The mark costs a thief one plain store, and the owner nothing until it has gone
//! once around the ring.
//!
//! # How the owner knows what is free
//!
//! The owner keeps two private indices: all indices below `low` are finished, and the slots up to
//! `limit = low + capacity` are free. A push compares the tail with `limit` and looks at nothing
//! that thieves write. At the limit it walks the marks upwards from `low`; if that frees nothing, the
//! ring is full (or one thief has slept through a whole lap), and it moves to a ring twice as large.
//!
//! Each index is consumed once: by a thief, which marks it, or, where the protocol makes the owner
//! advance the thieves' index itself, by the owner, which marks it too. An index that the owner pops
//! at its own end is not consumed; it will be pushed again.
//!
//! Marks are compared by their low 32 bits, so that a queue may know its indices by those alone: a slot's
//! last mark is one capacity, at most 2^30, below the one that the owner looks for.
//!
//! *Slot reuse.* The owner writes a slot for index `i + capacity` only after it has read the mark of
//! `i`, with acquire; the thief wrote the mark after its copy, with release. So the copy is over.
//!
//! *Moving.* The owner copies all of the old ring, bit by bit, before it publishes the new one; an
//! index claimed but not finished is then in both. Its thief finds it in whichever ring it loads and
//! marks it there, so the owner looks for a missing mark in all rings that it still keeps. Both only
//! read the old slot.
//!
//! *Reclamation.* No thief can hold a ring that was retired at tail `end` once `low` has reached
//! `end`. A thief loads the ring after it has claimed some index `i`, having read a tail above `i`.
//! If `i < end`, the index is finished by now, and so is the thief's use of the ring. If `i >= end`,
//! the tail it read was above `end`, was therefore stored after the next ring was published (no tail
//! above the limit had been stored before, and the ring moved at the limit), and was read with
//! acquire: the thief sees the next ring. So the marks that free slots also free rings. There is no
//! epoch to pin and no hazard pointer to publish, and a retired ring is gone after at most one lap.
//!
//! The owner never waits for a thief that was descheduled between its claim and its mark: a lap later
//! it moves to a ring twice as large, so all rings kept are together smaller than two of the last.

mod emplace;

use core::cell::Cell as Private;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;

use poach_memory::{Cell, Memory, Ordering, Pointer, Word};

/// The most slots that a ring can have: 2^30, so that 32-bit indices tell ahead from behind.
pub(crate) const MAX_CAPACITY: usize = 1 << 30;

/// Slots that a queue starts with where the caller does not say.
pub(crate) const DEFAULT_CAPACITY: usize = 64;

/// Why a queue cannot be made with the capacity asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapacityError {
    /// A queue needs at least one slot to start with.
    Zero,
    /// Slots are found by masking an index, which wants a power of two.
    NotPowerOfTwo(usize),
    /// More than 2^30 slots.
    TooLarge(usize),
    /// The memory for the slots cannot be had.
    OutOfMemory(usize),
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapacityError::Zero => {
                f.write_str("a queue's capacity cannot be 0: ask for at least 1")
            }
            CapacityError::NotPowerOfTwo(asked) => write!(
                f,
                "a queue's capacity must be a power of two, and {asked} is not: ask for {}",
                asked.checked_next_power_of_two().map_or(MAX_CAPACITY, |c| c.min(MAX_CAPACITY))
            ),
            CapacityError::TooLarge(asked) => write!(
                f,
                "a queue's capacity can be at most {MAX_CAPACITY} (2^30), and {asked} is more"
            ),
            CapacityError::OutOfMemory(asked) => {
                write!(
                    f,
                    "no memory for a queue of {asked} slots: ask for fewer, it grows as needed"
                )
            }
        }
    }
}

impl std::error::Error for CapacityError {}

pub(crate) fn check_capacity(capacity: usize) -> Result<(), CapacityError> {
    match capacity {
        0 => Err(CapacityError::Zero),
        _ if !capacity.is_power_of_two() => Err(CapacityError::NotPowerOfTwo(capacity)),
        _ if capacity > MAX_CAPACITY => Err(CapacityError::TooLarge(capacity)),
        _ => Ok(()),
    }
}

/// A ring could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

type Slot<T, M> = <M as Memory>::Cell<MaybeUninit<T>>;

struct Ring<T, M: Memory> {
    slots: Box<[Slot<T, M>]>,
    /// `marks[i & mask] == i` says that index `i` is finished.
    marks: Box<[M::Word]>,
    /// The ring before this one, if the owner still keeps it. Only the owner looks.
    older: M::Pointer<Ring<T, M>>,
    /// The tail at which this ring was retired. Only the owner looks.
    end: M::Word,
}

impl<T, M: Memory> Ring<T, M> {
    /// A ring in which no index from `low` on is marked.
    fn allocate(capacity: usize, low: u64) -> Result<*mut Self, NoMemory> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity).map_err(|_| NoMemory)?;
        slots.extend((0..capacity).map(|_| Slot::<T, M>::new(MaybeUninit::uninit())));
        let mut marks = Vec::new();
        marks.try_reserve_exact(capacity).map_err(|_| NoMemory)?;
        // The marks looked at are those of indices from `low` on: this is none of them.
        marks.extend((0..capacity).map(|_| M::Word::new(low.wrapping_sub(1))));
        let mut ring: Vec<Ring<T, M>> = Vec::new();
        ring.try_reserve_exact(1).map_err(|_| NoMemory)?;
        ring.push(Ring {
            slots: slots.into_boxed_slice(),
            marks: marks.into_boxed_slice(),
            older: M::Pointer::new(ptr::null_mut()),
            end: M::Word::new(0),
        });
        Ok(Box::into_raw(ring.into_boxed_slice()).cast())
    }

    /// # Safety
    ///
    /// `ring` came from [`allocate`](Ring::allocate), has not been freed, and nobody uses it.
    unsafe fn free(ring: *mut Self) {
        // SAFETY: `allocate` made it of a boxed slice of one; the caller says that it is still whole
        // and no longer used.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(ring, 1)) });
    }

    #[inline(always)]
    fn slot(&self, index: u64) -> &Slot<T, M> {
        // A mask in place of a remainder: the capacity is a power of two.
        &self.slots[index as usize & (self.slots.len() - 1)]
    }

    #[inline(always)]
    fn mark(&self, index: u64) -> &M::Word {
        &self.marks[index as usize & (self.marks.len() - 1)]
    }
}

/// The ring as thieves find it. Owns it and its predecessors.
pub(crate) struct Rings<T, M: Memory> {
    current: M::Pointer<Ring<T, M>>,
}

// SAFETY: a ring's slots are handed from thread to thread by the protocol that the module comment
// states, never shared; so it moves tasks, and asks no more than that tasks may be moved.
unsafe impl<T: Send, M: Memory> Send for Rings<T, M> {}
// SAFETY: as above.
unsafe impl<T: Send, M: Memory> Sync for Rings<T, M> {}

impl<T, M: Memory> Rings<T, M> {
    /// A first ring, with `start` the index of the first task, and the owner's view of it.
    pub(crate) fn new(capacity: usize, start: u64) -> Result<(Self, Room<T, M>), CapacityError> {
        check_capacity(capacity)?;
        let ring = Ring::<T, M>::allocate(capacity, start)
            .map_err(|NoMemory| CapacityError::OutOfMemory(capacity))?;
        let room = Room {
            ring: Private::new(ring),
            slots: Private::new(ptr::null()),
            mask: Private::new(0),
            low: Private::new(start),
            limit: Private::new(start),
        };
        room.enter(ring);
        Ok((Rings { current: M::Pointer::new(ring) }, room))
    }

    /// A thief moves the task at `index` out and marks the index as finished. Wait-free.
    ///
    /// # Safety
    ///
    /// The caller has claimed `index` for itself alone, having read (with acquire) a tail above it
    /// that the owner stored (with release) after it wrote the task.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, index: u64) -> T {
        // Acquire: pairs with the release in `Room::grow`, whose copies the slot below may be.
        let ring = self.current.load(Ordering::Acquire);
        // SAFETY: the index is claimed and not marked, so the owner keeps every ring that a thief
        // could have loaded since ("Reclamation").
        let ring = unsafe { &*ring };
        let task = ring.slot(index).with(|slot| {
            // SAFETY: the slot holds the task of `index`, which the tail that the caller acquired, or
            // the ring acquired above, makes visible; nobody writes it before the mark; and only the
            // caller has the claim to it, so the bits are used once.
            unsafe { slot.cast::<T>().read() }
        });
        // Release: pairs with the acquire in `Room::finished`; the copy is over before the mark.
        ring.mark(index).store(index, Ordering::Release);
        task
    }

    /// Drops the tasks of `head..tail`, where no other handle to the queue is left.
    ///
    /// A destructor that panics does not keep the others from running.
    ///
    /// # Safety
    ///
    /// These indices hold tasks, none is claimed, and nobody uses the queue any more.
    pub(crate) unsafe fn drop_tasks(&mut self, head: u64, tail: u64) {
        struct Rest<'a, T, M: Memory> {
            ring: &'a Ring<T, M>,
            next: u64,
            tail: u64,
        }
        impl<T, M: Memory> Drop for Rest<'_, T, M> {
            fn drop(&mut self) {
                while self.next != self.tail {
                    let index = self.next;
                    self.next = index.wrapping_add(1);
                    // If this destructor panics, the guard goes on with those after it.
                    let rest = Rest { ring: self.ring, next: self.next, tail: self.tail };
                    self.ring.slot(index).with_mut(|slot| {
                        // SAFETY: the caller of `drop_tasks` says that the slot holds a task that
                        // nobody else can touch; `next` has passed it, so it is dropped once.
                        unsafe { slot.cast::<T>().drop_in_place() }
                    });
                    core::mem::forget(rest);
                }
            }
        }
        // Relaxed: all other handles are gone, and the last one's going synchronised with this.
        let ring = self.current.load(Ordering::Relaxed);
        // SAFETY: the current ring lives until `self` is dropped.
        let ring = unsafe { &*ring };
        // A queue that was used without its fence (`Unfenced`) can end with `head` above `tail`.
        if tail.wrapping_sub(head) as i64 > 0 {
            drop(Rest { ring, next: head, tail });
        }
    }
}

impl<T, M: Memory> Drop for Rings<T, M> {
    fn drop(&mut self) {
        // Relaxed, here and below: no other handle is left, and only owners wrote `older`.
        let mut ring = self.current.load(Ordering::Relaxed);
        while !ring.is_null() {
            // SAFETY: `ring` is the current ring or one that it still keeps; none has been freed.
            let older = unsafe { &*ring }.older.load(Ordering::Relaxed);
            // SAFETY: as above, and with all handles gone nobody uses it.
            unsafe { Ring::free(ring) };
            ring = older;
        }
    }
}

/// The owner's view of the ring: which slots are free.
pub(crate) struct Room<T, M: Memory> {
    ring: Private<*mut Ring<T, M>>,
    // The slots and the mask of `ring`, at hand.
    slots: Private<*const Slot<T, M>>,
    mask: Private<u64>,
    low: Private<u64>,
    limit: Private<u64>,
}

// SAFETY: it points into a `Rings` that may itself be sent when `T: Send`, and only one thread at a
// time has it.
unsafe impl<T: Send, M: Memory> Send for Room<T, M> {}

impl<T, M: Memory> Room<T, M> {
    /// Whether `tail` is known to be free to write. Otherwise ask [`make`](Room::make).
    #[inline(always)]
    pub(crate) fn has(&self, tail: u64) -> bool {
        tail != self.limit.get()
    }

    /// Writes the task of index `tail`.
    ///
    /// # Safety
    ///
    /// [`has`](Room::has) or [`make`](Room::make) has answered for `tail`, `tail` is the owner's
    /// tail, and the `Rings` that this came from lives.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, tail: u64, task: T) {
        // SAFETY: the mask keeps the offset inside the ring that `slots` is the start of.
        let slot = unsafe { self.slots.get().add((tail & self.mask.get()) as usize) };
        // SAFETY: the current ring lives as long as its `Rings`, and its cells are shared.
        let slot = unsafe { &*slot };
        slot.with_mut(|slot| {
            // SAFETY: `tail` is below `limit`: nobody reads the slot any more ("Slot reuse"), and
            // nobody can claim `tail` before the owner stores a tail above it.
            unsafe { slot.cast::<T>().write(task) }
        });
    }

    /// Moves the task of `index` out.
    ///
    /// # Safety
    ///
    /// The owner has won `index` for itself alone, and the `Rings` that this came from lives.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, index: u64) -> T {
        // SAFETY: the mask keeps the offset inside the ring that `slots` is the start of.
        let slot = unsafe { self.slots.get().add((index & self.mask.get()) as usize) };
        // SAFETY: the current ring lives as long as its `Rings`, and its cells are shared.
        let slot = unsafe { &*slot };
        slot.with(|slot| {
            // SAFETY: the owner wrote the task and, says the caller, is the one that takes it; the
            // bits are used once.
            unsafe { slot.cast::<T>().read() }
        })
    }

    /// The owner itself has taken `index` at the thieves' end: the index will not be pushed again.
    #[inline(always)]
    pub(crate) fn finish(&self, index: u64) {
        // SAFETY: the current ring lives as long as the queue.
        let ring = unsafe { &*self.ring.get() };
        // Relaxed: the owner reads it back itself, and there is nothing to hand over.
        ring.mark(index).store(index, Ordering::Relaxed);
    }

    /// Finds or makes a free slot for `tail`. Amortised constant; allocates if the ring is full.
    #[cold]
    #[inline(never)]
    pub(crate) fn make(&self, rings: &Rings<T, M>, tail: u64) -> Result<(), NoMemory> {
        let mut low = self.low.get();
        while low != tail && self.finished(low) {
            low = low.wrapping_add(1);
        }
        self.low.set(low);
        self.release_retired(low);
        let capacity = self.mask.get() + 1;
        if low.wrapping_add(capacity) == tail {
            self.grow(rings, tail)?;
        }
        self.limit.set(low.wrapping_add(self.mask.get() + 1));
        Ok(())
    }

    fn finished(&self, index: u64) -> bool {
        let mut ring = self.ring.get();
        while !ring.is_null() {
            // SAFETY: the current ring lives, and so do those that it still keeps.
            let this = unsafe { &*ring };
            // Acquire: pairs with the release in `Rings::take`.
            if this.mark(index).load(Ordering::Acquire) as u32 == index as u32 {
                return true;
            }
            // Relaxed: only the owner, this thread, writes it.
            ring = this.older.load(Ordering::Relaxed);
        }
        false
    }

    /// Frees the rings that no thief can hold, all indices below `low` being finished.
    fn release_retired(&self, low: u64) {
        let mut keeper = self.ring.get();
        loop {
            // SAFETY: the current ring lives, and so do those that it still keeps.
            let this = unsafe { &*keeper };
            // Relaxed, here and below: only the owner, this thread, writes these words.
            let retired = this.older.load(Ordering::Relaxed);
            if retired.is_null() {
                return;
            }
            // SAFETY: as above.
            let end = unsafe { &*retired }.end.load(Ordering::Relaxed);
            if low.wrapping_sub(end) as i64 >= 0 {
                // Those before it were retired at lower tails: they go with it.
                this.older.store(ptr::null_mut(), Ordering::Relaxed);
                Self::free_chain(retired);
                return;
            }
            keeper = retired;
        }
    }

    fn free_chain(mut ring: *mut Ring<T, M>) {
        while !ring.is_null() {
            // SAFETY: `release_retired` has cut it off, and it has not been freed.
            let older = unsafe { &*ring }.older.load(Ordering::Relaxed);
            // SAFETY: as above, and no thief can hold it ("Reclamation").
            unsafe { Ring::free(ring) };
            ring = older;
        }
    }

    fn grow(&self, rings: &Rings<T, M>, tail: u64) -> Result<(), NoMemory> {
        let old_ring = self.ring.get();
        // SAFETY: the current ring lives as long as the queue.
        let old = unsafe { &*old_ring };
        let capacity = old.slots.len();
        let doubled = capacity.checked_mul(2).filter(|&c| c <= MAX_CAPACITY).ok_or(NoMemory)?;
        let new_ring = Ring::<T, M>::allocate(doubled, self.low.get())?;
        // SAFETY: just allocated, and not yet known to anyone.
        let new = unsafe { &*new_ring };
        let first = tail.wrapping_sub(capacity as u64);
        for step in 0..capacity as u64 {
            let index = first.wrapping_add(step);
            let bits = old.slot(index).with(|slot| {
                // SAFETY: the slot is aligned and allocated, thieves at most read it, and as a
                // `MaybeUninit` its bits may be copied whatever they are.
                unsafe { slot.read() }
            });
            new.slot(index).with_mut(|slot| {
                // SAFETY: the new ring is not yet known to anyone.
                unsafe { slot.write(bits) }
            });
        }
        // Relaxed, both: only the owner, this thread, reads them.
        old.end.store(tail, Ordering::Relaxed);
        new.older.store(old_ring, Ordering::Relaxed);
        // Release: pairs with the acquire in `Rings::take`, which sees the copies.
        rings.current.store(new_ring, Ordering::Release);
        self.enter(new_ring);
        Ok(())
    }

    fn enter(&self, ring: *mut Ring<T, M>) {
        // SAFETY: `ring` has just been allocated, and lives as long as the queue or until the owner
        // retires it.
        let slots = unsafe { &*ring }.slots.as_ref();
        self.ring.set(ring);
        self.slots.set(slots.as_ptr());
        self.mask.set(slots.len() as u64 - 1);
        self.limit.set(self.low.get().wrapping_add(slots.len() as u64));
    }

    /// Slots in the ring now.
    pub(crate) fn capacity(&self) -> usize {
        self.mask.get() as usize + 1
    }
}
