//! SALSA: a single-consumer pool. Its owner takes without a fence or a compare-and-swap; thieves
//! steal whole chunks.
//!
//! Source: Gidron, Keidar, Perelman and Perez, *SALSA: Scalable and Low Synchronization NUMA-aware
//! Algorithm for Producer-Consumer Pools*, algorithms 3-6, sections 5 to 7. Line numbers are that
//! paper's.
//!
//! # How it works
//!
//! A producer fills the slots of a *chunk*, one after another, and names the chunk in a list of the
//! consumer that it serves. A chunk's *term* says which consumer owns it. The owner looks at the
//! term, publishes in its `taken` word that it is about to take the next slot, looks at the term
//! again, and takes. A thief makes the whole chunk its own by a compare-and-swap of the term, takes
//! one task, and goes on as the owner. Slots are used once in a life of a chunk; the consumer that
//! takes the last returns the chunk to its own chunk pool.
//!
//! | paper | here |
//! |---|---|
//! | `tasks[i]` is ⊥, a task, `TAKEN` (38) | `filled` > i; the slot, a plain cell; a bit of `claims` |
//! | `owner` with its tag (39) | owner and tag of the chunk's `Term` |
//! | a `Node` of the owner's, its `idx` (41-43) | `taken[owner]` = `idx` + 1, a word in the chunk |
//! | "replace prevNode with newNode" (131) | the term's `source`: whose `taken` word counts |
//! | `prevNode.c` ← ⊥ (132) | nothing: a list entry is dead once the chunk's term is another |
//! | `chunkLists`, `chunkPool`, hazard pointers | [`list`](self), [`core`](self) |
//!
//! What differs, and why:
//!
//! - *One count of filled slots, not a state in each slot.* The consumer reads the producer's line
//!   once for all tasks that have come since. The paper's consumer reads, for every task, a line
//!   that the producer is writing. Slots hold any `T` by value; no sentinel, no box.
//! - *No store of `TAKEN`* (line 92). `taken` already tells a later reader of the slot the same. A
//!   bit decides only where two consumers may be after the same slot (lines 95, 134).
//! - *No nodes.* A node exists so that a late increment by an old owner cannot harm the new owner's
//!   index. A `taken` word for each consumer does the same. In the window between lines 116 and 131
//!   the paper's two consumers share the node. Here the new term has the thief as owner and the old
//!   owner as `source`, and a second exchange settles it.
//! - *An emptied chunk leaves its consumer's caches*, if another thread filled it
//!   ([`Memory::evict`]). A producer fills a returned chunk next. It can write lines that another
//!   processor still holds only one after another; lines in no cache are prefetched.
//!
//! # Why no task is taken twice
//!
//! Let v own the chunk, and s steal it. The numbers are the paper's lines.
//!
//! ```text
//! v: F  = filled            86      s: (reads term t, P = taken[v], filled > P)     112-113
//!    term = t?              88         names the chunk in its list                  115
//!    taken[v] = k + 1       90         CAS term: t -> (s, source v)                 116
//!    fence.owner()                     fence.thief()
//!    term = t? take slot k  91         I = taken[v]                                 119
//!    else claim slot k      95         G = filled; if G > I: slot I is s's to claim 123
//!                                      taken[s] = I or I + 1; term: source s        129-131
//! ```
//!
//! 1. *The fence.* Either v's second look sees the new term, or I counts v's store, by the
//!    guarantee of [`StoreLoad`] with `taken` for the tail and the term for the head. In the first
//!    case v claims its slot; s, if it read the old `taken` word, claims the same one, and the bit
//!    decides. In the second v takes slot k, and s begins above it. **Without the fence** the store
//!    may wait in v's store buffer past both loads: v takes slot k, and s claims it.
//! 2. *No fence where the owner is not* (ours; the paper's thief has none at all on TSO, and trusts
//!    to displacement). v publishes only while one of its hazard pointers is on the chunk. It looks
//!    at the term between setting the pointer and the first store, after a full fence. s, after its
//!    exchange, looks at v's hazard pointers after a full fence, too. If s finds them elsewhere,
//!    either v has yet to come, and will see the new term and go. Or v has been there and left, by
//!    a Release of the pointer, so that I counts all that it published and G all that it saw
//!    filled. In both cases I is exact without `fence.thief()`, the process-wide barrier. **Without
//!    the look** the error is that of point 1 without the fence. In a term that is not settled two
//!    may publish, and the thief pays.
//! 3. *The first look* (88). If it passes, slot k was filled before the theft, so G counts it and s
//!    claims the slot, never to take it as an owner does. v's load of `filled` comes before its
//!    load of the term (Acquire; between them `fence.owner()`, once for each time `filled` is
//!    read). s's exchange comes before its load of `filled` (`fence.thief()`). **Without it** v may
//!    see a task that came after G was read. It then publishes it, sees the new term and claims it,
//!    while s takes the same slot as its owner, without claiming.
//! 4. *The re-check* (125). s in its window is to a second thief x what v is to s: it is about to
//!    publish a slot. If s finds the chunk stolen again, x may not have seen the task that s saw,
//!    so s must not take it. The exception is I = P: the task was there before s became the owner
//!    (113), and x sees it. Giving up in that case too would let thieves rob each other for ever
//!    with nothing taken.
//! 5. *The tag.* The exchange (116) succeeds only in the term in which P was read, not in a later
//!    one of the same owner. The paper needs that, because its P comes from a node that may be
//!    another's by then. Here the term itself names the word to read, and the hazard pointer keeps
//!    the chunk from another life. So no model finds an execution that goes wrong without the tag
//!    alone. It stays: it lets each step above be argued within one term, and it stops a thief
//!    whose hazard pointer comes too late. **Without either** a task is taken twice: a model finds
//!    it (`salsa-oversleeps-untagged` among the mutants).
//! 6. *`taken` only grows* (Lemma 8): s publishes I + 1 if v may still publish I + 1, by point 3.
//!
//! The last slot is taken by one consumer, and only that one returns the chunk. (Line 135 of the
//! paper also returns it from a thief that lost the last slot: twice.)
//!
//! # Why no chunk is reused under a user
//!
//! Records, lists and chunks are not freed before the pool, so *reading* a stale one is harmless:
//! terms are validated. *Acting* on a chunk, that is writing its `taken` or `claims` or reading a
//! slot, needs a hazard pointer on it, set before its term was validated. The consumer that retires
//! a chunk ends its term, then looks for hazard pointers. A full fence stands between the two steps
//! on both sides, once for each chunk that becomes current, never for each task.
//!
//! # Why `None` means empty
//!
//! [`policy`](crate::policy) has the argument. It needs this of SALSA:
//!
//! - An owner announces before it publishes the last task that it has seen in its chunk: it saw
//!   that task before, and its store of `taken` is Release. A slot is published once in a term. In
//!   the next term an owner of the term before publishes no slot that was filled after the theft.
//! - A thief makes its number odd before its exchange of the term. It announces again before the
//!   store and exchange that settle the term, and makes the number even when it is done. So of a
//!   thief in between, one step may take effect that was announced before.
//! - To claim a slot takes nothing out of a pool: the slot was published before.
//! - A place, for that argument, is a chunk in one life. It is seen empty when `filled` is read and
//!   is no more than `taken`, which was read before and only grows.
//!
//! # Progress
//!
//! `produce` is wait-free except for the chunk pool and the allocator. `consume` and `steal` are
//! lock-free, wherever another consumer stalls (section 7.2): a chunk can be stolen from a thief in
//! its window, as its term is complete at every instant. If a consumer that has published a task
//! stalls for ever before it returns it, that one task is lost to the others.

