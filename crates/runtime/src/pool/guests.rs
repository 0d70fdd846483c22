//! Guests: threads from outside that work for a pool, each with a worker of its own meanwhile.
//!
//! A place is a worker without a thread: a slot in the pool, with deques, and a [`WorkerThread`].
//! The thread that has taken the place's bit ([`Sleep::enter`](crate::sleep::Sleep::enter)) has the
//! `WorkerThread`, until it gives the bit back.

use std::sync::Arc;
use std::thread;

use crate::pace::KEPT_SLOTS_OF_A_GUEST;
use crate::shared::{PoolShared, Spawns};
use crate::sleep::guests::NoPlace;
use crate::worker::current::WorkerThread;

/// The places of a pool's guests.
pub(crate) struct Guests(Box<[WorkerThread]>);

// SAFETY: one thread at a time uses a `WorkerThread`: the thread that has taken its place, with a
// read-modify-write that acquires the release of the place's last thread. Any thread may in turn
// use and drop its content: the owner's end of a queue, which is Send, a head of a stack, which
// belongs to the thread that has the `WorkerThread`, and cells.
unsafe impl Send for Guests {}
// SAFETY: one thread at a time uses a `WorkerThread`; through a shared reference a thread reaches
// the `WorkerThread` whose place it has taken, and no other.
unsafe impl Sync for Guests {}

impl Guests {
    /// The guests of a pool's last slots; `owners` are their ends of the queues.
    pub(crate) fn new(shared: &Arc<PoolShared>, owners: Vec<Spawns>) -> Guests {
        let first = shared.workers.len() - owners.len();
        let local = |(place, spawns)| WorkerThread::new(Arc::clone(shared), first + place, spawns);
        Guests(owners.into_iter().enumerate().map(local).collect())
    }

    /// Calls `f` on this thread, which is no worker, as a worker, after any interrupt that is under
    /// way. Gives `f` back if all places are taken, or there are none.
    ///
    /// # Panics
    ///
    /// In a process forked since the pool was made. With `f`'s payload, if `f` panics.
    pub(crate) fn visit<R, F: FnOnce() -> R>(&self, shared: &PoolShared, f: F) -> Result<R, F> {
        /// Gives the place back, also when `f` unwinds.
        struct Visit<'g>(&'g WorkerThread, &'g PoolShared, usize);
        impl Drop for Visit<'_> {
            fn drop(&mut self) {
                let Visit(local, shared, place) = *self;
                let index = local.index;
                local.hand_over();
                if local.spawns_capacity() > KEPT_SLOTS_OF_A_GUEST {
                    local.shrink_spawns(KEPT_SLOTS_OF_A_GUEST);
                }
                // An interrupt that has begun has called this guest, or is about to, and waits for
                // it. After G2 the WorkerThread may be another's.
                while !shared.sleep.leave(place, || shared.relieve(Some(index))) {
                    shared.process_guard.check_or_abort();
                    local.answer_calls();
                    thread::yield_now();
                }
            }
        }
        shared.process_guard.check();
        let place = loop {
            match shared.sleep.enter() {
                Ok(place) => break place,
                // Without places the call has its turn in the pool's inbox, among all others.
                Err(NoPlace::Closed) if !self.0.is_empty() => shared.spares.wait_for_interrupt(),
                Err(_) => return Err(f),
            }
        };
        let visit = Visit(&self.0[place], shared, place);
        Ok(visit.0.visit(f))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::ThreadPool;

    /// The next guest in its place finds a smaller queue than it has left.
    #[test]
    #[cfg_attr(miri, ignore = "a million tasks")]
    fn a_guest_that_leaves_gives_back_what_a_burst_has_left() {
        let pool = ThreadPool::builder().num_threads(1).callers(1).build().unwrap();
        // The only worker steals nothing meanwhile.
        let (start, started) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        pool.spawn(move || {
            start.send(()).unwrap();
            let _ = ended.recv();
        });
        started.recv().unwrap();
        let slots = || WorkerThread::with(|local| local.unwrap().spawns_capacity());
        let burst = pool.run(|_| {
            crate::scope(|s| (0..=KEPT_SLOTS_OF_A_GUEST).for_each(|_| s.spawn(|_| ())));
            slots()
        });
        let kept = pool.run(|_| slots());
        drop(end);
        assert!(
            burst > KEPT_SLOTS_OF_A_GUEST && kept <= KEPT_SLOTS_OF_A_GUEST,
            "{kept} of {burst}"
        );
    }

    /// A guest is called by an interrupt and does not notice before it leaves.
    #[test]
    fn a_guest_that_leaves_takes_part_in_an_interrupt_that_has_called_it() {
        let pool = ThreadPool::builder().num_threads(2).build().unwrap();
        thread::scope(|threads| {
            let interrupter = pool.run(|_| {
                let interrupter = threads.spawn(|| pool.interrupt(|| crate::join(|| 1, || 2)));
                let is_called =
                    || WorkerThread::with(|local| !local.unwrap().slot().calls.is_empty());
                while !is_called() {
                    thread::yield_now();
                }
                interrupter
            });
            assert_eq!(interrupter.join().unwrap(), (1, 2));
        });
        // The place is free again.
        assert_eq!(pool.run(|mut worker| worker.join(|_| 3, |_| 4)), (3, 4));
    }

    #[test]
    fn a_caller_that_comes_during_an_interrupt_works_on_its_own_thread_after_it() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let shared = pool.shared();
        // As an interrupt does, and stays under way.
        assert!(
            shared.spares.begin_interrupt(|_| assert_eq!(shared.sleep.close_places().count(), 0))
        );
        let (send, answer) = mpsc::channel();
        thread::scope(|threads| {
            threads.spawn(|| {
                let here = thread::current().id();
                send.send(true).unwrap();
                send.send(pool.run(|_| thread::current().id() == here)).unwrap();
            });
            assert_eq!(answer.recv(), Ok(true), "it calls");
            let early = answer.recv_timeout(Duration::from_millis(20));
            shared.sleep.open_places();
            shared.spares.end_interrupt();
            assert!(early.is_err(), "before its end");
            assert_eq!(answer.recv(), Ok(true));
        });
    }
}
