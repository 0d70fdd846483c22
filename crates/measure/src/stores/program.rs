//! A program's functions and their instructions, from its file.

use std::collections::{BTreeMap, HashMap, HashSet};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind,
};

use super::CannotAnalyse;

/// A function.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The first of its instructions, and the one after its last.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Whether something other than a direct call knows its address, so that it may have callers
    /// that are not seen.
    pub(super) address_taken: bool,
}

/// The functions of a linked program.
#[derive(Debug)]
pub struct Program {
    pub(super) functions: Vec<Function>,
    /// In the order of their addresses.
    pub(super) instructions: Vec<Instruction>,
    at: HashMap<u64, usize>,
}

impl Program {
    /// Reads the functions of an x86-64 ELF file and takes their code apart.
    ///
    /// # Errors
    ///
    /// [`CannotAnalyse`] if it is no such file, or one without symbols.
    pub fn read(elf: &[u8]) -> Result<Program, CannotAnalyse> {
        let broken = |error: object::Error| CannotAnalyse::NotElf(error.to_string());
        if elf.len() > 5 && elf.starts_with(b"\x7fELF") && elf[4] != 2 {
            return Err(CannotAnalyse::Unsuitable("a 32-bit program"));
        }
        let file: ElfFile64<'_, Endianness> = ElfFile64::parse(elf).map_err(broken)?;
        let header: &FileHeader64<Endianness> = file.elf_header();
        if header.e_machine(file.endian()) != EM_X86_64 {
            return Err(CannotAnalyse::Unsuitable("for another processor"));
        }
        if ![ET_EXEC, ET_DYN].contains(&header.e_type(file.endian())) {
            return Err(CannotAnalyse::Unsuitable("not linked yet"));
        }
        let mut named: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.kind() == SymbolKind::Text && symbol.size() > 0 && !symbol.is_undefined() {
                let name = symbol.name().map_err(broken)?;
                named.entry(symbol.address()).or_insert_with(|| {
                    (symbol.size(), format!("{:#}", rustc_demangle::demangle(name)))
                });
            }
        }
        let mut program =
            Program { functions: Vec::new(), instructions: Vec::new(), at: HashMap::new() };
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let code = section.data().map_err(broken)?;
            let (from, to) =
                (section.address(), section.address().saturating_add(code.len() as u64));
            let mut within = named.range(from..to).peekable();
            while let Some((&start, (size, name))) = within.next() {
                // A symbol that reaches into the next one ends where that begins.
                let next = within.peek().map_or(to, |(next, _)| **next);
                let end = start.saturating_add(*size).min(next).min(to);
                let code = &code[(start - from) as usize..(end - from) as usize];
                program.decode(name.clone(), start, code);
            }
        }
        if program.functions.is_empty() {
            return Err(CannotAnalyse::Stripped);
        }
        program.find_taken(&file);
        Ok(program)
    }

    fn decode(&mut self, name: String, start: u64, code: &[u8]) {
        let first = self.instructions.len();
        for instruction in &mut Decoder::with_ip(64, code, start, DecoderOptions::NONE) {
            self.at.insert(instruction.ip(), self.instructions.len());
            self.instructions.push(instruction);
        }
        let (end, last) = (start + code.len() as u64, self.instructions.len());
        self.functions.push(Function { name, start, end, first, last, address_taken: false });
    }

    /// Marks the functions whose address stands in code or in data.
    fn find_taken(&mut self, file: &ElfFile64<'_, Endianness>) {
        let mut seen: HashSet<u64> = HashSet::new();
        for instruction in &self.instructions {
            if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() {
                seen.insert(instruction.ip_rel_memory_address());
            }
            let computes = instruction.flow_control() == FlowControl::Next;
            for operand in 0..instruction.op_count() {
                let kind = instruction.op_kind(operand);
                let constant = matches!(
                    kind,
                    OpKind::Immediate64 | OpKind::Immediate32 | OpKind::Immediate32to64
                );
                if computes && constant {
                    seen.insert(instruction.immediate(operand));
                }
            }
        }
        let relocations = file.dynamic_relocations().into_iter().flatten();
        seen.extend(relocations.map(|(_, relocation)| relocation.addend() as u64));
        for section in file.sections() {
            let data = match section.kind() {
                SectionKind::Data
                | SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyDataWithRel => section.data().unwrap_or_default(),
                _ => continue,
            };
            let words = data.chunks_exact(8).map(|word| word.try_into().expect("eight bytes"));
            seen.extend(words.map(u64::from_le_bytes));
        }
        for function in &mut self.functions {
            function.address_taken = seen.contains(&function.start);
        }
    }

    /// The functions that `name` stands for.
    pub(super) fn named(&self, name: &str) -> Result<HashSet<usize>, CannotAnalyse> {
        let stands_for = |function: &Function| {
            let full = function.name.as_str();
            // `<a::B<T> as c::Owner<T>>::pop` is `pop`, and `a::B::pop` too.
            full == name
                || full.strip_suffix(name).is_some_and(|before| before.ends_with("::"))
                || implements(full, name)
        };
        let found: HashSet<usize> =
            (0..self.functions.len()).filter(|&at| stands_for(&self.functions[at])).collect();
        if !found.is_empty() && !name.is_empty() {
            return Ok(found);
        }
        let last = name.rsplit("::").next().unwrap_or(name);
        let near = |function: &&Function| !last.is_empty() && function.name.contains(last);
        let mut near: Vec<&str> =
            self.functions.iter().filter(near).map(|function| function.name.as_str()).collect();
        // A function of that name of another type is a likelier match than a path that contains the
        // letters.
        near.sort_by_key(|full| full.rsplit("::").next() != Some(last));
        near.truncate(5);
        Err(CannotAnalyse::NoSuchFunction {
            name: name.to_owned(),
            near: near.into_iter().map(str::to_owned).collect(),
        })
    }

    /// The instruction at an address.
    pub(super) fn instruction_at(&self, address: u64) -> Option<usize> {
        self.at.get(&address).copied()
    }

    /// The function that an instruction is in.
    pub(super) fn function_of(&self, instruction: usize) -> usize {
        self.functions.partition_point(|function| function.last <= instruction)
    }

    /// The function that begins at an address.
    pub(super) fn function_at(&self, address: u64) -> Option<usize> {
        let at = self.instruction_at(address)?;
        let function = self.function_of(at);
        (self.functions[function].start == address).then_some(function)
    }
}

