//! An injector: a first-in, first-out queue into which any thread pushes and from which any thread
//! steals.
//!
//! Source: the role is crossbeam-deque's `Injector`, and so are the blocks of slots, each with a state. That a
//! slow push is skipped is Morrison and Afek's LCRQ (*Fast Concurrent Queues for x86 Processors*, 2013).
//! The chain and its memory are ours (`chain`), and so is the word `finished`, which `ring` has too.
//!
//! # How it works
//!
//! Tasks have indices; those from `index` (the head) up to `tickets` are in the queue or about to be. Index
//! `i` stands in slot `i mod SLOTS` of block `i / SLOTS`. A slot's state names the index that it is about:
//!
//! | state | value | meaning |
//! |---|---|---|
//! | older | below `4 i + 1` | nothing of index `i` yet |
//! | written | `4 i + 1` | the task of index `i` is there |
//! | skipped | `4 i + 2` | a thief does not wait for the push of index `i` |
//! | marked | `4 i + 3` | nobody will use the slot for index `i` any more |
//!
//! | | pusher | thief |
//! |---|---|---|
//! | 1 | compares and swaps `tickets` from `i` to `i + 1` | reads the head `i` |
//! | 2 | writes the task to the slot | reads the slot's state: if that is older, it goes to 5 |
//! | 3 | compares and swaps the state from older to *written* | compares and swaps the head from `i` to `i + 1` |
//! | 4 | if it was *skipped*: compares and swaps the head from `i` to `i + 1`, takes the task back and starts again | if it was *written*, moves the task out |
//! | 5 | | reads `tickets`; if that is `i`: full fence, reads `tickets` again; if that is `i`, the queue is empty |
//! | 6 | | waits for the slot for a while, then compares and swaps its state from older to *skipped*, and goes to 3 |
//!
//! A thief that finds tasks reads nothing that pushers write but the slots.
//!
//! *Finishing.* Who has no more use for a slot (the thief after step 4, or the pusher that took its task back) finishes its
//! index. All indices below the word `finished` are finished. Who finishes the very index at `finished` moves the word past
//! what it has claimed, by a plain store; anybody else marks its slots. A push that needs a block moves the
//! word over the marks of the oldest block, and gives that block back if the word has passed all of it.
//!
//! # Why it is correct
//!
//! *A task comes out once.* A state is older until one exchange makes it *written* or *skipped*, and the head passes `i` by one
//! exchange, after that. If the state is *written*, whoever made the exchange of the head has the task; if it is
//! *skipped*, the pusher takes the task back, and nobody else looks at it.
//!
//! *The word `finished`* passes no index that is not finished. Each index has one finisher, and this either stores or marks. It
//! stores if it has read the word at its own index: then nobody else stores, since the word moves by the finisher of the
//! index at which it stands, or from an index that is marked, by an exchange.
//!
//! *Nobody is kept waiting by a thread that stops.* The head has passed an index before that is finished (step 4), so the block
//! of the head is not given back. A slot at the head that is skipped is passed by any thief.
//!
//! *Handing over.* Step 3 of the pusher releases, step 2 of the thief acquires: the thief sees the task. A slot
//! is written again only when its block has been given back, after `finished` has passed all its indices. That word and the
//! marks are released after the last use of the slots and acquired before the block is given back,
//! which the link to its next use hands on.
//!
//! *Stale blocks.* A thread that was stopped between two steps may look at memory that is another block by now.
//! That memory stays (see `chain`), a state names its index, and each exchange of `index` or of a state
//! expects a value that cannot come again. So a thief that finds index `i` *written* in any slot has found the slot of `i`,
//! and may look for it in whatever block it takes for the right one.
//!
//! # Emptiness
//!
//! Who pushes a task and then looks for sleepers, and who announces itself a sleeper and then looks for tasks, must
//! not both see nothing. Step 1 is sequentially consistent and so are the loads of
//! [`is_empty`](Injector::is_empty) and [`len`](Injector::len); a steal says `Empty` only after the fence of step 5. So a
//! push followed by a `SeqCst` load, or by a fence, is seen by whoever came the other way, as with crossbeam's.
//!
//! # Distance
//!
//! A thief that takes each task as it comes makes the pushers wait for the cache lines of `tickets` and of the slots, several times as
//! long as a push takes. So a thief that has met a push between its steps 1 and 3 sets a `pace`. From then on a
//! thief that knows of fewer than `NEAR` tickets above the head waits that many pauses before it reads `tickets` again. The pace doubles
//! until `ENOUGH` tasks come in meanwhile, and is 0 again when none has come. It is bounded, and says nothing about what a thief then finds.
//!
//! A push asks for the cache line of the slot `AHEAD` of its own, which thieves have read when the block was last in use. A push whose
//! exchange of `tickets` fails has the line of that word in its cache now, and its value: it waits a moment and tries that value, without
//! another load, which would share the line again.

