//! The spare workers of a pool: which are idle, and which are lent to whom. See [`blocking`](crate::blocking()).
//!
//! The lock guards an interrupt's roll call too (see `interrupt`): while one is under way no spare goes
//! out, and none that the interrupt has counted comes back before it has answered its call.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::job::forked::Birth;

/// The spare workers of a pool, by their seats beyond the regular ones.
pub(crate) struct Spares {
    birth: Birth,
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
pub(crate) type Loan = Arc<<Machine as Memory>::Word>;

impl Spares {
    pub(crate) fn new(number: usize) -> Spares {
        let seats = (0..number).map(|_| Seat::Idle).collect();
        let state = State { seats, dismissed: false, interrupted: false };
        Spares { birth: Birth::here(), state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lend(&self) -> Option<(usize, Loan)> {
        // In a child process there is no spare thread, and the lock may be held by one that is not there.
        if self.birth.is_elsewhere() {
            return None;
        }
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

    /// How many are at home.
    pub(crate) fn idle(&self) -> usize {
        self.lock().seats.iter().filter(|seat| matches!(seat, Seat::Idle)).count()
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
    pub(crate) fn next_loan(&self, seat: usize) -> Option<Loan> {
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

    /// The seat is idle again, or lent again, if its worker is free, not called to an interrupt.
    pub(crate) fn come_back(&self, seat: usize, is_free: impl FnOnce() -> bool) -> bool {
        let mut state = self.lock();
        let free = is_free();
        if free && matches!(state.seats[seat], Seat::Lent(_)) {
            state.seats[seat] = Seat::Idle;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_lent_is_not_idle_before_it_has_come_back() {
        let spares = Spares::new(2);
        assert_eq!(spares.idle(), 2);
        let (seat, _loan) = spares.lend().unwrap();
        assert_eq!(spares.idle(), 1);
        assert!(spares.next_loan(seat).is_some());
        assert!(!spares.come_back(seat, || false));
        assert_eq!(spares.idle(), 1);
        assert!(spares.come_back(seat, || true));
        assert_eq!(spares.idle(), 2);
    }
}
