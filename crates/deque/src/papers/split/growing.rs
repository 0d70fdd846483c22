//! The split deque as one of the family: any task, any number of them, [`Owner`] and [`Thief`].
//!
//! Source: as [`Stack`](super::Stack); the tasks lie in the growing ring of [`ring`](crate::ring).
//!
//! # How it works
//!
//! The tasks between the split and the owner's head are private. A push writes a task, stores the
//! head above it, and compares that with one word that others write, the *split request*. A pop
//! stores the head below the task, compares that, and takes the task. The request stands at the
//! split, so that a head that comes down to it stops there. A thief that finds nothing shared
//! raises it above any head, and so stops the owner at its next push or pop. The owner then shares
//! the older half of its tasks. At the split it takes the younger half of the shared tasks back.
//! [`sharing`](super::sharing) says how requests are raised and answered, and how a thief exposes
//! private tasks: it sees them by the head.
//!
//! # Why it is correct
//!
//! [`Bounds`](super::Bounds) decides which thread takes an index: a thief steps the tail over it,
//! or the owner pulls the split below it, both by a compare-and-swap of one word. Hence no fence
//! policy. Above the split an index is the owner's, if it has compared its head with the request,
//! or settled: see `sharing`, "Exposure".
//!
//! A claimed index is copied and marked as `ring` says, which asks for two things. First, what the
//! owner wrote must be visible to the claim. If the owner has shared the index, `share` releases
//! and a claim acquires. If a thief has exposed it, that thief has acquired a head above the index.
//! Each store of the head releases, those of pops too, since a thief may see a task by the head
//! that a pop of the task above has left. Second, a thief that claims an index pushed after the
//! ring was exchanged must see the new ring. It does, since the share came later than the exchange,
//! and so did the head that an exposing thief has acquired. `Bounds` hands out indices in 32 bits,
//! which is all that a ring needs to know of them.

mod emplace;
#[cfg(test)]
mod known;
mod request;

use core::{cell::Cell, fmt, hint, marker::PhantomData};
use std::sync::Arc;

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::sharing::{Exposure, Sharing, SplitRequest};
use super::{Claim, Context};
use crate::handles::{owner_methods, thief_methods};
use crate::owned::Owned;
use crate::ring::{
    Buffer, CapacityError, Claimed, DEFAULT_CAPACITY, NoMemory, Rings, Storage, Whole,
};
use crate::traits::{ExactlyOnce, OutOfMemory, Owner, Steal, made};
use request::RequestWord;

/// The most tasks that a thief takes at once. A share of a million tasks, say, would take it longer
/// to carry away than to run, through a ring that must grow for it.
const LARGEST_BATCH: u32 = 128;

/// How long a thief that has found nothing shared waits before it asks, in pauses of the processor:
/// those of the memory are waits for another thread. A thief that asks at once makes each answer
/// share a task or two, for which the lines of the request, the split and the tasks go to and fro.
const PATIENCE: u32 = 4;

struct Shared<T, M: Memory, S: Storage<T>> {
    thieves: CachePadded<ThievesLine<T, M, S>>,
    request: CachePadded<RequestWord<M>>,
    owner: CachePadded<OwnersLine<T, M, S>>,
}

/// What the owner writes.
struct OwnersLine<T, M: Memory, S: Storage<T>> {
    /// The index of the next task: those from the split up to it are private. The owner writes it,
    /// and a thief that exposes reads it. For the length of a pop it may stand one below the
    /// split.
    head: M::Word,
    buffer: Owned<Buffer<T, M, S>>,
    /// Where the owner has last seen the split; at most where it is.
    split: Owned<Cell<u32>>,
}

/// What thieves write, and an owner that meets them.
struct ThievesLine<T, M: Memory, S: Storage<T>> {
    sharing: Sharing<M>,
    rings: Rings<T, M, S>,
}

impl<T, M: Memory, S: Storage<T>> Shared<T, M, S> {
    /// The owner's own store.
    #[inline(always)]
    fn head(&self) -> u64 {
        // Relaxed: only the owner, which asks, stores it.
        self.owner.head.load(Ordering::Relaxed)
    }

