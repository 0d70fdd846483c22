//! Every tuned constant of the scheduler, with its reason: how often and how long workers look,
//! nap, rest and hesitate, and how much they take at once.
//!
//! This file is the table. It stands below the modules that use it, so that a constant is changed
//! in one place, and each is named by what it limits. What is no matter of tuning (the width of a
//! word, the limit of an interface) stands where it is used.

use std::time::Duration;

// How often an idle worker looks before it sleeps.

/// How often an idle worker looks at everything before it sleeps: first at once, then giving its
/// processor away after each look, if that does not take long (`GiveWay`).
pub(crate) const SPIN_LOOKS: u32 = 64;

/// How many of these looks come without giving the processor away. After them, and before it
/// sleeps, it exposes what owners keep private that do not come back: see "Private tasks behind a
/// long leaf" in `sleep/README.md`.
pub(crate) const EAGER_LOOKS: u32 = 16;

/// A search finds out whether it has lasted long enough after so many looks each time: in a large
/// pool a look takes long.
pub(crate) const LOOKS_BETWEEN_CLOCKS: u32 = 2;

/// Pauses of the processor between two eager looks.
pub(crate) const PAUSES_BETWEEN_LOOKS: u32 = 8;

// How long it looks.

/// How long a worker looks in any case.
pub(crate) const SPIN_BASE: Duration = Duration::from_micros(50);

/// The longest interval between two pieces of work through which a worker looks.
pub(crate) const LONGEST_SPIN_INTERVAL: Duration = Duration::from_millis(1);

/// How long a worker looks to which work comes at intervals that are longer than that.
pub(crate) const RARE_SPIN: Duration = Duration::from_micros(5);

/// What part of the time that its work takes a worker may look, beyond the base, in the long run.
pub(crate) const SPIN_SHARE: u32 = 10;

/// The most that a worker saves for later looks.
pub(crate) const LARGEST_SPIN_BUDGET: Duration = Duration::from_millis(2);

// How long it naps.

/// The first nap of a worker that sleeps while another runs something. The next ones double, up to
/// [`LONGEST_NAP`], unless owners hesitate to wake anybody: then they are as long as this, or
/// [`LONGEST_OWNERS_NAP`] at most while nobody runs anything. See `sleep/README.md`.
pub(crate) const FIRST_NAP: Duration = Duration::from_millis(1);

/// The longest nap, of a worker that has found nothing at the end of all shorter ones.
pub(crate) const LONGEST_NAP: Duration = Duration::from_secs(1);

/// The longest nap during which an owner may count on the napper: see "Requests that are put off"
/// in `sleep/README.md`.
pub(crate) const LONGEST_OWNERS_NAP: Duration = Duration::from_millis(64);

// When an owner wakes a sleeper: nanoseconds, where nothing else is said.

/// How long a region runs before a hesitating owner wakes a sleeper for it.
pub(crate) const RENT: u64 = 64_000;

/// What a wake is taken to cost its owner before one was measured, and at most: it may lose its
/// processor meanwhile.
pub(crate) const WAKE_COST: u64 = 10_000;

/// The account holds as much as so many wakes cost.
pub(crate) const WAKES_ON_ACCOUNT: u64 = 2;

/// How long a debt is remembered, at first. One useless wake in so long costs some microseconds of
/// each twenty milliseconds.
pub(crate) const FIRST_HESITATION: u64 = 20_000_000;

/// Each debt without a wake in between that was worth its cost is remembered for twice as long, up
/// to this.
pub(crate) const LONGEST_HESITATION: u64 = FIRST_HESITATION << 4;

/// The most that a wake which was put off wrongly counts for, at first: what sleepers nap.
pub(crate) const DEAREST_DELAY: u64 = 1_000_000;

/// Each that is put off wrongly, with none between that was put off rightly, may count for twice
/// as much, up to this: some thousand wakes.
pub(crate) const DEAREST_DELAY_OF_ALL: u64 = DEAREST_DELAY << 6;

/// Forks further apart than this belong to different regions, if nothing private was left between
/// them.
pub(crate) const REGION_GAP: u64 = 10_000;

// When a thief rests.

/// What a steal must bring. Half of a region of 8 microseconds brings 4.2. A subtree of some
/// hundred nodes, half a microsecond of work, takes 1.8 to 4.9 while its owner steals back from
/// it, which is 0.9 to 2.0 for each of the steals that this makes.
pub(crate) const STEAL_COST: Duration = Duration::from_micros(3);

/// The credit that a thief begins with. It begins with half of that after the first rest, and so
/// on.
pub(crate) const FIRST_STEAL_CREDIT: Duration = Duration::from_micros(12);

/// The most that a thief saves for later steals.
pub(crate) const LARGEST_STEAL_CREDIT: Duration = Duration::from_millis(1);

/// The first rest; the next ones double.
pub(crate) const FIRST_REST: Duration = Duration::from_micros(50);

/// How often a rest doubles.
pub(crate) const REST_DOUBLINGS: u32 = 3;

// When a yield takes long.

/// A yield of this length has run a program that computes. A tenth of it made four workers on two
/// processors slow, which took each other for one.
pub(crate) const LONG_YIELD: Duration = Duration::from_millis(1);

/// How long one such yield is remembered: some ten slices, so that it costs little to ask again.
pub(crate) const CONTENDED_FOR: Duration = Duration::from_millis(50);

// How long a thread looks before it blocks.

/// How long a thread looks before it blocks. On a virtual machine a thread is woken from a halted
/// processor within 20 to 60 us.
pub(crate) const SIGNAL_SPIN: Duration = Duration::from_micros(50);

/// How often it looks between two yields.
pub(crate) const SIGNAL_LOOKS: u32 = 16;

// How much is taken at once, and how deep waits nest.

/// So many tasks of a burst from outside a worker runs without a look at the other workers.
pub(crate) const BURST_TASKS_AT_ONCE: u32 = 64;

/// Tasks that a worker may have under way on top of waits unless the builder says otherwise.
pub(crate) const NESTING: usize = 64;

/// How much of a call stack of unknown size may be used before waits are restricted: half of what
/// a thread of the standard library has left when most of it was used before.
pub(crate) const UNKNOWN_HALF_STACK: usize = 512 << 10;

/// One in so many deep yields runs something.
pub(crate) const DEEP_YIELDS: u32 = 1000;

/// How long a patient wait sleeps without being woken before it takes any task.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1);
