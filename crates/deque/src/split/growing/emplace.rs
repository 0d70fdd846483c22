//! Pushing a task that is made in its slot.
//!
//! A task of which only the first words matter (a small closure in room for a large one) is cheap to make
//! and dear to move: moved, all of it is copied, and the copy waits for the stores that made it.

use poach_memory::Memory;

use super::{Context, Split};

impl<T: Send, M: Memory, C: Context + Send> Split<T, M, C> {
    /// Pushes the task that `write` makes of `value` in the place that it is given.
    ///
    /// Wait-free. Never makes room: if there is none at hand (once in a while, until a
    /// [`push`](crate::Owner::push) has made some) it does nothing and gives `value` back.
    ///
    /// ```
    /// use poach_deque::{Owner, Split};
    ///
    /// let queue: Split<[u64; 8]> = Split::new();
    /// // SAFETY: a whole task is written.
    /// let pushed = unsafe { queue.push_in_place(7, |place, n| place.write([n; 8])) };
    /// assert_eq!(pushed, Ok(()));
    /// assert_eq!(queue.pop(), Some([7; 8]));
    /// ```
    ///
    /// # Errors
    ///
    /// `value`, if there is no room at hand.
    ///
    /// # Safety
    ///
    /// `write` leaves a `T` in the place, if it returns, and does not use this queue.
    #[inline(always)]
    pub unsafe fn push_in_place<V>(
        &self,
        value: V,
        write: impl FnOnce(*mut T, V),
    ) -> Result<(), V> {
        let head = self.head.get();
        if !self.room.has(head) {
            return Err(value);
        }
        // SAFETY: there is room at `head`, above which there is no task; `shared` keeps the rings; and
        // `write` leaves a task there.
        unsafe { self.room.write_with(head, |place| write(place, value)) };
        let next = head.wrapping_add(1);
        self.head.set(next);
        if !self.undisturbed(next) {
            self.share();
        }
        Ok(())
    }
}
