//! The growing arrays of words under the queues whose tasks may come out more than once.
//!
//! The owner publishes a larger array and keeps the smaller ones until the queue goes: a thief may
//! still be reading one, whose slots hold what they held. Each array doubles, so all old ones
//! together are smaller than the current.

use core::ptr;

use poach_memory::{Memory, Ordering, Pointer, Word};

use crate::ring::{CapacityError, MAX_CAPACITY, NoMemory, check_capacity};

struct Array<M: Memory> {
    words: Box<[M::Word]>,
    /// The index of the oldest word that was copied here.
    first: u64,
    /// The one before. Only the owner writes it, and only the last handle's drop reads it.
    older: M::Pointer<Array<M>>,
}

/// Slots that thieves read while the owner writes them. Owns all its arrays.
pub(crate) struct Slots<M: Memory> {
    current: M::Pointer<Array<M>>,
}

/// The indices that an array has words of: of those from `first` on, the youngest `capacity`.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) capacity: u64,
}

impl<M: Memory> Slots<M> {
    pub(crate) fn new(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0)
    }

    /// As [`new`](Slots::new), for a queue whose first index is `first`.
    pub(crate) fn starting_at(capacity: usize, first: u64) -> Result<Self, CapacityError> {
        check_capacity(capacity)?;
        let array = allocate::<M>(capacity, first, ptr::null_mut())
            .map_err(|NoMemory| CapacityError::OutOfMemory(capacity))?;
        Ok(Slots { current: M::Pointer::new(array) })
    }

    #[inline(always)]
    fn array(&self) -> &Array<M> {
        // Acquire: pairs with the release in `grow`, whose copies are then seen.
        let array = self.current.load(Ordering::Acquire);
        // SAFETY: arrays live as long as `self`.
        unsafe { &*array }
    }

    /// Slots in the current array.
    #[inline(always)]
    pub(crate) fn capacity(&self) -> u64 {
        self.array().words.len() as u64
    }

    /// The word at `index`, modulo the capacity.
    #[inline(always)]
    pub(crate) fn read(&self, index: u64) -> u64 {
        self.read_of(index).0
    }

    /// The same, and the extent of the array that it was read from.
    #[inline(always)]
    pub(crate) fn read_of(&self, index: u64) -> (u64, Extent) {
        let array = self.array();
        let words = &array.words;
        // Acquire: a thief that reads a word too new for the state it has read then sees a newer
        // state, too: its exchange fails, or it sees a `tail` that says so.
        let word = words[index as usize & (words.len() - 1)].load(Ordering::Acquire);
        (word, array.extent())
    }

    /// The extent of the current array.
    pub(crate) fn extent(&self) -> Extent {
        self.array().extent()
    }

    /// Writes the word at `index`, modulo the capacity. Only the owner may.
    #[inline(always)]
    pub(crate) fn write(&self, index: u64, word: u64) {
        let words = &self.array().words;
        // Release: pairs with the acquire in `read`; what the owner did to the state before it
        // reused the slot is seen by who reads the new word.
        words[index as usize & (words.len() - 1)].store(word, Ordering::Release);
    }

    /// Doubles the array, with the words of `from..to` copied. Only the owner may.
    #[cold]
    #[inline(never)]
    pub(crate) fn grow(&self, from: u64, to: u64, limit: usize) -> Result<(), NoMemory> {
        let old = self.array();
        let doubled = old.words.len() * 2;
        if doubled > limit.min(MAX_CAPACITY) {
            return Err(NoMemory);
        }
        // Relaxed: only the owner, this thread, writes it.
        let array = allocate::<M>(doubled, from, self.current.load(Ordering::Relaxed))?;
        // SAFETY: just allocated, and not yet known to anyone.
        let new = unsafe { &*array };
        let mut index = from;
        while index != to {
            // Relaxed, both: the release below publishes them, and the owner wrote the old ones
            // itself.
            let word = old.words[index as usize & (old.words.len() - 1)].load(Ordering::Relaxed);
            new.words[index as usize & (doubled - 1)].store(word, Ordering::Relaxed);
            index = index.wrapping_add(1);
        }
        // Release: pairs with the acquire in `array`.
        self.current.store(array, Ordering::Release);
        Ok(())
    }
}

impl<M: Memory> Array<M> {
    #[inline(always)]
    fn extent(&self) -> Extent {
        Extent { first: self.first, capacity: self.words.len() as u64 }
    }
}

fn allocate<M: Memory>(
    capacity: usize,
    first: u64,
    older: *mut Array<M>,
) -> Result<*mut Array<M>, NoMemory> {
    let mut words = Vec::new();
    words.try_reserve_exact(capacity).map_err(|_| NoMemory)?;
    words.extend((0..capacity).map(|_| M::Word::new(0)));
    // A boxed slice of one, which has the layout of a box: `Box::new` would end the program.
    let mut array: Vec<Array<M>> = Vec::new();
    array.try_reserve_exact(1).map_err(|_| NoMemory)?;
    array.push(Array { words: words.into_boxed_slice(), first, older: M::Pointer::new(older) });
    Ok(Box::into_raw(array.into_boxed_slice()).cast())
}

impl<M: Memory> Drop for Slots<M> {
    fn drop(&mut self) {
        // Relaxed, here and below: no other handle is left.
        let mut array = self.current.load(Ordering::Relaxed);
        while !array.is_null() {
            // SAFETY: `allocate` made it, and nobody has freed it or uses it any more.
            let owned = unsafe { Box::from_raw(array) };
            array = owned.older.load(Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poach_memory::Machine;

    #[test]
    fn they_grow_to_the_limit_and_not_beyond() {
        let slots = Slots::<Machine>::new(2).unwrap();
        assert!(slots.grow(0, 2, 4).is_ok());
        assert!(slots.grow(0, 4, 4).is_err());
        assert_eq!(slots.capacity(), 4);
    }
}
