//! The owner's side of a task stack: a head as a value, push and pop. The argument is the parent's.

use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::{self, NonNull};
use std::fmt;

use poach_memory::{Cell as _, Memory, Ordering, Pointer, Word};

use super::slot::{PRESENT, Slot, make_ready};
use super::{ALIGN, BATCH, Context, Header, Limit, SPARE, SplitRequest, bump};

/// Why a task could not be pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError {
    /// As many tasks are pending as the stack has slots.
    Full {
        /// The capacity.
        slots: usize,
    },
    /// The slot at this head is occupied: there is a higher head.
    Occupied,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PushError::Full { slots } => write!(
                f,
                "the task stack is full: {slots} forks are pending on one worker; \
                 recurse less deeply, or make the pool with a larger task stack"
            ),
            PushError::Occupied => f.write_str(
                "a fork below the top of the task stack: \
                 fork with the worker token of the innermost join",
            ),
        }
    }
}

impl std::error::Error for PushError {}

/// What became of a push, so far.
pub enum Pushed<M: Memory, C = ()> {
    /// All is done. This is the head above the task.
    Above(Head<M, C>),
    /// The task stands in its slot, and [`Head::push_at_limit`] has to follow.
    AtLimit,
    /// The slot at this head is occupied, and nothing was done.
    Occupied,
}

/// What became of a pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popped {
    /// The task is the owner's again and its slot is free.
    Own,
    /// A thief has it: its slot stays occupied until [`Head::retire`].
    Stolen,
}

/// Where a stack ends, as a value: the first free slot. One machine word, to be kept in a register.
///
/// Only a stack's owner, one thread at a time, may use its heads; every method says so by being
/// unsafe.
#[repr(transparent)]
pub struct Head<M: Memory, C = ()> {
    slot: NonNull<Slot<M>>,
    stack: PhantomData<NonNull<Header<M, C>>>,
}

impl<M: Memory, C> Clone for Head<M, C> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory, C> Copy for Head<M, C> {}

impl<M: Memory, C: Context> Head<M, C> {
    /// Pushes a task: `descriptor` says what it is, `value` is its payload. Returns the head above
    /// it.
    ///
    /// Wait-free, constant time; no fence and no locked instruction unless a thief asks for work.
    ///
    /// # Errors
    ///
    /// [`PushError`], if the stack is full, or if the slot at this head is occupied (this is not
    /// the topmost head). The stack is then as it was.
    ///
    /// # Safety
    ///
    /// The calling thread owns the stack, which outlives the call; `descriptor` is not null and its
    /// lowest bit is clear; `T` [fits a slot](Slot::fits). Every push is followed by a
    /// [`pop`](Head::pop) of the same head, in the reverse order of the pushes, and `value` is not
    /// dropped or used by the caller unless that pop returns [`Popped::Own`]. Thieves of this
    /// stack know what to do with the descriptor.
    #[inline(always)]
    pub unsafe fn push<T>(
        self,
        descriptor: *mut (),
        value: *const T,
    ) -> Result<Head<M, C>, PushError> {
        // SAFETY: by this function's contract.
        match unsafe { self.push_below_limit(descriptor, value) } {
            Pushed::Above(above) => Ok(above),
            // SAFETY: by this function's contract; it was pushed so far.
            Pushed::AtLimit => unsafe { self.push_at_limit() },
            Pushed::Occupied => Err(PushError::Occupied),
        }
    }

    /// [`push`](Head::push), where it is no more than two loads, two comparisons and the stores.
    /// Where it is more, [`push_at_limit`](Head::push_at_limit) has to follow, before anything
    /// else is pushed.
    ///
    /// # Safety
    ///
    /// That of [`push`](Head::push).
    #[inline(always)]
    pub unsafe fn push_below_limit<T>(self, descriptor: *mut (), value: *const T) -> Pushed<M, C> {
        if self.is_occupied() {
            return Pushed::Occupied;
        }
        // SAFETY: the slot is free; the rest is this function's contract. U1.
        unsafe { self.put(descriptor, value) };
        // U2: pairs with the heavy fence of a thief.
        M::light();
        // SAFETY: the caller owns the stack.
        let header = unsafe { self.header() };
        // U3. Relaxed: the owner's own value, or a request.
        if self.address() >= header.hot.limit.load(Ordering::Relaxed).addr() {
            return Pushed::AtLimit;
        }
        // SAFETY: the caller owns the stack, and has pushed to this head.
        Pushed::Above(unsafe { self.above() })
    }

