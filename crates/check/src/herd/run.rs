//! A test's threads on the machine, and the answer.

use std::sync::Arc;

use super::program::{Address, Alu, Instruction, Line, Operand, Place, Program, When};
use super::{Quantifier, Test};
use crate::machine::{Change, Function};
use crate::raw::{Raw, full_fence};
use crate::{Config, Naming, Report, Threads, Verdict, explore, observe};

const NAMES: [&str; crate::MAX_THREADS] = ["P0", "P1", "P2", "P3", "P4", "P5", "P6", "P7"];

/// Instructions that a thread may execute: more is a loop that does not end.
const MOST_INSTRUCTIONS: usize = 10_000;

/// What a test has shown.
#[derive(Debug)]
pub struct Answer {
    /// herd's `Ok`: the states are as the quantifier asks.
    pub holds: bool,
    /// Every final state, written as herd writes it.
    pub states: Vec<String>,
    /// How many of them satisfy the condition.
    pub satisfying: usize,
    /// Every execution was covered, or the found states suffice: one exists, or one refutes.
    pub conclusive: bool,
    /// The search.
    pub report: Report,
    name: String,
    quantifier: Quantifier,
    condition: String,
}

impl Answer {
    /// `Never`, `Sometimes` or `Always`: how many of the states satisfy the condition.
    pub fn observation(&self) -> &'static str {
        match (self.satisfying, self.states.len() - self.satisfying) {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        }
    }

    /// The witnesses for and against what is asked.
    pub fn witnesses(&self) -> (usize, usize) {
        let others = self.states.len() - self.satisfying;
        match self.quantifier {
            Quantifier::NotExists => (others, self.satisfying),
            _ => (self.satisfying, others),
        }
    }

    /// `exists (..)`, as herd writes it.
    pub fn condition(&self) -> &str {
        &self.condition
    }

    /// The answer, as herd writes it.
    pub fn text(&self) -> String {
        let name = &self.name;
        let mut text =
            format!("Test {name} {}\nStates {}\n", self.quantifier.kind(), self.states.len());
        for state in &self.states {
            text.push_str(state);
            text.push('\n');
        }
        let (positive, negative) = self.witnesses();
        let verdict = if self.holds { "Ok" } else { "No" };
        let (condition, observation) = (&self.condition, self.observation());
        let (satisfying, others) = (self.satisfying, self.states.len() - self.satisfying);
        let witnesses = format!("Positive: {positive} Negative: {negative}");
        text + &format!("{verdict}\nWitnesses\n{witnesses}\nCondition {condition}\n")
            + &format!("Observation {name} {observation} {satisfying} {others}\n")
    }
}

impl Test {
    /// Runs every execution of the test, or the number that `config` allows.
    ///
    /// Complexity: exponential in the threads' instructions.
    ///
    /// # Panics
    ///
    /// If called inside of a model.
    pub fn run(&self, config: &Config) -> Answer {
        let program = Arc::new(self.program.clone());
        let shown: Arc<[Place]> = self.shown.as_slice().into();
        let names: Arc<[Naming]> = program.locations.iter().map(Naming::new).collect();
        let report = explore(config, &move |threads: &mut Threads| {
            let words: Arc<[Raw]> = program.initial.iter().map(|value| Raw::new(*value)).collect();
            threads.name_words(Arc::clone(&names));
            for (thread, name) in NAMES.iter().enumerate().take(program.threads.len()) {
                let (program, words, shown) =
                    (Arc::clone(&program), Arc::clone(&words), Arc::clone(&shown));
                threads.spawn(name, move || {
                    let registers = Processor::new(&program, thread, &words).run();
                    for (at, place) in shown.iter().enumerate() {
                        if let Place::Register(owner, register) = place {
                            if *owner == thread {
                                observe(at, registers[*register]);
                            }
                        }
                    }
                });
            }
            let (program, shown) = (Arc::clone(&program), Arc::clone(&shown));
            threads.finally(move || {
                // A list of its own, even if the test shows nothing.
                observe(shown.len(), 0);
                for (at, place) in shown.iter().enumerate() {
                    match *place {
                        Place::Location(location) => observe(at, words[location].load()),
                        Place::Register(thread, register) if thread >= program.threads.len() => {
                            observe(at, program.registers[thread][register].1);
                        }
                        Place::Register(..) => {}
                    }
                }
            });
        });
        self.answer(report)
    }

