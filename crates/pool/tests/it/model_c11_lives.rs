//! Chunks under C11 whose next life begins between two steps of a thread, which must have acquired
//! what belongs to the word that says in which life the chunk is.
//!
//! In each scene one thread ends the life, another then begins the next, and a third comes to the
//! chunk. Its loads may read earlier values, so it need be stopped once at most.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use poach_check::{Config, Coverage, Kind, Simulated, Threads, fail};
use poach_memory::{Memory, Ordering, Word};
use poach_pool::mechanism::{Consume, Mechanism, Produce};

use crate::scenes::{self, Kept, salsa, salsa_cas};

fn clean(name: &str, preemptions: u32, model: impl Fn(&mut Threads)) {
    let config = Config::c11().within(preemptions, u64::MAX);
    scenes::covers(name, &config, Coverage::Preemptions(preemptions), model);
}

#[derive(Default)]
struct Tasks {
    put: RefCell<Vec<u32>>,
    taken: RefCell<Vec<u32>>,
}

impl Tasks {
    fn put(&self, producer: &mut impl Produce<u32>, tasks: &[u32]) {
        for &task in tasks {
            assert!(producer.produce_force(0, task).is_ok(), "memory");
            self.put.borrow_mut().push(task);
        }
    }

    /// Takes up to `most` tasks of pool `from`. Returns whether it took all of them.
    fn take(&self, consumer: &mut impl Consume<u32>, from: usize, most: usize) -> bool {
        (0..most).all(|_| {
            let own = consumer.number() == from;
            let task = if own { consumer.consume() } else { consumer.steal(from) };
            self.taken.borrow_mut().extend(task);
            task.is_some()
        })
    }
}

struct Stage<P: Mechanism<u32>> {
    pools: Arc<P>,
    tasks: Rc<Tasks>,
    consumers: Kept<P::Consumer>,
    producers: Kept<P::Producer>,
    ended: Rc<<Simulated as Memory>::Word>,
}

impl<P: Mechanism<u32> + 'static> Stage<P>
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    fn new(pools: Option<P>) -> Self {
        Stage {
            pools: Arc::new(pools.expect("memory")),
            tasks: Rc::default(),
            consumers: Kept::default(),
            producers: Kept::default(),
            ended: Rc::new(Word::new(0)),
        }
    }

    fn producers<const N: usize>(&self) -> [P::Producer; N] {
        [(); N].map(|()| self.pools.producer().expect("memory"))
    }

    fn consumers<const N: usize>(&self) -> [P::Consumer; N] {
        [(); N].map(|()| self.pools.consumer().expect("memory"))
    }

    fn first(
        &self,
        threads: &mut Threads,
        name: &'static str,
        body: impl FnOnce(&Tasks) + 'static,
    ) {
        let (tasks, ended) = (Rc::clone(&self.tasks), Rc::clone(&self.ended));
        threads.spawn(name, move || {
            body(&tasks);
            // Relaxed: nothing is handed on by it.
            ended.store(1, Ordering::Relaxed);
        });
    }

    /// Begins when the first has ended: the model asks about no other order.
    fn later<H: 'static>(
        &self,
        threads: &mut Threads,
        name: &'static str,
        mut handle: H,
        keep: &Kept<H>,
        body: impl FnOnce(&mut H, &Tasks) + 'static,
    ) {
        let (tasks, ended) = (Rc::clone(&self.tasks), Rc::clone(&self.ended));
        let keep = Rc::clone(keep);
        threads.spawn(name, move || {
            // Relaxed: a full fence that follows acquires as much without it.
            if ended.load(Ordering::Relaxed) != 0 {
                body(&mut handle, &tasks);
            }
            keep.borrow_mut().push(handle);
        });
    }

    fn ends(self, threads: &mut Threads) {
        threads.finally(move || {
            for consumer in self.consumers.borrow_mut().iter_mut() {
                (0..self.pools.pools()).for_each(|from| {
                    self.tasks.take(consumer, from, usize::MAX);
                });
            }
            let [mut put, mut taken] = [&self.tasks.put, &self.tasks.taken].map(RefCell::take);
            put.sort_unstable();
            taken.sort_unstable();
            if put != taken {
                fail(Kind::Lost, format!("of {put:?} were taken {taken:?}"));
            }
            drop(self.ended);
        });
    }
}

