//! What SALSA and SALSA+CAS have in common: records, hazard pointers, and the producer.

use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::sync::Arc;

use poach_memory::{CachePadded, Cell, Memory, Ordering, Pointer, Word};

use super::chunk::{Chunk, MOST_CONSUMERS, Slot, Term};
use super::extent::Extent;
use super::list::{Fifo, Held};
use crate::mechanism::{NoHandle, Produce};
use crate::registry::{Entries, MOST, Registry, try_box};

pub(crate) const MOST_PRODUCERS: usize = 4096;

/// Hazard pointers: on the chunk that a consumer works on, and on the one it is about to steal.
pub(super) const CURRENT: usize = 0;
pub(super) const TARGET: usize = 1;

pub(super) type RecordPointer<T, M, F> = NonNull<ConsumerRecord<T, M, F>>;

/// A consumer's entry: the paper's `SALSA per consumer data structure` (lines 44-48).
pub(super) struct ConsumerRecord<T, M: Memory, F> {
    /// How the consumer's stores of `taken` stay ahead of its loads of a chunk's term.
    pub(super) fence: F,
    /// [`Mechanism::announced`](crate::mechanism::Mechanism::announced). The consumer's own line.
    pub(super) announced: CachePadded<M::Word>,
    pub(super) hazards: CachePadded<[M::Pointer<Chunk<T, M>>; 2]>,
    /// `chunkLists`, one for each producer that ever served this consumer; grows only.
    fifos: M::Pointer<Fifo<T, M>>,
    /// `chunkLists[steal]`.
    pub(super) held: Held<T, M>,
    /// `chunkPool`: a stack of free chunks. Number + 1 of the topmost, or 0.
    pub(super) free: CachePadded<M::Word>,
    /// Chunks that were exhausted while a hazard pointer was on them. The consumer's own.
    pub(super) retired: M::Word,
}

impl<T, M: Memory, F> ConsumerRecord<T, M, F> {
    fn new(fence: F) -> Option<Self> {
        Some(ConsumerRecord {
            fence,
            announced: CachePadded::new(M::Word::new(0)),
            hazards: CachePadded::new(core::array::from_fn(|_| M::Pointer::new(ptr::null_mut()))),
            fifos: M::Pointer::new(ptr::null_mut()),
            held: Held::new()?,
            free: CachePadded::new(M::Word::new(0)),
            retired: M::Word::new(0),
        })
    }

    pub(super) fn fifos(&self) -> impl Iterator<Item = &Fifo<T, M>> {
        // Acquire pairs with the Release in `fifo_for`; `next` was written before it.
        let mut fifo = self.fifos.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: null, or a list that `fifo_for` published and only `drop` frees.
            let found = unsafe { fifo.as_ref() }?;
            fifo = found.next.load(Ordering::Relaxed);
            Some(found)
        })
    }

    /// Every chunk that this consumer owns throughout the call, and perhaps others.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk<T, M>> {
        self.fifos().flat_map(Fifo::iter).chain(self.held.iter())
    }

    /// `producer`'s list to this consumer, created if needed. Only the producer may call this.
    fn fifo_for(&self, producer: usize) -> Option<&Fifo<T, M>> {
        if let Some(fifo) = self.fifos().find(|fifo| fifo.producer == producer) {
            return Some(fifo);
        }
        let made = Box::into_raw(try_box(Fifo::new(producer)?).ok()?);
        // SAFETY: from a box just now, and only `drop` frees it.
        let fifo: &Fifo<T, M> = unsafe { &*made };
        let mut first = self.fifos.load(Ordering::Relaxed);
        loop {
            fifo.next.store(first, Ordering::Relaxed);
            // AcqRel pairs with `fifos`; the lists behind it stay visible through it.
            match self.fifos.compare_exchange(first, made, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(fifo),
                Err(now) => first = now,
            }
        }
    }
}

impl<T, M: Memory, F> Drop for ConsumerRecord<T, M, F> {
    fn drop(&mut self) {
        let mut fifo = self.fifos.load(Ordering::Relaxed);
        while !fifo.is_null() {
            // SAFETY: `fifo_for` released it from a box, and each is in this chain once.
            let freed = unsafe { Box::from_raw(fifo) };
            fifo = freed.next.load(Ordering::Relaxed);
        }
    }
}

