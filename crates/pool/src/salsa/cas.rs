//! SALSA+CAS: SALSA, but owners and thieves take every task by one compare-and-swap.
//!
//! Source: the SALSA paper, section 6.2. It shows what SALSA's fast path and its stealing of chunks
//! are worth.
//!
//! In one life a chunk stays with the consumer that it was filled for, and that consumer's `taken`
//! word counts for all. Slot k belongs to the thread that moves the word from k to k + 1. The
//! protocol has a single word, so it needs no fence. The hazard pointer keeps the chunk from being
//! reused between the exchange and the reading of the slot, and the exchange from succeeding on the
//! count of another life.

use core::fmt;
use core::ptr;
use std::sync::Arc;

use poach_memory::{Full, Machine, Memory, Ordering, Word};

use super::chunk::{Chunk, Term, found};
use super::core::{CURRENT, ConsumerRecord, Core, ProducerEnd, RecordPointer, protect, unprotect};
use crate::mechanism::{Consume, Mechanism, NoHandle};

/// SALSA+CAS pools, over memory `M`.
pub struct SalsaCas<T: Send, M: Memory = Machine> {
    core: Arc<Core<T, M, Full>>,
}

impl<T: Send, M: Memory> SalsaCas<T, M> {
    /// Pools of chunks of `chunk_length` tasks; `None` where there is no memory.
    ///
    /// # Panics
    ///
    /// If `chunk_length` is 0.
    pub fn new(chunk_length: usize) -> Option<Self> {
        assert!(chunk_length > 0, "a chunk must hold at least one task");
        Some(SalsaCas { core: Arc::new(Core::new(chunk_length, Box::new(|_| Full))?) })
    }
}

impl<T: Send, M: Memory> fmt::Debug for SalsaCas<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl<T: Send, M: Memory> Mechanism<T> for SalsaCas<T, M> {
    type Producer = ProducerEnd<T, M, Full>;
    type Consumer = SalsaCasConsumer<T, M>;

    fn producer(self: &Arc<Self>) -> Result<Self::Producer, NoHandle> {
        self.core.producer()
    }

    fn consumer(self: &Arc<Self>) -> Result<Self::Consumer, NoHandle> {
        let (number, record) = self.core.claim_consumer()?;
        // SAFETY: the record lives in the registry that `core` keeps.
        let announced = unsafe { record.as_ref() }.announced.load(Ordering::Relaxed);
        let core = Arc::clone(&self.core);
        Ok(SalsaCasConsumer { chunk: ptr::null(), record, announced, number, exchanges: 0, core })
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

/// A consumer of [`SalsaCas`] pools.
pub struct SalsaCasConsumer<T: Send, M: Memory> {
    /// The chunk under hazard pointer [`CURRENT`], this consumer's or a victim's, or null.
    chunk: *const Chunk<T, M>,
    record: RecordPointer<T, M, Full>,
    /// This consumer's `announced` word. Even, as no task ever moves.
    announced: u64,
    number: usize,
    exchanges: u64,
    core: Arc<Core<T, M, Full>>,
}

// SAFETY: the pointers lead into the registries that `core` keeps, whose content is `Sync`.
unsafe impl<T: Send, M: Memory> Send for SalsaCasConsumer<T, M> {}

impl<T: Send, M: Memory> fmt::Debug for SalsaCasConsumer<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SalsaCasConsumer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory> Consume<T> for SalsaCasConsumer<T, M> {
    fn number(&self) -> usize {
        self.number
    }

    #[inline]
    fn consume(&mut self) -> Option<T> {
        self.take_current(self.number).or_else(|| self.search(self.number))
    }

    #[inline]
    fn steal(&mut self, from: usize) -> Option<T> {
        self.take_current(from).or_else(|| self.search(from))
    }

    fn is_empty(&mut self, pool: usize) -> bool {
        self.core.is_empty(pool)
    }

    fn exchanges(&self) -> u64 {
        self.exchanges
    }
}

impl<T: Send, M: Memory> SalsaCasConsumer<T, M> {
    fn record(&self) -> &ConsumerRecord<T, M, Full> {
        // SAFETY: the record lives in the registry that `core` keeps.
        unsafe { self.record.as_ref() }
    }

    fn take_current(&mut self, owner: usize) -> Option<T> {
        // SAFETY: null, or a chunk of the registry that `core` keeps.
        let chunk = unsafe { self.chunk.as_ref() }?;
        // Acquire: `taken` and `filled` are read after it. The chunk is protected and was not
        // retired when it became so; if it has been retired since, all is taken.
        let term = Term(chunk.term().load(Ordering::Acquire));
        if term.owner() != owner {
            return None;
        }
        let word = chunk.taken(owner)?;
        let mut taken = word.load(Ordering::Acquire);
        loop {
            // Acquire pairs with the producer's Release.
            let filled = chunk.filled().load(Ordering::Acquire);
            if taken >= filled {
                return None;
            }
            if taken + 1 == filled {
                self.announced += 2;
                // Release: step A of `policy`. A thread that sees the take sees it, too.
                self.record().announced.store(self.announced, Ordering::Release);
            }
            self.exchanges += 1;
            // Release carries the announcement to a thread that sees the take; Acquire on failure
            // keeps the loads in order.
            match word.compare_exchange(taken, taken + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let task = found::<T, M>(chunk.slots(), taken).read();
                    if taken + 1 == chunk.length() {
                        self.chunk = ptr::null();
                        unprotect(self.record(), CURRENT);
                        self.core.retire(self.record(), chunk);
                        self.exchanges += 2;
                    }
                    return Some(task);
                }
                Err(now) => taken = now,
            }
        }
    }

    #[cold]
    fn search(&mut self, from: usize) -> Option<T> {
        let core = Arc::clone(&self.core);
        let victim = core.consumers.get(from)?;
        victim.chunks().filter(|chunk| chunk.held_for(from) > 0).find_map(|chunk| {
            protect(self.record(), CURRENT, chunk);
            self.chunk = chunk;
            self.take_current(from)
        })
    }
}

impl<T: Send, M: Memory> Drop for SalsaCasConsumer<T, M> {
    fn drop(&mut self) {
        unprotect(self.record(), CURRENT);
        self.core.consumers.release(self.number);
        self.core.close_unused();
    }
}
