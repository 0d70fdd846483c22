//! An injector: a first-in, first-out queue into which any thread pushes and from which any thread
//! steals.
//!
//! Source: the role is crossbeam-deque's `Injector`, and so are the blocks of slots, each with a
//! state. That a slow push is skipped is Morrison and Afek's LCRQ (*Fast Concurrent Queues for x86
//! Processors*, 2013). The chain and its memory are ours (`chain`), and so is the word `finished`,
//! which `ring` has too.
//!
//! # How it works
//!
//! Tasks have indices; those from `index` (the head) up to `tickets` are in the queue or about to
//! be. Index `i` stands in slot `i mod SLOTS` of block `i / SLOTS`. A slot's state names the index
//! that it is about:
//!
//! | state | value | meaning |
//! |---|---|---|
//! | older | below `4 i + 1` | nothing of index `i` yet |
//! | written | `4 i + 1` | the task of index `i` is there |
//! | decided | `4 i + 2` | index `i` was contested, and the receiver of its task is decided |
//! | marked | `4 i + 3` | no thread will use the slot for index `i` any more |
//!
//! | | pusher | thief |
//! |---|---|---|
//! | 1 | compares and swaps `tickets` from `i` to `i + 1` | reads the head: `i`, and whether that is *contested* |
//! | 2 | writes the task to the slot | reads the slot's state: if that is older, it goes to 5 |
//! | 3 | stores the state *written* | compares and swaps the head from `i` to `i + 1`; if `i` is contested, the state from *written* to *decided* and then the head |
//! | 4 | [`StoreLoad::owner`] | if its first exchange succeeded, moves the task out |
//! | 5 | reads in the block whether `i` is contested; if not, it is done | reads `tickets`; if that is `i`: full fence, reads `tickets` again; if that is `i`, the queue is empty |
//! | 6 | compares and swaps the state from *written* to *decided*; if that fails, a thief has the task, and it is done | waits for the slot for a while, then compares and swaps the head from `i` to `i`, contested |
//! | 7 | compares and swaps the head from contested `i` to `i + 1`, takes the task back and starts again | says in the block, by an exchange, that `i` is contested |
//! | 8 | | [`StoreLoad::try_thief`]; without the fence no more |
//! | 9 | | reads the state: if that is *written*, it starts again |
//! | 10 | | skips: compares and swaps the head from contested `i` to `i + 1` |
//!
//! A thief that finds tasks reads nothing that pushers write but the slots.
//!
//! *Finishing.* The last user of a slot (the thief after step 4, or the pusher after its step 7)
//! finishes its index. All indices below the word `finished` are finished. A thread that finishes
//! the very index at `finished` moves the word past its claim, by a plain store; any other thread
//! marks its slots. A push that needs a block moves the word over the marks of the oldest block,
//! and gives that block back if the word has passed all of it.
//!
//! # Why it is correct
//!
//! *A task comes out once.* If the head passes `i` from a word that is not contested, the thief
//! whose exchange it was has the task. The pusher does not take it back: the block says that `i` is
//! contested (step 7) only after the head said so (step 6), and then that exchange would have
//! failed. If the head was contested, the thread that makes the state *decided* has the task, a
//! thief or the pusher, and a move of the head gives the task to no thread.
//!
//! *No task is lost.* A thief skips `i` only if it has read in step 9 that the state is not
//! *written*. If it is decided, somebody has the task. If it is older, the pusher reads in step 5,
//! by the policy, that `i` is contested, and takes its task back, unless a thief has taken it
//! meanwhile. A pusher that reads nothing of it has shown its task to all thieves that come to
//! step 9.
//!
//! *The bits are of one block.* The word that has the bits has the number of the block too, since
//! the memory may be another block when a thief comes to step 7, or a pusher to step 5. The thief's
//! exchange then fails; and the pusher's index was finished, so its task was taken.
//!
//! *The word `finished`* passes no index that is not finished. Each index has one finisher, which
//! either stores or marks. It stores if it has read the word at its own index. Then no other thread
//! stores: the word is moved by the finisher of the index at which it stands, or from a marked
//! index, by an exchange.
//!
//! *Nobody is kept waiting by a thread that stops.* The head has passed an index before that is
//! finished, so the block of the head is not given back. An index at the head that is contested is
//! passed by any thief, which makes steps 7 to 10 itself.
//!
//! *Handing over.* Step 3 of the pusher releases, step 2 of the thief acquires: the thief sees the
//! task. A slot is written again only when its block has been given back, after `finished` has
//! passed all its indices. That word and the marks are released after the last use of the slots and
//! acquired before the block is given back, which the link to its next use hands on.
//!
//! *Stale blocks.* A thread that was stopped between two steps may look at memory that is another
//! block by now. That memory stays (see `chain`), a state names its index, and each exchange of
//! `index` or of a state expects a value that cannot come again. So a thief that finds index `i`
//! *written* in any slot has found the slot of `i`, and may look for it in whatever block it takes
//! for the right one. (A contested index is decided before it is finished, so the state of none
//! stays *written* in a block that is used again.)
//!
//! # Emptiness
//!
//! A thread that pushes a task and then looks for sleepers, and a thread that announces itself a
//! sleeper and then looks for tasks, must not both see nothing. Step 1 is sequentially consistent
//! and so are the loads of [`is_empty`](Injector::is_empty) and [`len`](Injector::len); a steal
//! says `Empty` only after the fence of step 5. So a push followed by a `SeqCst` load, or by a
//! fence, is seen by a thread that came the other way, as with crossbeam's.
//!
//! # Distance
//!
//! A thief that takes each task as it comes makes the pushers wait for the cache lines of `tickets`
//! and of the slots, several times as long as a push takes. So a thief that has met a push between
//! its steps 1 and 3 sets a `pace`. From then on a thief that knows of fewer than `NEAR` tickets
//! above the head waits that many pauses before it reads `tickets` again. So does a thief of a
//! batch that knows of fewer than it may take, up to `ENOUGH`. The pace doubles until `ENOUGH`
//! tasks come in meanwhile, and is 0 again when none has come. It is bounded, and says nothing
//! about what a thief then finds.
//!
//! A push to slot `AHEAD` makes the block after its own and asks for all its cache lines, which
//! thieves have read when that memory was last in use. A push whose exchange of `tickets` fails has
//! the line of that word in its cache now, and its value, which it tries without another load,
//! which would share the line again. If that fails too it keeps away from the line for as long as
//! others take for many pushes (`waits`), and so does a thief whose exchange of the head fails, for
//! fewer.