    fn answer(&self, report: Report) -> Answer {
        let (mut states, mut satisfying) = (Vec::new(), 0);
        for outcome in &report.outcomes {
            let value = |place: Place| {
                let at = self.shown.iter().position(|shown| *shown == place);
                at.map_or(0, |at| outcome[at])
            };
            let filtered =
                self.filter.as_ref().is_some_and(|filter| !filter.holds(&|place| value(place)));
            if filtered {
                continue;
            }
            satisfying += usize::from(self.condition.holds(&|place| value(place)));
            let parts: Vec<String> = self
                .shown
                .iter()
                .zip(outcome)
                .map(|(place, value)| {
                    let value = self.program.write_value(*value);
                    format!("{}={value};", self.program.write_place(*place))
                })
                .collect();
            states.push(parts.join(" "));
        }
        let (holds, found) = match self.quantifier {
            Quantifier::Exists => (satisfying > 0, satisfying > 0),
            Quantifier::NotExists => (satisfying == 0, satisfying > 0),
            Quantifier::ForAll => (satisfying == states.len(), satisfying < states.len()),
        };
        let written = self.condition.write(&self.program);
        let written = if written.starts_with('(') { written } else { format!("({written})") };
        Answer {
            holds,
            conclusive: found || (report.complete && report.verdict == Verdict::Clean),
            states,
            satisfying,
            report,
            name: self.name.clone(),
            quantifier: self.quantifier,
            condition: format!("{} {written}", self.quantifier.word()),
        }
    }
}

/// What the last comparison or computation left for conditional jumps.
#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are the processor's")]
struct Flags {
    zero: bool,
    negative: bool,
    less: bool,
    below: bool,
}

impl Flags {
    fn compared(left: u64, right: u64, bits: u32) -> Self {
        let (signed_left, signed_right) = (signed(left, bits), signed(right, bits));
        Flags {
            zero: left == right,
            negative: signed(left.wrapping_sub(right), bits) < 0,
            less: signed_left < signed_right,
            below: left < right,
        }
    }

    fn take(self, when: When) -> bool {
        match when {
            When::Always => true,
            When::Equal => self.zero,
            When::NotEqual => !self.zero,
            When::Less => self.less,
            When::LessOrEqual => self.less || self.zero,
            When::Greater => !self.less && !self.zero,
            When::GreaterOrEqual => !self.less,
            When::Below => self.below,
            When::BelowOrEqual => self.below || self.zero,
            When::Above => !self.below && !self.zero,
            When::AboveOrEqual => !self.below,
            When::Negative => self.negative,
            When::NotNegative => !self.negative,
        }
    }
}

fn mask(bits: u32) -> u64 {
    if bits == 32 { u64::from(u32::MAX) } else { u64::MAX }
}

fn signed(value: u64, bits: u32) -> i64 {
    if bits == 32 { i64::from(value as u32 as i32) } else { value as i64 }
}

/// The function of an operation, for a read-modify-write: it has nothing but its operands.
fn function(alu: Alu, bits: u32) -> fn(u64, u64) -> u64 {
    macro_rules! widths {
        ($($alu:ident = |$old:ident, $by:ident| $new:expr;)*) => {
            match (alu, bits) {
                $(
                    (Alu::$alu, 32) => |$old: u64, $by: u64| ($new) & mask(32),
                    (Alu::$alu, _) => |$old: u64, $by: u64| $new,
                )*
            }
        };
    }
    widths! {
        Add = |old, by| old.wrapping_add(by);
        Sub = |old, by| old.wrapping_sub(by);
        And = |old, by| old & by;
        Or = |old, by| old | by;
        Xor = |old, by| old ^ by;
        Negate = |old, _by| old.wrapping_neg();
        Complement = |old, _by| !old;
    }
}

struct Processor<'a> {
    program: &'a Program,
    lines: &'a [Line],
    words: &'a [Raw],
    registers: Vec<u64>,
    /// The register that `cmpxchg` compares with.
    accumulator: usize,
    flags: Flags,
}

impl<'a> Processor<'a> {
    fn new(program: &'a Program, thread: usize, words: &'a [Raw]) -> Self {
        let registers = &program.registers[thread];
        let accumulator = registers.iter().position(|(name, _)| name == "rax" || name == "eax");
        Processor {
            program,
            lines: &program.threads[thread],
            words,
            registers: registers.iter().map(|(_, value)| *value).collect(),
            accumulator: accumulator.unwrap_or(0),
            flags: Flags::default(),
        }
    }