    /// What a push has to do for want of ready slots, or because a thief asks. Returns the head
    /// above.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`]. The task is the caller's again, and still stands in the slot, which is
    /// free.
    ///
    /// # Safety
    ///
    /// That of [`push`](Head::push), and [`push_below_limit`](Head::push_below_limit) said
    /// [`AtLimit`](Pushed::AtLimit) just now.
    #[cold]
    pub unsafe fn push_at_limit(self) -> Result<Head<M, C>, PushError> {
        self.after_push()?;
        // SAFETY: the caller owns the stack, and has pushed to this head.
        Ok(unsafe { self.above() })
    }

    /// Fills the slot at this head.
    ///
    /// # Safety
    ///
    /// That of [`push`](Head::push), and the slot is free.
    #[inline(always)]
    unsafe fn put<T>(self, descriptor: *mut (), value: *const T) {
        // SAFETY: the caller owns the stack.
        let slot = unsafe { self.slot() };
        slot.payload.with_mut(|payload| {
            // SAFETY: `value` is valid for reads; the payload is large and aligned enough for a T
            // by the caller's contract; the slot is free, so the owner alone accesses
            // it.
            unsafe { payload.cast::<T>().copy_from_nonoverlapping(value, 1) }
        });
        // Release: pairs with the acquire of an exposing thief, which hands the payload on. (Other
        // thieves read it after a claim that acquires from `Bounds::share`, which comes later.)
        slot.task.store(descriptor.map_addr(|address| address | PRESENT), Ordering::Release);
    }

    /// Pops the task that was pushed at this head.
    ///
    /// Constant time. No fence and no locked instruction while the task is private; a lock-free
    /// loop over one compare-and-swap when it is shared.
    ///
    /// # Safety
    ///
    /// The calling thread owns the stack; the topmost task is the one pushed at this head.
    #[inline(always)]
    pub unsafe fn pop(self) -> Popped {
        // SAFETY: by this function's contract.
        if unsafe { self.pop_above_floor() } {
            return Popped::Own;
        }
        // SAFETY: by this function's contract; it was not popped.
        unsafe { self.pop_at_floor() }
    }

    /// [`pop`](Head::pop), where it is no more than a store, a load and a comparison. False where
    /// it is more: [`pop_at_floor`](Head::pop_at_floor) has to follow.
    ///
    /// # Safety
    ///
    /// That of [`pop`](Head::pop).
    #[inline(always)]
    #[must_use]
    pub unsafe fn pop_above_floor(self) -> bool {
        // SAFETY: the caller owns the stack.
        let slot = unsafe { self.slot() };
        // Relaxed, both: the word is the owner's, and there is nothing to hand over. What a thief
        // that has claimed the task reads there is its descriptor, whether this store has
        // come or not.
        let task = slot.task.load(Ordering::Relaxed);
        slot.task.store(task.map_addr(|address| address & !PRESENT), Ordering::Relaxed);
        // O2: pairs with the heavy fence of a thief that exposes. (Where there is none, nobody
        // does.)
        M::light();
        // SAFETY: the caller owns the stack.
        let header = unsafe { self.header_from_within() };
        // O3. Relaxed: at least `split`; see "Why a task is run once".
        self.address() >= header.hot.floor.load(Ordering::Relaxed).addr()
    }

