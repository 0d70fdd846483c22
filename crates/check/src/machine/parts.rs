//! What the machine is made of, and the names of what can happen in it.

use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;
use std::sync::atomic::Ordering;

use super::waits::{Look, Patience};

/// The most threads that a model may have.
pub const MAX_THREADS: usize = 8;

/// The words that one model thread may create, and the words that the set-up may create.
pub const MAX_WORDS: usize = 1 << 10;

/// A word's place: its creator's arena, and a number within it. Deterministic: it depends on the
/// creating thread's own history alone.
pub(crate) type Loc = u32;

/// What all sequentially consistent fences know, as a footprint names it.
pub(super) const FENCES: Loc = Loc::MAX;

/// The arena of the words that the set-up creates; thread `i` has arena `i + 1`.
pub(super) const SETUP: usize = 0;

/// When a thread last touched a word or a cell: its own clock then, and where in the source.
pub(crate) type Touch = (u16, &'static Location<'static>);

pub(crate) type Clock = [u16; MAX_THREADS];

/// Mixes a word into a fingerprint: the folded product of the two halves.
#[inline(always)]
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ 0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(u128::from(value ^ 0xd6e8_feb8_6659_fd93) | 1 << 64);
    (product as u64) ^ ((product >> 64) as u64) ^ hash.rotate_left(23)
}

/// A hasher for keys that are fingerprints already.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0, u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

pub(crate) type ByFingerprint = BuildHasherDefault<Identity>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Function(pub(crate) fn(u64, u64) -> u64);

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for Function {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Swap(u64),
    Add(u64),
    Or(u64),
    And(u64),
    CompareExchange(u64, u64),
    Apply(Function, u64),
}

impl Change {
    /// Whether there are words that it does not change.
    pub(crate) fn may_fail(self) -> bool {
        matches!(self, Change::CompareExchange(..))
    }

    /// What a word that holds `old` holds afterwards; `None` if the change does not take place.
    #[inline]
    pub(crate) fn of(self, old: u64) -> Option<u64> {
        match self {
            Change::Swap(value) => Some(value),
            Change::Add(value) => Some(old.wrapping_add(value)),
            Change::Or(value) => Some(old | value),
            Change::And(value) => Some(old & value),
            Change::CompareExchange(expected, value) => (old == expected).then_some(value),
            Change::Apply(function, operand) => Some(function.0(old, operand)),
        }
    }
}

/// What an access orders beyond its own word. TSO orders that much anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) acquires: bool,
    pub(crate) releases: bool,
    pub(crate) fails_acquiring: bool,
    /// Whether it has a place in the order of all that is sequentially consistent: at all, and if
    /// it changes nothing.
    pub(crate) in_order: [bool; 2],
}

impl Access {
    pub(crate) const STRONG: Access =
        Access { acquires: true, releases: true, fails_acquiring: true, in_order: [false; 2] };

    /// A lock is taken: what came before need not happen before the next taking of the lock.
    pub(crate) const ACQUIRE: Access = Access { releases: false, ..Access::STRONG };

    pub(crate) const RELEASE: Access =
        Access { acquires: false, fails_acquiring: false, ..Access::STRONG };

    pub(crate) const RELAXED: Access = Access { releases: false, ..Access::RELEASE };

    pub(crate) fn new(order: Ordering, failure: Ordering) -> Self {
        use Ordering::{AcqRel, Acquire, Release, SeqCst};
        Access {
            acquires: matches!(order, Acquire | AcqRel | SeqCst),
            releases: matches!(order, Release | AcqRel | SeqCst),
            fails_acquiring: matches!(failure, Acquire | SeqCst),
            in_order: [order == SeqCst, failure == SeqCst],
        }
    }
}

