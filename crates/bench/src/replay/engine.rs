//! The replay: a discrete-event simulation of workers on one task tree.
//!
//! Each worker has at most one event to come: its strand ends, or its reach for a task does. Between
//! two events of a worker nobody can see what it does, so strands are jumped over. The queue is Lace's
//! split deque ([`deque`](super::deque)); so are the rules: an idle worker tries victims at random, a
//! worker whose half was stolen follows its [`Strategy`], a thief that finds nothing visible leaves a request,
//! and the owner answers it at its next push or pop.
//!
//! # What is not played out one by one
//!
//! A thief that finds nothing tries again at once, millions of times while it waits. Here it sleeps until
//! there is something, and pays what its tries would have cost it. A worker that waits for a thief's task is
//! awake within the time of one try after that thief makes a task visible. Those who try
//! anybody find one of V victims after a geometric number of tries at 1 in V of the others. While P of
//! them find nothing they pass each worker once in the time of a try times the others over P, on
//! average and at random: that is when its request flag is up again, and how long it takes until one
//! comes by.
//!
//! Caches are not simulated, nor what the system does with threads: a strand takes as long everywhere.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use anyhow::{Context as _, Result, ensure};

use super::deque::{Frame, NOBODY, Next, Worker};
use super::strategy::Strategy;
use super::topology::Topology;
use super::tree::{End, Tree};

/// What the scheduler's operations take, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prices {
    pub(crate) push: u64,
    pub(crate) pop: u64,
    /// Taking shared tasks back.
    pub(crate) fence: u64,
    /// If a thief makes an owner's tasks visible itself: how long it has looked for others first, and
    /// what it then pays.
    pub(crate) expose: Option<(u64, u64)>,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'s> {
    pub(crate) workers: usize,
    pub(crate) topology: &'s Topology,
    pub(crate) prices: Prices,
    pub(crate) strategy: Strategy,
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// When the last strand ended, in picoseconds.
    pub(crate) makespan: u64,
    /// The workers' strands, pushes and pops together, in picoseconds.
    pub(crate) busy: u64,
    pub(crate) strands: u64,
    pub(crate) forks: u64,
    /// Steals by idle workers.
    pub(crate) steals: u64,
    /// Steals by workers that wait.
    pub(crate) leaps: u64,
    pub(crate) grows: u64,
    pub(crate) shrinks: u64,
    pub(crate) exposures: u64,
    /// The most tasks on one deque.
    pub(crate) depth: usize,
}

/// Replays `tree`.
///
/// # Errors
///
/// If nobody can go on before the end, or a strand was left out: the tree is not one.
pub(crate) fn replay<T: Tree>(tree: &T, setting: &Setting<'_>) -> Result<Outcome> {
    ensure!(setting.workers > 0, "a simulation needs at least one worker, not 0");
    let mut simulation = Simulation::new(tree, setting);
    simulation.start();
    simulation.run()?;
    let outcome = simulation.outcome;
    ensure!(
        outcome.strands == 3 * outcome.forks + 1,
        "{} strands were run for {} forks",
        outcome.strands,
        outcome.forks
    );
    Ok(outcome)
}

type Event = Reverse<(u64, u32, u32)>;

struct Simulation<'s, T: Tree> {
    tree: &'s T,
    setting: &'s Setting<'s>,
    random: fastrand::Rng,
    workers: Vec<Worker<T::Task>>,
    events: BinaryHeap<Event>,
    /// Events of other workers than the one whose turn it is.
    woken: Vec<Event>,
    /// Those with something to steal.
    visible: Vec<u32>,
    /// Those who sleep until anybody has something, and some who have woken since.
    pool: Vec<(u32, u32)>,
    hungry: usize,
    /// What a try at another worker costs each of them on average.
    tries: Vec<u64>,
    ended: bool,
    outcome: Outcome,
}

impl<'s, T: Tree> Simulation<'s, T> {
    fn new(tree: &'s T, setting: &'s Setting<'s>) -> Self {
        let count = setting.workers;
        let mean = |worker| (setting.topology.mean_line(worker, count) * 1000.0) as u64;
        Simulation {
            tree,
            setting,
            random: fastrand::Rng::with_seed(setting.seed),
            workers: (0..count).map(|_| Worker::new()).collect(),
            events: BinaryHeap::new(),
            woken: Vec::new(),
            visible: Vec::new(),
            pool: Vec::new(),
            hungry: 0,
            tries: (0..count).map(mean).collect(),
            ended: false,
            outcome: Outcome::default(),
        }
    }