    /// The owner's: U1 of a push, O1 of a pop.
    #[inline(always)]
    fn set_head(&self, head: u64) {
        // Release: pairs with the acquire in `private_from`.
        self.owner.head.store(head, Ordering::Release);
    }

    /// Whether a push or pop of the task below `head`, which has stored its head, may go its way:
    /// no thief has asked, and the task is above the split. U2 and U3, or O2 and O3, of
    /// `sharing`.
    #[inline(always)]
    fn undisturbed(&self, head: u64) -> bool {
        // Pairs with the heavy fence of a thief.
        M::light();
        head > self.request.value()
    }

    /// How many tasks stand from index `first` up to the head, to a thief's knowledge.
    fn private_from(&self, first: u32) -> u32 {
        // Acquire: pairs with the release of the owner's stores; the tasks are handed on.
        let head = self.owner.head.load(Ordering::Acquire);
        ((head as u32).wrapping_sub(first) as i32).max(0) as u32
    }

    /// Whether a thief sees no task, neither shared nor private.
    fn seems_empty(&self) -> bool {
        // Relaxed: an estimate, and no task is touched for it.
        let head = self.owner.head.load(Ordering::Relaxed);
        (head as u32).wrapping_sub(self.thieves.sharing.bounds.tail()) as i32 <= 0
    }
}

/// Why a [`try_steal`](Thief::try_steal) has no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoTask {
    /// The queue was seen empty: no task is shared, and none is private.
    Empty,
    /// Nothing is shared, and the owner has tasks that only it can take. It shares them at its next
    /// push, pop or [poll](Split::poll); a thief that does not wait for that
    /// [exposes](Thief::expose) them.
    Private,
    /// Another thread was in the way: trying again at once may succeed.
    Lost,
}

/// The owner of a split deque.
///
/// Thieves can take only what it has shared, and it shares when a thief has asked. So the first
/// steal from a deque of private tasks finds it empty. So do all until the owner's next push or
/// pop, or until a thief [exposes](Thief::expose) private tasks itself. An owner that is dropped
/// shares all that is left.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Owner::push) | lock-free, amortised constant | a load; one locked addition if a thief has asked |
/// | [`pop`](Owner::pop) | lock-free | as a push; one compare-and-swap where it comes down to the split |
/// | [`steal`](Thief::steal), [`steal_half`](Thief::steal_half) | lock-free: `Retry` means that another thread got tasks | one compare-and-swap; before it asks, a thief waits for some hundred cycles |
///
/// ```
/// use poach_deque::{Split, Steal};
///
/// let (owner, mine): (Split<u32>, Split<u32>) = (Split::new(), Split::new());
/// let thief = owner.thief();
/// (0..7).for_each(|task| owner.push(task));
/// assert_eq!(thief.steal(), Steal::Empty);
/// owner.push(7);
/// // Tasks 0 to 3 are shared now, and half of these are stolen at once.
/// assert_eq!(thief.steal_half(&mine), Steal::Success(0));
/// assert_eq!(mine.pop(), Some(1));
/// assert_eq!(thief.steal(), Steal::Success(2));
/// assert_eq!(owner.pop(), Some(7));
/// ```
pub struct Split<T: Send, M: Memory = Machine, C: Context + Send = (), S: Storage<T> = Whole> {
    shared: Arc<Shared<T, M, S>>,
    context: C,
    not_sync: PhantomData<Cell<()>>,
}

/// A thief's handle to a [`Split`] deque. It may outlive the owner.
pub struct Thief<T, M: Memory = Machine, S: Storage<T> = Whole> {
    shared: Arc<Shared<T, M, S>>,
}