/// A producer's entry: what it leaves to its next holder.
pub(super) struct ProducerRecord<T, M: Memory> {
    /// The chunk that it had begun (line 51), or null. The chunk knows how much of it is filled.
    chunk: M::Pointer<Chunk<T, M>>,
    /// A chunk without an owner, kept after memory ran out for what else it needed; or null.
    spare: M::Pointer<Chunk<T, M>>,
    /// The hazard pointer on the chunk that it is about to pop from a chunk pool.
    pub(super) popping: CachePadded<M::Pointer<Chunk<T, M>>>,
}

impl<T, M: Memory> ProducerRecord<T, M> {
    fn new() -> Self {
        let null = || M::Pointer::new(ptr::null_mut());
        ProducerRecord { chunk: null(), spare: null(), popping: CachePadded::new(null()) }
    }

    fn take_spare<'a>(&self) -> Option<&'a Chunk<T, M>>
    where
        T: 'a,
    {
        // Relaxed: the producer's own.
        let spare = self.spare.load(Ordering::Relaxed);
        if !spare.is_null() {
            self.spare.store(ptr::null_mut(), Ordering::Relaxed);
        }
        // SAFETY: null, or a chunk of the registry, which outlives the record.
        unsafe { spare.as_ref() }
    }
}

type Fences<F> = Box<dyn Fn(usize) -> F + Send + Sync>;

pub(super) struct Core<T, M: Memory, F> {
    pub(super) consumers: Entries<ConsumerRecord<T, M, F>, M>,
    pub(super) producers: Entries<ProducerRecord<T, M>, M>,
    pub(super) chunks: Registry<Chunk<T, M>, M>,
    pub(super) extent: Extent<M>,
    chunk_length: usize,
    chunk_limit: usize,
    fences: Fences<F>,
}

impl<T, M: Memory, F> fmt::Debug for Core<T, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("consumers", &self.consumers.len())
            .field("chunks", &self.chunks.len())
            .finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory, F: Send + Sync> Core<T, M, F> {
    pub(super) fn new(chunk_length: usize, fences: Fences<F>) -> Option<Self> {
        let core = Core {
            consumers: Entries::new(),
            producers: Entries::new(),
            chunks: Registry::new(),
            extent: Extent::new(),
            chunk_length,
            chunk_limit: MOST,
            fences,
        };
        let make = |number| ConsumerRecord::new((core.fences)(number));
        core.consumers.prepare(make)?;
        Some(core)
    }

    pub(super) fn claim_consumer(&self) -> Result<(usize, RecordPointer<T, M, F>), NoHandle> {
        let claimed = self
            .consumers
            .claim(MOST_CONSUMERS, |number| ConsumerRecord::new((self.fences)(number)));
        let limit = MOST_CONSUMERS;
        match claimed {
            Some((number, record)) => {
                self.extent.open(number);
                Ok((number, NonNull::from(record)))
            }
            None if self.consumers.len() >= limit => Err(NoHandle::TooMany { limit }),
            None => Err(NoHandle::OutOfMemory),
        }
    }

    pub(super) fn producer(self: &Arc<Self>) -> Result<ProducerEnd<T, M, F>, NoHandle> {
        let limit = MOST_PRODUCERS;
        let Some((number, record)) = self.producers.claim(limit, |_| Some(ProducerRecord::new()))
        else {
            return Err(if self.producers.len() >= limit {
                NoHandle::TooMany { limit }
            } else {
                NoHandle::OutOfMemory
            });
        };
        // Relaxed: the Acquire of the entry has made the last holder's stores visible.
        let chunk = record.chunk.load(Ordering::Relaxed);
        let mut producer = ProducerEnd::new(number, Arc::clone(self));
        // SAFETY: null, or a chunk of the registry, which outlives the handle's `Arc`.
        if let Some(chunk) = unsafe { chunk.as_ref() } {
            producer.begin(chunk);
        }
        Ok(producer)
    }

    /// The sum of two numbers that never fall.
    pub(super) fn changes(&self) -> u64 {
        self.consumers.changes().wrapping_add(self.extent.version())
    }

    #[cold]
    pub(super) fn close_unused(&self) {
        self.extent.close_unused(|pool| {
            self.consumers.is_held(pool)
                || self
                    .consumers
                    .get(pool)
                    .is_none_or(|record| record.chunks().any(|chunk| chunk.is_owned_by(pool)))
        });
    }

    pub(super) fn is_empty(&self, pool: usize) -> bool {
        let record = self.consumers.get(pool);
        let empty = record.is_none_or(|one| one.chunks().all(|chunk| chunk.held_for(pool) == 0));
        if empty && pool > 0 && pool + 1 == self.extent.count() && !self.consumers.is_held(pool) {
            // Other consumers have taken what this pool's consumer left there.
            self.close_unused();
        }
        empty
    }

    pub(super) fn approximate_len(&self, pool: usize) -> usize {
        self.consumers
            .get(pool)
            .map_or(0, |record| record.chunks().map(|chunk| chunk.held_for(pool) as usize).sum())
    }

    pub(super) fn announced(&self, pool: usize) -> u64 {
        // Acquire: steps A and D of `policy`.
        self.consumers.get(pool).map_or(0, |record| record.announced.load(Ordering::Acquire))
    }
}

