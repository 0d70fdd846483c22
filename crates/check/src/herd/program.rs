//! A test's initial state and its threads' instructions.

use super::MOST_THREADS;
use super::text::{Mistake, Text};

mod operand;

pub(super) use operand::{Address, Operand};

/// The address of location `i` is this plus `i`. It fits in 32 bits.
const ADDRESSES: u64 = 0x7a00_0000;

/// A place whose value is part of a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Register(usize, usize),
    Location(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alu {
    Add,
    Sub,
    And,
    Or,
    Xor,
    /// The negative of the old value; the operand plays no part.
    Negate,
    /// The complement of the old value; the operand plays no part.
    Complement,
}

/// When a conditional jump is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Below,
    BelowOrEqual,
    Above,
    AboveOrEqual,
    Negative,
    NotNegative,
}

#[derive(Clone, Debug)]
pub(super) enum Instruction {
    Move {
        to: Operand,
        from: Operand,
    },
    Exchange {
        one: Operand,
        other: Operand,
    },
    Compute {
        alu: Alu,
        to: Operand,
        from: Operand,
        locked: bool,
    },
    ExchangeAdd {
        to: Operand,
        from: Operand,
        locked: bool,
    },
    CompareExchange {
        to: Operand,
        from: Operand,
        locked: bool,
    },
    /// `cmp`, or `test` if `and`.
    Compare {
        left: Operand,
        right: Operand,
        and: bool,
    },
    Jump {
        when: When,
        to: usize,
    },
    Fence,
    Return,
}

/// An instruction and how many bits it works on.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) instruction: Instruction,
    pub(super) bits: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Intel's order of operands, and 32 bits.
    pub(super) intel: bool,
    pub(super) locations: Vec<String>,
    pub(super) initial: Vec<u64>,
    pub(super) threads: Vec<Vec<Line>>,
    /// The registers of each thread, by their names of the full width, and what they begin with.
    pub(super) registers: Vec<Vec<(String, u64)>>,
}

impl Program {
    pub(super) fn new(intel: bool) -> Self {
        Program {
            intel,
            locations: Vec::new(),
            initial: Vec::new(),
            threads: Vec::new(),
            registers: vec![Vec::new(); MOST_THREADS],
        }
    }

    pub(super) fn location(&mut self, name: &str) -> usize {
        if let Some(known) = self.locations.iter().position(|known| known == name) {
            return known;
        }
        self.locations.push(name.to_owned());
        self.initial.push(0);
        self.locations.len() - 1
    }

    pub(super) fn register(&mut self, thread: usize, name: &str) -> usize {
        let registers = &mut self.registers[thread];
        if let Some(known) = registers.iter().position(|(known, _)| known == name) {
            return known;
        }
        registers.push((name.to_owned(), 0));
        registers.len() - 1
    }

    pub(super) fn address(location: usize) -> u64 {
        ADDRESSES + location as u64
    }

    pub(super) fn pointed(&self, value: u64) -> Option<usize> {
        let location = value.checked_sub(ADDRESSES)? as usize;
        (location < self.locations.len()).then_some(location)
    }

    pub(super) fn narrow(&self, value: u64) -> u64 {
        if self.intel { value & u64::from(u32::MAX) } else { value }
    }

    pub(super) fn write_value(&self, value: u64) -> String {
        match self.pointed(value) {
            Some(location) => self.locations[location].clone(),
            None if self.intel => (value as u32 as i32).to_string(),
            None => (value as i64).to_string(),
        }
    }

    pub(super) fn write_place(&self, place: Place) -> String {
        match place {
            Place::Register(thread, register) => {
                let name = &self.registers[thread][register].0;
                let name = if self.intel { name.to_uppercase() } else { name.clone() };
                format!("{thread}:{name}")
            }
            Place::Location(location) => format!("[{}]", self.locations[location]),
        }
    }

    /// A number, or a location, whose address is meant.
    pub(super) fn parse_value(&mut self, text: &mut Text<'_>) -> Result<u64, Mistake> {
        if let Some(number) = text.number()? {
            return Ok(self.narrow(number));
        }
        text.take("&");
        let name = text.word("a number or a location")?;
        Ok(Self::address(self.location(name.text)))
    }

