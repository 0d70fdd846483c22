//! The fewest stores from one pop to the next, of programs made up by an assembler.

#![forbid(unsafe_code)]

use iced_x86::code_asm::{CodeAssembler, CodeLabel, qword_ptr, rax, rcx, rdi, rsp};
use poach_measure::stores::{CannotAnalyse, End, Stores, analyse};

const BASE: u64 = 0x40_0000;

/// Name, type, flags, address, link, entry size, content.
type Section<'a> = (u32, u32, u64, u64, u32, u64, &'a [u8]);

/// An ELF executable of the functions given by name, start and end, within `code`.
fn elf(code: &[u8], functions: &[(&str, u64, u64)], kind: u16, machine: u16) -> Vec<u8> {
    let mut strings = vec![0_u8];
    let mut symbols = vec![0_u8; 24];
    for (name, start, end) in functions {
        symbols.extend((strings.len() as u32).to_le_bytes());
        // A function, global, in the first section.
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend(start.to_le_bytes());
        symbols.extend((end - start).to_le_bytes());
        strings.extend(name.bytes().chain([0]));
    }
    let names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let mut file = vec![0_u8; 64];
    let mut headers = vec![0_u8; 64];
    let sections: [Section<'_>; 4] = [
        (1, 1, 6, BASE, 0, 0, code),
        (7, 2, 0, 0, 3, 24, &symbols),
        (15, 3, 0, 0, 0, 0, &strings),
        (23, 3, 0, 0, 0, 0, names),
    ];
    for (name, kind, flags, address, link, entry, content) in sections {
        headers.extend(name.to_le_bytes().into_iter().chain(kind.to_le_bytes()));
        for value in [flags, address, file.len() as u64, content.len() as u64] {
            headers.extend(value.to_le_bytes());
        }
        headers.extend(link.to_le_bytes().into_iter().chain(1_u32.to_le_bytes()));
        headers.extend(1_u64.to_le_bytes().into_iter().chain(entry.to_le_bytes()));
        file.extend(content);
        file.resize(file.len().next_multiple_of(8), 0);
    }
    let at = file.len() as u64;
    file.extend(headers);
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16..18].copy_from_slice(&kind.to_le_bytes());
    file[18..20].copy_from_slice(&machine.to_le_bytes());
    file[20] = 1;
    file[40..48].copy_from_slice(&at.to_le_bytes());
    file[52..54].copy_from_slice(&64_u16.to_le_bytes());
    file[58..64].copy_from_slice(&[64, 0, 5, 0, 4, 0]);
    file
}

/// A program of `pop`, `other` (two stores) and `worker`, whose body is made by `body`.
fn program(body: impl FnOnce(&mut CodeAssembler, CodeLabel, CodeLabel)) -> Vec<u8> {
    let mut code = CodeAssembler::new(64).unwrap();
    let (mut pop, mut other, mut worker) =
        (code.create_label(), code.create_label(), code.create_label());
    let mut end = code.create_label();
    code.set_label(&mut pop).unwrap();
    // Stores of the queue's own, which are not counted.
    code.mov(qword_ptr(rdi), rax).unwrap();
    code.mov(qword_ptr(rdi + 8), rax).unwrap();
    code.ret().unwrap();
    code.set_label(&mut other).unwrap();
    code.mov(qword_ptr(rdi + 64), rax).unwrap();
    code.mov(qword_ptr(rdi + 128), rax).unwrap();
    code.ret().unwrap();
    code.set_label(&mut worker).unwrap();
    // An instruction has one label at most, and the body may begin with one.
    code.nop().unwrap();
    body(&mut code, pop, other);
    code.set_label(&mut end).unwrap();
    code.nop().unwrap();
    let options = iced_x86::BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    let result = code.assemble_options(BASE, options).unwrap();
    let at = |label: &CodeLabel| result.label_ip(label).unwrap();
    let functions = [
        ("queue::Queue::pop", at(&pop), at(&other)),
        ("other", at(&other), at(&worker)),
        ("worker", at(&worker), at(&end)),
    ];
    elf(&result.inner.code_buffer, &functions, 2, 62)
}

