//! A walk from its roots to its end: which workers visit, in which order of phases.
//!
//! 1. The engine visits the roots and all below, with one worker for each processor.
//! 2. If another [number of workers](super::WorkerCount) is wanted, that number goes on with the
//!    directories that were put back.
//! 3. Directories that could not be opened for want of descriptors are visited by one worker, when
//!    nothing else is open.

use std::sync::{Mutex, PoisonError};

use poach_runtime::ThreadPool;
use poach_runtime::stats::Stats;

use super::family::Task;
use super::{Findings, RootDirectory, Walk, Worker};
use crate::Error;
use crate::engine::{self, Engine};
use crate::sys::Sys;
use crate::visit::Visitor;

/// The result of a walk.
pub(crate) struct Outcome<P> {
    /// What each worker found and collected.
    pub(crate) workers: Vec<(Findings, P)>,
    /// The most workers there were at a time.
    pub(crate) most: usize,
    /// The workers' counts, if the engine counts.
    pub(crate) stats: Option<Stats>,
}

/// Walks all roots. `worker` makes the worker of a number.
pub(crate) fn run<S: Sys, V: Visitor>(
    walk: &Walk<'_, S, V>,
    engine: Engine,
    worker: impl Fn(usize) -> Worker<S, V>,
) -> Result<Outcome<V::Part>, Error> {
    let root = |(number, root): (usize, &RootDirectory)| Task::of_root(number, root.entry);
    let mut tasks: Vec<_> = walk.roots.iter().enumerate().map(root).collect();
    let mut workers: Vec<_> = (0..walk.worker_count.first()).map(&worker).collect();
    let mut outcome = Outcome { workers: Vec::new(), most: workers.len(), stats: None };
    if engine == Engine::Split {
        workers = in_pools(walk, worker, workers, tasks, &mut outcome)?;
    } else if !tasks.is_empty() {
        workers = engine::run(engine, walk, workers, tasks)?;
    }
    loop {
        tasks = taken(&walk.deferred);
        if tasks.is_empty() {
            break;
        }
        walk.handles.go_alone();
        workers = engine::run(Engine::Sequential, walk, workers, tasks)?;
    }
    outcome.workers = workers.into_iter().map(|worker| (worker.found, worker.part)).collect();
    Ok(outcome)
}

/// Walks with the split engine, in as many pools one after another as are wanted.
fn in_pools<'a, S: Sys, V: Visitor>(
    walk: &Walk<'a, S, V>,
    worker: impl Fn(usize) -> Worker<S, V>,
    mut workers: Vec<Worker<S, V>>,
    mut tasks: Vec<Task<'a, S>>,
    outcome: &mut Outcome<V::Part>,
) -> Result<Vec<Worker<S, V>>, Error> {
    // The first pool sleeps while there is a larger one.
    let mut first: Option<ThreadPool> = None;
    while !tasks.is_empty() {
        let mut number = walk.worker_count.begin();
        let mut larger = None;
        if first.is_some() && number > walk.worker_count.first() {
            larger = engine::pool(number).ok();
            if larger.is_none() {
                number = walk.worker_count.first();
                walk.worker_count.give_up();
            }
        }
        if first.is_none() {
            first = Some(engine::pool(number)?);
        }
        let Some(pool) = larger.as_ref().or(first.as_ref()) else { break };
        walk.handles.share_among(number);
        workers.extend((workers.len()..number).map(&worker));
        let resting = workers.split_off(number);
        workers = engine::run_in(pool, walk, workers, tasks);
        workers.extend(resting);
        if number > outcome.most || outcome.stats.is_none() {
            outcome.most = number;
            outcome.stats = Some(pool.stats());
        }
        tasks = taken(&walk.put_back);
    }
    walk.worker_count.give_up();
    Ok(workers)
}

fn taken<T>(tasks: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut *tasks.lock().unwrap_or_else(PoisonError::into_inner))
}
