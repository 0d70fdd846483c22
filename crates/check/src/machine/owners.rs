//! Counts of owners, as those of an `Arc`: all that an owner is told is whether it was the last.
//!
//! So the order of increases and decreases is no choice, but for the last two decreases, and where
//! a thread asks for the count. On x86 such a step is a locked instruction, which waits for the
//! thread's buffer to be empty. In weak memory one message stands for all: it has what all owners
//! that have gone released, in any order.

use super::{Footprint, Loc, MAX_THREADS, Machine, Owners, mix};

impl Owners {
    pub(super) fn of(self, count: u64) -> (u64, u64) {
        match self {
            Owners::More => (count + 1, 0),
            Owners::Fewer | Owners::FewerUnnoticed => (count - 1, u64::from(count == 1)),
            Owners::Look => (count, count),
            Owners::MoreIfAny if count == 0 => (0, 0),
            Owners::MoreIfAny => (count + 1, 1),
        }
    }

    fn looks(self) -> bool {
        matches!(self, Owners::Look | Owners::MoreIfAny)
    }
}

impl Machine {
    pub(super) fn count_footprint(&self, loc: Loc, owners: Owners, base: Footprint) -> Footprint {
        match owners {
            Owners::More | Owners::FewerUnnoticed => {
                Footprint { counts: Some((loc, false)), ..base }
            }
            // With three owners left, neither of two decreases is the last, in either order.
            Owners::Fewer => {
                Footprint { counts: Some((loc, self.memory[loc as usize] < 3)), ..base }
            }
            Owners::Look => Footprint { loc: Some(loc), ..base },
            Owners::MoreIfAny => Footprint { loc: Some(loc), writes: true, ..base },
        }
    }

    pub(super) fn count(&mut self, index: usize, loc: Loc, owners: Owners) -> u64 {
        // A step that looks counts as a write: only such a step notices the steps of the others.
        self.touch(index, loc, owners.looks());
        self.use_word(index, loc);
        let (count, result) = owners.of(self.memory[loc as usize]);
        self.write(loc, count);
        let releases = matches!(owners, Owners::Fewer | Owners::FewerUnnoticed);
        let acquires = owners.looks() || releases && count == 0;
        if self.weak.is_some() {
            self.count_weakly(index, loc, count, releases, acquires);
        } else if self.clocks {
            self.count_strongly(index, loc, releases, acquires);
        }
        result
    }

    fn count_strongly(&mut self, index: usize, loc: Loc, releases: bool, acquires: bool) {
        let (thread, word) = (&mut self.threads[index], loc as usize);
        if releases {
            let (before, past) = (self.versions[word], mix(index as u64, thread.hash));
            // A sum, which is the same in every order.
            self.versions[word] = before.wrapping_add(past);
            let key = !u64::from(loc);
            self.memory_hash ^= mix(key, before) ^ mix(key, self.versions[word]);
            for time in 0..MAX_THREADS {
                let known = &mut self.memory_clocks[word][time];
                *known = (*known).max(thread.clock[time]);
            }
            thread.clock[index] += 1;
        }
        if acquires {
            self.join(index, loc);
        }
    }
}
