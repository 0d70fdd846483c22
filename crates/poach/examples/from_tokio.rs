//! For users of tokio: spawn and await, cancel, wait for something outside of the pool.

use std::sync::mpsc;

use poach::ThreadPool;
use poach::cancel::{CancellationToken, Cancelled};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = ThreadPool::builder().num_threads(2).spares(1).build()?;

    // A handle is a future for any executor. A thread without an executor can join it.
    assert_eq!(pool.spawn_handle(|| 6 * 7).join()?, 42);

    // The handle cancels a task that has not started. A running task polls a token.
    let token = CancellationToken::new();
    let asks = token.clone();
    let search = pool.spawn_handle(move || -> Result<(), Cancelled> {
        loop {
            asks.check()?;
        }
    });
    token.cancel();
    assert_eq!(search.join()?, Err(Cancelled));

    // A lock held across a wait: in `blocking` the worker runs no other task meanwhile.
    let lock = std::sync::Mutex::new(0);
    let other = ThreadPool::builder().num_threads(1).build()?;
    pool.install(|| {
        let mut held = lock.lock().unwrap();
        *held = poach::blocking(|| other.spawn_handle(|| 1).join()).unwrap();
    });

    // A wait for something outside of the pool.
    let (send, receive) = mpsc::channel();
    let answer = pool.install(move || {
        poach::spawn(move || send.send("sent").unwrap());
        poach::blocking(|| receive.recv())
    })?;
    println!("{answer}");
    Ok(())
}
