//! Results in the order of a sequential program, over the reduction that knows no order.
//!
//! A task's path is its index among the tasks that its parent pushed, behind the path of its
//! parent; what it emits is numbered. Paths in lexical order are the order in which a depth-first
//! program would have run the tasks, a parent before what it pushes. So each value is kept with its
//! path, and all are sorted in the end.

use serde::{Deserialize, Serialize};

use crate::job::{Context, Value, reduction};
use crate::world::{Error, JobBuilder, Outcome};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Placed<T> {
    path: Vec<u32>,
    value: T,
}

/// What a running task of an ordered job may do.
#[derive(Debug)]
pub struct Ordered<'o, 'c, T, V> {
    context: &'o mut Context<'c, Placed<T>, Vec<Placed<V>>>,
    path: &'o [u32],
    pushed: u32,
    emitted: u32,
}

impl<T, V> Ordered<'_, '_, T, V> {
    fn below(&self, index: u32) -> Vec<u32> {
        let mut path = Vec::with_capacity(self.path.len() + 1);
        path.extend_from_slice(self.path);
        path.push(index);
        path
    }

    /// Makes another task, whose values come after those of the tasks pushed before. As
    /// [`Context::push`].
    pub fn push(&mut self, task: T) {
        self.pushed += 1;
        // From 1 on: behind all that this task emits, which stands at 0.
        let path = self.below(self.pushed);
        self.context.push(Placed { path, value: task });
    }

    /// Adds a value, after the values that this task has added before.
    pub fn emit(&mut self, value: V) {
        let mut path = self.below(0);
        path.push(self.emitted);
        self.emitted += 1;
        self.context.result().push(Placed { path, value });
    }
}

impl<T: Value> JobBuilder<'_, T> {
    /// Runs the job, and returns what its tasks have emitted in the order of a sequential program.
    /// First comes what a task [emits](Ordered::emit), and then what the tasks that it
    /// [pushed](Ordered::push) emit, the first of them first. So a reduction of it need not be
    /// commutative.
    ///
    /// A value takes the path of its task beside it, four bytes a level, until the end.
    ///
    /// # Errors
    ///
    /// As [`run`](JobBuilder::run).
    pub fn run_ordered<V, F>(self, task: F) -> Result<Option<Outcome<Vec<V>>>, Error>
    where
        V: Value + Clone + Sync,
        F: Fn(T, &mut Ordered<'_, '_, T, V>) + Sync,
    {
        let JobBuilder { world, seeds, asked } = self;
        let rank = world.rank() as u32;
        let placed = seeds.into_iter().enumerate();
        let seeds =
            placed.map(|(at, value)| Placed { path: vec![rank, at as u32], value }).collect();
        let append =
            reduction(Vec::new(), |all: &mut Vec<Placed<V>>, mut more| all.append(&mut more));
        let outcome = world.run_closures(seeds, &asked, append, |placed: Placed<T>, context| {
            let Placed { path, value } = placed;
            task(value, &mut Ordered { context, path: &path, pushed: 0, emitted: 0 });
        })?;
        Ok(outcome.map(|Outcome { mut result, elapsed, ranks }| {
            result.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            let result = result.into_iter().map(|placed| placed.value).collect();
            Outcome { result, elapsed, ranks }
        }))
    }
}