impl<T: Send> Split<T> {
    /// An empty queue with 64 slots at first.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T: Send, M: Memory> Split<T, M> {
    /// An empty queue with `capacity` slots at first.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0)
    }

    /// As [`with_capacity`](Split::with_capacity), with the first task at `index` (its low 32
    /// bits): for tests of indices that wrap around.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Split::with_capacity).
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        Self::with_context(capacity, index, ())
    }
}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> Split<T, M, C, S> {
    /// As [`starting_at`](Split::starting_at), for an owner that wants to be told when tasks have
    /// become visible to thieves, and in any [`Storage`].
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Split::with_capacity).
    pub fn with_context(capacity: usize, index: u64, context: C) -> Result<Self, CapacityError> {
        let index = u64::from(index as u32);
        let (rings, buffer) = Rings::new(capacity, index)?;
        let sharing = Sharing::new(index as u32);
        let request = RequestWord::new(index, sharing.owner_fences());
        let shared = Arc::new(Shared {
            thieves: CachePadded::new(ThievesLine { sharing, rings }),
            request: CachePadded::new(request),
            owner: CachePadded::new(OwnersLine {
                head: M::Word::new(index),
                buffer: Owned::new(buffer),
                split: Owned::new(Cell::new(index as u32)),
            }),
        });
        Ok(Split { shared, context, not_sync: PhantomData })
    }

    /// The owner's view, and what it shares, found by one look at the handle: no compiler has to
    /// look it up again after a fence.
    #[inline(always)]
    fn owned(&self) -> (&Shared<T, M, S>, &Buffer<T, M, S>) {
        let shared = &*self.shared;
        // SAFETY: this is the owner's handle, and the returned references borrow it.
        (shared, unsafe { shared.owner.buffer.get() })
    }

    fn known(&self) -> &Cell<u32> {
        // SAFETY: this is the owner's handle, and the returned reference borrows it.
        unsafe { self.shared.owner.split.get() }
    }

    /// Slots in the ring now: see [`Fifo::capacity`](crate::Fifo::capacity).
    pub fn capacity(&self) -> usize {
        self.owned().1.capacity()
    }

    /// Gives back the memory of a queue that has more than `slots` slots, if it is empty and no
    /// thief is taking a task: it has `slots` then. Returns whether it did.
    ///
    /// A queue never does this by itself while its owner pops, so that a burst that comes again
    /// finds its memory, and pops do not ask. Lock-free; allocates the smaller ring.
    ///
    /// ```
    /// use poach_deque::Split;
    ///
    /// let owner: Split<u32> = Split::new();
    /// (0..1000).for_each(|task| owner.push(task));
    /// assert!(!owner.shrink_to(64));
    /// while owner.pop().is_some() {}
    /// assert!(owner.shrink_to(64));
    /// assert_eq!(owner.capacity(), 64);
    /// ```
    ///
    /// # Panics
    ///
    /// If `slots` is no power of two.
    pub fn shrink_to(&self, slots: usize) -> bool {
        assert!(slots.is_power_of_two(), "{slots} slots: a power of two is needed");
        let (shared, buffer) = self.owned();
        let ThievesLine { sharing, rings } = &*shared.thieves;
        let shrunk = buffer.shrink(rings, shared.head(), slots);
        if shrunk {
            // As in `reserve`.
            buffer.release_left(rings, || sharing.bounds.claimed());
        }
        shrunk
    }

    /// Shares all private tasks: thieves can take them from now on. For an owner that will not come
    /// to its queue for a while, or wants its oldest task and so steals from itself. Returns
    /// whether there were any.
    ///
    /// Lock-free: it waits for no thief, and starts again only if one has exposed tasks meanwhile.
    /// One exchange, one full fence and one compare-and-swap.
    ///
    /// ```
    /// use poach_deque::{Split, Steal};
    ///
    /// let owner: Split<u32> = Split::new();
    /// (0..3).for_each(|task| owner.push(task));
    /// assert!(owner.share());
    /// assert_eq!(owner.thief().steal(), Steal::Success(0));
    /// assert_eq!(owner.pop(), Some(2));
    /// ```
    pub fn share(&self) -> bool {
        let head = self.shared.head();
        let Shared { thieves, request, .. } = &*self.shared;
        let any = thieves.sharing.share(head as u32, &**request, Self::place(head));
        if any {
            self.known().set(head as u32);
            // Last: the context may use this queue.
            self.context.shared();
        }
        any
    }

    /// Answers a thief that asks, as a push would: shares the older half of the private tasks.
    /// Returns whether it has shared any. For an owner in a long task, now and then; a load and
    /// a comparison if nobody asks.
    ///
    /// Lock-free, as [`share`](Split::share).
    ///
    /// ```
    /// use poach_deque::{Split, Steal};
    ///
    /// let owner: Split<u32> = Split::new();
    /// (0..4).for_each(|task| owner.push(task));
    /// let thief = owner.thief();
    /// assert!(!owner.poll());
    /// assert!(thief.steal().is_empty()); // and has asked
    /// assert!(owner.poll() && !owner.poll());
    /// assert_eq!(thief.steal(), Steal::Success(0));
    /// ```
    pub fn poll(&self) -> bool {
        !self.shared.undisturbed(self.shared.head()) && self.answer()
    }

    /// The index above the youngest task: a push adds one, a pop takes one off, and thieves leave
    /// it alone. So an owner that finds it above what it was has tasks that it has pushed
    /// since.
    pub fn top(&self) -> u64 {
        self.shared.head()
    }

    /// As [`Buffer::reserve`].
    #[cold]
    #[inline(never)]
    fn reserve(&self, head: u64) -> Result<(), NoMemory> {
        let (shared, buffer) = self.owned();
        let ThievesLine { sharing, rings } = &*shared.thieves;
        buffer.reserve(rings, head, || self.len())?;
        // The bounds of this queue are never reset: "At once" in `ring`.
        buffer.release_left(rings, || sharing.bounds.claimed());
        Ok(())
    }

    /// Where the request stands for a split, which is at most `head`.
    fn place(head: u64) -> impl Fn(u32) -> u64 {
        move |split| head.wrapping_sub(u64::from((head as u32).wrapping_sub(split)))
    }

    /// A request is answered as soon as there is something to share.
    fn should_share(_: u32) -> bool {
        true
    }

    /// An owner that a thief has stopped, after a push or in a [poll](Split::poll): it answers.
    /// Returns whether it has shared something. Figure 4, line 20.
    #[cold]
    #[inline(never)]
    fn answer(&self) -> bool {
        let head = self.shared.head();
        let Shared { thieves, request, .. } = &*self.shared;
        let (sharing, known, place) = (&thieves.sharing, self.known(), Self::place(head));
        let shares = !self.has_nothing_to_answer()
            && sharing.attend(head as u32, known, &**request, place, Self::should_share);
        if shares {
            // Last: the context may use this queue.
            self.context.shared();
        }
        shares
    }

    /// Whether the owner is stopped only because it fences.
    fn has_nothing_to_answer(&self) -> bool {
        self.shared.thieves.sharing.owner_fences() && !self.shared.request.is_asked()
    }

    /// The rest of a pop that has left the head at `index`, and has come down to the split, or was
    /// stopped by a thief. Figure 4, lines 25 to 30.
    #[cold]
    #[inline(never)]
    fn pop_disturbed(&self, index: u64) -> Option<T> {
        let (shared, buffer) = self.owned();
        let sharing = &shared.thieves.sharing;
        if sharing.owner_fences() {
            // O2, where no thief's fence is process-wide.
            M::full();
        }
        let bounds = &sharing.bounds;
        let below = |split: u32| ((index as u32).wrapping_sub(split) as i32) < 0;
        self.known().set(bounds.settle());
        let at_the_split = below(self.known().get());
        let mut follows = self.has_nothing_to_answer();
        if at_the_split {
            let Some(split) = bounds.take_back() else {
                shared.set_head(index.wrapping_add(1));
                return None;
            };
            self.known().set(split);
            follows = follows || shared.request.follow(Self::place(index)(split));
        }
        // SAFETY: the task at `index` is above the split, and the owner has settled since the head
        // came down.
        let task = unsafe { buffer.read(index) };
        // Line 29.
        let (known, request, place) = (self.known(), &*shared.request, Self::place(index));
        let has_shared =
            !follows && sharing.attend(index as u32, known, request, place, Self::should_share);
        // Last, both: the context may use this queue.
        if at_the_split {
            self.context.took_back();
        }
        if has_shared {
            self.context.shared();
        }
        Some(task)
    }
}

