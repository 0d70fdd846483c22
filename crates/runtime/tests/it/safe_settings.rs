//! Settings, counts and topologies that safe code can give the runtime, with values that they are
//! not meant to have: each is refused with an error, or the pool works.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use poach_runtime::config::{SpawnOrder, Victims, Waiting};
use poach_runtime::stats::WorkerStats;
use poach_runtime::topology::Placement;
use poach_runtime::topology::{Distance, Processor, Topology};
use poach_runtime::trace::RecordError;
use poach_runtime::{JoinError, ThreadPool, ThreadPoolBuilder};

use crate::alone::alone;

/// Forks, tasks and a broadcast; afterwards all workers are there.
fn works(pool: &ThreadPool) {
    let tasks = AtomicUsize::new(0);
    let (left, right) = pool.run(|_| {
        poach_runtime::join(
            || poach_runtime::join(|| 1, || 2),
            || {
                poach_runtime::scope(|s| {
                    for _ in 0..10 {
                        s.spawn(|_| _ = tasks.fetch_add(1, Ordering::SeqCst));
                    }
                });
                3
            },
        )
    });
    assert_eq!((left, right, tasks.into_inner()), ((1, 2), 3, 10));
    assert!(pool.broadcast(|context| context.index()).into_iter().eq(0..pool.threads()));
}

