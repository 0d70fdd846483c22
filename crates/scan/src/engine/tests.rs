//! Every engine over a job that is all tasks and no work.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// A complete tree of some depth and width, visited once each; may panic at a task.
struct Counting {
    width: u32,
    visited: AtomicU64,
    panic_at: Option<u64>,
}

impl Job for Counting {
    type Task = u32;
    type Worker = u64;

    fn visit(&self, worker: &mut u64, depth: u32, sink: &mut dyn FnMut(u32)) {
        *worker += 1;
        let before = self.visited.fetch_add(1, Ordering::Relaxed);
        assert!(self.panic_at != Some(before), "as told");
        if depth > 0 {
            (0..self.width).for_each(|_| sink(depth - 1));
        }
    }
}

fn count(engine: Engine, threads: usize, width: u32, depth: u32) -> (u64, u64) {
    let job = Counting { width, visited: AtomicU64::new(0), panic_at: None };
    let workers = run(engine, &job, vec![0; threads], vec![depth]).expect("threads can be had");
    assert_eq!(workers.len(), threads, "{engine}: a worker is lost");
    (workers.iter().sum(), job.visited.into_inner())
}

#[test]
fn each_visits_every_task_once() {
    for engine in Engine::ALL {
        for threads in [1, 2, 3, 8] {
            // 4^0 + .. + 4^6
            assert_eq!(count(engine, threads, 4, 6), (5461, 5461), "{engine}, {threads} threads");
        }
    }
}

#[test]
fn each_follows_a_chain_as_deep_as_it_likes() {
    for engine in Engine::ALL {
        assert_eq!(count(engine, 2, 1, 30_000), (30_001, 30_001), "{engine}");
    }
}

#[test]
fn each_ends_when_there_is_nothing_to_do() {
    for engine in Engine::ALL {
        let job = Counting { width: 0, visited: AtomicU64::new(0), panic_at: None };
        let workers = run(engine, &job, vec![0; 3], Vec::new()).expect("threads can be had");
        assert_eq!(workers, [0, 0, 0], "{engine}");
    }
}

#[test]
fn each_passes_a_panic_on_and_ends() {
    for engine in Engine::ALL {
        let job = Counting { width: 2, visited: AtomicU64::new(0), panic_at: Some(100) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(engine, &job, vec![0; 3], vec![12]).map(drop)
        }));
        assert!(outcome.is_err(), "{engine} swallowed a panic");
    }
}

#[test]
fn names_are_read_back() {
    for engine in Engine::ALL {
        assert_eq!(engine.name().parse(), Ok(engine));
        assert_eq!(engine.to_string(), engine.name());
        assert!(UnknownEngine(String::new()).to_string().contains(engine.name()));
    }
    assert_eq!("dfs".parse::<Engine>(), Err(UnknownEngine("dfs".to_owned())));
}