impl<T: Send, M: Memory> Default for Split<T, M> {
    fn default() -> Self {
        made::<T, _, _>(Self::with_capacity(DEFAULT_CAPACITY))
    }
}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> Split<T, M, C, S> {
    /// Adds a task. Figure 4, lines 10 to 13 and 20 (`push`).
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    #[inline(always)]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let (shared, buffer) = self.owned();
        let index = shared.head();
        // Line 11.
        if !buffer.has(index) && self.reserve(index).is_err() {
            return Err(OutOfMemory(task));
        }
        // Line 12.
        // SAFETY: the slot of the head is free, since no task is above it, and `shared` keeps the
        // rings.
        unsafe { buffer.write(index, task) };
        let next = index.wrapping_add(1);
        // Line 13.
        shared.set_head(next);
        if !shared.undisturbed(next) {
            self.answer();
        }
        Ok(())
    }

    /// Takes the youngest task. Figure 4, lines 21 to 30 (`pop`).
    #[inline(always)]
    pub fn pop(&self) -> Option<T> {
        let (shared, buffer) = self.owned();
        let head = shared.head();
        let index = head.wrapping_sub(1);
        shared.set_head(index);
        if !shared.undisturbed(head) {
            return self.pop_disturbed(index);
        }
        // SAFETY: a task of the owner's, and no thief can claim it: it is above the split, or a
        // thief that exposes has seen the head below it.
        Some(unsafe { buffer.read(index) })
    }

    /// A handle for thieves; any number of them.
    pub fn thief(&self) -> Thief<T, M, S> {
        Thief { shared: Arc::clone(&self.shared) }
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        let tail = self.shared.thieves.sharing.bounds.tail();
        (self.shared.head() as u32).wrapping_sub(tail) as usize
    }
}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> ExactlyOnce<T> for Split<T, M, C, S> {}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> Drop for Split<T, M, C, S> {
    fn drop(&mut self) {
        let bounds = &self.shared.thieves.sharing.bounds;
        // It fails only if a thief has exposed tasks meanwhile.
        while !bounds.share(bounds.tail(), bounds.settle(), self.shared.head() as u32) {}
    }
}

