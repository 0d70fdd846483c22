//! `ConcBag`: a list of chunks for each producer. All consumers take from it, task by task.
//!
//! Source: Sundell, Gidenstam, Papatriantafilou and Tsigas, *A Lock-Free Algorithm for Concurrent
//! Bags*, SPAA 2011, as the SALSA paper evaluates it (section 6.2). There producers and consumers
//! are different threads, the list of chunks is simpler, and each consumer begins its search at a
//! producer of its own. Every take is one compare-and-swap of a slot's state. No pool belongs to
//! one consumer: `consume` looks everywhere, and `steal` finds nothing more.
//!
//! A list's chunks are oldest first. Only the first is taken from; when all its slots are taken its
//! head moves on, by compare-and-swap, and the winner retires the chunk. A hazard pointer keeps a
//! chunk from the moment a consumer finds it to the moment it has read the task.
//!
//! # Why `None` means empty
//!
//! [`policy`](crate::policy) has the argument, for which each list is one place, and the bag one
//! pool. Slots are filled in order, and a consumer passes a slot only if it is taken. So at any
//! instant the states of a chunk are a run of *taken* slots, then a run of *full* ones, then
//! *empty* ones; each may be absent. A reader that comes to an empty slot and has seen none full
//! has seen a list without tasks, at that instant. It looks for a next chunk last: if all slots are
//! taken and there is no next chunk, the list is empty then. A take of slot k leaves the list
//! without tasks only if slot k + 1 was not full. **Slot k + 1 must be looked at before the take**,
//! as in the paper: afterwards a task may have come, and the take would not be announced.
//!
//! *Lists without a producer* go to the next producers, and are always searched. A producer's list
//! counts before its first put, so a reader that finds fewer lists in use has seen this list
//! without tasks, at that instant.

use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::sync::Arc;

use poach_memory::{CachePadded, Cell, Machine, Memory, Ordering, Pointer, Word};

use super::hazard::{Domain, Hazards, Retention};
use crate::mechanism::{Consume, Mechanism, NoHandle, Produce};
use crate::registry::{Entries, each, try_box};

/// Tasks in a chunk: the paper's optimum for this algorithm (figure 8).
pub const BAG_CHUNK_LENGTH: usize = 128;
const MOST_HANDLES: usize = 1024;

const EMPTY: u64 = 0;
const FULL: u64 = 1;
const TAKEN: u64 = 2;

struct Slot<T, M: Memory> {
    state: M::Word,
    task: M::Cell<MaybeUninit<T>>,
}

struct Chunk<T, M: Memory> {
    serial: u64,
    slots: Vec<Slot<T, M>>,
    next: M::Pointer<Chunk<T, M>>,
}

// SAFETY: a chunk hands each task from the thread that put it to the one that took its slot.
unsafe impl<T: Send, M: Memory> Send for Chunk<T, M> {}

impl<T, M: Memory> Chunk<T, M> {
    fn new(serial: u64, length: usize) -> Option<*mut Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(length).ok()?;
        slots.extend((0..length).map(|_| Slot {
            state: M::Word::new(EMPTY),
            task: M::Cell::new(MaybeUninit::uninit()),
        }));
        let chunk = Chunk { serial, slots, next: M::Pointer::new(ptr::null_mut()) };
        Some(Box::into_raw(try_box(chunk).ok()?))
    }
}

struct List<T, M: Memory> {
    head: CachePadded<M::Pointer<Chunk<T, M>>>,
    /// The last chunk and how much of it is filled: the producer's, kept here for the next.
    last: M::Pointer<Chunk<T, M>>,
    filled: M::Word,
}

impl<T, M: Memory> List<T, M> {
    fn new(length: usize) -> Option<Self> {
        let chunk = Chunk::new(0, length)?;
        Some(List {
            head: CachePadded::new(M::Pointer::new(chunk)),
            last: M::Pointer::new(chunk),
            filled: M::Word::new(0),
        })
    }
}

