//! The two kinds of list in which a consumer's chunks are found.
//!
//! | list | the paper's | written by | read by |
//! |---|---|---|---|
//! | [`Fifo`] | `chunkLists[j]` | producer j; all move its head | all |
//! | [`Held`] | `chunkLists[steal]` | the consumer | all |
//!
//! Neither list says which consumer owns a chunk: the chunk's term does. A list promises only that
//! **every chunk its consumer owns is found** by every traversal during which the consumer owned it
//! throughout (the paper's Lemma 1). It may also name chunks that have gone; those entries are
//! *dead*, and are overwritten.
//!
//! A chunk that has gone may come back to the same consumer in another life, in another producer's
//! list. So an entry names the term beside the chunk: once dead it stays dead. **If an entry were
//! dead only when the owner is another**, a list's oldest entry could name a chunk that another
//! producer has begun. The head would not pass it before that producer has filled it, which is
//! never if it stops. Meanwhile the list grows, and each search visits all chunks that have gone.
//!
//! Both are arrays, not linked nodes, so an entry's reuse cannot lead a reader astray. Outgrown
//! arrays stay until the pool is dropped; together they are smaller than the last.
//!
//! Positions and heads have 64 bits and only grow: they do not wrap for centuries, and carry no
//! tag. If a chunk's term wrapped, a dead entry would be visited again.

use core::ptr;

use poach_memory::{Memory, Ordering, Pointer, Word};

use super::chunk::{Chunk, Term};
use crate::registry::try_box;

struct Entry<T, M: Memory> {
    chunk: M::Pointer<Chunk<T, M>>,
    /// The term in which the chunk is the consumer's, [settled](Term::settled).
    term: M::Word,
}

impl<T, M: Memory> Entry<T, M> {
    fn new() -> Self {
        Entry { chunk: M::Pointer::new(ptr::null_mut()), term: M::Word::new(0) }
    }

    fn chunk(&self) -> Option<&Chunk<T, M>> {
        // Acquire pairs with the Release in `name`.
        let chunk = self.chunk.load(Ordering::Acquire);
        // SAFETY: null, or a chunk of this pool's registry, which outlives the list's readers.
        unsafe { chunk.as_ref() }
    }

    /// Only the list's writer may call this.
    fn name(&self, chunk: *mut Chunk<T, M>, term: Term) {
        // Relaxed: only the writer reads the term of a [`Held`]; a reader of a [`Fifo`] has
        // acquired the tail that is stored after it.
        self.term.store(term.settled().0, Ordering::Relaxed);
        // Release: a reader of the chunk may have an older tail.
        self.chunk.store(chunk, Ordering::Release);
    }

    fn copy(&self, from: &Self) {
        // Relaxed throughout: the writer's own entries; published by the array's Release.
        self.chunk.store(from.chunk.load(Ordering::Relaxed), Ordering::Relaxed);
        self.term.store(from.term.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn is_dead(&self) -> bool {
        self.chunk().is_none_or(|chunk| {
            // Acquire: nothing is read after it in this term, but the order of the loads counts.
            let now = Term(chunk.term().load(Ordering::Acquire));
            // Relaxed: see `name`.
            now.settled().0 != self.term.load(Ordering::Relaxed)
        })
    }
}

struct Array<T, M: Memory> {
    entries: Vec<Entry<T, M>>,
    /// The array that this one replaced.
    outgrown: *mut Array<T, M>,
}

impl<T, M: Memory> Array<T, M> {
    fn new(length: usize, outgrown: *mut Array<T, M>) -> Option<*mut Self> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(length).ok()?;
        entries.extend((0..length).map(|_| Entry::new()));
        Some(Box::into_raw(try_box(Array { entries, outgrown }).ok()?))
    }

    fn entry(&self, position: u64) -> &Entry<T, M> {
        &self.entries[position as usize % self.entries.len()]
    }
}

/// An array that its writer can replace.
struct Shared<T, M: Memory>(M::Pointer<Array<T, M>>);

impl<T, M: Memory> Shared<T, M> {
    fn new(length: usize) -> Option<Self> {
        Some(Shared(M::Pointer::new(Array::new(length, ptr::null_mut())?)))
    }

