//! The machine's state as a whole: outside of any schedule, when all is over, and as a fingerprint.

use super::{Machine, Op, mix};

impl Machine {
    /// A read or write outside of any schedule: of the set-up, of the final check, of a teardown.
    pub(crate) fn perform_directly(&mut self, op: Op) -> u64 {
        match op {
            Op::Load(loc) => self.memory[loc as usize],
            Op::Store(loc, value) => {
                self.write(loc, value);
                0
            }
            Op::Change(loc, change) | Op::Await(loc, _, change) => {
                let old = self.memory[loc as usize];
                let new = change.of(old).unwrap_or(old);
                self.write(loc, new);
                old
            }
            Op::Count(loc, owners) => {
                let (count, result) = owners.of(self.memory[loc as usize]);
                self.write(loc, count);
                result
            }
            _ => 0,
        }
    }

    pub(crate) fn drain_all(&mut self) {
        for index in 0..self.count {
            while self.buffered(index) > 0 {
                self.drain(index);
            }
        }
    }

    /// Takes note that a thread's operation returns; whether it has stores on their way, of which
    /// the last now stands for it.
    pub(crate) fn delays_operation(&mut self, index: usize) -> bool {
        let thread = &mut self.threads[index];
        let buffered = thread.log.len() > thread.head;
        match thread.log.last_mut() {
            Some(last) if buffered && last.operation == thread.operation => {
                last.flushes += 1;
                true
            }
            _ => false,
        }
    }

    /// Forgets what a thread has read. The number of operations that it has done and of words that
    /// it has made stay. So do, for the verdict on races and on freed memory, its clock and the
    /// times at which it used each word and cell.
    pub(crate) fn forget_reads(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        let place = u64::from(thread.operation) << 32 | thread.words as u64;
        thread.hash = mix(index as u64, place);
        if self.clocks {
            let clock = thread.clock.iter();
            thread.hash = clock.fold(thread.hash, |hash, time| mix(hash, u64::from(*time)));
            thread.hash = mix(thread.hash, thread.uses);
        }
        thread.reads.clear();
    }

    /// Whether a thread has stores on their way of an operation that has returned.
    pub(crate) fn has_undrained_operation(&self, index: usize) -> bool {
        self.buffer(index).iter().any(|entry| entry.flushes > 0)
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = self.memory_hash;
        if let Some(weak) = &self.weak {
            hash = mix(hash, self.weak_fingerprint(weak));
        }
        for thread in &self.threads[..self.count] {
            hash = mix(hash, thread.hash);
            for entry in &thread.log[thread.head..] {
                hash = mix(hash, u64::from(entry.loc) << 8 | u64::from(entry.flushes));
                hash = mix(hash, entry.value);
            }
            let settled = thread.stable.saturating_sub(thread.head);
            hash = mix(hash, (settled << 32 | (thread.log.len() - thread.head)) as u64);
            let waits = (thread.shifted as u64) << 2 | u64::from(thread.call_waits) << 1;
            hash = mix(hash, waits | u64::from(matches!(thread.pending, Op::Finished)));
            if matches!(thread.pending, Op::HeavyFinish) {
                for (other, target) in self.threads[..self.count].iter().zip(thread.targets) {
                    hash = mix(hash, (target as usize).saturating_sub(other.head) as u64);
                }
            }
        }
        hash
    }
}