fn found(program: &[u8]) -> Stores {
    analyse(program, "Queue::pop").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_branch_with_fewer_stores_is_taken() {
    let found = found(&program(|code, pop, _| {
        let (mut again, mut few) = (code.create_label(), code.create_label());
        code.set_label(&mut again).unwrap();
        code.call(pop).unwrap();
        code.test(rax, rax).unwrap();
        code.je(few).unwrap();
        for line in 0..4 {
            code.mov(qword_ptr(rcx + 64 * line), rax).unwrap();
        }
        code.set_label(&mut few).unwrap();
        code.mov(qword_ptr(rcx), rax).unwrap();
        code.add(qword_ptr(rcx + 8), rax).unwrap();
        // Reads are no stores, and neither is a comparison.
        code.cmp(qword_ptr(rcx), rax).unwrap();
        code.mov(rax, qword_ptr(rcx)).unwrap();
        code.jmp(again).unwrap();
    }));
    let way = found.certain.clone().unwrap();
    // Two stores, and the address that the call pushes.
    assert_eq!((way.stores, way.on_stack, way.end), (3, 1, End::Pop), "{way:?}");
    assert_eq!(found.likely, found.certain);
    assert_eq!((found.calls, found.unknown_calls, found.indirect_jumps), (1, 0, 0));
    assert!(way.steps.iter().any(|step| step.instruction.starts_with("add")));
}

#[test]
fn stores_of_functions_that_are_called_count() {
    let way = found(&program(|code, pop, other| {
        let mut again = code.create_label();
        code.set_label(&mut again).unwrap();
        code.call(pop).unwrap();
        code.push(rax).unwrap();
        code.call(other).unwrap();
        code.add(rsp, 8).unwrap();
        code.jmp(again).unwrap();
    }))
    .certain
    .unwrap();
    // The push, two calls, two stores of `other`.
    assert_eq!((way.stores, way.on_stack), (5, 3), "{way:?}");
}

#[test]
fn a_call_through_a_pointer_stores_nothing_and_is_said() {
    let found = found(&program(|code, pop, _| {
        let mut again = code.create_label();
        code.set_label(&mut again).unwrap();
        code.call(pop).unwrap();
        code.mov(qword_ptr(rcx), rax).unwrap();
        code.call(rax).unwrap();
        code.mov(qword_ptr(rcx), rax).unwrap();
        code.jmp(again).unwrap();
    }));
    let (certain, likely) = (found.certain.unwrap(), found.likely.unwrap());
    // What is called may pop at once: the store before it, and the address pushed.
    assert_eq!((certain.stores, certain.end), (2, End::Unknown));
    assert_eq!((likely.stores, likely.end), (4, End::Pop));
    assert_eq!(found.unknown_calls, 1);
    assert!(certain.steps.last().unwrap().unknown.is_some());
}

#[test]
fn a_jump_through_a_pointer_may_go_to_any_block() {
    let found = found(&program(|code, pop, _| {
        let (mut again, mut block) = (code.create_label(), code.create_label());
        code.set_label(&mut again).unwrap();
        code.call(pop).unwrap();
        code.jmp(rax).unwrap();
        code.set_label(&mut block).unwrap();
        code.mov(qword_ptr(rcx), rax).unwrap();
        code.jmp(again).unwrap();
    }));
    assert_eq!(found.indirect_jumps, 1);
    assert_eq!(found.certain.unwrap().stores, 0);
    // By way of the block that begins at `again`.
    assert_eq!(found.likely.unwrap().stores, 1);
}

#[test]
fn a_worker_that_pops_once_has_no_way_to_the_next() {
    let found = found(&program(|code, pop, _| {
        code.call(pop).unwrap();
        code.ret().unwrap();
    }));
    assert_eq!(found.likely, None);
    assert_eq!(found.unknown_returns, 1);
    assert_eq!(found.certain.unwrap().end, End::Unknown);
}

#[test]
fn what_cannot_be_analysed_is_refused_with_the_reason() {
    let looping = |code: &mut CodeAssembler, pop: CodeLabel, _| code.call(pop).unwrap();
    let good = program(looping);
    let error = analyse(&good, "Queue::take").unwrap_err();
    assert!(matches!(error, CannotAnalyse::NoSuchFunction { .. }), "{error}");
    let error = analyse(&good, "").unwrap_err();
    assert!(matches!(error, CannotAnalyse::NoSuchFunction { .. }), "{error}");
    let error = analyse(&good, "worker").unwrap_err();
    assert!(matches!(error, CannotAnalyse::NeverCalled { .. }), "{error}");
    let code = [0xc3];
    let stripped = analyse(&elf(&code, &[], 2, 62), "pop").unwrap_err();
    assert_eq!(stripped, CannotAnalyse::Stripped);
    let object = analyse(&elf(&code, &[("pop", BASE, BASE + 1)], 1, 62), "pop").unwrap_err();
    assert!(object.to_string().contains("not linked"), "{object}");
    let arm = analyse(&elf(&code, &[("pop", BASE, BASE + 1)], 2, 183), "pop").unwrap_err();
    assert!(arm.to_string().contains("another processor"), "{arm}");
}

#[test]
fn no_cut_or_changed_file_makes_it_panic() {
    let good = program(|code, pop, other| {
        code.call(pop).unwrap();
        code.call(other).unwrap();
    });
    for length in 0..good.len() {
        let _ = analyse(&good[..length], "pop");
    }
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..2000 {
        let mut changed = good.clone();
        for _ in 0..3 {
            let at = random.usize(..changed.len());
            changed[at] = random.u8(..);
        }
        let _ = analyse(&changed, "pop");
    }
}
