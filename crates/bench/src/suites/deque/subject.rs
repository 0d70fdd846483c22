//! The queues of the suite `deque`, Poach's and others', under one pair of traits.

use std::cell::Cell;

use anyhow::Result;
use poach_deque::crossbeam as face;
use poach_deque::{
    AsymmetricCl, BwosFifo, BwosLifo, ChaseLev, FfCl, FfThe, IdempotentDeque, IdempotentFifo,
    IdempotentLifo, Multiplicity, Mutex, Owner, PrivateDeque, ResolvedCl, Split, Steal, The, Thep,
};
use poach_memory::{Asymmetric, Bounded, CachePadded, Machine, Memory, Ordering, Resolved, Word};

use crate::promise::{self, delta};

/// A queue, from its owner's side.
pub(super) trait Subject: 'static {
    type Thief: Thief;

    /// Whether each task comes out exactly once.
    const EXACT: bool = true;
    /// Whether it can be stolen from.
    const STEALS: bool = true;

    fn push(&self, task: u64);
    fn pop(&self) -> Option<u64>;
    fn thief(&self) -> Self::Thief;
}

/// A thief, which makes one attempt and hands each task that it got to `each`.
pub(super) trait Thief: Send {
    fn steal(&mut self, each: impl FnMut(u64));
}

/// Sees every subject.
pub(super) trait Visitor {
    fn visit<S: Subject>(&mut self, name: &'static str, make: fn() -> Result<S>);
}

/// Poach's queues, then the peers.
pub(super) fn each(visitor: &mut impl Visitor) {
    visitor.visit("sequential", || Ok(Sequential::default()));
    visitor.visit("array", || Ok(Array::<false>::default()));
    visitor.visit("array-fenced", || Ok(Array::<true>::default()));
    visitor.visit("unfenced", || Ok(Family::<_, false>(promise::unfenced()?)));
    visitor.visit("mutex", || exact(Mutex::<u64, Machine>::new()));
    visitor.visit("the", || exact(The::<u64>::new()));
    visitor.visit("ff-the", || exact(FfThe::with_policy(bounded()?)));
    // Its echo is the store between two pops that the others have to make for their bound alone.
    visitor.visit("thep", || exact(Thep::<u64, _>::with_policy(Bounded::new(delta(1)?)?)));
    visitor.visit("chase-lev", || exact(ChaseLev::<u64>::new()));
    visitor.visit("ff-cl", || exact(FfCl::with_policy(bounded()?)));
    visitor.visit("asymmetric-cl", || exact(AsymmetricCl::with_policy(Asymmetric::new())));
    visitor.visit("resolved", || exact(ResolvedCl::with_policy(Resolved::new(delta(0)?)?)));
    visitor.visit("split", || exact(Split::<u64>::new()));
    visitor.visit("split-half", || Ok(Half(Split::new())));
    visitor.visit("private", || exact(PrivateDeque::<u64>::new()));
    visitor
        .visit("idempotent-lifo", || Ok(Family::<_, false>(IdempotentLifo::<u64, Machine>::new())));
    visitor
        .visit("idempotent-fifo", || Ok(Family::<_, false>(IdempotentFifo::<u64, Machine>::new())));
    visitor.visit("idempotent-deque", || {
        Ok(Family::<_, false>(IdempotentDeque::<u64, Machine>::new()))
    });
    visitor.visit("multiplicity", || Ok(Family::<_, false>(Multiplicity::<u64, Machine>::new())));
    visitor.visit("bwos-lifo", || exact(BwosLifo::<u64>::new()));
    visitor.visit("bwos-fifo", || exact(BwosFifo::<u64>::new()));
    visitor.visit("face-lifo", || Ok(Face(face::Worker::new_lifo())));
    visitor.visit("face-fifo", || Ok(Face(face::Worker::new_fifo())));
    visitor.visit("face-lifo-batch", || Ok(FaceBatch(face::Worker::new_lifo())));
    visitor.visit("face-fifo-batch", || Ok(FaceBatch(face::Worker::new_fifo())));
    visitor.visit("crossbeam-lifo", || Ok(Crossbeam(crossbeam_deque::Worker::new_lifo())));
    visitor.visit("crossbeam-fifo", || Ok(Crossbeam(crossbeam_deque::Worker::new_fifo())));
    visitor
        .visit("crossbeam-lifo-batch", || Ok(CrossbeamBatch(crossbeam_deque::Worker::new_lifo())));
    visitor
        .visit("crossbeam-fifo-batch", || Ok(CrossbeamBatch(crossbeam_deque::Worker::new_fifo())));
    visitor.visit("st3-lifo", || Ok(St3(st3::lifo::Worker::new(ST3_CAPACITY))));
}

fn bounded() -> Result<Bounded<Machine>> {
    Ok(Bounded::new(delta(0)?)?)
}

/// A queue of Poach's, thieves taking one task at a time.
pub(super) struct Family<O, const EXACT: bool>(O);

#[expect(clippy::unnecessary_wraps, reason = "all makers have one type")]
fn exact<O: poach_deque::ExactlyOnce<u64>>(owner: O) -> Result<Family<O, true>> {
    Ok(Family(owner))
}

impl<O: Owner<u64> + 'static, const EXACT_: bool> Subject for Family<O, EXACT_> {
    type Thief = One<O::Thief>;
    const EXACT: bool = EXACT_;