mod batch;
mod chain;
mod finish;
mod steal;

use core::fmt;
use core::mem::MaybeUninit;

use poach_memory::{CachePadded, Cell, Machine, Memory, Ordering, Pointer, Word};

use crate::ring::{NoMemory, check_capacity};
use crate::{CapacityError, OutOfMemory};
pub(crate) use batch::Batch;
use chain::{Block, Chain, Place};

/// Slots of a block.
const BLOCK: usize = 64;

/// For how many pauses of the processor a thief waits for a push that has begun, before it skips the slot: some microseconds. A
/// push has a few instructions left there, unless its thread has lost the processor.
const PATIENCE: u32 = 200;

/// The longest wait, in pauses, of a push after others were faster. The first is one pause.
const LONGEST: u32 = 64;

/// How far ahead a push asks for the cache line of a slot: a line takes as long to come from another processor as some pushes.
const AHEAD: usize = 8;

/// A queue that all threads share by reference.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Injector::push), [`try_push`](Injector::try_push) | lock-free, but for the allocator | two compare-and-swaps |
/// | [`steal`](Injector::steal), [`steal_half`](Injector::steal_half) | lock-free: `Retry` means that another thread got a task | one compare-and-swap, for a batch as well |
///
/// A push whose thread is stopped between its two steps keeps nobody from stealing what was pushed after it: a thief
/// waits a little and then skips it, and the push starts again. (So a push and the thieves could keep each other
/// from ending, if each attempt of the push were stopped for some microseconds.)
///
/// Memory that tasks stood in is used again, and freed with the injector. At most 2^30 tasks are in it at a time (2^24
/// blocks of `SLOTS`).
///
/// ```
/// use poach_deque::{Injector, Steal};
///
/// let injector: Injector<u32> = Injector::new();
/// std::thread::scope(|scope| {
///     for task in 0..4 {
///         let injector = &injector;
///         scope.spawn(move || injector.push(task));
///     }
/// });
/// assert_eq!(injector.len(), 4);
/// assert!(matches!(injector.steal(), Steal::Success(0..4)));
/// ```
pub struct Injector<T, M: Memory = Machine, const SLOTS: usize = BLOCK> {
    /// What every push writes.
    tickets: CachePadded<M::Word>,
    head: CachePadded<Head<T, M, SLOTS>>,
    finished: CachePadded<M::Word>,
    rare: CachePadded<Rare<M>>,
    chain: Chain<T, M, SLOTS>,
    patience: u32,
}

/// What is written once a block.
struct Rare<M: Memory> {
    /// The place of some block; most often that of the next ticket.
    tail: M::Word,
    /// The place of the oldest block that has not been given back.
    oldest: M::Word,
}

/// What thieves write.
struct Head<T, M: Memory, const SLOTS: usize> {
    index: M::Word,
    /// Where thieves look first: the memory of some block; most often that of the head.
    block: M::Pointer<Block<T, M, SLOTS>>,
    /// The place of the block of `index` or of one before it. A block is not given back while this names it.
    hint: M::Word,
    /// What a thief has read of `tickets`, some time ago: they are this many at least.
    known: M::Word,
    /// For how many pauses of the processor a thief lets the pushers get ahead; see "Distance".
    pace: M::Word,
}

// SAFETY: tasks are handed from the thread that pushes to the one that steals, as the module comment
// argues, and never shared; all else is words.
unsafe impl<T: Send, M: Memory, const SLOTS: usize> Sync for Injector<T, M, SLOTS> {}
// SAFETY: as above.
unsafe impl<T: Send, M: Memory, const SLOTS: usize> Send for Injector<T, M, SLOTS> {}

#[inline(always)]
fn written(index: u64) -> u64 {
    index.wrapping_mul(4).wrapping_add(1)
}

#[inline(always)]
fn skipped(index: u64) -> u64 {
    index.wrapping_mul(4).wrapping_add(2)
}

#[inline(always)]
fn marked(index: u64) -> u64 {
    index.wrapping_mul(4).wrapping_add(3)
}

