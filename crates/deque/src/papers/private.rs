//! Private deques: the queue is its owner's alone, thieves ask and the owner hands over.
//!
//! Source: Acar, Charguéraud and Rainey, *Scheduling Parallel Programs by Work Stealing with
//! Private Deques* (2013), the receiver-initiated algorithm; Lace compares itself with it.
//!
//! # How it works
//!
//! A thief raises a request in the victim's one mailbox and waits. The owner looks at the mailbox
//! at each push and pop and hands over its oldest task, or says no. Nothing is shared but the
//! mailbox, so the owner's operations are those of a plain ring and one load.
//!
//! ```text
//! IDLE --thief--> ASKED --owner--> BUSY --owner--> FULL or NONE --thief--> IDLE
//!                   |
//!                   +--thief, tired of waiting--> IDLE
//! ```
//!
//! # Why it is correct
//!
//! Every step but those out of `BUSY`, `FULL` and `NONE` is a compare-and-swap, and those three
//! states each belong to one thread: the owner in `BUSY`, the thief that asked in the others. The
//! task lies in the mailbox from the owner's release of `FULL` to the thief's acquire of it, and
//! the next owner's write follows the thief's release of `IDLE`, by way of the next asker. No fence
//! policy: each handover is one word that both sides read and write.
//!
//! A thief does not wait for an owner at a long task: it withdraws after a bounded number of looks
//! and answers [`Steal::Retry`]. The owner cannot be kept waiting at all.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use std::collections::VecDeque;
use std::sync::Arc;

use poach_memory::{CachePadded, Cell, Machine, Memory, Ordering, Word};

use crate::handles::{owner_methods, shown, thief_methods};
use crate::lock::Wait;
use crate::traits::{ExactlyOnce, OutOfMemory, Steal};

const IDLE: u64 = 0;
const ASKED: u64 = 1;
const BUSY: u64 = 2;
const FULL: u64 = 3;
const NONE: u64 = 4;

/// Looks at the mailbox after which a thief withdraws its request.
const PATIENCE: u32 = 1000;

struct Shared<T, M: Memory> {
    mailbox: CachePadded<M::Word>,
    task: M::Cell<MaybeUninit<T>>,
    /// The number of tasks, as the owner last told.
    told: CachePadded<M::Word>,
}

// SAFETY: the task in the mailbox is touched by one thread at a time, as `mailbox` says, and moves
// from the owner to a thief.
unsafe impl<T: Send, M: Memory> Sync for Shared<T, M> {}
// SAFETY: the task in the mailbox is touched by one thread at a time.
unsafe impl<T: Send, M: Memory> Send for Shared<T, M> {}

impl<T, M: Memory> Drop for Shared<T, M> {
    fn drop(&mut self) {
        // Relaxed: the last handle's going synchronised with all others'.
        if self.mailbox.load(Ordering::Relaxed) == FULL {
            self.task.with_mut(|task| {
                // SAFETY: `FULL` says that there is a task, and nobody is left to take it.
                unsafe { task.cast::<T>().drop_in_place() }
            });
        }
    }
}

/// The owner of a private deque.
///
/// Unlike other queues' it takes its tasks with it: they are dropped when the owner is, and thieves
/// find nothing then.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](crate::Owner::push), [`pop`](crate::Owner::pop) | wait-free | a load, no fence; an exchange if a thief has asked |
/// | [`steal`](Thief::steal) | waits for the owner's next push or pop, or gives up with `Retry` | two compare-and-swaps |
///
/// ```
/// use poach_deque::{PrivateDeque, Steal};
///
/// let owner: PrivateDeque<u32> = PrivateDeque::new();
/// owner.push(0);
/// owner.push(1);
/// let thief = owner.thief();
/// std::thread::scope(|scope| {
///     let asked = scope.spawn(|| loop {
///         match thief.steal() {
///             Steal::Retry => {}
///             done => break done,
///         }
///     });
///     while !asked.is_finished() {
///         let task = owner.pop();
///         task.into_iter().for_each(|task| owner.push(task));
///     }
///     assert_eq!(asked.join().unwrap(), Steal::Success(0));
/// });
/// ```
pub struct PrivateDeque<T, M: Memory = Machine> {
    tasks: M::Cell<VecDeque<T>>,
    shared: Arc<Shared<T, M>>,
    not_sync: PhantomData<core::cell::Cell<()>>,
}

