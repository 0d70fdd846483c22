//! Candidate executions, and the axioms that allow some of them.

use std::collections::BTreeSet;

use poach_memory::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::{Does, LENGTH, Outcome, Program, REGISTERS, WORDS};

#[derive(Clone, Copy)]
struct Event {
    /// `None`: it comes before all threads.
    thread: Option<usize>,
    word: Option<usize>,
    /// The register that it reads into.
    reads: Option<usize>,
    writes: Option<u64>,
    order: Ordering,
    fence: bool,
}

/// A relation between events: for each, the set of those that it leads to.
#[derive(Clone, PartialEq)]
struct Relation(Vec<u32>);

impl Relation {
    fn new(count: usize, holds: impl Fn(usize, usize) -> bool) -> Self {
        let row = |a| (0..count).fold(0, |row, b| row | u32::from(holds(a, b)) << b);
        Relation((0..count).map(row).collect())
    }

    fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] >> b & 1 == 1
    }

    fn or(&self, other: &Relation) -> Relation {
        Relation(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine | theirs).collect())
    }

    fn then(&self, other: &Relation) -> Relation {
        let through = |row: &u32| {
            let others = other.0.iter().enumerate();
            others.fold(
                0,
                |reached, (b, next)| if row >> b & 1 == 1 { reached | next } else { reached },
            )
        };
        Relation(self.0.iter().map(through).collect())
    }

    fn closed(&self) -> Relation {
        let mut all = self.clone();
        loop {
            let more = all.or(&all.then(&all));
            if more == all {
                return all;
            }
            all = more;
        }
    }

    fn reflexive(&self) -> Relation {
        Relation::new(self.0.len(), |a, b| a == b || self.has(a, b))
    }

    fn is_reflexive_somewhere(&self) -> bool {
        self.0.iter().enumerate().any(|(event, row)| row >> event & 1 == 1)
    }

    fn has_cycle(&self) -> bool {
        self.closed().is_reflexive_somewhere()
    }
}

fn events(program: &Program) -> Vec<Event> {
    let first = |word| Event {
        thread: None,
        word: Some(word),
        reads: None,
        writes: Some(0),
        order: Relaxed,
        fence: false,
    };
    let mut events: Vec<Event> = (0..WORDS).map(first).collect();
    for (thread, does) in program.iter().enumerate() {
        let mut register = thread * REGISTERS;
        for does in does {
            let (word, reads, writes, order) = match *does {
                Does::Store(word, value, order) => (Some(word), false, Some(value), order),
                Does::Load(word, order) => (Some(word), true, None, order),
                Does::Swap(word, value, order) => (Some(word), true, Some(value), order),
                Does::Fence => (None, false, None, AcqRel),
            };
            let thread = Some(thread);
            let fence = word.is_none();
            events.push(Event {
                thread,
                word,
                reads: reads.then_some(register),
                writes,
                order,
                fence,
            });
            register += usize::from(reads);
        }
    }
    events
}

/// All orders of some events.
fn orders(events: &[usize]) -> Vec<Vec<usize>> {
    if events.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |at: usize| {
        let mut rest = events.to_vec();
        let first = rest.remove(at);
        orders(&rest).into_iter().map(move |order| [vec![first], order].concat())
    };
    (0..events.len()).flat_map(with_first).collect()
}

fn combinations<T: Clone>(choices: &[Vec<T>]) -> Vec<Vec<T>> {
    choices.iter().fold(vec![Vec::new()], |all, choices| {
        let longer = |begun: &Vec<T>| {
            let begun = begun.clone();
            choices.iter().map(move |choice| [begun.clone(), vec![choice.clone()]].concat())
        };
        all.iter().flat_map(longer).collect()
    })
}

struct Candidate<'a> {
    events: &'a [Event],
    program_order: &'a Relation,
    reads_from: Relation,
    modification: Relation,
}

