//! Load balancing between ranks: one rank's part of it, as a state machine.
//!
//! [`Balancer::poll`] is called between tasks by whatever thread of the rank has a moment, and
//! again and again while the rank has none. It reads what has arrived, answers it, and if the rank
//! has no task looks for some. It never waits and never runs a task; what it needs of the rank
//! itself it asks through [`Local`], and of the network through [`Transport`].
//!
//! # Who steals from whom
//!
//! - By messages ([`Stealing::Messages`]): a rank without tasks asks a [victim](victims), which
//!   answers with half of what a worker of it has, oldest first, or refuses. The victim's tasks are
//!   its own alone, so it needs neither lock nor fence: it gives tasks when it polls. Source: Acar,
//!   Charguéraud and Rainey, *Scheduling parallel programs by work stealing with private deques*
//!   (2013), receiver-initiated.
//! - From a split queue in a window ([`Stealing::Window`]): [`window`].
//! - After a round of failures it leaves requests on its [lifelines](victims::lifelines) and is
//!   quiet. A rank that has tasks, or gets some, sends half of them to the requesting rank. Without
//!   lifelines it rests for a moment and starts the next round.
//!
//! [`termination`] detects that no task is left anywhere. The same detector finds the moment for a
//! checkpoint: while all ranks are paused, a rank that runs no task counts as idle. So when the
//! detector reports that all ranks are idle, no task is on its way.

mod interface;
pub mod termination;
pub mod victims;
pub mod window;

pub use crate::message::{Failure, Message, Parcel};
pub use interface::{Counters, Given, Local, Policy, Progress, Stealing};
pub use termination::Waves;

use std::collections::VecDeque;

use crate::transport::Transport;
use termination::{Detector, Step, children, parent};
use victims::Victims;
use window::{Owner, SLOTS, Taken, Theft};

/// What a rank without tasks is doing about it.
#[derive(Clone, Copy, Debug)]
enum Thief {
    /// Nothing yet.
    Ready,
    /// Waiting for an answer.
    Asked,
    /// In the midst of a theft.
    Stealing(Theft),
    /// Waiting for a lifeline.
    Dormant,
    /// Resting until then.
    Resting(u64),
}

/// Alive messages are sent this often, in nanoseconds.
const BEAT: u64 = 1_000_000_000;

/// One rank's part of the balance.
#[derive(Debug)]
pub struct Balancer {
    policy: Policy,
    rank: usize,
    ranks: usize,
    progress: Progress,
    thief: Thief,
    victims: Victims,
    /// The ranks at which this rank may leave a request, and whether it has.
    lifelines: Vec<(usize, bool)>,
    /// The ranks that have left a request here.
    waiting: VecDeque<usize>,
    /// The ranks that want an answer now.
    asked: VecDeque<usize>,
    detector: Detector,
    window: Owner,
    /// Parcels sent and received.
    sent: u64,
    received: u64,
    counters: Counters,
    saving: Saving,
    heart: Heart,
    /// How many tasks the ranks below each child have run.
    below: [u64; 2],
    /// What came after the end: results.
    pub(crate) results: VecDeque<(usize, Message)>,
}

/// How far a checkpoint is.
#[derive(Debug, Default)]
struct Saving {
    paused: bool,
    /// At rank 0: one is wanted.
    wanted: bool,
    /// At rank 0: when the last one began, and from when on the next one may.
    began: u64,
    free: u64,
    /// Children that have not saved, and what the others have.
    unsaved: Option<(usize, u64, Vec<Vec<u8>>)>,
}

/// The ranks that are alive.
#[derive(Debug, Default)]
struct Heart {
    beaten: u64,
    heard: u64,
    looked: u64,
}

