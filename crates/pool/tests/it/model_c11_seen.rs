//! The pools under C11, in one scene for each question: what a thread knows that reads an
//! announcement, or sees a pool without a task, and what hands over nodes, chunks and counts.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use poach_check::{Config, Kind, Simulated, Threads, fail};
use poach_memory::{Cell, Memory, Ordering, Word};
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Policy, Taker};

use crate::scenes::{self, Kept, conc_bag, fenced, salsa, salsa_cas, ws_lifo, ws_msq};

/// This number of executions takes less than a second.
const MOST: u64 = 10_000;

/// All executions with up to `preemptions` preemptions run, or the first [`MOST`].
fn clean(name: &str, preemptions: u32, model: impl Fn(&mut Threads)) {
    scenes::clean(name, &Config::c11().within(preemptions, MOST), model);
}

/// A place that the model tells a race of.
type Place = <Simulated as Memory>::Cell<u32>;

struct Stage<P: Mechanism<u32>> {
    pools: Arc<P>,
    taken: Kept<u32>,
    consumers: Kept<P::Consumer>,
    producers: Kept<P::Producer>,
}

impl<P: Mechanism<u32> + 'static> Stage<P>
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    fn new(make: impl Fn() -> Option<P>) -> Self {
        let pools = Arc::new(make().expect("memory"));
        Stage {
            pools,
            taken: Kept::default(),
            consumers: Kept::default(),
            producers: Kept::default(),
        }
    }

    fn producers<const N: usize>(&self) -> [P::Producer; N] {
        [(); N].map(|()| self.pools.producer().expect("memory"))
    }

    fn consumers<const N: usize>(&self) -> [P::Consumer; N] {
        [(); N].map(|()| self.pools.consumer().expect("memory"))
    }

    fn puts(
        &self,
        threads: &mut Threads,
        name: &'static str,
        mut producer: P::Producer,
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

    fn takes(
        &self,
        threads: &mut Threads,
        name: &'static str,
        mut consumer: P::Consumer,
        pools: &'static [usize],
    ) {
        let (taken, keep) = (Rc::clone(&self.taken), Rc::clone(&self.consumers));
        threads.spawn(name, move || {
            for &from in pools {
                let task = take(&mut consumer, from);
                taken.borrow_mut().extend(task);
            }
            keep.borrow_mut().push(consumer);
        });
    }

    fn ends(self, threads: &mut Threads, most: u32) {
        threads.finally(move || self.check(most));
    }

    /// What was taken, and what is left, is each of the tasks 1 to `most` once.
    fn check(&self, most: u32) {
        let mut taken = self.taken.borrow_mut();
        for consumer in self.consumers.borrow_mut().iter_mut() {
            for from in 0..self.pools.pools() {
                taken.extend(std::iter::from_fn(|| take(consumer, from)));
            }
        }
        taken.sort_unstable();
        if !taken.iter().copied().eq(1..=most) {
            fail(Kind::Lost, format!("of 1 to {most} were taken {taken:?}"));
        }
    }
}

fn put(producer: &mut impl Produce<u32>, pool: usize, task: u32) {
    assert!(producer.produce_force(pool, task).is_ok(), "memory");
}

fn take(consumer: &mut impl Consume<u32>, from: usize) -> Option<u32> {
    if consumer.number() == from { consumer.consume() } else { consumer.steal(from) }
}

/// A producer writes a place and puts a task, and a consumer takes it. A thread that reads the
/// consumer's announcement reads the place.
fn told<P: Mechanism<u32> + 'static>(make: impl Fn() -> Option<P>) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| {
        let stage = Stage::new(&make);
        let ([mut producer], [mut taker]) = (stage.producers(), stage.consumers());
        put(&mut producer, 0, 1);
        stage.taken.borrow_mut().extend(taker.consume());
        let (pools, before) = (Arc::clone(&stage.pools), stage.pools.announced(0));
        let place = Rc::new(Place::new(0));
        let (writes, keep) = (Rc::clone(&place), Rc::clone(&stage.producers));
        threads.spawn("producer", move || {
            writes.with_mut(|_| ());
            put(&mut producer, 0, 2);
            keep.borrow_mut().push(producer);
        });
        stage.takes(threads, "consumer", taker, &[0]);
        let reads = Rc::clone(&place);
        threads.spawn("looker", move || {
            if pools.announced(0) != before {
                reads.with(|_| ());
            }
        });
        let (kept, taken) = (Rc::clone(&stage.consumers), Rc::clone(&stage.taken));
        threads.finally(move || drop((stage, place, kept, taken)));
    }
}

