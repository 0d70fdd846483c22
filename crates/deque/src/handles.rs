//! What the owner's and the thieves' handles of a queue have in common, whatever the queue.

/// `Clone` for a thief's handle, and `Debug` for both, of a queue whose `shared` part knows its length.
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
                f.debug_struct("Stealer").field("len", &self.shared.len()).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use handles;