impl<T, M: Memory, S: Storage<T>> Drop for Shared<T, M, S> {
    fn drop(&mut self) {
        let tail = u64::from(self.thieves.sharing.bounds.tail());
        let shared = u64::from(self.thieves.sharing.bounds.shared());
        // SAFETY: no handle is left, so nobody is between claim and mark; the owner shared all its
        // tasks when it was dropped. Slots are found by the low bits of an index, which
        // `tail` has.
        unsafe { self.thieves.rings.drop_tasks(tail, tail + shared) };
    }
}

impl<T: Send, M: Memory, S: Storage<T>> Thief<T, M, S> {
    /// Asks the owner to share at its next push or pop. The request stays until it is met.
    /// Wait-free.
    pub fn request(&self) {
        self.shared.request.ask();
    }

    /// A thief makes private tasks of an owner that does not come back visible: the older half of
    /// them. All that [`Stack::expose`](super::Stack::expose) says holds here.
    #[cold]
    pub fn expose(&self) -> Exposure {
        let Shared { thieves, request, .. } = &*self.shared;
        thieves.sharing.expose(&**request, |first| self.shared.private_from(first))
    }

    /// Whether there is something to [`expose`](Thief::expose). All that
    /// [`Stack::has_private_tasks`](super::Stack::has_private_tasks) says holds here.
    #[cold]
    pub fn has_private_tasks(&self) -> bool {
        self.shared.thieves.sharing.has_private_tasks(|first| self.shared.private_from(first))
    }