    fn get(&self) -> &Array<T, M> {
        // Acquire pairs with the Release in `replace`.
        let array = self.0.load(Ordering::Acquire);
        // SAFETY: `new` and `replace` put live arrays here, and only `drop` frees them.
        unsafe { &*array }
    }

    /// Only the list's writer may call this. `fill` initialises the array.
    fn replace(&self, length: usize, fill: impl FnOnce(&Array<T, M>)) -> Option<&Array<T, M>> {
        // Relaxed: only the writer, which this thread is, ever stores here.
        let array = Array::new(length, self.0.load(Ordering::Relaxed))?;
        // SAFETY: just released from a box; only `drop` frees it.
        let array_ref = unsafe { &*array };
        fill(array_ref);
        // Release pairs with the Acquire in `get`.
        self.0.store(array, Ordering::Release);
        Some(array_ref)
    }
}

impl<T, M: Memory> Drop for Shared<T, M> {
    fn drop(&mut self) {
        let mut array = self.0.load(Ordering::Relaxed);
        while !array.is_null() {
            // SAFETY: `Array::new` released it from a box, and each is in this chain once.
            let freed = unsafe { Box::from_raw(array) };
            array = freed.outgrown;
        }
    }
}

/// Chunks that one producer made for one consumer, oldest first. The producer appends. Any thread
/// that finds the oldest entry dead moves the head past it, by compare-and-swap.
pub(super) struct Fifo<T, M: Memory> {
    pub(super) producer: usize,
    head: M::Word,
    tail: M::Word,
    array: Shared<T, M>,
    /// The consumer's next list. Set before the list is published and never again.
    pub(super) next: M::Pointer<Fifo<T, M>>,
}

const FIFO_LENGTH: usize = 8;

impl<T, M: Memory> Fifo<T, M> {
    pub(super) fn new(producer: usize) -> Option<Self> {
        Some(Fifo {
            producer,
            head: M::Word::new(0),
            tail: M::Word::new(0),
            array: Shared::new(FIFO_LENGTH)?,
            next: M::Pointer::new(ptr::null_mut()),
        })
    }

    /// Makes room, so that `append` cannot fail. Only the producer may call this.
    pub(super) fn reserve(&self) -> Option<()> {
        self.trim();
        // Acquire pairs with the exchange in `trim`: the entries passed may be overwritten.
        let head = self.head.load(Ordering::Acquire);
        // Relaxed: the producer's own.
        let tail = self.tail.load(Ordering::Relaxed);
        let array = self.array.get();
        let length = array.entries.len();
        if tail - head < length as u64 {
            return Some(());
        }
        self.array.replace(2 * length, |larger| {
            for position in head..tail {
                larger.entry(position).copy(array.entry(position));
            }
        })?;
        Some(())
    }

    /// Only the producer may call this, after `reserve`. The consumer owns `chunk` already.
    pub(super) fn append(&self, chunk: &Chunk<T, M>, term: Term) {
        let tail = self.tail.load(Ordering::Relaxed);
        self.array.get().entry(tail).name(ptr::from_ref(chunk).cast_mut(), term);
        // Release pairs with `trim` and `iter`: a thread that sees the tail sees the entry.
        self.tail.store(tail + 1, Ordering::Release);
    }

    /// Moves the head past dead entries.
    pub(super) fn trim(&self) {
        // Acquire, here and below: entries at and after the head seen are read after it.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let tail = self.tail.load(Ordering::Acquire);
            if head >= tail {
                return;
            }
            if !self.array.get().entry(head).is_dead() {
                return;
            }
            // If the entry was overwritten before it was read, or since, the head has moved: this
            // fails. Release: a thread that sees the new head may overwrite the entry read here.
            head = match self.head.compare_exchange(
                head,
                head + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => head + 1,
                Err(now) => now,
            };
        }
    }

    /// Every chunk that is in the list from before the call until it is reached, oldest first, and
    /// perhaps others.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Chunk<T, M>> {
        self.trim();
        // The tail first: the array then holds all entries up to it. An entry that the producer
        // overwrites meanwhile was dead.
        let tail = self.tail.load(Ordering::Acquire);
        let array = self.array.get();
        let head = self.head.load(Ordering::Acquire);
        (head..tail).filter_map(|position| array.entry(position).chunk())
    }
}

