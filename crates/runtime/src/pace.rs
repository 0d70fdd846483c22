//! Every tuned constant of the scheduler, with its reason: how often and how long workers look,
//! nap, rest and hesitate, and how much they take at once.
//!
//! This file is the table. It stands below the modules that use it, so that a constant is changed
//! in one place, and each name says what it limits. A constant that is not tuned (the width of a
//! word, the limit of an interface) stands at its use.
//!
//! # What each mechanism brings
//!
//! `cargo xtask ablate` leaves out each mechanism that these constants belong to, alone. The time
//! without it over the time with it, on simulated processors, geometric means of 15 seeds. A mean of
//! the last column is good to about .04, and one of the others to .01:
//!
//! | without | fib, 48 | queens, 48 | short UTS T3L, 8 |
//! |---|---|---|---|
//! | the back-off from small steals | 1.00 | 1.00 | 1.24 |
//! | less credit after each rest in a row | 1.00 | 1.00 | 1.14 |
//! | the cost of waits for parts of a steal | 1.00 | 1.00 | 1.09 |
//! | looks by the clock | 1.00 | 1.01 | 1.02 |
//! | the first exposure, after [`EAGER_LOOKS`] | 1.00 | 1.00 | 1.03 |
//! | the pauses between looks | 1.00 | 1.00 | 1.07 |
//! | one of all victims first | 1.06 | 1.08 | .99 |
//!
//! All else is within 1 % in these rows, which have one region each and no thread from outside. So
//! they say nothing of the wake policy, the naps, the budget of looks, guests and contended
//! processors. These need the other rows of `ablation.json`, on a quiet machine;
//! `docs/notebook/runtime.md` has their earlier measurements.

use std::time::Duration;

// How often an idle worker looks before it sleeps.

/// How often an idle worker looks at everything before it sleeps. The first looks come without a
/// yield, the others with a yield after each, unless yields take long (`GiveWay`).
pub(crate) const SPIN_LOOKS: u32 = 64;

/// The number of these looks without a yield. After them, and before it sleeps, it exposes private
/// tasks of owners that do not come back: see "Private tasks behind a long leaf" in
/// `sleep/README.md`.
pub(crate) const EAGER_LOOKS: u32 = 16;

/// A search asks the clock once in this number of looks: in a large pool a look takes long.
pub(crate) const LOOKS_BETWEEN_CLOCKS: u32 = 2;

/// Pauses of the processor between two eager looks.
pub(crate) const PAUSES_BETWEEN_LOOKS: u32 = 8;

// How long it looks.

/// How long a worker looks in any case.
pub(crate) const SPIN_BASE: Duration = Duration::from_micros(50);

/// The longest interval between two pieces of work through which a worker looks.
pub(crate) const LONGEST_SPIN_INTERVAL: Duration = Duration::from_millis(1);

/// How long a worker looks if its work comes at longer intervals.
pub(crate) const RARE_SPIN: Duration = Duration::from_micros(5);

/// The share of its working time for which a worker may look, beyond the base, in the long run: one
/// in this number.
pub(crate) const SPIN_SHARE: u32 = 10;

/// The most that a worker saves for later looks.
pub(crate) const LARGEST_SPIN_BUDGET: Duration = Duration::from_millis(2);

// How long it naps.

/// The first nap of a worker that sleeps while another runs something. The next ones double, up to
/// [`LONGEST_NAP`]. While owners hesitate to wake a worker, they are as long as this. See
/// `sleep/README.md`.
pub(crate) const FIRST_NAP: Duration = Duration::from_millis(1);

/// The longest nap, after all shorter ones found nothing.
pub(crate) const LONGEST_NAP: Duration = Duration::from_secs(1);

/// The longest nap during which an owner may count on the napper, and the nap of one worker while
/// owners hesitate and none runs anything: see "Requests that are put off" in `sleep/README.md`.
/// With naps that doubled from [`FIRST_NAP`], and of each worker, a pool of two that was called
/// every 30 ms took 1.65 times rayon's processor time; with one such napper 1.0 to 1.3, and with
/// this .8.
pub(crate) const LONGEST_OWNERS_NAP: Duration = Duration::from_millis(64);

