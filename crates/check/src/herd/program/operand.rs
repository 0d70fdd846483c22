//! One cell of the columns: a label, an instruction and its operands.

use super::super::text::{Mistake, Text, Word};
use super::{Alu, Instruction, Line, Program, When};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Address {
    Location(usize),
    Register(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Operand {
    Register(usize),
    Number(u64),
    Memory(Address),
}

/// The name of the full register and the bits that this name of it means.
pub(super) fn register_name(name: &str, intel: bool) -> Option<(String, u32)> {
    const NAMED: [&str; 8] = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];
    let name = name.to_ascii_lowercase();
    let full = |base: &str| if intel { format!("e{base}") } else { format!("r{base}") };
    if name == "rip" || ["cs", "ds", "es", "ss"].contains(&name.as_str()) {
        return Some((name, 64));
    }
    if let Some(base) = NAMED.iter().find(|base| name.len() == 3 && name.ends_with(**base)) {
        return match name.as_bytes()[0] {
            b'e' => Some((full(base), 32)),
            b'r' if !intel => Some((full(base), 64)),
            _ => None,
        };
    }
    let digits = name.strip_prefix('r')?;
    let (digits, bits) = match digits.strip_suffix('d') {
        Some(digits) => (digits, 32),
        None => (digits, 64),
    };
    let number: u32 = digits.parse().ok()?;
    (!intel && (8..16).contains(&number)).then(|| (format!("r{number}"), bits))
}

/// Where a jump goes before all labels are known.
type Pending<'a> = (usize, usize, Word<'a>);

