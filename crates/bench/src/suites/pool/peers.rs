//! What one would use instead of a pool: queues, channels and injectors of other crates. This file
//! is all that a peer needs:
//!
//! 1. a type with [`System`], which opens it, and the two handles with [`Put`] and [`Take`];
//! 2. its [`Peer`], which says its name and where it can take part;
//! 3. its line in [`each`].
//!
//! It then has a row in each shape that it can take part in, and its tasks are accounted for by the
//! suite's test.

use std::collections::VecDeque;
use std::iter::repeat_with;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use crossbeam_deque::{Injector, Steal};
use crossbeam_queue::{ArrayQueue, SegQueue};

use super::protocol::{Opened, Put, Shape, System, Take};
use super::systems::{ends, shared};

/// A peer by its name, and where it takes part.
pub(super) trait Peer: System {
    /// Its name on the command line.
    const NAME: &'static str;
    /// Whether its consumers can sleep.
    const BLOCKS: bool = false;
    /// Whether it holds no more than a capacity, and its producers can sleep, too.
    const LIMITED: bool = false;

    /// Whether it can have that number of producers and of consumers.
    fn can(_producers: usize, _consumers: usize) -> bool {
        true
    }
}

/// Sees every peer.
pub(super) trait Visitor {
    fn visit<P: Peer>(&mut self, peer: P);
}

/// The peers, in the order of their rows.
pub(super) fn each(visitor: &mut impl Visitor) {
    visitor.visit(Segmented);
    visitor.visit(Array);
    visitor.visit(Channel);
    visitor.visit(ChannelBounded);
    visitor.visit(Injecting);
    visitor.visit(InjectingBatches);
    visitor.visit(OwnInjecting);
    visitor.visit(Concurrent);
    visitor.visit(Flume);
    visitor.visit(FlumeBounded);
    visitor.visit(Kanal);
    visitor.visit(KanalBounded);
    visitor.visit(Mpsc);
    visitor.visit(SyncMpsc);
    visitor.visit(Ring);
    visitor.visit(Locked);
}

macro_rules! peers {
    ($($peer:ident: $name:literal $(, $can:ident)*;)*) => {$(
        impl Peer for $peer {
            const NAME: &'static str = $name;
            $(const $can: bool = true;)*
        }
    )*};
}

peers! {
    Segmented: "crossbeam-seg-queue";
    Array: "crossbeam-array-queue";
    Channel: "crossbeam-channel", BLOCKS;
    ChannelBounded: "crossbeam-channel-bounded", LIMITED;
    Injecting: "crossbeam-injector";
    InjectingBatches: "crossbeam-injector-batch";
    OwnInjecting: "poach-injector";
    Concurrent: "concurrent-queue";
    Flume: "flume", BLOCKS;
    FlumeBounded: "flume-bounded", LIMITED;
    Kanal: "kanal", BLOCKS;
    KanalBounded: "kanal-bounded", LIMITED;
    Locked: "mutex-vecdeque";
}

impl Peer for Mpsc {
    const NAME: &'static str = "std-mpsc";
    const BLOCKS: bool = true;

    fn can(_producers: usize, consumers: usize) -> bool {
        consumers == 1
    }
}

impl Peer for SyncMpsc {
    const NAME: &'static str = "std-sync-mpsc";

    fn can(_producers: usize, consumers: usize) -> bool {
        consumers == 1
    }
}

impl Peer for Ring {
    const NAME: &'static str = "rtrb";