mod batch;
mod chain;
mod finish;
mod steal;
mod waits;

use core::fmt;
use core::mem::MaybeUninit;

use poach_memory::{
    Asymmetric, CachePadded, Cell, Machine, Memory, Ordering, Pointer, StoreLoad, Word,
};

use crate::CapacityError;
use crate::pacing::injector::{AHEAD, BLOCK, PATIENCE};
use crate::ring::{NoMemory, check_capacity};
use crate::traits::OutOfMemory;
pub(crate) use batch::Batch;
use chain::{Block, Chain, Place, Slot};
use waits::Waits;

/// A queue that all threads share by reference.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Injector::push), [`try_push`](Injector::try_push) | lock-free, but for the allocator | one compare-and-swap, and that of [`Asymmetric`] |
/// | [`steal`](Injector::steal), [`steal_half`](Injector::steal_half) | lock-free: `Retry` means that another thread got a task | one compare-and-swap, for a batch as well; that of [`Asymmetric`] for a push that does not end |
///
/// A push whose thread is stopped between its steps keeps nobody from stealing what was pushed
/// after it: a thief waits a little and then skips it, and the push starts again. (So a push and
/// the thieves could keep each other from ending, if each attempt of the push were stopped for some
/// microseconds.)
///
/// Memory that tasks stood in is used again, and freed with the injector. At most 2^30 tasks are in
/// it at a time (2^24 blocks of `SLOTS`).
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
    policy: Asymmetric<M>,
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
    /// The index of the oldest task, twice; and 1 more if that is contested.
    index: M::Word,
    /// Where thieves look first: the memory of some block; most often that of the head.
    block: M::Pointer<Block<T, M, SLOTS>>,
    /// The place of the block of `index` or of one before it. A block is not given back while this
    /// names it.
    hint: M::Word,
    /// What a thief has read of `tickets`, some time ago: they are this many at least.
    known: M::Word,
    /// For how many pauses of the processor a thief lets the pushers get ahead; see "Distance".
    pace: M::Word,
}