pub(super) struct Assembly<'a> {
    labels: Vec<Vec<(&'a str, usize)>>,
    jumps: Vec<Pending<'a>>,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(threads: usize) -> Self {
        Assembly { labels: vec![Vec::new(); threads], jumps: Vec::new() }
    }

    pub(super) fn finish(self, program: &mut Program, text: &Text<'_>) -> Result<(), Mistake> {
        for (thread, line, name) in self.jumps {
            let label = self.labels[thread].iter().find(|(label, _)| *label == name.text);
            let Some((_, target)) = label else {
                let what = format!("there is no label {} in P{thread}", name.text);
                return Err(text.mistake(name.at, what));
            };
            if let Instruction::Jump { to, .. } = &mut program.threads[thread][line].instruction {
                *to = *target;
            }
        }
        Ok(())
    }

    pub(super) fn line(
        &mut self,
        program: &mut Program,
        thread: usize,
        cell: &mut Text<'a>,
    ) -> Result<(), Mistake> {
        loop {
            cell.skip_space();
            if cell.at_end() {
                return Ok(());
            }
            let word = cell.word("an instruction or a label")?;
            if cell.take(":") {
                self.labels[thread].push((word.text, program.threads[thread].len()));
                continue;
            }
            let locked = word.text.eq_ignore_ascii_case("lock");
            let name = if locked { cell.word("the instruction to lock")? } else { word };
            if let Some(line) = self.instruction(program, thread, name, locked, cell)? {
                program.threads[thread].push(line);
            }
            cell.skip_space();
            return if cell.at_end() { Ok(()) } else { Err(cell.expected("the end of the cell")) };
        }
    }

    fn instruction(
        &mut self,
        program: &mut Program,
        thread: usize,
        name: Word<'a>,
        locked: bool,
        cell: &mut Text<'a>,
    ) -> Result<Option<Line>, Mistake> {
        let lower = name.text.to_ascii_lowercase();
        let here = *cell;
        let refuse = |what: String| Err(here.mistake(name.at, what));
        let plain = |instruction| Ok(Some(Line { instruction, bits: 64 }));
        match lower.as_str() {
            "mfence" => return plain(Instruction::Fence),
            "ret" | "retq" => return plain(Instruction::Return),
            "lfence" | "sfence" | "endbr64" | "leave" | "pause" => return Ok(None),
            _ if lower.starts_with("nop") => {
                *cell = cell.part(cell.end(), cell.end());
                return Ok(None);
            }
            _ => {}
        }
        if let Some(when) = jump(&lower) {
            let label = cell.word("a label")?;
            self.jumps.push((thread, program.threads[thread].len(), label));
            return plain(Instruction::Jump { when, to: 0 });
        }
        let Some((base, suffix)) = mnemonic(&lower) else {
            return refuse(format!("the instruction {} is not modelled", name.text));
        };
        if suffix == Some('b') || suffix == Some('w') {
            return refuse(format!("{} is of 8 or 16 bits, which are not modelled", name.text));
        }
        let mut operands = Vec::new();
        let mut bits = suffix.map(|suffix| if suffix == 'l' { 32 } else { 64 });
        cell.skip_space();
        while !cell.at_end() {
            let (operand, width) = Self::operand(program, thread, cell)?;
            if let (Some(width), true) = (width, suffix.is_none()) {
                bits = Some(bits.map_or(width, |known: u32| known.min(width)));
            }
            operands.push(operand);
            if !cell.take(",") {
                break;
            }
        }
        // Without a suffix or a register assemblers take 32 bits.
        let bits = if program.intel { 32 } else { bits.unwrap_or(32) };
        if !program.intel {
            operands.reverse();
        }
        let mut operands = operands.into_iter();
        let (first, second) = (operands.next(), operands.next());
        let wants = if matches!(base, "inc" | "dec" | "neg" | "not") { 1 } else { 2 };
        let count = usize::from(first.is_some()) + usize::from(second.is_some());
        if count != wants || operands.next().is_some() {
            return refuse(format!("{} wants {wants} operands", name.text));
        }
        let to = first.unwrap_or(Operand::Number(0));
        let from = second.unwrap_or(Operand::Number(1));
        let memory = |operand: Operand| matches!(operand, Operand::Memory(_));
        if memory(to) && memory(from) {
            return refuse("an instruction has one operand in memory at most".to_owned());
        }
        if matches!(to, Operand::Number(_)) && !matches!(base, "cmp" | "test") {
            return refuse(format!("{} cannot write to a number", name.text));
        }
        if locked && !memory(to) {
            return refuse("lock wants an instruction that writes to memory".to_owned());
        }
        let compute = |alu| Instruction::Compute { alu, to, from, locked };
        let instruction = match base {
            "mov" if locked => return refuse("mov cannot be locked".to_owned()),
            "mov" => Instruction::Move { to, from },
            "xchg" => {
                if matches!(from, Operand::Number(_)) {
                    return refuse("xchg cannot write to a number".to_owned());
                }
                Instruction::Exchange { one: to, other: from }
            }
            "add" | "inc" => compute(Alu::Add),
            "sub" | "dec" => compute(Alu::Sub),
            "and" => compute(Alu::And),
            "or" => compute(Alu::Or),
            "xor" => compute(Alu::Xor),
            "neg" => compute(Alu::Negate),
            "not" => compute(Alu::Complement),
            "cmp" => Instruction::Compare { left: to, right: from, and: false },
            "test" => Instruction::Compare { left: to, right: from, and: true },
            _ => {
                if !matches!(from, Operand::Register(_)) {
                    return refuse(format!("{} wants a register to exchange with", name.text));
                }
                if base == "xadd" {
                    Instruction::ExchangeAdd { to, from, locked }
                } else {
                    // It compares with this register, which so exists.
                    program.register(thread, if program.intel { "eax" } else { "rax" });
                    Instruction::CompareExchange { to, from, locked }
                }
            }
        };
        Ok(Some(Line { instruction, bits }))
    }

    /// An operand, and its bits if it is a register.
    fn operand(
        program: &mut Program,
        thread: usize,
        cell: &mut Text<'a>,
    ) -> Result<(Operand, Option<u32>), Mistake> {
        let intel = program.intel;
        let close = if cell.take("(") {
            Some(")")
        } else if cell.take("[") {
            Some("]")
        } else {
            None
        };
        let sign = cell.take("%");
        let dollar = !sign && cell.take("$");
        let number = if sign { None } else { cell.number()? };
        let result = if let Some(number) = number {
            if close.is_some() || cell.rest().starts_with('(') {
                return Err(cell.expected("a location or a register: offsets are not modelled"));
            }
            (Operand::Number(program.narrow(number)), None)
        } else {
            let word = cell.word("an operand")?;
            let register = (sign || intel || close.is_some())
                .then(|| register_name(word.text, intel))
                .flatten()
                .filter(|_| sign || intel);
            match (register, close) {
                (Some((name, _)), Some(_)) => {
                    let register = program.register(thread, &name);
                    (Operand::Memory(Address::Register(register)), None)
                }
                (Some((name, bits)), None) => {
                    (Operand::Register(program.register(thread, &name)), Some(bits))
                }
                (None, _) if sign => {
                    let what = format!("%{} is no register that is understood", word.text);
                    return Err(cell.mistake(word.at, what));
                }
                (None, None) if dollar => {
                    (Operand::Number(Program::address(program.location(word.text))), None)
                }
                (None, _) => {
                    (Operand::Memory(Address::Location(program.location(word.text))), None)
                }
            }
        };
        if let Some(close) = close {
            cell.expect(close)?;
        }
        Ok(result)
    }
}

fn mnemonic(name: &str) -> Option<(&'static str, Option<char>)> {
    const NAMES: [&str; 15] = [
        "mov", "xchg", "xadd", "cmpxchg", "add", "sub", "and", "or", "xor", "inc", "dec", "neg",
        "not", "cmp", "test",
    ];
    NAMES.iter().find_map(|base| {
        let rest = name.strip_prefix(base)?;
        let mut letters = rest.chars();
        match (letters.next(), letters.next()) {
            (None, _) => Some((*base, None)),
            (Some(suffix @ ('b' | 'w' | 'l' | 'q')), None) => Some((*base, Some(suffix))),
            _ => None,
        }
    })
}

fn jump(name: &str) -> Option<When> {
    Some(match name {
        "jmp" => When::Always,
        "je" | "jz" => When::Equal,
        "jne" | "jnz" => When::NotEqual,
        "jl" | "jnge" => When::Less,
        "jle" | "jng" => When::LessOrEqual,
        "jg" | "jnle" => When::Greater,
        "jge" | "jnl" => When::GreaterOrEqual,
        "jb" | "jc" | "jnae" => When::Below,
        "jbe" | "jna" => When::BelowOrEqual,
        "ja" | "jnbe" => When::Above,
        "jae" | "jnb" | "jnc" => When::AboveOrEqual,
        "js" => When::Negative,
        "jns" => When::NotNegative,
        _ => return None,
    })
}