    fn can(producers: usize, consumers: usize) -> bool {
        (producers, consumers) == (1, 1)
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

/// crossbeam's injector as its documentation has it: a consumer moves a batch into a deque of its
/// own, and takes from there.
#[derive(Clone)]
pub(super) struct InjectingBatches;

/// A consumer of batches.
pub(super) struct Batches {
    injector: Arc<Injector<u64>>,
    mine: crossbeam_deque::Worker<u64>,
}

impl System for InjectingBatches {
    type In = Arc<Injector<u64>>;
    type Out = Batches;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        let injector = Arc::new(Injector::new());
        let consumer = || Batches {
            injector: Arc::clone(&injector),
            mine: crossbeam_deque::Worker::new_fifo(),
        };
        Ok(Opened {
            producers: repeat_with(|| Arc::clone(&injector)).take(shape.producers).collect(),
            consumers: repeat_with(consumer).take(shape.consumers).collect(),
            close: Box::new(|| ()),
        })
    }
}

impl Take for Batches {
    fn take(&mut self) -> Option<u64> {
        self.mine.pop().or_else(|| {
            loop {
                match self.injector.steal_batch_and_pop(&self.mine) {
                    Steal::Success(task) => return Some(task),
                    Steal::Empty => return None,
                    Steal::Retry => {}
                }
            }
        })
    }
}

/// The sending end of a channel with a limit, which gives a task back if it is full.
#[derive(Clone)]
pub(super) struct Limited<S>(S);

/// A channel with as many places as [`Array`], if the shape has no capacity: how it is made, and
/// its two ends.
macro_rules! bounded {
    ($(#[$about:meta])* $name:ident, $make:expr, $send:ty, $receive:ty, $put:expr) => {
        $(#[$about])*
        #[derive(Clone)]
        pub(super) struct $name;

        impl System for $name {
            type In = Limited<$send>;
            type Out = $receive;

            fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
                let make: fn(usize) -> ($send, $receive) = $make;
                let (send, receive) = make(shape.capacity.unwrap_or(PLACES));
                Ok(ends(shape, (Limited(send), receive)))
            }
        }

        impl Put for Limited<$send> {
            fn put(&mut self, task: u64) -> Result<(), u64> {
                let put: fn(&$send, u64) -> bool = $put;
                if put(&self.0, task) { Ok(()) } else { Err(task) }
            }

            fn put_waiting(&mut self, task: u64) -> bool {
                self.0.send(task).is_ok()
            }
        }
    };
}

bounded!(
    /// crossbeam's channel with a limit.
    ChannelBounded,
    crossbeam_channel::bounded,
    crossbeam_channel::Sender<u64>,
    crossbeam_channel::Receiver<u64>,
    |send, task| send.try_send(task).is_ok()
);
bounded!(
    /// flume's channel with a limit.
    FlumeBounded,
    flume::bounded,
    flume::Sender<u64>,
    flume::Receiver<u64>,
    |send, task| send.try_send(task).is_ok()
);
bounded!(
    /// kanal's channel with a limit.
    KanalBounded,
    kanal::bounded,
    kanal::Sender<u64>,
    kanal::Receiver<u64>,
    |send, task| matches!(send.try_send(task), Ok(true))
);

/// The standard library's channel with a limit.
#[derive(Clone)]
pub(super) struct SyncMpsc;

impl System for SyncMpsc {
    type In = Limited<std::sync::mpsc::SyncSender<u64>>;
    type Out = std::sync::mpsc::Receiver<u64>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        ensure!(shape.consumers == 1, "std's channel has one receiver, not {}", shape.consumers);
        let (send, receive) = std::sync::mpsc::sync_channel(PLACES);
        let producers = repeat_with(|| Limited(send.clone())).take(shape.producers).collect();
        Ok(Opened { producers, consumers: vec![receive], close: Box::new(|| ()) })
    }
}

impl Put for Limited<std::sync::mpsc::SyncSender<u64>> {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.0.try_send(task).map_err(|_full| task)
    }
}

/// rtrb, a ring for one producer and one consumer.
#[derive(Clone)]
pub(super) struct Ring;

impl System for Ring {
    type In = rtrb::Producer<u64>;
    type Out = rtrb::Consumer<u64>;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
        ensure!(
            (shape.producers, shape.consumers) == (1, 1),
            "rtrb has one producer and one consumer"
        );
        let (send, receive) = rtrb::RingBuffer::new(PLACES);
        Ok(Opened { producers: vec![send], consumers: vec![receive], close: Box::new(|| ()) })
    }
}

impl Put for rtrb::Producer<u64> {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.push(task).map_err(|_full| task)
    }
}

impl Take for rtrb::Consumer<u64> {
    fn take(&mut self) -> Option<u64> {
        self.pop().ok()
    }
}
