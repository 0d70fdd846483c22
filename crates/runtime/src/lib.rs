//! Fork-join task parallelism on the split deque.