    /// What a pop has to do if the task is shared, or a thief asks.
    ///
    /// # Safety
    ///
    /// That of [`pop`](Head::pop), and [`pop_above_floor`](Head::pop_above_floor) said false.
    #[cold]
    pub unsafe fn pop_at_floor(self) -> Popped {
        // SAFETY: the caller owns the stack.
        let header = unsafe { self.header() };
        let fences = header.sharing.owner_fences();
        if fences {
            // O2, where no thief's fence is process-wide.
            M::full();
        }
        // SAFETY: the task at this head stands in its slot still, but for its mark.
        if !fences && header.hot.comes_down(unsafe { self.above() }.limit()) {
            // Last: the context may use this stack.
            header.context.reached_split();
            return Popped::Own;
        }
        let answers = !fences || header.hot.is_asked();
        if self.index() < header.sharing.bounds.settle() {
            let Some(split) = header.sharing.bounds.take_back() else {
                // SAFETY: the caller owns the stack.
                let slot = unsafe { self.slot() };
                // Relaxed, both: as in `pop_above_floor`.
                let task = slot.task.load(Ordering::Relaxed);
                slot.task.store(task.map_addr(|address| address | PRESENT), Ordering::Relaxed);
                return Popped::Stolen;
            };
            bump(&header.counts.shrinks);
            if answers && (fences || !header.hot.follow(self.place(split))) {
                self.attend(header);
            }
            // Last: the context may use this stack.
            header.context.took_back();
        } else if answers {
            self.attend(header);
        }
        Popped::Own
    }

    /// Shares all private tasks: thieves can take them from now on. For an owner that will not come
    /// to its stack for a while. Returns whether there were any.
    ///
    /// Lock-free, as [`Split::share`](crate::Split::share), whose cost it has. Calls the context if
    /// there were any.
    ///
    /// # Safety
    ///
    /// The calling thread owns the stack, whose topmost head this is.
    #[cold]
    pub unsafe fn share(self) -> bool {
        // SAFETY: the caller owns the stack.
        let header = unsafe { self.header() };
        let any = header.sharing.share(self.index(), &*header.hot, |split| self.place(split));
        if any {
            bump(&header.counts.grows);
            // Last: the context may use this stack.
            header.context.shared();
        }
        any
    }

    /// The slot at this head.
    ///
    /// # Safety
    ///
    /// The calling thread owns the stack, and the head was returned by a push, or is one below it.
    #[inline(always)]
    pub unsafe fn slot<'a>(self) -> &'a Slot<M> {
        // SAFETY: slots are initialised up to the one at `own_limit`, and no head is above that:
        // the push that would return a higher one makes more slots ready first, or fails.
        unsafe { self.slot.as_ref() }
    }

    /// The head above this one.
    ///
    /// # Safety
    ///
    /// The calling thread owns the stack, and a task stands in this head's slot.
    #[inline(always)]
    #[must_use]
    pub unsafe fn above(self) -> Head<M, C> {
        // SAFETY: a push that would fill the last slot fails, so an occupied one has another above
        // it in the same allocation.
        Self::at(unsafe { self.slot.add(1) })
    }

    /// What the stack was made with.
    ///
    /// # Safety
    ///
    /// The stack outlives `'a`.
    #[inline(always)]
    pub unsafe fn context<'a>(self) -> &'a C
    where
        M: 'a,
    {
        // SAFETY: the caller keeps the stack alive.
        unsafe { &self.header().context }
    }

    /// Frees the slot of a stolen task whose result has been taken out.
    ///
    /// # Safety
    ///
    /// The calling thread owns the stack; [`pop`](Head::pop) of this head returned
    /// [`Popped::Stolen`]; the thief has set [`DONE`](super::Status::DONE), the caller has acquired
    /// it and will not touch the slot again; everything pushed above it has been popped.
    #[cold]
    pub unsafe fn retire(self) {
        // SAFETY: the caller owns the stack.
        let slot = unsafe { self.slot() };
        // Relaxed, both: the slot is the owner's, and the next thief of it comes by a later share.
        slot.status.store(0, Ordering::Relaxed);
        slot.task.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the caller owns the stack.
        let header = unsafe { self.header() };
        header.sharing.bounds.reset(self.index());
        self.attend(header);
    }

