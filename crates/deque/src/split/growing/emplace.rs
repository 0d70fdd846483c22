//! Pushing a task that is made in its slot, and popping one that is taken apart there.
//!
//! A task of which only the first words matter (a small closure in room for a large one) is cheap to make
//! and dear to move: moved, all of it is copied, and the copy waits for the stores that made it.

use core::mem::ManuallyDrop;

use poach_memory::Memory;

use super::{Context, Private, Split};

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
        let Private { head: top, room, .. } = self.private();
        let head = top.get();
        if !room.has(head) {
            return Err(value);
        }
        // SAFETY: there is room at `head`, above which there is no task; `shared` keeps the rings; and
        // `write` leaves a task there.
        unsafe { room.write_with(head, |place| write(place, value)) };
        let next = head.wrapping_add(1);
        top.set(next);
        if !self.undisturbed(next) {
            self.share();
        }
        Ok(())
    }

    /// Pops the task that was pushed last, if there is one, by `take`, which is given the place where it is.
    ///
    /// As [`pop`](crate::Owner::pop) in all else. Only on a memory whose cells do not mind that the place is
    /// used after they have shown it: the real one.
    ///
    /// # Safety
    ///
    /// `take` moves the task out, and before it has done that it does not use this queue.
    #[inline(always)]
    pub unsafe fn pop_in_place<R>(&self, take: impl FnOnce(*mut T) -> R) -> Option<R> {
        let Private { head, room, .. } = self.private();
        if !self.undisturbed(head.get()) {
            let mut task = ManuallyDrop::new(self.pop_disturbed()?);
            return Some(take(&raw mut *task));
        }
        let index = head.get().wrapping_sub(1);
        head.set(index);
        // SAFETY: `bottom <= index < head`: a task, and no thief can claim it; and the caller's promise.
        Some(unsafe { room.read_with(index, take) })
    }
}
