//! The owner's end of a ring.

use core::cell::Cell as StdCell;
use core::ptr::{self, NonNull};
use core::slice;

use poach_memory::{Cell, Freed, Memory, Ordering, Pointer, Word};

use super::capacity::doubled;
use super::{Claim, NoMemory, Ring, Rings, Slot, Storage, Whole};

/// The owner's view of the ring: which slots are free.
pub(crate) struct Buffer<T, M: Memory, S: Storage<T> = Whole> {
    ring: StdCell<*mut Ring<T, M, S>>,
    // The slots and the mask of `ring`, at hand.
    heads: StdCell<*const Slot<S::Head, M>>,
    rests: StdCell<NonNull<Slot<S::Rest, M>>>,
    mask: StdCell<u64>,
    reclaimed: StdCell<u64>,
    limit: StdCell<u64>,
}

// SAFETY: it points into a `Rings` that may itself be sent when `T: Send`, and only one thread at a
// time has it.
unsafe impl<T: Send, M: Memory, S: Storage<T>> Send for Buffer<T, M, S> {}

impl<T, M: Memory, S: Storage<T>> Buffer<T, M, S> {
    /// The owner's view of its first ring, whose first task will have index `start`.
    ///
    /// # Safety
    ///
    /// `ring` lives as long as this has not retired it, and this is its only owner.
    pub(super) unsafe fn new(ring: *mut Ring<T, M, S>, start: u64) -> Self {
        let buffer = Buffer {
            ring: StdCell::new(ring),
            heads: StdCell::new(ptr::null()),
            rests: StdCell::new(NonNull::dangling()),
            mask: StdCell::new(0),
            reclaimed: StdCell::new(start),
            limit: StdCell::new(start),
        };
        buffer.enter(ring);
        buffer.raise_limit(start);
        buffer
    }

    /// Whether `tail` is known to be free to write. Otherwise ask [`reserve`](Buffer::reserve).
    #[inline(always)]
    pub(crate) fn has(&self, tail: u64) -> bool {
        tail != self.limit.get()
    }

    /// Whether `count` indices from `tail` on are known to be free to write.
    #[inline(always)]
    pub(crate) fn has_several(&self, tail: u64, count: u64) -> bool {
        self.limit.get().wrapping_sub(tail) >= count
    }

    #[inline(always)]
    fn head(&self, index: u64) -> &Slot<S::Head, M> {
        // SAFETY: the mask keeps the offset inside the ring that `heads` is the start of.
        let head = unsafe { self.heads.get().add((index & self.mask.get()) as usize) };
        // SAFETY: the current ring lives as long as its `Rings`, and its cells are shared.
        unsafe { &*head }
    }

    /// There is none if it has no bytes.
    #[inline(always)]
    fn rest(&self, index: u64) -> Option<&Slot<S::Rest, M>> {
        (size_of::<S::Rest>() != 0).then(|| {
            // SAFETY: as for the head: if they have bytes, there are as many.
            let rest = unsafe { self.rests.get().add((index & self.mask.get()) as usize) };
            // SAFETY: within the array of rests, which live as long as the ring.
            unsafe { rest.as_ref() }
        })
    }

