//! The words of an execution, and the numbers that stand for addresses in it.

use super::{Loc, MAX_THREADS, MAX_WORDS, Machine, SETUP, mix};

impl Machine {
    /// A new word, made by thread `creator` or by the set-up; `None` if it has made too many.
    pub(crate) fn new_word(&mut self, creator: Option<usize>, value: u64) -> Option<Loc> {
        let (arena, used) = match creator {
            Some(thread) => (thread + 1, &mut self.threads[thread].words),
            None => (SETUP, &mut self.setup_words),
        };
        if *used == MAX_WORDS {
            return None;
        }
        let loc = (arena * MAX_WORDS + *used) as Loc;
        *used += 1;
        self.memory[loc as usize] = value;
        self.memory_hash ^= mix(u64::from(loc), value);
        if let (Some(weak), Some(thread)) = (&mut self.weak, creator) {
            let time = self.threads[thread].clock[thread];
            weak.add_word(loc, value, Some((thread, time)));
        }
        if self.clocks {
            self.register.begins(loc);
            self.versions[loc as usize] = 0;
            // A thread learns of a word through another word, or from its creator.
            self.memory_clocks[loc as usize] = [0; MAX_THREADS];
        }
        Some(loc)
    }

    /// A word may be used by threads that have not heard of its making.
    pub(crate) fn is_common(&mut self, loc: Loc) {
        // What the set-up makes is entered when that is over.
        if let Some(weak) = self.weak.as_mut().filter(|_| self.count > 0) {
            weak.is_common(loc);
        }
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = (Loc, u64)> + '_ {
        let threads = self.threads[..self.count].iter().map(|thread| thread.words);
        std::iter::once(self.setup_words).chain(threads).enumerate().flat_map(
            move |(arena, used)| {
                (0..used).map(move |number| {
                    let loc = arena * MAX_WORDS + number;
                    (loc as Loc, self.memory[loc])
                })
            },
        )
    }

    /// The number that stands for an address in this execution. The same object has the same number
    /// in every execution in which the threads have come equally far, wherever it was allocated.
    pub(crate) fn number_of(&mut self, address: u64, maker: Option<usize>) -> u64 {
        if address == 0 {
            return 0;
        }
        if let Some(&(number, _)) = self.addresses.iter().find(|(_, known)| *known == address) {
            return number;
        }
        let identity = match maker {
            // A pointer's constructor takes no step, but it makes a word: together the two tell
            // apart whatever one thread publishes.
            Some(thread) => {
                let maker = &self.threads[thread];
                mix(maker.hash, (maker.words * MAX_THREADS + thread + 1) as u64)
            }
            None => mix(self.addresses.len() as u64, 0),
        };
        // Two addresses that one thread names in one step are two objects.
        let mut number = identity | 1;
        while self.addresses.iter().any(|(known, _)| *known == number) {
            number = mix(number, 0) | 1;
        }
        self.addresses.push((number, address));
        number
    }

    pub(crate) fn address_of(&self, number: u64) -> u64 {
        self.addresses.iter().find(|(known, _)| *known == number).map_or(0, |(_, address)| *address)
    }

    pub(crate) fn is_address(&self, value: u64) -> Option<usize> {
        self.addresses.iter().position(|(number, _)| *number == value)
    }
}
