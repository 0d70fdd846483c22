//! Models of what has no owner: task pools, into which producers put and from which consumers take
//! and steal, and the injector, into which any thread pushes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use poach_deque::{Injector, Steal};
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Policy, Taker};

use super::any::{AnyConsumer, AnyPool, AnyProducer};
use super::scenario::{Scenario, Step, THIEVES};
use super::taken::Taken;
use poach_check::history::{Call, Outcome};
use poach_check::{Kind, Simulated, Threads, fail, operation};

pub(super) const FEW: &str = "a model has fewer producers and consumers than a pool may have";
pub(super) const LITTLE: &str = "a model needs little memory";

/// Puts a task into a consumer's pool.
pub(super) fn put(producer: &mut AnyProducer, pool: usize, task: u32) {
    assert!(producer.produce_force(pool, task).is_ok(), "{LITTLE}");
}

/// What the threads leave to the final check.
struct Left {
    taken: RefCell<Vec<u32>>,
    consumers: RefCell<Vec<AnyConsumer>>,
}

impl Left {
    /// A consumer takes a task of its own pool, or steals one. That it finds none says nothing
    /// about the pool: that is for the pool's policy to find out.
    fn take(&self, take: impl FnOnce() -> Option<u32>) -> bool {
        let outcome = operation(Call::Steal, || match take() {
            Some(task) => {
                self.taken.borrow_mut().push(task);
                Outcome::Task(task.into())
            }
            None => Outcome::Retry,
        });
        outcome != Outcome::Retry
    }

    /// Each of 1 to `most` was taken, or is there to be taken now.
    fn check(&self, most: u32) {
        let mut consumers = self.consumers.borrow_mut();
        let mut taken = self.taken.borrow_mut();
        let pools = consumers.len();
        for consumer in consumers.iter_mut() {
            taken.extend(core::iter::from_fn(|| consumer.consume()));
            let own = consumer.number();
            for from in (0..pools).filter(|&from| from != own) {
                while let Some(task) = consumer.steal(from) {
                    taken.push(task);
                    taken.extend(core::iter::from_fn(|| consumer.consume()));
                }
            }
        }
        taken.sort_unstable();
        let next = taken.iter().skip(1);
        if let Some((twice, _)) = taken.iter().zip(next).find(|(task, next)| task == next) {
            fail(Kind::Duplicate, format!("task {twice} was taken twice"));
        }
        if let Some(lost) = (1..=most).find(|task| !taken.contains(task)) {
            let text = format!("task {lost} is left behind: nobody took it, and nobody can");
            fail(Kind::Lost, text);
        }
    }
}

/// A pool whose first consumer is robbed of its chunks by the others, while a producer fills them.
///
/// The scenario's pushes are the producer's, in a thread of its own; its pops are the first
/// consumer's; its thieves are consumers that `rob` the first.
///
/// # Panics
///
/// The model does, if there is no memory for the pool.
pub fn pool<P: Mechanism<u32> + 'static>(
    scenario: &Scenario,
    make: impl Fn() -> Option<P>,
    rob: fn(&mut dyn Consume<u32>) -> Option<u32>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    let scenario = Arc::new(scenario.clone());
    move |threads| set_up_pool(threads, AnyPool::of(make()), &scenario, rob)
}

