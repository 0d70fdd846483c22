//! The lock is one of the model's words, so that a thread that waits for it lets others run.

use std::cell::{RefCell, RefMut};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::Wake;

use crate::models::clean_on_both;
use poach_check::{Config, Kind, Simulated, Threads, Verdict, WithoutBarrier, explore, fail};

use super::*;

#[derive(Default)]
struct Flag(OnceLock<()>);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.get_or_init(|| ());
    }
}

struct Model<M: Memory> {
    watch: Watch<M>,
    taken: M::Word,
    watched: RefCell<Watched>,
    things: M::Word,
}

struct Guard<'a, M: Memory>(&'a M::Word, Option<RefMut<'a, Watched>>);

impl<M: Memory> Deref for Guard<'_, M> {
    type Target = Watched;
    fn deref(&self) -> &Watched {
        self.1.as_ref().expect("it is there until the drop")
    }
}

impl<M: Memory> DerefMut for Guard<'_, M> {
    fn deref_mut(&mut self) -> &mut Watched {
        self.1.as_mut().expect("it is there until the drop")
    }
}

impl<M: Memory> Drop for Guard<'_, M> {
    fn drop(&mut self) {
        self.1 = None;
        self.0.store(0, Ordering::Release);
    }
}

impl<M: Memory> Model<M> {
    fn new() -> Rc<Self> {
        let Gate { watch, .. } = Gate::new(false);
        let [taken, things] = [(); 2].map(|()| M::Word::new(0));
        Rc::new(Model { watch, taken, watched: RefCell::default(), things })
    }

    fn lock(&self) -> Guard<'_, M> {
        while self.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            M::pause();
        }
        Guard(&self.taken, Some(self.watched.borrow_mut()))
    }

    /// w1 to w4, for one thing more.
    fn put(&self, things: u64) {
        self.things.store(things, Ordering::Relaxed);
        M::light();
        if self.watch.word.load(Ordering::Relaxed) != 0 {
            self.watch.fence.owner();
            if self.watch.word.load(Ordering::Relaxed) & WATCHED != 0 {
                if let Some(waker) = self.watch.take(|| self.lock()) {
                    waker.wake();
                }
            }
        }
    }

    /// s1 to s3. The flag that says that it was woken, if it found nothing.
    fn sleeps(&self) -> Option<Arc<Flag>> {
        let flag = Arc::new(Flag::default());
        let _entry = self.watch.enter(|| self.lock(), Waker::from(Arc::clone(&flag)));
        self.sees_nothing().then_some(flag)
    }

    fn sees_nothing(&self) -> bool {
        self.things.load(Ordering::Relaxed) == 0
    }
}

type Between<M> = fn(&Model<M>);

/// A sleeper comes and goes, and a second comes, and may be the last to look.
fn a_thing_against_the_second<M: Memory + 'static>(first: Between<M>) -> impl Fn(&mut Threads) {
    move |threads| {
        let model = Model::<M>::new();
        let slept = Rc::new(RefCell::new(None));
        let [makes, comes] = [(); 2].map(|()| Rc::clone(&model));
        threads.spawn("waker", move || makes.put(1));
        let sleeps = Rc::clone(&slept);
        threads.spawn("sleeper", move || {
            first(&comes);
            *sleeps.borrow_mut() = comes.sleeps();
        });
        threads.finally(move || {
            if slept.borrow().as_ref().is_some_and(|flag| flag.0.get().is_none()) {
                fail(Kind::Lost, "it sleeps for ever");
            }
            drop(model);
        });
    }
}

/// Two sleepers, of which the second may find the watch of the first.
fn a_thing_against_two<M: Memory + 'static>(first: Between<M>) -> impl Fn(&mut Threads) {
    move |threads| {
        let model = Model::<M>::new();
        let slept = Rc::new(RefCell::new(None));
        let [makes, begins, comes] = [(); 3].map(|()| Rc::clone(&model));
        threads.spawn("waker", move || makes.put(1));
        // It looks for nothing: its future is dropped, or it wakes for something else.
        threads.spawn("first", move || first(&begins));
        let sleeps = Rc::clone(&slept);
        threads.spawn("second", move || *sleeps.borrow_mut() = comes.sleeps());
        threads.finally(move || {
            if slept.borrow().as_ref().is_some_and(|flag| flag.0.get().is_none()) {
                fail(Kind::Lost, "it sleeps for ever");
            }
            drop(model);
        });
    }
}

fn nobody<M: Memory>(_: &Model<M>) {}

fn comes_and_goes<M: Memory>(model: &Model<M>) {
    let entry = model.watch.enter(|| model.lock(), Waker::noop().clone());
    if model.watch.leave(|| model.lock(), &entry).is_none() {
        if let Some(next) = model.watch.take(|| model.lock()) {
            next.wake();
        }
    }
}

/// Wrong: the next watch is fenced from its begin.
fn leaves_it_fenced<M: Memory>(model: &Model<M>) {
    comes_and_goes(model);
    model.lock().fenced = true;
}

/// Wrong: its watch is fenced from its begin.
fn is_fenced_early<M: Memory>(model: &Model<M>) {
    model.lock().fenced = true;
    comes_and_goes(model);
}

#[test]
fn a_sleeper_finds_the_thing_or_is_woken() {
    clean_on_both(a_thing_against_the_second::<Simulated>(nobody));
    clean_on_both(a_thing_against_the_second::<WithoutBarrier>(nobody));
}

#[test]
fn so_does_one_that_comes_after_another() {
    clean_on_both(a_thing_against_the_second::<Simulated>(comes_and_goes));
    clean_on_both(a_thing_against_the_second::<WithoutBarrier>(comes_and_goes));
}

/// Without a process-wide barrier the fence is the waker's own, beside any sleepers.
#[test]
fn so_does_one_that_comes_beside_another() {
    clean_on_both(a_thing_against_two::<Simulated>(comes_and_goes));
}

/// What must fail.
#[test]
fn a_watch_that_is_fenced_too_early_loses_a_wake_up() {
    let lost = |model: &dyn Fn(&mut Threads)| {
        let report = explore(&Config::default(), model);
        matches!(report.verdict, Verdict::Violation(found) if found.kind() == Kind::Lost)
    };
    assert!(lost(&a_thing_against_the_second::<Simulated>(leaves_it_fenced)));
    assert!(lost(&a_thing_against_two::<Simulated>(is_fenced_early)));
}
