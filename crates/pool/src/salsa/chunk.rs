//! A chunk: the slots that one producer fills, and the words that say who may empty them.

use core::mem::MaybeUninit;
use core::ptr;

use poach_memory::{CachePadded, Cell, Memory, Ordering, Pointer, Word};

use super::found::Found;
use crate::registry::{each, try_box};

pub(crate) const MOST_CONSUMERS: usize = INLINE + MORE[0] + MORE[1];
/// Consumers whose `taken` words stand in the chunk; the others' are allocated on first use.
const INLINE: usize = 7;
const MORE: [usize; 2] = [57, 960];

/// The paper's owner word with its tag (section 5.3), and the paper's node.
///
/// | bits | what |
/// |---|---|
/// | 0..12 | the owner: a consumer's number, or [`NOBODY`] |
/// | 12..24 | the consumer whose `taken` word says how much of the chunk is taken |
/// | 24..64 | tag: grows with every change of owner, so that no value comes twice |
///
/// The tag wraps after 10^12 thefts of a chunk, and then harms only a thief that slept through
/// exactly as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term(pub(super) u64);

const NOBODY: u64 = (1 << ID_BITS) - 1;
const ID_BITS: u32 = 12;

impl Term {
    pub(super) fn owner(self) -> usize {
        (self.0 & NOBODY) as usize
    }

    pub(super) fn source(self) -> usize {
        (self.0 >> ID_BITS & NOBODY) as usize
    }

    fn of(owner: u64, source: u64, tag: u64) -> Term {
        Term(tag << (2 * ID_BITS) | source << ID_BITS | owner)
    }

    fn next_tag(self) -> u64 {
        (self.0 >> (2 * ID_BITS)).wrapping_add(1)
    }

    pub(super) fn next(self, owner: usize, source: usize) -> Term {
        Term::of(owner as u64, source as u64, self.next_tag())
    }

    /// The same term, counted by its owner's word from now on.
    pub(super) fn settled(self) -> Term {
        Term(self.0 & !(NOBODY << ID_BITS) | (self.0 & NOBODY) << ID_BITS)
    }

    pub(super) fn ended(self) -> Term {
        Term::of(NOBODY, NOBODY, self.next_tag())
    }

    pub(super) fn is_settled_on(self, consumer: usize) -> bool {
        self.owner() == consumer && self.source() == consumer
    }
}

/// One cache line: all that a thief reads before it steals, except `filled`.
struct Possession<M: Memory> {
    term: M::Word,
    taken: [M::Word; INLINE],
}

pub(super) struct Chunk<T, M: Memory> {
    /// How many slots, from the first, hold or held a task. Written by the producer alone.
    filled: CachePadded<M::Word>,
    possession: CachePadded<Possession<M>>,
    /// A bit for each slot, set by a consumer that takes it while another may be about to.
    claims: Vec<M::Word>,
    more: [M::Pointer<More<M>>; 2],
    /// The next chunk in a stack of free chunks or in a list of retired ones: its number + 1, or 0.
    pub(super) next: M::Word,
    /// The thread that began to fill it ([`here`]).
    filler: M::Word,
    pub(super) number: usize,
    slots: Box<[Slot<T, M>]>,
}

/// Made by the first user, never replaced. A cell: models check that a reader has acquired it.
type More<M> = <M as Memory>::Cell<Vec<<M as Memory>::Word>>;

/// # Safety
///
/// `more` was loaded by an Acquire. It is null, or live while the result is used, and no thread
/// writes the cell.
unsafe fn further<'a, M: Memory + 'a>(more: *const More<M>) -> Option<&'a Vec<M::Word>> {
    // SAFETY: null or live, by the caller's promise.
    let more = unsafe { more.as_ref() }?;
    // SAFETY: no thread writes the cell, by the caller's promise.
    Some(more.with(|words| unsafe { &*words }))
}

pub(super) type Slot<T, M> = <M as Memory>::Cell<MaybeUninit<T>>;

// SAFETY: a chunk hands each task from the thread that put it to the one thread that takes it; its
// words are `Sync`, and its cells are touched only as `salsa`'s module comment argues.
unsafe impl<T: Send, M: Memory> Send for Chunk<T, M> {}
// SAFETY: each task goes from one thread to one other; cells are touched only as `salsa` argues.
unsafe impl<T: Send, M: Memory> Sync for Chunk<T, M> {}

fn words<W: Word>(length: usize) -> Option<Vec<W>> {
    let mut words = Vec::new();
    words.try_reserve_exact(length).ok()?;
    words.extend((0..length).map(|_| W::new(0)));
    Some(words)
}