fn set_up_pool(
    threads: &mut Threads,
    pools: Arc<AnyPool>,
    scenario: &Arc<Scenario>,
    rob: fn(&mut dyn Consume<u32>) -> Option<u32>,
) {
    let mut producer = pools.producer().expect(FEW);
    let mut first = pools.consumer().expect(FEW);
    let thieves: Vec<_> = (0..scenario.thieves).map(|_| pools.consumer().expect(FEW)).collect();
    let left = Rc::new(Left { taken: RefCell::default(), consumers: RefCell::default() });
    let mut push = move |task: u32| {
        operation(Call::Push(task.into()), || {
            put(&mut producer, 0, task);
            Outcome::Done
        });
    };
    (1..=scenario.tasks).for_each(&mut push);
    let pushes = scenario.script.iter().filter(|step| **step == Step::Push).count() as u32;
    let most = scenario.tasks + pushes;
    let (plan, own) = (Arc::clone(scenario), Rc::clone(&left));
    threads.spawn("owner", move || {
        for step in &plan.script {
            match step {
                Step::Pop => {
                    own.take(|| first.consume());
                }
                Step::PopAll => while own.take(|| first.consume()) {},
                Step::Push | Step::Watch | Step::Stay => {}
            }
        }
        own.consumers.borrow_mut().push(first);
    });
    for (name, mut thief) in THIEVES.iter().zip(thieves) {
        let (steals, own) = (scenario.steals, Rc::clone(&left));
        threads.spawn(name, move || {
            for _ in 0..steals {
                own.take(|| rob(&mut thief));
            }
            own.consumers.borrow_mut().push(thief);
        });
    }
    if pushes > 0 {
        let first = scenario.tasks + 1;
        threads.spawn("producer", move || (first..=most).for_each(&mut push));
    }
    threads.finally(move || {
        left.check(most);
        drop(pools);
    });
}

/// Chunks of one task that are reused. A producer stops before its pop from the chunk pool. Another
/// pops that chunk and the next, and the consumer returns the first.
///
/// # Panics
///
/// The model does, if there is no memory for the pool.
pub fn chunks_again<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_chunks_again(threads, AnyPool::of(make()))
}

fn set_up_chunks_again(threads: &mut Threads, pools: Arc<AnyPool>) {
    let mut producers = [(); 2].map(|()| pools.producer().expect(FEW));
    let mut consumer = pools.consumer().expect(FEW);
    // Two free chunks, or as many as this mechanism makes of two tasks.
    (1..=2).for_each(|task| put(&mut producers[0], 0, task));
    let left = Rc::new(Left { taken: RefCell::default(), consumers: RefCell::default() });
    left.taken.borrow_mut().extend(core::iter::from_fn(|| consumer.consume()));
    let kept = Rc::new(RefCell::new(Vec::new()));
    let [mut first, mut second] = producers;
    let keep = Rc::clone(&kept);
    threads.spawn("producer", move || {
        put(&mut first, 0, 3);
        keep.borrow_mut().push(first);
    });
    let (own, keep) = (Rc::clone(&left), Rc::clone(&kept));
    threads.spawn("another", move || {
        put(&mut second, 0, 4);
        put(&mut second, 0, 5);
        let task = consumer.consume();
        own.taken.borrow_mut().extend(task);
        put(&mut second, 0, 6);
        keep.borrow_mut().push(second);
        own.consumers.borrow_mut().push(consumer);
    });
    threads.finally(move || {
        left.check(6);
        drop((pools, kept));
    });
}

/// The second of two consumers goes, and its pool with it, while a task is put there. The first
/// finds the task.
///
/// # Panics
///
/// The model does, if there is no memory for the pool.
pub fn consumer_goes<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_consumer_goes(threads, AnyPool::of(make()))
}

fn set_up_consumer_goes(threads: &mut Threads, pools: Arc<AnyPool>) {
    let mut taker = Taker::at(&pools, Policy::default(), 0).expect(FEW);
    let second = pools.consumer().expect(FEW);
    let mut producer = pools.producer().expect(FEW);
    let kept = Rc::new(RefCell::new(None));
    let keep = Rc::clone(&kept);
    threads.spawn("second", move || drop(second));
    threads.spawn("producer", move || {
        put(&mut producer, 1, 1);
        *keep.borrow_mut() = Some(producer);
    });
    threads.finally(move || {
        if taker.get() != Some(1) {
            fail(Kind::Lost, "task 1 is left behind: nobody took it");
        }
        drop((pools, kept));
    });
}

/// The second of two producers goes, and another comes and puts a task, while a consumer looks
/// whether there is one. Afterwards it finds the task.
///
/// # Panics
///
/// The model does, if there is no memory for the pool.
pub fn producer_goes<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_producer_goes(threads, AnyPool::of(make()))
}

