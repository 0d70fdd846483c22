//! Waiting, and giving up.
//!
//! [`Op::Pause`] says that a thread waits: what it has looked at since its last pause, its *round*,
//! was not what it waits for. It changes nothing, and may return at any time. To explore each round
//! of each wait would never end, so two things are left out.
//!
//! *A round that reads the same values as the last round.* A paused thread goes on at once when a
//! word that it has read changes. Otherwise it stays, or it *gives up*: this is an event like any
//! other, which the search may choose even if other threads can move. So a stretch of equal rounds
//! is one round, or all the rounds that the thread's patience has left. A loop that carries only a
//! count from round to round sees no difference between one round and several, while its patience
//! lasts. When it ends, it has ended after as many rounds as it always does.
//!
//! *A wait that never ends by itself.* A thread that goes through [`ENDLESS`] rounds without doing
//! anything but look will do so for ever, so it has nothing to give up to.
//!
//! A *probe* finds out which of the two a thread is in, once for each local state. It runs the
//! thread alone, in a copy of the execution, until the thread does something other than to read, or
//! reads other words than in the round before. The number of pauses up to there is its patience.
//! Giving up passes this number of pauses in one event. The rounds between them are not choices,
//! because they read the same values as the first round, and no other thread notices a read.
//! Everything after the last pause is scheduled as usual.
//!
//! A thread that would give up after [`SINGLE_ROUNDS`] rounds or fewer goes one round only, whose
//! every read is a choice: such short waits are explored in full. For longer waits two assumptions
//! are made. (1) A round leaves only a count to the next round. (2) Two consecutive waits, with
//! nothing but reads between them, do not read the same words from the same lines of the source.
//!
//! A thread whose rounds write never comes to an end of its looking: each of its pauses gives up to
//! one round more. After [`MOST_IN_VAIN`] of these in a row it is held until something changes, and
//! the search says that it was not complete ([`Incomplete::Waits`](crate::Incomplete::Waits)).

use super::{Loc, Location, Machine, Op, mix};

pub(crate) const ENDLESS: u32 = 1_100;

/// The longest patience whose every round is explored.
pub(crate) const SINGLE_ROUNDS: u32 = 12;

/// The number of times in a row that a thread gives up while others can move.
pub(crate) const MOST_IN_VAIN: u32 = 16;

/// The number of times in a row that a thread gives up when no other thread can move.
const MOST_ALONE: u32 = 200;

/// A look of a waiting thread: at which word, what it saw, and where in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) loc: Loc,
    pub(crate) value: u64,
    pub(crate) site: &'static Location<'static>,
}

impl Look {
    fn same(&self, other: &Look) -> bool {
        self.loc == other.loc && core::ptr::eq(self.site, other.site)
    }
}

/// How many pauses a thread passes before it gives up, if nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Unknown,
    Rounds(u32),
    Endless,
}

/// A thread that runs alone to find out its patience.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// The thread's fingerprint at the pause.
    pub(crate) hash: u64,
    /// The looks before the first pause, then those of the last round.
    before: Vec<Look>,
    now: Vec<Look>,
    pauses: u32,
    /// It has done something else than look.
    pub(crate) over: bool,
}

impl Probe {
    pub(crate) fn new(machine: &Machine, thread: usize) -> Self {
        let thread = &machine.threads[thread];
        Probe { hash: thread.hash, before: thread.reads.clone(), pauses: 1, ..Probe::default() }
    }

    /// The thread looks; whether it does so as in the round before.
    pub(crate) fn look(&mut self, look: Look) -> bool {
        let place = self.now.len();
        self.now.push(look);
        // The first round is compared when it is whole: more was looked at before it.
        self.pauses == 1 || self.before.get(place).is_some_and(|known| known.same(&look))
    }

    pub(crate) fn pause(&mut self) -> Option<Patience> {
        if self.now.is_empty() {
            return None;
        }
        let start = self.before.len().checked_sub(self.now.len());
        let same = start.is_some_and(|start| {
            (self.pauses == 1 || start == 0)
                && self.before[start..].iter().zip(&self.now).all(|(old, new)| old.same(new))
        });
        if !same {
            return Some(Patience::Rounds(self.pauses));
        }
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        self.pauses += 1;
        (self.pauses > ENDLESS).then_some(Patience::Endless)
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience::Rounds(self.pauses)
    }
}

impl Machine {
    /// Whether a thread pauses and nothing that it has looked at has changed. A pause after which
    /// it has looked at nothing waits for nothing.
    #[inline]
    pub(crate) fn in_vain(&self, index: usize) -> bool {
        let thread = &self.threads[index];
        matches!(thread.pending, Op::Pause)
            && !thread.reads.is_empty()
            && thread.reads.iter().all(|look| self.visible(index, look.loc) == look.value)
    }

