//! Models of a pool's chunks on their way from consumer to consumer. They have several producers, a
//! thief that is robbed, the last task of a chunk that is filled again, several stolen chunks, and
//! lists that grow.
//!
//! Each thread keeps what it takes, and in the end each task must have been taken once, or be
//! there. Consumer `n` is the model's thread `n`, as [`Displacing`](poach_check::Displacing) wants
//! it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use poach_memory::{Memory, Ordering, Word};
use poach_pool::mechanism::{Consume, Mechanism};

use super::any::{AnyConsumer, AnyPool, AnyProducer};
use super::shared::{FEW, put};
use super::taken::Taken;
use poach_check::{Kind, Simulated, SimulatedWord, Threads, fail, stole};

/// What the threads leave to the end, so that no thread's end drops it.
struct Stage {
    pools: Arc<AnyPool>,
    taken: Rc<RefCell<Vec<u64>>>,
    consumers: Rc<RefCell<Vec<AnyConsumer>>>,
    producers: Rc<RefCell<Vec<AnyProducer>>>,
}

impl Stage {
    fn new(pools: Arc<AnyPool>) -> Self {
        Stage { pools, taken: Rc::default(), consumers: Rc::default(), producers: Rc::default() }
    }

    fn consumers<const N: usize>(&self) -> [AnyConsumer; N] {
        [(); N].map(|()| self.pools.consumer().expect(FEW))
    }

    fn producers<const N: usize>(&self) -> [AnyProducer; N] {
        [(); N].map(|()| self.pools.producer().expect(FEW))
    }

    /// In the set-up: a consumer takes a task from a pool.
    fn takes(&self, consumer: &mut AnyConsumer, from: usize) {
        let task = take(consumer, from).expect("the set-up has put it there");
        self.taken.borrow_mut().push(task.into());
    }

    /// A thread that takes a task of each of these pools, one after the other, where there is one.
    fn taker(
        &self,
        threads: &mut Threads,
        name: &'static str,
        mut consumer: AnyConsumer,
        pools: &'static [usize],
    ) {
        let (taken, keep) = (Rc::clone(&self.taken), Rc::clone(&self.consumers));
        threads.spawn(name, move || {
            for &from in pools {
                let task = take(&mut consumer, from);
                taken.borrow_mut().extend(task.map(u64::from));
            }
            keep.borrow_mut().push(consumer);
        });
    }

    /// A thread that puts tasks into the first consumer's pool.
    fn putter(
        &self,
        threads: &mut Threads,
        name: &'static str,
        mut producer: AnyProducer,
        tasks: &'static [u32],
    ) {
        let keep = Rc::clone(&self.producers);
        threads.spawn(name, move || {
            for &task in tasks {
                put(&mut producer, 0, task);
            }
            keep.borrow_mut().push(producer);
        });
    }

    /// A thread that sees a pool empty, in which there always is a task.
    fn looker(&self, threads: &mut Threads, mut consumer: AnyConsumer, pool: usize) {
        let keep = Rc::clone(&self.consumers);
        threads.spawn("looker", move || {
            if consumer.is_empty(pool) {
                fail(Kind::FalseEmpty, format!("pool {pool} looks empty, and never was"));
            }
            keep.borrow_mut().push(consumer);
        });
    }

    /// In the end tasks 1 to `most` have been taken once each, or are there to be taken now.
    fn end(self, threads: &mut Threads, most: u64) {
        threads.finally(move || self.check(most));
    }

    /// Takes what is there. With what the threads have taken, that must be tasks 1 to `most`, once
    /// each.
    fn check(&self, most: u64) {
        let mut taken = self.taken.borrow().clone();
        let mut consumers = self.consumers.borrow_mut();
        let pools = consumers.len();
        for consumer in consumers.iter_mut() {
            for from in 0..pools {
                let more = core::iter::from_fn(|| take(consumer, from).map(u64::from));
                taken.extend(more);
            }
            let own = consumer.number();
            taken.extend(core::iter::from_fn(|| take(consumer, own).map(u64::from)));
        }
        Taken::Once.check(taken, most);
    }
}

/// Takes a task of pool `from`: the consumer's own, or another's.
fn take(consumer: &mut AnyConsumer, from: usize) -> Option<u32> {
    if consumer.number() == from {
        return consumer.consume();
    }
    let task = consumer.steal(from);
    if task.is_some() {
        stole();
    }
    task
}

/// Two producers come to a pool for the first time, at once, while its consumer looks for a task.
///
/// # Panics
///
/// The model does, if there is no memory for the pool.
pub fn fed_by_two<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_fed_by_two(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_fed_by_two(threads: &mut Threads, stage: Stage) {
    let [owner] = stage.consumers();
    let [first, second] = stage.producers();
    stage.taker(threads, "owner", owner, &[0]);
    stage.putter(threads, "producer 1", first, &[1]);
    stage.putter(threads, "producer 2", second, &[2]);
    stage.end(threads, 2);
}

/// A thief has stolen a chunk, and goes on in it while it is robbed of it.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn robbed_thief<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_robbed_thief(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_robbed_thief(threads: &mut Threads, stage: Stage) {
    let [owner, mut thief, robber] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=3).for_each(|task| put(&mut producer, 0, task));
    stage.producers.borrow_mut().push(producer);
    stage.takes(&mut thief, 0);
    // The victim's thread has nothing to do but to be there.
    stage.taker(threads, "owner", owner, &[]);
    stage.taker(threads, "thief", thief, &[1, 1]);
    stage.taker(threads, "robber", robber, &[1]);
    stage.end(threads, 3);
}

