//! Spare workers: for a worker that blocks outside of the pool, another thread works meanwhile.
//!
//! A pool built with spares has that many threads more than it works with. They hold seats of their
//! own, with their own deques, beyond the regular ones, and wait here, not among the sleeping workers,
//! so that nobody wakes one by chance. A worker that enters [`blocking`] lends one out, if one is left:
//! it works like any other until the loan is over, ends the task that it is in, and comes back (or is
//! lent again before it has). For that time the pool may have one thread at work too many; the lender goes on at once, since what the
//! spare runs may be waiting for it.
//!
//! The same lock guards an interrupt's roll call (see `interrupt`): while one is under way no spare goes
//! out, and none that the interrupt has counted comes back before it has answered its call.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::job::current::Local;
use crate::registry::{Priority, Registry};

/// The spare workers of a pool, by their seats beyond the regular ones.
pub(crate) struct Spares {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    seats: Vec<Seat>,
    dismissed: bool,
    /// An interrupt is under way.
    interrupted: bool,
}

enum Seat {
    Idle,
    /// Lent out; its thread has yet to see it.
    Called(Loan),
    /// At work, for this loan or, if that is over, until its task has ended.
    Lent(Loan),
}

impl Seat {
    /// Whether the seat's thread works for nobody, or will before long: then it may be lent again at
    /// once, since it keeps working meanwhile.
    fn is_free(&self) -> bool {
        match self {
            Seat::Idle => true,
            Seat::Called(_) => false,
            // Relaxed: nothing is handed over with it.
            Seat::Lent(loan) => loan.load(Ordering::Relaxed) != 0,
        }
    }
}

/// Set once the lender is back.
type Loan = Arc<<Machine as Memory>::Word>;

/// Runs `f`, which may block; while it does, a spare worker takes this one's place in the pool.
///
/// For waits that the pool knows nothing of: a file, a lock, a channel. The pool's tasks run on as many
/// threads as before, if it was built with [`spares`](crate::Builder::spares) and one is left;
/// otherwise, and on a thread that is no worker, this just calls `f`. What this worker has spawned and
/// not started is handed to the others. The spare has an index of its own, at or above the pool's
/// number of threads.
///
/// ```
/// let pool = poach_runtime::ThreadPool::builder().threads(1).spares(1).build()?;
/// let (send, receive) = std::sync::mpsc::channel();
/// let answer = pool.install(move || {
///     let _ = poach_runtime::spawn(move || send.send(42));
///     // The only regular worker waits for what a worker of its pool must send.
///     poach_runtime::blocking(|| receive.recv())
/// });
/// assert_eq!(answer, Ok(42));
/// # Ok::<(), poach_runtime::BuildError>(())
/// ```
///
/// # Panics
///
/// With `f`'s payload, if `f` panics.
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    Local::with(|local| {
        let _loan = local.and_then(Lent::new);
        f()
    })
}

/// A spare that works for a worker that blocks, until dropped.
struct Lent<'l> {
    local: &'l Local,
    loan: Loan,
    seat: usize,
}

impl<'l> Lent<'l> {
    fn new(local: &'l Local) -> Option<Lent<'l>> {
        let registry = &local.registry;
        if registry.workers.len() == registry.threads {
            return None;
        }
        let (seat, loan) = registry.spares.lend()?;
        hand_over(local);
        Some(Lent { local, loan, seat: registry.threads + seat })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // Release: what the lender did is seen by the spare, whose next lender hands it on. It is line P1
        // of sleep/README.md.
        self.loan.store(1, Ordering::Release);
        self.local.registry.sleep.wake(self.seat);
        // Interrupts wait for workers that block.
        self.local.answer_calls();
    }
}

/// Gives what a worker has spawned and not started to whoever comes for it.
fn hand_over(local: &Local) {
    while let Some(task) = local.pop_own() {
        local.registry.inject_at(Priority::Normal, task);
    }
}

impl Spares {
    pub(crate) fn new(number: usize) -> Spares {
        let seats = (0..number).map(|_| Seat::Idle).collect();
        let state = State { seats, dismissed: false, interrupted: false };
        Spares { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lend(&self) -> Option<(usize, Loan)> {
        let mut state = self.lock();
        if state.interrupted {
            return None;
        }
        // An idle one rather than one that has yet to come back.
        let idle = state.seats.iter().position(|seat| matches!(seat, Seat::Idle));
        let seat = idle.or_else(|| state.seats.iter().position(Seat::is_free))?;
        let loan: Loan = Arc::new(Word::new(0));
        state.seats[seat] = Seat::Called(Arc::clone(&loan));
        drop(state);
        self.changed.notify_all();
        Some((seat, loan))
    }

    /// Lets the spare threads end. There is nothing left to lend them for.
    pub(crate) fn dismiss(&self) {
        self.lock().dismissed = true;
        self.changed.notify_all();
    }

    /// Begins an interrupt, unless one is under way, and says to `call` which spare seats are at work.
    pub(crate) fn begin_interrupt(
        &self,
        call: impl FnOnce(&mut dyn Iterator<Item = usize>),
    ) -> bool {
        let mut state = self.lock();
        if state.interrupted {
            return false;
        }
        state.interrupted = true;
        let at_work = |(seat, it): (usize, &Seat)| (!matches!(it, Seat::Idle)).then_some(seat);
        call(&mut state.seats.iter().enumerate().filter_map(at_work));
        true
    }

    pub(crate) fn end_interrupt(&self) {
        self.lock().interrupted = false;
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.lock().interrupted
    }

    /// The next loan of this seat's thread; `None` if there will be none.
    fn next_loan(&self, seat: usize) -> Option<Loan> {
        let mut state = self.lock();
        loop {
            if let Seat::Called(loan) = &state.seats[seat] {
                let loan = Arc::clone(loan);
                state.seats[seat] = Seat::Lent(Arc::clone(&loan));
                return Some(loan);
            }
            if state.dismissed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The seat is idle again, or lent again, unless its worker is called to an interrupt.
    fn come_back(&self, seat: usize, local: &Local) -> bool {
        let mut state = self.lock();
        let free = local.remote().calls.is_empty();
        if free && matches!(state.seats[seat], Seat::Lent(_)) {
            state.seats[seat] = Seat::Idle;
        }
        free
    }
}

/// What a spare worker's thread does.
pub(crate) fn main_loop(local: &Local) {
    let registry: &Registry = &local.registry;
    let seat = local.index - registry.threads;
    while let Some(loan) = registry.spares.next_loan(seat) {
        // Acquire: pairs with the lender's return. Line S5.
        let over = || loan.load(Ordering::Acquire) != 0;
        local.wait_for_any(&over);
        loop {
            local.answer_calls();
            hand_over(local);
            if registry.spares.come_back(seat, local) {
                break;
            }
        }
    }
}
