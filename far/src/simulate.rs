//! Ranks that are simulated, one worker each, on a network whose costs are those of `LogGP`.
//!
//! Source: Alexandrov et al., *`LogGP`: incorporating long messages into the `LogP` model* (1995).
//! A message of k bytes takes its sender the overhead o, leaves it no earlier than the gap g after
//! the one before, arrives L + (k - 1) G later, and takes its receiver o. A one-sided operation
//! takes its caller 2 o + 2 L + k G and the other rank nothing. All of it is in nanoseconds of
//! simulated time.
//!
//! Each rank runs the very [`Balancer`] that runs over MPI, and a real program: its tasks are run,
//! and cost what the program says. Between two looks at the network a rank works for
//! [`Machine::quantum`]. The same seed gives the same run.
//!
//! What is not modelled: contention in the network, and the processors that several ranks share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bag::Bag;
use crate::balance::window::SLOTS;
use crate::balance::{
    Balancer, Counters, Failure, Given, Local, Message, Parcel, Policy, Progress,
};
use crate::transport::{Transport, Word};

/// What the network and the ranks cost, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// L: from the end of sending to the beginning of receiving.
    pub latency: f64,
    /// o: of sending, and of receiving.
    pub overhead: f64,
    /// g: between two messages of a rank.
    pub gap: f64,
    /// G: for each byte after the first.
    pub byte: f64,
    /// How long a rank works between two looks at the network; a task at least.
    pub quantum: f64,
    /// Each message takes longer by a random time of up to this number of latencies. The order of
    /// messages between two ranks does not change.
    pub jitter: f64,
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            latency: 1_500.0,
            overhead: 500.0,
            gap: 500.0,
            byte: 0.1,
            quantum: 50_000.0,
            jitter: 0.0,
        }
    }
}

/// A program whose tasks make tasks.
pub trait Program {
    /// A task.
    type Task: Serialize + DeserializeOwned;

    /// Runs a task, which pushes the tasks that it makes. Returns its time, in nanoseconds.
    fn run(&mut self, rank: usize, task: Self::Task, push: &mut dyn FnMut(Self::Task)) -> f64;
}

/// What a simulation came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the start until the last rank knew that the job was over, in nanoseconds.
    pub elapsed: f64,
    /// Until the last task was over.
    pub worked: f64,
    /// Tasks that were run.
    pub tasks: u64,
    /// What they took, together.
    pub work: f64,
    /// What all ranks did for the balance.
    pub counters: Counters,
    /// Checkpoints that were taken.
    pub checkpoints: u64,
}

/// Why a simulation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A rank gave up.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// A rank was told that the job was over while tasks were left.
    #[error("rank {rank} was told that the job was over while {tasks} tasks were left")]
    TooEarly {
        /// The rank that was told.
        rank: usize,
        /// How many were left anywhere.
        tasks: u64,
    },
    /// A checkpoint does not hold all tasks that are left.
    #[error("a checkpoint holds {saved} tasks, and {left} are left")]
    Torn {
        /// The tasks in it.
        saved: u64,
        /// The tasks that wait or are on their way.
        left: u64,
    },
    /// It took more turns than allowed.
    #[error("after {turns} turns {tasks} tasks are left, and the job is not over")]
    Endless {
        /// How many turns it took.
        turns: u64,
        /// How many tasks are left anywhere.
        tasks: u64,
    },
    /// Nothing moved any more, and the job was not over.
    #[error("nothing moves any more, and {tasks} tasks are left")]
    Stuck {
        /// How many are left anywhere.
        tasks: u64,
    },
}

/// A message on its way: the time of its arrival, its number, its sender.
#[derive(Debug)]
struct Arrival {
    at: f64,
    number: u64,
    from: usize,
    message: Message,
}