    #[inline(always)]
    fn push(&self, task: u64) {
        self.0.push(task);
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        self.0.pop()
    }

    fn thief(&self) -> Self::Thief {
        One(self.0.thief())
    }
}

pub(super) struct One<S>(S);

impl<S: poach_deque::Thief<u64>> Thief for One<S> {
    #[inline]
    fn steal(&mut self, each: impl FnMut(u64)) {
        self.0.steal().success().into_iter().for_each(each);
    }
}

/// The split deque, thieves taking half of what is shared.
pub(super) struct Half(Split<u64>);

impl Subject for Half {
    type Thief = Halver;

    #[inline(always)]
    fn push(&self, task: u64) {
        self.0.push(task);
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        self.0.pop()
    }

    fn thief(&self) -> Halver {
        Halver { victim: self.0.thief(), mine: Split::new() }
    }
}

pub(super) struct Halver {
    victim: poach_deque::split::Thief<u64>,
    mine: Split<u64>,
}

impl Thief for Halver {
    #[inline]
    fn steal(&mut self, mut each: impl FnMut(u64)) {
        if let Steal::Success(first) = self.victim.steal_half(&self.mine) {
            each(first);
            while let Some(task) = self.mine.pop() {
                each(task);
            }
        }
    }
}

/// The cost of a queue that no other thread can touch.
#[derive(Default)]
pub(super) struct Sequential(std::cell::RefCell<std::collections::VecDeque<u64>>);

impl Subject for Sequential {
    type Thief = Nobody;
    const STEALS: bool = false;

    #[inline(always)]
    fn push(&self, task: u64) {
        self.0.borrow_mut().push_back(task);
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        self.0.borrow_mut().pop_back()
    }

    fn thief(&self) -> Nobody {
        Nobody
    }
}

/// The least that such a queue does: an array that never grows, a store of `tail`, a load of
/// `head`, and between them, if `FENCED`, a full fence. What a fence costs in this loop is the
/// difference of the two.
pub(super) struct Array<const FENCED: bool> {
    slots: Box<[Cell<u64>; PLACES]>,
    tail: <Machine as Memory>::Word,
    head: CachePadded<<Machine as Memory>::Word>,
}

/// Room for a batch; a power of two, so that a mask will do.
const PLACES: usize = 1024;

impl<const FENCED: bool> Default for Array<FENCED> {
    fn default() -> Self {
        Array {
            slots: Box::new([const { Cell::new(0) }; PLACES]),
            tail: Word::new(0),
            head: CachePadded::new(Word::new(0)),
        }
    }
}

impl<const FENCED: bool> Subject for Array<FENCED> {
    type Thief = Nobody;
    const STEALS: bool = false;

