//! The chain of blocks that an injector's tasks stand in.
//!
//! Block `n` holds the indices from `n * SLOTS` on. A block is named by a *place*, one word of the
//! number `n` (40 bits) and of the *id* of the memory that serves as block `n` now (24 bits). Each
//! block's `next` holds the place of the block after it.
//!
//! # Memory
//!
//! Memory of blocks comes in segments, each twice as long as the one before, and stays until the
//! chain is dropped. So a thread that has slept may look at any block that it knows of; what it
//! finds there carries an index or a number, and a stale one matches nothing. Blocks whose tasks
//! are all gone are used again: their ids wait on a stack.
//!
//! # Which block is block `n`
//!
//! All threads must find the same block. Block `n + 1` is the one whose place a compare-and-swap
//! has put into the `next` of block `n`, in exchange for a place of a lower number. A word that has
//! had number `n + 1` never has a lower one again, so this succeeds once for each `n`; a thread
//! that fails finds the place that won. A thread may still take an id for block `m` when its memory
//! has become block `n`. It finds in `next` either the link of `m`, which leads on to where block
//! `m + 1` was, or a number above `m + 1`. From the first its exchange fails; at the second it
//! starts again.
//!
//! *Wrapping.* Numbers have 40 bits, tags of the stack of free ids too. An exchange could take an
//! old place for a new one only if its thread slept while exactly 2^40 blocks (2^46 tasks) went
//! through the chain, or the stack.

use core::ptr;

use poach_memory::{CachePadded, Cell, Memory, Ordering, Pointer, Word};

use crate::ring::NoMemory;

use core::mem::MaybeUninit;

const ID_BITS: u32 = 24;
/// Ids are below this; so the last segment has half of them.
const IDS: u64 = 1 << ID_BITS;
const SEGMENTS: usize = ID_BITS as usize;

/// A block's number and the id of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

impl Place {
    #[inline(always)]
    pub(super) fn new(number: u64, id: u64) -> Self {
        Place(number << ID_BITS | id)
    }

    #[inline(always)]
    fn id(self) -> u64 {
        self.0 & (IDS - 1)
    }

    /// How many blocks `number` is ahead of this one's.
    #[inline(always)]
    pub(super) fn distance_to(self, number: u64) -> i64 {
        ((number << ID_BITS).wrapping_sub(self.0 & !(IDS - 1)) as i64) >> ID_BITS
    }

    #[inline(always)]
    pub(super) fn number(self) -> u64 {
        self.0 >> ID_BITS
    }

    /// As a word.
    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        self.0
    }
}

impl From<u64> for Place {
    #[inline(always)]
    fn from(word: u64) -> Self {
        Place(word)
    }
}

pub(super) struct Slot<T, M: Memory> {
    /// See the table in the injector's module comment.
    pub(super) state: M::Word,
    pub(super) task: M::Cell<MaybeUninit<T>>,
}

/// The memory of a block.
pub(super) struct Block<T, M: Memory, const SLOTS: usize> {
    slots: [Slot<T, M>; SLOTS],
    header: CachePadded<Header<M>>,
}

struct Header<M: Memory> {
    next: M::Word,
    /// The id below on the stack of free ids, and 1 more; 0 for none.
    below: M::Word,
    /// Its indices that are or were *contested*: a bit for each slot, and above the bits the number
    /// of the block.
    contested: [M::Word; CONTESTED],
}

/// The bits of a word of `contested`, and how many words there are.
const BITS: usize = 16;
const CONTESTED: usize = 4;

impl<T, M: Memory, const SLOTS: usize> Block<T, M, SLOTS> {
    /// The slot in which `index` stands if this is its block.
    #[inline(always)]
    pub(super) fn slot(&self, index: u64) -> &Slot<T, M> {
        // In bounds: `SLOTS` is a power of two.
        &self.slots[index as usize & (SLOTS - 1)]
    }

