//! What safe code cannot write. Each program has a twin that differs in the error, and compiles.

/// Tasks that may not go to another thread.
///
/// ```compile_fail,E0277
/// let pool = poach_pool::TaskPool::<std::rc::Rc<u8>>::new();
/// ```
///
/// ```
/// let pool = poach_pool::TaskPool::<std::sync::Arc<u8>>::new();
/// ```
///
/// ```compile_fail,E0277
/// let pool = poach_pool::baselines::WsMsq::<std::rc::Rc<u8>, poach_memory::Machine>::new();
/// ```
///
/// ```
/// let pool = poach_pool::baselines::WsMsq::<std::sync::Arc<u8>, poach_memory::Machine>::new();
/// ```
pub struct TasksOfOneThread;

/// Tasks that end before the pool does: it drops what is left in it.
///
/// ```compile_fail,E0597
/// let pool = poach_pool::TaskPool::new();
/// {
///     let text = String::from("short");
///     pool.producer().unwrap().put(&text).unwrap();
/// }
/// drop(pool);
/// ```
///
/// ```
/// let text = String::from("long enough");
/// let pool = poach_pool::TaskPool::new();
/// {
///     pool.producer().unwrap().put(&text).unwrap();
/// }
/// drop(pool);
/// ```
///
/// ```compile_fail,E0597
/// use std::sync::Arc;
/// use poach_pool::mechanism::{Mechanism, Produce};
///
/// let pools = Arc::new(poach_pool::baselines::ConcBag::<&String>::new(2).unwrap());
/// let mut producer = pools.producer().unwrap();
/// {
///     let text = String::from("short");
///     producer.produce_force(0, &text).unwrap();
/// }
/// drop(producer);
/// ```
///
/// ```
/// use std::sync::Arc;
/// use poach_pool::mechanism::{Mechanism, Produce};
///
/// let text = String::from("long enough");
/// let pools = Arc::new(poach_pool::baselines::ConcBag::<&String>::new(2).unwrap());
/// let mut producer = pools.producer().unwrap();
/// {
///     producer.produce_force(0, &text).unwrap();
/// }
/// drop(producer);
/// ```
pub struct TasksThatEnd;

/// One handle in two threads at once.
///
/// ```compile_fail,E0277
/// let pool = poach_pool::TaskPool::<u8>::new();
/// let consumer = pool.consumer().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| println!("{:?}", &consumer));
/// });
/// ```
///
/// ```
/// let pool = poach_pool::TaskPool::<u8>::new();
/// let consumer = pool.consumer().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(move || println!("{:?}", &consumer));
/// });
/// ```
///
/// ```compile_fail,E0499
/// use std::sync::Arc;
/// use poach_pool::mechanism::{Consume, Mechanism};
///
/// let pools = Arc::new(poach_pool::salsa::Salsa::<u8>::new(2).unwrap());
/// let mut consumer = pools.consumer().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| consumer.consume());
///     scope.spawn(|| consumer.steal(0));
/// });
/// ```
///
/// ```
/// use std::sync::Arc;
/// use poach_pool::mechanism::{Consume, Mechanism};
///
/// let pools = Arc::new(poach_pool::salsa::Salsa::<u8>::new(2).unwrap());
/// let mut consumer = pools.consumer().unwrap();
/// let mut another = pools.consumer().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| consumer.consume());
///     scope.spawn(|| another.steal(0));
/// });
/// ```
pub struct HandlesOfTwo;

/// A queue of the user's own for `SharedQueues`: the trait `SharedQueue` has no name outside. (Its
/// `node` and `into_task` make and unmake a node, which nobody else can push.)
///
/// ```compile_fail,E0603
/// use poach_pool::shared_queue::{SharedQueue, SharedQueues};
/// fn new<Q: SharedQueue<u8, poach_memory::Machine>>() { SharedQueue::new(); SharedQueues::new(); SharedQueues::with_retention(); }
/// ```
///
/// ```
/// poach_pool::baselines::WsMsq::<u8, poach_memory::Machine>::new();
/// ```
mod queues_of_ones_own {}
