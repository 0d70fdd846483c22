//! An injector: a first-in, first-out queue into which any thread pushes and from which any thread
//! steals.
//!
//! Source: the role is crossbeam-deque's `Injector`, and so are the blocks of slots, each with a state. That a
//! slow push is skipped is Morrison and Afek's LCRQ (*Fast Concurrent Queues for x86 Processors*, 2013).
//! The chain and its memory are ours (`chain`).
//!
//! # How it works
//!
//! Tasks have indices; those from `index` (the head) up to `tickets` are in the queue or about to be. Index
//! `i` stands in slot `i mod SLOTS` of block `i / SLOTS`. A slot's state names the index that it is about:
//!
//! | state | value | meaning |
//! |---|---|---|
//! | older | below `2 i + 1` | nothing of index `i` yet |
//! | written | `2 i + 1` | the task of index `i` is there |
//! | skipped | `2 i + 2` | a thief does not wait for the push of index `i` |
//!
//! | | pusher | thief |
//! |---|---|---|
//! | 1 | compares and swaps `tickets` from `i` to `i + 1` | reads the head `i`; if no ticket above is `known`, goes to 5 first |
//! | 2 | writes the task to the slot | reads the slot's state: if that is older, it goes to 5 |
//! | 3 | compares and swaps the state from older to *written* | compares and swaps the head from `i` to `i + 1` |
//! | 4 | if it was *skipped*, takes the task back and starts again | if it was *written*, moves the task out |
//! | 5 | | full fence; reads `tickets`: if that is `i`, the queue is empty |
//! | 6 | | looks at the slot a number of times, then compares and swaps its state from older to *skipped*, and goes to 3 |
//!
//! A thief that knows of a ticket touches nothing that pushers write but the slot. Whoever has no more use for a slot
//! (the thief in step 4, or the pusher) adds 1 to the block's `done`, and whoever completes that gives the block back.
//!
//! # Why it is correct
//!
//! *A task comes out once.* A state is older until one exchange makes it *written* or *skipped*, and then stays
//! until the block is used again. The head passes `i` by one exchange, after that. If the state is *written*, whoever made the
//! exchange has the task; if it is *skipped*, the pusher takes the task back, and nobody else looks at it.
//!
//! *Handing over.* Step 3 of the pusher releases, step 2 of the thief acquires: the thief sees the task. A slot
//! is written again only when its block has been given back, after all its slots were `done`, which the
//! link to its next use hands on; `done` releases and acquires.
//!
//! *Stale blocks.* A thread that was stopped between two steps may look at memory that is another block by now.
//! That memory stays (see `chain`), a state names its index, and each exchange of `index` or of a state
//! expects a value that cannot come again.
//!
//! # Emptiness
//!
//! Who pushes a task and then looks for sleepers, and who announces itself a sleeper and then looks for tasks, must
//! not both see nothing. Step 1 is sequentially consistent and so are the loads of
//! [`is_empty`](Injector::is_empty) and [`len`](Injector::len); a steal says `Empty` only after the fence of step 5. So a
//! push followed by a `SeqCst` load, or by a fence, is seen by whoever came the other way, as with crossbeam's.

mod batch;
mod chain;

use core::fmt;
use core::mem::MaybeUninit;

use poach_memory::{CachePadded, Cell, Machine, Memory, Ordering, Word};

use crate::ring::{NoMemory, check_capacity};
use crate::{CapacityError, OutOfMemory, Owner, Steal};
pub(crate) use batch::Batch;
use chain::{Chain, Place};

/// Slots of a block.
const BLOCK: usize = 64;

/// How often a thief looks at a slot whose push has begun before it skips the slot: some microseconds. A push has
/// a few instructions left there, unless its thread has lost the processor.
const PATIENCE: u32 = 200;

/// The logarithm of the longest wait of a push after another one was faster.
const LONGEST: u32 = 6;

