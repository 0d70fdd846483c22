//! What the two flavours have in common: their handles, over a queue, a claim of its oldest tasks, and what the owner does before
//! it claims itself.

macro_rules! flavour {
    ($end:literal) => {
        use std::sync::Arc;

        use core::fmt;
        use core::iter::FusedIterator;
        use core::panic::{RefUnwindSafe, UnwindSafe};

        use super::{Draining, StealError};

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
                let shared = Shared { thief: queue.thief(), draining: Draining::new() };
                Worker { queue, stealer: Stealer { shared: Arc::new(shared) } }
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

            /// How many tasks can be pushed. A thief that is at work may make it more at once.
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

            /// Adds tasks, as many as there is room for. No more are taken from the iterator than that.
            pub fn extend<I: IntoIterator<Item = T>>(&self, tasks: I) {
                let mut tasks = tasks.into_iter();
                loop {
                    let room = self.spare_capacity();
                    if room == 0 {
                        return;
                    }
                    for _ in 0..room {
                        let Some(task) = tasks.next() else { return };
                        // There is room, unless the iterator itself has filled the queue: then the task is dropped.
                        drop(self.push(task));
                    }
                }
            }

            #[doc = concat!("Takes the ", $end, " task.")]
            #[inline]
            pub fn pop(&self) -> Option<T> {
                self.queue.pop()
            }

            /// Takes the oldest tasks, as many as `count_fn` says of their number or fewer, as an iterator. Until it has given
            /// out the last of them or is dropped, steals are [`Busy`](StealError::Busy); what it has left is dropped with it.
            /// If it is leaked they remain so.
            ///
            /// # Errors
            ///
            /// [`StealError`], if there is none.
            pub fn drain<C>(&self, mut count_fn: C) -> Result<Drain<'_, T>, StealError>
            where
                C: FnMut(usize) -> usize,
            {
                let Shared { thief, draining } = &*self.stealer.shared;
                if draining.get() {
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

        impl<T> Drain<'_, T> {
            /// What is left is dropped, and the slots are free; then thieves may come.
            fn end(&mut self) {
                /// Thieves may come even if a destructor panics.
                struct Last<'a>(&'a Draining);
                impl Drop for Last<'_> {
                    fn drop(&mut self) {
                        self.0.set(false);
                    }
                }
                if let Some(claimed) = self.claimed.take() {
                    let _last = Last(self.draining);
                    drop(claimed);
                }
            }
        }

        impl<T> Iterator for Drain<'_, T> {
            type Item = T;

            fn next(&mut self) -> Option<T> {
                let claimed = self.claimed.as_mut()?;
                let task = claimed.next();
                if claimed.size_hint().0 == 0 {
                    self.end();
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
            fn drop(&mut self) {
                self.end();
            }
        }

        // SAFETY: a claim is a thief's right to some tasks, and any thread may be a thief; it is used by one at a time, since
        // `next` takes it by a mutable reference.
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

        struct Shared<T> {
            thief: Thief<T>,
            draining: Draining,
        }

        /// A thief's handle to a [`Worker`]'s queue. Any thread; lock-free; may outlive the worker.
        pub struct Stealer<T> {
            shared: Arc<Shared<T>>,
        }

        impl<T> Stealer<T> {
            /// Moves the oldest tasks to another worker, as many as `count_fn` says of their number, or fewer if it has no room for them
            /// or some are gone: how many were moved.
            ///
            /// # Errors
            ///
            /// [`StealError`], if there was none.
            pub fn steal<C>(&self, dest: &Worker<T>, mut count_fn: C) -> Result<usize, StealError>
            where
                C: FnMut(usize) -> usize,
            {
                let mut claimed = self.claim(|count| count_fn(count).min(dest.spare_capacity()))?;
                let count = claimed.size_hint().0;
                Self::hand_over(&mut claimed, count, dest);
                Ok(count)
            }

            /// As [`steal`](Stealer::steal), but the youngest of those tasks is returned, with the number of the others, which are
            /// moved.
            ///
            /// # Errors
            ///
            /// [`StealError`], if there was none. No room for the others is no error.
            pub fn steal_and_pop<C>(
                &self,
                dest: &Worker<T>,
                mut count_fn: C,
            ) -> Result<(T, usize), StealError>
            where
                C: FnMut(usize) -> usize,
            {
                let mut claimed =
                    self.claim(|count| count_fn(count).min(dest.spare_capacity() + 1))?;
                let others = claimed.size_hint().0 - 1;
                Self::hand_over(&mut claimed, others, dest);
                claimed.next().map(|last| (last, others)).ok_or(StealError::Empty)
            }

            fn claim(
                &self,
                want: impl FnOnce(usize) -> usize,
            ) -> Result<Claimed<'_, T, Machine>, StealError> {
                let Shared { thief, draining } = &*self.shared;
                if draining.get() {
                    return Err(StealError::Busy);
                }
                claim(thief, want)
            }

            /// There is room: only the thread that has `dest` makes less of it, and it has asked after `count_fn` ran.
            #[inline]
            fn hand_over(claimed: &mut Claimed<'_, T, Machine>, count: usize, dest: &Worker<T>) {
                for task in claimed.take(count) {
                    drop(dest.push(task));
                }
            }
        }

        impl<T> Clone for Stealer<T> {
            fn clone(&self) -> Self {
                Stealer { shared: Arc::clone(&self.shared) }
            }
        }

        /// Whether they are of one queue.
        impl<T> PartialEq for Stealer<T> {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.shared, &other.shared)
            }
        }

        impl<T> Eq for Stealer<T> {}
        impl<T> UnwindSafe for Stealer<T> {}
        impl<T> RefUnwindSafe for Stealer<T> {}

        impl<T> fmt::Debug for Stealer<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let len = self.shared.thief.len();
                f.debug_struct("Stealer").field("len", &len).finish_non_exhaustive()
            }
        }
    };
}

pub(super) use flavour;