#[test]
fn who_reads_an_announcement_knows_what_its_consumer_saw() {
    clean("salsa", 1, told(|| salsa(4)));
    clean("salsa-cas", 1, told(|| salsa_cas(4)));
    clean("conc-bag", 1, told(|| conc_bag(4)));
    clean("ws-msq", 1, told(ws_msq));
    clean("ws-lifo", 1, told(ws_lifo));
}

/// A consumer takes the only task. A thread that sees the pool without it sees the announcement.
fn announced_before<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| {
        let stage = Stage::new(&make);
        let ([mut producer], [taker, mut looker]) = (stage.producers(), stage.consumers());
        put(&mut producer, 0, 1);
        let (pools, before) = (Arc::clone(&stage.pools), stage.pools.announced(0));
        stage.takes(threads, "consumer", taker, &[0]);
        let keep = Rc::clone(&stage.consumers);
        threads.spawn("looker", move || {
            if looker.is_empty(0) && pools.announced(0) == before {
                fail(Kind::FalseEmpty, "the task has gone, and nobody announced it");
            }
            keep.borrow_mut().push(looker);
        });
        threads.finally(move || drop((stage, producer)));
    }
}

#[test]
fn who_sees_a_pool_without_a_task_knows_that_it_was_announced() {
    for chunk in [1, 2] {
        clean("salsa", 1, announced_before(|| salsa(chunk)));
        clean("salsa-cas", 1, announced_before(|| salsa_cas(chunk)));
        clean("conc-bag", 1, announced_before(|| conc_bag(chunk)));
    }
    clean("ws-msq", 1, announced_before(ws_msq));
    clean("ws-lifo", 1, announced_before(ws_lifo));
}

/// A thread that sees the thief's pool empty has read one of the two announcements.
#[test]
fn who_sees_a_stolen_chunk_empty_knows_that_it_was_announced() {
    clean("salsa", 0, |threads| {
        let stage = Stage::new(|| salsa(4));
        let [mut producer] = stage.producers();
        let [owner, mut thief, robber, mut looker] = stage.consumers();
        (1..=3).for_each(|task| put(&mut producer, 0, task));
        stage.taken.borrow_mut().extend(thief.steal(0));
        let announced = {
            let pools = Arc::clone(&stage.pools);
            move || (pools.announced(1), pools.announced(2))
        };
        let before = announced();
        stage.takes(threads, "robber", robber, &[1]);
        stage.takes(threads, "thief", thief, &[2]);
        let keep = Rc::clone(&stage.consumers);
        threads.spawn("looker", move || {
            if looker.is_empty(1) && announced() == before {
                fail(Kind::FalseEmpty, "the tasks have gone, and nobody announced it");
            }
            keep.borrow_mut().push(looker);
        });
        stage.consumers.borrow_mut().push(owner);
        stage.producers.borrow_mut().push(producer);
        stage.ends(threads, 3);
    });
}

/// One links a node and stops before it moves the tail; another moves the tail; a third goes by it.
#[test]
fn who_finds_the_last_node_of_a_queue_finds_it_whole() {
    clean("ws-msq", 1, |threads| {
        let stage = Stage::new(ws_msq);
        let [first, second, third] = stage.producers();
        stage.consumers.borrow_mut().extend(stage.consumers::<1>());
        stage.puts(threads, "first", first, &[1]);
        stage.puts(threads, "second", second, &[2]);
        stage.puts(threads, "third", third, &[3]);
        stage.ends(threads, 3);
    });
}

/// The consumer has seen that its chunk of one is not filled yet.
#[test]
fn a_chunk_that_is_filled_behind_a_look_is_not_passed_over() {
    clean("conc-bag", 1, |threads| {
        let stage = Stage::new(|| conc_bag(1));
        let ([producer], [consumer]) = (stage.producers(), stage.consumers());
        stage.takes(threads, "consumer", consumer, &[0]);
        stage.puts(threads, "producer", producer, &[1, 2]);
        stage.ends(threads, 2);
    });
}

/// Twice a task is taken after the next was put: none is the last, so that none is announced.
#[test]
fn a_bag_with_one_list_is_not_said_to_be_empty() {
    clean("conc-bag", 2, |threads| {
        let stage = Stage::new(|| conc_bag(4));
        let ([mut producer], [first, second]) = (stage.producers(), stage.consumers());
        put(&mut producer, 0, 1);
        let looker = Taker::at(&stage.pools, Policy::default(), 0).expect("memory");
        let lookers = Kept::default();
        let keep = Rc::clone(&lookers);
        threads.spawn("looker", move || {
            let mut looker = looker;
            if looker.check_empty() {
                fail(Kind::FalseEmpty, "the bag is said to be empty, and never was");
            }
            keep.borrow_mut().push(looker);
        });
        let hand = Rc::new(RefCell::new(Some(producer)));
        for (name, mut consumer, task) in [("first", first, 2), ("second", second, 3)] {
            let (hand, keep) = (Rc::clone(&hand), Rc::clone(&stage.consumers));
            let taken = Rc::clone(&stage.taken);
            threads.spawn(name, move || {
                // Another order is none of the executions that are asked about.
                let mine = hand.borrow_mut().take_if(|_| taken.borrow().len() + 2 == task as usize);
                if let Some(mut producer) = mine {
                    put(&mut producer, 0, task);
                    let task = consumer.consume();
                    taken.borrow_mut().extend(task);
                    *hand.borrow_mut() = Some(producer);
                }
                keep.borrow_mut().push(consumer);
            });
        }
        threads.finally(move || drop((stage, hand, lookers)));
    });
}