    fn start(&mut self) {
        let first = self.begin(0, self.tree.root(), 0);
        self.events.push(Reverse((first, 0, 0)));
        for worker in 1..self.workers.len() as u32 {
            if let Some(at) = self.hunt(worker, 0) {
                self.events.push(Reverse((at, worker, self.workers[worker as usize].epoch)));
            }
        }
        self.events.extend(self.woken.drain(..));
    }

    fn run(&mut self) -> Result<()> {
        while !self.ended {
            let top = self.events.peek().context("nobody can go on, and the end is not reached")?;
            let Reverse((now, worker, epoch)) = *top;
            let current = self.workers[worker as usize].epoch == epoch;
            let next = if current { self.step(worker, now) } else { None };
            let epoch = self.workers[worker as usize].epoch;
            if let Some(mut top) = self.events.peek_mut() {
                match next {
                    Some(at) => *top = Reverse((at, worker, epoch)),
                    None => drop(PeekMut::pop(top)),
                }
            }
            self.events.extend(self.woken.drain(..));
        }
        Ok(())
    }

    /// Plays one event; when the worker's next one is, if it has one.
    fn step(&mut self, worker: u32, now: u64) -> Option<u64> {
        match self.workers[worker as usize].next {
            Next::End(End::Fork { first, second, after }) => {
                self.push(worker, second, now);
                self.workers[worker as usize].frames.push(Frame::First { after });
                Some(self.begin(worker, first, now))
            }
            Next::End(End::Done) => self.finish(worker, now),
            Next::Attempt(victim) => self.attempt(worker, victim, now),
            Next::Look => self.look(worker, now),
            Next::Expose => self.expose(worker, now),
        }
    }

    /// Begins a strand; when it ends.
    fn begin(&mut self, worker: u32, task: T::Task, at: u64) -> u64 {
        let strand = self.tree.strand(task);
        let Prices { push, pop, .. } = self.setting.prices;
        let forks = matches!(strand.end, End::Fork { .. });
        let time = strand.work + strand.inner * (push + pop) + if forks { push } else { 0 };
        self.outcome.strands += 1;
        self.outcome.busy += time;
        self.workers[worker as usize].next = Next::End(strand.end);
        at + time
    }

    fn push(&mut self, worker: u32, task: T::Task, now: u64) {
        self.outcome.forks += 1;
        let owner = &mut self.workers[worker as usize];
        let visible = owner.push(task);
        self.outcome.depth = self.outcome.depth.max(owner.deque.len());
        if visible {
            self.answered(worker, now);
            self.share(worker, 1, now);
        } else {
            self.answer(worker, now);
        }
    }

    /// The task of this worker is done: it goes on with what it was in the midst of.
    fn finish(&mut self, worker: u32, now: u64) -> Option<u64> {
        let Some(frame) = self.workers[worker as usize].frames.pop() else {
            self.ended = true;
            self.outcome.makespan = now;
            return None;
        };
        match frame {
            Frame::First { after } => self.pop(worker, after, now),
            Frame::Second { after } => Some(self.begin(worker, after, now)),
            Frame::Stolen { victim, slot } => {
                let owner = &mut self.workers[victim as usize];
                owner.deque[slot as usize].done = true;
                let waits = owner.waits_for().is_some_and(|slot| slot.done);
                if owner.parked && waits {
                    let at = now + self.line(worker, victim);
                    self.wake(victim, at, Next::Look);
                }
                self.look(worker, now)
            }
            Frame::Waiting { .. } => None,
        }
    }

    /// Takes the second half of the newest fork back, or begins to wait for it.
    fn pop(&mut self, worker: u32, after: T::Task, now: u64) -> Option<u64> {
        let Prices { pop, fence, .. } = self.setting.prices;
        let owner = &mut self.workers[worker as usize];
        let (there, fenced) = owner.has_newest();
        let mut time = pop;
        if fenced {
            self.outcome.shrinks += 1;
            time += fence;
        }
        self.outcome.busy += time;
        let slot = if there { owner.deque.pop() } else { None };
        let Some(slot) = slot else {
            owner.frames.push(Frame::Waiting { after });
            self.chain_has_grown(worker, now + time);
            return self.look(worker, now + time);
        };
        owner.frames.push(Frame::Second { after });
        self.place(worker);
        self.answer(worker, now);
        Some(self.begin(worker, slot.task, now + time))
    }

