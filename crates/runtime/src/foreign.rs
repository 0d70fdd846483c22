//! Forks whose fast path is written in another language, as in the header of `capi/`.
//!
//! Such a fork does by itself what `fork` does: it writes a task into the slot at its worker's
//! head, runs the first half, and pops the slot, as [`poach_deque::split::layout`] says. The rare
//! cases are here. A task's descriptor begins with the address of the function that its thief calls
//! with the slot and with the thief's own worker: `Descriptor` in `half`.
//!
//! A [`Worker`] is just the address of the first free slot of its stack.

use std::fmt;
use std::ptr::NonNull;

use poach_deque::split::{self, Popped, PushError};
use poach_memory::Machine;

use crate::join::wait_until_done;
use crate::task::half::{Head, Worker};
use crate::worker::current::WorkerThread;
use crate::worker::signal::Signal;

/// The slot whose address a [`Worker`] is.
pub type Slot = split::Slot<Machine>;

const _: () = assert!(size_of::<Worker<'_>>() == size_of::<NonNull<Slot>>());

/// The address of the first free slot of a worker's stack.
pub fn slot_of(worker: &Worker<'_>) -> NonNull<Slot> {
    worker.head().as_ptr()
}

/// The worker whose stack ends at this slot.
///
/// # Safety
///
/// The calling thread owns the stack, whose first free slot it is, for `'w`.
pub unsafe fn worker_at<'w>(slot: NonNull<Slot>) -> Worker<'w> {
    // SAFETY: by this function's contract.
    let head = unsafe { Head::from_ptr(slot) };
    // SAFETY: by this function's contract.
    unsafe { Worker::new(head) }
}

/// The rest of a push whose slot is not below the limit. The worker is then at the slot above.
///
/// # Errors
///
/// [`PushError::Full`]: the slot is free again.
///
/// # Safety
///
/// The calling thread owns the stack and has written a task into `slot`, which was its first free
/// one.
#[cold]
pub unsafe fn push_at_limit(slot: NonNull<Slot>) -> Result<(), PushError> {
    // SAFETY: by this function's contract.
    let head = unsafe { Head::from_ptr(slot) };
    // SAFETY: by this function's contract.
    unsafe { head.push_at_limit() }.map(|_above| ())
}

/// The rest of a pop whose slot is below the floor: whether the task is the owner's again. If not,
/// its thief is done with it, and what it has left in the payload is the owner's.
///
/// # Safety
///
/// The calling thread owns the stack, whose topmost task is the one in `slot`, where it has just
/// unset the mark.
#[cold]
pub unsafe fn pop_at_floor(slot: NonNull<Slot>) -> bool {
    // SAFETY: by this function's contract.
    let head = unsafe { Head::from_ptr(slot) };
    // SAFETY: by this function's contract.
    let popped = unsafe { head.pop_at_floor() };
    if popped == Popped::Stolen {
        wait_until_done(head);
        // SAFETY: the wait has acquired DONE; what the thief has left in the payload stays there,
        // as nobody but this thread writes to a free slot of its stack.
        unsafe { head.retire() };
    }
    popped == Popped::Own
}

/// Its drop, on any thread, ends the wait of the thread that got it from [`wait`].
pub struct Wake(Signal);

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wake")
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Gives `begin` a [`Wake`] and waits until that has been dropped: a barrier's wait, for example.
/// Blocks. A worker takes no task meanwhile, but answers an [`interrupt`](crate::interrupt()) or a
/// [`broadcast`](crate::broadcast()), so that it may take part in those of whom it waits for.
///
/// What was done before the drop is seen after the wait. A `Wake` that is forgotten
/// ([`core::mem::forget`]) makes the thread wait for ever.
///
/// ```
/// use std::sync::Mutex;
/// use poach_runtime::foreign;
///
/// // All workers meet: the last one to come wakes the others.
/// let pool = poach_runtime::ThreadPool::builder().num_threads(3).build()?;
/// let here = Mutex::new(Vec::new());
/// pool.broadcast(|at| {
///     foreign::wait(|wake| {
///         let mut here = here.lock().unwrap();
///         here.push(wake);
///         if here.len() == at.num_threads() {
///             here.clear();
///         }
///     })
/// });
/// # Ok::<(), poach_runtime::BuildError>(())
/// ```
///
/// # Panics
///
/// If `begin` does. In a process forked since; on a worker's thread such a wait ends the process.
pub fn wait(begin: impl FnOnce(Wake)) {
    WorkerThread::with(|local| {
        let signal = Signal::new(local);
        begin(Wake(signal.clone()));
        signal.wait_still(local);
    });
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::thread;
    use std::time::Duration;

    use poach_deque::split::Status;
    use poach_memory::Ordering;

    use super::*;
    use crate::ThreadPool;
    use crate::task::half::{descriptor, take_half, take_outcome};

    fn pool(threads: usize) -> ThreadPool {
        ThreadPool::builder().num_threads(threads).build().unwrap()
    }

    /// A fork whose pop goes by the floor, since all is shared. Whether the second half was the
    /// owner's again, and what it came to.
    fn fork<B>(worker: &Worker<'_>, second: B, first: impl FnOnce(Head)) -> (bool, u32)
    where
        B: FnOnce(Worker<'_>) -> u32 + Send,
    {
        let (place, second) = (slot_of(worker), ManuallyDrop::new(second));
        let head = worker.head();
        // SAFETY: the token says that this thread owns the stack and where its top is; a small
        // closure fits, and is not used again.
        let above = unsafe { head.push(descriptor::<B, u32>(), &raw const second) }.unwrap();
        // SAFETY: this thread owns the stack.
        unsafe { above.share() };
        first(head);
        // SAFETY: this thread owns the stack, and has pushed the task there.
        assert!(!unsafe { head.pop_above_floor() }, "it is shared");
        // SAFETY: the pop above has unset the mark of the topmost task.
        let own = unsafe { pop_at_floor(place) };
        // SAFETY: this thread owns the stack.
        let slot = unsafe { head.slot() };
        if !own {
            // SAFETY: the thief has left the outcome there, and is done.
            return (own, unsafe { take_outcome::<u32>(slot) }.unwrap());
        }
        // SAFETY: the task is this thread's again, and is what was pushed.
        let second = unsafe { take_half::<B>(slot) };
        // SAFETY: the top is at this slot again.
        (own, second(unsafe { worker_at(place) }))
    }

    #[test]
    fn a_second_half_that_nobody_took_is_its_owners() {
        let result = pool(1).install(|| crate::worker(|worker| fork(&worker, |_| 5, |_| ())));
        assert_eq!(result, (true, 5));
    }

    #[test]
    fn a_second_half_that_was_taken_names_its_thief_and_is_waited_for() {
        let (thief, told, ended) =
            (AtomicUsize::new(usize::MAX), AtomicBool::new(false), AtomicBool::new(false));
        let second = |worker: Worker<'_>| {
            thief.store(worker.index(), Ordering::Relaxed);
            while !told.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
            ended.store(true, Ordering::Relaxed);
            6
        };
        let first = |head: Head| {
            while thief.load(Ordering::Relaxed) == usize::MAX {
                thread::yield_now();
            }
            // SAFETY: this thread owns the stack.
            let status = unsafe { head.slot() }.status().load(Ordering::Relaxed);
            let name = (status >> Status::THIEF_SHIFT) as usize;
            told.store(true, Ordering::Relaxed);
            assert_eq!(name, thief.load(Ordering::Relaxed) + 1);
        };
        let result = pool(2).install(|| {
            crate::worker(|worker| {
                let result = fork(&worker, second, first);
                (result, ended.load(Ordering::Relaxed))
            })
        });
        assert_eq!(result, ((false, 6), true));
    }

    #[test]
    fn a_wait_lasts_until_its_wake_is_dropped() {
        let waits = || {
            let ended = AtomicBool::new(false);
            thread::scope(|threads| {
                let ended = &ended;
                wait(|wake| {
                    threads.spawn(move || {
                        thread::sleep(Duration::from_millis(5));
                        ended.store(true, Ordering::Relaxed);
                        drop(wake);
                    });
                });
                assert!(ended.load(Ordering::Relaxed));
            });
        };
        waits();
        pool(1).install(waits);
    }
}
