//! A worker's tasks: the youngest are run first, the oldest are given away.

use std::collections::VecDeque;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::message::{Failure, Parcel};

/// A worker's tasks.
#[derive(Clone, Debug)]
pub struct Bag<T>(VecDeque<T>);

impl<T> Default for Bag<T> {
    fn default() -> Self {
        Bag(VecDeque::new())
    }
}

impl<T> FromIterator<T> for Bag<T> {
    fn from_iter<I: IntoIterator<Item = T>>(tasks: I) -> Self {
        Bag(tasks.into_iter().collect())
    }
}

impl<T> IntoIterator for Bag<T> {
    type Item = T;
    type IntoIter = std::collections::vec_deque::IntoIter<T>;

    /// The tasks, the oldest first.
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> Bag<T> {
    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a task. Amortised constant time.
    #[inline]
    pub fn push(&mut self, task: T) {
        self.0.push_back(task);
    }

    /// The youngest task.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop_back()
    }

    /// The oldest task.
    pub fn pop_oldest(&mut self) -> Option<T> {
        self.0.pop_front()
    }

    /// The older half, rounded down.
    #[must_use = "the tasks are no longer in this bag"]
    pub fn split(&mut self) -> Bag<T> {
        let half = self.0.len() / 2;
        Bag(self.0.drain(..half).collect())
    }

    /// Appends another bag's tasks, as the youngest.
    pub fn append(&mut self, mut other: Bag<T>) {
        self.0.append(&mut other.0);
    }

    /// The tasks, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

impl<T: Serialize + DeserializeOwned> Bag<T> {
    /// Takes the older half, rounded down, or the part of it that fits into the given number of
    /// parcels of the given size in bytes. `rank` is this rank. Linear in the number of taken
    /// tasks.
    ///
    /// # Errors
    ///
    /// If a task alone is larger than a parcel, or cannot be encoded.
    pub fn give(
        &mut self,
        rank: usize,
        parcels: usize,
        bytes: usize,
    ) -> Result<Vec<Parcel>, Failure> {
        self.give_first(rank, self.len() / 2, parcels, bytes)
    }

    /// As [`give`](Bag::give), of the oldest `most`.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn give_first(
        &mut self,
        rank: usize,
        most: usize,
        parcels: usize,
        bytes: usize,
    ) -> Result<Vec<Parcel>, Failure> {
        if parcels == 0 {
            return Ok(Vec::new());
        }
        let each = most.div_ceil(parcels);
        let mut given: Vec<Parcel> = Vec::new();
        let mut count = 0;
        for task in self.0.iter().take(most) {
            let encoded = postcard::to_allocvec(task).map_err(|error| Failure::Other {
                rank,
                message: format!("cannot encode a task: {error}"),
            })?;
            if encoded.len() > bytes {
                return Err(Failure::TooLarge { rank, bytes: encoded.len(), limit: bytes });
            }
            let fits = |parcel: &&mut Parcel| {
                (parcel.tasks as usize) < each && parcel.bytes.len() + encoded.len() <= bytes
            };
            if let Some(parcel) = given.last_mut().filter(fits) {
                parcel.tasks += 1;
                parcel.bytes.extend_from_slice(&encoded);
            } else if given.len() < parcels {
                given.push(Parcel { tasks: 1, bytes: encoded });
            } else {
                break;
            }
            count += 1;
        }
        self.0.drain(..count);
        Ok(given)
    }

    /// What a parcel holds; `rank` is this rank, and `from` the one that sent it.
    ///
    /// # Errors
    ///
    /// If it does not hold as many tasks as it says, or more than these.
    pub fn open(rank: usize, from: usize, parcel: &Parcel) -> Result<Bag<T>, Failure> {
        let unreadable = |message: String| Failure::Unreadable { rank, from, message };
        let mut rest = &parcel.bytes[..];
        let mut tasks = VecDeque::new();
        for _ in 0..parcel.tasks {
            let (task, behind) =
                postcard::take_from_bytes(rest).map_err(|error| unreadable(error.to_string()))?;
            tasks.push_back(task);
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(unreadable(format!("{} bytes are left over", rest.len())));
        }
        Ok(Bag(tasks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bag(n: u32) -> Bag<u32> {
        (0..n).collect()
    }

    #[test]
    fn the_older_half_is_given_and_arrives() {
        for n in 0..40 {
            for parcels in 1..5 {
                let mut bag = bag(n);
                let given = bag.give(0, parcels, 1000).unwrap();
                assert!(given.len() <= parcels);
                let mut arrived = Vec::new();
                for parcel in &given {
                    arrived.extend(Bag::<u32>::open(1, 0, parcel).unwrap().0);
                }
                assert_eq!(arrived, (0..n / 2).collect::<Vec<_>>());
                assert_eq!(bag.0, (n / 2..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_parcel_is_no_larger_than_allowed_and_what_does_not_fit_stays() {
        let mut bag = bag(100);
        let given = bag.give(0, 2, 10).unwrap();
        assert_eq!(given.iter().map(|parcel| parcel.tasks).collect::<Vec<_>>(), [10, 10]);
        assert_eq!(bag.len(), 80);
    }

    #[test]
    fn a_task_that_is_too_large_is_said() {
        let mut bag: Bag<Vec<u8>> = [vec![0; 50], vec![]].into_iter().collect();
        let failure = bag.give(3, 1, 20).unwrap_err();
        assert_eq!(failure, Failure::TooLarge { rank: 3, bytes: 51, limit: 20 });
        assert!(failure.to_string().contains("rank 3: a task of 51 bytes"), "{failure}");
        assert_eq!(bag.len(), 2);
    }

    #[test]
    fn a_damaged_parcel_is_said() {
        let mut parcel = bag(8).give(0, 1, 100).unwrap().remove(0);
        parcel.bytes.push(1);
        assert!(matches!(
            Bag::<u32>::open(1, 0, &parcel),
            Err(Failure::Unreadable { from: 0, .. })
        ));
        parcel.bytes.truncate(2);
        assert!(Bag::<u32>::open(1, 0, &parcel).is_err());
    }
}