    /// The topmost head, found from this one by galloping over the slots' PRESENT bits: the slots
    /// below the topmost head are all occupied, and none above is.
    ///
    /// Logarithmic in the distance.
    ///
    /// # Safety
    ///
    /// The calling thread owns the stack.
    #[must_use]
    #[inline(always)]
    pub unsafe fn locate(self) -> Head<M, C> {
        // (Below the first slot stands the sentinel.)
        if !self.is_occupied() && self.below(1).is_occupied() {
            return self;
        }
        self.search()
    }

    /// The head at the topmost task, found as [`locate`](Head::locate) finds the one above it.
    ///
    /// # Safety
    ///
    /// The calling thread owns the stack, and there is a task on it.
    #[must_use]
    pub unsafe fn locate_task(self) -> Head<M, C> {
        // SAFETY: the caller owns the stack.
        unsafe { self.locate() }.below(1)
    }

    /// Whether a task stands in this head's slot. Called by the owner, for slots that are ready.
    #[inline(always)]
    fn is_occupied(self) -> bool {
        // SAFETY: the callers are the owner, and look at ready slots only.
        let slot = unsafe { self.slot() };
        // Relaxed: PRESENT is the owner's alone.
        slot.task.load(Ordering::Relaxed).addr() & PRESENT != 0
    }