impl Balancer {
    /// The part of `rank`; `nodes` tells which node each rank is on. Panics if the rank is not
    /// among them.
    pub fn new(policy: Policy, rank: usize, nodes: &[usize]) -> Balancer {
        let ranks = nodes.len();
        let lifelines = victims::lifelines(rank, ranks).into_iter().map(|to| (to, false));
        Balancer {
            rank,
            ranks,
            progress: Progress::Running,
            thief: Thief::Ready,
            victims: Victims::new(rank, nodes, policy.seed),
            lifelines: lifelines.collect(),
            waiting: VecDeque::new(),
            asked: VecDeque::new(),
            detector: Detector::new(rank, ranks, policy.waves),
            window: Owner::default(),
            sent: 0,
            received: 0,
            counters: Counters::default(),
            saving: Saving::default(),
            heart: Heart::default(),
            below: [0; 2],
            results: VecDeque::new(),
            policy,
        }
    }

    /// Whether the job goes on.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What this rank has done.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// When this rank wants to be polled again even if nothing arrives; `None` if it need not be.
    pub fn wakes(&self) -> Option<u64> {
        match self.thief {
            Thief::Stealing(Theft::Copy(..)) => Some(0),
            _ if self.saving.paused => None,
            Thief::Resting(until) => Some(until),
            Thief::Ready | Thief::Stealing(_) => Some(0),
            Thief::Asked | Thief::Dormant => None,
        }
    }

    /// At rank 0: asks for a checkpoint, as soon as there may be one.
    ///
    /// The job goes on and ends, however often checkpoints are requested. After a
    /// [`Resume`](Message::Resume) a rank has time for a task before it reads further messages. A
    /// checkpoint takes at most as long as the work before it. A checkpoint that finds no task
    /// anywhere has found the end.
    pub fn checkpoint(&mut self) {
        debug_assert_eq!(self.rank, 0, "rank 0 asks for checkpoints");
        self.saving.wanted = !self.saving.paused;
    }

    /// How many tasks the ranks below this one have run, as of some seconds ago.
    pub fn tasks_below(&self) -> u64 {
        self.below.iter().sum()
    }

    /// Sends what a call came to, to the rank that waits for it.
    pub fn give_back(
        &mut self,
        transport: &mut impl Transport,
        to: usize,
        call: u64,
        result: Vec<u8>,
    ) {
        self.send(transport, to, Message::Returned { call, result });
    }

    /// What this rank saves, which [`Local::save`] has not given at once. Panics if it was not
    /// asked for.
    pub fn saved_here(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
        (tasks, own): (u64, Vec<u8>),
    ) {
        if self.progress == Progress::Running {
            if let Err(failure) = self.saved(transport, local, tasks, vec![own]) {
                self.fail(transport, failure);
            }
        }
    }

    /// Ends the job without a result, everywhere.
    pub fn fail(&mut self, transport: &mut impl Transport, failure: Failure) {
        if let Progress::Failed(_) = self.progress {
            return;
        }
        for to in 0..self.ranks {
            if to != self.rank {
                self.send(transport, to, Message::Failed(failure.clone()));
            }
        }
        self.progress = Progress::Failed(failure);
    }

    /// Reads, answers, steals. See the module. Panics if a message arrives that no balancer sends,
    /// such as tasks by a lifeline that there is not.
    pub fn poll(&mut self, transport: &mut impl Transport, local: &mut impl Local) {
        if let Err(failure) = self.try_poll(transport, local) {
            self.fail(transport, failure);
        }
    }

    fn try_poll(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
    ) -> Result<(), Failure> {
        while let Some((from, message)) = transport.receive() {
            let goes_on = message == Message::Resume;
            self.handle(transport, local, from, message)?;
            // The next pause may be behind it.
            if goes_on && !self.policy.hasty {
                break;
            }
        }
        self.beat(transport, local)?;
        if self.progress != Progress::Running {
            return Ok(());
        }
        if self.saving.wanted && (self.policy.hasty || transport.now() >= self.saving.free) {
            self.saving.wanted = false;
            self.saving.began = transport.now();
            self.pause(transport, local);
        }
        self.answer(transport, local)?;
        if self.saving.paused {
            self.take_back(transport, local)?;
        }
        if !self.saving.paused && local.wants_back() {
            self.take_back(transport, local)?;
            if local.is_hungry() {
                self.steal(transport, local)?;
            }
        } else if let Thief::Stealing(theft @ Theft::Copy(..)) = self.thief {
            // What is claimed is taken, whatever came in between.
            self.go_on(transport, local, theft)?;
        }
        let idle = if self.saving.paused { local.is_still() } else { local.is_idle() };
        if idle && self.saving.unsaved.is_none() {
            self.detect(transport, local)?;
        }
        Ok(())
    }

