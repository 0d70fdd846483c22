//! Work-stealing deques of pointers: an owner pushes and pops at one end, thieves steal at the
//! other.

use std::ffi::{c_int, c_void};
use std::ptr;

use ::poach_deque::{Asymmetric, ChaseLev, Full, Owner, Split, Steal, The, Thief};

use crate::call::Context;
use crate::status::poach_status::{POACH_EMPTY, POACH_INVALID, POACH_NO_MEMORY, POACH_RETRY};
use crate::status::{Error, guard, poach_status};

/// Chase and Lev's deque: every task can be stolen at once; a fence at each pop.
pub const POACH_CHASE_LEV: c_int = 0;
/// The same, whose thieves pay the fence: for owners that pop often and are robbed seldom.
pub const POACH_CHASE_LEV_ASYMMETRIC: c_int = 1;
/// Cilk-5's deque: a lock for thieves.
pub const POACH_THE: c_int = 2;
/// Lace's deque: no fence, and a thief that finds nothing leaves a request, which the owner's next
/// push or pop answers.
pub const POACH_SPLIT: c_int = 3;

/// Of any kind of queue. `Send`: its owner may be another thread tomorrow.
trait AnyOwner: Send {
    fn push(&self, task: Context) -> bool;
    fn pop(&self) -> Option<Context>;
    fn len(&self) -> usize;
    fn thief(&self) -> poach_thief;
}

trait AnyThief: Send + Sync {
    fn steal(&self) -> Steal<Context>;
    fn another(&self) -> poach_thief;
}

impl<O: Owner<Context> + Send> AnyOwner for O
where
    O::Thief: 'static,
{
    fn push(&self, task: Context) -> bool {
        self.try_push(task).is_ok()
    }

    fn pop(&self) -> Option<Context> {
        Owner::pop(self)
    }

    fn len(&self) -> usize {
        Owner::len(self)
    }

    fn thief(&self) -> poach_thief {
        poach_thief(Box::new(Owner::thief(self)))
    }
}

impl<T: Thief<Context> + 'static> AnyThief for T {
    fn steal(&self) -> Steal<Context> {
        Thief::steal(self)
    }

    fn another(&self) -> poach_thief {
        poach_thief(Box::new(self.clone()))
    }
}

/// The owner's end of a deque: one thread's at a time.
pub struct poach_deque(Box<dyn AnyOwner>);

/// A thief's end of a deque: any thread's, even of several at once.
pub struct poach_thief(Box<dyn AnyThief>);

/// Makes a deque, in `*deque`, of a kind: `POACH_CHASE_LEV` and the like.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_deque_new(
    kind: c_int,
    deque: *mut *mut poach_deque,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { deque.as_mut() }.ok_or_else(|| Error::null("`deque`"))?;
        *out = ptr::null_mut();
        let owner: Box<dyn AnyOwner> = match kind {
            POACH_CHASE_LEV => Box::new(ChaseLev::<Context, Full>::with_policy(Full)),
            POACH_CHASE_LEV_ASYMMETRIC => {
                Box::new(ChaseLev::<Context, Asymmetric>::with_policy(Asymmetric::new()))
            }
            POACH_THE => Box::new(The::<Context, Full>::with_policy(Full)),
            POACH_SPLIT => Box::new(Split::<Context>::new()),
            other => {
                return Err(Error::new(
                    POACH_INVALID,
                    format!("there is no deque of kind {other}"),
                ));
            }
        };
        *out = Box::into_raw(Box::new(poach_deque(owner)));
        Ok(())
    })
}

unsafe fn owner<'d>(deque: *const poach_deque) -> Result<&'d dyn AnyOwner, Error> {
    // SAFETY: null or a deque.
    let deque = unsafe { deque.as_ref() }.ok_or_else(|| Error::null("the deque"))?;
    Ok(&*deque.0)
}

/// Adds a task: any pointer, NULL too. The owner's thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_deque_push(
    deque: *const poach_deque,
    task: *mut c_void,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a deque of the calling thread's.
        let pushed = unsafe { owner(deque) }?.push(Context(task));
        if pushed { Ok(()) } else { Err(POACH_NO_MEMORY.into()) }
    })
}

/// Takes the task that was added last, in `*task`. The owner's thread.
///
/// POACH_EMPTY: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_deque_pop(
    deque: *const poach_deque,
    task: *mut *mut c_void,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { task.as_mut() }.ok_or_else(|| Error::null("`task`"))?;
        // SAFETY: null or a deque of the calling thread's.
        let popped = unsafe { owner(deque) }?.pop();
        *out = popped.ok_or(Error::from(POACH_EMPTY))?.get();
        Ok(())
    })
}

/// The number of tasks, which a thief may have changed by now; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_deque_len(deque: *const poach_deque) -> usize {
    // SAFETY: null or a deque of the calling thread's.
    unsafe { owner(deque) }.map_or(0, AnyOwner::len)
}

/// Makes a thief's end, in `*thief`. The owner's thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_deque_thief(
    deque: *const poach_deque,
    thief: *mut *mut poach_thief,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { thief.as_mut() }.ok_or_else(|| Error::null("`thief`"))?;
        *out = ptr::null_mut();
        // SAFETY: null or a deque of the calling thread's.
        *out = Box::into_raw(Box::new(unsafe { owner(deque) }?.thief()));
        Ok(())
    })
}

/// Frees the owner's end. What is in the deque is left to the thieves, if there are any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_deque_free(deque: *mut poach_deque) -> poach_status {
    guard(|| {
        if deque.is_null() {
            return Err(Error::null("the deque"));
        }
        // SAFETY: made by `poach_deque_new`, and given up by who calls.
        drop(unsafe { Box::from_raw(deque) });
        Ok(())
    })
}

unsafe fn thief<'t>(thief: *const poach_thief) -> Result<&'t dyn AnyThief, Error> {
    // SAFETY: null or a thief.
    let thief = unsafe { thief.as_ref() }.ok_or_else(|| Error::null("the thief"))?;
    Ok(&*thief.0)
}

/// Takes the oldest task, in `*task`. Any thread.
///
/// POACH_EMPTY: none was seen; POACH_RETRY: another thread was in the way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_thief_steal(
    from: *const poach_thief,
    task: *mut *mut c_void,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { task.as_mut() }.ok_or_else(|| Error::null("`task`"))?;
        // SAFETY: null or a thief.
        match unsafe { thief(from) }?.steal() {
            Steal::Success(task) => *out = task.get(),
            Steal::Empty => return Err(POACH_EMPTY.into()),
            Steal::Retry | Steal::Abort => return Err(POACH_RETRY.into()),
        }
        Ok(())
    })
}

/// Makes one more thief's end of the same deque. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_thief_clone(
    from: *const poach_thief,
    another: *mut *mut poach_thief,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { another.as_mut() }.ok_or_else(|| Error::null("`another`"))?;
        *out = ptr::null_mut();
        // SAFETY: null or a thief.
        *out = Box::into_raw(Box::new(unsafe { thief(from) }?.another()));
        Ok(())
    })
}

/// Frees a thief's end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_thief_free(thief: *mut poach_thief) -> poach_status {
    guard(|| {
        if thief.is_null() {
            return Err(Error::null("the thief"));
        }
        // SAFETY: made by `poach_deque_thief` or `poach_thief_clone`, and given up by who calls.
        drop(unsafe { Box::from_raw(thief) });
        Ok(())
    })
}