impl Candidate<'_> {
    fn allowed(&self) -> bool {
        let Candidate { events, program_order, reads_from, modification } = self;
        let count = events.len();
        let is = |holds: &dyn Fn(&Event) -> bool| {
            Relation::new(count, |a, b| a == b && holds(&events[a]))
        };
        // A read comes before the stores behind the one that it has read; an exchange does not come
        // before itself.
        let from_read = Relation::new(count, |read, write| {
            read != write
                && (0..count)
                    .any(|from| reads_from.has(from, read) && modification.has(from, write))
        });
        // Atomicity: nothing stands between an exchange and what it has read.
        if from_read.then(modification).is_reflexive_somewhere() {
            return false;
        }
        let eco = reads_from.or(modification).or(&from_read).closed();
        // Release sequences: a store, and exchanges that read from it one after another.
        let is_exchange = |event: &Event| event.reads.is_some() && event.writes.is_some();
        let sequence = reads_from.then(&is(&is_exchange)).closed().reflexive();
        let releases = |event: &Event| {
            event.writes.is_some() && matches!(event.order, Release | AcqRel | SeqCst)
        };
        let acquires = |event: &Event| {
            event.reads.is_some() && matches!(event.order, Acquire | AcqRel | SeqCst)
        };
        let fences = is(&|event| event.fence);
        let stores = is(&|event| event.writes.is_some() && event.thread.is_some());
        let loads = is(&|event| event.reads.is_some());
        let begins = is(&releases).or(&fences.then(program_order).then(&stores));
        let ends = is(&acquires).or(&loads.then(program_order).then(&fences));
        let synchronizes = begins.then(&sequence).then(reads_from).then(&ends);
        let before = program_order.or(&synchronizes).closed();
        // Coherence.
        let around = before.then(&eco.reflexive());
        // (An exchange is one event, so that it reads nothing from behind itself is asked of `eco`
        // alone.)
        if eco.is_reflexive_somewhere() || around.is_reflexive_somewhere() {
            return false;
        }
        // What is sequentially consistent: accesses by themselves, fences by what happens before
        // and after them.
        let accesses = is(&|event| event.order == SeqCst);
        let between = before.or(&before.then(&eco).then(&before));
        let from = accesses.or(&fences.then(&before));
        let to = accesses.or(&before.then(&fences));
        let of_fences = fences.then(&between).then(&fences);
        let in_order = from.then(&eco).then(&to).or(&of_fences);
        !program_order.or(reads_from).or(&in_order).has_cycle()
    }

    fn outcome(&self) -> Outcome {
        let mut outcome = vec![0; LENGTH];
        for (from, source) in self.events.iter().enumerate() {
            for (to, event) in self.events.iter().enumerate() {
                if let (true, Some(register)) = (self.reads_from.has(from, to), event.reads) {
                    outcome[register] = source.writes.unwrap_or_default();
                }
            }
            let last = self.modification.0[from] == 0;
            if let (true, Some(word), Some(value)) = (last, source.word, source.writes) {
                outcome[LENGTH - WORDS + word] = value;
            }
        }
        outcome
    }
}

/// Every outcome that the axioms allow.
pub(crate) fn outcomes(program: &Program) -> BTreeSet<Outcome> {
    let events = events(program);
    let count = events.len();
    let program_order = Relation::new(count, |a, b| match (events[a].thread, events[b].thread) {
        (None, other) => other.is_some(),
        (Some(thread), other) => other == Some(thread) && a < b,
    });
    let of_word = |word: usize| -> Vec<usize> {
        let stores_to =
            |event: &usize| events[*event].word == Some(word) && events[*event].writes.is_some();
        (0..count).filter(stores_to).collect()
    };
    let modifications: Vec<Vec<Vec<usize>>> = (0..WORDS)
        .map(|word| {
            let stores: Vec<usize> =
                of_word(word).into_iter().filter(|&event| event >= WORDS).collect();
            orders(&stores).into_iter().map(|order| [vec![word], order].concat()).collect()
        })
        .collect();
    let reads: Vec<usize> = (0..count).filter(|&event| events[event].reads.is_some()).collect();
    let sources: Vec<Vec<usize>> = reads
        .iter()
        .map(|&read| {
            let word = events[read].word.expect("a read is of a word");
            of_word(word).into_iter().filter(|&write| write != read).collect()
        })
        .collect();
    let mut found = BTreeSet::new();
    for orders in combinations(&modifications) {
        let place = |event: usize| {
            orders.iter().find_map(|order| order.iter().position(|&other| other == event))
        };
        let modification = Relation::new(count, |a, b| {
            events[a].word == events[b].word
                && matches!((place(a), place(b)), (Some(first), Some(second)) if first < second)
        });
        for from in combinations(&sources) {
            let reads_from = Relation::new(count, |a, b| {
                reads.iter().position(|&read| read == b).is_some_and(|at| from[at] == a)
            });
            let modification = modification.clone();
            let program_order = &program_order;
            let candidate = Candidate { events: &events, program_order, reads_from, modification };
            if candidate.allowed() {
                found.insert(candidate.outcome());
            }
        }
    }
    found
}
