//! `cargo xtask asm`: the owners of the fence-free queues execute no fence.
//!
//! Builds `owner_path`, an example of `poach-deque` in which one push and one pop of each queue are
//! a function of their own. Disassembles these functions in the release build. The functions named
//! `free_*` must hold no locked instruction and no `mfence`. The functions named `fenced_*` must
//! hold one, which shows that the check can see them.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

use crate::run::Step;
use crate::workspace::target_directory;

pub(crate) fn run() -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        bail!("asm: the check reads x86-64 code: run it on such a machine");
    }
    Step::cargo("build --release --package poach-deque --example owner_path")
        .run("the example to disassemble could not be built")?;
    let path = target_directory()?.join("release/examples/owner_path");
    let bytes = fs::read(&path).with_context(|| format!("could not read {}", path.display()))?;
    let functions = functions(&bytes)?;
    let (mut free, mut fenced) = (0, 0);
    for function in &functions {
        let fence = fence(function.address, function.code);
        match (function.name.starts_with("free_"), fence) {
            (true, Some(fence)) => bail!(
                "asm: {} executes `{fence:?}` at {:#x}: its owner's path is to be free of fences",
                function.name,
                fence.ip()
            ),
            (true, None) => free += 1,
            (false, Some(_)) => fenced += 1,
            (false, None) => bail!(
                "asm: no fence was found in {}, which has one: the check does not see them",
                function.name
            ),
        }
    }
    ensure!(free > 0 && fenced > 0, "asm: {} has no function to check", path.display());
    eprintln!("asm: {free} owners' paths are free of fences ({fenced} others have theirs)");
    Ok(())
}

struct Function<'a> {
    name: String,
    address: u64,
    code: &'a [u8],
}

/// The functions of the example that are to be checked.
fn functions(bytes: &[u8]) -> Result<Vec<Function<'_>>> {
    let file = object::File::parse(bytes).context("the example is no object file")?;
    let mut functions = Vec::new();
    for symbol in file.symbols() {
        let demangled = format!("{:#}", rustc_demangle::demangle(symbol.name().unwrap_or("")));
        let Some(name) = demangled.strip_prefix("owner_path::") else { continue };
        if !name.starts_with("free_") && !name.starts_with("fenced_") {
            continue;
        }
        let section = symbol
            .section_index()
            .and_then(|index| file.section_by_index(index).ok())
            .with_context(|| format!("{name} is in no section"))?;
        let code = section
            .data_range(symbol.address(), symbol.size())?
            .filter(|code| !code.is_empty())
            .with_context(|| format!("{name} has no code"))?;
        functions.push(Function { name: name.to_owned(), address: symbol.address(), code });
    }
    Ok(functions)
}

/// The first instruction that is a fence: a locked one, an exchange with memory (which is locked
/// without saying so), or `mfence`.
fn fence(address: u64, code: &[u8]) -> Option<Instruction> {
    let is_fence = |instruction: &Instruction| {
        let touches_memory = (0..instruction.op_count())
            .any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        instruction.has_lock_prefix()
            || instruction.mnemonic() == Mnemonic::Mfence
            || instruction.mnemonic() == Mnemonic::Xchg && touches_memory
    };
    Decoder::with_ip(64, code, address, DecoderOptions::NONE).into_iter().find(is_fence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_seen() {
        // lock or dword ptr [rsp-64], 0; mfence; xchg [rdi], rax
        assert!(fence(0, &[0xf0, 0x83, 0x4c, 0x24, 0xc0, 0x00]).is_some());
        assert!(fence(0, &[0x90, 0x0f, 0xae, 0xf0]).is_some());
        assert!(fence(0, &[0x48, 0x87, 0x07]).is_some());
    }

    #[test]
    fn what_is_no_fence_is_not_taken_for_one() {
        // mov [rdi], rax; xchg rbx, rax; lfence; sfence
        assert!(fence(0, &[0x48, 0x89, 0x07, 0x48, 0x93]).is_none());
        assert!(fence(0, &[0x0f, 0xae, 0xe8, 0x0f, 0xae, 0xf8]).is_none());
    }
}