/// A thief steals a chunk at which the owner is, and is robbed of it in its window.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn robbed_in_window<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_robbed_in_window(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_robbed_in_window(threads: &mut Threads, stage: Stage) {
    let [mut owner, thief, robber] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=3).for_each(|task| put(&mut producer, 0, task));
    stage.producers.borrow_mut().push(producer);
    stage.takes(&mut owner, 0);
    stage.taker(threads, "owner", owner, &[0]);
    stage.taker(threads, "thief", thief, &[0]);
    stage.taker(threads, "robber", robber, &[1]);
    stage.end(threads, 3);
}

/// A task comes while a thief is in its window; the owner may see it and the thief may not.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn late_task<P: Mechanism<u32> + 'static>(make: impl Fn() -> Option<P>) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_late_task(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_late_task(threads: &mut Threads, stage: Stage) {
    let [mut owner, thief] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=2).for_each(|task| put(&mut producer, 0, task));
    stage.takes(&mut owner, 0);
    stage.taker(threads, "owner", owner, &[0, 0]);
    stage.taker(threads, "thief", thief, &[0, 1]);
    stage.putter(threads, "producer", producer, &[3]);
    stage.end(threads, 3);
}

/// A second thief robs the first in its window, while the owner takes and a task comes.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn robbed_and_fed<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_robbed_and_fed(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_robbed_and_fed(threads: &mut Threads, stage: Stage) {
    let [owner, first, second] = stage.consumers();
    let [mut producer] = stage.producers();
    put(&mut producer, 0, 1);
    stage.taker(threads, "owner", owner, &[0]);
    stage.taker(threads, "thief", first, &[0]);
    stage.taker(threads, "robber", second, &[1]);
    stage.putter(threads, "producer", producer, &[2]);
    stage.end(threads, 2);
}

/// A thief reads how much of a chunk is taken in one life of it, and steals it in another. In
/// chunks of two.
///
/// The thief reads that one task of two is taken. The owner takes the second, and with it ends the
/// chunk; the producer begins it again, for the same owner, which is about to publish its first
/// task. The thief steals. A robber steals from the thief, has that task and another that comes,
/// and is done. Now the owner publishes: as much is taken as the thief read in the other life, so
/// that it need not look again where it should (SALSA's line 125), and has the robber's second
/// task.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn oversleeps<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_oversleeps(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_oversleeps(threads: &mut Threads, stage: Stage) {
    let [mut owner, thief, mut robber] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=2).for_each(|task| put(&mut producer, 0, task));
    stage.takes(&mut owner, 0);
    // First, so that it soon sleeps.
    stage.taker(threads, "thief", thief, &[0]);
    let (taken, consumers) = (Rc::clone(&stage.taken), Rc::clone(&stage.consumers));
    let keep = Rc::clone(&stage.producers);
    threads.spawn("owner", move || {
        let first = take(&mut owner, 0);
        put(&mut producer, 0, 3);
        keep.borrow_mut().push(producer);
        let second = take(&mut owner, 0);
        taken.borrow_mut().extend(first.into_iter().chain(second).map(u64::from));
        consumers.borrow_mut().push(owner);
    });
    let (taken, consumers) = (Rc::clone(&stage.taken), Rc::clone(&stage.consumers));
    let producers = Rc::clone(&stage.producers);
    let most = Rc::new(Cell::new(3));
    let one_more = Rc::clone(&most);
    threads.spawn("robber", move || {
        let first = take(&mut robber, 1);
        // Without both this is none of the executions that are asked about.
        if let (Some(_), Some(producer)) = (first, producers.borrow_mut().first_mut()) {
            put(producer, 0, 4);
            one_more.set(4);
        }
        let second = take(&mut robber, 2);
        taken.borrow_mut().extend(first.into_iter().chain(second).map(u64::from));
        consumers.borrow_mut().push(robber);
    });
    threads.finally(move || stage.check(most.get()));
}

/// The kernel refuses a thief's visit for a while, and the thief, in its window, is robbed of the
/// chunk. Nobody may wait for ever.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn refused<P: Mechanism<u32> + 'static>(
    make: impl Fn(Arc<SimulatedWord>) -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| {
        let allowed = Arc::new(<Simulated as Memory>::Word::new(1));
        let stage = Stage::new(AnyPool::of(make(Arc::clone(&allowed))));
        set_up_refused(threads, stage, allowed);
    }
}