/// A queue that all threads share by reference.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Injector::push), [`try_push`](Injector::try_push) | lock-free, but for the allocator | two compare-and-swaps |
/// | [`steal`](Injector::steal), [`steal_half`](Injector::steal_half) | lock-free: `Retry` means that another thread got a task | one compare-and-swap and one addition, for a batch as well |
///
/// A push whose thread is stopped between its two steps keeps nobody from stealing what was pushed after it: a thief
/// looks a number of times and then skips it, and the push starts again. (So a push and the thieves could keep each other
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
    head: CachePadded<Head<M>>,
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
struct Head<M: Memory> {
    index: M::Word,
    /// What a thief has read of `tickets`, some time ago: they are this many at least.
    known: M::Word,
    /// The place of the block of `index` or of one before it. A block is not given back while this names it.
    hint: M::Word,
}

// SAFETY: tasks are handed from the thread that pushes to the one that steals, as the module comment
// argues, and never shared; all else is words.
unsafe impl<T: Send, M: Memory, const SLOTS: usize> Sync for Injector<T, M, SLOTS> {}
// SAFETY: as above.
unsafe impl<T: Send, M: Memory, const SLOTS: usize> Send for Injector<T, M, SLOTS> {}

fn written(index: u64) -> u64 {
    index.wrapping_mul(2).wrapping_add(1)
}

fn skipped(index: u64) -> u64 {
    index.wrapping_mul(2).wrapping_add(2)
}

/// Another push was faster; whoever is left alone for a while pushes several tasks.
#[cold]
fn back_off<M: Memory>(failures: &mut u32) {
    for _ in 0..1 << *failures {
        M::pause();
    }
    *failures = (*failures + 1).min(LONGEST);
}

