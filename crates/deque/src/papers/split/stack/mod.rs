//! The direct task stack: tasks live in their slots, and the head is a value, not a word.
//!
//! Source: van Dijk and van de Pol, *Lace*, section 3 and Figure 4; the task in the slot is
//! Faxén's, from Wool.
//!
//! # The owner's side
//!
//! A [`Head`] is one machine word, passed by value: the first free slot. `push` writes a task into
//! that slot and returns the head above it; `pop` takes the task at a head away again, or finds
//! that it was stolen. A head's holder knows where the stack ends, so nothing has to be read to
//! find out, and no store has to reach the cache before the next push can begin. It knows the stack
//! too: the one allocation begins at a multiple of [`ALIGN`], so a mask leads from any slot to the
//! words that all of them share. A head of two words would take two registers, which every join
//! saves, and a return would wait for both to come back from the call stack. The owner's operations
//! on a private task are:
//!
//! ```text
//! push:  is the slot free?   write the task   mark the slot taken   head < limit ?
//! pop:   mark the slot free   head >= floor ?
//! ```
//!
//! Both comparisons are with words on the owner's own line. They guard everything that is rare,
//! which is in functions of its own: `push_at_limit` and `pop_at_floor`, which go on from there.
//!
//! - `limit` stands one slot short of the slots that are ready for use. Past it, more of the
//!   reserved memory is made ready, until all of it is.
//! - `floor` is `split`: below it a task is shared and must be taken back from the thieves. That of
//!   an owner that fences (`sharing`) is the maximum.
//! - **A thief that finds nothing** sets `limit` to zero and `floor` to the maximum. So a hungry
//!   thief costs an owner that feeds it one branch, the one it has anyway, and an owner that has no
//!   hungry thief nothing at all. The two words are the stack's split request;
//!   [`sharing`](super::sharing) says how it is raised and answered, and how a thief exposes
//!   private tasks. A thief sees a task by its slot's mark.
//!
//! The paper's Figure 4 differs in form. Its `allstolen` flag says that thieves have taken all
//! there was; here that is `tail = split`, and the owner [resets](super::Bounds::reset) both when
//! it retires a stolen task. Its `splitreq` is `limit`.
//!
//! # Why a task is run once
//!
//! Payloads are read only after a [claim](super::Claim), and claims stay below `split`. A task
//! below it is taken by one change of [`Bounds`], as argued there. `floor` is never below `split`
//! when the owner compares: only the owner stores values other than the maximum, and it stores
//! `split`; and where a thief has moved `split` up, the owner sees the maximum (`sharing`,
//! "Exposure"). What the owner pushes while a thief exposes goes above the tasks that the thief has
//! found, or into slots that it has found free.
//!
//! *A request of two words.* A thief stores `limit`, then `floor`, both releasing. The owner takes
//! them down in the other order, by swaps that acquire. If it overwrites the `floor` of a request,
//! it sees the `limit` of that request, too, and answers. If it does not, that `floor` comes later,
//! and stays.
//!
//! *The result.* The thief writes the result into the slot, then sets [`Status::DONE`] by a
//! releasing read-modify-write; the owner acquires it before it reads. Nobody else touches the slot
//! meanwhile: the owner's head does not go below a stolen task before it has retired it.

mod head;
pub mod layout;
mod region;
mod slot;

use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::{self, NonNull};
use std::alloc::Layout;
use std::fmt;

use poach_memory::{CachePadded, Memory, Ordering, Pointer, Word};

use super::Claim;
use super::sharing::{Exposure, Sharing, SplitRequest};
pub use head::{Head, Popped, PushError, Pushed};
use region::{alloc, dealloc};
pub use slot::{PAYLOAD, Slot, Status};
use slot::{PRESENT, make_ready};

/// Slots made ready at a time: a page of them.
const BATCH: usize = 64;

/// The least of all sizes of pages.
const PAGE: usize = 4096;

/// Slots beyond the capacity: the push that finds the stack full has written to one already.
const SPARE: usize = 1;

/// No more tasks than this are looked at for an exposure.
const MAX_EXPOSURE: u32 = 64;