    /// A worker without a task of its own: what it waits for is done, or it looks for work.
    fn look(&mut self, worker: u32, now: u64) -> Option<u64> {
        let me = &mut self.workers[worker as usize];
        match (me.frames.last(), me.deque.last()) {
            (Some(Frame::Waiting { after }), Some(slot)) if slot.done => {
                let after = *after;
                me.frames.pop();
                me.deque.pop();
                me.all_stolen = true;
                me.tail = me.split;
                self.place(worker);
                Some(self.begin(worker, after, now))
            }
            (Some(Frame::Waiting { .. }), Some(slot)) => {
                let thief = slot.thief;
                me.next = Next::Attempt(thief);
                Some(now + self.line(worker, thief))
            }
            _ => self.hunt(worker, now),
        }
    }

    /// Reaches for a task of `victim`.
    fn attempt(&mut self, worker: u32, victim: u32, now: u64) -> Option<u64> {
        let waits = self.workers[worker as usize].waits_for();
        if waits.is_some_and(|slot| slot.done) {
            return self.look(worker, now);
        }
        let waits = waits.map(|slot| slot.thief);
        if let Some((slot, task)) = self.workers[victim as usize].steal(worker) {
            self.place(victim);
            if waits.is_some() {
                self.outcome.leaps += 1;
            } else {
                self.outcome.steals += 1;
            }
            self.workers[worker as usize].frames.push(Frame::Stolen { victim, slot });
            let at = now + self.line(worker, victim);
            return Some(self.begin(worker, task, at));
        }
        let other = &mut self.workers[victim as usize];
        other.asked |= !other.all_stolen;
        match (waits, self.setting.strategy) {
            (None, _) | (_, Strategy::Random) => self.hunt(worker, now),
            (Some(_), Strategy::Leapfrog) => {
                self.watch(worker, victim);
                None
            }
            (Some(_), Strategy::Transitive) => {
                // On to the thief of what that one waits for by now. A task that is done leads nowhere: its
                // owner goes on at this very instant, and its thief may wait for that owner, so that a
                // chain through it can be a circle. Through tasks that run it cannot: each was begun after
                // the one before it.
                self.watch(worker, victim);
                let further =
                    self.workers[victim as usize].waits_for().filter(|slot| !slot.done)?;
                let further = further.thief;
                if further == worker {
                    return None;
                }
                let me = &mut self.workers[worker as usize];
                (me.parked, me.next) = (false, Next::Attempt(further));
                Some(now + self.line(worker, further))
            }
        }
    }

    /// Tries anybody: one with something visible is found after some tries, else the worker sleeps.
    fn hunt(&mut self, worker: u32, now: u64) -> Option<u64> {
        let others = self.workers.len() - 1;
        if self.visible.is_empty() {
            let me = &mut self.workers[worker as usize];
            (me.parked, me.in_pool) = (true, true);
            self.hungry += 1;
            self.pool.push((worker, me.epoch));
            let (after, _) = self.setting.prices.expose?;
            me.next = Next::Expose;
            return Some(now + after);
        }
        let victim = self.visible[self.random.usize(..self.visible.len())];
        let miss = 1.0 - self.visible.len() as f64 / others as f64;
        let missed = if miss <= 0.0 { 0.0 } else { (1.0 - self.random.f64()).ln() / miss.ln() };
        let missed = missed as u64;
        // Each miss leaves a request.
        for _ in 0..missed.min(others as u64) {
            let passed = self.random.usize(..=others);
            let other = &mut self.workers[passed];
            other.asked |= !other.all_stolen && other.shared() == 0;
        }
        self.workers[worker as usize].next = Next::Attempt(victim);
        Some(now + missed * self.tries[worker as usize] + self.line(worker, victim))
    }

    /// Makes private tasks of a worker visible that has not answered.
    fn expose(&mut self, worker: u32, now: u64) -> Option<u64> {
        let (_, price) = self.setting.prices.expose?;
        let count = self.workers.len();
        let start = self.random.usize(..count);
        let mut victims = (start..count).chain(0..start);
        let victim = victims.find(|other| self.workers[*other].private() > 0)?;
        let victim = victim as u32;
        self.outcome.exposures += 1;
        let tasks = self.workers[victim as usize].grow();
        self.wake(worker, now, Next::Attempt(victim));
        self.woken.pop();
        let at = now + price + self.line(worker, victim);
        self.share(victim, tasks - 1, now + price);
        Some(at)
    }

    /// Sleeps until `victim` has something.
    fn watch(&mut self, worker: u32, victim: u32) {
        let me = &mut self.workers[worker as usize];
        me.parked = true;
        let entry = (worker, me.epoch);
        let watchers = &mut self.workers[victim as usize].watchers;
        if !watchers.contains(&entry) {
            watchers.push(entry);
        }
    }