// SAFETY: the tasks go with their owner, which may be sent as they may.
unsafe impl<T: Send, M: Memory> Send for PrivateDeque<T, M> {}

/// A thief's handle to a [`PrivateDeque`] deque. It may outlive the owner, and finds nothing then.
pub struct Thief<T, M: Memory = Machine> {
    shared: Arc<Shared<T, M>>,
}

impl<T: Send> PrivateDeque<T> {
    /// An empty deque.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T: Send, M: Memory> PrivateDeque<T, M> {
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the owner's one reference, made anew in each method")]
    fn tasks(&self) -> &mut VecDeque<T> {
        self.tasks.with_mut(|tasks| {
            // SAFETY: `self` is not `Sync`, each method takes this reference once, and none of them
            // runs code of the caller's while it has it.
            unsafe { &mut *tasks }
        })
    }

    #[inline(always)]
    fn poll(&self, tasks: &mut VecDeque<T>) {
        // Relaxed: a request seen late is answered late.
        if self.shared.mailbox.load(Ordering::Relaxed) == ASKED {
            self.answer(tasks);
        }
        // Relaxed, both: a hint for thieves, of how many there are to ask for.
        if (self.shared.told.load(Ordering::Relaxed) == 0) != tasks.is_empty() {
            self.shared.told.store(tasks.len() as u64, Ordering::Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn answer(&self, tasks: &mut VecDeque<T>) {
        // Acquire: pairs with the release of `IDLE` by the last thief, by way of the asker's
        // acquire and release; its read of the task is over.
        if self
            .shared
            .mailbox
            .compare_exchange(ASKED, BUSY, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        let state = match tasks.pop_front() {
            Some(task) => {
                self.shared.task.with_mut(|place| {
                    // SAFETY: in `BUSY` the mailbox is the owner's, and empty.
                    unsafe { place.cast::<T>().write(task) }
                });
                FULL
            }
            None => NONE,
        };
        // Release: pairs with the asker's acquire.
        self.shared.mailbox.store(state, Ordering::Release);
    }
}

impl<T: Send, M: Memory> Default for PrivateDeque<T, M> {
    fn default() -> Self {
        PrivateDeque {
            not_sync: PhantomData,
            tasks: M::Cell::new(VecDeque::new()),
            shared: Arc::new(Shared {
                mailbox: CachePadded::new(M::Word::new(IDLE)),
                task: M::Cell::new(MaybeUninit::uninit()),
                told: CachePadded::new(M::Word::new(0)),
            }),
        }
    }
}

impl<T: Send, M: Memory> PrivateDeque<T, M> {
    /// Adds a task.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let tasks = self.tasks();
        if tasks.len() == tasks.capacity() && tasks.try_reserve(1).is_err() {
            return Err(OutOfMemory(task));
        }
        tasks.push_back(task);
        self.poll(tasks);
        Ok(())
    }

    /// Takes the youngest task.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let tasks = self.tasks();
        let task = tasks.pop_back();
        self.poll(tasks);
        task
    }

    /// A handle for thieves; any number of them.
    pub fn thief(&self) -> Thief<T, M> {
        Thief { shared: Arc::clone(&self.shared) }
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        self.tasks().len()
    }
}

impl<T: Send, M: Memory> ExactlyOnce<T> for PrivateDeque<T, M> {}

impl<T, M: Memory> Drop for PrivateDeque<T, M> {
    fn drop(&mut self) {
        // Relaxed: a hint. A request that comes later is withdrawn.
        self.shared.told.store(0, Ordering::Relaxed);
    }
}

impl<T: Send, M: Memory> Thief<T, M> {
    /// Takes the oldest task.
    pub fn steal(&self) -> Steal<T> {
        let shared = &*self.shared;
        // Relaxed: a hint.
        if shared.told.load(Ordering::Relaxed) == 0 {
            return Steal::Empty;
        }
        // Acquire: pairs with the release of `IDLE` by the last thief. Release: passes it on to the
        // owner.
        if shared
            .mailbox
            .compare_exchange(IDLE, ASKED, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return Steal::Retry;
        }
        let (mut wait, patience) = (Wait::<M>::new(), M::patience(PATIENCE));
        for look in 0.. {
            // Acquire: pairs with the owner's release.
            match shared.mailbox.load(Ordering::Acquire) {
                FULL => {
                    let task = shared.task.with(|place| {
                        // SAFETY: `FULL` belongs to the thief that asked, this one, and says that
                        // there is a task; after the store below nobody
                        // reads it again.
                        unsafe { place.cast::<T>().read() }
                    });
                    // Release: pairs with the next asker's acquire: the read is over.
                    shared.mailbox.store(IDLE, Ordering::Release);
                    return Steal::Success(task);
                }
                NONE => {
                    // Release: as above.
                    shared.mailbox.store(IDLE, Ordering::Release);
                    return Steal::Empty;
                }
                // Release: as above, for the state that the asker itself acquired.
                ASKED
                    if look >= patience
                        && shared
                            .mailbox
                            .compare_exchange(ASKED, IDLE, Ordering::Release, Ordering::Relaxed)
                            .is_ok() =>
                {
                    return Steal::Retry;
                }
                _ => wait.pause(),
            }
        }
        Steal::Retry
    }

    /// Zero or, where the owner has told of tasks, their number when it did.
    pub fn len(&self) -> usize {
        // Relaxed: a hint.
        self.shared.told.load(Ordering::Relaxed) as usize
    }
}

impl<T, M: Memory> Clone for Thief<T, M> {
    fn clone(&self) -> Self {
        Thief { shared: Arc::clone(&self.shared) }
    }
}

shown!([T, M: Memory] PrivateDeque<T, M>, Thief<T, M>;);
owner_methods!([T: Send, M: Memory] [T: Send, M: Memory] PrivateDeque<T, M>, Thief<T, M>);
thief_methods!([T: Send, M: Memory] Thief<T, M>);

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::lock::tests::Told;

    #[test]
    fn a_task_that_no_thief_comes_for_is_dropped() {
        let alive = Arc::new(());
        let owner = PrivateDeque::<Arc<()>>::new();
        owner.shared.mailbox.store(ASKED, Ordering::Relaxed);
        owner.push(Arc::clone(&alive));
        assert_eq!(owner.shared.mailbox.load(Ordering::Relaxed), FULL);
        drop(owner);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn a_thief_may_ask_again_whatever_the_answer_was() {
        let owner = Rc::new(PrivateDeque::<u32, Told>::default());
        let thief = owner.thief();
        let steal = |meanwhile: fn(&PrivateDeque<u32, Told>)| {
            let owner = Rc::clone(&owner);
            Told::at_a_pause(move || meanwhile(&owner));
            thief.steal()
        };
        owner.push(0);
        assert_eq!(steal(|owner| owner.push(1)), Steal::Success(0));
        assert_eq!(steal(|owner| owner.push(2)), Steal::Success(1));
        assert_eq!(steal(|owner| assert_eq!(owner.pop(), Some(2))), Steal::Empty);
        owner.push(3);
        assert_eq!(steal(|owner| owner.push(4)), Steal::Success(3));
    }

    #[test]
    fn a_thief_looks_so_many_times() {
        let owner = PrivateDeque::<u32, Told>::default();
        owner.push(0);
        let thief = owner.thief();
        let waits = Told::waits(|| assert_eq!(thief.steal(), Steal::Retry));
        assert_eq!(waits.0, PATIENCE);
        assert_eq!(owner.shared.mailbox.load(Ordering::Relaxed), IDLE);
    }
}
