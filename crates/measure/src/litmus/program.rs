//! The worker and the thief of the paper: both empty one FF-THE queue, and every task is counted.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 7.3,
//! Figure 9.
//!
//! A round begins with 512 tasks in a queue whose thieves keep `delta` away from what they see of
//! the owner. The worker pops and makes `L` stores, until the queue is empty; the thief steals
//! until it aborts. If a thief can miss more than `delta` of the worker's pops, both take the same
//! tasks.
//!
//! The queue and its memory are those that ship. Its bound depends on the number of stores between
//! two stores of `tail`, so the worker makes no other store. Its counters are in registers, and so
//! is the queue's private copy of `tail`, because `drain` owns the queue and no other code has its
//! address.
//!
//! *Counting.* The worker takes the highest index that is left and the thief the lowest, so each
//! has taken a stretch, and the sum of the tasks' numbers shows that it has. What both stretches
//! cover was taken twice; what neither does was lost.
//!
//! *After a violation* the queue's `head` is above its `tail`. The worker pushes as many tasks as
//! were taken twice, which makes it an empty queue again, and goes on with a new one.

use core::fmt;
use core::mem::ManuallyDrop;
use core::num::NonZeroU64;
use core::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use poach_deque::{FfThe, Owner, Steal};
use poach_memory::{CachePadded, Machine, Memory, Ordering};
use serde::{Deserialize, Serialize};

use super::CannotTest;
use crate::place::{self, CannotPlace};
use crate::trial::Trial;

/// Tasks in the queue when a round begins: the paper's.
pub const TASKS: u64 = 512;

type Word64 = <Machine as Memory>::Word;
type Flag = CachePadded<Word64>;
type Thief = <FfThe<u32> as Owner<u32>>::Thief;

/// Where the worker's stores between two pops go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Distinct cache lines: the paper's.
    Lines,
    /// Neighbouring words of one line: whether a line's stores leave the buffer as one.
    Words,
    /// One word: whether one address's stores do.
    One,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 3] = [Target::Lines, Target::Words, Target::One];

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Target::Lines => "lines",
            Target::Words => "words",
            Target::One => "one",
        }
    }
}

/// A point of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The paper's L: the worker's stores between two pops.
    pub stores: u64,
    /// How many pops the thief allows for.
    pub delta: u64,
    /// Where the stores go.
    pub target: Target,
}

/// The most stores that a point may have between two pops: it is many times what any buffer holds.
const MOST_STORES: u64 = 10_000;

/// From `STORES:DELTA` or `STORES:DELTA:TARGET`, the target being one of the documents' names.
impl FromStr for Point {
    type Err = NoPoint;

    fn from_str(text: &str) -> Result<Point, NoPoint> {
        let mut parts = text.split(':');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (stores, delta) = number().zip(number()).ok_or(NoPoint::Form)?;
        let target = match parts.next() {
            None => Target::Lines,
            Some(name) => {
                Target::ALL.into_iter().find(|target| target.name() == name).ok_or(NoPoint::Form)?
            }
        };
        if parts.next().is_some() {
            return Err(NoPoint::Form);
        }
        if stores > MOST_STORES {
            return Err(NoPoint::Stores);
        }
        if !(1..TASKS).contains(&delta) {
            return Err(NoPoint::Delta);
        }
        Ok(Point { stores, delta, target })
    }
}

/// Why a text is no point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPoint {
    /// It has another form.
    Form,
    /// More stores than any buffer holds many times over.
    Stores,
    /// The thief would allow for no pop, or keep away from every task.
    Delta,
}

impl fmt::Display for NoPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPoint::Form => f.write_str(
                "a point is STORES:DELTA or STORES:DELTA:TARGET, and a target is lines, words or one",
            ),
            NoPoint::Stores => write!(f, "more than {MOST_STORES} stores between two pops tell nothing"),
            NoPoint::Delta => {
                write!(f, "a delta is 1 to {}: there are {TASKS} tasks in the queue", TASKS - 1)
            }
        }
    }
}

impl std::error::Error for NoPoint {}

