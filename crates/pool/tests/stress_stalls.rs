//! Threads that stop for ever inside of an operation, before each of their accesses to shared memory in
//! turn: lock-freedom (section 7.2), for every window there is, not only those the paper names.
//!
//! The pools run over a memory that counts a thread's accesses and stops it at a chosen one. Two threads
//! are stopped so, at every pair of accesses; a third must then get every task but what the two may
//! have made their own, find the pool empty, and go on with tasks that come later. At last the two wake
//! up, in either order, and each task has been taken once.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use poach_memory::{Asymmetric, Full, Machine, Memory, Ordering, Pointer, StoreLoad, Word};
use poach_pool::bag::ConcBag;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::ms_queue::WsMsq;
use poach_pool::policy::{Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::stack::WsLifo;

/// Where a thread stops, and how it says so and is woken.
struct Stop {
    /// Accesses before it.
    left: usize,
    stopped: Sender<Event>,
    wake: Receiver<()>,
}

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Stopped,
    /// The thread came to its end without stopping.
    Done,
}

thread_local! {
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
    /// Accesses that this thread may still make: one that waits for a sleeper comes to its end.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Far more accesses than the third thread needs for all that it does.
const ENOUGH: u64 = 100_000;

/// Before each access.
fn access() {
    LEFT.set(LEFT.get().checked_sub(1).expect("a thread that need not wait for a sleeper"));
    let due = STOP.with_borrow_mut(|stop| match stop {
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
            stop.wake.recv().ok();
        }
    }
}

/// The machine's memory, with [`access`] before every access.
struct Stopping;

impl Memory for Stopping {
    type Word = StoppingWord;
    type Pointer<T> = StoppingPointer<T>;
    type Cell<T> = <Machine as Memory>::Cell<T>;

    fn full() {
        access();
        Machine::full();
    }

    fn light() {
        Machine::light();
    }

    fn heavy() {
        access();
        Machine::heavy();
    }

    fn asymmetric() -> bool {
        Machine::asymmetric()
    }

    fn pause() {
        Machine::pause();
    }
}

struct StoppingWord(<Machine as Memory>::Word);

impl Word for StoppingWord {
    fn new(value: u64) -> Self {
        StoppingWord(Word::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        access();
        Word::load(&self.0, order)
    }

    fn store(&self, value: u64, order: Ordering) {
        access();
        Word::store(&self.0, value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        access();
        Word::swap(&self.0, value, order)
    }

    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        access();
        Word::fetch_add(&self.0, value, order)
    }

    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        access();
        Word::fetch_sub(&self.0, value, order)
    }

    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        access();
        Word::fetch_or(&self.0, value, order)
    }

    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        access();
        Word::fetch_and(&self.0, value, order)
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        access();
        Word::compare_exchange(&self.0, current, new, success, failure)
    }
}

struct StoppingPointer<T>(<Machine as Memory>::Pointer<T>);

impl<T> Pointer<T> for StoppingPointer<T> {
    fn new(value: *mut T) -> Self {
        StoppingPointer(Pointer::new(value))
    }

    fn load(&self, order: Ordering) -> *mut T {
        access();
        Pointer::load(&self.0, order)
    }

    fn store(&self, value: *mut T, order: Ordering) {
        access();
        Pointer::store(&self.0, value, order);
    }

    fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        access();
        Pointer::swap(&self.0, value, order)
    }

    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        access();
        Pointer::compare_exchange(&self.0, current, new, success, failure)
    }
}

/// A thread that may be asleep in the middle of what it does.
struct Sleeper<'scope> {
    thread: thread::ScopedJoinHandle<'scope, ()>,
    wake: Sender<()>,
    stopped: bool,
}

/// What a thread that is to be stopped does; it adds what it takes, at once.
type Act = Box<dyn FnOnce(&Mutex<Vec<u64>>) + Send>;

