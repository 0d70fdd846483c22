//! Objects that a reclamation protocol has found unused.

use core::fmt;

/// A boxed object that a reclamation protocol has found unused. Dropping this frees the object.
///
/// [`Memory::free`](crate::Memory::free) takes it. Real memory drops it at once. A model's memory
/// keeps the object until no thread runs, and reports a thread that uses it meanwhile.
pub struct Freed {
    object: *mut (),
    destroy: unsafe fn(*mut ()),
}

impl Freed {
    /// The object behind a pointer.
    ///
    /// # Safety
    ///
    /// `object` came from [`Box::into_raw`], or from a boxed slice of length one, and no other code
    /// frees it. From now on no thread uses it. Another thread of the same memory may drop it,
    /// while that memory is in use.
    #[inline]
    pub unsafe fn new<T>(object: *mut T) -> Self {
        Freed { object: object.cast(), destroy: destroy::<T> }
    }

    /// The object's address.
    pub fn address(&self) -> usize {
        self.object.addr()
    }
}

/// # Safety
///
/// As for [`Freed::new`] of a `T`. Called once.
unsafe fn destroy<T>(object: *mut ()) {
    // SAFETY: it came from a box of a `T`, whose layout is that of a slice of length one, and no
    // other code frees or uses it.
    drop(unsafe { Box::from_raw(object.cast::<T>()) });
}

impl Drop for Freed {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `new`'s caller has promised the contract, and `self` is dropped once.
        unsafe { (self.destroy)(self.object) };
    }
}

impl fmt::Debug for Freed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Freed").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::{Machine, Memory};

    #[test]
    fn real_memory_frees_at_once() {
        let content = Rc::new(());
        let object = Box::into_raw(Box::new(Rc::clone(&content)));
        // SAFETY: from a box, and used by nobody else.
        let object = unsafe { Freed::new(object) };
        assert_eq!(Rc::strong_count(&content), 2);
        Machine::free(object);
        assert_eq!(Rc::strong_count(&content), 1);
    }

    #[test]
    fn a_slice_of_one_is_freed_as_its_content() {
        let content = Rc::new(());
        let slice: Box<[Rc<()>]> = vec![Rc::clone(&content)].into_boxed_slice();
        let object = Box::into_raw(slice).cast::<Rc<()>>();
        // SAFETY: from a boxed slice of one, and used by nobody else.
        drop(unsafe { Freed::new(object) });
        assert_eq!(Rc::strong_count(&content), 1);
    }
}