/// Chunks that a consumer stole, in no order. A consumer steals when all that it owns is empty, and
/// each producer has at most one chunk that is empty but not exhausted. So there are few live
/// entries, and a dead one is overwritten at once.
pub(super) struct Held<T, M: Memory> {
    array: Shared<T, M>,
}

const HELD_LENGTH: usize = 4;

impl<T, M: Memory> Held<T, M> {
    pub(super) fn new() -> Option<Self> {
        Some(Held { array: Shared::new(HELD_LENGTH)? })
    }

    /// Line 115; `None` if there is no memory. Only the consumer may call this. If the theft then
    /// fails (lines 117, 121, 126) nothing need be removed: the entry is dead.
    pub(super) fn add(&self, chunk: &Chunk<T, M>, term: Term) -> Option<()> {
        let array = self.array.get();
        let chunk = ptr::from_ref(chunk).cast_mut();
        if let Some(entry) = array.entries.iter().find(|entry| entry.is_dead()) {
            entry.name(chunk, term);
            return Some(());
        }
        let length = array.entries.len();
        self.array.replace(2 * length, |larger| {
            for (old, new) in array.entries.iter().zip(&larger.entries) {
                new.copy(old);
            }
            larger.entries[length].name(chunk, term);
        })?;
        Some(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Chunk<T, M>> {
        self.array.get().entries.iter().filter_map(Entry::chunk)
    }
}

#[cfg(all(test, not(miri)))]
mod models {
    use std::any::Any;
    use std::cell::RefCell;
    use std::rc::Rc;

    use crate::models::clean;
    use poach_check::{Kind, Simulated, fail};

    use super::*;

    type Made = Chunk<u32, Simulated>;
    type Flag = <Simulated as Memory>::Word;
    type Chunks = Rc<RefCell<Vec<Box<Made>>>>;

    fn chunk(chunks: &Chunks, owner: usize) -> (&'static Made, Term) {
        let chunk = Box::new(Made::new(0, 1).expect("memory"));
        let term = belongs_to(&chunk, owner);
        // SAFETY: the box lives in `chunks`, which each model keeps to its end.
        let made = unsafe { &*ptr::from_ref(&*chunk) };
        chunks.borrow_mut().push(chunk);
        (made, term)
    }

    fn belongs_to(chunk: &Made, owner: usize) -> Term {
        let old = chunk.term().load(Ordering::Relaxed);
        let new = Term(old).next(owner, owner);
        assert!(
            chunk.term().compare_exchange(old, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        );
        new
    }

    fn look<'a>(chunks: impl Iterator<Item = &'a Made>) {
        chunks.for_each(|chunk| {
            chunk.is_owned_by(0);
        });
    }

    /// A list of `FIFO_LENGTH` chunks, of which the first `gone` have gone since.
    fn full_list(chunks: &Chunks, gone: usize) -> Rc<Fifo<u32, Simulated>> {
        let list = Rc::new(Fifo::new(0).expect("memory"));
        for _ in 0..FIFO_LENGTH {
            assert!(list.reserve().is_some());
            let (made, term) = chunk(chunks, 0);
            list.append(made, term);
        }
        chunks.borrow().iter().take(gone).for_each(|chunk| {
            belongs_to(chunk, 1);
        });
        list
    }

    /// One chunk more than the list had room for: in a larger array, or in place of a dead entry.
    #[test]
    fn who_finds_a_chunk_finds_it_whole() {
        for gone in 0..2 {
            clean(|threads| {
                let chunks = Chunks::default();
                let list = full_list(&chunks, gone);
                let (appends, makes) = (Rc::clone(&list), Rc::clone(&chunks));
                threads.spawn("producer", move || {
                    let (made, term) = chunk(&makes, 0);
                    assert!(appends.reserve().is_some());
                    appends.append(made, term);
                });
                let looks = Rc::clone(&list);
                threads.spawn("looker", move || look(looks.iter()));
                threads.finally(move || drop((list, chunks)));
            });
        }
    }

    /// A thief notes where it takes the oldest chunk to, and takes it; another thread passes the
    /// entry over. A thread that does not find the chunk sees where it is.
    fn who_misses_a_chunk_sees_why(
        set_up: impl Fn(
            &Chunks,
        )
            -> (&'static Made, Rc<dyn Any>, Box<dyn FnOnce()>, Box<dyn FnOnce() -> bool>),
    ) {
        clean(|threads| {
            let (chunks, elsewhere) = (Chunks::default(), Rc::new(Flag::new(0)));
            let (oldest, list, passes, finds) = set_up(&chunks);
            let notes = Rc::clone(&elsewhere);
            threads.spawn("thief", move || {
                notes.store(1, Ordering::Relaxed);
                belongs_to(oldest, 2);
            });
            threads.spawn("another", passes);
            let sees = Rc::clone(&elsewhere);
            threads.spawn("looker", move || {
                if !finds() && sees.load(Ordering::Relaxed) == 0 {
                    fail(Kind::FalseEmpty, "a chunk has gone from a list, and is nowhere");
                }
            });
            threads.finally(move || drop((list, elsewhere, chunks)));
        });
    }

    #[test]
    fn who_misses_a_chunk_of_a_producers_list_sees_why() {
        who_misses_a_chunk_sees_why(|chunks| {
            let list = Rc::new(Fifo::new(0).expect("memory"));
            let (oldest, term) = chunk(chunks, 0);
            assert!(list.reserve().is_some());
            list.append(oldest, term);
            let trims = Rc::clone(&list);
            let passes = Box::new(move || trims.trim());
            let looks = Rc::clone(&list);
            let finds = move || looks.iter().any(|chunk| chunk.is_owned_by(0));
            (oldest, list, passes, Box::new(finds))
        });
    }

    #[test]
    fn who_misses_a_stolen_chunk_sees_why() {
        who_misses_a_chunk_sees_why(|chunks| {
            let list = Rc::new(Held::new().expect("memory"));
            let [(oldest, term), (another, its)] = [0, 1].map(|owner| chunk(chunks, owner));
            assert!(list.add(oldest, term).is_some());
            let (adds, looks) = (Rc::clone(&list), Rc::clone(&list));
            for _ in 1..HELD_LENGTH {
                let (made, term) = chunk(chunks, 0);
                assert!(list.add(made, term).is_some());
            }
            let passes = Box::new(move || assert!(adds.add(another, its).is_some()));
            let is_there = move |chunk: &Made| ptr::eq(chunk, oldest) && chunk.is_owned_by(0);
            (oldest, list, passes, Box::new(move || looks.iter().any(is_there)))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poach_memory::Machine;

    use super::super::Salsa;
    use super::*;
    use crate::mechanism::{Consume, Mechanism, Produce};

    /// A chunk is exhausted while it is the oldest of its producer's list, and another producer
    /// begins it before anybody looks at that list. Then that producer stops.
    #[test]
    fn a_chunk_in_another_life_keeps_no_list_from_being_trimmed() {
        let pools = Arc::new(Salsa::<u32, Machine>::new(2).expect("memory"));
        let [mut first, mut second] = [(); 2].map(|()| pools.producer().expect("memory"));
        let mut consumer = pools.consumer().expect("memory");
        assert!((0..2).all(|task| first.produce_force(0, task).is_ok()));
        assert!((0..2).all(|task| consumer.consume() == Some(task)));
        assert!(second.produce(0, 2).is_ok(), "the chunk is free");
        assert_eq!(consumer.consume(), Some(2));
        for task in 3..103 {
            assert!(first.produce_force(0, task).is_ok());
            assert_eq!(consumer.consume(), Some(task));
        }
        let record = pools.core.consumers.get(0).expect("its consumer is there");
        let list = record.fifos().find(|list| list.producer == 0).expect("it has put tasks");
        list.trim();
        let [head, tail] = [&list.head, &list.tail].map(|word| word.load(Ordering::Relaxed));
        assert_eq!((head, tail), (51, 51), "each chunk is exhausted");
        assert_eq!(list.array.get().entries.len(), FIFO_LENGTH);
    }
}