#[test]
fn who_robs_a_thief_knows_what_the_thief_has_taken() {
    clean("salsa with full fences", 1, |threads| {
        let stage = Stage::new(|| fenced(4));
        let [mut producer] = stage.producers();
        let [mut owner, thief, robber] = stage.consumers();
        (1..=3).for_each(|task| put(&mut producer, 0, task));
        stage.taken.borrow_mut().extend(owner.consume());
        stage.takes(threads, "thief", thief, &[0]);
        stage.takes(threads, "robber", robber, &[1]);
        stage.consumers.borrow_mut().push(owner);
        stage.producers.borrow_mut().push(producer);
        stage.ends(threads, 3);
    });
}

/// A thief takes what is left of a consumer's first chunk, which is then filled anew for the thief.
#[test]
fn a_chunk_is_filled_anew_after_its_consumer_is_done_with_it() {
    clean("salsa", 0, |threads| {
        let stage = Stage::new(|| salsa(2));
        let [mut other, mut first, mut third] = stage.producers();
        let [owner, mut thief] = stage.consumers();
        put(&mut other, 0, 1);
        put(&mut first, 0, 2);
        stage.takes(threads, "owner", owner, &[0, 0]);
        let (taken, consumers) = (Rc::clone(&stage.taken), Rc::clone(&stage.consumers));
        let producers = Rc::clone(&stage.producers);
        threads.spawn("thief", move || {
            put(&mut first, 0, 3);
            let task = thief.steal(0);
            taken.borrow_mut().extend(task);
            put(&mut third, 1, 4);
            consumers.borrow_mut().push(thief);
            producers.borrow_mut().extend([other, first, third]);
        });
        stage.ends(threads, 4);
    });
}

/// Thieves whose words are not in the chunk: one makes them, and the other uses them.
#[test]
fn who_uses_further_words_of_a_chunk_finds_them_whole() {
    clean("salsa", 1, |threads| {
        let stage = Stage::new(|| salsa(3));
        let ([mut producer], consumers) = (stage.producers(), stage.consumers::<9>());
        (1..=3).for_each(|task| put(&mut producer, 0, task));
        for (number, thief) in (0..).zip(consumers) {
            match number {
                7 => stage.takes(threads, "first", thief, &[0]),
                8 => stage.takes(threads, "second", thief, &[0]),
                _ => stage.consumers.borrow_mut().push(thief),
            }
        }
        stage.producers.borrow_mut().push(producer);
        stage.ends(threads, 3);
    });
}

/// The owner sees the task, and the thief does not: the owner looks for tasks before it looks
/// whether the chunk is its own.
fn comes_during_a_theft(threads: &mut Threads) {
    let stage = Stage::new(|| fenced(4));
    let ([mut producer], [mut owner, thief]) = (stage.producers(), stage.consumers());
    (1..=2).for_each(|task| put(&mut producer, 0, task));
    stage.taken.borrow_mut().extend(owner.consume());
    stage.puts(threads, "producer", producer, &[3]);
    stage.takes(threads, "thief", thief, &[0, 1]);
    let turn = Rc::new(<Simulated as Memory>::Word::new(0));
    let hand = Rc::new(RefCell::new(Some(owner)));
    for (name, place) in [("owner", 0), ("owner again", 1)] {
        let (turn, hand, taken) = (Rc::clone(&turn), Rc::clone(&hand), Rc::clone(&stage.taken));
        threads.spawn(name, move || {
            // Another order is none of the executions that are asked about.
            if turn.load(Ordering::Acquire) == place {
                let mut owner = hand.borrow_mut().take().expect("it is here");
                let task = owner.consume();
                taken.borrow_mut().extend(task);
                *hand.borrow_mut() = Some(owner);
                turn.store(place + 1, Ordering::Release);
            }
        });
    }
    threads.finally(move || {
        stage.consumers.borrow_mut().extend(hand.borrow_mut().take());
        stage.check(3);
        drop(turn);
    });
}

#[test]
fn a_task_that_comes_during_a_theft_is_taken_once() {
    clean("salsa with full fences", 1, comes_during_a_theft);
}