/// What the rounds of a point came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Rounds run.
    pub rounds: u64,
    /// Rounds in which not every task was taken exactly once.
    pub incorrect: u64,
    /// Tasks taken twice, over all rounds.
    pub duplicates: u64,
    /// Most tasks taken twice in one round.
    pub largest_duplicate: u64,
    /// Tasks never taken, over all rounds.
    pub losses: u64,
    /// Most tasks never taken in one round.
    pub largest_loss: u64,
    /// Rounds whose tasks were not the two stretches that they must be.
    pub disordered: u64,
    /// Tasks that the thief got: a thief that gets none tests nothing.
    pub stolen: u64,
}

impl Outcome {
    /// Adds a round: how many tasks each took, and the sums of their numbers.
    fn count(&mut self, worker: (u64, u64), thief: (u64, u64)) {
        let sum = |from: u64, to: u64| (from..to).sum::<u64>();
        let (taken, stolen) = (worker.0.min(TASKS), thief.0.min(TASKS));
        let both = worker.0 + thief.0;
        let ordered =
            worker == (taken, sum(TASKS - taken, TASKS)) && thief == (stolen, sum(0, stolen));
        let (twice, lost) = (both.saturating_sub(TASKS), TASKS.saturating_sub(both));
        self.rounds += 1;
        self.incorrect += u64::from(twice > 0 || lost > 0 || !ordered);
        self.duplicates += twice;
        self.largest_duplicate = self.largest_duplicate.max(twice);
        self.losses += lost;
        self.largest_loss = self.largest_loss.max(lost);
        self.disordered += u64::from(!ordered);
        self.stolen += thief.0;
    }

    /// These rounds and those.
    #[must_use]
    pub fn and(self, other: Outcome) -> Outcome {
        Outcome {
            rounds: self.rounds + other.rounds,
            incorrect: self.incorrect + other.incorrect,
            duplicates: self.duplicates + other.duplicates,
            largest_duplicate: self.largest_duplicate.max(other.largest_duplicate),
            losses: self.losses + other.losses,
            largest_loss: self.largest_loss.max(other.largest_loss),
            disordered: self.disordered + other.disordered,
            stolen: self.stolen + other.stolen,
        }
    }
}

/// The worker of Figure 9: how many tasks it took, and the sum of their numbers.
#[inline(never)]
fn drain(queue: FfThe<u32>, targets: &[&Word64]) -> (FfThe<u32>, u64, u64) {
    let (mut taken, mut sum) = (0_u64, 0_u64);
    // A local that no destructor looks at, even in unwinding, is taken apart into registers.
    let queue = ManuallyDrop::new(queue);
    while let Some(task) = queue.pop() {
        taken += 1;
        sum += u64::from(task);
        for target in targets {
            // Relaxed: no thread reads it; it takes an entry of the store buffer.
            target.store(taken, Ordering::Relaxed);
        }
    }
    (ManuallyDrop::into_inner(queue), taken, sum)
}

/// The thief of Figure 9.
fn rob(thief: &Thief) -> (u64, u64) {
    let (mut stolen, mut sum) = (0, 0);
    loop {
        match thief.steal() {
            Steal::Success(task) => {
                stolen += 1;
                sum += u64::from(task);
            }
            Steal::Retry => Machine::pause(),
            Steal::Empty | Steal::Abort => return (stolen, sum),
        }
    }
}

/// Where the worker's stores go, and which thread's lines they are.
struct Lines(Vec<CachePadded<[Word64; 8]>>);

impl Lines {
    fn new(stores: usize) -> Lines {
        Lines((0..stores.max(1)).map(|_| CachePadded::new([const { Word64::new(0) }; 8])).collect())
    }

    fn targets(&self, point: Point) -> Vec<&Word64> {
        let target = |store: usize| match point.target {
            Target::Lines => &self.0[store][0],
            Target::Words => &self.0[0][store % 8],
            Target::One => &self.0[0][0],
        };
        (0..point.stores as usize).map(target).collect()
    }
}

/// What worker and thief share beside the queue.
#[derive(Default)]
struct Referee {
    /// The round that has begun.
    begun: Flag,
    /// The round that the thief has ended.
    ended: Flag,
    stolen: Flag,
    sum: Flag,
    /// The round that has a new queue.
    fresh: Flag,
    /// The thief's handle to a queue that it does not know yet.
    new: Mutex<Option<Thief>>,
}

/// After the last round.
const OVER: u64 = u64::MAX;

