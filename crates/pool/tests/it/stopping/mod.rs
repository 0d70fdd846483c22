//! The machine's memory, over which a thread stops before an access until the test wakes it.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

#[path = "../../../../memory/tests/watched/mod.rs"]
mod watched;

pub(crate) use watched::Kind;
use watched::{Watched, Watcher};

pub(crate) struct Stop {
    kind: Option<Kind>,
    /// Accesses of the kind before it.
    left: usize,
    stopped: Sender<Event>,
    wake: Receiver<Option<Stop>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Stopped,
    /// The thread came to its end without stopping.
    Done,
}

thread_local! {
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
    /// Accesses that this thread may still make: a thread that spins for a stopped one fails.
    pub(crate) static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

type Hook = Box<dyn FnMut(Kind)>;

thread_local! {
    /// What this thread does before each of its accesses, but not before those that it makes there.
    pub(crate) static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

fn access(kind: Kind) {
    if let Some(mut hook) = HOOK.take() {
        hook(kind);
        HOOK.set(Some(hook));
    }
    LEFT.set(LEFT.get().checked_sub(1).expect("a thread that need not wait for a sleeper"));
    let due = STOP.with_borrow_mut(|stop| match stop {
        Some(one) if one.kind.is_some_and(|wanted| wanted != kind) => None,
        Some(Stop { left: 0, .. }) => stop.take(),
        Some(stop) => {
            stop.left -= 1;
            None
        }
        None => None,
    });
    if let Some(stop) = due {
        // An error: the test has failed elsewhere, and nobody listens.
        if stop.stopped.send(Event::Stopped).is_ok() {
            STOP.set(stop.wake.recv().ok().flatten());
        }
    }
}

pub(crate) type Stopping = Watched<Stopper>;

pub(crate) struct Stopper;

impl Watcher for Stopper {
    fn before(kind: Kind) {
        access(kind);
    }
}

pub(crate) struct Sleeper<'scope> {
    thread: thread::ScopedJoinHandle<'scope, ()>,
    event: Receiver<Event>,
    wake: Sender<Option<Stop>>,
    again: Sender<Event>,
    /// Whether it is asleep, not at its end.
    pub stopped: bool,
}

/// Runs `act` until it has made `left` accesses and is about to make the next, or to its end.
pub(crate) fn stop_at<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    left: usize,
    act: impl FnOnce() + Send + 'scope,
) -> Sleeper<'scope> {
    start(scope, move |stop| {
        stop_before(stop, None, left);
        act();
    })
}

pub(crate) struct Stops(Sender<Event>, Receiver<Option<Stop>>);

/// Lets this thread stop when it has made `left` accesses of a kind and is about to make the next.
pub(crate) fn stop_before(stops: Stops, kind: Option<Kind>, left: usize) {
    STOP.set(Some(Stop { kind, left, stopped: stops.0, wake: stops.1 }));
}

/// Runs `act` until it stops as it said it would by [`stop_before`], or to its end.
pub(crate) fn start<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    act: impl FnOnce(Stops) + Send + 'scope,
) -> Sleeper<'scope> {
    let (stopped, event) = channel();
    let (wake, woken) = channel();
    let again = stopped.clone();
    let thread = scope.spawn(move || {
        let end = stopped.clone();
        act(Stops(stopped, woken));
        STOP.set(None);
        end.send(Event::Done).ok();
    });
    let mut sleeper = Sleeper { thread, event, wake, again, stopped: false };
    sleeper.attend();
    sleeper
}

impl Sleeper<'_> {
    fn attend(&mut self) {
        let event = self.event.recv().expect("a thread that stops or ends, and does not panic");
        self.stopped = event == Event::Stopped;
    }

    /// Wakes it to stop again before its next access of this kind, or to come to its end.
    pub(crate) fn go_on_to(&mut self, kind: Kind) {
        if self.stopped {
            let (wake, woken) = channel();
            let stopped = self.again.clone();
            let stop = Stop { kind: Some(kind), left: 0, stopped, wake: woken };
            self.wake.send(Some(stop)).expect("a thread that listens");
            self.wake = wake;
            self.attend();
        }
    }

    pub(crate) fn wake(self) {
        self.wake.send(None).ok();
        self.thread.join().expect("a thread that does not panic");
    }
}
