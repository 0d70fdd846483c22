//! An async program with work for the processors: the executor's threads await, and Poach's
//! threads compute.

use std::time::Duration;

use poach::ThreadPool;
use poach::pool::TaskPool;

async fn serve(pool: &ThreadPool) -> Result<u64, Box<dyn std::error::Error>> {
    // The handle is a future, so no thread of the executor waits. The task runs on one of the
    // pool's own threads, so it may start a runtime of its own, or block.
    let inside = || tokio::runtime::Handle::try_current().is_ok();
    assert!(inside());
    assert!(!pool.spawn_handle(inside).await?);

    // Dropping a request cancels its task, if the task has not started.
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let busy = pool.spawn_handle(move || _ = wait.recv());
    let late = pool.spawn_handle(|| unreachable!()).cancel_on_drop();
    assert!(tokio::time::timeout(Duration::from_millis(1), late).await.is_err());
    drop(release);
    busy.await?;

    // A stream of tasks to any free consumer: an async put and get.
    let numbers = TaskPool::builder().capacity(8).build()?;
    let (mut put, mut get) = (numbers.producer()?, numbers.consumer()?);
    let puts = async move {
        for n in 1..=100_u64 {
            put.put_async(n).await.unwrap();
        }
    };
    let gets = async move {
        let mut sum = 0;
        while let Ok(n) = get.get_async().await {
            sum += n;
        }
        sum
    };
    Ok(tokio::join!(puts, gets).1)
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = ThreadPool::builder().num_threads(1).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let sum = runtime.block_on(serve(&pool))?;
    assert_eq!(sum, 5050);

    // `join` and the loops work in a task of the executor, too, and keep its context, because they
    // begin on the calling thread. But they block that thread. If it has other tasks, `spawn` and
    // await instead.
    let inside = || tokio::runtime::Handle::try_current().is_ok();
    assert!(runtime.block_on(async { pool.run(|_| poach::join(inside, || ())).0 }));
    assert!(!runtime.block_on(async { pool.install(inside) }));
    println!("{sum}");
    Ok(())
}