    fn send(&mut self, transport: &mut impl Transport, to: usize, message: Message) {
        self.counters.messages += 1;
        transport.send(to, message);
    }

    /// A rank alone has none.
    fn has_window(&self) -> bool {
        self.policy.stealing == Stealing::Window && self.ranks > 1
    }

    fn send_down(&mut self, transport: &mut impl Transport, message: &Message) {
        for child in children(self.rank, self.ranks) {
            self.send(transport, child, message.clone());
        }
    }

    fn handle(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
        from: usize,
        message: Message,
    ) -> Result<(), Failure> {
        if self.ranks > 1 && from == (self.rank + 1) % self.ranks {
            self.heart.heard = transport.now();
        }
        if let Message::Result(_) | Message::Final = message {
            self.results.push_back((from, message));
            return Ok(());
        }
        if let Message::Failed(failure) = message {
            self.progress = Progress::Failed(failure);
            return Ok(());
        }
        if self.progress != Progress::Running {
            // Requests that were on their way when the job ended.
            return Ok(());
        }
        match message {
            Message::Steal => self.asked.push_back(from),
            Message::Lifeline => self.waiting.push_back(from),
            Message::Refuse => {
                self.counters.failed_steals += 1;
                self.thief = Thief::Ready;
            }
            Message::Tasks(parcel, by_lifeline) => {
                if by_lifeline {
                    self.counters.lifeline_parcels += 1;
                    let line = self.lifelines.iter_mut().find(|(to, _)| *to == from);
                    line.expect("parcels come by lifelines that exist").1 = false;
                    if let Thief::Dormant = self.thief {
                        self.thief = Thief::Ready;
                    }
                } else {
                    self.counters.steals += 1;
                    self.thief = Thief::Ready;
                }
                self.victims.restart();
                self.received += 1;
                self.take(local, from, parcel)?;
            }
            Message::Ask { wave } => {
                for (to, message) in self.detector.asked(wave) {
                    self.send(transport, to, message);
                }
            }
            Message::Report { wave, sent, received } => {
                self.detector.reported(wave, sent, received);
            }
            Message::Done => self.done(transport),
            Message::Pause => self.pause(transport, local),
            Message::Save => self.save(transport, local)?,
            Message::Saved { tasks, parts } => self.saved(transport, local, tasks, parts)?,
            Message::Count(tasks) => self.below[from - (2 * self.rank + 1)] = tasks,
            Message::Returned { call, result } => local.returned(from, call, &result)?,
            Message::Resume => self.resume(transport, local),
            Message::Alive | Message::Failed(_) | Message::Result(_) | Message::Final => {}
        }
        Ok(())
    }

    fn take(&mut self, local: &mut impl Local, from: usize, parcel: Parcel) -> Result<(), Failure> {
        self.counters.tasks += u64::from(parcel.tasks);
        self.counters.bytes += parcel.bytes.len() as u64;
        local.take(from, parcel)
    }