mod cas;
mod chunk;
mod chunk_pool;
mod core;
mod extent;
mod found;
mod list;
mod steal;

use ::core::fmt;
use ::core::mem::MaybeUninit;
use ::core::ptr;
use std::sync::Arc;

use poach_memory::{Asymmetric, Machine, Memory, Ordering, StoreLoad, Word};

pub use self::cas::{SalsaCas, SalsaCasConsumer};
#[cfg(test)]
pub(crate) use self::chunk::MOST_CONSUMERS;
use self::chunk::{Chunk, Slot, Term, found, moved};
pub use self::core::ProducerEnd as SalsaProducer;
use self::core::{CURRENT, ConsumerRecord, Core, RecordPointer, TARGET, protect, unprotect};
pub(crate) use self::found::Found;
use self::list::Fifo;
use crate::mechanism::{Consume, Mechanism, NoHandle};

/// SALSA pools, over memory `M` and with fence policy `F`.
///
/// A policy with a [`delta`](StoreLoad::delta) must be able to [`resolve`](StoreLoad::resolve): a
/// thief waits until it can, because it would take a task twice if it missed a store of the owner.
pub struct Salsa<T: Send, M: Memory = Machine, F: StoreLoad<M> = Asymmetric<M>> {
    core: Arc<Core<T, M, F>>,
}

