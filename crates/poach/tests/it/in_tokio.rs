//! In a task of tokio: calls that begin on the calling thread have tokio's context, and calls that
//! run on the pool's own threads have none, whether the workers are idle or busy.

#![forbid(unsafe_code)]

use poach::ThreadPool;
use tokio::runtime::{Builder, Handle, Runtime};

/// Calls in each test. A call on the wrong thread happened in most of a thousand.
const CALLS: usize = 1000;

fn is_inside() -> bool {
    Handle::try_current().is_ok()
}

/// Starts a runtime, which panics in the context of another runtime.
fn starts_one() -> u32 {
    Builder::new_current_thread().build().unwrap().block_on(async { 6 * 7 })
}

async fn calls(pool: ThreadPool) {
    for call in 0..CALLS {
        // Idle, just woken, or busy.
        if call % 3 == 0 {
            pool.spawn(std::thread::yield_now);
        }
        assert!(pool.run(|_| poach::join(is_inside, || ())).0);
        assert!(pool.run(|_| poach::scope(|_| is_inside())));
        assert!(pool.run(|_| is_inside()));

        assert_eq!(pool.install(starts_one), 42);
        assert_eq!(pool.spawn_handle(starts_one).await.unwrap(), 42);
        assert_eq!(pool.install(|| poach::join(starts_one, starts_one)), (42, 42));
        // Also from within a region of this thread.
        assert_eq!(pool.run(|_| poach::join(|| pool.install(starts_one), || ())).0, 42);
        assert!(pool.broadcast(|_| is_inside()).iter().all(|inside| !inside));
    }
}

fn pool() -> ThreadPool {
    ThreadPool::builder().num_threads(2).build().unwrap()
}

#[test]
fn in_a_runtime_of_one_thread() {
    Builder::new_current_thread().build().unwrap().block_on(calls(pool()));
}

#[test]
fn in_tasks_of_a_runtime_of_several() {
    let runtime: Runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let tasks: Vec<_> = (0..2).map(|_| runtime.spawn(calls(pool()))).collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
}