// When an owner wakes a sleeper: in nanoseconds, unless a comment says otherwise.

/// How long a region runs before a hesitating owner wakes a sleeper for it.
pub(crate) const RENT: u64 = 64_000;

/// The assumed cost of a wake to its owner before one was measured, and the maximum: the owner may
/// lose its processor meanwhile.
pub(crate) const WAKE_COST: u64 = 10_000;

/// The account holds at most the cost of this number of wakes.
pub(crate) const WAKES_ON_ACCOUNT: u64 = 2;

/// The first time for which a debt is remembered. One useless wake in that time costs some
/// microseconds of each twenty milliseconds.
pub(crate) const FIRST_HESITATION: u64 = 20_000_000;

/// Each debt is remembered for twice as long as the last one, up to this, unless a wake in between
/// was worth its cost.
pub(crate) const LONGEST_HESITATION: u64 = FIRST_HESITATION << 4;

/// The most that the first mistaken delay of a wake counts for: a nap of a sleeper.
pub(crate) const DEAREST_DELAY: u64 = 1_000_000;

/// Each further mistaken delay, without a right one in between, counts for up to twice as much, up
/// to this: some thousand wakes.
pub(crate) const DEAREST_DELAY_OF_ALL: u64 = DEAREST_DELAY << 6;

/// Forks further apart than this belong to different regions, if no private task was left between
/// them.
pub(crate) const REGION_GAP: u64 = 10_000;

// When a thief rests.

/// The least worth of a steal. Half of a region of 8 microseconds brings 4.2. A subtree of some
/// hundred nodes, half a microsecond of work, takes 1.8 to 4.9 while its owner steals back from it:
/// 0.9 to 2.0 for each of these steals.
pub(crate) const STEAL_COST: Duration = Duration::from_micros(3);

/// The credit of a new thief. After the first rest it begins with half of that, and so on.
pub(crate) const FIRST_STEAL_CREDIT: Duration = Duration::from_micros(12);

/// The most that a thief saves for later steals.
pub(crate) const LARGEST_STEAL_CREDIT: Duration = Duration::from_millis(1);

/// The first rest; the next ones double.
pub(crate) const FIRST_REST: Duration = Duration::from_micros(50);

/// How often a rest doubles.
pub(crate) const REST_DOUBLINGS: u32 = 3;

// When a yield takes long.

/// A yield of this length has run a program that computes. With a tenth of it four workers on two
/// processors took each other for such a program, and were slow.
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

/// The number of tasks of a burst from outside that a worker runs without a look at the other
/// workers; of futures that a wait runs while it begins no closure, without one closure.
pub(crate) const BURST_TASKS_AT_ONCE: u32 = 64;

/// The default number of tasks that a worker may have under way on top of waits.
pub(crate) const NESTING: usize = 64;

/// The used size of a call stack of unknown size from which waits are restricted: half of what a
/// thread of the standard library has left when most of it was used before.
pub(crate) const UNKNOWN_HALF_STACK: usize = 512 << 10;

/// One in this number of deep yields runs something.
pub(crate) const DEEP_YIELDS: u32 = 1000;

/// How long a patient wait sleeps without being woken before it takes any task.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1);

// How much memory is kept after a burst.

/// A worker's queue of spawned tasks with more slots than this, of 64 bytes and a word each, is
/// given back when its worker has slept for [`LONGEST_OWNERS_NAP`] without being called. A burst
/// that comes sooner finds the memory of the last one.
pub(crate) const KEPT_SLOTS: usize = 1 << 12;

/// That of a guest is cut to this when it leaves, since no thread sleeps in its place. So a million
/// tasks that come again and again find the memory of the last million.
pub(crate) const KEPT_SLOTS_OF_A_GUEST: usize = 1 << 20;