/// What `limit` and `floor` point to: a slot of the stack, or a request. Addresses to compare with.
enum Limit {}

/// `limit` when a thief asks is null, below every head; `floor` is this, above every head.
const REQUESTED: *mut Limit = ptr::without_provenance_mut(usize::MAX);

/// Where a stack's allocation begins is a multiple of this, and it is no longer than this.
const ALIGN: usize = if usize::BITS >= 64 { 1 << 27 } else { 1 << 21 };

/// The most tasks that a [`Stack`] can be made for: 1,572,864, or 24,576 on a machine of 32 bits.
pub const MAX_SLOTS: usize = ALIGN / 256 * 3;

/// What the owner of a [`Stack`] or a [`Split`](super::Split) belongs to; told when there is
/// something for thieves.
///
/// A queue calls it in the owner's cold paths, on the owner's thread, as the last thing that the
/// operation does with the queue. So a method may do what any other code of the owner may do at
/// that place:
///
/// - use the same [`Split`](super::Split), whose operations then call the context again; the task
///   that the outer pop returns is out of the queue already;
/// - use the same [`Stack`], under the contracts of its [`Head`]s;
/// - panic in an operation of a [`Split`](super::Split), which is done and unwinds: a task that a
///   pop has taken is dropped with it, a task that a push has added stays. A push to a [`Stack`]
///   that unwinds has pushed, and its caller must pop all the same; so a stack's context does not
///   panic.
///
/// A split deque that is dropped calls nobody.
pub trait Context {
    /// Tasks have become visible to thieves.
    fn shared(&self);

    /// The owner, out of private tasks, has taken some back from the thieves.
    fn took_back(&self) {}

    /// The owner, which has put a request off, has popped its lowest private task. Its next push
    /// asks again.
    fn reached_split(&self) {}

    /// A thief has asked, and `private` tasks stand above the split: whether the owner shares now.
    ///
    /// If not, the request stays, and the owner asks again when it comes down to the split, and at
    /// its next push from there: a few times for a tree of tasks, not at each. Called by the
    /// owner, in its cold path; once more, if the answer is yes.
    fn should_share(&self, private: u32) -> bool {
        let _ = private;
        true
    }
}

impl Context for () {
    fn shared(&self) {}
}

/// What precedes the slots in the one allocation of a stack.
#[repr(C)]
struct Header<M: Memory, C> {
    /// Read by the owner at every push and pop; written by the owner, and by a thief that asks.
    hot: CachePadded<Hot<M>>,
    /// What thieves claim from.
    sharing: CachePadded<Sharing<M>>,
    /// Read by thieves too, written by the owner's cold paths.
    counts: CachePadded<Counts<M>>,
    slots: usize,
    context: C,
}

impl<M: Memory, C> Header<M, C> {
    /// Bytes from the header to the sentinel: a slot that is always occupied, below the first.
    const SENTINEL: usize = size_of::<Self>().next_multiple_of(align_of::<Slot<M>>());

    /// Bytes from the header to the first slot.
    const SLOTS_START: usize = Self::SENTINEL + size_of::<Slot<M>>();

    /// Slots that are ready from the start: those in the page of the header, so that a stack which
    /// is not used takes no other.
    const FIRST_BATCH: usize = match PAGE.saturating_sub(Self::SLOTS_START) / size_of::<Slot<M>>() {
        0 => BATCH,
        slots => slots,
    };
}

/// Places of heads, so that they compare with a head. Its layout is public: see [`layout`].
#[repr(C)]
struct Hot<M: Memory> {
    limit: M::Pointer<Limit>,
    floor: M::Pointer<Limit>,
    /// What `limit` is when no thief asks: the last ready slot. Written by the owner alone.
    own_limit: M::Pointer<Limit>,
    /// 1 while a request has been put off: `floor` is one slot above the split then. The owner's
    /// alone.
    put_off: M::Word,
}

