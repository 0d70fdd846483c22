//! The pools of this project in the suite, and what its peers have in common.

use std::iter::repeat_with;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use poach_pool::mechanism::Mechanism;
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::{Consumer, Producer, TaskPool};

use super::protocol::{Opened, Put, Shape, System, Take};

/// Everything that is one shared thing, cloned for each thread.
pub(super) fn shared<S: Clone + 'static>(shape: &Shape, it: S) -> Opened<S, S> {
    Opened {
        producers: repeat_with(|| it.clone()).take(shape.producers).collect(),
        consumers: repeat_with(|| it.clone()).take(shape.consumers).collect(),
        close: Box::new(|| ()),
    }
}

/// Everything with a sending and a receiving end.
pub(super) fn ends<I: Clone, O: Clone>(shape: &Shape, (send, receive): (I, O)) -> Opened<I, O> {
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
        let mut builder = TaskPool::builder().balancing(shape.balancing);
        if let Some(capacity) = shape.capacity {
            builder = builder.capacity(capacity);
        }
        let pool = builder.build()?;
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

    #[inline(always)]
    fn put_waiting(&mut self, task: u64) -> bool {
        Producer::put(self, task).is_ok()
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