fn set_up_refused(threads: &mut Threads, stage: Stage, allowed: Arc<SimulatedWord>) {
    // Relaxed: the threads begin after the set-up.
    allowed.store(0, Ordering::Relaxed);
    let [owner, thief, robber] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=2).for_each(|task| put(&mut producer, 0, task));
    stage.producers.borrow_mut().push(producer);
    stage.taker(threads, "owner", owner, &[0]);
    stage.taker(threads, "thief", thief, &[0]);
    stage.taker(threads, "robber", robber, &[1]);
    threads.spawn("kernel", move || allowed.store(1, Ordering::Release));
    stage.end(threads, 2);
}

/// Of a chunk of two one is taken. The owner and a thief are after the last, and a producer puts
/// two more, for which the chunk may be filled again.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn refilled<P: Mechanism<u32> + 'static>(make: impl Fn() -> Option<P>) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_refilled(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_refilled(threads: &mut Threads, stage: Stage) {
    let [mut owner, thief] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=2).for_each(|task| put(&mut producer, 0, task));
    stage.takes(&mut owner, 0);
    stage.taker(threads, "owner", owner, &[0, 0]);
    stage.taker(threads, "thief", thief, &[0]);
    stage.putter(threads, "producer", producer, &[3, 4]);
    stage.end(threads, 4);
}

/// A thief has stolen two chunks, and goes from the one to the other while it is robbed of one.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn two_chunks<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_two_chunks(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_two_chunks(threads: &mut Threads, stage: Stage) {
    let [owner, mut thief, robber] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=4).for_each(|task| put(&mut producer, 0, task));
    stage.producers.borrow_mut().push(producer);
    stage.takes(&mut thief, 0);
    stage.takes(&mut thief, 0);
    stage.taker(threads, "owner", owner, &[]);
    stage.taker(threads, "thief", thief, &[1, 1]);
    stage.taker(threads, "robber", robber, &[1]);
    stage.end(threads, 4);
}

/// The chunks of two tasks that a thief's list holds before it grows.
const HELD: u32 = 4;

/// A thief has stolen as many chunks as its list has places for, and steals one more while another
/// looks whether its pool is empty.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn held_grows<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_held_grows(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_held_grows(threads: &mut Threads, stage: Stage) {
    let [owner, mut thief, looker] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=2 * (HELD + 1)).for_each(|task| put(&mut producer, 0, task));
    stage.producers.borrow_mut().push(producer);
    (0..HELD).for_each(|_| stage.takes(&mut thief, 0));
    stage.taker(threads, "owner", owner, &[]);
    stage.taker(threads, "thief", thief, &[0]);
    stage.looker(threads, looker, 1);
    stage.end(threads, u64::from(2 * (HELD + 1)));
}

/// The chunks of one task that a producer's list holds before it grows.
const LISTED: u32 = 8;

/// A producer has filled as many chunks of one as its list has places for, and fills one more,
/// while a thief takes one and another looks whether the pool is empty.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn list_grows<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_list_grows(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_list_grows(threads: &mut Threads, stage: Stage) {
    let [owner, thief, looker] = stage.consumers();
    let [mut producer] = stage.producers();
    (1..=LISTED).for_each(|task| put(&mut producer, 0, task));
    stage.taker(threads, "owner", owner, &[]);
    stage.taker(threads, "thief", thief, &[0]);
    stage.looker(threads, looker, 0);
    stage.putter(threads, "producer", producer, &[9]);
    stage.end(threads, u64::from(LISTED) + 1);
}

/// Three free chunks of one are in a pool's stack. One producer takes the topmost chunk. Another
/// takes it too, and the consumer uses it up and gives it back, while a third takes the chunk
/// below. In the end one more task is put.
///
/// A producer that does not notice the return of the topmost chunk puts a chunk that is in use back
/// on the stack, and the last task overwrites the one in it. That needs three preemptions: of the
/// first producer before and after it reads which chunk is below, and of the consumer between its
/// two attempts to push.
///
/// # Panics
///
/// As [`fed_by_two`].
pub fn head_returns<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_head_returns(threads, Stage::new(AnyPool::of(make())))
}

fn set_up_head_returns(threads: &mut Threads, stage: Stage) {
    let [mut consumer] = stage.consumers();
    let mut producers: [_; 3] = stage.producers();
    for (task, producer) in (1..).zip(&mut producers) {
        put(producer, 0, task);
    }
    (0..3).for_each(|_| stage.takes(&mut consumer, 0));
    let [first, mut second, third] = producers;
    stage.putter(threads, "producer", first, &[4]);
    let (taken, consumers) = (Rc::clone(&stage.taken), Rc::clone(&stage.consumers));
    let producers = Rc::clone(&stage.producers);
    threads.spawn("consumer", move || {
        put(&mut second, 0, 5);
        taken.borrow_mut().extend(take(&mut consumer, 0).map(u64::from));
        producers.borrow_mut().push(second);
        consumers.borrow_mut().push(consumer);
    });
    stage.putter(threads, "third", third, &[6]);
    threads.finally(move || {
        put(&mut stage.producers.borrow_mut()[0], 0, 7);
        stage.check(7);
    });
}