/// A request that is put off again and again, as its owner goes up and down at its split. The owner
/// takes down no request but its own: `floor` stays one slot above the split, and neither a
/// read-modify-write nor a fence is needed. An exposure stores `floor`, and is seen there as by any
/// other pop. A request that comes meanwhile may be taken for the one that was put off, and is kept
/// with it.
impl<M: Memory> Hot<M> {
    /// Whether the lowest private task has been popped, nothing is up but a request that was put
    /// off, and this has stopped the pop: the next push is stopped then. `above` is the place
    /// above that task.
    fn comes_down(&self, above: *mut Limit) -> bool {
        // Relaxed, all: the owner's alone, but for `floor`, whose load is as O3.
        let comes = self.put_off.load(Ordering::Relaxed) != 0
            && self.floor.load(Ordering::Relaxed) == above;
        if comes {
            self.put_off.store(0, Ordering::Relaxed);
            self.ask_again();
        }
        comes
    }

    /// Whether a request that the owner has raised again is put off once more: `should_share` says
    /// no. `above` is the place above the task that was just pushed, the only private one if
    /// `floor` is there.
    fn puts_off_again(&self, above: *mut Limit, should_share: impl FnOnce(u32) -> bool) -> bool {
        // Relaxed, all: as above; this load is as U3.
        let puts_off = self.floor.load(Ordering::Relaxed) == above && !should_share(1);
        if puts_off {
            self.put_off.store(1, Ordering::Relaxed);
            // It may overwrite the request of a thief, which is kept by the word above; if that
            // goes on to store `floor`, the owner's next pop looks.
            let limit = self.own_limit.load(Ordering::Relaxed);
            self.limit.store(limit, Ordering::Relaxed);
        }
        puts_off
    }
}

/// How often the owner's cold paths ran. Written by the owner alone.
struct Counts<M: Memory> {
    grows: M::Word,
    shrinks: M::Word,
}

/// A direct task stack of fixed capacity: reserved at once, made ready as it is used.
///
/// The stack itself is the thieves' view; the owner works through [`Head`]s. Memory is reserved
/// from the allocator and not touched before it is needed. So an operating system that commits
/// pages on first use (Linux, Windows and macOS do for allocations of this size) spends no memory
/// on unused capacity.
pub struct Stack<M: Memory, C = ()> {
    header: NonNull<Header<M, C>>,
    owns: PhantomData<Header<M, C>>,
}

// SAFETY: a Stack owns its allocation and holds no thread-bound data beside `C`; what is moved in
// and out of its slots is the caller's concern by the contracts of `Head::push` and `Stolen`.
unsafe impl<M: Memory, C: Send> Send for Stack<M, C> {}
// SAFETY: through a shared Stack a thread reaches atomic words, `C` (which is Sync), and slots that
// it has claimed.
unsafe impl<M: Memory, C: Sync> Sync for Stack<M, C> {}

/// Why a stack could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackError {
    /// A capacity of zero, or of more than [`MAX_SLOTS`].
    Capacity(usize),
    /// The allocator refused this many bytes.
    OutOfMemory(usize),
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StackError::Capacity(slots) => {
                write!(
                    f,
                    "a task stack of {slots} slots cannot be made: use 1 to {MAX_SLOTS} slots"
                )
            }
            StackError::OutOfMemory(bytes) => write!(
                f,
                "the system refused {bytes} bytes of address space for a task stack: \
                 ask for a smaller stack or fewer workers"
            ),
        }
    }
}

impl std::error::Error for StackError {}

impl<M: Memory> SplitRequest for Hot<M> {
    type Place = *mut Limit;
    const ALWAYS: *mut Limit = REQUESTED;

    #[inline]
    fn is_asked(&self) -> bool {
        // Relaxed: as the trait says.
        self.limit.load(Ordering::Relaxed).is_null()
    }

    #[inline]
    fn ask(&self) {
        // Relaxed: a thread that finds the request up leaves it to the thread that raised it, which
        // raises `floor` too. Release: an owner that acquires `floor` sees `limit`.
        if !self.is_asked() {
            self.limit.store(ptr::null_mut(), Ordering::Release);
            self.floor.store(REQUESTED, Ordering::Release);
        }
    }

