//! What only a queue's owner touches, in the part of the queue that it shares with thieves.
//!
//! An owner's handle that is just a pointer can stay in a register. A compiler must read cells of a
//! handle again after a store that other threads may see. So the owner finds all it needs from one
//! address, and it keeps no copy of its own of an index that it publishes anyway. Half of an
//! owner's stores were such copies, and its operations waited for stores.
//!
//! What such cells gave an owner for nothing, it must say: that no two threads have it.
//!
//! ```compile_fail
//! fn shared<T: Sync>(_: T) {}
//! shared(poach_deque::Split::<u32>::new());
//! ```
//!
//! ```compile_fail
//! fn shared<T: Sync>(_: T) {}
//! shared(poach_deque::ChaseLev::<u32>::default());
//! ```
//!
//! ```compile_fail
//! fn shared<T: Sync>(_: T) {}
//! shared(poach_deque::The::<u32, _>::with_policy(poach_memory::Full));
//! ```
//!
//! ```compile_fail
//! fn shared<T: Sync>(_: T) {}
//! shared(poach_deque::Thep::<u32, _>::with_policy(poach_memory::Full));
//! ```

/// For the owner only.
pub(crate) struct Owned<T>(T);

// SAFETY: a shared reference to this gives nothing away but by `get`, whose callers are one thread
// at a time.
unsafe impl<T: Send> Sync for Owned<T> {}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Owned(value)
    }

    /// # Safety
    ///
    /// The caller has the owner's handle, which is not `Sync`, and keeps the reference no longer.
    #[inline(always)]
    pub(crate) unsafe fn get(&self) -> &T {
        &self.0
    }
}