/// Whether `full` is a method of a type's implementation of a trait, and `name` that type's method:
/// `Type::method`, for `<path::Type<..> as Trait>::method`.
fn implements(full: &str, name: &str) -> bool {
    let Some((of_type, method)) = name.rsplit_once("::") else { return false };
    let Some(inner) = full.strip_prefix('<') else { return false };
    let Some((implementor, rest)) = inner.split_once(" as ") else { return false };
    let plain = implementor.split('<').next().unwrap_or(implementor);
    let same = plain == of_type
        || plain.strip_suffix(of_type).is_some_and(|before| before.ends_with("::"));
    same && rest.strip_suffix(method).is_some_and(|before| before.ends_with(">::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_traits_have_their_types_name() {
        let full = "<poach_deque::the::The<T,M,P> as poach_deque::Owner<T>>::pop";
        assert!(implements(full, "The::pop"));
        assert!(implements(full, "the::The::pop"));
        assert!(!implements(full, "The::push"));
        assert!(!implements(full, "he::pop"));
    }

    #[test]
    fn what_is_no_linked_program_is_refused() {
        let said = |bytes: &[u8]| Program::read(bytes).unwrap_err().to_string();
        assert!(said(b"").contains("no ELF file"), "{}", said(b""));
        assert!(said(b"#!/bin/sh\n").contains("no ELF file"));
        assert!(said(b"\x7fELF\x01\x01\x01").contains("32-bit"));
        assert!(said(b"\x7fELF\x02\x01\x01").contains("no ELF file"));
    }
}
