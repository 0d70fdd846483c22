//! A place at which threads wait for each other.

use super::{Condvar, Mutex};

/// As [`std::sync::Barrier`].
#[derive(Debug)]
pub struct Barrier {
    size: usize,
    /// How many wait, and how often all have met.
    state: Mutex<(usize, usize)>,
    met: Condvar,
}

/// Whether a thread is the leader of the threads that have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl Barrier {
    /// One at which `size` threads meet.
    #[track_caller]
    pub fn new(size: usize) -> Self {
        Barrier { size, state: Mutex::new((0, 0)), met: Condvar::new() }
    }

    /// Waits until the barrier's number of threads wait here. The last of them leads.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let mut state = self.state.lock().expect("nobody panics with it");
        let times = state.1;
        state.0 += 1;
        if state.0 < self.size {
            let all = self.met.wait_while(state, |state| state.1 == times);
            drop(all.expect("nobody panics with it"));
            return BarrierWaitResult(false);
        }
        *state = (0, times + 1);
        self.met.notify_all();
        BarrierWaitResult(true)
    }
}

impl BarrierWaitResult {
    /// Whether this thread leads.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}
