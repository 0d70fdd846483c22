//! What a thread has of another: it is made by it, waits for its end or for a word that it writes.

use super::{Machine, Op, mix};

impl Machine {
    #[inline]
    pub(crate) fn ended(&self, index: usize) -> bool {
        matches!(self.threads[index].pending, Op::Finished) && self.buffered(index) == 0
    }

    /// Thread `index` takes in all that thread `other` has done so far: it was made by it, or
    /// waited for its end. What passes between them then need not pass through a word.
    pub(crate) fn learn(&mut self, index: usize, other: usize) {
        if let Some(weak) = &mut self.weak {
            weak.learn(index, other);
        }
        let (hash, clock) = (self.threads[other].hash, self.threads[other].clock);
        let thread = &mut self.threads[index];
        thread.hash = mix(thread.hash, hash);
        for (mine, theirs) in thread.clock.iter_mut().zip(clock) {
            *mine = (*mine).max(theirs);
        }
    }

    /// Whether a step can be taken outside of any schedule, where no buffer holds anything.
    pub(crate) fn unblocked(&self, op: Op) -> bool {
        match op {
            Op::Await(loc, shift, _) => self.memory[loc as usize] >> shift == 0,
            Op::Join(other) => matches!(self.threads[other as usize].pending, Op::Finished),
            _ => true,
        }
    }
}
