//! Storage that lives as long as the pool. Entries are found by their number; they never move.
//!
//! The memory is *type-stable*: a thread with the number or address of an entry may read its words
//! at any later time, and finds words of the same kind. They may be stale: [`salsa`](crate::salsa)
//! validates them. So lists and records need no protection against being freed under a reader.
//!
//! A [`Registry`] is an append-only vector of segments, each twice as long as the one before.
//! `push` takes a number with one compare-and-swap (lock-free); `get` is two loads (wait-free).
//!
//! [`Entries`] are records, each held by one handle at a time. A new handle claims a released entry
//! with the content of its record, so there are never more entries than there were handles at one
//! time.

use core::ptr;

use poach_memory::{Memory, Ordering, Pointer, Word};

const FIRST: usize = 8;
/// 8 + 16 + .. + 2^26: more entries than any machine has memory for chunks.
const SEGMENTS: usize = 24;
pub(crate) const MOST: usize = FIRST * ((1 << SEGMENTS) - 1);

/// Moves `value` to the heap, or gives it back where there is no memory.
pub(crate) fn try_box<T>(value: T) -> Result<Box<T>, T> {
    let mut one = Vec::new();
    if one.try_reserve_exact(1).is_err() {
        return Err(value);
    }
    one.push(value);
    let slice = Box::into_raw(one.into_boxed_slice());
    // SAFETY: `slice` was just released by a box of exactly one `T`, which has the layout of a `T`.
    Ok(unsafe { Box::from_raw(slice.cast::<T>()) })
}

/// Calls `step` until it returns `false`, also while a panic of `step` unwinds. A second panic
/// aborts the program, as in the drop of a `Vec`. `step` may be called once more after `false`.
pub(crate) fn each(step: impl FnMut() -> bool) {
    struct Each<F: FnMut() -> bool>(F);
    impl<F: FnMut() -> bool> Each<F> {
        fn run(&mut self) {
            while (self.0)() {}
        }
    }
    impl<F: FnMut() -> bool> Drop for Each<F> {
        fn drop(&mut self) {
            self.run();
        }
    }
    Each(step).run();
}

pub(crate) struct Registry<R, M: Memory> {
    len: M::Word,
    segments: [M::Pointer<Segment<R, M>>; SEGMENTS],
}

struct Segment<R, M: Memory>(Vec<M::Pointer<R>>);

fn locate(index: usize) -> (usize, usize) {
    let segment = (index / FIRST + 1).ilog2() as usize;
    (segment, index - FIRST * ((1 << segment) - 1))
}

impl<R, M: Memory> Registry<R, M> {
    pub(crate) fn new() -> Self {
        Registry {
            len: M::Word::new(0),
            segments: core::array::from_fn(|_| M::Pointer::new(ptr::null_mut())),
        }
    }

