//! Litmus tests: small programs whose outcomes tell memory models apart.
//!
//! The verdicts are those of Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, *x86-TSO: A Rigorous
//! and Usable Programmer's Model for x86 Multiprocessors* (CACM 53(7), 2010). Its longer form is
//! Owens, Sarkar and Sewell, *A Better x86 Memory Model: x86-TSO* (TPHOLs 2009). They name n4 to
//! n7; the two-letter names are the field's. The forms with a process-wide barrier follow from its
//! definition: a compiler fence in one thread and `membarrier(2)` in the other make a full fence in
//! both.

use std::collections::BTreeSet;
use std::sync::Arc;

use poach_memory::{Memory, Ordering::Relaxed, Word};

use crate::{Config, Report, Simulated, Threads, explore, observe};

/// A word of a litmus test.
pub type Place = usize;
/// The words.
pub const X: Place = 0;
/// See [`X`].
pub const Y: Place = 1;
/// See [`X`].
pub const Z: Place = 2;
const WORDS: usize = 3;

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Stores a value.
    Store(Place, u64),
    /// Loads into this thread's next register.
    Load(Place),
    /// Exchanges; the old value goes to this thread's next register.
    Exchange(Place, u64),
    /// A full fence.
    Fence,
    /// The cheap end of the asymmetric fence.
    Light,
    /// The costly end: the process-wide barrier.
    Heavy,
}
use Instruction::{Exchange, Fence, Heavy, Light, Load, Store};

/// Something that can be looked at when the program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The n-th value that a thread read: (thread, n).
    Register(usize, usize),
    /// What a word holds in the end.
    Final(Place),
}
use Seen::{Final, Register};

/// A litmus test.
#[derive(Clone, Copy, Debug)]
pub struct Litmus {
    /// What the field calls it.
    pub name: &'static str,
    /// The threads' programs.
    pub threads: &'static [&'static [Instruction]],
    /// The outcome in question.
    pub outcome: &'static [(Seen, u64)],
    /// Whether x86-TSO allows it.
    pub allowed: bool,
    /// Whether sequential consistency allows it.
    pub sequential: bool,
}

const fn test(
    name: &'static str,
    threads: &'static [&'static [Instruction]],
    outcome: &'static [(Seen, u64)],
    allowed: bool,
) -> Litmus {
    Litmus { name, threads, outcome, allowed, sequential: false }
}

const REGISTERS: usize = 8;

const BOTH_ZERO: &[(Seen, u64)] = &[(Register(0, 0), 0), (Register(1, 0), 0)];

/// The tests.
pub const TESTS: &[Litmus] = &[
    test("SB", &[&[Store(X, 1), Load(Y)], &[Store(Y, 1), Load(X)]], BOTH_ZERO, true),
    test(
        "SB+fences",
        &[&[Store(X, 1), Fence, Load(Y)], &[Store(Y, 1), Fence, Load(X)]],
        BOTH_ZERO,
        false,
    ),
    test(
        "SB+fence+none",
        &[&[Store(X, 1), Fence, Load(Y)], &[Store(Y, 1), Load(X)]],
        BOTH_ZERO,
        true,
    ),
    test(
        "SB+exchanges",
        &[&[Exchange(X, 1), Load(Y)], &[Exchange(Y, 1), Load(X)]],
        &[(Register(0, 1), 0), (Register(1, 1), 0)],
        false,
    ),
    test(
        "SB+light+heavy",
        &[&[Store(X, 1), Light, Load(Y)], &[Store(Y, 1), Heavy, Load(X)]],
        BOTH_ZERO,
        false,
    ),
    test(
        "SB+lights",
        &[&[Store(X, 1), Light, Load(Y)], &[Store(Y, 1), Light, Load(X)]],
        BOTH_ZERO,
        true,
    ),
    test(
        "MP",
        &[&[Store(X, 1), Store(Y, 1)], &[Load(Y), Load(X)]],
        &[(Register(1, 0), 1), (Register(1, 1), 0)],
        false,
    ),
    test(
        "LB",
        &[&[Load(X), Store(Y, 1)], &[Load(Y), Store(X, 1)]],
        &[(Register(0, 0), 1), (Register(1, 0), 1)],
        false,
    ),
    test(
        "S",
        &[&[Store(X, 2), Store(Y, 1)], &[Load(Y), Store(X, 1)]],
        &[(Register(1, 0), 1), (Final(X), 2)],
        false,
    ),
    test(
        "R",
        &[&[Store(X, 1), Store(Y, 1)], &[Store(Y, 2), Load(X)]],
        &[(Register(1, 0), 0), (Final(Y), 2)],
        true,
    ),
    test(
        "R+none+fence",
        &[&[Store(X, 1), Store(Y, 1)], &[Store(Y, 2), Fence, Load(X)]],
        &[(Register(1, 0), 0), (Final(Y), 2)],
        false,
    ),
    test(
        "2+2W",
        &[&[Store(X, 1), Store(Y, 2)], &[Store(Y, 1), Store(X, 2)]],
        &[(Final(X), 1), (Final(Y), 1)],
        false,
    ),
    test(
        "IRIW",
        &[&[Store(X, 1)], &[Store(Y, 1)], &[Load(X), Load(Y)], &[Load(Y), Load(X)]],
        &[(Register(2, 0), 1), (Register(2, 1), 0), (Register(3, 0), 1), (Register(3, 1), 0)],
        false,
    ),
    test(
        "WRC",
        &[&[Store(X, 1)], &[Load(X), Store(Y, 1)], &[Load(Y), Load(X)]],
        &[(Register(1, 0), 1), (Register(2, 0), 1), (Register(2, 1), 0)],
        false,
    ),
    test(
        "RWC",
        &[&[Store(X, 1)], &[Load(X), Load(Y)], &[Store(Y, 1), Load(X)]],
        &[(Register(1, 0), 1), (Register(1, 1), 0), (Register(2, 0), 0)],
        true,
    ),
    test(
        "RWC+fence",
        &[&[Store(X, 1)], &[Load(X), Load(Y)], &[Store(Y, 1), Fence, Load(X)]],
        &[(Register(1, 0), 1), (Register(1, 1), 0), (Register(2, 0), 0)],
        false,
    ),
    test(
        "CoRR",
        &[&[Store(X, 1)], &[Load(X), Load(X)]],
        &[(Register(1, 0), 1), (Register(1, 1), 0)],
        false,
    ),
    test(
        "n4",
        &[&[Load(X), Store(X, 1)], &[Load(X), Store(X, 2)]],
        &[(Register(0, 0), 2), (Register(1, 0), 1)],
        false,
    ),
    test(
        "n5",
        &[&[Store(X, 1), Load(X)], &[Store(X, 2), Load(X)]],
        &[(Register(0, 0), 2), (Register(1, 0), 1)],
        false,
    ),
    test(
        "n6",
        &[&[Store(X, 1), Load(X), Load(Y)], &[Store(Y, 2), Store(X, 2)]],
        &[(Register(0, 0), 1), (Register(0, 1), 0), (Final(X), 1)],
        true,
    ),
    test(
        "n6+fence",
        &[&[Store(X, 1), Load(X), Fence, Load(Y)], &[Store(Y, 2), Store(X, 2)]],
        &[(Register(0, 0), 1), (Register(0, 1), 0), (Final(X), 1)],
        false,
    ),
    test(
        "n7",
        &[&[Store(X, 1), Load(X), Load(Y)], &[Store(Y, 1)], &[Load(Y), Load(X)]],
        &[(Register(0, 0), 1), (Register(0, 1), 0), (Register(2, 0), 1), (Register(2, 1), 0)],
        true,
    ),
    test(
        "n7+fence",
        &[&[Store(X, 1), Load(X), Fence, Load(Y)], &[Store(Y, 1)], &[Load(Y), Load(X)]],
        &[(Register(0, 0), 1), (Register(0, 1), 0), (Register(2, 0), 1), (Register(2, 1), 0)],
        false,
    ),
    test(
        "iwp2.4",
        &[&[Store(X, 1), Load(X), Load(Y)], &[Store(Y, 1), Load(Y), Load(X)]],
        &[(Register(0, 0), 1), (Register(0, 1), 0), (Register(1, 0), 1), (Register(1, 1), 0)],
        true,
    ),
];

