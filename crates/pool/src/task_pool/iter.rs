//! The iterators over a [`Consumer`]'s tasks.

use std::fmt;
use std::iter::FusedIterator;
use std::mem::MaybeUninit;

use super::consumer::Consumer;
use crate::salsa::Found;

/// The tasks of a [`Consumer`], until the pool is closed and empty: [`Consumer::iter`].
pub struct Iter<'a, T: Send>(pub(crate) &'a mut Consumer<T>);

/// The tasks of a [`Consumer`], until there are none: [`Consumer::try_iter`].
pub struct TryIter<'a, T: Send>(pub(crate) &'a mut Consumer<T>);

/// The tasks of a [`Consumer`], until the pool is closed and empty: `for task in consumer`.
pub struct IntoIter<T: Send>(Consumer<T>);

impl<T: Send> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.get().ok()
    }
}

impl<T: Send> Iterator for TryIter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let mut place = MaybeUninit::uninit();
        self.0.find(&mut place).map(Found::read)
    }
}

impl<T: Send> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.get().ok()
    }
}

// A pool that is closed and empty stays so. An empty open pool may have a task later, so `TryIter`
// is not fused.
impl<T: Send> FusedIterator for Iter<'_, T> {}
impl<T: Send> FusedIterator for IntoIter<T> {}

impl<T: Send> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Iter").field(&self.0).finish()
    }
}

impl<T: Send> fmt::Debug for TryIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TryIter").field(&self.0).finish()
    }
}

impl<T: Send> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IntoIter").field(&self.0).finish()
    }
}

/// As [`Consumer::iter`].
///
/// ```
/// let pool = poach_pool::TaskPool::new();
/// pool.producer().unwrap().put_many(1..=3).unwrap();
/// let consumer = pool.consumer().unwrap();
/// let mut sum = 0;
/// for task in consumer {
///     sum += task;
/// }
/// assert_eq!(sum, 6);
/// ```
impl<T: Send> IntoIterator for Consumer<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

/// As [`Consumer::iter`].
#[expect(clippy::into_iter_without_iter, reason = "`iter` is by `&mut`, as a get is")]
impl<'a, T: Send> IntoIterator for &'a mut Consumer<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        Iter(self)
    }
}