    /// The number of numbers given out. The entry of the last may not be stored yet.
    pub(crate) fn len(&self) -> usize {
        // Acquire pairs with the exchange in `push`: what the pusher had done before is seen.
        self.len.load(Ordering::Acquire) as usize
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&R> {
        if index >= MOST {
            return None;
        }
        let (segment, place) = locate(index);
        // Acquire, twice: pairs with the Release in `push` that published the segment, the entry.
        let segment = self.segments[segment].load(Ordering::Acquire);
        // SAFETY: null, or a segment that `push` published and only `drop` frees.
        let segment = unsafe { segment.as_ref() }?;
        let entry = segment.0[place].load(Ordering::Acquire);
        // SAFETY: null, or an entry that `push` published and only `drop` frees.
        unsafe { entry.as_ref() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// `None` if there is no memory, or no number below `limit`.
    #[cold]
    pub(crate) fn push(
        &self,
        limit: usize,
        make: impl Fn(usize) -> Option<R>,
    ) -> Option<(usize, &R)> {
        let mut index = self.len();
        let entry = loop {
            if index >= limit.min(MOST) {
                return None;
            }
            // All memory first: a number that was given out cannot be taken back.
            self.ensure(locate(index).0)?;
            let entry = try_box(make(index)?).ok()?;
            // AcqRel: releases the segment's publication; acquires earlier pushers'.
            match self.len.compare_exchange(
                index as u64,
                index as u64 + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => break Box::into_raw(entry),
                Err(now) => index = now as usize,
            }
        };
        let (segment, place) = locate(index);
        let segment = self.segments[segment].load(Ordering::Acquire);
        // SAFETY: `ensure` saw or published this segment, and only `drop` frees it.
        let segment = unsafe { &*segment };
        // Release pairs with the Acquire in `get`.
        segment.0[place].store(entry, Ordering::Release);
        // SAFETY: it came from a box just now, and only `drop` frees it.
        Some((index, unsafe { &*entry }))
    }

    fn ensure(&self, segment: usize) -> Option<()> {
        let shared = &self.segments[segment];
        if !shared.load(Ordering::Acquire).is_null() {
            return Some(());
        }
        let length = FIRST << segment;
        let mut entries = Vec::new();
        entries.try_reserve_exact(length).ok()?;
        entries.extend((0..length).map(|_| M::Pointer::new(ptr::null_mut())));
        let mine = Box::into_raw(try_box(Segment(entries)).ok()?);
        // Release pairs with `get`. Acquire sees the segment of the thread that was first.
        if shared
            .compare_exchange(ptr::null_mut(), mine, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: from a box above, and never shared.
            drop(unsafe { Box::from_raw(mine) });
        }
        Some(())
    }
}

impl<R, M: Memory> Drop for Registry<R, M> {
    fn drop(&mut self) {
        // Relaxed throughout: `&mut self` means that every other thread's last use happened before.
        let mut segments = self.segments.iter();
        let mut entries = Vec::<M::Pointer<R>>::new().into_iter();
        each(|| {
            // The drop of an entry may panic: both iterators are past it by then.
            if let Some(entry) = entries.next() {
                let entry: *mut R = entry.load(Ordering::Relaxed);
                if !entry.is_null() {
                    // SAFETY: `push` released it from a box, and nobody else frees it.
                    drop(unsafe { Box::from_raw(entry) });
                }
                return true;
            }
            let Some(segment) = segments.next() else { return false };
            let segment = segment.load(Ordering::Relaxed);
            if !segment.is_null() {
                // SAFETY: `ensure` released it from a box, and nobody else frees it.
                let segment = unsafe { Box::from_raw(segment) };
                entries = segment.0.into_iter();
            }
            true
        });
    }
}

// SAFETY: it owns its entries, and the last handle frees them in its own thread.
unsafe impl<R: Send + Sync, M: Memory> Send for Registry<R, M> {}
// SAFETY: any thread gets shared references to the entries; the last handle frees them.
unsafe impl<R: Send + Sync, M: Memory> Sync for Registry<R, M> {}

pub(crate) struct Entry<R, M: Memory> {
    held: M::Word,
    pub(crate) record: R,
}

impl<R, M: Memory> Entry<R, M> {
    fn claim(&self) -> bool {
        // Relaxed: a hint that saves the exchange.
        self.held.load(Ordering::Relaxed) == 0
            // Acquire pairs with the Release in `Entries::release`: what the last holder wrote is seen here.
            && self.held.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn is_held(&self) -> bool {
        // Acquire pairs with the Release in `Entries::release`: a thread that closes a place
        // without a holder sees what the last holder left there. For placement it is a hint.
        self.held.load(Ordering::Acquire) != 0
    }
}

pub(crate) struct Entries<R, M: Memory> {
    entries: Registry<Entry<R, M>, M>,
    changes: M::Word,
}

impl<R, M: Memory> Entries<R, M> {
    pub(crate) fn new() -> Self {
        Entries { entries: Registry::new(), changes: M::Word::new(0) }
    }

    /// Claims a free entry, or adds one if there are fewer than `limit`.
    pub(crate) fn claim(
        &self,
        limit: usize,
        make: impl Fn(usize) -> Option<R>,
    ) -> Option<(usize, &R)> {
        let free = (0..self.entries.len())
            .filter_map(|number| Some((number, self.entries.get(number)?)))
            .find(|(_, entry)| entry.claim());
        let (number, entry) = match free {
            Some(found) => found,
            None => self.entries.push(limit, |number| {
                Some(Entry { held: M::Word::new(1), record: make(number)? })
            })?,
        };
        self.changed();
        Some((number, &entry.record))
    }

    pub(crate) fn prepare(&self, make: impl Fn(usize) -> Option<R>) -> Option<()> {
        let make = |number| Some(Entry { held: M::Word::new(0), record: make(number)? });
        self.entries.push(MOST, make).map(|_| ())
    }

    /// Releases entry `number`, which the caller must hold, to the next handle.
    pub(crate) fn release(&self, number: usize) {
        if let Some(entry) = self.entries.get(number) {
            // Release pairs with the Acquire in `Entry::claim`.
            entry.held.store(0, Ordering::Release);
        }
        self.changed();
    }

    fn changed(&self) {
        // Relaxed: a thread that sees the old count uses the old access list for one more chunk.
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that differs from an earlier answer once an entry was claimed or released.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&R> {
        self.entries.get(number).map(|entry| &entry.record)
    }

    pub(crate) fn is_held(&self, number: usize) -> bool {
        self.entries.get(number).is_some_and(Entry::is_held)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        self.entries.iter().map(|entry| &entry.record)
    }
}

#[cfg(test)]
mod tests {
    use poach_memory::Machine;

    use super::*;

    #[test]
    fn finds_every_entry_by_its_number() {
        let registry = Registry::<usize, Machine>::new();
        for expected in 0..1000 {
            let (index, _) = registry.push(MOST, |index| Some(index * 3)).expect("memory");
            assert_eq!(index, expected);
        }
        assert!((0..1000).all(|index| registry.get(index) == Some(&(index * 3))));
        assert_eq!(registry.get(1000), None);
        assert_eq!((registry.get(MOST - 1), registry.get(MOST)), (None, None));
        assert_eq!(registry.get(usize::MAX), None);
        assert_eq!(registry.iter().count(), 1000);
    }

    #[test]
    fn refuses_numbers_past_the_limit() {
        let registry = Registry::<(), Machine>::new();
        assert!(registry.push(1, |_| Some(())).is_some());
        assert!(registry.push(1, |_| Some(())).is_none());
    }

    #[test]
    fn what_cannot_be_made_takes_no_number() {
        let registry = Registry::<u8, Machine>::new();
        assert!(registry.push(MOST, |_| None).is_none());
        assert_eq!(registry.push(MOST, |_| Some(7)).map(|(index, _)| index), Some(0));
        assert_eq!(registry.iter().copied().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn an_entry_is_claimed_again_before_a_new_one_is_made() {
        let entries = Entries::<usize, Machine>::new();
        let claim = || entries.claim(8, Some).map(|(number, _)| number);
        assert_eq!((claim(), claim()), (Some(0), Some(1)));
        entries.release(0);
        assert!(!entries.is_held(0));
        assert_eq!((claim(), claim()), (Some(0), Some(2)));
        assert_eq!(entries.len(), 3);
    }

    #[test]
    fn each_claim_and_each_release_is_a_change() {
        let entries = Entries::<usize, Machine>::new();
        let mut seen = vec![entries.changes()];
        for _ in 0..2 {
            assert!(entries.claim(1, Some).is_some());
            seen.push(entries.changes());
            entries.release(0);
            seen.push(entries.changes());
        }
        assert!(seen.is_sorted_by(|before, after| before < after), "{seen:?}");
    }

    #[cfg(not(miri))]
    mod models {
        use std::rc::Rc;

        use crate::models::clean;
        use poach_check::Simulated;
        use poach_memory::Cell;

        use super::*;

        type Place = <Simulated as Memory>::Cell<u32>;

        #[test]
        fn who_finds_an_entry_finds_what_is_in_it() {
            clean(|threads| {
                let registry = Rc::new(Registry::<Place, Simulated>::new());
                let [pushes, gets] = [(); 2].map(|()| Rc::clone(&registry));
                threads.spawn("pushes", move || {
                    let made = pushes.push(MOST, |_| {
                        let place = Place::new(0);
                        place.with_mut(|_| ());
                        Some(place)
                    });
                    assert!(made.is_some());
                });
                threads.spawn("gets", move || {
                    if let Some(place) = gets.get(0) {
                        place.with(|_| ());
                    }
                });
                threads.finally(move || drop(registry));
            });
        }

        /// Both make the first segment, and one of them frees its own again: nothing may be left.
        #[test]
        fn two_that_push_at_once_share_a_segment() {
            clean(|threads| {
                let registry = Rc::new(Registry::<Place, Simulated>::new());
                for name in ["first", "second"] {
                    let pushes = Rc::clone(&registry);
                    threads.spawn(name, move || {
                        assert!(pushes.push(MOST, |_| Some(Place::new(0))).is_some());
                    });
                }
                threads.finally(move || assert_eq!(registry.iter().count(), 2));
            });
        }

        #[test]
        fn who_claims_an_entry_comes_after_its_last_holder() {
            clean(|threads| {
                let entries = Rc::new(Entries::<Place, Simulated>::new());
                let [goes, comes] = [(); 2].map(|()| Rc::clone(&entries));
                assert!(entries.claim(1, |_| Some(Place::new(0))).is_some());
                threads.spawn("goes", move || {
                    goes.get(0).expect("it holds it").with_mut(|_| ());
                    goes.release(0);
                });
                threads.spawn("comes", move || {
                    if let Some((_, place)) = comes.claim(1, |_| None) {
                        place.with_mut(|_| ());
                    }
                });
                threads.finally(move || drop(entries));
            });
        }
    }
}