impl<T, M: Memory> Drop for List<T, M> {
    fn drop(&mut self) {
        // Relaxed throughout: with `&mut self` all other uses happened before.
        let mut chunk = self.head.load(Ordering::Relaxed);
        let mut at = 0;
        each(|| {
            // SAFETY: null, or in this list and not freed yet.
            let Some(first) = (unsafe { chunk.as_ref() }) else { return false };
            if let Some(slot) = first.slots.get(at) {
                at += 1;
                if slot.state.load(Ordering::Relaxed) == FULL {
                    drop(read(slot));
                }
                return true;
            }
            let next = first.next.load(Ordering::Relaxed);
            // SAFETY: from a box, and in this list once; the retired ones are not in it.
            drop(unsafe { Box::from_raw(chunk) });
            (chunk, at) = (next, 0);
            true
        });
    }
}

/// The task of a slot whose state the caller has changed from `FULL`, or alone can see.
fn read<T, M: Memory>(slot: &Slot<T, M>) -> T {
    slot.task.with(|task| {
        // SAFETY: written before the state was `FULL`, and a slot is used once.
        let task = unsafe { task.read() };
        // SAFETY: written before the state was `FULL`, and only one consumer's exchange succeeds.
        unsafe { task.assume_init() }
    })
}

type Announced<M> = CachePadded<<M as Memory>::Word>;

struct Core<T: Send, M: Memory> {
    lists: Entries<List<T, M>, M>,
    consumers: Entries<Announced<M>, M>,
    // After the lists, which hold what is not retired.
    domain: Domain<Chunk<T, M>, M>,
    length: usize,
}

/// A concurrent bag, over memory `M`. Lock-free.
pub struct ConcBag<T: Send, M: Memory = Machine> {
    core: Arc<Core<T, M>>,
}

impl<T: Send, M: Memory> ConcBag<T, M> {
    /// A bag of chunks of `chunk_length` tasks; `None` where there is no memory.
    ///
    /// # Panics
    ///
    /// If `chunk_length` is 0.
    pub fn new(chunk_length: usize) -> Option<Self> {
        Self::with_retention(chunk_length, Retention::USUAL)
    }

    /// A bag with `retention` for its threads' retired chunks; `None` if there is no memory.
    ///
    /// # Panics
    ///
    /// As [`new`](ConcBag::new).
    pub fn with_retention(chunk_length: usize, retention: Retention) -> Option<Self> {
        assert!(chunk_length > 0, "a chunk must hold at least one task");
        let consumers = Entries::new();
        consumers.prepare(|_| Some(CachePadded::new(M::Word::new(0))))?;
        let core = Core {
            lists: Entries::new(),
            consumers,
            domain: Domain::new(retention),
            length: chunk_length,
        };
        Some(ConcBag { core: Arc::new(core) })
    }
}

impl<T: Send, M: Memory> fmt::Debug for ConcBag<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcBag").field("lists", &self.core.lists.len()).finish_non_exhaustive()
    }
}

fn no_entry(entries: usize) -> NoHandle {
    if entries >= MOST_HANDLES {
        NoHandle::TooMany { limit: MOST_HANDLES }
    } else {
        NoHandle::OutOfMemory
    }
}

impl<T: Send, M: Memory> Mechanism<T> for ConcBag<T, M> {
    type Producer = BagProducer<T, M>;
    type Consumer = BagConsumer<T, M>;

    fn producer(self: &Arc<Self>) -> Result<Self::Producer, NoHandle> {
        let core = Arc::clone(&self.core);
        let length = core.length;
        let Some((number, list)) = core.lists.claim(MOST_HANDLES, |_| List::new(length)) else {
            return Err(no_entry(core.lists.len()));
        };
        // Relaxed: the entry's Acquire has made the last producer's stores visible.
        let chunk = list.last.load(Ordering::Relaxed);
        let filled = list.filled.load(Ordering::Relaxed) as usize;
        Ok(BagProducer { chunk, filled, number, core })
    }

    fn consumer(self: &Arc<Self>) -> Result<Self::Consumer, NoHandle> {
        let core = Arc::clone(&self.core);
        let made = |_| Some(CachePadded::new(M::Word::new(0)));
        let Some((number, announced)) = core.consumers.claim(MOST_HANDLES, made) else {
            return Err(no_entry(core.consumers.len()));
        };
        let Some(hazards) = core.domain.claim() else {
            core.consumers.release(number);
            return Err(NoHandle::OutOfMemory);
        };
        let announced = (NonNull::from(announced), announced.load(Ordering::Relaxed));
        let search = Search { hazards, place: (0, 0, 0), announced, exchanges: 0 };
        Ok(BagConsumer { search, number, core })
    }

