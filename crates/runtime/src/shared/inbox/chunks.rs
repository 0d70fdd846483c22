//! What has been put into an inbox and not been asked for: a queue in chunks, each of which is
//! handed over as it is.

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

    /// Exchanges `empty` for the oldest chunk. What was empty is freed, unless this was the last
    /// chunk: then it is the next.
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

    /// Room for how many elements there is.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.full.iter().map(VecDeque::capacity).sum::<usize>() + self.last.capacity()
    }
}