    /// Writes the task of index `tail`.
    ///
    /// # Safety
    ///
    /// [`has`](Buffer::has) or [`reserve`](Buffer::reserve) has answered for `tail`, `tail` is the
    /// owner's tail, and the `Rings` that this came from lives.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, tail: u64, task: T) {
        // SAFETY: `tail` is below `limit`: nobody reads the slot any more ("Slot reuse"), and
        // nobody can claim `tail` before the owner stores a tail above it.
        let write = |head, rest| unsafe { S::write(task, head, rest) };
        // SAFETY: by this function's contract; a whole task is written.
        unsafe { self.write_with(tail, write) };
    }

    /// As [`write`](Buffer::write), but `write` puts the task there itself. If it unwinds, nothing
    /// is there.
    ///
    /// # Safety
    ///
    /// As [`write`](Buffer::write), and what `write` leaves in its places when it returns is a task
    /// as the storage would have written it.
    #[inline(always)]
    pub(crate) unsafe fn write_with(
        &self,
        tail: u64,
        write: impl FnOnce(*mut S::Head, *mut S::Rest),
    ) {
        self.head(tail).with_mut(|head| match self.rest(tail) {
            Some(rest) => rest.with_mut(|rest| write(head.cast(), rest.cast())),
            None => write(head.cast(), NonNull::dangling().as_ptr()),
        });
    }

    /// Moves the task of `index` out.
    ///
    /// # Safety
    ///
    /// The owner has won `index` for itself alone, and the `Rings` that this came from lives.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, index: u64) -> T {
        // SAFETY: the owner wrote the task and, says the caller, is the one that takes it; the
        // bits are used once.
        let read = |head, rest| unsafe { S::read(head, rest) };
        self.head(index).with(|head| match self.rest(index) {
            Some(rest) => rest.with(|rest| read(head.cast(), rest.cast())),
            None => read(head.cast(), NonNull::dangling().as_ptr()),
        })
    }

    /// As [`read`](Buffer::read), but `take` moves the task out itself.
    ///
    /// # Safety
    ///
    /// As [`read`](Buffer::read), and `take` moves the task out before the slot is written again.
    #[inline(always)]
    pub(crate) unsafe fn read_with<R>(
        &self,
        index: u64,
        take: impl FnOnce(*mut S::Head, *mut S::Rest) -> R,
    ) -> R {
        // Only the pointers are had from the cells: what `take` does after it has moved the task
        // out may push.
        let head = self.head(index).with_mut(<*mut _>::cast);
        let rest = match self.rest(index) {
            Some(rest) => rest.with_mut(<*mut _>::cast),
            None => NonNull::dangling().as_ptr(),
        };
        take(head, rest)
    }

    /// The owner itself has taken `count` indices from `first` on at the thieves' end: they will
    /// not be pushed again.
    ///
    /// # Safety
    ///
    /// As [`read`](Buffer::read), which has been called for each, and `rings` is what this came
    /// from.
    #[inline(always)]
    pub(crate) unsafe fn finish(&self, rings: &Rings<T, M, S>, first: u64, count: u32) {
        // SAFETY: the caller's promise; the current ring lives as long as the queue.
        unsafe { rings.finish(self.ring.get(), first, count) };
    }

    /// As [`finish`](Buffer::finish) of one index, in the owner's own record: thieves do not wait
    /// for it.
    ///
    /// # Safety
    ///
    /// The index is the owner's, its task has been taken out, and the `Rings` that this came from
    /// lives.
    #[inline(always)]
    pub(crate) unsafe fn finish_privately(&self, index: u64) {
        // SAFETY: the current ring lives as long as its `Rings`.
        let (word, bit) = unsafe { &*self.ring.get() }.mine(index);
        word.set(word.get() | bit);
    }

    /// Finds or makes a free slot for `tail`, which is the owner's tail and known to be at the
    /// limit. `waiting` says how many tasks of the queue nobody has claimed. Amortised
    /// constant; allocates if the ring is full, or larger than is needed any more.
    #[cold]
    #[inline(never)]
    pub(crate) fn reserve(
        &self,
        rings: &Rings<T, M, S>,
        tail: u64,
        waiting: impl FnOnce() -> usize,
    ) -> Result<(), NoMemory> {
        debug_assert!(!self.has(tail), "a ring is left only at the limit");
        if !self.find(rings, tail) {
            return self.grow(rings, tail, waiting());
        }
        let needed = self.needed();
        let unfinished = tail.wrapping_sub(self.reclaimed.get()) as usize;
        if self.capacity() > needed && unfinished <= needed - needed.div_ceil(4) {
            // Without memory for a smaller ring the larger one does.
            let _ = self.move_to(rings, tail, tail, needed, needed);
        }
        Ok(())
    }

    /// The capacity that tasks have needed: see "Shrinking".
    fn needed(&self) -> usize {
        // SAFETY: the current ring lives as long as its `Rings`.
        unsafe { &*self.ring.get() }.needed
    }

    /// Learns how far thieves have come, and says whether there is a free slot for `tail` in the
    /// ring as it is.
    #[cold]
    #[inline(never)]
    pub(crate) fn find(&self, rings: &Rings<T, M, S>, tail: u64) -> bool {
        // Acquire: pairs with the release in `Rings::finish`.
        let finished = rings.finished.load(Ordering::Acquire);
        let mut reclaimed = finished;
        // SAFETY: the current ring lives as long as its `Rings`.
        let ring = unsafe { &*self.ring.get() };
        while reclaimed != tail {
            let (word, bit) = ring.mine(reclaimed);
            // The bits that are set from this one on, without a gap: the carry of the addition
            // clears these. None is of an index at `tail` or above, and those of the
            // lap before have been cleared.
            let run = word.get() & !word.get().wrapping_add(bit);
            let count = if run != 0 {
                word.set(word.get() & !run);
                u64::from(run.count_ones())
            } else {
                self.marked(reclaimed)
            };
            if count == 0 {
                break;
            }
            reclaimed = reclaimed.wrapping_add(count);
        }
        if reclaimed != finished {
            // Relaxed: a thread that goes on from here does not hand on what earlier thieves did.
            // The owner knows that already. No thief stores now: the index at `finished` was
            // marked, or the owner's.
            rings.finished.store(reclaimed, Ordering::Relaxed);
        }
        self.reclaimed.set(reclaimed);
        self.release_retired(reclaimed);
        self.raise_limit(tail);
        self.has(tail)
    }

    /// To where the ring is free, but of a ring that is larger than needed no further than to where
    /// the owner is to look again.
    fn raise_limit(&self, tail: u64) {
        let soon = self.limit.get().wrapping_sub(tail).max(self.needed() as u64);
        self.limit.set(tail.wrapping_add(soon.min(self.free_from(tail))));
    }

    /// How many slots from `tail` on are free in the ring as it is, all indices below `reclaimed`
    /// being finished.
    fn free_from(&self, tail: u64) -> u64 {
        self.reclaimed.get().wrapping_add(self.mask.get() + 1).wrapping_sub(tail)
    }

    /// How many slots from `tail` on are free in the ring as it is.
    pub(crate) fn free(&self, rings: &Rings<T, M, S>, tail: u64) -> usize {
        self.find(rings, tail);
        self.free_from(tail) as usize
    }

    /// How many indices have been finished by one mark, if `index` was the first of them; else 0.
    fn marked(&self, index: u64) -> u64 {
        let mut ring = self.ring.get();
        while !ring.is_null() {
            // SAFETY: the current ring lives, and so do those that it still keeps.
            let this = unsafe { &*ring };
            // Acquire: pairs with the release in `Rings::finish`.
            let (mark, one) = this.mark(index);
            let past = mark.load(Ordering::Acquire).wrapping_sub(one);
            if past < this.marks.len() as u64 {
                return past + 1;
            }
            // Relaxed: only the owner, this thread, writes it.
            ring = this.older.load(Ordering::Relaxed);
        }
        0
    }

    /// Frees the rings that no thief can hold, all indices below `reclaimed` being finished.
    fn release_retired(&self, reclaimed: u64) {
        let mut keeper = self.ring.get();
        loop {
            // SAFETY: the current ring lives, and so do those that it still keeps.
            let this = unsafe { &*keeper };
            // Relaxed, here and below: only the owner, this thread, writes these words.
            let retired = this.older.load(Ordering::Relaxed);
            if retired.is_null() {
                return;
            }
            // SAFETY: the ring still keeps it, so it lives.
            let end = unsafe { &*retired }.end.load(Ordering::Relaxed);
            if reclaimed.wrapping_sub(end) as i64 >= 0 {
                // The ends of those before it are no higher: they go with it.
                this.older.store(ptr::null_mut(), Ordering::Relaxed);
                Self::free_chain(retired);
                return;
            }
            keeper = retired;
        }
    }

    /// Frees the rings that were left if no thief is at one, where [`reserve`](Buffer::reserve) has
    /// just been called: see "At once". `claimed` says by a read-modify-write how many indices were
    /// claimed (their low 32 bits).
    #[inline]
    pub(crate) fn release_left(&self, rings: &Rings<T, M, S>, claimed: impl FnOnce() -> u32) {
        // SAFETY: the current ring lives as long as its `Rings`.
        let ring = unsafe { &*self.ring.get() };
        // Relaxed, here and below: only the owner, this thread, writes it.
        let left = ring.older.load(Ordering::Relaxed);
        if left.is_null() {
            return;
        }
        let claimed = claimed();
        // Acquire: pairs with the release in `Rings::finish`; what their thieves did with the rings
        // is over.
        if rings.finished.load(Ordering::Acquire) as u32 == claimed {
            ring.older.store(ptr::null_mut(), Ordering::Relaxed);
            Self::free_chain(left);
        }
    }

    fn free_chain(mut ring: *mut Ring<T, M, S>) {
        while !ring.is_null() {
            // SAFETY: the caller has cut it off, and it has not been freed.
            let older = unsafe { &*ring }.older.load(Ordering::Relaxed);
            // SAFETY: `allocate` made it of a boxed slice of one; nobody else frees it, and no
            // thief can hold it ("Reclamation", "At once").
            M::free(unsafe { Freed::new(ring) });
            ring = older;
        }
    }

    /// Leaves the ring, which is full, for one twice as large.
    fn grow(&self, rings: &Rings<T, M, S>, tail: u64, waiting: usize) -> Result<(), NoMemory> {
        let doubled = doubled(self.capacity()).ok_or(NoMemory)?;
        let needed = if 2 * waiting > self.capacity() { doubled } else { self.needed() };
        self.move_to(rings, tail, tail, doubled, needed)
    }

    /// Leaves a ring of more than `slots` slots for a ring of `slots`, if no index is unfinished.
    /// Returns whether it did. `tail` is the owner's, anywhere below the limit. For queues that
    /// fulfil the condition of "Given back".
    #[cold]
    #[inline(never)]
    pub(crate) fn shrink(&self, rings: &Rings<T, M, S>, tail: u64, slots: usize) -> bool {
        if self.capacity() <= slots {
            return false;
        }
        let limit = self.limit.get();
        self.find(rings, tail);
        self.reclaimed.get() == tail && self.move_to(rings, tail, limit, slots, slots).is_ok()
    }

    /// Leaves the ring for another, which has a slot for each index that is not finished. No tail
    /// above `stored` was stored while the owner had this ring.
    fn move_to(
        &self,
        rings: &Rings<T, M, S>,
        tail: u64,
        stored: u64,
        capacity: usize,
        needed: usize,
    ) -> Result<(), NoMemory> {
        let old_ring = self.ring.get();
        // SAFETY: the current ring lives as long as the queue.
        let old = unsafe { &*old_ring };
        let first = self.reclaimed.get();
        let new_ring = Ring::<T, M, S>::allocate(capacity, first, needed)?;
        // SAFETY: just allocated, and not yet known to anyone.
        let new = unsafe { &*new_ring };
        for step in 0..tail.wrapping_sub(first) {
            let index = first.wrapping_add(step);
            // SAFETY: a task was written for each index between `reclaimed` and the tail, and
            // thieves at most read it.
            unsafe { new.copy(index, old) };
            let (word, bit) = old.mine(index);
            if word.get() & bit != 0 {
                let (word, bit) = new.mine(index);
                word.set(word.get() | bit);
            }
        }
        // Relaxed, all: only the owner, this thread, uses them.
        let before = old.end.load(Ordering::Relaxed);
        let end = if before.wrapping_sub(stored) as i64 > 0 { before } else { stored };
        old.end.store(end, Ordering::Relaxed);
        new.end.store(end, Ordering::Relaxed);
        new.older.store(old_ring, Ordering::Relaxed);
        // Release: pairs with the acquire in `Rings::take`, which sees the copies.
        rings.current.store(new_ring, Ordering::Release);
        self.enter(new_ring);
        self.raise_limit(tail);
        Ok(())
    }

    fn enter(&self, ring: *mut Ring<T, M, S>) {
        self.ring.set(ring);
        // SAFETY: `ring` has just been allocated, and lives as long as the queue or until the owner
        // retires it.
        let ring = unsafe { &*ring };
        self.heads.set(ring.heads.as_ptr());
        self.rests.set(NonNull::from(&*ring.rests).cast());
        self.mask.set(ring.heads.len() as u64 - 1);
    }

    /// Slots in the ring now.
    pub(crate) fn capacity(&self) -> usize {
        self.mask.get() as usize + 1
    }
}