impl Referee {
    /// Waits until `flag` is not `than` any more.
    fn change(flag: &Flag, than: u64) -> u64 {
        let mut spins = 0_u32;
        loop {
            // Acquire: pairs with the releasing store of a thread that waits no more.
            let now = flag.load(Ordering::Acquire);
            if now != than {
                return now;
            }
            spins += 1;
            if spins < 1 << 12 {
                Machine::pause();
            } else {
                // The other one may need this processor.
                thread::yield_now();
            }
        }
    }

    fn hand(&self, thief: Option<Thief>) {
        *self.new.lock().unwrap_or_else(PoisonError::into_inner) = thief;
    }

    fn receive(&self) -> Option<Thief> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Ends the thief's waiting, whatever happens to the worker.
struct Over<'a>(&'a Referee);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `change`.
        self.0.begun.store(OVER, Ordering::Release);
    }
}

/// Runs `rounds` rounds of `point`, on the two processors of `pair` or wherever the system puts the
/// threads; fewer if `stop` is set meanwhile.
///
/// # Errors
///
/// [`CannotTest`] if a thread cannot be bound or started, or this is no machine with total store
/// order.
pub fn run(
    point: Point,
    rounds: u64,
    pair: Option<(usize, usize)>,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Outcome, CannotTest> {
    let pops = NonZeroU64::new(point.delta).ok_or(CannotTest::NoDelta)?;
    let trial = Trial { pops, fill: false };
    run_with(trial, point.stores, point.target, rounds, pair, seed, stop)
}

/// As [`run`], with any bound.
pub(super) fn run_with(
    trial: Trial,
    stores: u64,
    target: Target,
    rounds: u64,
    pair: Option<(usize, usize)>,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Outcome, CannotTest> {
    let point = Point { stores, delta: trial.pops.get(), target };
    let make = || trial.queue(2 * TASKS as usize);
    let first = make()?;
    let referee = Referee::default();
    referee.hand(Some(first.thief()));
    let bind = |processor: Option<usize>| processor.map_or(Ok(()), place::bind);
    let (ready, is_ready) = mpsc::channel::<Result<(), CannotPlace>>();
    let (referee, bind, make) = (&referee, &bind, &make);
    thread::scope(|scope| {
        let builder = || thread::Builder::new().name("litmus".to_owned());
        builder()
            .spawn_scoped(scope, move || {
                let bound = bind(pair.map(|(_, thief)| thief));
                let well = bound.is_ok();
                // The worker has gone only if it could not be bound itself.
                let heard = ready.send(bound).is_ok();
                if well && heard {
                    steal_rounds(referee, seed);
                }
            })
            .map_err(CannotTest::Thread)?;
        let worker = builder()
            .spawn_scoped(scope, move || {
                let _over = Over(referee);
                bind(pair.map(|(worker, _)| worker))?;
                is_ready.recv().unwrap_or(Err(CannotPlace::Unsupported))?;
                work_rounds(referee, first, make, point, rounds, seed, stop)
            })
            .map_err(|error| {
                drop(Over(referee));
                CannotTest::Thread(error)
            })?;
        worker.join().unwrap_or(Err(CannotTest::Panicked))
    })
}

/// Lets up to `most` pauses pass, so that the two do not meet at the same place each time.
fn linger(random: &mut fastrand::Rng, most: u32) {
    for _ in 0..random.u32(..most) {
        Machine::pause();
    }
}

fn work_rounds(
    referee: &Referee,
    mut queue: FfThe<u32>,
    make: impl Fn() -> Result<FfThe<u32>, CannotTest>,
    point: Point,
    rounds: u64,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Outcome, CannotTest> {
    let mut random = fastrand::Rng::with_seed(seed);
    let lines = Lines::new(point.stores as usize);
    let targets = lines.targets(point);
    let mut outcome = Outcome::default();
    for round in 1..=rounds {
        // Relaxed: it hands nothing over.
        if stop.load(Relaxed) {
            break;
        }
        for task in 0..TASKS as u32 {
            queue.push(task);
        }
        // SeqCst: the tasks' stores have left the buffer when the round begins.
        referee.begun.swap(round, Ordering::SeqCst);
        linger(&mut random, 64);
        let (back, taken, sum) = drain(queue, &targets);
        queue = back;
        Referee::change(&referee.ended, round - 1);
        // Relaxed, both: `change` has acquired what the thief released after them.
        let thief = (referee.stolen.load(Ordering::Relaxed), referee.sum.load(Ordering::Relaxed));
        outcome.count((taken, sum), thief);
        if taken + thief.0 != TASKS {
            // The stretch that both took, or none: then `head` is `tail` again.
            for _ in TASKS..taken + thief.0 {
                queue.push(0);
            }
            queue = make()?;
            referee.hand(Some(queue.thief()));
            // Relaxed: the next round's beginning releases it.
            referee.fresh.store(round + 1, Ordering::Relaxed);
        }
    }
    Ok(outcome)
}

fn steal_rounds(referee: &Referee, seed: u64) {
    let mut random = fastrand::Rng::with_seed(!seed);
    let Some(mut thief) = referee.receive() else { return };
    let mut round = 0;
    loop {
        let next = Referee::change(&referee.begun, round);
        if next == OVER {
            return;
        }
        round = next;
        // Relaxed: written before the release that `change` acquired.
        if referee.fresh.load(Ordering::Relaxed) == round {
            if let Some(new) = referee.receive() {
                thief = new;
            }
        }
        linger(&mut random, 64);
        let (stolen, sum) = rob(&thief);
        // Relaxed, both: the release of `ended` follows.
        referee.stolen.store(stolen, Ordering::Relaxed);
        referee.sum.store(sum, Ordering::Relaxed);
        // Release: pairs with the acquire in `change`.
        referee.ended.store(round, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(from: u64, to: u64) -> (u64, u64) {
        (to - from, (from..to).sum())
    }

    #[test]
    fn points_are_read_and_senseless_ones_refused() {
        let point = |stores, delta, target| Ok(Point { stores, delta, target });
        assert_eq!("72:1".parse(), point(72, 1, Target::Lines));
        assert_eq!("4:17:one".parse(), point(4, 17, Target::One));
        for text in ["", "4", "4:", "4:17:two", "4:17:one:1", "-1:4", "x:1"] {
            assert_eq!(text.parse::<Point>(), Err(NoPoint::Form), "{text}");
        }
        assert_eq!("1:0".parse::<Point>(), Err(NoPoint::Delta));
        assert_eq!("1:512".parse::<Point>(), Err(NoPoint::Delta));
        assert_eq!("10001:1".parse::<Point>(), Err(NoPoint::Stores));
    }

    #[test]
    fn rounds_are_counted_by_their_stretches() {
        let mut outcome = Outcome::default();
        outcome.count(stretch(100, 512), stretch(0, 100));
        assert_eq!(outcome, Outcome { rounds: 1, stolen: 100, ..Outcome::default() });
        outcome.count(stretch(97, 512), stretch(0, 100));
        assert_eq!((outcome.incorrect, outcome.duplicates, outcome.largest_duplicate), (1, 3, 3));
        outcome.count(stretch(105, 512), stretch(0, 100));
        assert_eq!((outcome.incorrect, outcome.losses, outcome.largest_loss), (2, 5, 5));
        assert_eq!(outcome.disordered, 0);
        outcome.count((412, 0), stretch(0, 100));
        assert_eq!((outcome.incorrect, outcome.disordered), (3, 1));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_bound_that_covers_the_queue_is_never_violated() {
        for (stores, target) in [(0, Target::Lines), (3, Target::Lines), (9, Target::Words)] {
            let point = Point { stores, delta: TASKS - 1, target };
            let outcome = run(point, 20, None, 1, &AtomicBool::new(false)).unwrap();
            assert_eq!((outcome.rounds, outcome.incorrect), (20, 0), "{outcome:?}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn it_stops_when_it_is_told() {
        let point = Point { stores: 1, delta: 400, target: Target::One };
        let outcome = run(point, u64::MAX, None, 1, &AtomicBool::new(true)).unwrap();
        assert_eq!(outcome.rounds, 0);
    }

    #[test]
    fn a_delta_of_nothing_is_refused() {
        let point = Point { stores: 1, delta: 0, target: Target::Lines };
        let refused = run(point, 1, None, 1, &AtomicBool::new(false));
        assert!(matches!(refused, Err(CannotTest::NoDelta)));
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
    fn a_processor_that_is_not_there_is_an_error() {
        let point = Point { stores: 1, delta: 400, target: Target::Lines };
        for pair in [(0, 1 << 20), (1 << 20, 0)] {
            let refused = run(point, 1, Some(pair), 1, &AtomicBool::new(false));
            assert!(matches!(refused, Err(CannotTest::Place(_))), "{refused:?}");
        }
    }
}