fn set_up_producer_goes(threads: &mut Threads, pools: Arc<AnyPool>) {
    let mut taker = Taker::at(&pools, Policy::default(), 0).expect(FEW);
    let [first, second] = [(); 2].map(|()| pools.producer().expect(FEW));
    let (takers, producers) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(None)));
    let keep = Rc::clone(&takers);
    threads.spawn("looker", move || {
        taker.check_empty();
        *keep.borrow_mut() = Some(taker);
    });
    threads.spawn("second", move || drop(second));
    let (comes_to, keep) = (Arc::clone(&pools), Rc::clone(&producers));
    threads.spawn("third", move || {
        let mut third = comes_to.producer().expect(FEW);
        put(&mut third, 0, 1);
        *keep.borrow_mut() = Some((third, comes_to));
    });
    threads.finally(move || {
        let mut taker = takers.borrow_mut().take().expect("the looker leaves it");
        if taker.get() != Some(1) {
            fail(Kind::Lost, "task 1 is left behind: nobody took it");
        }
        drop((pools, first, producers));
    });
}

/// A queue into which any thread pushes and from which any thread takes.
pub trait Injecting: 'static {
    /// Adds a task.
    fn push(&self, task: u64);
    /// Takes the oldest task.
    fn steal(&self) -> Steal<u64>;
}

impl Injecting for Injector<u64, Simulated, 1> {
    fn push(&self, task: u64) {
        Injector::push(self, task);
    }

    fn steal(&self) -> Steal<u64> {
        Injector::steal(self)
    }
}

/// An injector into which two threads push and from which both, and the thieves, take. In the end
/// each task was taken once, or is there.
///
/// The scenario's script is the first pusher's; the second pushes one task.
pub fn injector<I: Injecting>(
    scenario: &Scenario,
    make: impl Fn(usize) -> I,
) -> impl Fn(&mut Threads) {
    let scenario = Arc::new(scenario.clone());
    move |threads| {
        let injector = Rc::new(make(scenario.capacity));
        let taken = Rc::new(RefCell::new(Vec::new()));
        let push = |injector: &I, task: u64| {
            operation(Call::Push(task), || {
                injector.push(task);
                Outcome::Done
            });
        };
        let steal = |injector: &I, taken: &RefCell<Vec<u64>>| {
            operation(Call::Steal, || match injector.steal() {
                Steal::Success(task) => {
                    taken.borrow_mut().push(task);
                    Outcome::Task(task)
                }
                Steal::Empty => Outcome::Empty,
                Steal::Retry | Steal::Abort => Outcome::Retry,
            })
        };
        (1..=u64::from(scenario.tasks)).for_each(|task| push(&injector, task));
        let (plan, shared) = (Arc::clone(&scenario), Rc::clone(&injector));
        let keep = Rc::clone(&taken);
        threads.spawn("pusher 1", move || {
            let mut next = u64::from(plan.tasks);
            for step in &plan.script {
                match step {
                    Step::Push => {
                        next += 1;
                        push(&shared, next);
                    }
                    Step::Pop => {
                        steal(&shared, &keep);
                    }
                    Step::PopAll => while steal(&shared, &keep) != Outcome::Empty {},
                    Step::Watch | Step::Stay => {}
                }
            }
        });
        let (last, shared) = (plan_of(&scenario) + 1, Rc::clone(&injector));
        threads.spawn("pusher 2", move || push(&shared, last));
        for name in THIEVES.iter().take(scenario.thieves as usize) {
            let (steals, shared) = (scenario.steals, Rc::clone(&injector));
            let keep = Rc::clone(&taken);
            threads.spawn(name, move || {
                for _ in 0..steals {
                    steal(&shared, &keep);
                }
            });
        }
        threads.finally(move || {
            let mut taken = taken.borrow().clone();
            taken.extend(core::iter::from_fn(|| injector.steal().success()));
            Taken::Once.check(taken, last);
        });
    }
}

/// The number of tasks that a scenario's owner puts in, beforehand or by its script.
fn plan_of(scenario: &Scenario) -> u64 {
    let pushes = scenario.script.iter().filter(|step| **step == Step::Push).count();
    u64::from(scenario.tasks) + pushes as u64
}
