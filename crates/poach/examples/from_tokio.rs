//! What a tokio user writes first: spawn and await, cancel, wait for something outside.

use std::sync::mpsc;

use poach::{CancellationToken, Cancelled, ThreadPool};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = ThreadPool::builder().num_threads(2).spares(1).build()?;

    // A handle is a future for any executor, and may be joined where there is none.
    assert_eq!(pool.spawn(|| 6 * 7).join()?, 42);

    // What has not started is cancelled with its handle; what runs asks a token.
    let token = CancellationToken::new();
    let asks = token.clone();
    let search = pool.spawn(move || -> Result<(), Cancelled> {
        loop {
            asks.check()?;
        }
    });
    token.cancel();
    assert_eq!(search.join()?, Err(Cancelled));

    // A lock held across a wait: in `blocking` nothing else runs on top of it.
    let lock = std::sync::Mutex::new(0);
    let other = ThreadPool::builder().num_threads(1).build()?;
    pool.install(|| {
        let mut held = lock.lock().unwrap();
        *held = poach::blocking(|| other.spawn(|| 1).join()).unwrap();
    });

    // A wait that the pool knows nothing of.
    let (send, receive) = mpsc::channel();
    let answer = pool.install(move || {
        poach::spawn_detached(move || send.send("sent").unwrap());
        poach::blocking(|| receive.recv())
    })?;
    println!("{answer}");
    Ok(())
}