/// Sets hazard pointer `which`. If the caller then finds that the chunk's term has not ended, the
/// chunk is not reset before the pointer is moved away.
pub(super) fn protect<T, M: Memory, F>(
    record: &ConsumerRecord<T, M, F>,
    which: usize,
    chunk: &Chunk<T, M>,
) {
    // Release pairs with `is_protected`: all accesses under its last value are done, stores too.
    record.hazards[which].store(ptr::from_ref(chunk).cast_mut(), Ordering::Release);
    // Pairs with the fence in `retire`, and with that of a thief.
    M::full();
}

pub(super) fn unprotect<T, M: Memory, F>(record: &ConsumerRecord<T, M, F>, which: usize) {
    // Release, as in `protect`: the reading of a task ends before the slot can be written again.
    record.hazards[which].store(ptr::null_mut(), Ordering::Release);
}

/// Called after a full fence that follows the end of a term. If the result is false, the consumer
/// has done all it will do there in that term, and the caller sees it.
pub(super) fn is_protected<T, M: Memory, F>(
    record: &ConsumerRecord<T, M, F>,
    chunk: &Chunk<T, M>,
) -> bool {
    // A thief that makes its target current sets `CURRENT` before it clears `TARGET`: in this order
    // one of the two is seen. Acquire pairs with the Release in `protect` and `unprotect`.
    [TARGET, CURRENT]
        .iter()
        .any(|&which| ptr::eq(record.hazards[which].load(Ordering::Acquire), chunk))
}

/// A producer of chunks: lines 49-73. Wait-free except for memory allocation and, once a chunk, the
/// chunk pool's compare-and-swap.
pub struct ProducerEnd<T: Send, M: Memory, F: Send + Sync> {
    slots: *const Slot<T, M>,
    filled: *const M::Word,
    /// The next slot to fill (`prodIdx`), and the number of slots; both 0 without a current chunk.
    next: u64,
    length: u64,
    chunk: *const Chunk<T, M>,
    number: usize,
    core: Arc<Core<T, M, F>>,
}

// SAFETY: the pointers lead into the registry that `core` keeps, whose content is `Sync`.
unsafe impl<T: Send, M: Memory, F: Send + Sync> Send for ProducerEnd<T, M, F> {}

impl<T: Send, M: Memory, F: Send + Sync> fmt::Debug for ProducerEnd<T, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A place for the next task, and what is published with it. Read before the task is written: the
/// compiler does not know that the task does not overlap the producer.
pub(crate) struct Place<T, M: Memory> {
    pub(crate) slot: *mut T,
    filled: *const M::Word,
    next: u64,
    length: u64,
}

impl<T: Send, M: Memory, F: Send + Sync> ProducerEnd<T, M, F> {
    fn new(number: usize, core: Arc<Core<T, M, F>>) -> Self {
        ProducerEnd {
            slots: ptr::null(),
            filled: ptr::null(),
            next: 0,
            length: 0,
            chunk: ptr::null(),
            number,
            core,
        }
    }

    #[inline(always)]
    pub(crate) fn has_place(&self) -> bool {
        self.next != self.length
    }

    /// Line 58. Only after a successful [preparation](Produce::prepare).
    #[inline(always)]
    pub(crate) fn place(&self) -> Place<T, M> {
        let ProducerEnd { slots, filled, next, length, .. } = *self;
        debug_assert!(next < length);
        // SAFETY: `next` is below the length of the chunk whose slots these are.
        let slot = unsafe { slots.add(next as usize) };
        // SAFETY: the chunk lives in the registry that `core` keeps.
        let slot = unsafe { &*slot };
        // Outside the closure, into which a large task would be moved. A checker sees one step.
        let slot = slot.with_mut(<*mut MaybeUninit<T>>::cast);
        Place { slot, filled, next: next + 1, length }
    }

