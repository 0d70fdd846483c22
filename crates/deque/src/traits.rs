//! What every queue of this crate says and can do: its owner's end, its thieves' ends, and what
//! comes of an attempt to steal.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;

#[cfg(doc)]
use crate::{Bounded, Multiplicity, PrivateDeque, Split, Thep, Unbounded, split};

/// What came of an attempt to steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Steal<T> {
    /// A task, now the thief's.
    Success(T),
    /// The queue was seen empty. Tasks that the owner pushed just now may not have been visible
    /// yet. Of a [`Split`] it says that nothing is *shared*: the owner may have any number of
    /// private tasks, of which [`try_steal`](split::Thief::try_steal) tells.
    Empty,
    /// Another thread was in the way: trying again at once may succeed.
    Retry,
    /// The thief cannot tell whether the owner has taken the task already, and has left it alone.
    /// Only queues with the policy [`Bounded`] or [`Unbounded`] answer this. Trying again at
    /// once does not help: go on to another victim, as after `Empty`.
    Abort,
}

impl<T> Steal<T> {
    /// The task, if there is one.
    pub fn success(self) -> Option<T> {
        match self {
            Steal::Success(task) => Some(task),
            Steal::Empty | Steal::Retry | Steal::Abort => None,
        }
    }

    /// Whether a task was stolen.
    pub fn is_success(&self) -> bool {
        matches!(self, Steal::Success(_))
    }

    /// Whether the queue was seen empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, Steal::Empty)
    }

    /// Whether another thread was in the way.
    pub fn is_retry(&self) -> bool {
        matches!(self, Steal::Retry)
    }

    /// Whether the thief refused for want of certainty.
    pub fn is_abort(&self) -> bool {
        matches!(self, Steal::Abort)
    }

    /// The same answer about another task.
    // Always inlined, as a claim that is made of indices; out of line the answer goes through
    // memory.
    #[inline(always)]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Steal<U> {
        match self {
            Steal::Success(task) => Steal::Success(change(task)),
            Steal::Empty => Steal::Empty,
            Steal::Retry => Steal::Retry,
            Steal::Abort => Steal::Abort,
        }
    }
}

/// A queue could not grow. The task comes back, and the queue is as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory<T>(pub T);

impl<T> fmt::Debug for OutOfMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutOfMemory(..)")
    }
}

impl<T> fmt::Display for OutOfMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for the queue to grow: the task was not pushed and is returned")
    }
}

impl<T> std::error::Error for OutOfMemory<T> {}

#[cold]
#[inline(never)]
pub(crate) fn out_of_memory<T>() -> ! {
    std::alloc::handle_alloc_error(Layout::new::<T>())
}

/// A queue of tasks of type `T`, without memory for which the program ends.
pub(crate) fn made<T, Q, E>(queue: Result<Q, E>) -> Q {
    queue.unwrap_or_else(|_| out_of_memory::<T>())
}

/// The owner's end of a queue. One thread at a time has it.
///
/// Dropping the owner leaves its tasks to the thieves; tasks left over when the last handle goes
/// are dropped. (The private deque differs, and says so.)
pub trait Owner<T>: Send {
    /// The thieves' handle to this kind of queue.
    type Thief: Thief<T>;

    /// Adds a task.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>>;

    /// Adds a task. If the queue has to grow and cannot, it ends the program as `Vec` does: use
    /// [`try_push`](Owner::try_push) to be told instead.
    #[inline]
    fn push(&self, task: T) {
        if self.try_push(task).is_err() {
            out_of_memory::<T>();
        }
    }

    /// Takes a task: for most queues the one pushed last. `None` if there is none that thieves have
    /// not taken.
    fn pop(&self) -> Option<T>;

    /// A handle for thieves; any number of them.
    fn thief(&self) -> Self::Thief;

    /// The number of tasks. An estimate: see [`Thief::len`].
    fn len(&self) -> usize;

    /// Whether there is no task; see [`len`](Owner::len).
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a thief is in doubt about a task and waits for this owner's next
    /// [`pop`](Owner::pop): a reason to pop before going to something long. Out of date at
    /// once. Only a [`Thep`] has such thieves.
    fn is_awaited(&self) -> bool {
        false
    }

    /// That the calling thread has this owner's handle, for a thief that would wait for itself.
    #[doc(hidden)]
    #[inline]
    fn here(&self) -> Here<'_> {
        Here { queue: core::ptr::null(), handle: PhantomData }
    }
}

/// Says that the thread which has this has the owner's handle of a queue: it cannot be sent to
/// another thread, nor kept longer than the handle is borrowed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    queue: *const (),
    handle: PhantomData<&'a ()>,
}

impl<'a> Here<'a> {
    /// # Safety
    ///
    /// The caller has the handle of the owner of the queue whose shared part is at `queue`, and it
    /// is not `Sync`.
    #[inline]
    pub unsafe fn owner<Q>(_handle: &'a Q, queue: *const ()) -> Here<'a> {
        Here { queue, handle: PhantomData }
    }

    /// Whether it is the owner of the queue whose shared part is at `queue`.
    #[inline]
    pub fn owns(self, queue: *const ()) -> bool {
        core::ptr::eq(self.queue, queue)
    }
}

/// A thief's end of a queue.
pub trait Thief<T>: Clone + Send + Sync {
    /// Takes the oldest task.
    fn steal(&self) -> Steal<T>;

    /// Takes half of the tasks, or as many as the queue gives at once, at least one: returns the
    /// oldest and pushes the others to `into`.
    ///
    /// Unless a queue says otherwise this is a sequence of single steals, which ends early where
    /// one of them fails. `into` may be the owner of this very queue: the tasks then go around.
    /// Only a [`PrivateDeque`] deque then gives none, and a [`Thep`] must be `into` itself, not
    /// within an [`Owner`] of another type, or it waits.
    fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        let half = self.len().div_ceil(2);
        let first = self.steal();
        if first.is_success() {
            for _ in 1..half {
                let Steal::Success(task) = self.steal() else { break };
                into.push(task);
            }
        }
        first
    }

    /// The number of tasks that this thief sees.
    ///
    /// All lengths of this crate are estimates, and so is emptiness by them. Another thread may
    /// change the length before the caller looks at it, and a thief may not see what the owner has
    /// just pushed or popped. A length is exact while no other thread uses the queue, except that
    /// of a [BWoS queue](crate::BwosLifo) with more than 32 blocks.
    fn len(&self) -> usize;

    /// Whether this thief sees no task, by [`len`](Self::len).
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Marks the owners of queues that hand out each task exactly once.
///
/// All do but the idempotent ones and [`Multiplicity`], which may hand a task out again; a
/// scheduler of tasks that must not be repeated asks for this trait.
pub trait ExactlyOnce<T>: Owner<T> {}