/// Runs `act` until it has made `accesses`, or to its end.
fn stop_at<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    taken: &'scope Mutex<Vec<u64>>,
    accesses: usize,
    act: Act,
) -> Sleeper<'scope> {
    let (stopped, event) = channel();
    let (wake, woken) = channel();
    let thread = scope.spawn(move || {
        let stop = Stop { left: accesses, stopped: stopped.clone(), wake: woken };
        STOP.set(Some(stop));
        act(taken);
        STOP.set(None);
        stopped.send(Event::Done).ok();
    });
    let event = event.recv().expect("a thread that stops or ends, and does not panic");
    Sleeper { thread, wake, stopped: event == Event::Stopped }
}

impl Sleeper<'_> {
    fn wake(self) {
        self.wake.send(()).ok();
        self.thread.join().expect("a thread that does not panic");
    }
}

/// Tasks that are there from the start, in chunks of two.
const TASKS: u64 = 3;
/// Tasks that come when the two have stopped.
const LATER: u64 = 3;

/// Who is stopped.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// The consumer whose pool the tasks are in: takes two of them, and with them a whole chunk.
    Owner,
    /// Another that steals, and takes what it has stolen.
    Thief,
    /// A third that steals from the first and then from the second.
    Robber,
    /// Puts a task that begins a chunk, and one more.
    Producer,
    /// A consumer that comes to the pool, and gets a task.
    Comer,
}

/// Handles for all of them, and what they do. `TASKS` + 1 and + 2 are the stopped producer's.
fn acts<P: Mechanism<u64> + 'static>(pools: &Arc<P>, who: [Who; 2]) -> [Act; 2]
where
    P::Consumer: 'static,
    P::Producer: 'static,
{
    // The owner's seat is 0, the thief's 1, whoever of them is there to be stopped.
    let mut owner = Some(pools.consumer().expect("a seat"));
    let mut thief = Some(pools.consumer().expect("a seat"));
    let mut first = pools.producer().expect("a seat");
    let mut second = pools.producer().expect("a seat");
    for task in 1..=TASKS {
        assert!(first.produce_force(0, task).is_ok());
    }
    // The producer that is stopped is the first; another goes on with its own chunk.
    assert!(second.produce_force(0, 0).is_ok());
    let mut producer = Some(first);
    who.map(|who| -> Act {
        match who {
            Who::Owner => {
                let mut owner = owner.take().expect("one owner");
                Box::new(move |taken| {
                    for _ in 0..2 {
                        let task = owner.consume();
                        taken.lock().expect("no panic").extend(task);
                    }
                })
            }
            Who::Thief => {
                let mut thief = thief.take().expect("one thief");
                Box::new(move |taken| {
                    let task = thief.steal(0);
                    taken.lock().expect("no panic").extend(task);
                    let task = thief.consume();
                    taken.lock().expect("no panic").extend(task);
                })
            }
            Who::Robber => {
                let mut robber = pools.consumer().expect("a seat");
                Box::new(move |taken| {
                    for from in [1, 0] {
                        let task = robber.steal(from);
                        taken.lock().expect("no panic").extend(task);
                    }
                })
            }
            Who::Producer => {
                let mut producer = producer.take().expect("one producer");
                Box::new(move |_| {
                    for task in TASKS + 1..=TASKS + 2 {
                        assert!(producer.produce_force(0, task).is_ok());
                    }
                })
            }
            Who::Comer => {
                let pools = Arc::clone(pools);
                Box::new(move |taken| {
                    let mut comer = Taker::at(&pools, Policy::default(), 0).expect("a seat");
                    let task = comer.get();
                    taken.lock().expect("no panic").extend(task);
                })
            }
        }
    })
}