/// The network, and each rank's clock.
struct Network {
    machine: Machine,
    random: fastrand::Rng,
    clocks: Vec<f64>,
    /// When each rank may send again.
    free: Vec<f64>,
    boxes: Vec<BinaryHeap<Reverse<Keyed>>>,
    /// When the last message of each pair arrives, by receiver and sender.
    last: Vec<std::collections::HashMap<usize, f64>>,
    /// Ranks to be woken, and when.
    woken: Vec<(usize, f64)>,
    words: Vec<[u64; 2]>,
    slots: Vec<Vec<Vec<u8>>>,
    number: u64,
    /// Tasks in messages, and in windows until they are claimed and copied.
    moving: u64,
}

/// Ordered by arrival.
#[derive(Debug)]
struct Keyed(Arrival);

impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Keyed {}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.at.total_cmp(&other.0.at).then(self.0.number.cmp(&other.0.number))
    }
}

/// One rank's hold on the network.
struct Port<'n> {
    network: &'n mut Network,
    rank: usize,
}

/// About how many bytes a message takes.
fn size(message: &Message) -> usize {
    8 + match message {
        Message::Tasks(parcel, _) => parcel.bytes.len(),
        Message::Saved { parts, .. } => parts.iter().map(Vec::len).sum(),
        _ => 0,
    }
}

impl Transport for Port<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.network.clocks.len()
    }

    fn now(&mut self) -> u64 {
        self.network.clocks[self.rank] as u64
    }

    fn send(&mut self, to: usize, message: Message) {
        let Port { network, rank } = self;
        let Machine { latency, overhead, gap, byte, jitter, .. } = network.machine;
        network.clocks[*rank] += overhead;
        let leaves = network.clocks[*rank].max(network.free[*rank]);
        network.free[*rank] = leaves + gap;
        let mut at = leaves + latency + (size(&message) - 1) as f64 * byte;
        if jitter > 0.0 {
            // Mostly short delays, sometimes one of all that is allowed.
            let share = network.random.f64();
            at += latency * jitter * share * share * share;
        }
        // No message overtakes another of the same pair.
        let last = network.last[to].entry(*rank).or_insert(0.0);
        at = at.max(*last);
        *last = at;
        if let Message::Tasks(parcel, _) = &message {
            network.moving += u64::from(parcel.tasks);
        }
        network.number += 1;
        let arrival = Arrival { at, number: network.number, from: *rank, message };
        network.boxes[to].push(Reverse(Keyed(arrival)));
        network.woken.push((to, at));
    }

    fn receive(&mut self) -> Option<(usize, Message)> {
        let now = self.network.clocks[self.rank];
        let first = self.network.boxes[self.rank].peek()?;
        if first.0.0.at > now {
            return None;
        }
        let Reverse(Keyed(Arrival { from, message, .. })) = self.network.boxes[self.rank].pop()?;
        self.network.clocks[self.rank] += self.network.machine.overhead;
        if let Message::Tasks(parcel, _) = &message {
            self.network.moving -= u64::from(parcel.tasks);
        }
        Some((from, message))
    }

    fn fetch_add(&mut self, rank: usize, word: Word, number: u64) -> u64 {
        self.one_sided(rank, 8);
        let word = &mut self.network.words[rank][word as usize];
        let old = *word;
        *word = word.wrapping_add(number);
        old
    }

    fn get(&mut self, rank: usize, slot: usize) -> Vec<u8> {
        let bytes = self.network.slots[rank][slot].clone();
        self.one_sided(rank, bytes.len());
        self.network.moving -= tasks_in(&bytes);
        bytes
    }

    fn put_own(&mut self, slot: usize, bytes: &[u8]) {
        bytes.clone_into(&mut self.network.slots[self.rank][slot]);
        self.network.moving += tasks_in(bytes);
    }
}

/// How many tasks an encoded parcel holds.
fn tasks_in(bytes: &[u8]) -> u64 {
    postcard::from_bytes::<Parcel>(bytes).map_or(0, |parcel| parcel.tasks.into())
}

impl Port<'_> {
    fn one_sided(&mut self, rank: usize, bytes: usize) {
        let Machine { latency, overhead, byte, .. } = self.network.machine;
        // In a window of its own a rank needs no network.
        let there = if rank == self.rank { 0.1 * overhead } else { 2.0 * (overhead + latency) };
        self.network.clocks[self.rank] += there + bytes as f64 * byte;
    }
}