// SAFETY: tasks are handed from the thread that pushes to the one that steals, as the module
// comment argues, and never shared; all else is words.
unsafe impl<T: Send, M: Memory, const SLOTS: usize> Sync for Injector<T, M, SLOTS> {}
// SAFETY: tasks are handed from thread to thread, and never shared; all else is words.
unsafe impl<T: Send, M: Memory, const SLOTS: usize> Send for Injector<T, M, SLOTS> {}

#[inline(always)]
fn written(index: u64) -> u64 {
    index.wrapping_mul(4).wrapping_add(1)
}

#[inline(always)]
fn decided(index: u64) -> u64 {
    index.wrapping_mul(4).wrapping_add(2)
}

#[inline(always)]
fn marked(index: u64) -> u64 {
    index.wrapping_mul(4).wrapping_add(3)
}

/// The word `head` at an index. Indices stay below 2^63.
#[inline(always)]
fn open(index: u64) -> u64 {
    index.wrapping_mul(2)
}

/// The same, when thieves want to skip it.
#[inline(always)]
fn contested(index: u64) -> u64 {
    index.wrapping_mul(2) | CONTESTED
}

const CONTESTED: u64 = 1;

/// The index of the word `head`.
#[inline(always)]
fn index_of(head: u64) -> u64 {
    head / 2
}

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
    /// An empty injector. Ends the program if there is no memory for a block of 64 tasks.
    pub fn new() -> Self {
        match Self::with_capacity(SLOTS) {
            Ok(injector) => injector,
            Err(_) => crate::traits::out_of_memory::<T>(),
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
            policy: Asymmetric::new(),
        })
    }

    /// The same with another number of pauses for which a thief waits for a push that has begun,
    /// before it skips the slot. After a lost exchange it waits no longer than that, either.
    #[must_use]
    pub fn with_patience(mut self, pauses: u32) -> Self {
        self.patience = pauses;
        self
    }

    /// Adds a task. Ends the program if there is no memory for a block, as `Vec` does.
    #[inline]
    pub fn push(&self, task: T) {
        if self.try_push(task).is_err() {
            crate::traits::out_of_memory::<T>();
        }
    }

    /// Adds a task.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if there is no memory for a block.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        // Relaxed: validated by the exchange. The block is found first: with an index there is no
        // way back.
        let index = self.tickets.load(Ordering::Relaxed);
        // Acquire: as in `place_of`.
        let place = Place::from(self.rare.tail.load(Ordering::Acquire));
        if place.distance_to(Chain::<T, M, SLOTS>::number(index)) != 0 {
            return self.push_slowly(task, index);
        }
        // Before the exchange, until whose end a processor begins no load that comes after it.
        let block = self.chain.block(place);
        match self.take_ticket(index) {
            Ok(()) => match self.put(index, place, block, task) {
                Ok(()) => Ok(()),
                Err(task) => self.push_slowly(task, index),
            },
            Err(now) => self.push_slowly(task, now),
        }
    }

    /// Step 1 of a push: the tickets as they are, if they are not `index`.
    #[inline(always)]
    fn take_ticket(&self, index: u64) -> Result<(), u64> {
        let next = index.wrapping_add(1);
        // SeqCst: see "Emptiness".
        let taken = self.tickets.compare_exchange(index, next, Ordering::SeqCst, Ordering::Relaxed);
        taken.map(|_| ())
    }

    /// A push that needs another block, or has met other threads.
    #[cold]
    #[inline(never)]
    fn push_slowly(&self, task: T, index: u64) -> Result<(), OutOfMemory<T>> {
        let (mut task, mut index, mut waits) = (task, index, Waits::new());
        loop {
            let place = match self.place_of(index) {
                Ok(Some(place)) => place,
                Ok(None) => {
                    // Others were faster. Relaxed, here and below: as above.
                    waits.wait::<M>();
                    index = self.tickets.load(Ordering::Relaxed);
                    continue;
                }
                Err(NoMemory) => return Err(OutOfMemory(task)),
            };
            if let Err(now) = self.take_ticket(index) {
                index = now;
                waits.lost::<M>();
                continue;
            }
            match self.put(index, place, self.chain.block(place), task) {
                Ok(()) => return Ok(()),
                Err(back) => task = back,
            }
            index = self.tickets.load(Ordering::Relaxed);
        }
    }

    /// The other steps of a push: the task again if a thief has skipped the slot.
    #[inline(always)]
    fn put(&self, index: u64, place: Place, block: &Block<T, M, SLOTS>, task: T) -> Result<(), T> {
        let slot = block.slot(index);
        slot.task.with_mut(|there| {
            // SAFETY: the index is this thread's alone, and nobody reads the slot before it is
            // *written*; who read it for an earlier block has given that back.
            unsafe { there.write(MaybeUninit::new(task)) };
        });
        // Release: pairs with the acquire in `front`, which then sees the task.
        slot.state.store(written(index), Ordering::Release);
        self.policy.owner();
        if block.is_contested(place.number(), index) {
            return self.take_back(index, block);
        }
        if SLOTS > AHEAD && index as usize % SLOTS == AHEAD {
            self.prepare(place);
        }
        Ok(())
    }

    /// Makes the block after `place`, and asks for its cache lines, which take as long to come from
    /// another processor as some pushes. Without memory for it, the push that needs it says so.
    #[cold]
    #[inline(never)]
    fn prepare(&self, place: Place) {
        if let Ok(Some(next)) = self.next(place) {
            let block = self.chain.block(next);
            for index in (0..SLOTS as u64).step_by((64 / size_of::<Slot<T, M>>()).max(1)) {
                M::will_write(block.slot(index));
            }
        }
    }

    /// Steps 6 and 7: the index is contested, and this is the task again, if no thief has taken it.
    #[cold]
    #[inline(never)]
    fn take_back(&self, index: u64, block: &Block<T, M, SLOTS>) -> Result<(), T> {
        let slot = block.slot(index);
        // Relaxed, both: this thread wrote the task, and a thief that took it needs nothing of this
        // one.
        let decided = slot.state.compare_exchange(
            written(index),
            decided(index),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if decided.is_err() {
            return Ok(());
        }
        // A head that stays here, because the thief was stopped, would be left behind by its block.
        // If the exchange fails the head has passed `index`.
        let _ = self.move_head(contested(index), 1);
        // SAFETY: this thread wrote the task there, and as it has made the state *decided* nobody
        // else reads it.
        let task = slot.task.with(|there| unsafe { there.read() });
        self.finish(block, index, 1);
        // SAFETY: written above by `put`.
        Err(unsafe { task.assume_init() })
    }

    /// The place of the block of `index`, made if need be: `None` if there are tickets of a later
    /// block, so that `index` is no longer to be had.
    #[inline(always)]
    fn place_of(&self, index: u64) -> Result<Option<Place>, NoMemory> {
        let number = Chain::<T, M, SLOTS>::number(index);
        // Acquire: pairs with the release in `walk`.
        let hint = Place::from(self.rare.tail.load(Ordering::Acquire));
        if hint.distance_to(number) == 0 { Ok(Some(hint)) } else { self.walk(hint, number) }
    }

    /// Goes along the chain to block `number`, and leaves a hint there. A hint names the block of
    /// an index that was read from `tickets`. So if it is ahead of `number`, the index of that
    /// was taken after it was read; to go there from the oldest block would take as long as the
    /// queue has blocks.
    #[cold]
    #[inline(never)]
    fn walk(&self, hint: Place, number: u64) -> Result<Option<Place>, NoMemory> {
        if hint.distance_to(number) < 0 {
            return Ok(None);
        }
        let mut at = hint;
        loop {
            match at.distance_to(number) {
                0 => break,
                ahead if ahead < 0 => return Ok(None),
                // A hint can be so old that its block is another by now.
                _ => at = self.next(at)?.unwrap_or_else(|| self.oldest()),
            }
        }
        if hint.distance_to(number) > 0 {
            // Release: a thread that starts from this hint sees what was done to the block before
            // it was linked. If the exchange fails another thread has left a hint.
            let _ = self.rare.tail.compare_exchange(
                hint.word(),
                at.word(),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
        Ok(Some(at))
    }

    /// The block after `at`, made if need be: of memory that is given back here, if there is any.
    /// `None` if `at` is stale.
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

    /// The number of tasks, and of pushes that have begun. An estimate: see
    /// [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        loop {
            // SeqCst, all: see "Emptiness".
            let tail = self.tickets.load(Ordering::SeqCst);
            let head = index_of(self.head.index.load(Ordering::SeqCst));
            if self.tickets.load(Ordering::SeqCst) == tail {
                return usize::try_from(tail.wrapping_sub(head) as i64).unwrap_or(0);
            }
        }
    }

    /// Whether there is no task, and no push that has begun.
    pub fn is_empty(&self) -> bool {
        // SeqCst, both: see "Emptiness". The head first: it does not pass the tail, so if they are
        // equal there was nothing when the tail was read. Neither reaches 2^63, so they are
        // compared as they are.
        let head = index_of(self.head.index.load(Ordering::SeqCst));
        let tail = self.tickets.load(Ordering::SeqCst);
        tail <= head
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

/// Explores `body` with two preemptions, or as many as `LOOM_MAX_PREEMPTIONS` says.
#[cfg(all(test, not(miri)))] // Miri cannot use loom's stacks.
fn explore(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_what_was_asked_for() {
        assert_eq!(Injector::<u32>::new().with_patience(7).patience, 7);
    }

    /// It has read the tickets long ago: their block is another one by now.
    #[test]
    fn a_push_that_was_stopped_before_its_ticket_comes_after_the_others() {
        let injector = Injector::<u32, Machine, 1>::new();
        for task in 0..4 {
            injector.push(task);
            assert_eq!(injector.steal().success(), Some(task));
        }
        assert!(injector.oldest().number() > 0);
        injector.push_slowly(7, 0).unwrap();
        assert_eq!(injector.steal().success(), Some(7));
    }

    #[test]
    fn pushes_find_the_hint_at_the_last_block() {
        let injector = Injector::<u32, Machine, 2>::new();
        for task in 0..9 {
            injector.push(task);
            let hint = Place::from(injector.rare.tail.load(Ordering::Relaxed));
            assert_eq!(hint.number(), u64::from(task) / 2);
        }
    }

    /// A push that has taken ticket 0 and is stopped, and a thief that contests it and is stopped.
    fn contested_at_0(told: bool) -> (Injector<u32, Machine, 1>, Place) {
        let injector = Injector::<u32, Machine, 1>::new();
        let place = injector.place_of(0).unwrap().unwrap();
        assert_eq!(injector.take_ticket(0), Ok(()));
        injector.head.index.store(contested(0), Ordering::Relaxed);
        assert!(!told || injector.chain.block(place).contest(0, 0));
        (injector, place)
    }

    /// It keeps nobody from stealing, even when the push has taken its task back meanwhile, and the
    /// block has been given back.
    #[test]
    fn a_thief_that_stops_between_its_steps_stops_nobody() {
        let (injector, place) = contested_at_0(true);
        assert_eq!(injector.put(0, place, injector.chain.block(place), 7), Err(7));
        assert_eq!(injector.finished.load(Ordering::Relaxed), 1);
        injector.push(7);
        injector.push(8);
        let stolen: Vec<_> = (0..9).filter_map(|_| injector.steal().success()).collect();
        assert_eq!(stolen, [7, 8]);
    }

    /// The same where the thief has not come to tell the push: then the task is in the queue, and
    /// comes out once.
    #[test]
    fn a_push_that_was_not_told_is_not_skipped() {
        let (injector, place) = contested_at_0(false);
        assert_eq!(injector.put(0, place, injector.chain.block(place), 7), Ok(()));
        injector.push(8);
        let stolen: Vec<_> = (0..9).filter_map(|_| injector.steal().success()).collect();
        assert_eq!(stolen, [7, 8]);
    }

    /// The memory of a block that is used again says nothing of the block before.
    #[test]
    fn a_contest_is_of_one_block() {
        let (injector, place) = contested_at_0(true);
        let block = injector.chain.block(place);
        assert!(block.is_contested(0, 0) && !block.is_contested(1, 1));
        assert!(!block.contest(1, 1) && !block.is_contested(1, 1));
        assert_eq!(injector.put(0, place, injector.chain.block(place), 7), Err(7));
        for task in 0..9 {
            injector.push(task);
            assert_eq!(injector.steal().success(), Some(task));
        }
    }
}
