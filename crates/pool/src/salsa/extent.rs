//! The extent: how many pools, counted from 0, a search must look at.
//!
//! A new consumer takes the free pool with the lowest number. Pools with the greatest numbers are
//! *closed* once they have no consumer and no task, so that an empty `get` does not look at every
//! pool that was ever used. An unused pool before one in use stays open. The consumer that closes
//! them leaves, or has found the last pool empty and without a holder. A pool is in use while a
//! consumer holds it, or while a chunk in its lists is its own. A consumer opens its pool when it
//! claims it, a producer when it has named a chunk.
//!
//! # Why no task is behind the extent
//!
//! The extent is one word: the number of open pools, whether the last of them is just being closed,
//! and a version that every change increments.
//!
//! | | a user of pool p | | a thread that closes it, the last |
//! |---|---|---|---|
//! | u1 | begins to use it | x1 | marks it as being closed, by compare-and-swap |
//! | u2 | a full fence | x2 | a full fence |
//! | u3 | reads the extent; opens p if it is closed or being closed, by compare-and-swap | x3 | looks whether p is in use |
//! | u4 | goes on | x4 | if not, closes it, by compare-and-swap from what x1 wrote |
//!
//! Suppose that u3 reads what x1 wrote or something later. Then it opens the pool, before x4, which
//! then fails, or after x4. Otherwise x3 sees what u1 did, by the fences, and does not close it. In
//! every case the pool is open at u4, and u4 is before the first task is put.

use core::marker::PhantomData;

use poach_memory::{CachePadded, Memory, Ordering, Word};

/// Bits that hold twice the number of open pools, less one while the last is being closed: pool p
/// is open if they are at least 2 p + 2.
const OPEN: u64 = (1 << 13) - 1;
/// The version stands above them; its 51 bits do not wrap.
const VERSION: u64 = 1 << 13;

fn changed(now: u64, open: u64) -> u64 {
    (now & !OPEN).wrapping_add(VERSION) | open
}

pub(crate) struct Extent<M: Memory> {
    word: CachePadded<M::Word>,
    memory: PhantomData<M>,
}

impl<M: Memory> Extent<M> {
    /// One pool, which is never closed: producers may begin before any consumer comes.
    pub(crate) fn new() -> Self {
        Extent { word: CachePadded::new(M::Word::new(2)), memory: PhantomData }
    }

    /// The number of pools, counted from 0, that may hold tasks.
    pub(crate) fn count(&self) -> usize {
        // Acquire: a thread that sees a pool open, or closed, sees why.
        (self.word.load(Ordering::Acquire) & OPEN).div_ceil(2) as usize
    }

    /// A number that never falls and that every change increments: a part of `Mechanism::changes`.
    pub(crate) fn version(&self) -> u64 {
        // Acquire, as in `count`.
        self.word.load(Ordering::Acquire) / VERSION
    }

    /// u2, u3. The caller has begun to use `pool`. Lock-free; a fence and a load if it is open.
    #[inline(always)]
    pub(crate) fn open(&self, pool: usize) {
        M::full();
        // Acquire, as in `count`.
        let now = self.word.load(Ordering::Acquire);
        let least = 2 * pool as u64 + 2;
        if now & OPEN < least {
            self.open_closed(now, least);
        }
    }

    #[cold]
    #[inline(never)]
    fn open_closed(&self, mut now: u64, least: u64) {
        while now & OPEN < least {
            let new = changed(now, least);
            match self.word.compare_exchange(now, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(later) => now = later,
            }
        }
    }

    /// From the last on, but never the first. Lock-free; gives up if another changes the extent.
    #[cold]
    pub(crate) fn close_unused(&self, is_in_use: impl Fn(usize) -> bool) {
        loop {
            // Acquire, as in `count`.
            let now = self.word.load(Ordering::Acquire);
            let open = (now & OPEN).next_multiple_of(2);
            let last = (open / 2 - 1) as usize;
            if last == 0 || is_in_use(last) {
                return;
            }
            // x1.
            let closing = changed(now, open - 1);
            if self.try_change(now, closing).is_err() {
                return;
            }
            // x2.
            M::full();
            // x3, x4.
            let left = if is_in_use(last) { open } else { open - 2 };
            if self.try_change(closing, changed(closing, left)).is_err() {
                return;
            }
        }
    }

