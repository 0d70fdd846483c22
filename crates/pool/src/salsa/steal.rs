//! A thief of SALSA: the theft of one chunk, lines 108-138. The argument is in the module above.

use core::ptr;

use poach_memory::{Memory, Ordering, Pointer, StoreLoad, Word};

use super::chunk::{Chunk, Term, read};
use super::core::{CURRENT, ConsumerRecord, Core, TARGET, is_protected, protect, unprotect};
use super::{Checks, SalsaConsumer};

impl<T: Send, M: Memory, F: StoreLoad<M>, C: Checks> SalsaConsumer<T, M, F, C> {
    /// The chunk to steal: the oldest with tasks but the one that the victim works on, or that one.
    /// The victim goes on undisturbed where there is another.
    fn choose(victim: &ConsumerRecord<T, M, F>, from: usize) -> Option<&Chunk<T, M>> {
        // Relaxed: a hint, compared and not followed.
        let busy = victim.hazards[CURRENT].load(Ordering::Relaxed);
        let mut second_best = None;
        for chunk in victim.chunks().filter(|chunk| chunk.held_for(from) > 0) {
            if !ptr::eq(chunk, busy) {
                return Some(chunk);
            }
            second_best = Some(chunk);
        }
        second_best
    }

    /// Whether `from`, who alone published what is taken in the term `old`, is not at the chunk, nor will be
    /// in that term: point 2 of the module comment. The term has ended by now.
    fn is_left_alone(
        victim: &ConsumerRecord<T, M, F>,
        chunk: &Chunk<T, M>,
        old: Term,
        from: usize,
    ) -> bool {
        if !old.is_settled_on(from) {
            return false;
        }
        // Pairs with the fence in `protect`.
        M::full();
        !(C::LOOK_FOR_OWNER && is_protected(victim, chunk))
    }

    /// Lines 108-138. Leaves hazard pointer [`TARGET`] set.
    #[cold]
    pub(super) fn steal_chunk(
        &mut self,
        victim: &ConsumerRecord<T, M, F>,
        core: &Core<T, M, F>,
        from: usize,
    ) -> Option<T> {
        let chunk = Self::choose(victim, from)?;
        if C::PROTECT_FIRST {
            protect(self.record(), TARGET, chunk);
        }
        // Acquire: what follows is read in this term or a later one.
        let old = Term(chunk.term().load(Ordering::Acquire));
        if old.owner() != from || from == self.number {
            return None;
        }
        // Lines 112-114.
        let before = chunk.taken_in(old)?;
        // Acquire pairs with the producer's Release.
        if chunk.filled().load(Ordering::Acquire) <= before {
            return None;
        }
        let mine = chunk.make_taken(self.number)?;
        if !C::PROTECT_FIRST {
            protect(self.record(), TARGET, chunk);
        }
        // Line 115: "make it stealable from my list".
        self.record().held.add(chunk)?;
        // Section 5.5: the victim's pool may become empty. To be made even again by `steal`.
        self.announce_move();
        // Line 116. AcqRel: releases the list's entry to whoever steals from here; acquires what
        // the victim did as the owner. Relaxed on failure: nothing is read then.
        let stolen = old.next(self.number, old.source());
        let stolen = if C::TAG { stolen } else { stolen.with_tag_of(old) };
        self.exchanges += 1;
        chunk.term().compare_exchange(old.0, stolen.0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        if !Self::is_left_alone(victim, chunk, old, from) {
            // Point 1 of the module comment. Whose stores count is who publishes in the word that counts.
            let fence = &core.consumers.get(old.source())?.fence;
            fence.thief();
            while fence.margin() > 0 && !fence.resolve() {
                // Not known yet what the victim took. Meanwhile the chunk can be stolen from here.
                if chunk.term().load(Ordering::Relaxed) != stolen.0 {
                    return None;
                }
                M::pause();
            }
        }
        // Line 119.
        let taken = chunk.taken_in(stolen)?;
        // Line 120: exhausted; whoever took the last slot returns the chunk.
        if taken == chunk.length() {
            return None;
        }
        // Line 123. Acquire pairs with the producer's Release.
        let filled = chunk.filled().load(Ordering::Acquire);
        let has_task = filled > taken;
        if has_task {
            // Point 4: `filled` was read before the term is looked at again.
            M::full();
            // Line 125.
            if C::RECHECK && taken != before && chunk.term().load(Ordering::Relaxed) != stolen.0 {
                return None;
            }
        }
        // Lines 128-131. Release, as in `take_task`; the exchange publishes it as the word that
        // counts. If it fails the chunk was stolen again, and the new thief goes by the old word.
        let next = taken + u64::from(has_task);
        // This consumer's may, by what comes now.
        self.announce_move();
        mine.store(next, Ordering::Release);
        self.exchanges += 1;
        let settled = stolen.settled();
        let is_mine = chunk
            .term()
            .compare_exchange(stolen.0, settled.0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        // Line 133.
        if !has_task {
            return None;
        }
        // Line 134.
        self.exchanges += 1;
        let task = chunk.claim(taken).then(|| read::<T, M>(chunk.slots(), taken));
        if next == chunk.length() {
            // Line 135, but only for the consumer that has the last task.
            if task.is_some() {
                unprotect(self.record(), TARGET);
                self.core.retire(self.record(), chunk);
                self.exchanges += 2;
            }
        } else if is_mine {
            // Line 136. `CURRENT` is set before `TARGET` is cleared, and the chunk protected
            // throughout.
            protect(self.record(), CURRENT, chunk);
            self.make_current(chunk, settled);
        }
        task
    }
}