    /// Whether a thread that pauses may go on because of something that it has not seen.
    #[inline]
    pub(crate) fn wakes(&self, index: usize) -> bool {
        match &self.weak {
            None => !self.in_vain(index),
            Some(weak) => self.threads[index].reads.is_empty() || self.something_new(weak, index),
        }
    }

    /// Whether a thread pauses and could see once more what it has seen.
    #[inline]
    fn in_doubt(&self, index: usize) -> bool {
        match &self.weak {
            None => self.in_vain(index),
            Some(weak) => {
                let thread = &self.threads[index];
                matches!(thread.pending, Op::Pause)
                    && !thread.reads.is_empty()
                    && self.same_again(weak, index)
            }
        }
    }

    pub(super) fn passes_pause(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        if !thread.reads.is_empty() {
            let woken = thread.passes == 0;
            thread.passes = thread.passes.saturating_sub(1);
            if woken {
                thread.vain = 0;
            }
            self.passes_weakly(index, woken);
        }
        self.threads[index].reads.clear();
    }

    #[inline]
    pub(crate) fn has_looked(&self, index: usize) -> bool {
        !self.threads[index].reads.is_empty()
    }

    /// Whether a thread may give up its waiting; `alone` if nothing else can happen.
    pub(crate) fn can_give_up(&self, index: usize, alone: bool) -> bool {
        let thread = &self.threads[index];
        matches!(thread.pending, Op::Pause)
            && matches!(thread.patience, Patience::Rounds(_))
            && thread.vain < if alone { MOST_ALONE } else { MOST_IN_VAIN }
            && self.in_doubt(index)
    }

    #[inline]
    pub(crate) fn holds_one(&self) -> bool {
        self.pausing != 0
            && (0..self.count).any(|index| {
                let thread = &self.threads[index];
                thread.vain >= MOST_IN_VAIN
                    && matches!(thread.patience, Patience::Rounds(_))
                    && self.in_doubt(index)
            })
    }

    /// Whether another thread could notice that this one gives up: it writes what this looks at.
    pub(crate) fn gives_up_noticeably(&self, index: usize) -> bool {
        self.threads[index].reads.iter().any(|look| self.written_by_others(index, look.loc))
    }

    #[inline]
    pub(crate) fn unknown_patience(&self) -> Option<usize> {
        if self.pausing == 0 {
            return None;
        }
        (0..self.count).find(|&index| {
            let thread = &self.threads[index];
            matches!(thread.pending, Op::Pause)
                && thread.patience == Patience::Unknown
                && self.in_doubt(index)
        })
    }

    pub(crate) fn arrives_at_pause(&mut self, index: usize) {
        let hash = self.threads[index].hash;
        let known = self.patiences.get(&hash).copied();
        self.threads[index].patience = known.unwrap_or(Patience::Unknown);
        self.arrives_weakly(index);
    }

    pub(crate) fn learn_patience(&mut self, hash: u64, patience: Patience) {
        self.patiences.insert(hash, patience);
    }

    /// The pauses that a thread passes when it gives up now, which counts as once more.
    pub(crate) fn give_up(&mut self, index: usize) -> u32 {
        let thread = &mut self.threads[index];
        thread.vain += 1;
        // A thread that gives up is in another state than a thread that has seen a change.
        thread.hash = mix(thread.hash, u64::from(thread.vain));
        thread.passes = match thread.patience {
            Patience::Rounds(rounds) if rounds > SINGLE_ROUNDS => rounds,
            _ => 1,
        };
        thread.passes
    }

    /// What a thread that is being probed sees at a step that is no more than a look, or a pause.
    /// The copy of the execution in which it does is thrown away, so nothing takes note of it.
    /// `None` under weak memory, where looking finds out what there is to see.
    pub(crate) fn sees(&self, index: usize, op: Op) -> Option<u64> {
        match op {
            _ if self.weak.is_some() => None,
            Op::Load(loc) => Some(self.visible(index, loc)),
            Op::Change(loc, _) => Some(self.memory[loc as usize]),
            _ => Some(0),
        }
    }

    /// Whether a step of a thread that runs alone is no more than a look: which look, if it is one.
    pub(crate) fn only_looks(&self, index: usize, op: Op) -> Result<Option<Loc>, ()> {
        let empty = self.buffered(index) == 0;
        match op {
            Op::Load(loc) => Ok(Some(loc)),
            Op::Change(loc, _) if self.weak.is_some() => {
                if self.changes_nothing(index) {
                    Ok(Some(loc))
                } else {
                    Err(())
                }
            }
            Op::Change(loc, change) if empty => {
                let old = self.memory[loc as usize];
                let same = change.of(old).is_none_or(|new| new == old);
                if same { Ok(Some(loc)) } else { Err(()) }
            }
            Op::Full if empty => Ok(None),
            Op::Fence => Ok(None),
            _ => Err(()),
        }
    }
}