    fn ask_again(&self) {
        // Relaxed: the owner's own request, seen by itself.
        self.limit.store(ptr::null_mut(), Ordering::Relaxed);
    }

    fn stop_pops(&self) {
        // Relaxed: fences on both sides order it.
        self.floor.store(REQUESTED, Ordering::Relaxed);
    }

    fn take_down(&self, split: *mut Limit) -> bool {
        // AcqRel, both: acquires what it overwrites, and keeps a thief's release sequence going.
        // `floor` first: see "A request of two words".
        self.floor.swap(split, Ordering::AcqRel);
        // Relaxed: the owner's alone.
        let limit = self.own_limit.load(Ordering::Relaxed);
        self.limit.swap(limit, Ordering::AcqRel).is_null()
    }

    fn follow(&self, split: *mut Limit) -> bool {
        // Relaxed, all: the owner's own value is replaced by its own, or a request stays as it is.
        // If a request comes meanwhile, the next push sees its `limit`, and its `floor` comes
        // later.
        let own = self.floor.load(Ordering::Relaxed);
        own != REQUESTED
            && !self.is_asked()
            && self.put_off.load(Ordering::Relaxed) == 0
            && self.floor.compare_exchange(own, split, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn put_off(&self) {
        // Relaxed: the owner's alone.
        self.put_off.store(1, Ordering::Relaxed);
    }

    fn was_put_off(&self) -> bool {
        // Relaxed, both: as above.
        let was = self.put_off.load(Ordering::Relaxed) != 0;
        if was {
            self.put_off.store(0, Ordering::Relaxed);
        }
        was
    }
}

impl<M: Memory, C: Context> Stack<M, C> {
    /// Reserves a stack of `slots` tasks.
    ///
    /// # Errors
    ///
    /// [`StackError`]: a capacity out of range, or an allocator that refuses.
    pub fn new(slots: usize, context: C) -> Result<Self, StackError> {
        Self::make(slots, context, false)
    }

    /// As [`new`](Stack::new), in memory that nobody has used before in this process, so that its
    /// pages lie on the node of the processor that writes to them first: for an owner that is
    /// bound to one. `new` may take the memory of a stack that was dropped, which is quicker.
    ///
    /// # Errors
    ///
    /// As [`new`](Stack::new).
    pub fn new_untouched(slots: usize, context: C) -> Result<Self, StackError> {
        Self::make(slots, context, true)
    }

    fn make(slots: usize, context: C, untouched: bool) -> Result<Self, StackError> {
        if slots == 0 || slots > MAX_SLOTS {
            return Err(StackError::Capacity(slots));
        }
        let layout = Self::layout(slots);
        // SAFETY: the layout holds a header, so its size is not zero.
        let memory = unsafe { alloc(layout, untouched) };
        let header = NonNull::new(memory.cast::<Header<M, C>>())
            .ok_or(StackError::OutOfMemory(layout.size()))?;
        let ready = (slots + SPARE).min(Header::<M, C>::FIRST_BATCH);
        let first = Self::slot_of(header, 0);
        let limit = Self::slot_of(header, ready as u32 - 1).as_ptr().cast();
        let sharing = Sharing::new(0);
        let floor = if sharing.owner_fences() { REQUESTED } else { first.as_ptr().cast() };
        let content = Header {
            hot: CachePadded::new(Hot {
                limit: M::Pointer::new(limit),
                floor: M::Pointer::new(floor),
                own_limit: M::Pointer::new(limit),
                put_off: M::Word::new(0),
            }),
            sharing: CachePadded::new(sharing),
            counts: CachePadded::new(Counts { grows: M::Word::new(0), shrinks: M::Word::new(0) }),
            slots,
            context,
        };
        // SAFETY: allocated with the header's size and alignment, and nobody else's.
        unsafe { header.write(content) };
        // SAFETY: no other thread knows the allocation yet, and it has at least `ready` slots.
        unsafe { make_ready(first, ready) };
        let stack = Stack { header, owns: PhantomData };
        // SAFETY: within the allocation, which nobody else knows yet.
        unsafe { stack.sentinel().write(Slot::occupied()) };
        Ok(stack)
    }

    /// The head of the empty stack, from which its owner starts.
    ///
    /// # Safety
    ///
    /// One thread, the owner, uses heads of this stack, and none of them outlives the stack.
    pub unsafe fn bottom(&self) -> Head<M, C> {
        Head::at(self.slot_at(0))
    }

    /// A thief takes the oldest shared task. If there is none it leaves a request with the owner.
    ///
    /// Any thread. Lock-free; never waits for the owner.
    ///
    /// # Errors
    ///
    /// [`Claim::Empty`] if nothing is shared, [`Claim::Lost`] if another was faster.
    #[inline]
    pub fn steal(&self) -> Result<Stolen<'_, M>, Claim> {
        match self.head().sharing.bounds.claim(|_| 1) {
            Claim::Taken { first, .. } => {
                // SAFETY: a claim stays below `split`, and slots below it are initialised. The slot
                // lives as long as the stack.
                Ok(Stolen { slot: unsafe { self.slot_at(first).as_ref() } })
            }
            Claim::Empty => {
                self.request();
                Err(Claim::Empty)
            }
            Claim::Lost => Err(Claim::Lost),
        }
    }

    /// Asks the owner to share at its next push or pop. The request stays until it is met.
    ///
    /// Any thread; wait-free.
    pub fn request(&self) {
        self.head().hot.ask();
    }

    /// A thief makes private tasks of an owner that does not come back visible: the older half of
    /// them.
    ///
    /// To be tried after a [`request`](Stack::request) has gone unanswered for a while: it
    /// interrupts every running thread of the process. [`Exposure::Refused`] at once if no private
    /// task is seen, if another thief is at it, or if the system has no process-wide barrier and
    /// the owner does not know it yet. In the last case a private task waits until its owner comes
    /// back. An owner that knows it fences, and its tasks are exposed without a barrier.
    ///
    /// Any thread. Never waits for the owner, nor makes it wait.
    #[cold]
    pub fn expose(&self) -> Exposure {
        let header = self.head();
        header.sharing.expose(&*header.hot, |first| self.private_from(header, first))
    }

    /// Whether there is something to [`expose`](Stack::expose).
    ///
    /// Exact for a thread that has left a [`request`](Stack::request) and passed a [heavy
    /// fence](Memory::heavy) since: then what is pushed later is shared by its push. But `false`
    /// while another thief exposes, which sees to it, and where nobody can.
    ///
    /// Any thread; wait-free.
    #[cold]
    pub fn has_private_tasks(&self) -> bool {
        let header = self.head();
        header.sharing.has_private_tasks(|first| u32::from(self.is_present(header, first)))
    }

    /// How many tasks stand in the slots from this index on, one after the other, to a thief's
    /// knowledge; but no more than are worth a look.
    fn private_from(&self, header: &Header<M, C>, first: u32) -> u32 {
        let present = |&step: &u32| self.is_present(header, first.wrapping_add(step));
        (0..MAX_EXPOSURE).take_while(present).count() as u32
    }

    /// Whether a task stands in the slot of this index, to a thief's knowledge.
    fn is_present(&self, header: &Header<M, C>, index: u32) -> bool {
        let slot = self.slot_at(index);
        // The task of the spare slot is refused.
        if index as usize >= header.slots {
            return false;
        }
        // Acquire: pairs with the release in `after_push`; slots up to this one are initialised.
        if slot.addr().get() > header.hot.own_limit.load(Ordering::Acquire).addr() {
            return false;
        }
        // SAFETY: a ready slot, by the comparison, and never mutably borrowed.
        let slot = unsafe { slot.as_ref() };
        // Acquire: pairs with the release in `push`; the payload is handed on.
        slot.task.load(Ordering::Acquire).addr() & PRESENT != 0
    }

    /// How many tasks thieves could claim just now. An estimate, as every
    /// [length](crate::Thief::len). Any thread; wait-free.
    pub fn shared(&self) -> u32 {
        self.head().sharing.bounds.shared()
    }

    /// How often the owner has shared tasks (`grows`) and taken them back (`shrinks`).
    pub fn counts(&self) -> (u64, u64) {
        let counts = &self.head().counts;
        (counts.grows.load(Ordering::Relaxed), counts.shrinks.load(Ordering::Relaxed))
    }

    /// What the stack was made with.
    pub fn context(&self) -> &C {
        &self.head().context
    }

    /// How many tasks the stack can hold.
    pub fn capacity(&self) -> usize {
        self.head().slots
    }

    fn head(&self) -> &Header<M, C> {
        // SAFETY: initialised in `new`, and nobody borrows it mutably before `drop`.
        unsafe { self.header.as_ref() }
    }
}

impl<M: Memory, C> Stack<M, C> {
    #[inline(always)]
    fn slot_at(&self, index: u32) -> NonNull<Slot<M>> {
        Self::slot_of(self.header, index)
    }

