//! The list of a gate's sleepers, in the order in which they came.
//!
//! A ring of places in one vector, doubly linked. Places are reused; an entry's number is unique.

use std::task::Waker;

/// The place between the last entry and the first. It holds no entry.
const ENDS: usize = 0;
/// An empty list with more places than this frees them.
const KEPT: usize = 1024;

#[derive(Default)]
pub(crate) struct Sleepers {
    places: Vec<Place>,
    /// The first free place, linked by `after`; [`ENDS`] if there is none.
    free: usize,
    next: u64,
}

struct Place {
    number: u64,
    waker: Option<Waker>,
    before: usize,
    after: usize,
}

#[derive(Debug)]
pub(crate) struct Entry {
    place: usize,
    number: u64,
}

impl Sleepers {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.get(ENDS).is_none_or(|ends| ends.after == ENDS)
    }

    pub(crate) fn push(&mut self, waker: Waker) -> Entry {
        if self.places.is_empty() {
            self.places.push(Place { number: 0, waker: None, before: ENDS, after: ENDS });
        }
        self.next += 1;
        let (number, before) = (self.next, self.places[ENDS].before);
        let new = Place { number, waker: Some(waker), before, after: ENDS };
        let place = if self.free == ENDS {
            self.places.push(new);
            self.places.len() - 1
        } else {
            let place = self.free;
            self.free = self.places[place].after;
            self.places[place] = new;
            place
        };
        self.places[before].after = place;
        self.places[ENDS].before = place;
        Entry { place, number }
    }

    pub(crate) fn get_mut(&mut self, entry: &Entry) -> Option<&mut Waker> {
        let place = self.places.get_mut(entry.place)?;
        if place.number == entry.number { place.waker.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, entry: &Entry) -> Option<Waker> {
        self.get_mut(entry)?;
        Some(self.unlink(entry.place))
    }

    pub(crate) fn pop_front(&mut self) -> Option<Waker> {
        let first = self.places.get(ENDS)?.after;
        (first != ENDS).then(|| self.unlink(first))
    }

    fn unlink(&mut self, place: usize) -> Waker {
        let Place { before, after, .. } = self.places[place];
        self.places[before].after = after;
        self.places[after].before = before;
        self.places[place].after = self.free;
        self.free = place;
        let waker = self.places[place].waker.take().expect("an entry in the ring has a waker");
        if self.places.len() > KEPT && self.is_empty() {
            (self.places, self.free) = (Vec::new(), ENDS);
        }
        waker
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn entries_come_and_go_in_order() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut list, mut expected) = (Sleepers::default(), VecDeque::new());
        let mut gone = Vec::new();
        let most = if cfg!(miri) { 20 } else { 2 * KEPT };
        for step in 0..8 * most {
            let grows = (step / (2 * most)) % 2 == 0;
            match random.u8(..4) {
                0 if !expected.is_empty() => {
                    let entry: Entry = expected.remove(random.usize(..expected.len())).unwrap();
                    assert!(list.remove(&entry).is_some());
                    gone.push(entry);
                }
                1 => {
                    assert_eq!(list.pop_front().is_some(), !expected.is_empty());
                    gone.extend(expected.pop_front());
                }
                _ if grows => expected.push_back(list.push(Waker::noop().clone())),
                _ => gone.extend(list.pop_front().and_then(|_| expected.pop_front())),
            }
            assert_eq!(list.is_empty(), expected.is_empty());
            assert!(list.places.len() <= KEPT || !list.is_empty());
        }
        assert!(expected.iter().all(|entry| list.get_mut(entry).is_some()));
        assert!(gone.iter().all(|entry| list.remove(entry).is_none()));
    }
}
