//! Cancellation: tokens that are nested like scopes, and handles that cancel when they are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use poach::ThreadPool;
use poach::cancel::{CancellationToken, Cancelled};

/// Counts up to `limit`, and polls its token now and then: a running task is never stopped.
fn count(limit: u64, token: &CancellationToken) -> Result<u64, Cancelled> {
    for n in 0..limit {
        if n % 1000 == 0 {
            token.check()?;
        }
        std::hint::black_box(n);
    }
    Ok(limit)
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = ThreadPool::builder().num_threads(1).build()?;

    // A cancelled task that has not started never starts. `cancel` drops its closure.
    let (release, wait) = mpsc::channel::<()>();
    let busy = pool.spawn_handle(move || _ = wait.recv());
    let large = Arc::new(());
    let idle = pool.spawn_handle({
        let large = Arc::clone(&large);
        move || drop(large)
    });
    assert!(idle.cancel());
    assert_eq!(Arc::strong_count(&large), 1);
    assert!(idle.join().unwrap_err().is_cancelled());

    // Dropping a handle detaches its task; dropping a `CancelOnDrop` cancels it.
    drop(pool.spawn_handle(|| unreachable!()).cancel_on_drop());
    drop(release);
    busy.join()?;

    // A running task polls a token, and returns by `?`.
    let token = CancellationToken::new();
    let asks = token.clone();
    let search = pool.spawn_handle(move || count(u64::MAX, &asks));
    token.cancel();
    assert_eq!(search.join()?, Err(Cancelled));

    // A scope that fails cancels its own tasks only, and waits for them.
    let (program, ended) = (CancellationToken::new(), AtomicUsize::new(0));
    let request = program.try_scope(|s, request| {
        for _ in 0..3 {
            s.spawn_unless(request, |_, request| {
                _ = count(u64::MAX, request);
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        "twelve".parse::<u32>()
    });
    assert!(request.is_err() && !program.is_cancelled());

    // A loop ends early at its first error.
    let found = poach::try_par_for(0..1_000_000_u32, |n| if n == 7919 { Err(n) } else { Ok(()) });
    assert_eq!(found, Err(7919));
    println!("{} of 3 had started", ended.into_inner());
    Ok(())
}