/// A rank's tasks.
struct Worker<T> {
    rank: usize,
    bag: Bag<T>,
    paused: bool,
    committed: u64,
}

impl<T: Serialize + DeserializeOwned> Local for Worker<T> {
    fn is_idle(&self) -> bool {
        self.bag.is_empty()
    }

    fn is_still(&self) -> bool {
        true
    }

    fn give(&mut self, parcels: usize, bytes: usize) -> Result<Given, Failure> {
        let given = self.bag.give(self.rank, parcels, bytes)?;
        Ok(if given.is_empty() { Given::Nothing } else { Given::Parcels(given) })
    }

    fn take(&mut self, from: usize, parcel: Parcel) -> Result<(), Failure> {
        self.bag.append(Bag::open(self.rank, from, &parcel)?);
        Ok(())
    }

    fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    fn save(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        let tasks = self.bag.len() as u64;
        Ok(Some((tasks, tasks.to_le_bytes().to_vec())))
    }

    fn commit(&mut self, parts: Vec<Vec<u8>>) -> Result<(), Failure> {
        self.committed = parts
            .iter()
            .map(|part| u64::from_le_bytes(part[..].try_into().expect("eight bytes")))
            .sum();
        Ok(())
    }
}

/// A simulation.
pub struct Simulation<P: Program> {
    machine: Machine,
    policy: Policy,
    /// The node of each rank.
    nodes: Vec<usize>,
    program: P,
    checkpoint_every: Option<f64>,
    most_turns: u64,
}