    /// The word that says whether `index` is contested, and its bit.
    #[inline(always)]
    fn contest_of(&self, index: u64) -> (&M::Word, u64) {
        let slot = index as usize & (SLOTS - 1);
        (&self.header.contested[slot / BITS % CONTESTED], 1 << (slot % BITS))
    }

    /// Whether `index`, which stood in this memory as block `number`, is contested.
    #[inline(always)]
    pub(super) fn is_contested(&self, number: u64, index: u64) -> bool {
        let (word, bit) = self.contest_of(index);
        // Relaxed: the policy orders it after the store of the state.
        let seen = word.load(Ordering::Relaxed);
        seen & bit != 0 && seen >> BITS == number
    }

    /// Says that `index` of block `number` is contested: `false` if this memory is another block by
    /// now.
    pub(super) fn contest(&self, number: u64, index: u64) -> bool {
        let (word, bit) = self.contest_of(index);
        // Relaxed, all: the policy orders what follows.
        let mut seen = word.load(Ordering::Relaxed);
        while seen >> BITS == number {
            // An exchange even if another thread has set the bit: the policy asks for one.
            match word.compare_exchange(seen, seen | bit, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Moves the task of `index` out.
    ///
    /// # Safety
    ///
    /// The slot was *written* for `index`, which the caller has acquired; and it has claimed
    /// `index` for itself alone.
    #[inline(always)]
    pub(super) unsafe fn take(&self, index: u64) -> T {
        self.slot(index).task.with(|task| {
            // SAFETY: a task was written there, and nobody writes the slot before the index is
            // finished.
            let task = unsafe { &*task };
            // SAFETY: a task was written there, and by this function's contract the bits are used
            // once.
            unsafe { task.assume_init_read() }
        })
    }
}

/// Room for a segment's blocks. Block `id` is made when its id is given out, in memory that is hot
/// then.
type Uninit<T, M, const SLOTS: usize> = MaybeUninit<Block<T, M, SLOTS>>;

/// The blocks. `SLOTS` is a power of two.
pub(super) struct Chain<T, M: Memory, const SLOTS: usize> {
    segments: [M::Pointer<Uninit<T, M, SLOTS>>; SEGMENTS],
    /// Ids given out.
    made: M::Word,
    /// The stack of free ids: a tag of 40 bits, and the topmost id plus 1.
    free: M::Word,
}

/// Segment `k` has the ids from `2^k - 1` on, `2^k` of them.
#[inline(always)]
fn segment(id: u64) -> (usize, usize) {
    let segment = (id + 1).ilog2();
    (segment as usize, (id + 1 - (1 << segment)) as usize)
}

impl<T, M: Memory, const SLOTS: usize> Chain<T, M, SLOTS> {
    const SHIFT: u32 = {
        assert!(SLOTS.is_power_of_two(), "a block has a power of two of slots");
        assert!(SLOTS <= BITS * CONTESTED, "a block's header has a bit for each slot");
        SLOTS.trailing_zeros()
    };

    /// The number of the block in which `index` stands.
    #[inline(always)]
    pub(super) fn number(index: u64) -> u64 {
        index >> Self::SHIFT
    }

    /// A chain of one block, number 0, with memory for `blocks` of them; and its place.
    pub(super) fn new(blocks: usize) -> Result<(Self, Place), NoMemory> {
        let chain = Chain {
            segments: core::array::from_fn(|_| M::Pointer::new(ptr::null_mut())),
            made: M::Word::new(0),
            free: M::Word::new(0),
        };
        for id in 0..(blocks as u64).clamp(1, IDS - 1) {
            chain.allocate(segment(id).0)?;
        }
        let first = chain.obtain(0)?;
        Ok((chain, Place::new(0, first)))
    }

    /// The memory of block `id`, once its segment is there.
    #[inline(always)]
    fn memory(&self, id: u64) -> *mut Uninit<T, M, SLOTS> {
        let (segment, offset) = segment(id);
        // Acquire: pairs with the release in `allocate`.
        let first = self.segments[segment].load(Ordering::Acquire);
        // SAFETY: nobody names an id before its segment was made, which has room for each of its
        // ids.
        unsafe { first.add(offset) }
    }

    fn header(&self, id: u64) -> &Header<M> {
        &self.block(Place::new(0, id)).header
    }

    /// The memory that `place` names. It stays as long as the chain.
    #[inline(always)]
    pub(super) fn block_at(&self, place: Place) -> *mut Block<T, M, SLOTS> {
        self.memory(place.id()).cast()
    }

    /// The memory that `place` names.
    #[inline(always)]
    pub(super) fn block(&self, place: Place) -> &Block<T, M, SLOTS> {
        // SAFETY: segments live as long as the chain; `obtain` has made the block before any place
        // named it; blocks are shared.
        unsafe { &*self.block_at(place) }
    }

    /// The place after `place`: `None` if there is none yet (`link` says whether to make one) or if
    /// `place` is stale, so that the caller must start from a newer one. Lock-free.
    pub(super) fn next(&self, place: Place, link: bool) -> Result<Option<Place>, NoMemory> {
        let next = &self.header(place.id()).next;
        let number = place.number().wrapping_add(1);
        // Acquire, here and below: pairs with the release of the link; what was done to that block
        // before is seen.
        let seen = next.load(Ordering::Acquire);
        match Place(seen).distance_to(number) {
            0 => return Ok(Some(Place(seen))),
            ahead if ahead < 0 || !link => return Ok(None),
            _ => {}
        }
        // As a place has it: numbers of more bits wrap around.
        let number = Place::new(number, 0).number();
        let id = self.obtain(number)?;
        let new = Place::new(number, id);
        // Release: pairs with the acquire above.
        match next.compare_exchange(seen, new.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(Some(new)),
            Err(now) => {
                self.put_back(new);
                Ok((Place(now).distance_to(number) == 0).then_some(Place(now)))
            }
        }
    }

    /// Memory for block `number`, for the caller alone.
    fn obtain(&self, number: u64) -> Result<u64, NoMemory> {
        // Acquire, here and below: pairs with the release in `put_back`; the last user of the block
        // is done.
        let mut top = self.free.load(Ordering::Acquire);
        while top & (IDS - 1) != 0 {
            let id = (top & (IDS - 1)) - 1;
            // Relaxed: validated by the exchange, which fails if `id` has left the stack since.
            let below = self.header(id).below.load(Ordering::Relaxed);
            let new = ((top >> ID_BITS).wrapping_add(1) << ID_BITS) | below;
            match self.free.compare_exchange(top, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    for word in &self.header(id).contested {
                        // Relaxed: the link releases it. A thief that still takes the memory for
                        // another block finds the number.
                        word.store(number << BITS, Ordering::Relaxed);
                    }
                    return Ok(id);
                }
                Err(now) => top = now,
            }
        }
        // Relaxed: the exchange validates it.
        let mut id = self.made.load(Ordering::Relaxed);
        loop {
            if id >= IDS - 1 {
                return Err(NoMemory);
            }
            self.allocate(segment(id).0)?;
            // Relaxed, both: a count; a thread learns of the id by a link.
            match self.made.compare_exchange(id, id + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => id = now,
            }
        }
        // Its own number in place of the next one's means that there is no link.
        let (next, below) = (M::Word::new(Place::new(number, 0).0), M::Word::new(0));
        let contested = core::array::from_fn(|_| M::Word::new(number << BITS));
        let header = CachePadded::new(Header { next, below, contested });
        // Where it is to be, slot by slot: a block of large tasks is larger than a stack.
        let block = self.memory(id).cast::<Block<T, M, SLOTS>>();
        // SAFETY: there is memory for a block.
        let slots = unsafe { &raw mut (*block).slots }.cast::<Slot<T, M>>();
        for place in 0..SLOTS {
            // SAFETY: `place` is below the number of a block's slots.
            let slot = unsafe { slots.add(place) };
            let (state, task) = (M::Word::new(0), M::Cell::new(MaybeUninit::uninit()));
            // SAFETY: the id, and so its memory, is this thread's alone until the caller names it,
            // by a release.
            unsafe { slot.write(Slot { state, task }) };
        }
        // SAFETY: there is memory for a block.
        let to = unsafe { &raw mut (*block).header };
        // SAFETY: the memory is this thread's alone until the caller names it, by a release.
        unsafe { to.write(header) };
        Ok(id)
    }

    /// Gives memory back that nobody uses as a block any more and no hint names. Lock-free.
    pub(super) fn put_back(&self, place: Place) {
        let id = place.id();
        // Relaxed: the exchange validates it.
        let mut top = self.free.load(Ordering::Relaxed);
        loop {
            // Relaxed: the exchange releases it.
            self.header(id).below.store(top & (IDS - 1), Ordering::Relaxed);
            let new = ((top >> ID_BITS).wrapping_add(1) << ID_BITS) | (id + 1);
            // Release: pairs with the acquire in `obtain`.
            match self.free.compare_exchange(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Makes a segment, if it has not been made.
    fn allocate(&self, segment: usize) -> Result<(), NoMemory> {
        // Acquire: pairs with the release of the exchange.
        if self.segments[segment].load(Ordering::Acquire).is_null() {
            let mut new: Vec<Uninit<T, M, SLOTS>> = Vec::new();
            new.try_reserve_exact(1 << segment).map_err(|_| NoMemory)?;
            // SAFETY: reserved, and to be uninitialised is all right with a `MaybeUninit`.
            unsafe { new.set_len(1 << segment) };
            publish::<_, M>(&self.segments[segment], new.into_boxed_slice());
        }
        Ok(())
    }
}

/// Puts an array to where there is none, or frees it if another thread has been faster.
fn publish<A, M: Memory>(to: &M::Pointer<A>, new: Box<[A]>) {
    let length = new.len();
    let new: *mut A = Box::into_raw(new).cast();
    // Release: pairs with the acquires of lookups in the array.
    if to.compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Relaxed).is_err() {
        // SAFETY: made above of a box of this length, and nobody else knows it.
        unsafe { free(new, length) };
    }
}

/// # Safety
///
/// `first` was made of a box of `length`, is not freed yet, and nobody uses it.
unsafe fn free<A>(first: *mut A, length: usize) {
    // SAFETY: by this function's contract.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(first, length)) });
}

impl<T, M: Memory, const SLOTS: usize> Drop for Chain<T, M, SLOTS> {
    fn drop(&mut self) {
        // Relaxed, here and below: the dropping thread has synchronised with all users.
        for id in 0..self.made.load(Ordering::Relaxed) {
            // SAFETY: `obtain` made the block when it gave the id out, and nobody uses it any more.
            unsafe { ptr::drop_in_place(self.block_at(Place::new(0, id))) };
        }
        for (segment, first) in self.segments.iter().enumerate() {
            let first = first.load(Ordering::Relaxed);
            if !first.is_null() {
                // SAFETY: `allocate` made it, of this length; with the chain gone nobody uses it.
                unsafe { free(first, 1 << segment) };
            }
        }
    }
}

// Its coroutines do not know that processor, and Miri does not know them.
#[cfg(all(test, not(target_arch = "s390x"), not(miri)))]
mod model;

#[cfg(test)]
mod tests {
    use super::*;
    use poach_memory::Machine;

    #[test]
    fn ids_fill_segments_without_a_gap() {
        let mut next = (0, 0);
        for id in 0..100 {
            assert_eq!(segment(id), next);
            next = if next.1 + 1 == 1 << next.0 { (next.0 + 1, 0) } else { (next.0, next.1 + 1) };
        }
    }

    #[test]
    fn distances_know_ahead_from_behind_where_numbers_wrap() {
        let last = Place::new((1 << 40) - 1, 7);
        assert_eq!(last.distance_to(1 << 40), 1);
        assert_eq!(Place::new(1 << 40, 7).distance_to((1 << 40) - 1), -1);
        assert_eq!(last.distance_to((1 << 40) - 1), 0);
    }

    #[test]
    fn the_block_after_the_last_number_can_be_contested() {
        for last in [0, 7, (1 << 40) - 1] {
            let (chain, _) = Chain::<u64, Machine, 2>::new(1).unwrap();
            let place = Place::new(last, chain.obtain(last).unwrap());
            let next = chain.next(place, true).unwrap().unwrap();
            let block = chain.block(next);
            assert!(
                block.contest(next.number(), 1) && block.is_contested(next.number(), 1),
                "after {last}"
            );
        }
    }

    #[test]
    fn a_retired_block_is_used_again_and_a_stale_place_leads_nowhere() {
        let (chain, first) = Chain::<u64, Machine, 2>::new(1).unwrap();
        assert_eq!(chain.next(first, false), Ok(None));
        let second = chain.next(first, true).unwrap().unwrap();
        assert_eq!(chain.next(first, true), Ok(Some(second)));
        chain.put_back(first);
        let third = chain.next(second, true).unwrap().unwrap();
        assert_eq!((third.id(), third.number()), (first.id(), 2));
        assert!(chain.block(third).contest(2, 1) && !chain.block(third).contest(0, 1));
        // As long as it has no successor as block 2, its old link stands, and leads to the same
        // place as ever.
        assert_eq!(chain.next(first, true), Ok(Some(second)));
        chain.next(third, true).unwrap().unwrap();
        assert_eq!(chain.next(first, true), Ok(None));
    }

    #[test]
    fn there_are_no_more_blocks_than_ids() {
        let (chain, _) = Chain::<(), Machine, 1>::new(1).unwrap();
        chain.made.store(IDS - 1, Ordering::Relaxed);
        assert_eq!(chain.obtain(7), Err(NoMemory));
        chain.made.store(1, Ordering::Relaxed);
    }

    /// Address space for them alone: where a system refuses it, there is nothing to see.
    #[cfg(not(miri))] // Its memory is real.
    #[test]
    fn no_more_memory_is_reserved_than_for_all_ids() {
        assert!(Chain::<(), Machine, 1>::new(1 << 30).is_ok_and(|(_, first)| first.id() == 0));
    }

    // Miri cannot use loom's stacks.
    #[cfg(not(miri))]
    mod models {
        use super::super::super::explore;
        use super::*;
        use poach_memory::Loom;
        use std::collections::BTreeSet;
        use std::sync::Arc;

        type Modelled = Chain<u64, Loom, 1>;

        /// Its memory is the next block's.
        #[test]
        fn who_links_second_finds_the_first() {
            explore(|| {
                let (chain, first) = Modelled::new(1).unwrap();
                let chain = Arc::new(chain);
                let other = Arc::clone(&chain);
                let linked = loom::thread::spawn(move || other.next(first, true));
                let second = chain.next(first, true).unwrap().unwrap();
                assert!(chain.block(second).contest(1, 0));
                assert_eq!(linked.join().unwrap(), Ok(Some(second)));
                chain.next(second, true).unwrap().unwrap();
                assert_eq!(chain.made.load(Ordering::Relaxed), 3);
            });
        }

        #[test]
        fn no_id_is_lost_or_had_twice() {
            explore(|| {
                let chain = Arc::new(Modelled::new(1).unwrap().0);
                let given = [1, 2].map(|number| Place::new(number, chain.obtain(number).unwrap()));
                let other = Arc::clone(&chain);
                let giver = loom::thread::spawn(move || given.map(|place| other.put_back(place)));
                let mut held = BTreeSet::from([0, chain.obtain(3).unwrap()]);
                giver.join().unwrap();
                let made = chain.made.load(Ordering::Relaxed);
                held.extend((2..made).map(|number| chain.obtain(number).unwrap()));
                assert_eq!((held.len() as u64, chain.made.load(Ordering::Relaxed)), (made, made));
            });
        }
    }
}