impl<T, M: Memory> Chunk<T, M> {
    /// A chunk of `length` slots without an owner; `None` if there is no memory for it.
    pub(super) fn new(number: usize, length: usize) -> Option<Self> {
        // Claims first: a length with too little memory for claims may still fit slots of a
        // zero-sized type.
        let claims = words(length.div_ceil(64))?;
        let slots = M::cells(length)?;
        Some(Chunk {
            filled: CachePadded::new(M::Word::new(0)),
            possession: CachePadded::new(Possession {
                term: M::Word::new(Term::of(NOBODY, NOBODY, 0).0),
                taken: core::array::from_fn(|_| M::Word::new(0)),
            }),
            claims,
            more: core::array::from_fn(|_| M::Pointer::new(ptr::null_mut())),
            next: M::Word::new(0),
            filler: M::Word::new(0),
            number,
            slots,
        })
    }

    pub(super) fn length(&self) -> u64 {
        self.slots.len() as u64
    }

    pub(super) fn slots(&self) -> *const Slot<T, M> {
        self.slots.as_ptr()
    }

    #[inline(always)]
    pub(super) fn filled(&self) -> &M::Word {
        &self.filled
    }

    #[inline(always)]
    pub(super) fn term(&self) -> &M::Word {
        &self.possession.term
    }

    pub(super) fn taken(&self, consumer: usize) -> Option<&M::Word> {
        let Some(mut place) = consumer.checked_sub(INLINE) else {
            return Some(&self.possession.taken[consumer]);
        };
        for (more, length) in self.more.iter().zip(MORE) {
            if place < length {
                // Acquire pairs with the Release in `make_taken`.
                let words = more.load(Ordering::Acquire);
                // SAFETY: null, or what `make_taken` published and only `drop` frees.
                return unsafe { further::<M>(words) }.map(|words| &words[place]);
            }
            place -= length;
        }
        None
    }

