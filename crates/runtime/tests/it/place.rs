//! Where workers run, and whom they rob first.

#![forbid(unsafe_code)]
// Miri's threads run on no processor.
#![cfg(all(target_os = "linux", not(miri)))]

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use poach_runtime::config::Victims;
use poach_runtime::topology::{Placement, Topology, TopologyError};
use poach_runtime::{BuildError, Priority, ThreadPool, blocking, join, spawn};

/// Where each worker of the pool finds itself.
fn processors(threads: usize, placement: impl Into<Placement>) -> Vec<Vec<usize>> {
    let seen = Arc::new(Mutex::new(vec![Vec::new(); threads]));
    let places = Arc::clone(&seen);
    let pool = ThreadPool::builder()
        .num_threads(threads)
        .pin(placement)
        .on_start(move |index| {
            let set = rustix::thread::sched_getaffinity(None).unwrap();
            let mine = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&id| set.is_set(id));
            places.lock().unwrap()[index] = mine.collect();
        })
        .build()
        .unwrap();
    drop(pool);
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[test]
fn workers_run_where_the_topology_places_them() {
    let topology = Topology::read().unwrap();
    for placement in [Placement::Compact, Placement::Scatter] {
        let planned = topology.place(&placement, 5).unwrap().unwrap();
        let planned: Vec<_> = planned.into_iter().map(|id| vec![id]).collect();
        assert_eq!(processors(5, placement), planned);
    }
    let last = topology.processors().last().unwrap().id;
    assert_eq!(processors(2, Placement::On(vec![last])), [[last], [last]]);
    assert_eq!(processors(3, true), processors(3, Placement::Compact));
    let anywhere = processors(1, false);
    assert_eq!(anywhere[0].len(), topology.processors().len());
}

#[test]
fn what_cannot_be_is_refused_and_says_why() {
    let build = |placement: Placement| ThreadPool::builder().num_threads(2).pin(placement).build();
    let error = build(Placement::On(vec![1_000_000])).unwrap_err();
    assert!(matches!(error, BuildError::Topology(TopologyError::Unknown { id: 1_000_000, .. })));
    assert!(error.to_string().contains("processor 1000000"), "{error}");
    let error = build(Placement::On(Vec::new())).unwrap_err();
    assert!(matches!(error, BuildError::Topology(TopologyError::NoProcessor)), "{error}");
    let error = ThreadPool::builder().num_threads(2).victims(Victims::Nearest).build().unwrap_err();
    assert!(matches!(error, BuildError::NearestUnpinned), "{error}");
    assert!(error.to_string().contains("pin them"), "{error}");
    // A topology of another machine: the system knows no such processor.
    let elsewhere = Topology::flat(&[1020]).unwrap();
    let error =
        ThreadPool::builder().num_threads(1).pin(true).topology(elsewhere).build().unwrap_err();
    assert!(matches!(error, BuildError::Pin(_)), "{error}");
}

#[test]
fn pools_work_in_every_placement_and_order() {
    fn sum(from: u64, to: u64) -> u64 {
        if to - from < 10 {
            return (from..to).sum();
        }
        let middle = from.midpoint(to);
        let (a, b) = join(|| sum(from, middle), || sum(middle, to));
        a + b
    }
    for placement in [Placement::Anywhere, Placement::Compact, Placement::Scatter] {
        for victims in [Victims::Random, Victims::Nearest] {
            let builder =
                ThreadPool::builder().num_threads(4).pin(placement.clone()).victims(victims);
            match builder.build() {
                Ok(pool) => assert_eq!(pool.install(|| sum(0, 20_000)), 199_990_000),
                Err(error) => assert!(
                    placement == Placement::Anywhere && victims == Victims::Nearest,
                    "{placement:?} {victims:?}: {error}"
                ),
            }
        }
    }
}

#[test]
fn a_spare_is_not_bound() {
    let pool = ThreadPool::builder().num_threads(1).spares(1).pin(true).build().unwrap();
    let bound = || rustix::thread::sched_getaffinity(None).unwrap().count() as usize;
    let (mine, spares) = pool.install(|| {
        let (send, receive) = mpsc::channel();
        spawn(move || send.send(bound()).unwrap());
        // The one worker waits for what a spare must send.
        (bound(), blocking(|| receive.recv().unwrap()))
    });
    assert_eq!((mine, spares), (1, Topology::read().unwrap().processors().len()));
}

#[test]
fn a_pinned_pool_has_no_places_for_callers() {
    let pinned = || ThreadPool::builder().num_threads(2).pin(true);
    assert_eq!(pinned().build().unwrap().index_limit(), 2);
    assert_eq!(pinned().callers(3).build().unwrap().index_limit(), 5);
    assert_eq!(ThreadPool::builder().num_threads(2).build().unwrap().index_limit(), 6);
}

#[test]
fn a_pinned_pool_waits_until_its_handlers_threads_run() {
    let running = Arc::new(Mutex::new(Vec::new()));
    let pool = ThreadPool::builder()
        .num_threads(3)
        .pin(true)
        .spawn_handler(|worker| {
            let running = Arc::clone(&running);
            thread::spawn(move || {
                // The thread that builds would be done by now.
                thread::sleep(Duration::from_millis(20));
                running.lock().unwrap().push(worker.index());
                worker.run();
            });
            Ok(())
        })
        .build()
        .unwrap();
    assert_eq!(running.lock().unwrap().len(), 3);
    drop(pool);
}

/// If the calling thread goes on, the called worker is kept off its processor, at its next sleep as
/// well. A calling thread that blocks leaves the worker its processor.
#[test]
fn a_sleeper_makes_way_for_a_caller_that_goes_on() {
    const LIMIT: Duration = Duration::from_secs(60);
    let all = rustix::thread::sched_getaffinity(None).unwrap().count();
    if all < 2 {
        return;
    }
    let make = || ThreadPool::builder().num_threads(1).build().unwrap();
    let (pool, other) = (make(), make());
    let worker = pool.install(rustix::thread::gettid);
    let file = format!("/proc/self/task/{worker}/stat");
    let is_asleep = || std::fs::read_to_string(&file).unwrap().contains(") S ");
    let wait = || {
        let started = Instant::now();
        while !is_asleep() && started.elapsed() < LIMIT {
            thread::yield_now();
        }
    };
    // A call that comes before the worker sleeps calls nobody. So each comes more than once.
    let becomes = |call: &dyn Fn(), processors: u32| {
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            wait();
            call();
            wait();
            if rustix::thread::sched_getaffinity(Some(worker)).unwrap().count() == processors {
                return true;
            }
        }
        false
    };
    let goes_on: [(&str, &(dyn Fn() + Sync)); 5] = [
        ("spawn", &|| pool.spawn(|| ())),
        ("in order", &|| pool.task().in_order().spawn(|| ())),
        ("high", &|| pool.task().priority(Priority::High).spawn(|| ())),
        ("normal", &|| pool.task().priority(Priority::Normal).spawn(|| ())),
        ("a worker's call", &|| other.install(|| pool.install(|| ()))),
    ];
    for (what, call) in goes_on {
        assert!(becomes(&|| call(), all - 1), "{what}: the worker may stay on its processor");
        assert!(becomes(&|| pool.install(|| ()), all), "{what}: the worker is kept off");
    }
}
