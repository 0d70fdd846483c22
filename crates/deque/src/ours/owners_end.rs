//! The owner's end of a biased deque or of a FIFO: a tail that the owner alone moves, over a ring
//! that grows or not. Pushes, one and several, are the same for both.

use poach_memory::{Memory, Ordering, Word};

use crate::ring::{Buffer, Claim, NoMemory, Rings};
use crate::traits::{OutOfMemory, out_of_memory};

/// What an owner's handle says of its queue, and what follows from that.
pub(crate) trait OwnersEnd<T, M: Memory> {
    /// The index of the next task. Only the owner stores it.
    fn tail_word(&self) -> &M::Word;

    /// The owner's view of the ring, which came from [`rings`](OwnersEnd::rings).
    fn buffer(&self) -> &Buffer<T, M>;

    /// The ring as thieves find it.
    fn rings(&self) -> &Rings<T, M>;

    /// The number of tasks, as the owner sees it.
    fn tasks(&self) -> usize;

    /// The low 32 bits of the index below which thieves, or the owner as one of them, have claimed
    /// all, by a read-modify-write: see "At once" in `ring`.
    fn claimed(&self) -> u32;

    /// Thieves may have asked for what is below `tail`.
    fn attend(&self, tail: u64);

    /// Says which slots the owner itself has emptied at the thieves' end.
    fn finish_own(&self);

    /// The owner's tail.
    #[inline(always)]
    fn tail(&self) -> u64 {
        // Relaxed: only the owner stores it.
        self.tail_word().load(Ordering::Relaxed)
    }

    /// As [`Owner::try_push`](crate::Owner::try_push).
    #[inline(always)]
    fn push_growing(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let tail = self.tail();
        if !self.buffer().has(tail) && self.reserve(tail).is_err() {
            return Err(OutOfMemory(task));
        }
        // SAFETY: there is a free slot at `tail`, which is the owner's.
        unsafe { self.put(tail, task) };
        Ok(())
    }

    /// As [`Buffer::reserve`].
    #[cold]
    #[inline(never)]
    fn reserve(&self, tail: u64) -> Result<(), NoMemory> {
        self.finish_own();
        let (rings, buffer) = (self.rings(), self.buffer());
        buffer.reserve(rings, tail, || self.tasks())?;
        buffer.release_left(rings, || self.claimed());
        Ok(())
    }

    /// Writes a task to `tail` and shows it to thieves.
    ///
    /// # Safety
    ///
    /// `tail` is the owner's tail, and there is a free slot.
    #[inline(always)]
    unsafe fn put(&self, tail: u64, task: T) {
        // SAFETY: by this function's contract, and the queue keeps the rings.
        unsafe { self.buffer().write(tail, task) };
        self.publish(tail.wrapping_add(1));
    }

    /// Shows thieves what has been written below `tail`.
    #[inline(always)]
    fn publish(&self, tail: u64) {
        // Release: pairs with a thief's acquire of `tail`, which then sees the tasks.
        self.tail_word().store(tail, Ordering::Release);
        self.attend(tail);
    }

    /// Adds a task if there is a free slot in the ring as it is.
    #[inline]
    fn push_within(&self, task: T) -> Result<(), T> {
        let tail = self.tail();
        if !self.has(tail) {
            return Err(task);
        }
        // SAFETY: there is a free slot at `tail`, which is the owner's.
        unsafe { self.put(tail, task) };
        Ok(())
    }

    /// Whether there is a free slot at `tail` in the ring as it is.
    #[inline(always)]
    fn has(&self, tail: u64) -> bool {
        self.buffer().has(tail) || self.find(tail)
    }

    /// As [`Buffer::find`].
    #[cold]
    #[inline(never)]
    fn find(&self, tail: u64) -> bool {
        self.finish_own();
        self.buffer().find(self.rings(), tail)
    }

    /// Adds the next `count` of `tasks`, shown to thieves at once. Ends the program as
    /// [`push`](crate::Owner::push) does.
    #[inline]
    fn push_all(&self, count: usize, tasks: &mut impl Claim<Item = T>) {
        if count == 0 {
            return;
        }
        let (tail, buffer) = (self.tail(), self.buffer());
        if !buffer.has_several(tail, count as u64) {
            self.finish_own();
        }
        // SAFETY: `tail` is the owner's, and the queue keeps the rings.
        match unsafe { buffer.write_all(self.rings(), tail, count, tasks, || self.tasks()) } {
            Ok(tail) => self.publish(tail),
            Err(NoMemory) => out_of_memory::<T>(),
        }
    }