    #[inline(always)]
    fn push(&self, task: u64) {
        // Relaxed, here and below: no other thread looks. The Release is what a queue would pay.
        let tail = self.tail.load(Ordering::Relaxed);
        self.slots[tail as usize % PLACES].set(task);
        self.tail.store(tail + 1, Ordering::Release);
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        let tail = self.tail.load(Ordering::Relaxed);
        let index = tail.wrapping_sub(1);
        self.tail.store(index, Ordering::Release);
        if FENCED {
            Machine::full();
        } else {
            Machine::light();
        }
        if (index.wrapping_sub(self.head.load(Ordering::Relaxed)) as i64) < 0 {
            self.tail.store(tail, Ordering::Release);
            return None;
        }
        Some(self.slots[index as usize % PLACES].get())
    }

    fn thief(&self) -> Nobody {
        Nobody
    }
}

pub(super) struct Nobody;

impl Thief for Nobody {
    fn steal(&mut self, _: impl FnMut(u64)) {}
}

/// crossbeam-deque's workers and this project's under the same names. A thief steals one task at a
/// time, or a batch of up to 32 that it then pops from a queue of its own.
macro_rules! workers {
    ($one:ident, $batch:ident, $source:ident) => {
        struct $one($source::Worker<u64>);

        impl Subject for $one {
            type Thief = $source::Stealer<u64>;

            #[inline(always)]
            fn push(&self, task: u64) {
                self.0.push(task);
            }

            #[inline(always)]
            fn pop(&self) -> Option<u64> {
                self.0.pop()
            }

            fn thief(&self) -> Self::Thief {
                self.0.stealer()
            }
        }

        impl Thief for $source::Stealer<u64> {
            #[inline]
            fn steal(&mut self, each: impl FnMut(u64)) {
                $source::Stealer::steal(self).success().into_iter().for_each(each);
            }
        }

        struct $batch($source::Worker<u64>);

        impl Subject for $batch {
            type Thief = ($source::Stealer<u64>, $source::Worker<u64>);

            #[inline(always)]
            fn push(&self, task: u64) {
                self.0.push(task);
            }

            #[inline(always)]
            fn pop(&self) -> Option<u64> {
                self.0.pop()
            }

            fn thief(&self) -> Self::Thief {
                (self.0.stealer(), $source::Worker::new_lifo())
            }
        }

        impl Thief for ($source::Stealer<u64>, $source::Worker<u64>) {
            #[inline]
            fn steal(&mut self, mut each: impl FnMut(u64)) {
                let (victim, mine) = self;
                if let Some(first) = victim.steal_batch_and_pop(mine).success() {
                    each(first);
                    while let Some(task) = mine.pop() {
                        each(task);
                    }
                }
            }
        }
    };
}

workers!(Crossbeam, CrossbeamBatch, crossbeam_deque);
workers!(Face, FaceBatch, face);

/// st3's queues do not grow: room for a batch and what a thief holds claimed meanwhile.
const ST3_CAPACITY: usize = 2048;

struct St3(st3::lifo::Worker<u64>);

impl Subject for St3 {
    type Thief = St3Thief;

    #[inline(always)]
    fn push(&self, task: u64) {
        let mut task = task;
        // A full queue: a thief holds half of it claimed, and is at work.
        while let Err(back) = self.0.push(task) {
            task = back;
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        self.0.pop()
    }

    fn thief(&self) -> St3Thief {
        St3Thief { victim: self.0.stealer(), mine: st3::lifo::Worker::new(ST3_CAPACITY) }
    }
}

struct St3Thief {
    victim: st3::lifo::Stealer<u64>,
    mine: st3::lifo::Worker<u64>,
}

impl Thief for St3Thief {
    #[inline]
    fn steal(&mut self, mut each: impl FnMut(u64)) {
        // As its documentation advises: half of the queue.
        if let Ok((first, _)) = self.victim.steal_and_pop(&self.mine, |count| count - count / 2) {
            each(first);
            while let Some(task) = self.mine.pop() {
                each(task);
            }
        }
    }
}