impl<T: Send, M: Memory, F: StoreLoad<M> + Default> Salsa<T, M, F> {
    /// Pools of chunks of `chunk_length` tasks; `None` where there is no memory.
    ///
    /// # Panics
    ///
    /// As [`with_fences`](Salsa::with_fences).
    pub fn new(chunk_length: usize) -> Option<Self> {
        Self::with_fences(chunk_length, |_| F::default())
    }
}

impl<T: Send, M: Memory, F: StoreLoad<M>> Salsa<T, M, F> {
    /// Pools whose consumers' policies are made by `fences`, from the number of the entry. So a
    /// policy may know the processor to which the holder of that entry is bound, as displacement
    /// must (section 6.1).
    ///
    /// # Panics
    ///
    /// If `chunk_length` is 0, or the policy of entry 0 has a delta and cannot resolve it.
    pub fn with_fences(
        chunk_length: usize,
        fences: impl Fn(usize) -> F + Send + Sync + 'static,
    ) -> Option<Self> {
        assert!(chunk_length > 0, "a chunk must hold at least one task");
        let first = fences(0);
        assert!(
            first.delta() == 0 || first.resolve(),
            "SALSA needs a fence policy that can make an owner's stores visible"
        );
        Some(Salsa { core: Arc::new(Core::new(chunk_length, Box::new(fences))?) })
    }

    /// The approximate number of tasks: exact while no thread puts or takes. Looks at every chunk.
    pub fn len(&self) -> usize {
        (0..self.pools()).map(|pool| self.core.approximate_len(pool)).sum()
    }

    /// A number that rises as tasks are taken: by one for each, or for several that came together.
    pub(crate) fn taken(&self) -> u64 {
        // Each event adds two.
        (0..self.pools()).fold(0, |sum: u64, pool| sum.wrapping_add(self.core.announced(pool))) / 2
    }

    /// Whether every pool was empty when it was looked at, one after the other.
    pub fn is_empty(&self) -> bool {
        (0..self.pools()).all(|pool| self.core.is_empty(pool))
    }
}

impl<T: Send, M: Memory, F: StoreLoad<M>> fmt::Debug for Salsa<T, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl<T: Send, M: Memory, F: StoreLoad<M>> Mechanism<T> for Salsa<T, M, F> {
    type Producer = SalsaProducer<T, M, F>;
    type Consumer = SalsaConsumer<T, M, F>;

    fn producer(self: &Arc<Self>) -> Result<Self::Producer, NoHandle> {
        self.core.producer()
    }

    fn consumer(self: &Arc<Self>) -> Result<Self::Consumer, NoHandle> {
        let (number, record) = self.core.claim_consumer()?;
        Ok(SalsaConsumer {
            chunk: ptr::null(),
            slots: ptr::null(),
            term_word: ptr::null(),
            taken: ptr::null(),
            next: 0,
            filled: 0,
            length: 0,
            term: Term(0),
            record,
            number,
            turn: 0,
            exchanges: 0,
            core: Arc::clone(&self.core),
        })
    }

    fn pools(&self) -> usize {
        self.core.extent.count()
    }

    fn is_held(&self, pool: usize) -> bool {
        self.core.consumers.is_held(pool)
    }

    fn changes(&self) -> u64 {
        self.core.changes()
    }

    fn announced(&self, pool: usize) -> u64 {
        self.core.announced(pool)
    }
}

/// A consumer of [`Salsa`] pools.
pub struct SalsaConsumer<T: Send, M: Memory, F: StoreLoad<M>> {
    /// The current chunk (`currentNode`), under hazard pointer [`CURRENT`], or null. What each take
    /// reads of it stands in fields: a struct would be copied by way of the stack for every task.
    chunk: *const Chunk<T, M>,
    slots: *const Slot<T, M>,
    term_word: *const M::Word,
    taken: *const M::Word,
    /// The next slot to take: this consumer's `taken` word.
    next: u64,
    /// The chunk's `filled` word when last read. `next == filled` without a current chunk.
    filled: u64,
    length: u64,
    term: Term,
    record: RecordPointer<T, M, F>,
    number: usize,
    /// Lists to pass over in the next search (line 78). It advances with each emptied chunk: a
    /// consumer that has caught up searches often, and would leave a chunk in its cache each time.
    turn: usize,
    exchanges: u64,
    core: Arc<Core<T, M, F>>,
}

// SAFETY: the pointers lead into the registries that `core` keeps, whose content is `Sync`.
unsafe impl<T: Send, M: Memory, F: StoreLoad<M>> Send for SalsaConsumer<T, M, F> {}