    /// Adds tasks as long as there are free slots in the ring as it is. No more are taken from the
    /// iterator. If that unwinds, up to three tasks that it has given are dropped.
    #[inline]
    fn extend_within(&self, mut tasks: impl Iterator<Item = T>) {
        let buffer = self.buffer();
        let mut tail = self.tail();
        // The iterator may use this very queue. So what it has given is in no slot while it runs,
        // and goes there at the tail of then.
        loop {
            if buffer.has_several(tail, 4) {
                // One store of the tail shows four.
                let Some(first) = tasks.next() else { break };
                let Some(second) = tasks.next() else {
                    self.push_each([first]);
                    break;
                };
                let Some(third) = tasks.next() else {
                    self.push_each([first, second]);
                    break;
                };
                let Some(fourth) = tasks.next() else {
                    self.push_each([first, second, third]);
                    break;
                };
                if self.tail() != tail {
                    self.push_each([first, second, third, fourth]);
                    tail = self.tail();
                    continue;
                }
                for task in [first, second, third, fourth] {
                    // SAFETY: there is a free slot at `tail`, which is the owner's, and the queue
                    // keeps the rings.
                    unsafe { buffer.write(tail, task) };
                    tail = tail.wrapping_add(1);
                }
                // Release: as in `publish`. Thieves that have asked are answered in the end.
                self.tail_word().store(tail, Ordering::Release);
            } else if self.has(tail) {
                let Some(task) = tasks.next() else { break };
                self.push_each([task]);
                tail = self.tail();
            } else {
                break;
            }
        }
        self.attend(self.tail());
    }

    /// Adds tasks; those that find no free slot, because an iterator has filled the queue
    /// meanwhile, are dropped.
    #[cold]
    #[inline(never)]
    fn push_each<const COUNT: usize>(&self, tasks: [T; COUNT]) {
        for task in tasks {
            drop(self.push_within(task));
        }
    }

    /// How many of `count` tasks there are free slots for in the ring as it is.
    #[inline]
    fn free_up_to(&self, count: usize) -> usize {
        if self.buffer().has_several(self.tail(), count as u64) {
            return count;
        }
        count.min(self.free())
    }

    /// Free slots in the ring as it is.
    fn free(&self) -> usize {
        self.finish_own();
        self.buffer().free(self.rings(), self.tail())
    }
}

/// The methods of both handles of a queue with an [`OwnersEnd`], as the traits have them and in
/// their own name. The queue's own are `pop` and `len`, and of a thief `steal`, `claim`,
/// and what its `shared` part says of the number of tasks.
macro_rules! owners_end {
    ([$($parameters:tt)*] $owner:ident<T, $($name:ident),*>) => {
        impl<T, $($parameters)*> $owner<T, $($name),*> {
            /// Adds a task.
            ///
            /// # Errors
            ///
            /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
            #[inline(always)]
            pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
                self.push_growing(task)
            }

            /// Slots in the ring now. It doubles when all are in use, and shrinks to what tasks
            /// have needed if a sleeping thief had kept some of these.
            pub fn capacity(&self) -> usize {
                self.buffer().capacity()
            }
        }

        impl<T: Send, $($parameters)*> ExactlyOnce<T> for $owner<T, $($name),*> {}

        impl<T, $($parameters)*> Thief<T, $($name),*> {
            /// Takes the older half of the tasks that can be had by one compare-and-swap.
            #[inline]
            pub fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
                match self.claim(|tasks| tasks.div_ceil(2)) {
                    Steal::Success(mut claimed) => {
                        let first = claimed.next();
                        for task in claimed {
                            into.push(task);
                        }
                        first.map_or(Steal::Empty, Steal::Success)
                    }
                    Steal::Empty => Steal::Empty,
                    Steal::Abort => Steal::Abort,
                    Steal::Retry => Steal::Retry,
                }
            }

            /// The number of tasks that this thief sees. An estimate: see
            /// [`Thief::len`](crate::Thief::len).
            pub fn len(&self) -> usize {
                self.shared.len()
            }

            /// Whether this thief sees no task.
            #[inline]
            pub fn is_empty(&self) -> bool {
                self.shared.is_empty()
            }

            /// Whether `owner` owns this queue.
            pub(crate) fn belongs_to(&self, owner: &$owner<T, $($name),*>) -> bool {
                Arc::ptr_eq(&self.shared, &owner.shared)
            }
        }

        crate::handles::shown!([T, $($parameters)*] $owner<T, $($name),*>, Thief<T, $($name),*>; len);
        crate::handles::owner_methods!(
            [T, $($parameters)*] [T: Send, $($parameters)*] $owner<T, $($name),*>, Thief<T, $($name),*>
        );

        impl<T: Send, $($parameters)*> crate::traits::Thief<T> for Thief<T, $($name),*> {
            #[inline]
            fn steal(&self) -> Steal<T> {
                Thief::steal(self)
            }

            fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
                Thief::steal_half(self, into)
            }

            fn len(&self) -> usize {
                Thief::len(self)
            }

            #[inline]
            fn is_empty(&self) -> bool {
                Thief::is_empty(self)
            }
        }
    };
}

pub(crate) use owners_end;
