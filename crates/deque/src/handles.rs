//! What the owner's and the thieves' handles of a queue have in common, whatever the queue.

/// `Clone` for a thief's handle, and `Debug` for both, of a queue whose `shared` part knows its
/// length.
///
/// Each handle comes after its generic parameters; what the thief's has beside `shared` comes last.
macro_rules! handles {
    (
        [$($owners:tt)*] $owner:ident<$($parameter:ident),*>;
        [$($thieves:tt)*] $thief:ty
        $(; $field:ident: $value:expr)?
    ) => {
        impl<$($owners)*> ::core::fmt::Debug for $owner<$($parameter),*> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($owner))
                    .field("len", &self.shared.len())
                    .finish_non_exhaustive()
            }
        }

        impl<$($thieves)*> Clone for $thief {
            fn clone(&self) -> Self {
                Self { shared: ::std::sync::Arc::clone(&self.shared) $(, $field: $value)? }
            }
        }

        impl<$($thieves)*> ::core::fmt::Debug for $thief {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct("Thief").field("len", &self.shared.len()).finish_non_exhaustive()
            }
        }
    };
}

/// The constructors of an owner's handle whose queue is made by `starting_at`, and what it says of
/// itself: Chase-Lev's, THE's and THEP's.
macro_rules! owner {
    ($owner:ident, $name:literal) => {
        impl<T: Send> $owner<T> {
            /// An empty queue with a full fence on both sides, and room for 64 tasks before it grows.
            pub fn new() -> Self {
                Self::with_policy(::poach_memory::Full)
            }
        }

        impl<T: Send, P: StoreLoad<Machine>> $owner<T, P> {
            /// An empty queue with a fence policy, and room for 64 tasks before it grows.
            pub fn with_policy(policy: P) -> Self {
                match Self::with_capacity(policy, crate::ring::DEFAULT_CAPACITY) {
                    Ok(queue) => queue,
                    Err(_) => crate::traits::out_of_memory::<T>(),
                }
            }

            /// An empty queue with a fence policy, and room for `capacity` tasks before it grows.
            ///
            /// # Errors
            ///
            /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
            pub fn with_capacity(policy: P, capacity: usize) -> Result<Self, CapacityError> {
                Self::starting_at(policy, capacity, 0)
            }
        }

        impl<T: Send, P: StoreLoad<M>, M: Memory> $owner<T, P, M> {
            #[doc = concat!("As [`with_capacity`](", $name, "::with_capacity), in any memory, with the first task at `index`:")]
            /// for models, and for tests of indices that wrap around.
            ///
            /// # Errors
            ///
            #[doc = concat!("As [`with_capacity`](", $name, "::with_capacity).")]
            #[doc(hidden)]
            pub fn starting_at(policy: P, capacity: usize, index: u64) -> Result<Self, CapacityError> {
                let (rings, buffer) = crate::ring::Rings::new(capacity, index)?;
                let owner = OwnerLine::new(index, buffer, policy);
                let shared = ::std::sync::Arc::new(Shared::new(owner, index, rings));
                Ok($owner { shared, not_sync: ::core::marker::PhantomData })
            }

            /// Slots in the ring now: see [`Fifo::capacity`](crate::Fifo::capacity).
            pub fn capacity(&self) -> usize {
                self.buffer().capacity()
            }

            /// The policy that this queue was made with.
            pub fn policy(&self) -> &P {
                &self.shared.owner.policy
            }

            #[inline(always)]
            fn buffer(&self) -> &Buffer<T, M> {
                // SAFETY: this is the owner's handle, and the returned reference borrows it.
                unsafe { self.shared.owner.buffer() }
            }

            #[cold]
            #[inline(never)]
            fn reserve(&self, tail: u64) -> Result<(), $crate::ring::NoMemory> {
                let (shared, buffer) = (&*self.shared, self.buffer());
                buffer.reserve(&shared.thieves.rings, tail, || shared.len())?;
                shared.release_left(buffer);
                Ok(())
            }
        }

        impl<T: Send, P: StoreLoad<Machine> + Default> Default for $owner<T, P> {
            fn default() -> Self {
                Self::with_policy(P::default())
            }
        }

        impl<T, P: StoreLoad<M>, M: Memory> Drop for $owner<T, P, M> {
            fn drop(&mut self) {
                self.shared.owner.close();
            }
        }
    };
}

/// The methods of [`Owner`](crate::Owner) and [`Thief`](crate::Thief) on a queue's own types, so
/// that nobody has to import a trait who names one queue.
///
/// Each handle comes after its generic parameters.
macro_rules! methods {
    ($task:ty; [$($owners:tt)*] $owner:ty; [$($thieves:tt)*] $thief:ty) => {
        impl<$($owners)*> $owner {
            /// Adds a task: [`Owner::push`](crate::Owner::push).
            #[inline(always)]
            pub fn push(&self, task: $task) {
                crate::traits::Owner::push(self, task);
            }

            /// Adds a task: [`Owner::try_push`](crate::Owner::try_push).
            ///
            /// # Errors
            ///
            /// [`OutOfMemory`](crate::OutOfMemory), with the task, if the queue had to grow and could not.
            #[inline(always)]
            pub fn try_push(&self, task: $task) -> Result<(), crate::traits::OutOfMemory<$task>> {
                crate::traits::Owner::try_push(self, task)
            }

            /// Takes a task: [`Owner::pop`](crate::Owner::pop).
            #[inline(always)]
            pub fn pop(&self) -> Option<$task> {
                crate::traits::Owner::pop(self)
            }

            /// A handle for thieves: [`Owner::thief`](crate::Owner::thief).
            pub fn thief(&self) -> $thief {
                crate::traits::Owner::thief(self)
            }

            /// The number of tasks: [`Owner::len`](crate::Owner::len).
            pub fn len(&self) -> usize {
                crate::traits::Owner::len(self)
            }

            /// Whether there is no task: [`Owner::is_empty`](crate::Owner::is_empty).
            pub fn is_empty(&self) -> bool {
                crate::traits::Owner::is_empty(self)
            }
        }

        impl<$($thieves)*> $thief {
            /// Takes a task: [`Thief::steal`](crate::Thief::steal).
            #[inline(always)]
            pub fn steal(&self) -> crate::traits::Steal<$task> {
                crate::traits::Thief::steal(self)
            }

            /// Takes half of the tasks: [`Thief::steal_half`](crate::Thief::steal_half).
            #[inline(always)]
            pub fn steal_half<O: crate::traits::Owner<$task>>(&self, into: &O) -> crate::traits::Steal<$task> {
                crate::traits::Thief::steal_half(self, into)
            }

            /// The number of tasks that this thief sees: [`Thief::len`](crate::Thief::len).
            pub fn len(&self) -> usize {
                crate::traits::Thief::len(self)
            }

            /// Whether this thief sees no task: [`Thief::is_empty`](crate::Thief::is_empty).
            pub fn is_empty(&self) -> bool {
                crate::traits::Thief::is_empty(self)
            }
        }
    };
}

pub(crate) use handles;
pub(crate) use methods;
pub(crate) use owner;
