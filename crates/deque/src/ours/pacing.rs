//! Every tuned constant of the queues that no paper has, with its reason. What each number gave,
//! and beside which others, is in `docs/notebook/deque.md`.

/// How often a thief looks whether the owner of a biased deque or a FIFO has opened it, before it
/// pays for a barrier.
pub(crate) const LOOKS: u32 = 64;

/// How long an owner stays eager.
pub(crate) mod biased {
    /// Pushes for which an owner is eager after it was away, the first time. Each time without an
    /// answer in between the number doubles, up to `LONGEST`: the extra cost is then about that of
    /// a thief's looks and barrier.
    pub(crate) const SHORTEST: u32 = 64;

    pub(crate) const LONGEST: u32 = 1 << 14;

    /// How many eager pushes an eager pop is worth: it has a compare-and-swap.
    pub(crate) const POP: u32 = 8;
}

/// When an owner closes its queue, and a thief keeps its distance.
pub(crate) mod fifo {
    /// Pops with no thief between them after which the owner closes an open queue; twice as many,
    /// up to `LONGEST`, if it soon has to open it.
    pub(crate) const SHORTEST: u32 = 32;

    pub(crate) const LONGEST: u32 = 1 << 14;

    /// Pops of a closed queue that were worth closing it: their exchanges take about as long as a
    /// thief's looks and barrier.
    pub(crate) const WORTH: u64 = 1024;

    /// When a thief waits for the owner to get ahead, and for what: see "Distance". What each
    /// number gave is in `docs/notebook/deque.md`.
    #[derive(Clone, Copy)]
    pub(crate) struct Distance {
        /// A thief that has a pace waits if there are fewer tasks than these.
        pub(crate) near: i64,
        /// How many tasks are to come in while it waits.
        pub(crate) enough: u64,
        /// The first pace, in pauses. While a cache line is on its way from the owner nothing
        /// seems to come in, and a pace that is too short for that is given up.
        pub(crate) first: u64,
    }

    /// For a single theft. Nobody but thieves moves `head` while the owner pushes. A thief of
    /// single tasks that waits too long misses that time. It then takes its tasks between the
    /// owner's pops, where each theft waits for the line of `head` and makes the owner wait for it.
    pub(crate) const FOR_ONE: Distance = Distance { near: 32, enough: 64, first: 4 };

    /// For a claim of several tasks.
    pub(crate) const FOR_SEVERAL: Distance = Distance { near: 32, enough: 128, first: 4 };

    /// For a claim of half of what is there. If there are few it is soon back for the half of the
    /// rest.
    pub(crate) const FOR_HALF: Distance = Distance { near: 128, enough: 192, first: 16 };

    /// The longest wait, in pauses: twelve microseconds.
    pub(crate) const LONGEST_PACE: u64 = 512;

    /// An owner that pushes or pops less than once in this number of pauses does not wait for cache
    /// lines, and thieves do not wait for it.
    pub(crate) const SLOW: u64 = 4;

    /// Pauses of a thief after an exchange over a single task that it has lost: under a
    /// microsecond. In that time the owner takes some tasks without the thief's request for the
    /// line of `head`.
    pub(crate) const LOST: u32 = 16;
}

/// Blocks, and waits of pushes and thieves.
pub(crate) mod injector {
    /// Slots of a block.
    pub(crate) const BLOCK: usize = 64;

    /// For how many pauses of the processor a thief waits for a push that has begun, before it
    /// contests the slot: some microseconds, as its barrier takes. A push has a few
    /// instructions left there, unless its thread has lost the processor.
    pub(crate) const PATIENCE: u32 = 200;

    /// The slot whose push makes the next block: late enough that thieves have given memory back,
    /// early enough for its cache lines to come.
    pub(crate) const AHEAD: usize = 8;

    /// A thief of a task that keeps its distance knows of this many tickets above the head, or
    /// waits: two cache lines of small tasks.
    pub(crate) const NEAR: u64 = 8;

    /// How many tasks are to come in while a thief waits.
    pub(crate) const ENOUGH: u64 = 32;

    /// The first and the longest wait, in pauses: a microsecond or a few.
    pub(crate) const FIRST_PACE: u32 = 4;

    pub(crate) const LONGEST_PACE: u64 = 64;

    /// For how many pauses a thief waits that has lost an exchange.
    pub(crate) const LOST: u32 = 64;

    /// The first wait of a push that has met others, in pauses of the processor. If a pause takes
    /// 23 ns, it is as long as 500 pushes of one thread.
    pub(crate) const FIRST_WAIT: u32 = 128;

    /// The longest wait of a push.
    pub(crate) const LONGEST_WAIT: u32 = 1024;
}