impl<T, M: Memory> Buffer<T, M> {
    /// Writes the next `count` of `tasks`, or as many as there are, from index `tail` on: the index
    /// after the last. `waiting` says how many tasks of the queue nobody has claimed.
    ///
    /// # Safety
    ///
    /// `tail` is the owner's tail, and `rings`, which lives, is what this came from.
    #[inline]
    pub(crate) unsafe fn write_all(
        &self,
        rings: &Rings<T, M>,
        mut tail: u64,
        count: usize,
        tasks: &mut impl Claim<Item = T>,
        waiting: impl Fn() -> usize,
    ) -> Result<u64, NoMemory> {
        let (start, end) = (tail, tail.wrapping_add(count as u64));
        while tail != end {
            if !self.has(tail) {
                let written = tail.wrapping_sub(start) as usize;
                self.reserve(rings, tail, || waiting() + written)?;
            }
            let free = self.limit.get().wrapping_sub(tail).min(end.wrapping_sub(tail));
            // No other code runs meanwhile: these stay as they are.
            let (heads, mask) = (self.heads.get(), self.mask.get());
            let first = tail & mask;
            let count = free.min(mask + 1 - first) as usize;
            // SAFETY: the mask keeps the offset inside the ring that `heads` is the start of.
            let slots = unsafe { heads.add(first as usize) };
            // SAFETY: there are `mask + 1` slots, so `count` from `first` on. The current ring
            // lives as long as its `Rings`, and its cells are shared.
            let slots = unsafe { slice::from_raw_parts(slots, count) };
            // SAFETY: the indices from `tail` on are below `limit`: nobody reads the slots any more
            // ("Slot reuse"), and nobody can claim them before the owner stores a tail
            // above them.
            match unsafe { tasks.move_to::<M>(slots) } {
                0 => return Ok(tail),
                moved => tail = tail.wrapping_add(moved as u64),
            }
        }
        Ok(tail)
    }
}