impl<T: Send, M: Memory, F: StoreLoad<M>> fmt::Debug for SalsaConsumer<T, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SalsaConsumer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory, F: StoreLoad<M>> Consume<T> for SalsaConsumer<T, M, F> {
    fn number(&self) -> usize {
        self.number
    }

    #[inline]
    fn consume(&mut self) -> Option<T> {
        let mut place = MaybeUninit::uninit();
        self.find(&mut place).map(Found::read)
    }

    fn steal(&mut self, from: usize) -> Option<T> {
        let mut place = MaybeUninit::uninit();
        self.find_in(from, &mut place).map(Found::read)
    }

    fn is_empty(&mut self, pool: usize) -> bool {
        self.core.is_empty(pool)
    }

    fn exchanges(&self) -> u64 {
        self.exchanges
    }
}

impl<T: Send, M: Memory, F: StoreLoad<M>> SalsaConsumer<T, M, F> {
    #[inline(always)]
    fn record(&self) -> &ConsumerRecord<T, M, F> {
        // SAFETY: the record lives in the registry that `core` keeps.
        unsafe { self.record.as_ref() }
    }

    /// [`consume`](Consume::consume). The task is in its slot, or moved to `place` if the slot may
    /// be filled again. Read it before this consumer is used otherwise.
    #[inline(always)]
    pub(crate) fn find(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        if self.next == self.filled && !self.refresh() {
            return self.search(place);
        }
        self.take_task::<false>(place)
    }

    /// [`steal`](Consume::steal). The task was moved to `place`.
    pub(crate) fn find_in(&mut self, from: usize, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        let core = Arc::clone(&self.core);
        let task = self.steal_chunk(core.consumers.get(from)?, &core, from, place);
        unprotect(self.record(), TARGET);
        if self.announced() % 2 == 1 {
            self.announce(1);
        }
        task
    }

    /// Line 86, for all tasks that came since the last time. Returns whether there are any.
    #[inline(always)]
    fn refresh(&mut self) -> bool {
        // SAFETY: null, or a chunk of the registry that `core` keeps.
        let Some(chunk) = (unsafe { self.chunk.as_ref() }) else { return false };
        // Acquire pairs with the producer's Release: the tasks below the count are there.
        let filled = chunk.filled().load(Ordering::Acquire);
        // Point 3 of the module comment: this load comes before the first look.
        self.record().fence.owner();
        // After the fence, which waits for stores before it.
        self.filled = filled;
        self.next != filled
    }

    /// Lines 83-94: takes slot `next` of the current chunk, which was seen filled. If the chunk is
    /// lost it searches for another, unless it is called by a search.
    #[inline(always)]
    fn take_task<const SEARCHING: bool>(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        debug_assert!(self.next < self.filled && !self.chunk.is_null());
        // SAFETY: as `next` is below `filled` there is a chunk; its words live in the registry.
        let term = unsafe { &*self.term_word };
        // SAFETY: there is a current chunk, whose words live in the registry.
        let taken = unsafe { &*self.taken };
        // Read before the fence, across which the compiler would read them again.
        let (slot, filled, mine, slots) = (self.next, self.filled, self.term.0, self.slots);
        let record = self.record;
        // SAFETY: the record lives in the registry that `core` keeps.
        let record = unsafe { record.as_ref() };
        // Relaxed: ordered after the load of `filled` by its Acquire and the fence. If the term is
        // the old one, the load of `filled` has made visible all that is read.
        if term.load(Ordering::Relaxed) != mine {
            return self.lost::<SEARCHING>(place);
        }
        let next = slot + 1;
        if next != filled {
            self.next = next;
            if Self::publish(record, term, taken, next, mine) {
                return Some(found::<T, M>(slots, slot));
            }
            return self.take_last(slot, place);
        }
        // Lines 141-147, before the take: it may be of the last task. Release, as in `announce`.
        // Relaxed: its own word. A copy would be one more store that the fence waits for.
        let announced = record.announced.load(Ordering::Relaxed) + 2;
        record.announced.store(announced, Ordering::Release);
        let is_mine = Self::publish(record, term, taken, next, mine);
        self.next = next;
        if is_mine {
            if next != self.length {
                return Some(found::<T, M>(slots, slot));
            }
            let task = moved::<T, M>(slots, slot, place);
            self.finish();
            return Some(task);
        }
        self.take_last(slot, place)
    }

