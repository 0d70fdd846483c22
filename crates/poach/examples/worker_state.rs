//! State of each worker: thread-local variables that a start handler sets, a large call stack, an
//! element of an array.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use poach::ThreadPool;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn scratch() -> usize {
    SCRATCH.with_borrow(Vec::len)
}

fn deep(levels: usize) -> usize {
    let frame = std::hint::black_box([levels as u8; 1 << 10]);
    if levels == 0 { 0 } else { deep(levels - 1) + usize::from(frame[0] == levels as u8) }
}

pub(crate) fn main() -> Result<(), poach::BuildError> {
    let pool = ThreadPool::builder()
        .num_threads(2)
        .stack_size(128 << 20)
        .on_start(|_| SCRATCH.set(vec![0; 1024]))
        .build()?;
    // `install`, `spawn` and `broadcast` always run on the pool's own threads, with their
    // thread-local variables and their call stacks, which are large here.
    assert_eq!(pool.install(scratch), 1024);
    assert_eq!(pool.spawn_handle(scratch).join().unwrap(), 1024);
    assert_eq!(pool.install(|| deep(32_000)), 32_000);
    // `broadcast` runs on each of them.
    assert_eq!(pool.broadcast(|_| scratch()), [1024, 1024]);
    // `join`, `scope`, `run` and the loops begin on this thread, for which no start handler ran.
    assert_eq!(pool.run(|_| poach::join(scratch, || ())).0, 0);

    // An element for each index that a worker, a spare or a calling thread may have.
    let calls: Vec<AtomicUsize> = (0..pool.index_limit()).map(|_| AtomicUsize::new(0)).collect();
    pool.run(|_| {
        poach::scope(|s| {
            for _ in 0..100 {
                s.spawn(|_| {
                    let index = poach::current_thread_index().unwrap();
                    calls[index].fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    });
    assert_eq!(calls.into_iter().map(AtomicUsize::into_inner).sum::<usize>(), 100);

    // A loop needs neither: each run of iterations has a value of its own.
    let texts = ["to", "be", "or", "not"];
    let lengths = poach::par_map_init(&texts, String::new, |buffer, text| {
        buffer.clear();
        buffer.push_str(text);
        buffer.len()
    });
    println!("{lengths:?}");
    Ok(())
}
