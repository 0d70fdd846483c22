//! The pools, queues and channels of the suite.

use std::collections::VecDeque;
use std::iter::repeat_with;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use crossbeam_deque::{Injector, Steal};
use crossbeam_queue::{ArrayQueue, SegQueue};
use poach_pool::mechanism::Mechanism;
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::{Consumer, Producer, TaskPool};

use super::protocol::{Opened, Put, Shape, System, Take};

/// Everything that is one shared thing, cloned for each thread.
fn shared<S: Clone + 'static>(shape: &Shape, it: S) -> Opened<S, S> {
    Opened {
        producers: repeat_with(|| it.clone()).take(shape.producers).collect(),
        consumers: repeat_with(|| it.clone()).take(shape.consumers).collect(),
        close: Box::new(|| ()),
    }
}

/// Everything with a sending and a receiving end.
fn ends<I: Clone, O: Clone>(shape: &Shape, (send, receive): (I, O)) -> Opened<I, O> {
    Opened {
        producers: repeat_with(|| send.clone()).take(shape.producers).collect(),
        consumers: repeat_with(|| receive.clone()).take(shape.consumers).collect(),
        // The senders are gone by then, and that closes a channel.
        close: Box::new(|| ()),
    }
}

/// A pool of this project's, under its policy, without the face.
#[derive(Clone)]
pub(super) struct Pools<F>(pub(super) F);

impl<P, F> System for Pools<F>
where
    P: Mechanism<u64> + 'static,
    F: Fn() -> Option<P> + Clone + Send + 'static,
{
    type In = Feeder<u64, P>;
    type Out = Taker<u64, P>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        let pools = Arc::new((self.0)().context("there is no memory for a pool")?);
        let mut policy = Policy::default();
        policy.balancing = shape.balancing;
        let consumers: Result<Vec<_>, _> =
            (0..shape.consumers).map(|number| Taker::at(&pools, policy.clone(), number)).collect();
        let producers: Result<Vec<_>, _> =
            (0..shape.producers).map(|number| Feeder::at(&pools, policy.clone(), number)).collect();
        Ok(Opened { producers: producers?, consumers: consumers?, close: Box::new(|| ()) })
    }
}

impl<P: Mechanism<u64>> Put for Feeder<u64, P> {
    #[inline(always)]
    fn put(&mut self, task: u64) -> Result<(), u64> {
        Feeder::put(self, task)
    }
}

impl<P: Mechanism<u64>> Take for Taker<u64, P> {
    #[inline(always)]
    fn take(&mut self) -> Option<u64> {
        self.get()
    }

    fn exchanges(&self) -> Option<u64> {
        Some(Taker::exchanges(self))
    }
}

/// [`TaskPool`]: SALSA with the face around it.
#[derive(Clone)]
pub(super) struct Face;

impl System for Face {
    type In = Producer<u64>;
    type Out = Consumer<u64>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        let pool = TaskPool::builder().balancing(shape.balancing).build()?;
        let consumers: Result<Vec<_>, _> = (0..shape.consumers).map(|_| pool.consumer()).collect();
        let producers: Result<Vec<_>, _> = (0..shape.producers).map(|_| pool.producer()).collect();
        let close = Box::new(move || {
            pool.close();
        });
        Ok(Opened { producers: producers?, consumers: consumers?, close })
    }
}

impl Put for Producer<u64> {
    #[inline(always)]
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.try_put(task).map_err(poach_pool::PutError::into_inner)
    }
}

impl Take for Consumer<u64> {
    #[inline(always)]
    fn take(&mut self) -> Option<u64> {
        self.try_get().ok()
    }

    fn wait(&mut self) -> Option<u64> {
        self.get().ok()
    }
}

/// crossbeam's unbounded queue.
#[derive(Clone)]
pub(super) struct Segmented;

impl System for Segmented {
    type In = Arc<SegQueue<u64>>;
    type Out = Arc<SegQueue<u64>>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        Ok(shared(shape, Arc::new(SegQueue::new())))
    }
}

impl Put for Arc<SegQueue<u64>> {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.push(task);
        Ok(())
    }
}

impl Take for Arc<SegQueue<u64>> {
    fn take(&mut self) -> Option<u64> {
        self.pop()
    }
}

/// crossbeam's bounded queue.
#[derive(Clone)]
pub(super) struct Array;

/// Places in it: it neither refuses a burst nor leaves the caches of a server.
const PLACES: usize = 1 << 16;

impl System for Array {
    type In = Arc<ArrayQueue<u64>>;
    type Out = Arc<ArrayQueue<u64>>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        Ok(shared(shape, Arc::new(ArrayQueue::new(PLACES))))
    }
}

impl Put for Arc<ArrayQueue<u64>> {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.push(task)
    }
}

impl Take for Arc<ArrayQueue<u64>> {
    fn take(&mut self) -> Option<u64> {
        self.pop()
    }
}

/// crossbeam's queue into a pool of work-stealing deques.
#[derive(Clone)]
pub(super) struct Injecting;

