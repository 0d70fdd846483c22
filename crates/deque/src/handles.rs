//! What the owner's and the thieves' handles of a queue have in common, whatever the queue.
//!
//! A queue's file has `try_push` and `pop` of its owner and `steal` of its thieves. The rest of the
//! handles follows from these, from what both say of the number of tasks, and from the `shared`
//! part that they point to.

/// Both handles of a queue, which are no more than its `shared` part. A constructor makes the
/// owner's of that part and of `not_sync: PhantomData`.
///
/// Generic parameters come three times: as the types declare them, as other items do, and their
/// names.
macro_rules! handles {
    (
        $(#[$about:meta])*
        $owner:ident [$($declared:tt)*] [$($parameters:tt)*] <$($name:ident),*> of $shared:ty
    ) => {
        $(#[$about])*
        pub struct $owner<$($declared)*> {
            shared: ::std::sync::Arc<$shared>,
            /// The owner's end: one thread at a time.
            not_sync: ::core::marker::PhantomData<(::core::cell::Cell<()>, fn() -> T)>,
        }

        #[doc = concat!("A thief's handle to a queue of type [`", stringify!($owner), "`]. It may outlive the owner.")]
        pub struct Thief<$($declared)*> {
            shared: ::std::sync::Arc<$shared>,
            tasks: ::core::marker::PhantomData<fn() -> T>,
        }

        impl<$($parameters)*> $owner<$($name),*> {
            /// A handle for thieves; any number of them.
            pub fn thief(&self) -> Thief<$($name),*> {
                let shared = ::std::sync::Arc::clone(&self.shared);
                Thief { shared, tasks: ::core::marker::PhantomData }
            }
        }

        impl<$($parameters)*> Clone for Thief<$($name),*> {
            fn clone(&self) -> Self {
                let shared = ::std::sync::Arc::clone(&self.shared);
                Thief { shared, tasks: ::core::marker::PhantomData }
            }
        }
    };
}

/// The number of tasks, for a queue whose `shared` part knows it, and `Debug` for both handles.
macro_rules! lengths {
    ([$($parameters:tt)*] $owner:ident<$($name:ident),*>) => {
        impl<$($parameters)*> $owner<$($name),*> {
            /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
            pub fn len(&self) -> usize {
                self.shared.len()
            }
        }

        impl<$($parameters)*> Thief<$($name),*> {
            /// The number of tasks that this thief sees: [`Thief::len`](crate::Thief::len).
            pub fn len(&self) -> usize {
                self.shared.len()
            }
        }

        crate::handles::shown!([$($parameters)*] $owner<$($name),*>, Thief<$($name),*>; len);
    };
}

/// `Debug` for both handles of a queue, with or without the number of tasks.
macro_rules! shown {
    ([$($parameters:tt)*] $owner:ident<$($name:ident),*>, $thief:ty; $($len:ident)?) => {
        impl<$($parameters)*> ::core::fmt::Debug for $owner<$($name),*> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($owner))
                    $(.field(stringify!($len), &self.$len()))?
                    .finish_non_exhaustive()
            }
        }

        impl<$($parameters)*> ::core::fmt::Debug for $thief {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct("Thief")
                    $(.field(stringify!($len), &self.$len()))?
                    .finish_non_exhaustive()
            }
        }
    };
}

/// [`Owner`](crate::Owner), and what follows in the owner's own name, so that nobody has to import
/// a trait who names one queue. The queue's own are `try_push`, `pop`, `thief` and `len`.
///
/// Generic parameters come twice: for the owner's methods, and for the trait, which may ask more.
/// Methods of the trait that the queue has beside come last.
macro_rules! owner_methods {
    ([$($own:tt)*] [$($asked:tt)*] $owner:ty, $thief:ty $(; $($more:tt)*)?) => {
        impl<$($own)*> $owner {
            /// Adds a task. Ends the program if the queue has to grow and cannot, as `Vec` does:
            /// [`Owner::push`](crate::Owner::push).
            #[inline(always)]
            pub fn push(&self, task: T) {
                if self.try_push(task).is_err() {
                    crate::traits::out_of_memory::<T>();
                }
            }

            /// Whether there is no task; see [`len`](Self::len).
            #[inline]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl<$($asked)*> crate::traits::Owner<T> for $owner {
            type Thief = $thief;

            #[inline(always)]
            fn try_push(&self, task: T) -> Result<(), crate::traits::OutOfMemory<T>> {
                <$owner>::try_push(self, task)
            }

            #[inline(always)]
            fn pop(&self) -> Option<T> {
                <$owner>::pop(self)
            }

            fn thief(&self) -> $thief {
                <$owner>::thief(self)
            }

            fn len(&self) -> usize {
                <$owner>::len(self)
            }

            $($($more)*)?
        }
    };
}

/// [`Thief`](crate::Thief), and what follows in the thief's own name. The queue's own are `steal`
/// and `len`.
///
/// Methods of the trait that the queue has beside come last.
macro_rules! thief_methods {
    ([$($parameters:tt)*] $thief:ty $(; $($more:tt)*)?) => {
        impl<$($parameters)*> $thief {
            /// Takes half of the tasks: [`Thief::steal_half`](crate::Thief::steal_half).
            #[inline(always)]
            pub fn steal_half<O: crate::traits::Owner<T>>(&self, into: &O) -> crate::traits::Steal<T> {
                crate::traits::Thief::steal_half(self, into)
            }

            /// Whether this thief sees no task: [`Thief::is_empty`](crate::Thief::is_empty).
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl<$($parameters)*> crate::traits::Thief<T> for $thief {
            #[inline(always)]
            fn steal(&self) -> crate::traits::Steal<T> {
                <$thief>::steal(self)
            }

            fn len(&self) -> usize {
                <$thief>::len(self)
            }

            $($($more)*)?
        }
    };
}

pub(crate) use handles;
pub(crate) use lengths;
pub(crate) use owner_methods;
pub(crate) use shown;
pub(crate) use thief_methods;