/// Stops the two at accesses `at`; whether each was stopped before its end.
fn stop_two<P: Mechanism<u64> + 'static>(
    pools: P,
    who: [Who; 2],
    at: [usize; 2],
    order: bool,
) -> [bool; 2]
where
    P::Consumer: 'static,
    P::Producer: 'static,
{
    let pools = Arc::new(pools);
    let taken = Mutex::new(Vec::new());
    let [first, second] = acts(&pools, who);
    let puts = who.iter().any(|who| matches!(who, Who::Producer));
    let most = TASKS + if puts { 2 } else { 0 };
    let stopped = thread::scope(|scope| {
        let first = stop_at(scope, &taken, at[0], first);
        let second = stop_at(scope, &taken, at[1], second);
        let stopped = [first.stopped, second.stopped];
        // Each may have one task for itself; a producer may have put one or neither of its two.
        let away: usize = who
            .iter()
            .zip(stopped)
            .map(|(who, stopped)| match who {
                _ if !stopped => 0,
                Who::Producer => 2,
                _ => 1,
            })
            .sum();
        LEFT.set(ENOUGH);
        let mut other = Taker::at(&pools, Policy::default(), 0).expect("a seat");
        let mut producer = pools.producer().expect("a seat");
        let mut get = |wanted: u64| {
            while let Some(task) = other.get() {
                taken.lock().expect("no panic").push(task);
            }
            let found = taken.lock().expect("no panic").len();
            let least = (wanted + 1) as usize - away;
            assert!(found >= least, "{who:?} stopped at {at:?}: {found} tasks, not {least}");
        };
        get(most);
        for task in 0..LATER {
            assert!(producer.produce_force(0, 100 + task).is_ok());
        }
        get(most + LATER);
        if order {
            first.wake();
            second.wake();
        } else {
            second.wake();
            first.wake();
        }
        while let Some(task) = other.get() {
            taken.lock().expect("no panic").push(task);
        }
        LEFT.set(u64::MAX);
        stopped
    });
    let mut taken = taken.into_inner().expect("no panic");
    taken.sort_unstable();
    assert!(
        taken.iter().copied().eq((0..=most).chain(100..100 + LATER)),
        "{who:?} stopped at {at:?}: taken {taken:?}"
    );
    stopped
}

const PAIRS: [[Who; 2]; 7] = [
    [Who::Owner, Who::Thief],
    [Who::Thief, Who::Owner],
    [Who::Thief, Who::Robber],
    [Who::Owner, Who::Producer],
    [Who::Thief, Who::Producer],
    [Who::Producer, Who::Comer],
    [Who::Comer, Who::Thief],
];

/// Every access of the first, with `stride` between those of the second; from another start each time.
fn stop_everywhere<P: Mechanism<u64> + 'static>(stride: usize, make: impl Fn() -> Option<P>)
where
    P::Consumer: 'static,
    P::Producer: 'static,
{
    for who in PAIRS {
        let (mut stops, mut first) = (0, 0);
        loop {
            let mut second = first % stride;
            let more = loop {
                let order = (first + second) % 2 == 0;
                let pools = make().expect("memory");
                let stopped = stop_two(pools, who, [first, second], order);
                stops += 1;
                if !stopped[1] {
                    break stopped[0];
                }
                second += stride;
            };
            if !more {
                break;
            }
            first += 1;
        }
        println!("{who:?}: {stops} pairs of places, {first} of the first thread's");
        assert!(first > 5, "{who:?} makes only {first} accesses");
    }
}

fn salsa<F: StoreLoad<Stopping> + Default>() -> Option<Salsa<u64, Stopping, F>> {
    Salsa::new(2)
}

#[test]
fn salsa_goes_on() {
    stop_everywhere(3, salsa::<Asymmetric<Stopping>>);
}

#[test]
fn salsa_with_full_fences_goes_on() {
    stop_everywhere(7, salsa::<Full>);
}

#[test]
fn the_rivals_go_on() {
    stop_everywhere(7, || SalsaCas::<u64, Stopping>::new(2));
    stop_everywhere(7, || ConcBag::<u64, Stopping>::new(2));
    stop_everywhere(7, WsMsq::<u64, Stopping>::new);
    stop_everywhere(7, WsLifo::<u64, Stopping>::new);
}