    /// `x`, `[x]`, or a register of a thread: `0:rax`.
    pub(super) fn parse_place(&mut self, text: &mut Text<'_>) -> Result<Place, Mistake> {
        if text.take("[") {
            let name = text.word("a location")?;
            text.expect("]")?;
            return Ok(Place::Location(self.location(name.text)));
        }
        let first = text.word("a location or a thread's register")?;
        if !text.take(":") {
            if first.text.starts_with(|letter: char| letter.is_ascii_digit()) {
                return Err(text.mistake(first.at, "a thread's number wants a register: 0:rax"));
            }
            return Ok(Place::Location(self.location(first.text)));
        }
        let thread = first.text.trim_start_matches('P').parse().ok();
        let Some(thread) = thread.filter(|thread| *thread < MOST_THREADS) else {
            return Err(text.mistake(first.at, format!("{:?} is no thread", first.text)));
        };
        text.take("%");
        let name = text.word("a register")?;
        let Some((name, _)) = operand::register_name(name.text, self.intel) else {
            let what = format!("{:?} is no register that is understood", name.text);
            return Err(text.mistake(name.at, what));
        };
        Ok(Place::Register(thread, self.register(thread, &name)))
    }

    /// What stands between the braces of the initial state, and the closing one.
    pub(super) fn parse_init(&mut self, text: &mut Text<'_>) -> Result<(), Mistake> {
        loop {
            while text.take(";") {}
            if text.take("}") {
                return Ok(());
            }
            // A type may stand before the place.
            let start = *text;
            let word = text.peek_word();
            if !word.text.is_empty() {
                text.word("a type")?;
                while text.take("*") {}
                let next = text.peek_word();
                if next.text.is_empty() && !text.rest().starts_with('[') {
                    *text = start;
                }
            }
            let place = self.parse_place(text)?;
            let value = if text.take("=") { self.parse_value(text)? } else { 0 };
            match place {
                Place::Register(thread, register) => self.registers[thread][register].1 = value,
                Place::Location(location) => self.initial[location] = value,
            }
            if !text.take(";") {
                text.expect("}")?;
                return Ok(());
            }
        }
    }

    pub(super) fn parse_columns(&mut self, text: &mut Text<'_>) -> Result<(), Mistake> {
        loop {
            let name = text.word("the first line of the columns, P0 | P1 ;")?;
            let thread = self.threads.len();
            if name.text != format!("P{thread}") {
                let what = format!("expected the column P{thread}, found {:?}", name.text);
                return Err(text.mistake(name.at, what));
            }
            if thread == MOST_THREADS {
                let what = format!("a test may have at most {MOST_THREADS} threads");
                return Err(text.mistake(name.at, what));
            }
            self.threads.push(Vec::new());
            if !text.take("|") {
                break;
            }
        }
        text.expect(";")?;
        let mut assembly = operand::Assembly::new(self.threads.len());
        loop {
            let word = text.peek_word();
            let asks = ["exists", "forall", "locations", "filter"].contains(&word.text);
            if asks || text.at_end() || text.rest().starts_with('~') {
                return assembly.finish(self, text);
            }
            let Some(length) = text.rest().find(';') else {
                return Err(text.expected("a line of instructions that ends in ';', or exists"));
            };
            let (start, end) = (text.at(), text.at() + length);
            let mut at = start;
            for (thread, cell) in text.part(start, end).rest().split('|').enumerate() {
                let mut cell_text = text.part(at, at + cell.len());
                if thread >= self.threads.len() {
                    return Err(text.mistake(at, "this line has more columns than threads"));
                }
                assembly.line(self, thread, &mut cell_text)?;
                at += cell.len() + 1;
            }
            *text = text.part(end + 1, text.end());
        }
    }

    pub(super) fn parse_locations(
        &mut self,
        text: &mut Text<'_>,
        shown: &mut Vec<Place>,
    ) -> Result<(), Mistake> {
        text.expect("[")?;
        while !text.take("]") {
            let place = self.parse_place(text)?;
            if !shown.contains(&place) {
                shown.push(place);
            }
            // A star or a type's brackets mean nothing to one cell.
            text.take(";");
            if text.at_end() {
                return Err(text.expected("\"]\""));
            }
        }
        Ok(())
    }
}
