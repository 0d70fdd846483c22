//! Tasks put and taken by one thread, in a chosen number, for an instruction counter.
//!
//! ```text
//! cargo build --release -p poach-pool --example pool_instructions
//! valgrind --tool=callgrind target/release/examples/pool_instructions POOL BATCHES COUNT
//! ```
//!
//! POOL is `task-pool`, `salsa`, `salsa-cas`, `conc-bag`, `ws-msq` or `ws-lifo`; BATCHES times
//! COUNT tasks are put and then taken. Two runs' difference in instructions, divided by that in
//! tasks, is what one put and one get cost, their loops included.

use std::process::ExitCode;
use std::sync::Arc;

use poach_memory::Machine;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::baselines::{BAG_CHUNK_LENGTH, ConcBag};
use poach_pool::mechanism::Mechanism;
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::{Consumer, Producer, TaskPool};

fn run(
    batches: u64,
    count: u64,
    mut put: impl FnMut(u64) -> bool,
    mut take: impl FnMut() -> Option<u64>,
) {
    let mut sum = 0;
    for _ in 0..batches {
        for task in 0..count {
            assert!(put(task));
        }
        for _ in 0..count {
            sum += take().expect("a task that was put");
        }
    }
    assert_eq!(sum, batches * (count * (count - 1) / 2));
}

/// Out of line, both, so that what a compiler makes of one does not depend on the other.
fn mechanism<P: Mechanism<u64>>(batches: u64, count: u64, pools: Option<P>) {
    #[inline(never)]
    fn put<P: Mechanism<u64>>(feeder: &mut Feeder<u64, P>, task: u64) -> bool {
        feeder.put(task).is_ok()
    }
    #[inline(never)]
    fn take<P: Mechanism<u64>>(taker: &mut Taker<u64, P>) -> Option<u64> {
        taker.get()
    }
    let pools = Arc::new(pools.expect("memory"));
    let mut taker = Taker::at(&pools, Policy::default(), 0).expect("memory");
    let mut feeder = Feeder::at(&pools, Policy::default(), 0).expect("memory");
    run(batches, count, |task| put(&mut feeder, task), || take(&mut taker));
}

fn task_pool(batches: u64, count: u64) {
    #[inline(never)]
    fn put(producer: &mut Producer<u64>, task: u64) -> bool {
        producer.put(task).is_ok()
    }
    #[inline(never)]
    fn take(consumer: &mut Consumer<u64>) -> Option<u64> {
        consumer.get().ok()
    }
    let pool = TaskPool::new();
    let mut consumer = pool.consumer().expect("memory");
    let mut producer = pool.producer().expect("memory");
    run(batches, count, |task| put(&mut producer, task), || take(&mut consumer));
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pool, batches, count] = &arguments[..] else { return ExitCode::from(2) };
    let (Ok(batches), Ok(count)) = (batches.parse(), count.parse()) else {
        return ExitCode::from(2);
    };
    match pool.as_str() {
        "task-pool" => task_pool(batches, count),
        "salsa" => mechanism(batches, count, Salsa::<u64>::new(1000)),
        "salsa-cas" => mechanism(batches, count, SalsaCas::<u64>::new(1000)),
        "conc-bag" => mechanism(batches, count, ConcBag::<u64>::new(BAG_CHUNK_LENGTH)),
        "ws-msq" => mechanism(batches, count, WsMsq::<u64, Machine>::new()),
        "ws-lifo" => mechanism(batches, count, WsLifo::<u64, Machine>::new()),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}
