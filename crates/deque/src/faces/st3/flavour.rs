//! What the two flavours have in common: their handles, over a queue, a claim of its oldest tasks,
//! and what the owner does before it claims itself.

macro_rules! flavour {
    ($end:literal) => {
        use core::fmt;
        use core::iter::FusedIterator;
        use core::panic::{RefUnwindSafe, UnwindSafe};
        use std::sync::Arc;

        use super::{Draining, StealError};
        use crate::owners_end::OwnersEnd as _;

        #[doc = concat!("A worker's queue of fixed capacity, which pops the ", $end, " task.")]
        ///
        /// One thread at a time; push and pop are lock-free.
        pub struct Worker<T> {
            queue: Queue<T>,
            stealer: Stealer<T>,
        }

        impl<T> Worker<T> {
            /// An empty queue for `min_capacity` tasks, rounded up to a power of two.
            ///
            /// # Panics
            ///
            /// If the capacity is above 2^30.
            pub fn new(min_capacity: usize) -> Self {
                let queue = queue(min_capacity);
                let thief = queue.thief();
                Worker { queue, stealer: Stealer { thief, draining: Arc::default() } }
            }

            /// A handle for thieves.
            pub fn stealer(&self) -> Stealer<T> {
                self.stealer.clone()
            }

            /// The same, borrowed: to compare it with another.
            pub fn stealer_ref(&self) -> &Stealer<T> {
                &self.stealer
            }

            /// How many tasks there is room for.
            pub fn capacity(&self) -> usize {
                self.queue.capacity()
            }

            /// How many more tasks fit, at least. A thief at work may make it more at once.
            pub fn spare_capacity(&self) -> usize {
                self.queue.free()
            }

            /// Whether there is no task.
            pub fn is_empty(&self) -> bool {
                self.queue.is_empty()
            }

            /// Adds a task.
            ///
            /// # Errors
            ///
            /// The task, if there is no room.
            #[inline]
            pub fn push(&self, task: T) -> Result<(), T> {
                self.queue.push_within(task)
            }

            /// Adds tasks, as many as there is room for. No more are taken from the iterator than
            /// that.
            #[inline]
            pub fn extend<I: IntoIterator<Item = T>>(&self, tasks: I) {
                self.queue.extend_within(tasks.into_iter());
            }

            #[doc = concat!("Takes the ", $end, " task.")]
            #[inline]
            pub fn pop(&self) -> Option<T> {
                self.queue.pop()
            }

            /// Takes the oldest tasks, as many as `count_fn` says of their number or fewer, as an
            /// iterator. Until it has given out the last of them or is dropped, steals are
            /// [`Busy`](StealError::Busy); what it has left is dropped with it. If it is leaked
            /// they remain so.
            ///
            /// # Errors
            ///
            /// [`StealError`], if there is none.
            pub fn drain<C>(&self, mut count_fn: C) -> Result<Drain<'_, T>, StealError>
            where
                C: FnMut(usize) -> usize,
            {
                let Stealer { thief, draining } = &self.stealer;
                if draining.is_set() {
                    return Err(StealError::Busy);
                }
                before_drain(&self.queue);
                let claimed = claim(thief, &mut count_fn)?;
                draining.set(true);
                Ok(Drain { claimed: Some(claimed), draining })
            }
        }

        impl<T> UnwindSafe for Worker<T> {}
        impl<T> RefUnwindSafe for Worker<T> {}

        impl<T> fmt::Debug for Worker<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Worker").field("len", &self.queue.len()).finish_non_exhaustive()
            }
        }

        /// Tasks that a worker has taken from the thieves' end of its queue, the oldest first.
        pub struct Drain<'a, T> {
            claimed: Option<Claimed<'a, T, Machine>>,
            draining: &'a Draining,
        }

        /// What is left is dropped, and the slots are free; then thieves may come.
        #[cold]
        #[inline(never)]
        fn end<T>(claimed: Claimed<'_, T, Machine>, draining: &Draining) {
            /// Thieves may come even if a destructor panics.
            struct Last<'a>(&'a Draining);
            impl Drop for Last<'_> {
                fn drop(&mut self) {
                    self.0.set(false);
                }
            }
            let _last = Last(draining);
            drop(claimed);
        }

        impl<T> Iterator for Drain<'_, T> {
            type Item = T;

            #[inline]
            fn next(&mut self) -> Option<T> {
                let claimed = self.claimed.as_mut()?;
                let task = claimed.next();
                if claimed.size_hint().0 == 0 {
                    if let Some(claimed) = self.claimed.take() {
                        end(claimed, self.draining);
                    }
                }
                task
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.claimed.as_ref().map_or((0, Some(0)), Iterator::size_hint)
            }
        }

        impl<T> ExactSizeIterator for Drain<'_, T> {}
        impl<T> FusedIterator for Drain<'_, T> {}

        impl<T> Drop for Drain<'_, T> {
            #[inline]
            fn drop(&mut self) {
                if let Some(claimed) = self.claimed.take() {
                    end(claimed, self.draining);
                }
            }
        }

        // SAFETY: a claim is a thief's right to some tasks, and any thread may be a thief; it is
        // used by one at a time, since `next` takes it by a mutable reference.
        unsafe impl<T: Send> Send for Drain<'_, T> {}
        // SAFETY: with a shared reference nothing can be done but ask for the number of the tasks.
        unsafe impl<T: Send> Sync for Drain<'_, T> {}
        impl<T> UnwindSafe for Drain<'_, T> {}
        impl<T> RefUnwindSafe for Drain<'_, T> {}

        impl<T> fmt::Debug for Drain<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Drain").field("len", &self.size_hint().0).finish_non_exhaustive()
            }
        }

        /// A thief's handle to a [`Worker`]'s queue. Any thread; lock-free; may outlive the worker.
        pub struct Stealer<T> {
            thief: Thief<T>,
            /// Of the queue.
            draining: Arc<Draining>,
        }

        impl<T> Stealer<T> {
            /// Moves the oldest tasks to another worker, as many as `count_fn` says of their
            /// number, or fewer if it has no room for them or some are gone: how many were
            /// moved.
            ///
            /// # Errors
            ///
            /// [`StealError`], if there was none.
            // Inlined, as the original is, except for the steal itself. Its answer comes in two
            // registers. An answer in memory, of which a vain attempt writes two bytes, would be
            // read again by words, which have to wait for the bytes.
            #[inline]
            pub fn steal<C>(&self, dest: &Worker<T>, mut count_fn: C) -> Result<usize, StealError>
            where
                C: FnMut(usize) -> usize,
            {
                self.look()?;
                match self.steal_some(dest, |count| dest.queue.free_up_to(count_fn(count))) {
                    (None, count) => Ok(count),
                    (Some(error), _) => Err(error),
                }
            }

            /// As [`steal`](Stealer::steal), but the youngest of those tasks is returned, with the
            /// number of the others, which are moved.
            ///
            /// # Errors
            ///
            /// [`StealError`], if there was none. No room for the others is no error.
            #[inline(never)]
            pub fn steal_and_pop<C>(
                &self,
                dest: &Worker<T>,
                mut count_fn: C,
            ) -> Result<(T, usize), StealError>
            where
                C: FnMut(usize) -> usize,
            {
                self.look()?;
                self.steal_some_and_pop(dest, |count| {
                    let wanted = count_fn(count);
                    wanted.min(dest.queue.free_up_to(wanted.saturating_sub(1)) + 1)
                })
            }

            /// Whether there is anything to steal: all that an attempt in vain executes.
            #[inline(always)]
            fn look(&self) -> Result<(), StealError> {
                if self.draining.is_set() { Err(StealError::Busy) } else { look(&self.thief) }
            }

            // There are free slots: only the thread that has `dest` makes less of them, and it has
            // asked after `count_fn` ran.

            #[inline(never)]
            fn steal_some(
                &self,
                dest: &Worker<T>,
                want: impl FnOnce(usize) -> usize,
            ) -> (Option<StealError>, usize) {
                match claim(&self.thief, want) {
                    Ok(mut claimed) => {
                        let count = claimed.size_hint().0;
                        dest.queue.push_all(count, &mut claimed);
                        (None, count)
                    }
                    Err(error) => (Some(error), 0),
                }
            }

            #[inline(never)]
            fn steal_some_and_pop(
                &self,
                dest: &Worker<T>,
                want: impl FnOnce(usize) -> usize,
            ) -> Result<(T, usize), StealError> {
                let mut claimed = claim(&self.thief, want)?;
                let others = claimed.size_hint().0 - 1;
                dest.queue.push_all(others, &mut claimed);
                claimed.next().map(|last| (last, others)).ok_or(StealError::Empty)
            }
        }

        impl<T> Clone for Stealer<T> {
            fn clone(&self) -> Self {
                Stealer { thief: self.thief.clone(), draining: Arc::clone(&self.draining) }
            }
        }

        /// Whether they are of one queue.
        impl<T> PartialEq for Stealer<T> {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.draining, &other.draining)
            }
        }

        impl<T> Eq for Stealer<T> {}
        impl<T> UnwindSafe for Stealer<T> {}
        impl<T> RefUnwindSafe for Stealer<T> {}

        impl<T> fmt::Debug for Stealer<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let len = self.thief.len();
                f.debug_struct("Stealer").field("len", &len).finish_non_exhaustive()
            }
        }
    };
}

pub(super) use flavour;