/// A step on a count of owners. Increases and decreases commute, as long as no thread looks at the
/// count: an owner only learns whether it was the last. Every decrease releases, and the last
/// decrease acquires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    /// One more, made by an owner.
    More,
    /// One fewer; returns 1 if it was the last.
    Fewer,
    /// One fewer, where the last one does nothing that could be noticed.
    FewerUnnoticed,
    /// Returns the count, and acquires what the owners that have gone have released.
    Look,
    /// One more if there is any owner, made by a thread that need not be an owner; returns 1 if
    /// there was one.
    MoreIfAny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Whether the thread's wait ends without a reason.
    WakesUp,
    /// The thread that is notified, of this number of waiting threads.
    Waiter(u8),
}

impl Choice {
    pub(super) fn count(self) -> usize {
        match self {
            Choice::WakesUp => 2,
            Choice::Waiter(count) => usize::from(count),
        }
    }
}

/// What a thread does next: the step at which it is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Start,
    Load(Loc),
    Store(Loc, u64),
    Change(Loc, Change),
    /// A read-modify-write that waits until the word, shifted right by the number, is zero.
    Await(Loc, u8, Change),
    /// It waits until a thread has ended and all its stores are in memory.
    Join(u8),
    Full,
    /// A fence that acquires, releases, or both, as its [`Access`] says. TSO has no use for it.
    Fence,
    Count(Loc, Owners),
    /// Takes one of the choice's possibilities; the search tries each. No step comes between this
    /// step and the thread's step before it.
    Choose(Choice),
    /// The process-wide barrier, which reaches the threads of this mask.
    HeavyStart(u8),
    HeavyFinish,
    /// It waits for something that it has looked at since its last pause to change; see `waits`.
    Pause,
    /// An operation that nobody could observe returns: its place in the history is chosen here.
    Mark,
    Finished,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) loc: Loc,
    pub(crate) value: u64,
    /// The number, within its thread, of the operation that issued it.
    pub(crate) operation: u32,
    /// How many delayed operations have become visible once this entry has drained.
    pub(crate) flushes: u8,
}

#[derive(Debug)]
pub(crate) struct Thread {
    /// Every store of this execution; those from `head` on are in the buffer.
    pub(crate) log: Vec<Entry>,
    pub(crate) head: usize,
    /// The stores issued before this thread's last observable step.
    pub(super) stable: usize,
    /// While it waits in a process-wide barrier: how far each thread's log must have drained.
    pub(super) targets: [u32; MAX_THREADS],
    pub(crate) pending: Op,
    pub(crate) access: Access,
    pub(crate) site: &'static Location<'static>,
    /// The fingerprint of all that this thread has done and read. Its local state is a function of
    /// that: it is deterministic, and reads are all it takes in.
    pub(crate) hash: u64,
    /// The fingerprint of when it last used which words and cells, if clocks are kept.
    pub(super) uses: u64,
    pub(super) reads: Vec<Look>,
    /// While it pauses: how long it would go on, if nothing changed.
    pub(crate) patience: Patience,
    pub(crate) vain: u32,
    /// The pauses that it still passes because it has given up.
    pub(super) passes: u32,
    /// The operations that it has begun, and whether the last call awaits its place in the history.
    pub(crate) operation: u32,
    pub(crate) call_waits: bool,
    pub(crate) clock: Clock,
    /// The clocks of the entries of `log`, if clocks are kept.
    pub(super) log_clocks: Vec<Clock>,
    pub(super) words: usize,
    /// How often the pending step has been shifted to another of its possibilities.
    pub(crate) shifted: usize,
}

/// The threads that have accessed a word in any execution so far: bit `i` is thread `i`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touched {
    pub(super) by: u8,
    pub(super) written_by: u8,
}

/// What the last observable step did to the history.
pub(crate) const CALLED: u8 = 1;
pub(crate) const RETURNED: u8 = 2;