    /// Under transitive leapfrogging those who watch a worker that begins to wait may go further.
    fn chain_has_grown(&mut self, worker: u32, now: u64) {
        if self.setting.strategy == Strategy::Transitive {
            self.call_watchers(worker, now, Next::Look);
        }
    }

    fn call_watchers(&mut self, worker: u32, now: u64, next: Next<T::Task>) {
        let mut watchers = std::mem::take(&mut self.workers[worker as usize].watchers);
        for (watcher, epoch) in watchers.drain(..) {
            let other = &self.workers[watcher as usize];
            if other.parked && other.epoch == epoch {
                let line = self.line(watcher, worker);
                let phase = (self.random.f64() * line as f64) as u64;
                self.wake(watcher, now + phase + line, next);
            }
        }
        self.workers[worker as usize].watchers = watchers;
    }

    /// A worker has so many tasks more that can be stolen.
    fn share(&mut self, worker: u32, tasks: usize, now: u64) {
        self.place(worker);
        self.call_watchers(worker, now, Next::Attempt(worker));
        let others = (self.workers.len() - 1) as f64;
        for _ in 0..tasks.min(self.hungry) {
            let Some(sleeper) = self.any_sleeper() else { break };
            let rate = others / self.hungry as f64;
            let passes = self.tries[sleeper as usize] as f64 * rate * self.exponential();
            let at = now + passes as u64 + self.line(sleeper, worker);
            self.wake(sleeper, at, Next::Attempt(worker));
        }
    }

    fn any_sleeper(&mut self) -> Option<u32> {
        while !self.pool.is_empty() {
            let (sleeper, epoch) = self.pool.swap_remove(self.random.usize(..self.pool.len()));
            let other = &self.workers[sleeper as usize];
            if other.in_pool && other.epoch == epoch {
                return Some(sleeper);
            }
        }
        None
    }

    fn wake(&mut self, worker: u32, at: u64, next: Next<T::Task>) {
        let sleeper = &mut self.workers[worker as usize];
        self.hungry -= usize::from(sleeper.in_pool);
        (sleeper.parked, sleeper.in_pool) = (false, false);
        sleeper.epoch = sleeper.epoch.wrapping_add(1);
        sleeper.next = next;
        self.woken.push(Reverse((at, worker, sleeper.epoch)));
        if self.pool.len() > 2 * self.workers.len() {
            let workers = &self.workers;
            self.pool.retain(|(other, epoch)| {
                workers[*other as usize].in_pool && workers[*other as usize].epoch == *epoch
            });
        }
    }

    /// The owner makes half of its private tasks visible if a thief has asked.
    fn answer(&mut self, worker: u32, now: u64) {
        if self.is_asked(worker, now) {
            let tasks = self.workers[worker as usize].grow();
            if tasks > 0 {
                self.outcome.grows += 1;
                self.answered(worker, now);
                self.share(worker, tasks, now);
            }
        }
    }

    fn is_asked(&self, worker: u32, now: u64) -> bool {
        let owner = &self.workers[worker as usize];
        if owner.asked || self.hungry == 0 {
            return owner.asked;
        }
        let rate = (self.workers.len() - 1) as f64 / self.hungry as f64;
        let pass = self.tries[worker as usize] as f64 * rate * owner.luck;
        now.saturating_sub(owner.answered) as f64 >= pass
    }

    fn answered(&mut self, worker: u32, now: u64) {
        let luck = self.exponential();
        let owner = &mut self.workers[worker as usize];
        (owner.asked, owner.answered, owner.luck) = (false, now, luck);
    }

    /// Keeps the list of those with something to steal.
    fn place(&mut self, worker: u32) {
        let owner = &self.workers[worker as usize];
        match (owner.shared() > 0, owner.place) {
            (true, NOBODY) => {
                self.workers[worker as usize].place = self.visible.len() as u32;
                self.visible.push(worker);
            }
            (false, place) if place != NOBODY => {
                self.visible.swap_remove(place as usize);
                if let Some(moved) = self.visible.get(place as usize) {
                    self.workers[*moved as usize].place = place;
                }
                self.workers[worker as usize].place = NOBODY;
            }
            _ => {}
        }
    }

    fn line(&self, a: u32, b: u32) -> u64 {
        (self.setting.topology.line(a as usize, b as usize) * 1000.0) as u64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.f64()).ln()
    }
}