    #[cold]
    fn search(self) -> Head<M, C> {
        // SAFETY: the caller owns the stack.
        let header = unsafe { self.header() };
        let here = self.index();
        let occupied = |index: u32| self.below(here.wrapping_sub(index)).is_occupied();
        // Relaxed: the owner's alone.
        let last_ready = Self::at_limit(header.hot.own_limit.load(Ordering::Relaxed));
        // All below `low` is occupied; nothing at or above `high` is.
        let (mut low, mut high) = (0, last_ready.index() + 1);
        let mut step = 1;
        if here < high && occupied(here) {
            low = here + 1;
            while low + step < high && occupied(low + step - 1) {
                low += step;
                step *= 2;
            }
            high = high.min(low + step);
        } else {
            high = here;
            while high > low + step && !occupied(high - step) {
                high -= step;
                step *= 2;
            }
            low = low.max(high.saturating_sub(step));
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if occupied(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.below(here.wrapping_sub(low))
    }

    /// The head at a slot, for an owner that has kept its address.
    ///
    /// # Safety
    ///
    /// The slot is of a stack with this context that the calling thread owns, and ready:
    /// [`as_ptr`](Head::as_ptr) of some head of the stack gave its address, or the slot below
    /// it has a task.
    #[inline(always)]
    pub unsafe fn from_ptr(slot: NonNull<Slot<M>>) -> Head<M, C> {
        Self::at(slot)
    }

    /// The address of this head's slot.
    #[inline(always)]
    pub fn as_ptr(self) -> NonNull<Slot<M>> {
        self.slot
    }

    /// How many tasks stand below this head.
    pub fn depth(self) -> usize {
        self.index() as usize
    }

    /// The head at a slot of a stack.
    #[inline(always)]
    pub(super) fn at(slot: NonNull<Slot<M>>) -> Head<M, C> {
        Head { slot, stack: PhantomData }
    }

    /// The head at the last ready slot, which is what `own_limit` holds.
    fn at_limit(limit: *mut Limit) -> Head<M, C> {
        Self::at(NonNull::new(limit.cast()).expect("a stack has ready slots"))
    }

    /// The head `slots` slots lower; modulo 2^32, so that it may be higher. It stands at a slot of
    /// the stack, or just above the last one.
    fn below(self, slots: u32) -> Head<M, C> {
        let slots = slots as i32 as isize;
        // SAFETY: the callers name places within the one allocation.
        Self::at(unsafe { self.slot.offset(-slots) })
    }

    #[inline(always)]
    fn address(self) -> usize {
        self.slot.addr().get()
    }

    /// What `limit` and `floor` hold for this head.
    pub(super) fn limit(self) -> *mut Limit {
        self.slot.as_ptr().cast()
    }

    /// What `floor` holds for a split at this index, at most this head's.
    fn place(self, split: u32) -> *mut Limit {
        self.below(self.index().wrapping_sub(split)).limit()
    }

    fn index(self) -> u32 {
        let offset = self.address() % ALIGN - Header::<M, C>::SLOTS_START;
        (offset / size_of::<Slot<M>>()) as u32
    }

    #[inline(always)]
    unsafe fn header<'a>(self) -> &'a Header<M, C> {
        let header = self.slot.as_ptr().map_addr(|address| address & !(ALIGN - 1));
        // SAFETY: a stack's one allocation begins at a multiple of ALIGN and is no longer than
        // that, so this is its beginning. The caller keeps the stack alive; the header is
        // initialised when the stack is made and never borrowed mutably before it is
        // dropped.
        unsafe { &*header.cast::<Header<M, C>>() }
    }

    /// [`header`](Head::header), worked out in another way. A compiler that sees that both are one
    /// keeps it, from the push to the pop, in a register that every call in between must save: that
    /// costs more than to mask an address again.
    #[inline(always)]
    unsafe fn header_from_within<'a>(self) -> &'a Header<M, C> {
        let within = self.slot.as_ptr().wrapping_byte_add(size_of::<Slot<M>>() / 2);
        let header = within.map_addr(|address| address & !(ALIGN - 1));
        // SAFETY: as in `header`; no slot crosses a multiple of ALIGN.
        unsafe { &*header.cast::<Header<M, C>>() }
    }

    /// A push at this head that came to `limit`: for want of ready slots, by a request, or both.
    #[cold]
    fn after_push(self) -> Result<(), PushError> {
        // SAFETY: only called by the owner, from `push_at_limit`.
        let header = unsafe { self.header() };
        // Relaxed: the owner's alone.
        let last_ready = header.hot.own_limit.load(Ordering::Relaxed);
        if self.address() >= last_ready.addr() {
            let ready = self.depth() + 1;
            let all = header.slots + SPARE;
            if ready == all {
                // SAFETY: the slot that was just pushed to. Relaxed: no thief looks at the spare
                // one.
                unsafe { self.slot() }.task.store(ptr::null_mut(), Ordering::Relaxed);
                return Err(PushError::Full { slots: header.slots });
            }
            let more = BATCH.min(all - ready);
            // SAFETY: the last ready slot has another after it, since `more` is not zero.
            let next = unsafe { self.slot.add(1) };
            // SAFETY: the owner calls, and `ready + more` is at most `all`.
            unsafe { make_ready(next, more) };
            // SAFETY: within the allocation, as before.
            let last_ready = Self::at(unsafe { self.slot.add(more) });
            // Release: pairs with the acquire in `expose`, which looks at ready slots only.
            header.hot.own_limit.store(last_ready.limit(), Ordering::Release);
        }
        // SAFETY: a task stands in this head's slot.
        let above = unsafe { self.above() };
        let should_share = |private| header.context.should_share(private);
        let attends = self.address() >= last_ready.addr() || M::owners_fence();
        if attends || !header.hot.puts_off_again(above.limit(), should_share) {
            above.attend(header);
        }
        Ok(())
    }

    /// Puts `limit` and `floor` in place, and answers a thief that asks; `self` is the topmost
    /// head.
    ///
    /// May call the context, which may use the stack: so the caller does nothing more with the
    /// words of the header.
    fn attend(self, header: &Header<M, C>) {
        let place = |split| self.place(split);
        let should_share = |private| header.context.should_share(private);
        let known = Cell::new(header.sharing.bounds.settle());
        if header.sharing.attend(self.index(), &known, &*header.hot, place, should_share) {
            bump(&header.counts.grows);
            header.context.shared();
        }
    }
}
