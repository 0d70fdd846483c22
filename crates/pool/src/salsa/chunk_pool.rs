//! The paper's chunk pools (section 5.4): free chunks, one stack for each consumer, which alone
//! pushes: it *retires* a chunk whose last task it took. Any producer may pop.
//!
//! # Why no chunk is popped twice
//!
//! The usual danger of a stack: a popper reads the topmost chunk and the next one, and stops. Later
//! the same chunk is topmost again, above another chunk. The popper's exchange then succeeds and
//! puts a chunk that is in use on the stack. Here the chunk cannot be topmost *again*:
//!
//! | | a popper | | who retires the chunk |
//! |---|---|---|---|
//! | a1 | reads the topmost chunk | b1 | ends the chunk's term |
//! | a2 | puts its hazard pointer on it | b2 | a full fence |
//! | a3 | a full fence | b3 | looks for hazard pointers on it, consumers' and producers' |
//! | a4 | reads that it is still the topmost | b4 | if there are none, pushes it |
//! | a5 | reads the one below, and exchanges | | |
//!
//! A chunk that a4 saw was on the stack then. So if it is popped, its next life begins after a4.
//! The retirement at the end of that life comes after the fence a3, so b3 sees the hazard pointer,
//! and the chunk is not pushed before the pointer has moved. So if the exchange finds it topmost,
//! it has been on the stack since a4, and the chunk below it is still the same. No tag that could
//! wrap is needed. **Without the hazard pointer** a chunk in use is begun a second time, and its
//! tasks are lost: a model finds it (`salsa-pops-unprotected` among the mutants).
//!
//! Lock-free: a popper retries only if another has popped or a chunk was pushed. One fence a chunk.

use core::ptr;

use poach_memory::{Memory, Ordering, Pointer, Word};

use super::chunk::{Chunk, Term};
use super::core::{ConsumerRecord, Core, ProducerRecord, is_protected};