    fn try_change(&self, from: u64, to: u64) -> Result<u64, u64> {
        // AcqRel: releases what was seen of the pool; acquires what its opener did.
        self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poach_memory::Machine;

    #[test]
    fn what_is_used_is_open_and_what_is_not_is_closed_from_the_last_on() {
        let extent = Extent::<Machine>::new();
        extent.open(0);
        assert_eq!((extent.count(), extent.version()), (1, 0));
        extent.open(3);
        extent.open(1);
        assert_eq!((extent.count(), extent.version()), (4, 1));
        extent.close_unused(|place| place == 1);
        assert_eq!(extent.count(), 2);
        extent.close_unused(|_| false);
        assert_eq!(extent.count(), 1);
        let version = extent.version();
        extent.close_unused(|_| false);
        assert_eq!(extent.version(), version);
    }

    #[test]
    fn a_place_that_is_used_while_it_is_closed_stays_open() {
        let extent = Extent::<Machine>::new();
        extent.open(2);
        let looks = core::cell::Cell::new(0);
        extent.close_unused(|place| {
            // The second look comes after the mark, and the pool is used after it.
            looks.set(looks.get() + 1);
            if looks.get() == 2 {
                extent.open(place);
            }
            false
        });
        assert_eq!((extent.count(), looks.get()), (3, 2));
    }

    #[test]
    fn who_closes_looks_again_behind_its_mark() {
        let extent = Extent::<Machine>::new();
        extent.open(2);
        let looks = core::cell::Cell::new(0);
        extent.close_unused(|_| looks.replace(looks.get() + 1) > 0);
        assert_eq!(extent.count(), 3);
        extent.open(2);
        assert_eq!(extent.version(), 3, "it is open, and not being closed");
    }

    #[cfg(not(miri))]
    mod models {
        use std::sync::Arc;

        use crate::models::clean;
        use poach_check::{Kind, Simulated, Threads, fail};

        use super::super::*;
        use crate::registry::Entries;

        type Flag = <Simulated as Memory>::Word;

        fn set(flag: &Flag) -> bool {
            // Relaxed: the flag must be known by other means.
            flag.load(Ordering::Relaxed) != 0
        }

        fn use_against_close(threads: &mut Threads) {
            let extent = Arc::new(Extent::<Simulated>::new());
            let used = Arc::new(Flag::new(0));
            extent.open(1);
            let (opens, uses) = (Arc::clone(&extent), Arc::clone(&used));
            threads.spawn("uses", move || {
                uses.store(1, Ordering::Relaxed);
                opens.open(1);
            });
            let (closes, looks) = (Arc::clone(&extent), Arc::clone(&used));
            threads.spawn("closes", move || closes.close_unused(|_| set(&looks)));
            threads.finally(move || {
                assert_eq!(extent.count(), 2);
                drop(used);
            });
        }

        #[test]
        fn a_place_that_is_used_is_open() {
            clean(use_against_close);
        }

        fn who_sees_it_open(looks: fn(&Extent<Simulated>) -> bool) {
            clean(|threads| {
                let extent = Arc::new(Extent::new());
                let used = Arc::new(Flag::new(0));
                let (opens, uses) = (Arc::clone(&extent), Arc::clone(&used));
                threads.spawn("uses", move || {
                    uses.store(1, Ordering::Relaxed);
                    opens.open(1);
                });
                let (sees, why) = (Arc::clone(&extent), Arc::clone(&used));
                threads.spawn("looks", move || {
                    if looks(&sees) && !set(&why) {
                        fail(Kind::FalseEmpty, "the place is open, and nothing is seen in it");
                    }
                });
                threads.finally(move || drop((extent, used)));
            });
        }

        #[test]
        fn who_sees_a_place_open_sees_why() {
            who_sees_it_open(|extent| extent.count() == 2);
            who_sees_it_open(|extent| extent.version() == 1);
        }

        /// A thread that has heard of a use, and sees the place closed, sees where the user went.
        #[test]
        fn who_sees_a_place_closed_sees_why() {
            clean(|threads| {
                let extent = Arc::new(Extent::<Simulated>::new());
                let [used, told, elsewhere] = [(); 3].map(|()| Arc::new(Flag::new(0)));
                extent.open(1);
                let opens = Arc::clone(&extent);
                let [uses, tells, goes] = [&used, &told, &elsewhere].map(Arc::clone);
                threads.spawn("uses", move || {
                    uses.store(1, Ordering::Relaxed);
                    opens.open(1);
                    tells.store(1, Ordering::Release);
                    goes.store(1, Ordering::Relaxed);
                    uses.store(0, Ordering::Release);
                });
                let (closes, looks) = (Arc::clone(&extent), Arc::clone(&used));
                threads.spawn("closes", move || {
                    closes.close_unused(|_| looks.load(Ordering::Acquire) != 0);
                });
                let sees = Arc::clone(&extent);
                let [hears, finds] = [&told, &elsewhere].map(Arc::clone);
                threads.spawn("looks", move || {
                    let heard = hears.load(Ordering::Acquire) != 0;
                    if heard && sees.count() == 1 && !set(&finds) {
                        fail(Kind::FalseEmpty, "what was in the place is seen nowhere");
                    }
                });
                threads.finally(move || drop((extent, used, told, elsewhere)));
            });
        }

        #[test]
        fn a_place_in_which_something_was_left_is_open() {
            clean(|threads| {
                let extent = Arc::new(Extent::<Simulated>::new());
                let handles = Arc::new(Entries::<Flag, Simulated>::new());
                for _ in 0..2 {
                    handles.prepare(|_| Some(Flag::new(0))).expect("memory");
                }
                assert!(handles.claim(2, |_| None).is_some());
                extent.open(1);
                let (opens, comes) = (Arc::clone(&extent), Arc::clone(&handles));
                threads.spawn("comes and goes", move || {
                    let (place, something) = comes.claim(2, |_| None).expect("it is free");
                    opens.open(place);
                    something.store(1, Ordering::Relaxed);
                    comes.release(place);
                });
                let (closes, looks) = (Arc::clone(&extent), Arc::clone(&handles));
                threads.spawn("closes", move || {
                    closes.close_unused(|place| {
                        looks.is_held(place) || looks.get(place).is_some_and(set)
                    });
                });
                threads.finally(move || {
                    assert_eq!(extent.count(), 2);
                    drop(handles);
                });
            });
        }
    }
}
