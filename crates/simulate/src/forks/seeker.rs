//! A simulated worker as the runtime's search for work sees it, and what it sleeps on.

use std::ops::Sub;
use std::sync::Arc;
use std::time::Duration;

use poach_deque::split::Exposure;
use poach_memory::{CachePadded, Memory, Ordering, Word};
use poach_runtime::generic::{
    Caller, Clock, GivesWay, Parking, Random, SearchLoop, Searcher, Sees, Sleep, SpinTime,
    StealBackoff, Takes, Unrestricted, VictimOrder, WakePolicy, Wakes,
};

use super::stack::Stolen;
use super::tree::Tree;
use super::{Pool, bump};
use crate::{Coherent, CoherentWord, Description, Threads, work};

/// An instant of simulated time, in picoseconds.
#[derive(Clone, Copy)]
pub(super) struct Instant(u64);

fn nanoseconds(picoseconds: u64) -> Duration {
    Duration::from_nanos(picoseconds / 1000)
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        nanoseconds(self.0.saturating_sub(earlier.0))
    }
}

/// The clock of the processor that reads it, to which that costs nothing.
pub(super) struct SimulatedClock;

impl Clock for SimulatedClock {
    type Instant = Instant;

    fn now() -> Instant {
        Instant(crate::now())
    }
}

/// Where a simulated worker sleeps. It looks at a word of its own from time to time, which stands
/// for a thread that does nothing.
pub(super) struct Bed {
    called: CachePadded<CoherentWord>,
    costs: Threads,
}

/// How long a sleeper does not look, in picoseconds: a fiftieth of what it takes to be awake.
const STEP: u64 = 1_000_000;

fn picoseconds(nanoseconds: f64) -> u64 {
    (nanoseconds * 1000.0) as u64
}

impl Parking for Bed {
    fn park(&self) {
        while !self.park_for(Duration::from_secs(1)) {}
    }

    fn park_for(&self, time: Duration) -> bool {
        let end = crate::now() + time.as_nanos() as u64 * 1000;
        loop {
            // Relaxed: the swap decides. Acquire: pairs with the release in `unpark`.
            if self.called.load(Ordering::Relaxed) != 0
                && self.called.swap(0, Ordering::Acquire) != 0
            {
                work(picoseconds(self.costs.woken));
                return true;
            }
            let left = end.saturating_sub(crate::now());
            if left == 0 {
                return false;
            }
            work(left.min(STEP));
        }
    }

    fn unpark(&self, _: Caller) {
        // Release: what the caller did is seen by the one it calls.
        self.called.store(1, Ordering::Release);
        work(picoseconds(self.costs.wake));
    }
}

/// A processor is a worker's own: giving it away costs, and gives it to nobody.
#[derive(Default)]
pub(super) struct Stays;

impl GivesWay for Stays {
    fn yields(&mut self) -> bool {
        Coherent::give_way();
        true
    }

    fn is_contended(&self) -> bool {
        false
    }

    fn looked(&mut self, _found: bool) {}
}

/// The runtime's sleep, wake policy and victim orders, for the workers of one simulation.
pub(super) struct Idlers {
    sleep: Arc<Sleep<Coherent, Bed>>,
    policy: Arc<WakePolicy<Coherent, SimulatedClock>>,
    order: Vec<VictimOrder>,
}

impl Idlers {
    /// For `workers` workers, each bound to the processor of its number.
    pub(super) fn new(machine: &Description, workers: usize) -> Idlers {
        let bed =
            |_| Bed { called: CachePadded::new(CoherentWord::new(0)), costs: machine.threads };
        let between = |from, to| Some(machine.distance(from, to));
        Idlers {
            sleep: Arc::new(Sleep::new((0..workers).map(bed).collect(), 0, workers)),
            policy: Arc::new(WakePolicy::new()),
            order: (0..workers).map(|it| VictimOrder::nearest(it, &between, workers)).collect(),
        }
    }

    /// What tells a worker's stack to wake others.
    pub(super) fn wakes(&self, worker: usize) -> Wakes<Coherent, Bed, SimulatedClock> {
        Wakes::new(worker, &self.sleep, &self.policy)
    }

