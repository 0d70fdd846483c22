//! Where a ring keeps the parts of a task.

/// How a ring keeps its tasks: each whole in its slot ([`Whole`]), or its head there and the rest
/// in a second array, which is not touched for a task that is all head.
///
/// A queue of tasks that are large now and then, and small as a rule, takes as many cache lines and
/// pages as the small ones need.
///
/// # Safety
///
/// `read` returns, as a value, the task that `write` has put to the same places, or to other
/// places, from which the bits have been copied here since. The bits are those of the head, and, if
/// `has_rest` says so of the head, those of the rest.
pub unsafe trait Storage<T> {
    /// What stands in a slot.
    type Head;
    /// What stands beside it.
    type Rest;

    /// Puts a task to its places.
    ///
    /// # Safety
    ///
    /// Both places are valid for writes, and no task stands there that is still to be read.
    unsafe fn write(task: T, head: *mut Self::Head, rest: *mut Self::Rest);

    /// Moves a task out of its places.
    ///
    /// # Safety
    ///
    /// A task stands in the head's place, and in the rest's if it has one, and is read no second
    /// time.
    unsafe fn read(head: *const Self::Head, rest: *const Self::Rest) -> T;

    /// Whether the task whose head this is has anything in the rest's place.
    ///
    /// # Safety
    ///
    /// A task stands in the head's place, or has stood there and has been read.
    unsafe fn has_rest(head: *const Self::Head) -> bool;
}

/// Each task whole in its slot.
#[derive(Debug)]
pub enum Whole {}

// SAFETY: the head is the task.
unsafe impl<T> Storage<T> for Whole {
    type Head = T;
    type Rest = ();

    #[inline(always)]
    unsafe fn write(task: T, head: *mut T, _: *mut ()) {
        // SAFETY: by this function's contract.
        unsafe { head.write(task) };
    }

    #[inline(always)]
    unsafe fn read(head: *const T, _: *const ()) -> T {
        // SAFETY: by this function's contract.
        unsafe { head.read() }
    }

    #[inline(always)]
    unsafe fn has_rest(_: *const T) -> bool {
        false
    }
}