    fn pools(&self) -> usize {
        self.core.consumers.len()
    }

    fn is_held(&self, pool: usize) -> bool {
        self.core.consumers.is_held(pool)
    }

    fn changes(&self) -> u64 {
        self.core.consumers.changes()
    }

    fn announced(&self, pool: usize) -> u64 {
        // Acquire: steps A and D of `policy`.
        self.core.consumers.get(pool).map_or(0, |announced| announced.load(Ordering::Acquire))
    }
}

/// A producer of [`ConcBag`].
pub struct BagProducer<T: Send, M: Memory> {
    /// The last chunk of the list. It is not retired before it is full and has a `next`.
    chunk: *mut Chunk<T, M>,
    filled: usize,
    number: usize,
    core: Arc<Core<T, M>>,
}

// SAFETY: the chunk is in the list that `core` keeps, and hands tasks over as it may.
unsafe impl<T: Send, M: Memory> Send for BagProducer<T, M> {}

impl<T: Send, M: Memory> fmt::Debug for BagProducer<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BagProducer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory> Produce<T> for BagProducer<T, M> {
    fn number(&self) -> usize {
        self.number
    }

    fn prepare(&mut self, _pool: usize, _grow: bool) -> bool {
        // A bag is never full.
        true
    }

    fn produce_force(&mut self, _pool: usize, task: T) -> Result<(), T> {
        if self.filled == self.core.length {
            // SAFETY: the last chunk is not retired before it has a `next`.
            let full = unsafe { &*self.chunk };
            let Some(new) = Chunk::new(full.serial + 1, self.core.length) else {
                return Err(task);
            };
            // Release publishes the new chunk's slots.
            full.next.store(new, Ordering::Release);
            self.chunk = new;
            self.filled = 0;
        }
        // SAFETY: the last chunk is not retired before it has a `next`.
        let chunk = unsafe { &*self.chunk };
        let slot = &chunk.slots[self.filled];
        slot.task.with_mut(|place| {
            // SAFETY: nobody reads a slot before its state is `FULL`.
            unsafe { place.write(MaybeUninit::new(task)) };
        });
        // Release pairs with the Acquire of the consumer that takes it.
        slot.state.store(FULL, Ordering::Release);
        self.filled += 1;
        Ok(())
    }
}

impl<T: Send, M: Memory> Drop for BagProducer<T, M> {
    fn drop(&mut self) {
        if let Some(list) = self.core.lists.get(self.number) {
            // Relaxed: released with the entry.
            list.last.store(self.chunk, Ordering::Relaxed);
            list.filled.store(self.filled as u64, Ordering::Relaxed);
        }
        self.core.lists.release(self.number);
    }
}

/// A consumer of [`ConcBag`].
pub struct BagConsumer<T: Send, M: Memory> {
    search: Search<T, M>,
    number: usize,
    core: Arc<Core<T, M>>,
}

struct Search<T: Send, M: Memory> {
    hazards: Hazards<Chunk<T, M>, M>,
    /// Where the last search ended: producer, chunk and slot. The slots before it are taken.
    place: (usize, u64, usize),
    /// Its `announced` word, and what is in it. Even, as no task ever moves.
    announced: (NonNull<Announced<M>>, u64),
    exchanges: u64,
}

// SAFETY: the word is in the registry that the consumer's `core` keeps, and `Sync`.
unsafe impl<T: Send, M: Memory> Send for Search<T, M> {}

impl<T: Send, M: Memory> fmt::Debug for BagConsumer<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BagConsumer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory> Core<T, M> {
    /// Whether the list is seen without tasks. Leaves a hazard pointer on its head.
    fn is_empty(list: &List<T, M>, hazards: &Hazards<Chunk<T, M>, M>) -> bool {
        let found = hazards.protect(0, &list.head);
        // SAFETY: a list's head is never null, and the hazard pointer keeps the chunk.
        let chunk = unsafe { &*found };
        // Acquire, here and below: keeps the order of the loads, and acquires what was announced.
        let mut states = chunk.slots.iter().map(|slot| slot.state.load(Ordering::Acquire));
        match states.find(|state| *state != TAKEN) {
            Some(state) => state == EMPTY,
            None => chunk.next.load(Ordering::Acquire).is_null(),
        }
    }
}