    /// The place of a slot. Indices of slots are less than `slots + SPARE`; what comes after the
    /// end of the allocation is only compared.
    #[inline(always)]
    fn slot_of(header: NonNull<Header<M, C>>, index: u32) -> NonNull<Slot<M>> {
        let offset = Header::<M, C>::SLOTS_START + index as usize * size_of::<Slot<M>>();
        let slot = header.as_ptr().wrapping_byte_add(offset).cast();
        NonNull::new(slot).expect("an address space does not end with a task stack")
    }

    fn sentinel(&self) -> NonNull<Slot<M>> {
        // SAFETY: within the allocation, between the header and the first slot.
        unsafe { self.header.byte_add(Header::<M, C>::SENTINEL) }.cast()
    }

    fn layout(slots: usize) -> Layout {
        let bytes = Header::<M, C>::SLOTS_START + size_of::<Slot<M>>() * (slots + SPARE);
        // The model checkers' slots are larger than the machine's, and their stacks small.
        assert!(bytes <= ALIGN, "a task stack of {slots} slots is longer than {ALIGN} bytes");
        Layout::from_size_align(bytes, ALIGN).expect("no longer than its alignment")
    }
}

impl<M: Memory, C> Drop for Stack<M, C> {
    fn drop(&mut self) {
        let (slots, last_ready): (_, *mut Limit) = {
            // SAFETY: initialised in `new`; `&mut self` says that no head or thief uses it.
            let header = unsafe { self.header.as_ref() };
            (header.slots, header.hot.own_limit.load(Ordering::Relaxed))
        };
        for index in 0.. {
            let slot = self.slot_at(index);
            if slot.addr().get() > last_ready.addr() {
                break;
            }
            // SAFETY: slots up to `own_limit` are initialised; nobody uses them any more.
            unsafe { slot.drop_in_place() };
        }
        // SAFETY: initialised in `new`, and not used again.
        unsafe { self.sentinel().drop_in_place() };
        // SAFETY: initialised, and not used again.
        unsafe { self.header.drop_in_place() };
        // Up to the end of the last ready slot, past which nothing was written to.
        let used = last_ready.addr() + size_of::<Slot<M>>() - self.header.addr().get();
        // SAFETY: allocated in `make` with this layout; nothing was written to beyond the last
        // ready slot.
        unsafe { dealloc(self.header.as_ptr().cast(), Self::layout(slots), used) };
    }
}

/// A stolen task, still in its slot: the thief's until it has set [`Status::DONE`].
pub struct Stolen<'s, M: Memory> {
    slot: &'s Slot<M>,
}

impl<'s, M: Memory> Stolen<'s, M> {
    /// The slot that holds the task, and will hold its result.
    #[inline(always)]
    pub fn slot(&self) -> &'s Slot<M> {
        self.slot
    }
}

fn bump<W: Word>(count: &W) {
    // Relaxed: the owner alone writes; others only read to report.
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

// Its coroutines do not know that processor, and Miri does not know them.
#[cfg(all(test, not(target_arch = "s390x"), not(miri)))]
mod model;

#[cfg(test)]
mod tests;