/// What a builder makes works, or there is an error that says why not.
fn made_or_refused(builder: ThreadPoolBuilder<'_>) -> bool {
    match builder.build() {
        Ok(pool) => {
            works(&pool);
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

#[test]
fn a_pool_works_without_the_barrier_and_so_does_one_that_was_there_before() {
    alone("a_pool_works_without_the_barrier_and_so_does_one_that_was_there_before", || {
        let before = ThreadPool::builder().num_threads(2).build().unwrap();
        works(&before);
        let pool = ThreadPool::builder().num_threads(2).without_barrier().build().unwrap();
        assert!(poach_memory::membarrier::is_refused());
        for _ in 0..10 {
            works(&pool);
            works(&before);
        }
    });
}

#[test]
fn settings_of_any_value() {
    alone("settings_of_any_value", || {
        let some = || ThreadPool::builder().num_threads(2);
        assert!(!made_or_refused(some().num_threads(0)));
        assert!(!made_or_refused(some().num_threads(usize::MAX).spares(1)));
        assert!(!made_or_refused(some().spares(usize::MAX)));
        for forks in [0, usize::MAX] {
            assert!(!made_or_refused(some().task_stack(forks)));
        }
        let narrow = some().task_stack(1).build().unwrap();
        let two_deep =
            || narrow.run(|_| poach_runtime::join(|| poach_runtime::join(|| 1, || 2), || 3));
        assert!(catch_unwind(AssertUnwindSafe(two_deep)).is_err());
        assert_eq!(narrow.run(|_| poach_runtime::join(|| 1, || 2)), (1, 2));
        // Miri gives every thread the stack that it wants, and knows no processors.
        assert!(cfg!(miri) || !made_or_refused(some().stack_size(usize::MAX)));
        for nesting in [0, usize::MAX] {
            for waiting in [
                Waiting::Sleep,
                Waiting::Leapfrog,
                Waiting::Transitive,
                Waiting::Random,
                Waiting::Patient,
            ] {
                for order in [SpawnOrder::Lifo, SpawnOrder::Fifo] {
                    let builder = some().nesting(nesting).waiting(waiting).spawn_order(order);
                    assert!(made_or_refused(builder.callers_work(true).spares(1)));
                }
            }
        }
        assert!(!made_or_refused(some().victims(Victims::Nearest)));
        assert!(!made_or_refused(some().name(|_| "\0".to_owned())));
        assert!(made_or_refused(some().unnamed().join_on_drop(true).wait_for_start(false)));
        if cfg!(miri) {
            return;
        }
        for ids in [vec![], vec![usize::MAX], vec![0; 3]] {
            made_or_refused(some().pin(Placement::On(ids)));
        }
        made_or_refused(some().pin(Placement::Compact).victims(Victims::Nearest));
        // Processors that are not there: to be pinned to them is refused, and to know of them does
        // no harm.
        let elsewhere = Topology::flat(&[4_000, 100_000]).unwrap();
        assert!(!made_or_refused(some().topology(elsewhere.clone()).pin(Placement::Scatter)));
        assert!(made_or_refused(some().topology(elsewhere)));
        let loud = some().on_start(|_| panic!("start")).on_exit(|_| panic!("exit"));
        assert!(!made_or_refused(loud.on_panic(|_| panic!("handler"))));
    });
}

#[test]
fn a_topology_of_numbers() {
    assert!(Topology::flat(&[]).is_err());
    let topology = Topology::flat(&[7, usize::MAX, 7]).unwrap();
    let all: Vec<Processor> = topology.processors().to_vec();
    assert_eq!(all.len(), 2);
    assert_eq!(topology.distance(&all[0], &all[0]), Distance::Core);
    assert_eq!(topology.processor(usize::MAX).unwrap(), &all[1]);
    assert!(topology.processor(8).is_err() && topology.restrict(&[8]).is_err());
    let one = topology.restrict(&[7, 8]).unwrap();
    assert_eq!(one.processors().len(), 1);
    // Of processors of another topology a distance is a distance.
    assert!(one.distance(&all[1], &all[0]) < Distance::Remote(u32::MAX));
    assert!(one.place(&Placement::Compact, 1000).unwrap().unwrap().iter().all(|id| *id == 7));
    #[cfg(not(miri))] // it reads files
    assert!(Topology::read_from(std::path::Path::new("/dev/null/nothing")).is_err());
}

#[test]
fn counts_and_recordings_of_other_pools() {
    let pool = |threads| ThreadPool::builder().num_threads(threads).build().unwrap();
    let (one, two) = (pool(1), pool(2));
    let stats = one.stats();
    works(&one);
    let done: WorkerStats = one.stats().since(&stats).total();
    assert!(done.fields().any(|(name, tasks)| name == "tasks" && tasks == done.tasks));
    // Another pool's counts, and later ones, give numbers or a panic.
    _ = stats.since(&one.stats()).total();
    assert!(catch_unwind(AssertUnwindSafe(|| two.stats().since(&stats))).is_err());

    let recording = one.record(usize::MAX);
    assert!(matches!(recording, Err(RecordError::OutOfMemory { .. })));
    let recording = one.record(0).unwrap();
    assert_eq!(one.record(1).unwrap_err(), RecordError::AlreadyRecording);
    works(&one);
    works(&two);
    let trace = recording.stop();
    assert!(trace.workers()[0].spans().is_empty() && !trace.duration().is_zero());
}

#[test]
fn a_pool_for_those_outside_is_asked_for_outside_alone() {
    let (here, there) = (
        ThreadPool::builder().num_threads(1).build().unwrap(),
        ThreadPool::builder().num_threads(1).build().unwrap(),
    );
    let never = || panic!("a worker has a pool");
    let asked = here.install(|| poach_runtime::join_or(never, || 1, || 2));
    assert_eq!(asked, (1, 2));
    // The function may use the pool, and other pools.
    let uses = || {
        here.install(|| there.install(|| ()));
        &here
    };
    assert_eq!(poach_runtime::join_or(uses, || 1, || 2), (1, 2));
    let migrated = |context: poach_runtime::FnContext| context.migrated();
    _ = poach_runtime::join_context_or(uses, migrated, migrated);
    assert!(catch_unwind(AssertUnwindSafe(|| poach_runtime::join_or(never, || 1, || 2))).is_err());
    assert!(
        catch_unwind(AssertUnwindSafe(|| poach_runtime::join_context_or(
            || panic!("no pool"),
            |_| 1,
            |_| 2
        )))
        .is_err()
    );
    works(&here);
}

#[test]
fn detached_tasks_in_the_order_of_their_spawns() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let pool = Arc::new(ThreadPool::builder().num_threads(1).build().unwrap());
    let (push, own) = (Arc::clone(&seen), Arc::clone(&pool));
    pool.install(move || {
        for n in 0..10 {
            let push = Arc::clone(&push);
            let task = move || push.lock().unwrap().push(n);
            if n % 2 == 0 {
                own.task().in_order().spawn(task);
            } else {
                poach_runtime::task().in_order().spawn(task);
            }
        }
    });
    drop(pool);
    assert!(seen.lock().unwrap().iter().copied().eq(0..10));
}

#[test]
fn how_a_task_may_have_ended() {
    let pool = ThreadPool::builder().num_threads(1).build().unwrap();
    let error: JoinError = pool.spawn_handle(|| -> u8 { panic!("loud") }).join().unwrap_err();
    assert!(error.is_panic() && !error.is_cancelled());
    let payload = error.into_panic();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"loud"));
}