    /// [`steal`](Thief::steal), which tells what is private from nothing at all: a scheduler whose
    /// thieves sleep asks this.
    ///
    /// `NoTask::Private` is an estimate, as [`len`](Thief::len) is. So is `NoTask::Empty`, until
    /// this thief has asked, made a process-wide barrier, and asked again ([writing a
    /// scheduler](crate#writing-a-scheduler)). It looks at a word that the owner writes at each
    /// push and pop, and costs the owner a cache miss there; `steal` does not.
    ///
    /// ```
    /// use poach_deque::Split;
    /// use poach_deque::split::NoTask;
    ///
    /// let owner: Split<u32> = Split::new();
    /// let thief = owner.thief();
    /// assert_eq!(thief.try_steal(), Err(NoTask::Empty));
    /// owner.push(1);
    /// owner.push(2);
    /// // The first look has left a request, so that the first push shared its task.
    /// assert_eq!(thief.try_steal(), Ok(1));
    /// assert_eq!(thief.try_steal(), Err(NoTask::Private));
    /// assert!(owner.share());
    /// assert_eq!(thief.try_steal(), Ok(2));
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoTask`]. But for `Lost` the owner has been [asked](Thief::request) to share.
    pub fn try_steal(&self) -> Result<T, NoTask> {
        match self.steal() {
            Steal::Success(task) => Ok(task),
            Steal::Retry | Steal::Abort => Err(NoTask::Lost),
            // What has been shared since `steal` looked is counted too: it is there.
            Steal::Empty if self.shared.seems_empty() => Err(NoTask::Empty),
            Steal::Empty => Err(NoTask::Private),
        }
    }

    /// Figure 4, lines 1 to 9. There is no `allstolen` (line 2); line 8 is
    /// [`request`](Thief::request).
    #[inline]
    fn claim(&self, want: impl Fn(u32) -> u32) -> Steal<Claimed<'_, T, M, S>> {
        let shared = &*self.shared;
        let mut claim = shared.thieves.sharing.bounds.claim(&want);
        if claim == Claim::Empty && !shared.request.is_asked() {
            (0..PATIENCE).for_each(|_| hint::spin_loop());
            claim = shared.thieves.sharing.bounds.claim(want);
        }
        match claim {
            Claim::Taken { first, count } => {
                // SAFETY: claimed for this call alone, and the claim acquired the move of the split
                // that came after the tasks were written.
                Steal::Success(unsafe { shared.thieves.rings.claimed(u64::from(first), count) })
            }
            Claim::Empty => {
                self.request();
                Steal::Empty
            }
            Claim::Lost => Steal::Retry,
        }
    }
}

impl<T: Send, M: Memory, S: Storage<T>> Thief<T, M, S> {
    /// Takes the oldest shared task. Figure 4, lines 1 to 9 (`steal`).
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        match self.claim(|_| 1) {
            Steal::Success(mut claimed) => claimed.next().map_or(Steal::Empty, Steal::Success),
            Steal::Empty => Steal::Empty,
            Steal::Retry | Steal::Abort => Steal::Retry,
        }
    }

    /// Takes the older half of the shared tasks, but at most 128, by one compare-and-swap.
    #[inline]
    fn half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        match self.claim(|shared| shared.div_ceil(2).min(LARGEST_BATCH)) {
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

    /// The number of shared tasks. An estimate, as every [length](crate::Thief::len).
    pub fn len(&self) -> usize {
        self.shared.thieves.sharing.bounds.shared() as usize
    }
}

impl<T, M: Memory, S: Storage<T>> Clone for Thief<T, M, S> {
    fn clone(&self) -> Self {
        Thief { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Send, M: Memory, C: Context + Send, S: Storage<T>> fmt::Debug for Split<T, M, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory, S: Storage<T>> fmt::Debug for Thief<T, M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thief").field("shared", &self.len()).finish_non_exhaustive()
    }
}

owner_methods!(
    [T: Send, M: Memory, C: Context + Send, S: Storage<T>]
    [T: Send, M: Memory, C: Context + Send, S: Storage<T>]
    Split<T, M, C, S>, Thief<T, M, S>
);
thief_methods!(
    [T: Send, M: Memory, S: Storage<T>] Thief<T, M, S>;
    fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        self.half(into)
    }
);