    /// Lines 90-91. Returns whether the chunk is still this consumer's.
    #[inline(always)]
    fn publish(
        record: &ConsumerRecord<T, M, F>,
        term: &M::Word,
        taken: &M::Word,
        next: u64,
        mine: u64,
    ) -> bool {
        // Release carries earlier announcements to a thread that sees the take.
        taken.store(next, Ordering::Release);
        record.fence.owner();
        // Line 91. Relaxed: ordered after the store by the fence.
        term.load(Ordering::Relaxed) == mine
    }

    /// Lines 87-88: the chunk was stolen before slot `next` was published.
    #[cold]
    #[inline(never)]
    fn lost<const SEARCHING: bool>(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        self.leave_current();
        if SEARCHING { None } else { self.search(place) }
    }

    /// `clearIndicator`, before the event: by 2 for a take; odd while tasks move.
    fn announce(&mut self, by: u64) {
        let announced = self.announced() + by;
        // Release pairs with step A of `policy`. A thread that reads that a theft is over sees its
        // last step. A thread that sees the event sees the announcement by the event's own Release.
        self.record().announced.store(announced, Ordering::Release);
    }

    fn announced(&self) -> u64 {
        // Relaxed: its own word, acquired with the entry.
        self.record().announced.load(Ordering::Relaxed)
    }

    fn announce_move(&mut self) {
        self.announce(1 + self.announced() % 2);
    }

    #[cold]
    #[inline(never)]
    fn finish(&mut self) {
        let chunk = self.chunk;
        self.leave_current();
        let lists = self.record().fifos().count();
        self.turn = if lists == 0 { 0 } else { (self.turn + 1) % lists };
        // SAFETY: null, or a chunk of the registry that `core` keeps.
        if let Some(chunk) = unsafe { chunk.as_ref() } {
            self.core.retire(self.record(), chunk);
        }
        // One to end the term and one to push the chunk.
        self.exchanges += 2;
    }

    fn leave_current(&mut self) {
        self.chunk = ptr::null();
        self.next = 0;
        self.filled = 0;
        unprotect(self.record(), CURRENT);
    }

    /// Lines 95-98: "the chunk has been stolen, CAS the last task and go away".
    #[cold]
    #[inline(never)]
    fn take_last(&mut self, slot: u64, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        // SAFETY: null, or a chunk of the registry that `core` keeps.
        let chunk = unsafe { self.chunk.as_ref() }?;
        self.exchanges += 1;
        let task = chunk.claim(slot).then(|| moved::<T, M>(chunk.slots(), slot, place));
        if task.is_some() && slot + 1 == chunk.length() {
            self.finish();
        } else {
            self.leave_current();
        }
        task
    }

    /// Lines 78-82. A chunk that a thief takes meanwhile is passed over: each is looked at once.
    #[cold]
    #[inline(never)]
    fn search(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        let core = Arc::clone(&self.core);
        let record = core.consumers.get(self.number)?;
        let from_here = record.fifos().skip(self.turn).chain(record.fifos().take(self.turn));
        let produced = from_here.flat_map(Fifo::iter);
        produced
            .chain(record.held.iter())
            .find_map(|chunk| self.try_take_from(record, chunk, place))
    }

    fn try_take_from(
        &mut self,
        record: &ConsumerRecord<T, M, F>,
        chunk: &Chunk<T, M>,
        place: &mut MaybeUninit<T>,
    ) -> Option<Found<T>> {
        if chunk.held_for(self.number) == 0 {
            return None;
        }
        protect(record, CURRENT, chunk);
        // Acquire: `taken` and `filled` are read after it, in this term.
        let term = Term(chunk.term().load(Ordering::Acquire));
        // Unsettled: this consumer's theft found the chunk exhausted.
        if !term.is_settled_on(self.number) || !self.make_current(chunk, term) {
            self.leave_current();
            return None;
        }
        if !self.refresh() {
            self.leave_current();
            return None;
        }
        self.take_task::<true>(place)
    }

    fn make_current(&mut self, chunk: &Chunk<T, M>, term: Term) -> bool {
        let Some(taken) = chunk.taken(self.number) else { return false };
        // Relaxed: this consumer's own word.
        self.next = taken.load(Ordering::Relaxed);
        self.filled = self.next;
        self.length = chunk.length();
        self.term = term;
        self.chunk = chunk;
        self.slots = chunk.slots();
        self.term_word = chunk.term();
        self.taken = taken;
        true
    }
}

impl<T: Send, M: Memory, F: StoreLoad<M>> Drop for SalsaConsumer<T, M, F> {
    fn drop(&mut self) {
        unprotect(self.record(), CURRENT);
        self.core.consumers.release(self.number);
        self.core.close_unused();
    }
}
