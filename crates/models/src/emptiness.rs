//! Pools that are never empty, and a consumer that asks whether they are. Tasks come to pools that
//! the looker has passed, and leave pools that it has not reached; the policy must not be deceived.
//!
//! In each scene every execution has a task in the pool at every instant: a thread that takes a
//! task has put one before. So the answer "empty" is always wrong.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use poach_pool::mechanism::{Consume, Mechanism};
use poach_pool::policy::{Policy, Taker};

use super::any::{AnyConsumer, AnyPool};
use super::shared::{FEW, put};
use poach_check::{Kind, Threads, fail};

/// Takes a task of pool `from`, if there is one.
fn take(consumer: &mut AnyConsumer, from: usize) -> Option<u32> {
    if consumer.number() == from { consumer.consume() } else { consumer.steal(from) }
}

/// Keeps what threads leave to the end, so that no thread's end drops it.
type Kept<T> = Rc<RefCell<Vec<T>>>;

fn look(mut looker: Taker<u32, AnyPool>, kept: &Kept<Taker<u32, AnyPool>>) {
    if looker.check_empty() {
        fail(Kind::FalseEmpty, "the pool is said to be empty, and never was");
    }
    kept.borrow_mut().push(looker);
}

/// Two consumers beside the looker: each puts a task into a pool that the looker has passed,
/// perhaps, and takes one from a pool that it has not reached.
///
/// A looker that goes by twice and hears of no announcement is deceived by both: by the first in
/// its first round, by the second in its second.
///
/// # Panics
///
/// When the pool cannot be made.
pub fn pass<P: Mechanism<u32> + 'static>(make: impl Fn() -> Option<P>) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_pass(threads, AnyPool::of(make()))
}

fn set_up_pass(threads: &mut Threads, pools: Arc<AnyPool>) {
    let looker = Taker::at(&pools, Policy::default(), 0).expect(FEW);
    let consumers = [(); 2].map(|()| pools.consumer().expect(FEW));
    let [mut zero, mut one, mut two] = [(); 3].map(|()| pools.producer().expect(FEW));
    put(&mut two, 2, 1);
    let (lookers, others) = (Kept::default(), Kept::default());
    let keep_looker = Rc::clone(&lookers);
    threads.spawn("looker", move || look(looker, &keep_looker));
    // Each takes from its own pool, where a bag begins its search, too.
    let [mut second, mut first] = consumers;
    let keep = Rc::clone(&others);
    threads.spawn("first", move || {
        put(&mut one, 1, 2);
        take(&mut first, 2);
        keep.borrow_mut().push((first, one));
    });
    let keep = Rc::clone(&others);
    threads.spawn("second", move || {
        put(&mut zero, 0, 3);
        take(&mut second, 1);
        keep.borrow_mut().push((second, zero));
    });
    threads.finally(move || drop((pools, two, lookers, others)));
}

/// A thief (pool 0) steals the one task of pool 1, which nobody else takes; a looker that sees the
/// task leave a pool must hear of that.
///
/// The promise of [`Mechanism::announced`] about a theft: the number is odd before the chunk leaves
/// its pool, changes before the chunk in the thief's own pool becomes empty, and is even in the
/// end. So a looker that reads an even number sees no task leave pool 1 without another number. A
/// looker that reads an odd number, and sees the task come to pool 0, does not see it leave there
/// without another number.
///
/// # Panics
///
/// As [`pass`]; it is a violation, too, if the looker has not heard of it.
pub fn announcements<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_announcements(threads, AnyPool::of(make()))
}

fn set_up_announcements(threads: &mut Threads, pools: Arc<AnyPool>) {
    let [mut thief, owner, mut looker] = [(); 3].map(|()| pools.consumer().expect(FEW));
    let mut producer = pools.producer().expect(FEW);
    put(&mut producer, 1, 1);
    let kept = Kept::default();
    let (seen, keep) = (Arc::clone(&pools), Rc::clone(&kept));
    threads.spawn("looker", move || {
        let before = seen.announced(0);
        let (pool, came) = if before % 2 == 0 {
            (1, !looker.is_empty(1))
        } else {
            (0, looker.is_empty(0) && !looker.is_empty(0))
        };
        if came && looker.is_empty(pool) && seen.announced(0) == before {
            fail(Kind::FalseEmpty, "the task has left a pool, and nobody announced it");
        }
        keep.borrow_mut().push(looker);
    });
    let keep = Rc::clone(&kept);
    threads.spawn("thief", move || {
        thief.steal(1);
        keep.borrow_mut().push(thief);
    });
    threads.finally(move || {
        assert_eq!(pools.announced(0) % 2, 0);
        drop((pools, producer, owner, kept));
    });
}

/// A consumer takes tasks from two pools by turns, and another thread puts some back behind each.
///
/// The puts say in a word how far they are, and the consumer takes nothing that would be the last.
///
/// # Panics
///
/// As [`pass`].
pub fn behind<P: Mechanism<u32> + 'static>(make: impl Fn() -> Option<P>) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| set_up_behind(threads, AnyPool::of(make()))
}

fn set_up_behind(threads: &mut Threads, pools: Arc<AnyPool>) {
    use poach_memory::{Memory, Ordering, Word};
    let looker = Taker::at(&pools, Policy::default(), 0).expect(FEW);
    let mut consumer = pools.consumer().expect(FEW);
    let [mut zero, mut one, mut first] = [(); 3].map(|()| pools.producer().expect(FEW));
    put(&mut one, 1, 1);
    let puts = Rc::new(<poach_check::Simulated as Memory>::Word::new(0));
    let (lookers, consumers, producers) = (Kept::default(), Kept::default(), Kept::default());
    let (keep_looker, keep, keep_producers) =
        (Rc::clone(&lookers), Rc::clone(&consumers), Rc::clone(&producers));
    let said = Rc::clone(&puts);
    threads.spawn("looker", move || look(looker, &keep_looker));
    threads.spawn("consumer", move || {
        put(&mut first, 0, 2);
        for turn in 0..3 {
            // One more than this takes has been put before: by this thread, then by the other.
            if said.load(Ordering::Acquire) >= turn {
                take(&mut consumer, 1 - turn as usize % 2);
            }
        }
        keep.borrow_mut().push((consumer, first));
    });
    threads.spawn("behind", move || {
        put(&mut one, 1, 3);
        puts.store(1, Ordering::Release);
        put(&mut zero, 0, 4);
        puts.store(2, Ordering::Release);
        keep_producers.borrow_mut().push((zero, one));
    });
    threads.finally(move || drop((pools, lookers, consumers, producers)));
}