    /// Publishes the task in `place`.
    ///
    /// # Safety
    ///
    /// `place` is this producer's [place](ProducerEnd::place) after a
    /// [preparation](Produce::prepare) that succeeded. A task was written there, and this producer
    /// was not used since.
    #[inline(always)]
    pub(crate) unsafe fn publish(&mut self, place: &Place<T, M>) {
        self.next = place.next;
        // SAFETY: the word is the current chunk's, which lives in the registry that `core` keeps.
        let filled = unsafe { &*place.filled };
        // Release: a thread that sees the count sees the tasks below it.
        filled.store(place.next, Ordering::Release);
        if place.next == place.length {
            // Lines 59-60: the chunk is full, and from here on not this producer's.
            self.next = 0;
            self.length = 0;
            self.chunk = ptr::null();
        }
    }

    fn begin(&mut self, chunk: &Chunk<T, M>) {
        self.slots = chunk.slots();
        self.filled = chunk.filled();
        // Relaxed: the producer's own word.
        self.next = chunk.filled().load(Ordering::Relaxed);
        self.length = chunk.length();
        self.chunk = chunk;
    }

    /// Lines 64-73. `false` if there is no free chunk, or with `force` no memory.
    #[cold]
    fn get_chunk(&mut self, pool: usize, force: bool) -> bool {
        self.try_get_chunk(pool, force).is_some()
    }

    fn try_get_chunk(&mut self, pool: usize, force: bool) -> Option<()> {
        let core = Arc::clone(&self.core);
        let record = core.consumers.get(pool)?;
        let fifo = record.fifo_for(self.number)?;
        fifo.reserve()?;
        let mine = core.producers.get(self.number)?;
        let chunk = match mine.take_spare().or_else(|| core.pop_free(record, mine)) {
            Some(chunk) => chunk,
            None if force => core.left_over(mine).or_else(|| core.new_chunk())?,
            None => return None,
        };
        if chunk.make_taken(pool).is_none() {
            // Relaxed: released with the entry.
            mine.spare.store(ptr::from_ref(chunk).cast_mut(), Ordering::Relaxed);
            return None;
        }
        // Relaxed: the chunk is this producer's alone until the store below.
        let old = Term(chunk.term().load(Ordering::Relaxed));
        let term = old.next(pool, pool);
        chunk.filled_here();
        // Release: a thread that sees the new term sees the chunk reset.
        chunk.term().store(term.0, Ordering::Release);
        fifo.append(chunk, term);
        // Before the first task is put into it.
        core.extent.open(pool);
        self.begin(chunk);
        Some(())
    }
}

impl<T: Send, M: Memory, F: Send + Sync> Core<T, M, F> {
    fn left_over(&self, popper: &ProducerRecord<T, M>) -> Option<&Chunk<T, M>> {
        (0..self.consumers.len())
            .filter(|&pool| !self.consumers.is_held(pool))
            .find_map(|pool| self.pop_free(self.consumers.get(pool)?, popper))
    }

    fn new_chunk(&self) -> Option<&Chunk<T, M>> {
        let length = self.chunk_length;
        let made = self.chunks.push(self.chunk_limit, |number| Chunk::new(number, length));
        made.map(|(_, chunk)| chunk)
    }
}

impl<T: Send, M: Memory, F: Send + Sync> Produce<T> for ProducerEnd<T, M, F> {
    fn number(&self) -> usize {
        self.number
    }

    #[inline(always)]
    fn prepare(&mut self, pool: usize, grow: bool) -> bool {
        self.has_place() || self.get_chunk(pool, grow)
    }

    #[inline]
    fn produce_force(&mut self, pool: usize, task: T) -> Result<(), T> {
        if !self.prepare(pool, true) {
            return Err(task);
        }
        let place = self.place();
        // SAFETY: the place is this producer's. No consumer reads a slot before `filled` is past
        // it, and the reader of its last life was done before the chunk was reset.
        unsafe { place.slot.write(task) };
        // SAFETY: `place` is this producer's, and the task was written just now.
        unsafe { self.publish(&place) };
        Ok(())
    }
}

impl<T: Send, M: Memory, F: Send + Sync> Drop for ProducerEnd<T, M, F> {
    fn drop(&mut self) {
        if let Some(record) = self.core.producers.get(self.number) {
            // Relaxed: released with the entry.
            record.chunk.store(self.chunk.cast_mut(), Ordering::Relaxed);
        }
        self.core.producers.release(self.number);
    }
}