impl<T: Send, M: Memory, F: Send + Sync> Core<T, M, F> {
    /// A free chunk of `record`'s, if there is one. `popper` is the record of the calling producer.
    pub(super) fn pop_free(
        &self,
        record: &ConsumerRecord<T, M, F>,
        popper: &ProducerRecord<T, M>,
    ) -> Option<&Chunk<T, M>> {
        // Relaxed: read again below.
        let mut head = record.free.load(Ordering::Relaxed);
        if head == 0 {
            return None;
        }
        let popped = loop {
            let Some(chunk) = (head as usize).checked_sub(1).and_then(|n| self.chunks.get(n))
            else {
                break None;
            };
            // Relaxed: ordered before a4 by the fence.
            popper.popping.store(ptr::from_ref(chunk).cast_mut(), Ordering::Relaxed);
            // a3. Pairs with b2 in `retire`.
            M::full();
            // Acquire pairs with `push_free`: the chunk was reset, and its `next` written.
            let now = record.free.load(Ordering::Acquire);
            if now != head {
                head = now;
                continue;
            }
            // Relaxed: acquired with the head.
            let next = chunk.next.load(Ordering::Relaxed);
            // AcqRel: keeps the chunks below visible to who pops them.
            match record.free.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break Some(chunk),
                Err(now) => head = now,
            }
        };
        // Release pairs with the Acquire in `retire`: this popper's reading of `next` is over.
        popper.popping.store(ptr::null_mut(), Ordering::Release);
        popped
    }

    /// b4. Only `record`'s consumer may call this, with a chunk without an owner.
    fn push_free(record: &ConsumerRecord<T, M, F>, chunk: &Chunk<T, M>) {
        let mut head = record.free.load(Ordering::Relaxed);
        loop {
            chunk.next.store(head, Ordering::Relaxed);
            let new = chunk.number as u64 + 1;
            // AcqRel: releases the reset chunk, and keeps those below it visible through it.
            match record.free.compare_exchange(head, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Retires a chunk whose last task the caller took (line 101): moves it to `record`'s chunk
    /// pool once no hazard pointer is on it. Only `record`'s consumer may call this, once for each
    /// life of a chunk; it must have no hazard pointer on it itself.
    #[cold]
    pub(super) fn retire(&self, record: &ConsumerRecord<T, M, F>, chunk: &Chunk<T, M>) {
        let mut term = Term(chunk.term().load(Ordering::Relaxed));
        // A thief may still win the chunk, and then finds it exhausted; at most once each. Release:
        // a thread that sees the end of the term sees what was announced before the last take.
        while let Err(now) = chunk.term().compare_exchange(
            term.0,
            term.ended().0,
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            term = Term(now);
        }
        // Relaxed on `retired` and `next` throughout: this consumer's own list.
        chunk.next.store(record.retired.load(Ordering::Relaxed), Ordering::Relaxed);
        record.retired.store(chunk.number as u64 + 1, Ordering::Relaxed);
        // b2. Pairs with the fence in `protect`: a consumer whose hazard pointer the scan does not
        // see will see that the term has ended. Also pairs with a3.
        M::full();
        let mut next = record.retired.swap(0, Ordering::Relaxed);
        while let Some(chunk) = (next as usize).checked_sub(1).and_then(|n| self.chunks.get(n)) {
            next = chunk.next.load(Ordering::Relaxed);
            if self.is_used(chunk) {
                chunk.next.store(record.retired.load(Ordering::Relaxed), Ordering::Relaxed);
                record.retired.store(chunk.number as u64 + 1, Ordering::Relaxed);
            } else {
                chunk.reset();
                Self::push_free(record, chunk);
            }
        }
    }

    /// b3. Whether a hazard pointer is on a chunk whose term has ended.
    fn is_used(&self, chunk: &Chunk<T, M>) -> bool {
        self.consumers.iter().any(|other| is_protected(other, chunk))
            // Acquire pairs with the Release in `pop_free`.
            || self.producers.iter().any(|other| {
                ptr::eq(other.popping.load(Ordering::Acquire), chunk)
            })
    }
}

#[cfg(all(test, not(miri)))]
mod models {
    use std::sync::Arc;

    use crate::models::clean;
    use poach_check::{Kind, Simulated, Threads, fail};

    use super::super::Salsa;
    use super::*;
    use crate::mechanism::{Consume, Mechanism, Produce};

    type Pools = Salsa<u32, Simulated>;

    fn chunk(pools: &Pools) -> (&Chunk<u32, Simulated>, &<Simulated as Memory>::Word) {
        let chunk = pools.core.chunks.get(0).expect("it was filled");
        (chunk, chunk.taken(0).expect("it is one of the first"))
    }

    /// The chunk has a life between a producer's read of the head and its hazard pointer.
    #[test]
    fn who_sees_that_a_chunks_next_life_has_begun_sees_the_chunk_reset() {
        let model = |threads: &mut Threads| {
            let pools = Arc::new(Pools::new(1).expect("memory"));
            let [mut producer, another] = [(); 2].map(|()| pools.producer().expect("memory"));
            let mut owner = pools.consumer().expect("memory");
            assert!(producer.produce_force(0, 1).is_ok());
            assert_eq!(owner.consume(), Some(1));
            let ended = Term(chunk(&pools).0.term().load(Ordering::Relaxed));
            let second = ended.next(0, 0);
            let third = second.ended().next(0, 0);
            let (lives, number) = (Arc::clone(&pools), another.number());
            threads.spawn("others", move || {
                let core = &lives.core;
                let record = core.consumers.get(0).expect("it is there");
                let mine = core.producers.get(number).expect("it is there");
                if let Some(chunk) = core.pop_free(record, mine) {
                    chunk.term().store(second.0, Ordering::Release);
                    chunk.filled().store(1, Ordering::Release);
                    chunk.taken(0).expect("as above").store(1, Ordering::Release);
                    core.retire(record, chunk);
                }
            });
            threads.spawn("producer", move || assert!(producer.produce_force(0, 2).is_ok()));
            let looks = Arc::clone(&pools);
            threads.spawn("looker", move || {
                let (chunk, taken) = chunk(&looks);
                // Acquire, as in each user of a chunk. Relaxed: known by the term.
                if chunk.term().load(Ordering::Acquire) == third.0
                    && taken.load(Ordering::Relaxed) != 0
                {
                    fail(Kind::Lost, "what was taken in the last life counts in the next");
                }
            });
            threads.finally(move || drop((pools, another, owner)));
        };
        clean(model);
    }
}