/// What a test has shown.
#[derive(Debug)]
pub struct Found {
    /// Whether the outcome in question occurred.
    pub occurred: bool,
    /// The search.
    pub report: Report,
}

fn place_of(seen: Seen) -> usize {
    match seen {
        Register(thread, number) => thread * REGISTERS + number,
        Final(place) => crate::MAX_THREADS * REGISTERS + place,
    }
}

/// Every outcome that a program has, on a machine as `config` says. An outcome lists each thread's
/// first four values read, then the words' last values.
pub fn outcomes(config: &Config, threads: &[Vec<Instruction>]) -> (BTreeSet<Vec<u64>>, Report) {
    let programs: Arc<[Vec<Instruction>]> = threads.into();
    let model = move |threads: &mut Threads| {
        let words = Arc::new([(); WORDS].map(|()| <Simulated as Memory>::Word::new(0)));
        for thread in 0..programs.len() {
            let (words, programs) = (Arc::clone(&words), Arc::clone(&programs));
            threads.spawn(NAMES[thread], move || run(thread, &programs[thread], &words[..]));
        }
        threads.finally(move || {
            for (place, word) in words.iter().enumerate() {
                observe(place_of(Final(place)), word.load(Relaxed));
            }
        });
    };
    let mut report = explore(config, &model);
    (std::mem::take(&mut report.outcomes), report)
}

const NAMES: [&str; crate::MAX_THREADS] = ["P0", "P1", "P2", "P3", "P4", "P5", "P6", "P7"];

fn run(thread: usize, program: &[Instruction], words: &[<Simulated as Memory>::Word]) {
    let mut read = 0;
    let mut register = |value| {
        observe(place_of(Register(thread, read)), value);
        read += 1;
    };
    for instruction in program {
        match *instruction {
            Store(place, value) => words[place].store(value, Relaxed),
            Load(place) => register(words[place].load(Relaxed)),
            Exchange(place, value) => register(words[place].swap(value, Relaxed)),
            Fence => Simulated::full(),
            Light => Simulated::light(),
            Heavy => Simulated::heavy(),
        }
    }
}

impl Litmus {
    /// Runs the test on a machine as `config` says.
    pub fn run(&self, config: &Config) -> Found {
        let programs: Vec<Vec<Instruction>> =
            self.threads.iter().map(|program| program.to_vec()).collect();
        let (outcomes, report) = outcomes(config, &programs);
        let occurred = outcomes.iter().any(|outcome| {
            self.outcome.iter().all(|&(seen, value)| outcome[place_of(seen)] == value)
        });
        Found { occurred, report }
    }
}
