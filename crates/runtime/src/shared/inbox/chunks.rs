//! Tasks that were put into an inbox and not asked for: a queue of chunks, each handed over as a
//! whole.

use std::collections::VecDeque;
use std::mem;

/// Elements of a chunk: 8 KiB of tasks.
pub(super) const CHUNK: usize = 128;

/// First in, first out.
pub(crate) struct Chunks<T> {
    /// All but the last.
    full: VecDeque<VecDeque<T>>,
    last: VecDeque<T>,
}

impl<T> Chunks<T> {
    pub(super) fn new() -> Chunks<T> {
        Chunks { full: VecDeque::new(), last: VecDeque::new() }
    }

    pub(super) fn push(&mut self, element: T) {
        if self.last.len() == CHUNK {
            let next = VecDeque::with_capacity(CHUNK);
            self.full.push_back(mem::replace(&mut self.last, next));
        }
        self.last.push_back(element);
    }

    /// Exchanges `empty` for the oldest chunk. `empty` is freed, unless this was the last chunk:
    /// then it is the next.
    pub(super) fn next(&mut self, empty: &mut VecDeque<T>) {
        let Some(chunk) = self.full.pop_front() else {
            return mem::swap(empty, &mut self.last);
        };
        *empty = chunk;
        if self.full.is_empty() {
            // A burst has made it larger.
            self.full = VecDeque::new();
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.full.iter().map(VecDeque::capacity).sum::<usize>() + self.last.capacity()
    }
}
