//! Divide and conquer over ranks: a value is divided into halves, which may go to other ranks, and
//! their results are joined.
//!
//! A task is a value and its place: the sequence of left and right turns that leads to it. The
//! worker that finds a value's result keeps it with its place. The results of both halves of a
//! value meet in a worker, in a rank or on the way to rank 0. There they are joined, and the joined
//! result takes the value's place. So no call waits. Each join takes exactly the two halves of one
//! value, the left half first, and need be neither commutative nor associative. As many results are
//! kept as have not met their other half: few, since a worker goes deep first, and those of whole
//! subtrees that were stolen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::{Value, reduction};
use crate::world::{Error, Outcome, World};

/// The halves that a value is divided into, or its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Divided<T, R> {
    /// Two halves, each of which may run on another rank.
    Halves(T, T),
    /// The result: it is not divided any further.
    Whole(R),
}

/// The turns that lead to a value: 0 is left, 1 is right.
type Place = Vec<u8>;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Placed<T> {
    place: Place,
    value: T,
}

/// Adds a result, and joins it with the other half's for as long as that is there.
fn insert<R>(
    found: &mut BTreeMap<Place, R>,
    mut place: Place,
    mut result: R,
    join: &impl Fn(R, R) -> R,
) {
    while let Some(turn) = place.pop() {
        place.push(1 - turn);
        let Some(other) = found.remove(&place) else {
            place.pop();
            place.push(turn);
            break;
        };
        place.pop();
        result = if turn == 0 { join(result, other) } else { join(other, result) };
    }
    found.insert(place, result);
}

impl World {
    /// Divides a value until nothing is left to divide, and joins the results: the join of two
    /// halves that are given as values, and may run on other ranks. Collective; rank 0's
    /// `value` counts, and the outcome is there.
    ///
    /// A half costs a task and its place: some hundred nanoseconds, and more if it is stolen. So a
    /// value of less than some microseconds of work is better done whole, with
    /// [`poach_runtime::join`] in it.
    ///
    /// # Errors
    ///
    /// As [`World::run`].
    ///
    /// # Panics
    ///
    /// Never: each value has one result.
    pub fn divide<T, R, D, J>(
        &mut self,
        value: T,
        divide: D,
        join: J,
    ) -> Result<Option<Outcome<R>>, Error>
    where
        T: Value,
        R: Value + Clone + Sync,
        D: Fn(T) -> Divided<T, R> + Sync,
        J: Fn(R, R) -> R + Sync,
    {
        let seed = (self.rank() == 0).then(|| Placed { place: Place::new(), value });
        let merge = |all: &mut BTreeMap<Place, R>, more: BTreeMap<Place, R>| {
            for (place, result) in more {
                insert(all, place, result, &join);
            }
        };
        let outcome =
            self.run(seed, reduction(BTreeMap::new(), merge), |task: Placed<T>, context| {
                let Placed { mut place, value } = task;
                match divide(value) {
                    Divided::Whole(result) => insert(context.result(), place, result, &join),
                    Divided::Halves(left, right) => {
                        let mut first = place.clone();
                        first.push(0);
                        place.push(1);
                        // The youngest is run first, so the left half is.
                        context.push(Placed { place, value: right });
                        context.push(Placed { place: first, value: left });
                    }
                }
            })?;
        Ok(outcome.map(|Outcome { mut result, elapsed, ranks }| {
            let (place, result) = result.pop_first().expect("the value has a result");
            debug_assert!(place.is_empty(), "all halves have met");
            Outcome { result, elapsed, ranks }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_meet_in_any_order_and_are_joined_in_their_own() {
        let leaves = [
            (vec![0, 0], "a"),
            (vec![0, 1], "b"),
            (vec![1, 0, 0], "c"),
            (vec![1, 0, 1], "d"),
            (vec![1, 1], "e"),
        ];
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..100 {
            let mut order = leaves.to_vec();
            random.shuffle(&mut order);
            let mut found = BTreeMap::new();
            for (place, leaf) in order {
                insert(&mut found, place, leaf.to_owned(), &|a: String, b: String| {
                    format!("({a}{b})")
                });
            }
            assert_eq!(
                found.into_iter().collect::<Vec<_>>(),
                [(vec![], "((ab)((cd)e))".to_owned())]
            );
        }
    }
}
