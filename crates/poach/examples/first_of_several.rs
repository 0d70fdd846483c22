//! Waiting for several tasks: for all of them, for the first, and for a task or a get of a
//! `TaskPool`.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use poach::pool::TaskPool;
use poach::{JoinError, JoinHandle, ThreadPool};

/// A minimal executor; any other works as well.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// Waits for the first handle that is ready, and returns its index and result. The others remain.
async fn first<R>(handles: &mut Vec<JoinHandle<R>>) -> (usize, Result<R, JoinError>) {
    let (place, result) = poll_fn(|context| {
        let polls = handles.iter_mut().map(|handle| Pin::new(handle).poll(context));
        let mut ready = polls.enumerate().filter_map(|(place, poll)| match poll {
            Poll::Ready(result) => Some((place, result)),
            Poll::Pending => None,
        });
        ready.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await;
    drop(handles.remove(place));
    (place, result)
}

pub(crate) fn main() {
    let pool = ThreadPool::builder().num_threads(2).build().unwrap();

    // All of them: a loop, whatever the order in which they end.
    let handles: Vec<_> = (0..10).map(|n| pool.spawn_handle(move || n * n)).collect();
    let squares: Vec<u32> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
    assert_eq!(squares.iter().sum::<u32>(), 285);

    // The first, then the next: a handle is a future. One task ends when it is told to.
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let slow = move || {
        _ = wait.recv();
        "slow"
    };
    let mut handles = vec![pool.spawn_handle(slow), pool.spawn_handle(|| "quick")];
    let (place, result) = block_on(first(&mut handles));
    assert_eq!((place, result.unwrap()), (1, "quick"));
    drop(release);
    assert_eq!(block_on(first(&mut handles)).1.unwrap(), "slow");

    // A get of a `TaskPool` is a future, too. If it is dropped before it is ready, it has taken no
    // task.
    let orders = TaskPool::new();
    let (mut put, mut get) = (orders.producer().unwrap(), orders.consumer().unwrap());
    put.put("an order").unwrap();
    let mut answer = pool.spawn_handle(|| "an answer");
    let mut seen = Vec::new();
    block_on(async {
        let mut answered = false;
        while seen.len() < 2 {
            let mut next = pin!(get.get_async());
            let one = poll_fn(|context| {
                if !answered {
                    if let Poll::Ready(text) = Pin::new(&mut answer).poll(context) {
                        answered = true;
                        return Poll::Ready(text.unwrap());
                    }
                }
                next.as_mut().poll(context).map(|order| order.unwrap())
            });
            seen.push(one.await);
        }
    });
    seen.sort_unstable();
    assert_eq!(seen, ["an answer", "an order"]);
    println!("{seen:?}");
}