impl System for Injecting {
    type In = Arc<Injector<u64>>;
    type Out = Arc<Injector<u64>>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        Ok(shared(shape, Arc::new(Injector::new())))
    }
}

impl Put for Arc<Injector<u64>> {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.push(task);
        Ok(())
    }
}

impl Take for Arc<Injector<u64>> {
    fn take(&mut self) -> Option<u64> {
        loop {
            match self.steal() {
                Steal::Success(task) => return Some(task),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }
}

/// This project's injector: what its runtime's workers would take tasks from outside from.
#[derive(Clone)]
pub(super) struct OwnInjecting;

impl System for OwnInjecting {
    type In = Arc<poach_deque::Injector<u64>>;
    type Out = Arc<poach_deque::Injector<u64>>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        Ok(shared(shape, Arc::new(poach_deque::Injector::new())))
    }
}

impl Put for Arc<poach_deque::Injector<u64>> {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        poach_deque::Injector::push(self, task);
        Ok(())
    }
}

impl Take for Arc<poach_deque::Injector<u64>> {
    fn take(&mut self) -> Option<u64> {
        loop {
            match self.steal() {
                poach_deque::Steal::Success(task) => return Some(task),
                poach_deque::Steal::Empty => return None,
                _ => {}
            }
        }
    }
}

/// The queue under async-channel.
#[derive(Clone)]
pub(super) struct Concurrent;

type ConcurrentQueue = Arc<concurrent_queue::ConcurrentQueue<u64>>;

impl System for Concurrent {
    type In = ConcurrentQueue;
    type Out = ConcurrentQueue;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        Ok(shared(shape, Arc::new(concurrent_queue::ConcurrentQueue::unbounded())))
    }
}

impl Put for ConcurrentQueue {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.push(task).map_err(concurrent_queue::PushError::into_inner)
    }
}

impl Take for ConcurrentQueue {
    fn take(&mut self) -> Option<u64> {
        self.pop().ok()
    }
}

/// A deque behind a lock.
#[derive(Clone)]
pub(super) struct Locked;

type LockedDeque = Arc<Mutex<VecDeque<u64>>>;

impl System for Locked {
    type In = LockedDeque;
    type Out = LockedDeque;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        Ok(shared(shape, LockedDeque::default()))
    }
}

impl Put for LockedDeque {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.lock().unwrap_or_else(PoisonError::into_inner).push_back(task);
        Ok(())
    }
}

impl Take for LockedDeque {
    fn take(&mut self) -> Option<u64> {
        self.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// The standard library's channel, which has one receiver.
#[derive(Clone)]
pub(super) struct Mpsc;

impl System for Mpsc {
    type In = std::sync::mpsc::Sender<u64>;
    type Out = std::sync::mpsc::Receiver<u64>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        ensure!(shape.consumers == 1, "std's channel has one receiver, not {}", shape.consumers);
        let (send, receive) = std::sync::mpsc::channel();
        let producers = repeat_with(|| send.clone()).take(shape.producers).collect();
        Ok(Opened { producers, consumers: vec![receive], close: Box::new(|| ()) })
    }
}

/// A channel with an unbounded buffer: how it is made, and its two ends.
macro_rules! channel {
    ($(#[$about:meta])* $name:ident, $make:expr, $send:ty, $receive:ty) => {
        $(#[$about])*
        #[derive(Clone)]
        pub(super) struct $name;

        impl System for $name {
            type In = $send;
            type Out = $receive;

            fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
                Ok(ends(shape, $make))
            }
        }
    };
}

channel!(
    /// crossbeam's channel.
    Channel,
    crossbeam_channel::unbounded(),
    crossbeam_channel::Sender<u64>,
    crossbeam_channel::Receiver<u64>
);
channel!(
    /// flume's channel.
    Flume,
    flume::unbounded(),
    flume::Sender<u64>,
    flume::Receiver<u64>
);
channel!(
    /// kanal's channel.
    Kanal,
    kanal::unbounded(),
    kanal::Sender<u64>,
    kanal::Receiver<u64>
);

/// The ends of channels whose methods have std's names.
macro_rules! std_names {
    ($send:ty, $receive:ty) => {
        impl Put for $send {
            fn put(&mut self, task: u64) -> Result<(), u64> {
                self.send(task).map_err(|_closed| task)
            }
        }

        impl Take for $receive {
            fn take(&mut self) -> Option<u64> {
                self.try_recv().ok()
            }

            fn wait(&mut self) -> Option<u64> {
                self.recv().ok()
            }
        }
    };
}

std_names!(std::sync::mpsc::Sender<u64>, std::sync::mpsc::Receiver<u64>);
std_names!(crossbeam_channel::Sender<u64>, crossbeam_channel::Receiver<u64>);
std_names!(flume::Sender<u64>, flume::Receiver<u64>);

impl Put for kanal::Sender<u64> {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.send(task).map_err(|_closed| task)
    }
}

impl Take for kanal::Receiver<u64> {
    fn take(&mut self) -> Option<u64> {
        // An error means that the channel is closed.
        self.try_recv().ok().flatten()
    }

    fn wait(&mut self) -> Option<u64> {
        self.recv().ok()
    }
}