    /// Answers requests, then lifelines, and fills the window, as far as there is something to
    /// give.
    fn answer(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
    ) -> Result<(), Failure> {
        while let Some(&thief) = self.asked.front() {
            let given = if self.saving.paused {
                Given::Nothing
            } else {
                local.give(1, self.policy.parcel_bytes)?
            };
            let answer = match given {
                Given::Parcels(parcels) => {
                    self.sent += 1;
                    Message::Tasks(only(parcels), false)
                }
                Given::Later => return Ok(()),
                Given::Nothing => Message::Refuse,
            };
            self.asked.pop_front();
            self.send(transport, thief, answer);
        }
        if self.saving.paused {
            return Ok(());
        }
        while let Some(&thief) = self.waiting.front() {
            let Given::Parcels(parcels) = local.give(1, self.policy.parcel_bytes)? else {
                return Ok(());
            };
            self.waiting.pop_front();
            self.sent += 1;
            self.send(transport, thief, Message::Tasks(only(parcels), true));
        }
        if self.has_window() && !local.is_hungry() && self.window.may_share(transport) {
            if let Given::Parcels(parcels) = local.give(SLOTS, self.policy.parcel_bytes)? {
                let encoded = parcels.iter().map(|parcel| encode(self.rank, parcel));
                let encoded: Vec<_> = encoded.collect::<Result<_, _>>()?;
                for bytes in self.window.share(transport, &encoded) {
                    local.take(self.rank, decode(self.rank, self.rank, &bytes)?)?;
                }
            }
        }
        Ok(())
    }

    /// Takes back what this rank shares.
    fn take_back(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
    ) -> Result<(), Failure> {
        if self.has_window() {
            for bytes in self.window.take_back(transport) {
                local.take(self.rank, decode(self.rank, self.rank, &bytes)?)?;
            }
        }
        Ok(())
    }

    fn steal(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
    ) -> Result<(), Failure> {
        match self.thief {
            Thief::Asked | Thief::Dormant => Ok(()),
            Thief::Stealing(theft) => self.go_on(transport, local, theft),
            Thief::Resting(until) if transport.now() < until => Ok(()),
            Thief::Ready | Thief::Resting(_) => {
                if let Some(victim) = self.victims.next(self.policy.attempts) {
                    self.thief = match self.policy.stealing {
                        Stealing::Messages => {
                            self.send(transport, victim, Message::Steal);
                            Thief::Asked
                        }
                        Stealing::Window => Thief::Stealing(Theft::Look(victim)),
                    };
                } else if self.policy.lifelines {
                    for at in 0..self.lifelines.len() {
                        let (to, left) = self.lifelines[at];
                        if !left {
                            self.send(transport, to, Message::Lifeline);
                            self.lifelines[at].1 = true;
                        }
                    }
                    self.victims.restart();
                    self.thief = Thief::Dormant;
                } else if self.victims.is_empty() {
                    self.thief = Thief::Dormant;
                } else {
                    self.victims.restart();
                    self.thief = Thief::Resting(transport.now() + self.policy.rest);
                }
                Ok(())
            }
        }
    }

    /// The next step of a theft.
    fn go_on(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
        theft: Theft,
    ) -> Result<(), Failure> {
        match theft.step(transport) {
            Taken::Next(next) => self.thief = Thief::Stealing(next),
            Taken::Nothing => {
                self.counters.failed_steals += 1;
                self.thief = Thief::Ready;
            }
            Taken::Parcels(parcels) => {
                self.thief = Thief::Ready;
                self.victims.restart();
                let Theft::Copy(victim, ..) = theft else {
                    unreachable!("only a copy brings parcels")
                };
                for bytes in parcels {
                    self.received += 1;
                    self.counters.steals += 1;
                    let parcel = decode(self.rank, victim, &bytes)?;
                    self.take(local, victim, parcel)?;
                }
            }
        }
        Ok(())
    }

    /// Nothing waits or runs here, and nothing that this rank shares is left in its window.
    fn detect(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
    ) -> Result<(), Failure> {
        if self.has_window() && !self.window.is_empty(transport) {
            return Ok(());
        }
        match self.detector.idle(self.sent + self.window.claimed(), self.received) {
            Step::Wait => {}
            Step::Send(messages) => {
                for (to, message) in messages {
                    self.send(transport, to, message);
                }
            }
            Step::Quiet if self.saving.paused => return self.save(transport, local),
            Step::Quiet => self.done(transport),
        }
        Ok(())
    }

