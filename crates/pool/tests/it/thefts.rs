//! A theft that has begun may move tasks that came after it: `check_empty` makes two more
//! traversals. Real threads, as the execution is too long for a model.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use poach_pool::mechanism::{Consume, Mechanism, NoHandle, Produce};
use poach_pool::policy::{Policy, Taker};
use poach_pool::salsa::Salsa;

use crate::stopping::{Kind, Stopping, start, stop_before};

type Pools = Salsa<u64, Stopping>;

thread_local! {
    /// Where the looker says which pool it is about to look at, and waits.
    static LOOKS: RefCell<Option<(Sender<usize>, Receiver<()>)>> = const { RefCell::new(None) };
}

trait Ear: std::fmt::Debug + Send + Sync + 'static {
    fn hears(announced: u64) -> u64 {
        announced
    }
}

#[derive(Debug)]
struct Good;
impl Ear for Good {}

/// An ear that takes an unfinished theft for a finished one.
#[derive(Debug)]
struct DeafToThieves;
impl Ear for DeafToThieves {
    fn hears(announced: u64) -> u64 {
        announced & !1
    }
}

/// The looker stops before each look. It answers "empty" after a chosen number of looks at a pool.
#[derive(Debug)]
struct Watched<E>(Arc<Pools>, usize, PhantomData<E>);
struct Looker(<Pools as Mechanism<u64>>::Consumer, [usize; 3]);

impl<E: Ear> Mechanism<u64> for Watched<E> {
    type Producer = <Pools as Mechanism<u64>>::Producer;
    type Consumer = Looker;

    fn producer(self: &Arc<Self>) -> Result<Self::Producer, NoHandle> {
        self.0.producer()
    }
    fn consumer(self: &Arc<Self>) -> Result<Looker, NoHandle> {
        self.0.consumer().map(|consumer| Looker(consumer, [self.1; 3]))
    }
    fn pools(&self) -> usize {
        self.0.pools()
    }
    fn is_held(&self, pool: usize) -> bool {
        self.0.is_held(pool)
    }
    fn changes(&self) -> u64 {
        self.0.changes()
    }
    fn announced(&self, pool: usize) -> u64 {
        E::hears(self.0.announced(pool))
    }
}

impl Consume<u64> for Looker {
    fn number(&self) -> usize {
        self.0.number()
    }
    fn consume(&mut self) -> Option<u64> {
        self.0.consume()
    }
    fn steal(&mut self, from: usize) -> Option<u64> {
        self.0.steal(from)
    }
    fn is_empty(&mut self, pool: usize) -> bool {
        let Some(left) = self.1[pool].checked_sub(1) else { return true };
        self.1[pool] = left;
        LOOKS.with_borrow(|looks| {
            if let Some((says, waits)) = looks {
                says.send(pool).expect("the test listens");
                waits.recv().expect("the test lets it go on");
            }
        });
        self.0.is_empty(pool)
    }
    fn exchanges(&self) -> u64 {
        self.0.exchanges()
    }
}

/// The thief (pool 0) has announced that it steals the looker's chunk, and stops before the
/// exchange. The looker (pool 1) takes the last task that is in it. A third (pool 2) has announced
/// that it takes its last task, and stops before it does. The looker begins. It has passed its own
/// pool when a task comes to the chunk and the third takes its own; it has passed the thief's, for
/// the second time, when the thief has the chunk.
///
/// From the looker's beginning to its end there is a task.
fn is_deceived<E: Ear>(traversals: usize) -> bool {
    let pools = Arc::new(Salsa::new(4).expect("memory"));
    let pools = Arc::new(Watched::<E>(pools, traversals, PhantomData));
    let mut thief = pools.0.consumer().expect("memory");
    let mut looker = Taker::at(&pools, Policy::default(), 0).expect("memory");
    let mut third = pools.0.consumer().expect("memory");
    let mut here = pools.producer().expect("memory");
    let mut there = pools.producer().expect("memory");
    for task in 1..=2 {
        assert!(here.produce_force(1, task).is_ok());
        assert!(there.produce_force(2, 2 + task).is_ok());
    }
    assert_eq!((looker.get(), third.consume()), (Some(1), Some(3)));
    let (thief, third) = (&mut thief, &mut third);
    thread::scope(|scope| {
        let mut thief = start(scope, move |stops| {
            // The fence of the hazard pointer is the first, the theft the second.
            stop_before(stops, Some(Kind::Exchange), 1);
            thief.steal(1);
        });
        assert!(thief.stopped);
        assert_eq!(looker.get(), Some(2));
        let third = start(scope, move |stops| {
            // The announcement is the first, the take the second.
            stop_before(stops, Some(Kind::Store), 1);
            assert_eq!(third.consume(), Some(4));
        });
        assert!(third.stopped);
        let (says, heard) = channel();
        let (go, waits) = channel();
        let looker = scope.spawn(move || {
            LOOKS.set(Some((says, waits)));
            let answer = looker.check_empty();
            LOOKS.set(None);
            answer
        });
        let mut third = Some(third);
        for (look, pool) in heard.iter().enumerate() {
            assert_eq!(pool, look % 3);
            match (look / 3, pool) {
                (0, 2) => {
                    assert!(here.produce_force(1, 5).is_ok());
                    third.take().expect("once").wake();
                }
                // To the fence behind the exchange.
                (1, 1) => thief.go_on_to(Kind::Exchange),
                _ => {}
            }
            go.send(()).expect("the looker waits");
        }
        let answer = looker.join().expect("no panic");
        thief.wake();
        answer
    })
}

#[test]
fn a_theft_under_way_deceives_nobody() {
    assert!(!is_deceived::<Good>(usize::MAX));
    assert!(is_deceived::<Good>(1), "one traversal must not be enough, theft or not");
    assert!(is_deceived::<Good>(2), "two traversals must not be enough");
    assert!(is_deceived::<DeafToThieves>(usize::MAX), "thefts must be heard");
}