impl<P: Program> Simulation<P> {
    /// A simulation of this number of ranks, all on one node.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn new(ranks: usize, machine: Machine, policy: Policy, program: P) -> Self {
        assert!(ranks > 0, "a simulation takes a rank");
        Simulation {
            machine,
            policy,
            nodes: vec![0; ranks],
            program,
            checkpoint_every: None,
            most_turns: u64::MAX,
        }
    }

    /// Sets the number of ranks on each node.
    ///
    /// # Panics
    ///
    /// If that is none.
    #[must_use]
    pub fn ranks_per_node(mut self, ranks: usize) -> Self {
        self.nodes = (0..self.nodes.len()).map(|rank| rank / ranks).collect();
        self
    }

    /// Sets the interval of checkpoints, in nanoseconds.
    #[must_use]
    pub fn checkpoint_every(mut self, nanoseconds: f64) -> Self {
        self.checkpoint_every = Some(nanoseconds);
        self
    }

    /// Limits the number of turns of all ranks together.
    #[must_use]
    pub fn turns_at_most(mut self, turns: u64) -> Self {
        self.most_turns = turns;
        self
    }

    /// Runs it, from tasks at rank 0. Returns the program, too.
    ///
    /// # Errors
    ///
    /// If a rank gives up, if the job is said to be over before it is, or if it never is.
    pub fn run(mut self, seeds: Vec<P::Task>) -> Result<(Outcome, P), Wrong> {
        let ranks = self.nodes.len();
        let mut network = Network {
            machine: self.machine,
            random: fastrand::Rng::with_seed(self.policy.seed),
            clocks: vec![0.0; ranks],
            free: vec![0.0; ranks],
            boxes: (0..ranks).map(|_| BinaryHeap::new()).collect(),
            last: vec![std::collections::HashMap::new(); ranks],
            woken: Vec::new(),
            words: vec![[0; 2]; ranks],
            slots: vec![vec![Vec::new(); SLOTS]; ranks],
            number: 0,
            moving: 0,
        };
        let mut balancers: Vec<_> =
            (0..ranks).map(|rank| Balancer::new(self.policy.clone(), rank, &self.nodes)).collect();
        let worker = |rank| Worker { rank, bag: Bag::default(), paused: false, committed: 0 };
        let mut workers: Vec<Worker<P::Task>> = (0..ranks).map(worker).collect();
        let mut waiting = seeds.len() as u64;
        workers[0].bag = seeds.into_iter().collect();

        let (mut tasks, mut work, mut worked, mut elapsed) = (0, 0.0, 0.0f64, 0.0f64);
        let (mut over, mut checkpoints, mut turns_taken) = (0, 0, 0);
        let mut next_checkpoint = self.checkpoint_every;
        // When each rank has its next turn; later ones of a rank are left out when they come up.
        let mut turns: BinaryHeap<Reverse<Turn>> =
            (0..ranks).map(|rank| Reverse(Turn(0.0, rank))).collect();
        let mut turn_at = vec![0.0f64; ranks];
        while over < ranks {
            let Some(Reverse(Turn(at, rank))) = turns.pop() else {
                return Err(Wrong::Stuck { tasks: waiting + network.moving });
            };
            if turn_at[rank].to_bits() != at.to_bits()
                || *balancers[rank].progress() == Progress::Done
            {
                continue;
            }
            turn_at[rank] = f64::INFINITY;
            turns_taken += 1;
            if turns_taken > self.most_turns {
                let (turns, tasks) = (self.most_turns, waiting + network.moving);
                return Err(Wrong::Endless { turns, tasks });
            }
            let (worker, balancer) = (&mut workers[rank], &mut balancers[rank]);
            network.clocks[rank] = network.clocks[rank].max(at);
            if !worker.paused {
                let until = network.clocks[rank] + self.machine.quantum;
                while let Some(task) = worker.bag.pop() {
                    waiting -= 1;
                    let cost = self.program.run(rank, task, &mut |task| {
                        waiting += 1;
                        worker.bag.push(task);
                    });
                    network.clocks[rank] += cost;
                    (tasks, work) = (tasks + 1, work + cost);
                    worked = worked.max(network.clocks[rank]);
                    if network.clocks[rank] >= until {
                        break;
                    }
                }
            }
            if rank == 0 && next_checkpoint.is_some_and(|when| network.clocks[0] >= when) {
                balancer.checkpoint();
                next_checkpoint = self.checkpoint_every.map(|every| network.clocks[0] + every);
            }
            let held = worker.bag.len() as u64;
            worker.committed = u64::MAX;
            balancer.poll(&mut Port { network: &mut network, rank }, worker);
            waiting = waiting + worker.bag.len() as u64 - held;
            if worker.committed != u64::MAX {
                checkpoints += 1;
                // Rank 0 may have given some away since, in the same turn.
                let left = waiting + network.moving;
                if worker.committed != left {
                    return Err(Wrong::Torn { saved: worker.committed, left });
                }
            }
            match balancer.progress() {
                Progress::Running => {
                    let now = network.clocks[rank];
                    let arrives = network.boxes[rank].peek().map(|first| first.0.0.at.max(now));
                    let next = if !worker.bag.is_empty() && !worker.paused {
                        Some(now)
                    } else {
                        let wakes = balancer.wakes().map(|at| (at as f64).max(now));
                        [arrives, wakes].into_iter().flatten().reduce(f64::min)
                    };
                    if let Some(next) = next {
                        turn_at[rank] = next;
                        turns.push(Reverse(Turn(next, rank)));
                    }
                }
                Progress::Done if waiting + network.moving > 0 => {
                    return Err(Wrong::TooEarly { rank, tasks: waiting + network.moving });
                }
                Progress::Done => {
                    over += 1;
                    elapsed = elapsed.max(network.clocks[rank]);
                }
                Progress::Failed(failure) => return Err(failure.clone().into()),
            }
            for (to, at) in std::mem::take(&mut network.woken) {
                let at = at.max(network.clocks[to]);
                if at < turn_at[to] {
                    turn_at[to] = at;
                    turns.push(Reverse(Turn(at, to)));
                }
            }
        }
        let mut counters = Counters::default();
        for balancer in &balancers {
            counters.add(&balancer.counters());
        }
        let outcome = Outcome { elapsed, worked, tasks, work, counters, checkpoints };
        Ok((outcome, self.program))
    }
}

/// The time, and the rank.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Turn(f64, usize);

impl Eq for Turn {}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Turn {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}
