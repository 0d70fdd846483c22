//! Tasks that stand alone, and the handles to their results.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::job::current::Local;
use crate::job::task::{Task, catch};
use crate::latch::Signal;
use crate::pool::global;
use crate::registry::Registry;

/// Starts `f` on the pool of this thread's worker, or on the global pool, and returns at once.
///
/// Dropping the handle lets the task go: it runs all the same. The pool's drop waits for it.
///
/// ```
/// let answer = poach_runtime::spawn(|| 6 * 7);
/// assert_eq!(answer.join().unwrap(), 42);
/// ```
pub fn spawn<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    Local::with(|local| match local {
        Some(local) => spawn_in(&local.registry, f),
        None => global().spawn(f),
    })
}

/// The result of a spawned task, perhaps still to come.
#[must_use = "dropping the handle detaches the task; use `drop` or `let _ =` to say so"]
pub struct JoinHandle<R>(Arc<Packet<R>>);

/// Where a task leaves its outcome.
struct Packet<R>(Mutex<State<R>>);

enum State<R> {
    /// The task has not ended, and nobody waits for it.
    Running,
    /// The task has not ended, and this one is to be told.
    Awaited(Signal),
    Ended(Result<R, Box<dyn Any + Send>>),
    /// The handle is gone.
    Detached,
}

pub(crate) fn spawn_in<R: Send + 'static>(
    registry: &Arc<Registry>,
    f: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let packet = Arc::new(Packet(Mutex::new(State::Running)));
    let handle = JoinHandle(Arc::clone(&packet));
    let home = Arc::clone(registry);
    let task = Task::detached(move || {
        let mut result = None;
        let outcome = catch(|| result = Some(f())).map(|()| result.expect("f has returned"));
        packet.end(outcome, &home);
    });
    Local::with(|local| match local {
        Some(local) if Arc::ptr_eq(&local.registry, registry) => local.spawn(task),
        _ => registry.inject(task),
    });
    handle
}

impl<R> Packet<R> {
    fn end(&self, outcome: Result<R, Box<dyn Any + Send>>, registry: &Registry) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Detached) {
            drop(state);
            match outcome {
                // The result's destructor is foreign code: its panic has nobody to travel to either.
                Ok(result) => {
                    if let Err(payload) = catch(|| drop(result)) {
                        registry.handlers.panicked(payload);
                    }
                }
                Err(payload) => registry.handlers.panicked(payload),
            }
            return;
        }
        let before = std::mem::replace(&mut *state, State::Ended(outcome));
        drop(state);
        if let State::Awaited(signal) = before {
            signal.set();
        }
    }
}

impl<R> JoinHandle<R> {
    /// Waits for the task, working meanwhile if this thread is a worker.
    ///
    /// # Errors
    ///
    /// The payload of the task's panic.
    pub fn join(self) -> Result<R, Box<dyn Any + Send>> {
        Local::with(|local| {
            let signal = {
                let mut state = self.lock();
                if matches!(*state, State::Running) {
                    let signal = Signal::new(local);
                    *state = State::Awaited(signal.clone());
                    Some(signal)
                } else {
                    None
                }
            };
            if let Some(signal) = signal {
                signal.wait(local);
            }
        });
        match std::mem::replace(&mut *self.lock(), State::Detached) {
            State::Ended(outcome) => outcome,
            _ => unreachable!("the task has ended, and this is its one handle"),
        }
    }

    /// Whether the task has ended, so that [`join`](JoinHandle::join) will not wait.
    pub fn is_finished(&self) -> bool {
        matches!(*self.lock(), State::Ended(_))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<R>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Drop for JoinHandle<R> {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.lock(), State::Detached);
        if let State::Ended(Err(payload)) = before {
            // Nobody asked in time; the panic hook has reported it.
            drop(payload);
        }
    }
}

impl<R> fmt::Debug for JoinHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("finished", &self.is_finished()).finish()
    }
}