/// A thief of SALSA+CAS has found a task in a chunk. The owner takes the task, which is the chunk's
/// last, and does not see the thief's hazard pointer. A producer fills the chunk anew.
#[test]
fn a_thief_of_salsa_cas_knows_how_much_there_is_in_a_chunks_next_life() {
    clean("salsa-cas", 1, |threads| {
        let stage = Stage::new(salsa_cas(2));
        let ([mut producer], [mut owner, thief]) = (stage.producers(), stage.consumers());
        stage.tasks.put(&mut producer, &[1, 2]);
        stage.tasks.take(&mut owner, 0, 1);
        let keep = Rc::clone(&stage.consumers);
        stage.first(threads, "owner", move |tasks| {
            tasks.take(&mut owner, 0, 1);
            keep.borrow_mut().push(owner);
        });
        stage.later(threads, "producer", producer, &stage.producers, |producer, tasks| {
            tasks.put(producer, &[3]);
        });
        stage.later(threads, "thief", thief, &stage.consumers, |thief, tasks| {
            tasks.take(thief, 0, 1);
        });
        stage.ends(threads);
    });
}

/// A consumer of SALSA has found a task in a chunk that it had left. A thief takes the chunk, and
/// the task, which is its last, and goes. A producer fills the chunk anew, for the consumer.
#[test]
fn a_consumer_knows_how_much_it_has_taken_in_a_chunks_next_life() {
    clean("salsa", 1, |threads| {
        let stage = Stage::new(salsa(2));
        let ([mut first, mut second], [mut owner, mut thief, other]) =
            (stage.producers(), stage.consumers());
        for (producer, task) in [(&mut first, 1), (&mut second, 2)] {
            stage.tasks.put(producer, &[task]);
            stage.tasks.take(&mut owner, 0, 1);
        }
        stage.tasks.put(&mut first, &[3]);
        stage.producers.borrow_mut().push(second);
        stage.consumers.borrow_mut().push(other);
        let gone = Kept::default();
        let goes = Rc::clone(&gone);
        stage.first(threads, "thief", move |tasks| {
            tasks.take(&mut thief, 0, 1);
            goes.borrow_mut().push(thief);
        });
        stage.later(threads, "producer", first, &stage.producers, move |producer, tasks| {
            // Then the chunks of the gone consumer are free for all producers.
            gone.borrow_mut().clear();
            tasks.put(producer, &[4]);
        });
        stage.later(threads, "owner", owner, &stage.consumers, |owner, tasks| {
            tasks.take(owner, 0, 1);
        });
        stage.ends(threads);
    });
}

/// A producer has read that a chunk is the topmost free one. Others fill it, empty it and give it
/// back. Meanwhile its word for the chunk below named a chunk that is not free yet.
#[test]
fn who_pops_a_chunk_that_has_come_back_knows_what_is_below_it_now() {
    clean("salsa-cas", 0, |threads| {
        let stage = Stage::new(salsa_cas(2));
        let ([mut first, mut second], [mut owner, mut thief]) =
            (stage.producers(), stage.consumers());
        stage.tasks.put(&mut first, &[1, 2]);
        // Its hazard pointer stays on the chunk.
        stage.tasks.take(&mut thief, 0, 1);
        stage.tasks.take(&mut owner, 0, 1);
        stage.tasks.put(&mut first, &[3, 4]);
        stage.tasks.take(&mut owner, 0, 2);
        stage.consumers.borrow_mut().push(thief);
        let (consumers, producers) = (Rc::clone(&stage.consumers), Rc::clone(&stage.producers));
        stage.first(threads, "others", move |tasks| {
            tasks.put(&mut second, &[5, 6]);
            tasks.take(&mut owner, 0, 2);
            consumers.borrow_mut().push(owner);
            producers.borrow_mut().push(second);
        });
        stage.later(threads, "producer", first, &stage.producers, |producer, tasks| {
            tasks.put(producer, &[7, 8, 9]);
        });
        stage.ends(threads);
    });
}
