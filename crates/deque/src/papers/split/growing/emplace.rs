//! Pushing a task that is made in its slot, and popping a task that is taken apart there.
//!
//! Suppose that only the first words of a task matter (a small closure in room for a large one). It
//! is cheap to make and dear to move: all of it is copied, and the copy waits for the stores that
//! made it.

use core::mem::MaybeUninit;

use poach_memory::Memory;

use super::{Context, Split, SplitRequest, Storage};

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> Split<T, M, C, S> {
    /// Pushes the task that `write` makes of `value` in the places that it is given.
    ///
    /// Wait-free. Never makes room: if there is none at hand (once in a while, until a
    /// [`push`](crate::Owner::push) has made some) it does nothing and gives `value` back.
    ///
    /// ```
    /// use poach_deque::Split;
    ///
    /// let queue: Split<[u64; 8]> = Split::new();
    /// // SAFETY: a whole task is written.
    /// let pushed = unsafe { queue.push_in_place(7, |task, _, n| task.write([n; 8])) };
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
    /// `write` leaves a task in the places of its head and its rest, as the [`Storage`] would have
    /// written it, if it returns, and does not use this queue.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn push_in_place<V>(
        &self,
        value: V,
        write: impl FnOnce(*mut S::Head, *mut S::Rest, V),
    ) -> Result<(), V> {
        let (shared, buffer) = self.owned();
        let head = shared.head();
        if !buffer.has(head) {
            return Err(value);
        }
        // SAFETY: the slot of `head` is free, since no task is above it; `shared` keeps the rings;
        // and `write` leaves a task there.
        unsafe { buffer.write_with(head, |head, rest| write(head, rest, value)) };
        let next = head.wrapping_add(1);
        shared.set_head(next);
        if !shared.undisturbed(next) {
            self.answer();
        }
        Ok(())
    }

    /// Pops the task that was pushed last, if there is one, by `take`, which is given the places
    /// where it is.
    ///
    /// As [`pop`](crate::Owner::pop) in all else. Only on a memory whose cells do not mind that the
    /// places are used after they have shown them: the real one.
    ///
    /// # Safety
    ///
    /// `take` moves the task out, and before it has done that it does not use this queue.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn pop_in_place<R>(
        &self,
        take: impl FnOnce(*mut S::Head, *mut S::Rest) -> R,
    ) -> Option<R> {
        let (shared, buffer) = self.owned();
        let head = shared.head();
        let index = head.wrapping_sub(1);
        shared.set_head(index);
        if !shared.undisturbed(head) {
            let task = self.pop_disturbed(index)?;
            let (mut head, mut rest) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            // SAFETY: there is a free slot.
            unsafe { S::write(task, head.as_mut_ptr(), rest.as_mut_ptr()) };
            return Some(take(head.as_mut_ptr(), rest.as_mut_ptr()));
        }
        // SAFETY: as in `pop`, and the caller's promise.
        Some(unsafe { buffer.read_with(index, take) })
    }

    /// Pops one task after the other, each by `take`, as [`pop_in_place`](Split::pop_in_place)
    /// does. It goes on while `take` returns true, no thief has asked, and a private task is left;
    /// a pop does the rest.
    ///
    /// # Safety
    ///
    /// As [`pop_in_place`](Split::pop_in_place).
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn pop_each_in_place(
        &self,
        mut take: impl FnMut(*mut S::Head, *mut S::Rest) -> bool,
    ) {
        let (shared, buffer) = self.owned();
        let mut wants_more = true;
        while wants_more {
            let head = shared.head();
            let index = head.wrapping_sub(1);
            shared.set_head(index);
            if !shared.undisturbed(head) {
                self.put_back(head);
                return;
            }
            // SAFETY: as in `pop_in_place`.
            wants_more = unsafe { buffer.read_with(index, &mut take) };
        }
    }

    /// The end of a pop that has left the head below `head` and takes nothing: the next pop begins
    /// anew. For thieves it is a push.
    #[cold]
    #[inline(never)]
    fn put_back(&self, head: u64) {
        // U1.
        self.shared.set_head(head);
        // U2: pairs with the heavy fence of a thief.
        M::light();
        // U3. At the split, without a request, there is nothing to do: no private task was made
        // invisible.
        if self.shared.request.is_asked() {
            self.answer();
        }
    }
}