    /// `consumer`'s `taken` word, created if needed; `None` if there is no memory for it.
    pub(super) fn make_taken(&self, consumer: usize) -> Option<&M::Word> {
        if let Some(word) = self.taken(consumer) {
            return Some(word);
        }
        let which = usize::from(consumer >= INLINE + MORE[0]);
        let made = Box::into_raw(try_box(More::<M>::new(words(MORE[which])?)).ok()?);
        // Release pairs with `taken`. Relaxed on failure: `taken` below acquires the other's words.
        if self.more[which]
            .compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // SAFETY: from a box above, and never shared.
            drop(unsafe { Box::from_raw(made) });
        }
        self.taken(consumer)
    }

    /// How much of the chunk is taken in `term`: the paper's `idx` + 1 of the node.
    pub(super) fn taken_in(&self, term: Term) -> Option<u64> {
        // Acquire pairs with every store of `taken`: what the taker announced before is seen.
        Some(self.taken(term.source())?.load(Ordering::Acquire))
    }

    pub(super) fn is_owned_by(&self, consumer: usize) -> bool {
        Term(self.term().load(Ordering::Acquire)).owner() == consumer
    }

    /// The tasks left, if the chunk is `consumer`'s: a hint, or a step of `check_empty`'s argument.
    pub(super) fn held_for(&self, consumer: usize) -> u64 {
        // Acquire: `taken` is read after it, in this term or a later one.
        let term = Term(self.term().load(Ordering::Acquire));
        if term.owner() != consumer {
            return 0;
        }
        let Some(taken) = self.taken_in(term) else { return 0 };
        // Acquire keeps the order of the loads; `filled`, read last, can only be too great.
        self.filled().load(Ordering::Acquire).saturating_sub(taken)
    }

    /// Lines 95, 134: another consumer may be after the slot, too. `true`: the caller has the task.
    pub(super) fn claim(&self, slot: u64) -> bool {
        let bit = 1 << (slot % 64);
        // Relaxed: this one word decides between the two. The winner's Acquire of `filled` makes
        // the task readable.
        self.claims[(slot / 64) as usize].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    pub(super) fn filled_here(&self) {
        // Relaxed: a hint; and published with the term.
        self.filler.store(here(), Ordering::Relaxed);
    }

    /// Makes an unreachable chunk ready to be filled again.
    pub(super) fn reset(&self) {
        // Relaxed: a hint. If another thread put the tasks, it will put the next, too: see `evict`.
        if self.filler.load(Ordering::Relaxed) != here() {
            M::evict(&self.slots);
        }
        // Relaxed throughout: published by a Release of the stack's head, then of the term.
        self.filled().store(0, Ordering::Relaxed);
        let more = self.more.iter().filter_map(|more| {
            // SAFETY: null, or what `make_taken` published (Acquire pairs) and only `drop` frees.
            unsafe { further::<M>(more.load(Ordering::Acquire)) }
        });
        let words = self.possession.taken.iter().chain(more.flatten()).chain(&self.claims);
        words.for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

impl<T, M: Memory> Drop for Chunk<T, M> {
    fn drop(&mut self) {
        // Relaxed throughout: with `&mut self` every other thread's last use happened before.
        let term = Term(self.term().load(Ordering::Relaxed));
        let filled = self.filled().load(Ordering::Relaxed);
        let mut left = match self.taken_in(term) {
            Some(taken) if term.owner() != NOBODY as usize => taken..filled,
            _ => 0..0,
        };
        for more in &self.more {
            let more = more.load(Ordering::Relaxed);
            if !more.is_null() {
                // SAFETY: `make_taken` released it from a box, and nobody else frees it.
                drop(unsafe { Box::from_raw(more) });
            }
        }
        // Last: the drop of a task may panic.
        each(|| {
            let Some(slot) = left.next() else { return false };
            self.slots[slot as usize].with_mut(|task| {
                // SAFETY: nobody else has a reference to the slot now.
                let task = unsafe { &mut *task };
                // SAFETY: slots below `filled` were written, and those from `taken` on were
                // never read: each take counts in the `taken` word of its term or a later one.
                unsafe { task.assume_init_drop() };
            });
            true
        });
    }
}

/// A number for this thread; no other living thread has it.
fn here() -> u64 {
    thread_local! { static HERE: u8 = const { 0 } }
    HERE.with(|here| ptr::from_ref(here).addr() as u64)
}

/// The task in a slot that only the caller may take. Read it before the consumer is used otherwise:
/// a checker sees this call and the reading as one step, and the chunk is protected until then.
#[inline(always)]
pub(super) fn found<T, M: Memory>(slots: *const Slot<T, M>, slot: u64) -> Found<T> {
    // SAFETY: the caller's `filled` was past the slot, so it is within the chunk.
    let slot = unsafe { slots.add(slot as usize) };
    // SAFETY: the chunk lives in the pool's registry.
    let slot = unsafe { &*slot };
    let task = slot.with(|task| task.cast::<T>().cast_mut());
    // SAFETY: the producer's write happened before the `filled` that the caller read. The caller's
    // hazard pointer prevents a reset of the chunk, so no thread writes the slot. No other consumer
    // reads it: points 1 to 3 of the module comment.
    unsafe { Found::at(task) }
}

/// As [`found`], moved to `place`: for a caller that is about to release the chunk.
#[inline(always)]
pub(super) fn moved<T, M: Memory>(
    slots: *const Slot<T, M>,
    slot: u64,
    place: &mut MaybeUninit<T>,
) -> Found<T> {
    // SAFETY: the caller's `filled` was past the slot, so it is within the chunk.
    let slot = unsafe { slots.add(slot as usize) };
    // SAFETY: the chunk lives in the pool's registry.
    let slot = unsafe { &*slot };
    slot.with(|task| {
        // SAFETY: the task is initialised and the caller's, by points 1 to 3 of the module comment;
        // `place` is another place, borrowed exclusively.
        unsafe { ptr::from_mut(place).copy_from_nonoverlapping(task, 1) };
    });
    // SAFETY: it was moved there just now.
    unsafe { Found::at(place.as_mut_ptr()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poach_memory::Machine;

    #[test]
    fn a_term_says_who_and_whose_word_and_never_comes_again() {
        let first = Term(0).next(3, 3);
        assert_eq!((first.owner(), first.source()), (3, 3));
        let stolen = first.next(5, 3);
        assert_eq!((stolen.owner(), stolen.source()), (5, 3));
        assert!(!stolen.is_settled_on(5));
        assert!(stolen.settled().is_settled_on(5));
        assert_ne!(stolen.next(3, 5).settled(), first);
        assert_eq!(first.ended().owner(), NOBODY as usize);
        assert_ne!(first.ended().next(3, 3), first);
    }

    #[test]
    fn every_consumer_has_its_own_word() {
        let chunk = Chunk::<u8, Machine>::new(0, 10).expect("memory");
        assert!(chunk.taken(INLINE).is_none());
        for consumer in 0..MOST_CONSUMERS {
            let word = chunk.make_taken(consumer).expect("memory");
            assert_eq!(word.swap(1, Ordering::Relaxed), 0, "{consumer} shares a word");
        }
        assert!(chunk.taken(MOST_CONSUMERS).is_none());
        chunk.reset();
        assert_eq!(chunk.taken(MOST_CONSUMERS - 1).map(|w| w.load(Ordering::Relaxed)), Some(0));
    }

    #[test]
    fn a_slot_is_claimed_once_in_each_life() {
        let chunk = Chunk::<u8, Machine>::new(0, 130).expect("memory");
        assert!(chunk.claim(129) && !chunk.claim(129) && chunk.claim(128) && chunk.claim(0));
        chunk.reset();
        assert!(chunk.claim(129));
    }
}
