//! A pool of any mechanism, so that each model of pools is compiled once, and not once for each
//! mechanism and policy.

use std::fmt::Debug;
use std::sync::Arc;

use poach_pool::mechanism::{Consume, Mechanism, NoHandle, Produce};

/// A pool of any mechanism.
#[derive(Debug)]
pub(super) struct AnyPool(Box<dyn Erased>);

/// A producer of one.
pub(super) type AnyProducer = Boxed<dyn Produce<u32>>;
/// A consumer of one.
pub(super) type AnyConsumer = Boxed<dyn Consume<u32>>;

/// A producer or a consumer of any type.
pub(super) struct Boxed<H: ?Sized>(Box<H>);

impl AnyPool {
    /// # Panics
    ///
    /// If there is no memory for the pool.
    pub(super) fn of<P: Mechanism<u32> + 'static>(pool: Option<P>) -> Arc<AnyPool>
    where
        P::Producer: 'static,
        P::Consumer: 'static,
    {
        Arc::new(AnyPool(Box::new(Arc::new(pool.expect(super::shared::LITTLE)))))
    }
}

trait Erased: Debug + Send + Sync {
    fn producer(&self) -> Result<AnyProducer, NoHandle>;
    fn consumer(&self) -> Result<AnyConsumer, NoHandle>;
    fn pools(&self) -> usize;
    fn is_held(&self, pool: usize) -> bool;
    fn changes(&self) -> u64;
    fn announced(&self, pool: usize) -> u64;
}

impl<P: Mechanism<u32> + 'static> Erased for Arc<P>
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    fn producer(&self) -> Result<AnyProducer, NoHandle> {
        Ok(Boxed(Box::new(Mechanism::producer(self)?)))
    }

    fn consumer(&self) -> Result<AnyConsumer, NoHandle> {
        Ok(Boxed(Box::new(Mechanism::consumer(self)?)))
    }

    fn pools(&self) -> usize {
        Mechanism::pools(&**self)
    }

    fn is_held(&self, pool: usize) -> bool {
        Mechanism::is_held(&**self, pool)
    }

    fn changes(&self) -> u64 {
        Mechanism::changes(&**self)
    }

    fn announced(&self, pool: usize) -> u64 {
        Mechanism::announced(&**self, pool)
    }
}

impl Produce<u32> for AnyProducer {
    fn number(&self) -> usize {
        self.0.number()
    }

    fn prepare(&mut self, pool: usize, grow: bool) -> bool {
        self.0.prepare(pool, grow)
    }

    fn produce_force(&mut self, pool: usize, task: u32) -> Result<(), u32> {
        self.0.produce_force(pool, task)
    }
}

impl Consume<u32> for AnyConsumer {
    fn number(&self) -> usize {
        self.0.number()
    }

    fn consume(&mut self) -> Option<u32> {
        self.0.consume()
    }

    fn steal(&mut self, from: usize) -> Option<u32> {
        self.0.steal(from)
    }

    fn is_empty(&mut self, pool: usize) -> bool {
        self.0.is_empty(pool)
    }

    fn exchanges(&self) -> u64 {
        self.0.exchanges()
    }
}

impl Mechanism<u32> for AnyPool {
    type Producer = AnyProducer;
    type Consumer = AnyConsumer;

    fn producer(self: &Arc<Self>) -> Result<Self::Producer, NoHandle> {
        self.0.producer()
    }

    fn consumer(self: &Arc<Self>) -> Result<Self::Consumer, NoHandle> {
        self.0.consumer()
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
        self.0.announced(pool)
    }
}
