//! The gate at which the threads of a pool wait for each other to start, if address space is
//! limited.
//!
//! The next thread is started once the last one has arrived here: by then it has taken its address
//! space. No thread goes on before all have arrived. So the space for each does not depend on the
//! schedule, and a pool that can be made once can be made each time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The builder's side. It opens when dropped.
pub(super) struct Gate {
    shared: Arc<Inner>,
    started: usize,
}

/// A thread's side.
pub(crate) struct Place(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The number of threads that have arrived.
    came: usize,
    open: bool,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, state: MutexGuard<'_, State>, waits: impl Fn(&State) -> bool) {
        drop(self.changed.wait_while(state, |state| waits(state)));
    }
}

impl Gate {
    pub(super) fn closed() -> Gate {
        let state = Mutex::new(State { came: 0, open: false });
        Gate { shared: Arc::new(Inner { state, changed: Condvar::new() }), started: 0 }
    }

    pub(super) fn place(&self) -> Place {
        Place(Arc::clone(&self.shared))
    }

    /// Waits until the last started thread has arrived.
    pub(super) fn wait(&mut self) {
        self.started += 1;
        self.shared.wait_while(self.shared.lock(), |state| state.came < self.started);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.lock().open = true;
        self.shared.changed.notify_all();
    }
}

impl Place {
    /// Says that this thread has started, and waits until all have.
    pub(super) fn pass(self) {
        let mut state = self.0.lock();
        state.came += 1;
        self.0.changed.notify_all();
        self.0.wait_while(state, |state| !state.open);
    }
}
