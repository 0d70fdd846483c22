//! Whom a worker has asked for forks, and where the victim's split stood then.
//!
//! A thief that finds nothing shared reads the victim's request, and raises it if it is down. Each answer of the victim writes that word.
//! So if every idle worker reads it in every look, each answer makes all of them fetch its line anew: on a simulated machine of 48
//! processors they spent a fifth of their time in the queue for it (`poach bench simulate --memory lace --why`, UTS). The
//! split stands in another line, which thieves read anyhow, and an answer moves it. While it stands where it
//! stood, the request is up, or the owner has taken back all that it shared; so a worker asks again after [`LOOKS`] looks in any case.
//!
//! Nothing but the cost of looks rests on it. Before a worker sleeps it asks every owner without a look here (`sleep/README.md`, T1).

use std::cell::{Cell, OnceCell};

/// After so many looks at a victim whose split has not moved a worker asks again.
const LOOKS: u32 = 4;

/// One worker's requests, by victim: 16 bytes for each worker of the pool, from its first look on.
pub struct Asked {
    workers: usize,
    requests: OnceCell<Box<[Cell<Request>]>>,
}

#[derive(Clone, Copy)]
struct Request {
    /// Where the split stood before the victim was asked.
    split: u64,
    /// How often it was seen there since; [`LOOKS`] if the victim was not asked.
    looks: u32,
}

impl Request {
    const NONE: Request = Request { split: 0, looks: LOOKS };
}

impl Asked {
    /// Nobody of so many workers was asked.
    pub fn nobody(workers: usize) -> Asked {
        Asked { workers, requests: OnceCell::new() }
    }

    #[inline]
    fn request(&self, victim: usize) -> &Cell<Request> {
        let all = || (0..self.workers).map(|_| Cell::new(Request::NONE)).collect();
        &self.requests.get_or_init(all)[victim]
    }

    /// Whether this worker's request to `victim`, whose split stands at `split` with nothing shared, is taken to be up.
    #[inline]
    pub(crate) fn is_up(&self, victim: usize, split: Option<u64>) -> bool {
        let request = self.request(victim);
        let Request { split: asked, looks } = request.get();
        let up = looks < LOOKS && split == Some(asked);
        if up {
            request.set(Request { split: asked, looks: looks + 1 });
        }
        up
    }

    /// `victim` was asked, after its split was seen at `split`.
    #[inline]
    pub(crate) fn asked(&self, victim: usize, split: Option<u64>) {
        self.request(victim).set(split.map_or(Request::NONE, |split| Request { split, looks: 0 }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_up_until_the_split_moves_or_for_some_looks() {
        let asked = Asked::nobody(2);
        assert!(!asked.is_up(0, Some(7)), "nobody was asked");
        asked.asked(0, Some(7));
        assert!(asked.is_up(0, Some(7)));
        assert!(!asked.is_up(0, Some(8)), "the split has moved");
        assert!(!asked.is_up(0, None), "something is shared");
        assert!(!asked.is_up(1, Some(7)), "another victim");
        assert!((1..LOOKS).all(|_| asked.is_up(0, Some(7))));
        assert!(!asked.is_up(0, Some(7)), "it asks again");
        asked.asked(0, None);
        assert!(!asked.is_up(0, None), "something was shared when it looked");
    }
}