    fn run(mut self) -> Vec<u64> {
        let mut at = 0;
        let mut executed = 0;
        while let Some(line) = self.lines.get(at) {
            executed += 1;
            assert!(executed <= MOST_INSTRUCTIONS, "a loop that does not end");
            at += 1;
            match line.instruction {
                Instruction::Jump { when, to } if self.flags.take(when) => at = to,
                Instruction::Return => break,
                _ => self.execute(line),
            }
        }
        self.registers
    }

    fn word(&self, address: Address) -> &'a Raw {
        match address {
            Address::Location(location) => &self.words[location],
            Address::Register(register) => {
                let value = self.registers[register];
                let location = self.program.pointed(value);
                &self.words[location.unwrap_or_else(|| panic!("{value} is no address"))]
            }
        }
    }

    fn read(&self, operand: Operand, bits: u32) -> u64 {
        let value = match operand {
            Operand::Register(register) => self.registers[register],
            Operand::Number(number) => number,
            Operand::Memory(address) => self.word(address).load(),
        };
        value & mask(bits)
    }

    fn write(&mut self, operand: Operand, value: u64, bits: u32) {
        let value = value & mask(bits);
        match operand {
            Operand::Register(register) => self.registers[register] = value,
            Operand::Memory(address) => self.word(address).store(value),
            Operand::Number(_) => {}
        }
    }

    fn execute(&mut self, line: &Line) {
        let bits = line.bits;
        match line.instruction {
            Instruction::Move { to, from } => {
                let value = self.read(from, bits);
                self.write(to, value, bits);
            }
            Instruction::Exchange { one, other } => {
                let (memory, register) =
                    if matches!(one, Operand::Memory(_)) { (one, other) } else { (other, one) };
                let new = self.read(register, bits);
                if let Operand::Memory(address) = memory {
                    let old = self.word(address).change(Change::Swap(new));
                    self.write(register, old, bits);
                } else {
                    let old = self.read(memory, bits);
                    self.write(memory, new, bits);
                    self.write(register, old, bits);
                }
            }
            Instruction::Compute { alu, to, from, locked } => {
                let operand = self.read(from, bits);
                let function = function(alu, bits);
                let new = match to {
                    Operand::Memory(address) if locked => {
                        let change = Change::Apply(Function(function), operand);
                        function(self.word(address).change(change), operand)
                    }
                    _ => {
                        let new = function(self.read(to, bits), operand);
                        self.write(to, new, bits);
                        new
                    }
                };
                self.flags = Flags::compared(new & mask(bits), 0, bits);
            }
            Instruction::ExchangeAdd { to, from, locked } => {
                let operand = self.read(from, bits);
                let add = function(Alu::Add, bits);
                let old = match to {
                    Operand::Memory(address) if locked => {
                        self.word(address).change(Change::Apply(Function(add), operand))
                    }
                    _ => {
                        let old = self.read(to, bits);
                        self.write(to, add(old, operand), bits);
                        old
                    }
                };
                self.flags = Flags::compared(add(old, operand), 0, bits);
                self.write(from, old, bits);
            }
            Instruction::CompareExchange { to, from, locked } => {
                let expected = self.registers[self.accumulator] & mask(bits);
                let new = self.read(from, bits);
                let old = match to {
                    Operand::Memory(address) if locked => {
                        self.word(address).change(Change::CompareExchange(expected, new))
                    }
                    _ => {
                        let old = self.read(to, bits);
                        // It writes back what it has read if it does not exchange.
                        self.write(to, if old == expected { new } else { old }, bits);
                        old
                    }
                };
                self.flags = Flags::compared(expected, old & mask(bits), bits);
                if !self.flags.zero {
                    self.write(Operand::Register(self.accumulator), old, bits);
                }
            }
            Instruction::Compare { left, right, and } => {
                let (left, right) = (self.read(left, bits), self.read(right, bits));
                self.flags = if and {
                    Flags::compared(left & right, 0, bits)
                } else {
                    Flags::compared(left, right, bits)
                };
            }
            Instruction::Fence => full_fence(),
            Instruction::Jump { .. } | Instruction::Return => {}
        }
    }
}