    /// All is over.
    pub(super) fn wake_all(&self) {
        self.sleep.wake_all();
    }
}

/// One worker, as its search for work sees it.
pub(super) struct Seeker<'p, T: Tree> {
    pool: &'p Pool<T>,
    number: usize,
    backoff: StealBackoff<SimulatedClock>,
    spin_time: SpinTime<SimulatedClock>,
    random: Random,
}

impl<'p, T: Tree> Seeker<'p, T> {
    pub(super) fn new(pool: &'p Pool<T>, number: usize, seed: u64) -> Self {
        let workers = pool.idlers.order.len();
        Seeker {
            pool,
            number,
            backoff: StealBackoff::new(),
            spin_time: SpinTime::new(),
            random: Random::of(seed as usize * workers + number),
        }
    }

    /// The worker waits for what another has stolen from it.
    pub(super) fn waits(&self) -> SearchLoop<'_, Self, Unrestricted> {
        self.backoff.waits();
        SearchLoop::wait(self, Unrestricted::wait())
    }

    /// The worker has run what it stole from `victim`.
    pub(super) fn has_finished(&self, victim: usize) {
        self.pool.idlers.sleep.wake(victim);
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.pool.idlers.order.len()).filter(|&other| other != self.number)
    }
}

impl<T: Tree> Searcher for Seeker<'_, T> {
    type Memory = Coherent;
    type Parking = Bed;
    type Clock = SimulatedClock;
    type GivesWay = Stays;

    fn index(&self) -> usize {
        self.number
    }

    fn sleep(&self) -> &Sleep<Coherent, Bed> {
        &self.pool.idlers.sleep
    }

    fn wake_policy(&self) -> &WakePolicy<Coherent, SimulatedClock> {
        &self.pool.idlers.policy
    }

    fn backoff(&self) -> &StealBackoff<SimulatedClock> {
        &self.backoff
    }

    fn spin_time(&self) -> &SpinTime<SimulatedClock> {
        &self.spin_time
    }

    fn victims(&self) -> impl Iterator<Item = usize> {
        self.pool.idlers.order[self.number].begun_at(self.random.next())
    }

    fn sleeps(&self) -> impl Sized {
        bump(&self.pool.counts.sleeps);
    }
}

impl<'p, T: Tree> Takes for Seeker<'p, T> {
    type Work<'w>
        = Stolen<'p, T::Task>
    where
        Self: 'w;

    fn steal_fork(&self, victim: usize, _leap: bool) -> Option<Stolen<'p, T::Task>> {
        let stolen = self.pool.stacks.steal(victim, self.number);
        if stolen.is_none() {
            bump(&self.pool.counts.failed);
        }
        stolen
    }

    fn is_stolen(_: &Stolen<'p, T::Task>) -> bool {
        true
    }
}

impl<T: Tree> Sees for Seeker<'_, T> {
    fn expose(&self, victim: usize) -> bool {
        let exposure = self.pool.stacks.expose(victim);
        let done = exposure == Exposure::Done;
        if exposure != Exposure::Refused {
            bump(&self.pool.counts.exposures);
        }
        if done {
            self.wake_policy().exposed();
        }
        done
    }

    fn request_everywhere(&self, except: Option<usize>) {
        let all = 0..self.pool.idlers.order.len();
        all.filter(|&it| Some(it) != except).for_each(|it| self.pool.stacks.request(it));
    }

    fn visible_work(&self) -> bool {
        (0..self.pool.idlers.order.len()).any(|it| self.pool.stacks.shares(it))
    }

    fn private_work(&self) -> bool {
        if self.sleep().is_another_awake(self.number, || 0) {
            Coherent::heavy();
        }
        self.others().any(|it| self.pool.stacks.has_private_tasks(it))
    }

    fn call_for_visible_work(&self) -> bool {
        let mut any = false;
        for it in 0..self.pool.idlers.order.len() {
            if self.pool.stacks.shares(it) {
                self.sleep().wake_for(it);
                any = true;
            }
        }
        any
    }

    fn does_anybody_run(&self) -> bool {
        self.sleep().does_anybody_run(0)
    }
}