/// What a thief finds at the head.
enum Front {
    /// A task, at this index and place.
    Task(u64, Place),
    Empty,
    /// To be looked at again: the task has come, or the hint has moved on to the block of the head.
    Again,
    /// Another thread was in the way.
    Lost,
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
                known: M::Word::new(0),
                hint: M::Word::new(first.word()),
            }),
            rare: CachePadded::new(Rare {
                tail: M::Word::new(first.word()),
                oldest: M::Word::new(first.word()),
            }),
            chain,
            patience: PATIENCE,
        })
    }

    /// The same with another number of looks at a slot whose push has begun, before a thief skips it.
    #[must_use]
    pub fn with_patience(mut self, looks: u32) -> Self {
        self.patience = looks;
        self
    }
}

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
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
        let mut task = task;
        let mut failures = 0;
        loop {
            // Relaxed: validated by the exchange. The place is found first: with an index there is no way back.
            let index = self.tickets.load(Ordering::Relaxed);
            let place = match self.place_of(index) {
                Ok(Some(place)) => place,
                Ok(None) => continue,
                Err(NoMemory) => return Err(OutOfMemory(task)),
            };
            let next = index.wrapping_add(1);
            // SeqCst: see "Emptiness".
            let taken =
                self.tickets.compare_exchange(index, next, Ordering::SeqCst, Ordering::Relaxed);
            if taken.is_ok() {
                match self.put(index, place, task) {
                    Ok(()) => return Ok(()),
                    Err(back) => task = back,
                }
            } else {
                back_off::<M>(&mut failures);
            }
        }
    }

    /// Writes the task of a ticket, or has it back if a thief has skipped the slot.
    #[inline(always)]
    fn put(&self, index: u64, place: Place, task: T) -> Result<(), T> {
        let slot = self.chain.slot(place, index);
        slot.task.with_mut(|there| {
            // SAFETY: the index is this thread's alone, and nobody reads the slot before it is *written*; who read
            // it for an earlier block has given that back.
            unsafe { there.write(MaybeUninit::new(task)) };
        });
        // Relaxed: the exchange decides.
        let seen = slot.state.load(Ordering::Relaxed);
        // Release: pairs with the acquire in `front`, which then sees the task.
        if seen != skipped(index)
            && slot
                .state
                .compare_exchange(seen, written(index), Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            return Ok(());
        }
        Err(self.take_back(index, place))
    }

    /// A thief has skipped the slot: nobody but its pusher uses it any more.
    #[cold]
    #[inline(never)]
    fn take_back(&self, index: u64, place: Place) -> T {
        let slot = self.chain.slot(place, index);
        // SAFETY: this thread wrote the task there, and as the state is *skipped* nobody else reads it.
        let task = slot.task.with(|there| unsafe { there.read() });
        self.finish(place, 1);
        // SAFETY: written above by `put`.
        unsafe { task.assume_init() }
    }

    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        self.claim(|| 1).map(|mut one| match one.next() {
            Some(task) => task,
            None => unreachable!("a claim has a task at least"),
        })
    }

    /// Takes half of the tasks, at least one, but none beyond the end of a block: returns the oldest and
    /// pushes the others to `into`.
    pub fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        let half = || self.estimate().div_ceil(2);
        match self.claim(half) {
            Steal::Success(mut claimed) => {
                let first = claimed.next();
                for task in claimed {
                    into.push(task);
                }
                first.map_or(Steal::Empty, Steal::Success)
            }
            Steal::Empty => Steal::Empty,
            Steal::Retry | Steal::Abort => Steal::Retry,
        }
    }
}

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
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
                _ => at = self.chain.next(at, true)?.unwrap_or_else(|| self.oldest()),
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

    fn oldest(&self) -> Place {
        // Acquire: pairs with the release in `give_back`.
        Place::from(self.rare.oldest.load(Ordering::Acquire))
    }

    /// Steps 1, 2, 5 and 6 of a thief.
    #[inline]
    fn front(&self) -> Front {
        // Acquire: whoever moved the head here had seen a ticket above it; so must this thread, in step 5.
        let index = self.head.index.load(Ordering::Acquire);
        // Relaxed: a number that was right once, and tickets only become more.
        if self.head.known.load(Ordering::Relaxed) == index && self.nothing_from(index) {
            return Front::Empty;
        }
        // Acquire: pairs with the release in `step`.
        let place = Place::from(self.head.hint.load(Ordering::Acquire));
        if place.distance_to(Chain::<T, M, SLOTS>::number(index)) != 0 {
            return self.step(index, place);
        }
        // Acquire: pairs with the release in `put`.
        let state = self.chain.slot(place, index).state.load(Ordering::Acquire);
        if state == written(index) {
            Front::Task(index, place)
        } else {
            self.wait(index, place, state)
        }
    }

    /// The hint does not stand at the block of the head: moves it on.
    #[cold]
    #[inline(never)]
    fn step(&self, index: u64, hint: Place) -> Front {
        if hint.distance_to(Chain::<T, M, SLOTS>::number(index)) < 0 {
            // The head was read before it moved on.
            return Front::Lost;
        }
        let next = match self.chain.next(hint, false) {
            Ok(None) if self.nothing_from(index) => return Front::Empty,
            // The push to the first slot of the next block is under way: its block can be made for it.
            Ok(None) => self.chain.next(hint, true),
            found => found,
        };
        match next {
            Ok(Some(next)) => {
                self.lead(hint, next);
                Front::Again
            }
            // The hint was stale, or the pusher, too, finds no memory, and ends the program.
            Ok(None) | Err(NoMemory) => Front::Lost,
        }
    }

    fn lead(&self, hint: Place, next: Place) {
        // Release: as in `walk`. If the exchange fails another thread has moved the hint on.
        let _ = self.head.hint.compare_exchange(
            hint.word(),
            next.word(),
            Ordering::Release,
            Ordering::Relaxed,
        );
    }

    /// Step 5: whether there was no ticket for `index` or above. Only for an index at which the head has been.
    #[inline]
    fn nothing_from(&self, index: u64) -> bool {
        // Relaxed, here and below: a number alone.
        let mut tickets = self.tickets.load(Ordering::Relaxed);
        if tickets == index {
            // Pairs with step 1 of the push, or a fence after it: see "Emptiness".
            M::full();
            tickets = self.tickets.load(Ordering::Relaxed);
        }
        if tickets.wrapping_sub(index) as i64 <= 0 {
            return true;
        }
        // Relaxed: a number, and an older one does no harm.
        self.head.known.store(tickets, Ordering::Relaxed);
        false
    }

    /// Steps 5 and 6: the slot at the head is not *written*.
    #[cold]
    #[inline(never)]
    fn wait(&self, index: u64, place: Place, mut state: u64) -> Front {
        let slot = self.chain.slot(place, index);
        let older = |state: u64| (state.wrapping_sub(written(index)) as i64) < 0;
        if older(state) {
            if self.nothing_from(index) {
                return Front::Empty;
            }
            for _ in 0..self.patience {
                M::pause();
                // Relaxed: the caller looks again.
                state = slot.state.load(Ordering::Relaxed);
                if !older(state) {
                    return Front::Again;
                }
            }
            // Relaxed, both: nothing is handed over. If the exchange fails the push was faster.
            let skip = skipped(index);
            match slot.state.compare_exchange(state, skip, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => state = skip,
                Err(_) => return Front::Again,
            }
        }
        if state == skipped(index) {
            // If this fails another thief has stepped over it.
            let _ = self.move_head(index, 1);
        }
        Front::Lost
    }

    #[inline(always)]
    fn move_head(&self, index: u64, count: u64) -> bool {
        // SeqCst: `is_empty` has its place in one order with it. Release: as in `front`.
        self.head
            .index
            .compare_exchange(index, index.wrapping_add(count), Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Claims as many of the oldest tasks as `want` says, but one at least and none beyond the end of the block.
    #[inline]
    pub(crate) fn claim(&self, want: impl FnOnce() -> u64) -> Steal<Batch<'_, T, M, SLOTS>> {
        let (index, place) = loop {
            match self.front() {
                Front::Task(index, place) => break (index, place),
                Front::Empty => return Steal::Empty,
                Front::Lost => return Steal::Retry,
                Front::Again => {}
            }
        };
        let most = want().min(SLOTS as u64 - index % SLOTS as u64);
        let mut count = 1;
        while count < most {
            let next = index.wrapping_add(count);
            // Acquire: as in `front`.
            if self.chain.slot(place, next).state.load(Ordering::Acquire) != written(next) {
                break;
            }
            count += 1;
        }
        if self.move_head(index, count) {
            Steal::Success(Batch::new(self, place, index, count))
        } else {
            Steal::Retry
        }
    }

    /// `count` slots of the block are of no more use.
    #[inline]
    fn finish(&self, place: Place, count: u64) {
        if self.chain.done(place, count) {
            self.give_back();
        }
    }

    /// Gives back the oldest blocks, as far as all their slots are done; so the head is beyond them.
    ///
    /// In order: the blocks from `oldest` on are linked, and the push of an old ticket finds its own. Of two threads
    /// that complete two blocks at once one sees both, since `done` is in one order with the look at it.
    #[cold]
    #[inline(never)]
    fn give_back(&self) {
        loop {
            let oldest = self.oldest();
            if !self.chain.is_done(oldest) {
                return;
            }
            // Without memory for the next block this one stays, until the next one is done.
            let Ok(next) = self.chain.next(oldest, true) else { return };
            // None: another thread has given it back.
            let Some(next) = next else { continue };
            // Acquire: pairs with the release in `lead`.
            let hint = Place::from(self.head.hint.load(Ordering::Acquire));
            if hint == oldest {
                // A thief that starts from a hint must find the chain there.
                self.lead(hint, next);
            }
            // Release: pairs with the acquire in `oldest`.
            let passed = self.rare.oldest.compare_exchange(
                oldest.word(),
                next.word(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if passed.is_ok() {
                self.chain.retire(oldest);
            }
        }
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

    /// About how many tasks there are.
    pub(crate) fn estimate(&self) -> u64 {
        // Relaxed, both: an estimate.
        let head = self.head.index.load(Ordering::Relaxed);
        let tail = self.tickets.load(Ordering::Relaxed);
        u64::try_from(tail.wrapping_sub(head) as i64).unwrap_or(0)
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

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
    fn drop_all(&self) {
        while let Steal::Success(mut one) = self.claim(|| 1) {
            drop(one.next());
        }
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