    fn done(&mut self, transport: &mut impl Transport) {
        self.send_down(transport, &Message::Done);
        self.progress = Progress::Done;
    }

    fn pause(&mut self, transport: &mut impl Transport, local: &mut impl Local) {
        self.send_down(transport, &Message::Pause);
        self.saving.paused = true;
        local.pause(true);
    }

    fn resume(&mut self, transport: &mut impl Transport, local: &mut impl Local) {
        self.send_down(transport, &Message::Resume);
        self.saving.paused = false;
        local.pause(false);
    }

    fn save(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
    ) -> Result<(), Failure> {
        self.send_down(transport, &Message::Save);
        let missing = children(self.rank, self.ranks).count() + 1;
        self.saving.unsaved = Some((missing, 0, Vec::new()));
        let Some((tasks, own)) = local.save()? else { return Ok(()) };
        self.saved(transport, local, tasks, vec![own])
    }

    fn saved(
        &mut self,
        transport: &mut impl Transport,
        local: &mut impl Local,
        more_tasks: u64,
        more: Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        let (missing, tasks, parts) =
            self.saving.unsaved.as_mut().expect("a rank saves before those below it");
        *missing -= 1;
        *tasks += more_tasks;
        parts.extend(more);
        if *missing > 0 {
            return Ok(());
        }
        let (_, tasks, parts) = self.saving.unsaved.take().expect("it was there just now");
        if let Some(parent) = parent(self.rank) {
            self.send(transport, parent, Message::Saved { tasks, parts });
            return Ok(());
        }
        local.commit(parts)?;
        if tasks == 0 && !self.policy.hasty {
            // Nothing runs, nothing is on its way, nothing waits.
            self.done(transport);
        } else {
            let now = transport.now();
            self.saving.free = now + (now - self.saving.began);
            self.resume(transport, local);
        }
        Ok(())
    }

    /// Tells the rank before this rank that this rank is alive, and the rank above it how far it
    /// is; and listens for the rank behind it.
    fn beat(&mut self, transport: &mut impl Transport, local: &impl Local) -> Result<(), Failure> {
        let Some(silence) = self.policy.silence.filter(|_| self.ranks > 1) else { return Ok(()) };
        let now = transport.now();
        // At the start, and where this rank itself was stopped, it cannot have heard anything.
        if self.heart.looked == 0 || now - self.heart.looked > 2 * BEAT {
            self.heart.heard = now;
        }
        self.heart.looked = now;
        if now - self.heart.beaten > BEAT || self.heart.beaten == 0 {
            self.heart.beaten = now;
            let watcher = (self.rank + self.ranks - 1) % self.ranks;
            self.send(transport, watcher, Message::Alive);
            if let Some(parent) = parent(self.rank) {
                let tasks = local.tasks() + self.tasks_below();
                self.send(transport, parent, Message::Count(tasks));
            }
        }
        if now - self.heart.heard > silence {
            let rank = (self.rank + 1) % self.ranks;
            let seconds = (now - self.heart.heard) / 1_000_000_000;
            return Err(Failure::Silent { rank, watcher: self.rank, seconds });
        }
        Ok(())
    }
}

fn only(parcels: Vec<Parcel>) -> Parcel {
    parcels.into_iter().next().expect("one parcel was asked for, and given")
}

fn encode(rank: usize, parcel: &Parcel) -> Result<Vec<u8>, Failure> {
    postcard::to_allocvec(parcel)
        .map_err(|error| Failure::Other { rank, message: format!("cannot encode tasks: {error}") })
}

fn decode(rank: usize, from: usize, bytes: &[u8]) -> Result<Parcel, Failure> {
    // A slot is read whole: what stands behind the parcel is of no meaning.
    let parcel = postcard::take_from_bytes(bytes).map(|(parcel, _)| parcel);
    parcel.map_err(|error| Failure::Unreadable { rank, from, message: error.to_string() })
}