/// An event's thread and kind: `kind * MAX_THREADS + thread`.
pub(crate) type Event = u8;
pub(crate) type Events = u64;
pub(crate) const KINDS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Step,
    /// The oldest entry of a thread's buffer (of its egress slot, if there is one) goes to memory.
    Drain,
    /// The two oldest entries of a thread's buffer, to one word, become one.
    Coalesce,
    /// A thread that pauses goes on although nothing that it has looked at has changed.
    GiveUp,
    /// The pending step is to take the next of its possibilities: a newer message to read, an older
    /// message to store before, or the next of a [choice](Op::Choose).
    Shift,
    /// Weak memory: a process-wide barrier reaches a thread.
    Barrier,
}

pub(crate) const fn step(thread: usize) -> Event {
    thread as u8
}

pub(crate) const fn drain(thread: usize) -> Event {
    (MAX_THREADS + thread) as u8
}

pub(crate) const fn coalesce(thread: usize) -> Event {
    (2 * MAX_THREADS + thread) as u8
}

pub(crate) const fn give_up(thread: usize) -> Event {
    (3 * MAX_THREADS + thread) as u8
}

pub(crate) const fn shift(thread: usize) -> Event {
    (4 * MAX_THREADS + thread) as u8
}

pub(crate) const fn barrier(thread: usize) -> Event {
    (5 * MAX_THREADS + thread) as u8
}

pub(crate) const fn bit(event: Event) -> Events {
    1 << event
}

#[inline]
pub(crate) fn decode(event: Event) -> (Kind, usize) {
    // As many as an event can name: a table of a power of two needs no check.
    const KIND: [Kind; 256 / MAX_THREADS] = {
        let mut kind = [Kind::Barrier; 256 / MAX_THREADS];
        kind[0] = Kind::Step;
        kind[1] = Kind::Drain;
        kind[2] = Kind::Coalesce;
        kind[3] = Kind::GiveUp;
        kind[4] = Kind::Shift;
        kind
    };
    (KIND[event as usize / MAX_THREADS], event as usize % MAX_THREADS)
}

/// What an event touches that another event could notice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Footprint {
    pub(crate) loc: Option<Loc>,
    pub(crate) writes: bool,
    /// What a thread that gives up has looked at: bit `i` stands for the words `i` modulo 64.
    pub(crate) looks: u64,
    /// The count of owners that it changes, and whether it may be the last but one to decrease it.
    pub(crate) counts: Option<(Loc, bool)>,
    /// Weak memory: the word of a sequentially consistent access, or [`FENCES`].
    pub(crate) in_order: Option<Loc>,
    /// It is a process-wide barrier: it notices how far every thread has come.
    pub(crate) all: bool,
    pub(crate) steps: bool,
    pub(crate) marks: u8,
}

impl Footprint {
    /// Whether the order of two events of different threads can be noticed.
    pub(crate) fn conflicts(&self, other: &Footprint) -> bool {
        let same_word =
            self.loc.is_some() && self.loc == other.loc && (self.writes || other.writes);
        let looked_at = |looks: u64, other: &Footprint| {
            other.writes && other.loc.is_some_and(|loc| looks >> (loc % 64) & 1 == 1)
        };
        // A fence notices accesses of all words, and they notice it.
        let in_order = match (self.in_order, other.in_order) {
            (Some(one), Some(other)) => one == other || one == FENCES || other == FENCES,
            _ => false,
        };
        let counted = |counts: Option<(Loc, bool)>, other: &Footprint| {
            counts.is_some_and(|(loc, near_zero)| {
                other.loc == Some(loc) || near_zero && other.counts == counts
            })
        };
        same_word
            || counted(self.counts, other)
            || counted(other.counts, self)
            || in_order
            || looked_at(self.looks, other)
            || looked_at(other.looks, self)
            || (self.all && other.steps)
            || (other.all && self.steps)
            || (self.marks & RETURNED != 0 && other.marks & CALLED != 0)
            || (self.marks & CALLED != 0 && other.marks & RETURNED != 0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Entries a buffer can hold, the egress entries included; 0 for sequential consistency.
    pub(crate) capacity: usize,
    /// How many entries there are behind the buffer that coalesce.
    pub(crate) egress: usize,
}