/// Another push was faster.
#[cold]
fn back_off<M: Memory>(pauses: &mut u32) {
    for _ in 0..*pauses {
        M::pause();
    }
    *pauses = (2 * *pauses).min(LONGEST);
}

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
    /// An empty injector. Ends the program if there is no memory for a block of 64 tasks.
    pub fn new() -> Self {
        match Self::with_capacity(SLOTS) {
            Ok(injector) => injector,
            Err(_) => crate::out_of_memory::<T>(),
        }
    }

    /// An empty injector with memory for `capacity` tasks, rounded up to whole blocks.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        check_capacity(capacity)?;
        let (chain, first) = Chain::new(capacity.div_ceil(SLOTS))
            .map_err(|NoMemory| CapacityError::OutOfMemory(capacity))?;
        Ok(Injector {
            tickets: CachePadded::new(M::Word::new(0)),
            head: CachePadded::new(Head {
                index: M::Word::new(0),
                block: M::Pointer::new(chain.block_at(first)),
                hint: M::Word::new(first.word()),
                known: M::Word::new(0),
                pace: M::Word::new(0),
            }),
            finished: CachePadded::new(M::Word::new(0)),
            rare: CachePadded::new(Rare {
                tail: M::Word::new(first.word()),
                oldest: M::Word::new(first.word()),
            }),
            chain,
            patience: PATIENCE,
        })
    }

    /// The same with another number of pauses for which a thief waits for a push that has begun, before it skips the slot.
    #[must_use]
    pub fn with_patience(mut self, pauses: u32) -> Self {
        self.patience = pauses;
        self
    }

    /// Adds a task. Ends the program if there is no memory for a block, as `Vec` does.
    #[inline]
    pub fn push(&self, task: T) {
        if self.try_push(task).is_err() {
            crate::out_of_memory::<T>();
        }
    }

    /// Adds a task.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if there is no memory for a block.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let (mut task, mut pauses) = (task, 1);
        // Relaxed, here and below: validated by the exchange. The block is found first: with an index there is no way back.
        let mut index = self.tickets.load(Ordering::Relaxed);
        loop {
            let block = match self.place_of(index) {
                Ok(Some(place)) => self.chain.block(place),
                Ok(None) => {
                    index = self.tickets.load(Ordering::Relaxed);
                    continue;
                }
                Err(NoMemory) => return Err(OutOfMemory(task)),
            };
            let next = index.wrapping_add(1);
            // SeqCst: see "Emptiness".
            let taken =
                self.tickets.compare_exchange(index, next, Ordering::SeqCst, Ordering::Relaxed);
            if let Err(now) = taken {
                index = now;
                back_off::<M>(&mut pauses);
                continue;
            }
            if index as usize % SLOTS < SLOTS.saturating_sub(AHEAD) {
                M::will_write(block.slot(index.wrapping_add(AHEAD as u64)));
            }
            match self.put(index, block, task) {
                Ok(()) => return Ok(()),
                Err(back) => task = back,
            }
            index = self.tickets.load(Ordering::Relaxed);
        }
    }

    /// Writes the task of a ticket, or has it back if a thief has skipped the slot.
    #[inline(always)]
    fn put(&self, index: u64, block: &Block<T, M, SLOTS>, task: T) -> Result<(), T> {
        let slot = block.slot(index);
        slot.task.with_mut(|there| {
            // SAFETY: the index is this thread's alone, and nobody reads the slot before it is *written*; who read
            // it for an earlier block has given that back.
            unsafe { there.write(MaybeUninit::new(task)) };
        });
        // Relaxed: the exchange decides.
        let seen = slot.state.load(Ordering::Relaxed);
        // Release: pairs with the acquire in `steal`, which then sees the task.
        if seen != skipped(index)
            && slot
                .state
                .compare_exchange(seen, written(index), Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            return Ok(());
        }
        Err(self.take_back(index, block))
    }

    /// A thief has skipped the slot: nobody but its pusher uses it any more.
    #[cold]
    #[inline(never)]
    fn take_back(&self, index: u64, block: &Block<T, M, SLOTS>) -> T {
        // A head that stays here, because the thief was stopped, would be left behind by its block. If the exchange
        // fails the head has passed `index`.
        let _ = self.move_head(index, 1);
        // SAFETY: this thread wrote the task there, and as the state is *skipped* nobody else reads it.
        let task = block.slot(index).task.with(|there| unsafe { there.read() });
        self.finish(block, index, 1);
        // SAFETY: written above by `put`.
        unsafe { task.assume_init() }
    }

    /// The place of the block of `index`, made if need be: `None` if that block has been given back.
    #[inline(always)]
    fn place_of(&self, index: u64) -> Result<Option<Place>, NoMemory> {
        let number = Chain::<T, M, SLOTS>::number(index);
        // Acquire: pairs with the release in `walk`.
        let hint = Place::from(self.rare.tail.load(Ordering::Acquire));
        if hint.distance_to(number) == 0 { Ok(Some(hint)) } else { self.walk(hint, number) }
    }

    /// Goes along the chain to block `number`, and leaves a hint there.
    #[cold]
    #[inline(never)]
    fn walk(&self, hint: Place, number: u64) -> Result<Option<Place>, NoMemory> {
        let mut at = hint;
        if hint.distance_to(number) < 0 {
            at = self.oldest();
        }
        loop {
            match at.distance_to(number) {
                0 => break,
                ahead if ahead < 0 => return Ok(None),
                // A hint can be so old that its block is another by now.
                _ => at = self.next(at)?.unwrap_or_else(|| self.oldest()),
            }
        }
        if hint.distance_to(number) > 0 {
            // Release: whoever starts from this hint sees what was done to the block before it was linked. If the
            // exchange fails another thread has left a hint.
            let _ = self.rare.tail.compare_exchange(
                hint.word(),
                at.word(),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
        Ok(Some(at))
    }

    /// The block after `at`, made if need be: of memory that is given back here, if there is any. `None` if `at` is stale.
    fn next(&self, at: Place) -> Result<Option<Place>, NoMemory> {
        if let Some(next) = self.chain.next(at, false)? {
            return Ok(Some(next));
        }
        // Twice, so that after a burst of tasks the memory comes back faster than it is used.
        let _ = self.give_back() && self.give_back();
        self.chain.next(at, true)
    }

    fn oldest(&self) -> Place {
        // Acquire: pairs with the release in `give_back`.
        Place::from(self.rare.oldest.load(Ordering::Acquire))
    }

    /// The number of tasks, and of pushes that have begun. A thief may have changed it by the time the caller looks.
    pub fn len(&self) -> usize {
        loop {
            // SeqCst, all: see "Emptiness".
            let tail = self.tickets.load(Ordering::SeqCst);
            let head = self.head.index.load(Ordering::SeqCst);
            if self.tickets.load(Ordering::SeqCst) == tail {
                return usize::try_from(tail.wrapping_sub(head) as i64).unwrap_or(0);
            }
        }
    }

    /// Whether there is no task, and no push that has begun.
    pub fn is_empty(&self) -> bool {
        // SeqCst, both: see "Emptiness". The head first: it does not pass the tail, so if they are equal there was
        // nothing when the tail was read.
        let head = self.head.index.load(Ordering::SeqCst);
        let tail = self.tickets.load(Ordering::SeqCst);
        tail.wrapping_sub(head) as i64 <= 0
    }
}

impl<T, M: Memory, const SLOTS: usize> Drop for Injector<T, M, SLOTS> {
    fn drop(&mut self) {
        /// Goes on with the others if a destructor panics.
        struct Rest<'a, T, M: Memory, const SLOTS: usize>(&'a Injector<T, M, SLOTS>);
        impl<T, M: Memory, const SLOTS: usize> Drop for Rest<'_, T, M, SLOTS> {
            fn drop(&mut self) {
                self.0.drop_all();
            }
        }
        let rest = Rest(self);
        rest.0.drop_all();
    }
}

impl<T, M: Memory, const SLOTS: usize> Default for Injector<T, M, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, M: Memory, const SLOTS: usize> fmt::Debug for Injector<T, M, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thief that skips the slot of a slow push and is stopped before it moves the head keeps nobody from stealing, even when
    /// the push has taken its task back meanwhile, and the block has been given back.
    #[test]
    fn a_thief_that_stops_between_its_steps_stops_nobody() {
        let injector = Injector::<u32, Machine, 1>::new();
        // A push takes ticket 0; a thief skips the slot, and stops.
        let place = injector.place_of(0).unwrap().unwrap();
        assert_eq!(injector.tickets.fetch_add(1, Ordering::Relaxed), 0);
        let block = injector.chain.block(place);
        block.slot(0).state.store(skipped(0), Ordering::Relaxed);
        // The push goes on.
        assert_eq!(injector.put(0, block, 7), Err(7));
        injector.push(7);
        injector.push(8);
        let stolen: Vec<_> = (0..9).filter_map(|_| injector.steal().success()).collect();
        assert_eq!(stolen, [7, 8]);
    }
}