impl<T: Send, M: Memory> Search<T, M> {
    fn take_from(&mut self, core: &Core<T, M>, producer: usize, list: &List<T, M>) -> Option<T> {
        loop {
            let found = self.hazards.protect(0, &list.head);
            // SAFETY: a list's head is never null, and the hazard pointer keeps the chunk.
            let chunk = unsafe { &*found };
            let from = match self.place {
                (whose, serial, from) if (whose, serial) == (producer, chunk.serial) => from,
                _ => 0,
            };
            let mut exhausted = true;
            for at in from..chunk.slots.len() {
                let slot = &chunk.slots[at];
                // Acquire pairs with the producer's Release.
                let state = slot.state.load(Ordering::Acquire);
                if state == FULL {
                    self.announce_if_last(chunk, at);
                    self.exchanges += 1;
                    // Acquire: the task is read after it. AcqRel carries what was announced before.
                    if slot
                        .state
                        .compare_exchange(FULL, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {
                        let task = read(slot);
                        self.place = (producer, chunk.serial, at + 1);
                        return Some(task);
                    }
                } else if state == EMPTY {
                    exhausted = false;
                    break;
                }
            }
            // Acquire pairs with the producer's Release.
            let next = chunk.next.load(Ordering::Acquire);
            if !exhausted || next.is_null() {
                return None;
            }
            self.exchanges += 1;
            // Release: the new head was acquired. Only the winner retires the old one.
            let (release, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
            if list.head.compare_exchange(found, next, release, relaxed).is_ok() {
                // SAFETY: from a box; the head has left it behind, so nobody finds it any more.
                // This thread is done with it.
                unsafe { core.domain.retire(&self.hazards, found) };
            }
        }
    }

    fn announce_if_last(&mut self, chunk: &Chunk<T, M>, at: usize) {
        // Relaxed: a slot that is seen full is not taken before the one at `at`.
        let next_is_full =
            chunk.slots.get(at + 1).is_some_and(|slot| slot.state.load(Ordering::Relaxed) == FULL);
        if !next_is_full {
            let (word, announced) = &mut self.announced;
            *announced += 2;
            // SAFETY: the word is in the registry that the consumer's `core` keeps.
            let word = unsafe { word.as_ref() };
            // Release: step A of `policy`.
            word.store(*announced, Ordering::Release);
        }
    }
}

impl<T: Send, M: Memory> Consume<T> for BagConsumer<T, M> {
    fn number(&self) -> usize {
        self.number
    }

    fn consume(&mut self) -> Option<T> {
        let Self { search, core, .. } = self;
        let lists = core.lists.len().max(1);
        let mut producer = self.number;
        if producer >= lists {
            producer %= lists;
        }
        let mut found = None;
        for _ in 0..lists {
            if let Some(list) = core.lists.get(producer) {
                found = search.take_from(core, producer, list);
            }
            if found.is_some() {
                break;
            }
            producer = if producer + 1 == lists { 0 } else { producer + 1 };
        }
        search.hazards.clear();
        found
    }

    fn steal(&mut self, _from: usize) -> Option<T> {
        None
    }

    fn is_empty(&mut self, pool: usize) -> bool {
        // All lists belong to all consumers: they are searched once, as pool 0.
        if pool != 0 {
            return true;
        }
        let Self { search: Search { hazards, .. }, core, .. } = self;
        let empty = core.lists.iter().all(|list| Core::is_empty(list, hazards));
        hazards.clear();
        empty
    }

    fn exchanges(&self) -> u64 {
        self.search.exchanges
    }
}

impl<T: Send, M: Memory> Drop for BagConsumer<T, M> {
    fn drop(&mut self) {
        self.core.consumers.release(self.number);
        self.core.domain.release(&self.search.hazards);
    }
}
