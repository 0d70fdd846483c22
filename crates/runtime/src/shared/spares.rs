//! The spare workers of a pool: which are idle, and which replace a blocked worker. See
//! [`blocking`](crate::blocking()).
//!
//! The lock guards an interrupt's roll call too (see `interrupt`). While an interrupt is under way
//! no spare is lent, and no spare that the interrupt has counted comes back before it has answered
//! its call.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::system::process::ProcessGuard;

/// The spare workers of a pool, by their slots after the regular ones.
pub(crate) struct Spares {
    process_guard: ProcessGuard,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    slots: Vec<Spare>,
    dismissed: bool,
    /// An interrupt is under way.
    interrupted: bool,
}

enum Spare {
    Idle,
    /// Lent out; its thread has not seen it yet.
    Called(Loan),
    /// At work for this loan, or, if that is over, until its task has ended.
    Lent(Loan),
}

impl Spare {
    /// Whether the slot's thread works for no lender, or will soon: then it may be lent again at
    /// once, since it keeps working meanwhile. That includes a thread that has yet to see a loan
    /// which is over already. It may still run a task that it took during an earlier loan, and will
    /// see the new loan instead.
    fn is_free(&self) -> bool {
        match self {
            Spare::Idle => true,
            // Relaxed: nothing is handed over with it.
            Spare::Called(loan) | Spare::Lent(loan) => loan.load(Ordering::Relaxed) != 0,
        }
    }
}

/// Set once the lender is back.
pub(crate) type Loan = Arc<<Machine as Memory>::Word>;

impl Spares {
    pub(crate) fn new(number: usize) -> Spares {
        let slots = (0..number).map(|_| Spare::Idle).collect();
        let state = State { slots, dismissed: false, interrupted: false };
        Spares {
            process_guard: ProcessGuard::here(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lend(&self) -> Option<(usize, Loan)> {
        // In a child process there are no spare threads, and a thread that does not exist may hold
        // the lock.
        if self.process_guard.is_elsewhere() {
            return None;
        }
        let mut state = self.lock();
        if state.interrupted {
            return None;
        }
        // An idle spare rather than a spare that has yet to come back.
        let idle = state.slots.iter().position(|slot| matches!(slot, Spare::Idle));
        let slot = idle.or_else(|| state.slots.iter().position(Spare::is_free))?;
        let loan: Loan = Arc::new(Word::new(0));
        state.slots[slot] = Spare::Called(Arc::clone(&loan));
        drop(state);
        self.changed.notify_all();
        Some((slot, loan))
    }

    pub(crate) fn idle(&self) -> usize {
        self.lock().slots.iter().filter(|slot| matches!(slot, Spare::Idle)).count()
    }

    /// Lets the spare threads end: there will be no more loans.
    pub(crate) fn dismiss(&self) {
        self.lock().dismissed = true;
        self.changed.notify_all();
    }

    /// Begins an interrupt, unless one is under way, and passes to `call` the spare slots at work.
    pub(crate) fn begin_interrupt(
        &self,
        call: impl FnOnce(&mut dyn Iterator<Item = usize>),
    ) -> bool {
        let mut state = self.lock();
        if state.interrupted {
            return false;
        }
        state.interrupted = true;
        let at_work = |(slot, it): (usize, &Spare)| (!matches!(it, Spare::Idle)).then_some(slot);
        call(&mut state.slots.iter().enumerate().filter_map(at_work));
        true
    }

    pub(crate) fn end_interrupt(&self) {
        self.lock().interrupted = false;
        self.changed.notify_all();
    }

    /// Waits until no interrupt is under way. For a thread that is no worker, and that no interrupt
    /// waits for.
    #[cold]
    pub(crate) fn wait_for_interrupt(&self) {
        let mut state = self.lock();
        while state.interrupted {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.lock().interrupted
    }

    /// The next loan of this slot's thread; `None` if there will be none.
    pub(crate) fn next_loan(&self, slot: usize) -> Option<Loan> {
        let mut state = self.lock();
        loop {
            if let Spare::Called(loan) = &state.slots[slot] {
                let loan = Arc::clone(loan);
                state.slots[slot] = Spare::Lent(Arc::clone(&loan));
                return Some(loan);
            }
            if state.dismissed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The slot is idle, or lent again, if its worker is free: no interrupt has called it.
    pub(crate) fn come_back(&self, slot: usize, is_free: impl FnOnce() -> bool) -> bool {
        let mut state = self.lock();
        let free = is_free();
        if free && matches!(state.slots[slot], Spare::Lent(_)) {
            state.slots[slot] = Spare::Idle;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_yet_to_see_a_loan_that_is_over_is_lent_again() {
        let spares = Spares::new(1);
        let (slot, first) = spares.lend().unwrap();
        assert!(spares.next_loan(slot).is_some());
        first.store(1, Ordering::Relaxed);
        // Its thread is still in a task.
        let (_, second) = spares.lend().unwrap();
        assert!(spares.lend().is_none());
        second.store(1, Ordering::Relaxed);
        let (_, third) = spares.lend().unwrap();
        // The thread comes back to the third loan, and is not idle meanwhile.
        assert!(spares.come_back(slot, || true));
        assert!(Arc::ptr_eq(&spares.next_loan(slot).unwrap(), &third));
    }

    #[test]
    fn one_that_is_lent_is_not_idle_before_it_has_come_back() {
        let spares = Spares::new(2);
        assert_eq!(spares.idle(), 2);
        let (slot, _loan) = spares.lend().unwrap();
        assert_eq!(spares.idle(), 1);
        assert!(spares.next_loan(slot).is_some());
        assert!(!spares.come_back(slot, || false));
        assert_eq!(spares.idle(), 1);
        assert!(spares.come_back(slot, || true));
        assert_eq!(spares.idle(), 2);
    }

    #[test]
    fn an_idle_one_is_lent_rather_than_one_that_has_yet_to_come_back() {
        let spares = Spares::new(2);
        let (first, loan) = spares.lend().unwrap();
        assert!(spares.next_loan(first).is_some());
        loan.store(1, Ordering::Relaxed);
        let (second, _) = spares.lend().unwrap();
        assert_ne!(second, first);
        // Where there is no idle one, that one.
        assert_eq!(spares.lend().unwrap().0, first);
    }

    #[test]
    fn while_an_interrupt_is_under_way_none_goes_out_and_no_other_begins() {
        let spares = Spares::new(3);
        let (at_work, _loan) = spares.lend().unwrap();
        let mut called = Vec::new();
        assert!(spares.begin_interrupt(|slots| called.extend(slots)));
        assert_eq!(called, [at_work]);
        assert!(spares.is_interrupted() && spares.lend().is_none());
        assert!(!spares.begin_interrupt(|_| unreachable!("it is not its turn")));
        spares.end_interrupt();
        assert!(!spares.is_interrupted() && spares.lend().is_some());
    }

    #[test]
    fn one_that_was_lent_works_before_it_ends() {
        let spares = Spares::new(2);
        let (slot, _loan) = spares.lend().unwrap();
        spares.dismiss();
        assert!(spares.next_loan(slot).is_some());
        assert!(spares.next_loan(1 - slot).is_none());
    }
}
