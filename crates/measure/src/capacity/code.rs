//! The probe's machine code: written by an assembler at run time, since its length is what is
//! varied.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, Figure 6.
//!
//! ```text
//! repeat:  mov [buffer + 0 * stride], counter      run stores
//!          ...
//!          sqrtsd xmm0, xmm0                       chain square roots, each waiting for the last
//!          ...
//!          dec counter
//!          jnz repeat
//! ```
//!
//! Square roots touch no memory and have a latency of a dozen cycles or more on every x86-64. So
//! they take few entries of the reorder buffer for their time; integer multiplications would fill
//! it before the store buffer is full. The chain goes on from one repeat to the next. So the time
//! of a repeat is the chain's, unless stores that find no entry keep the next chain out of the
//! pipeline.
//!
//! Behind a store that misses ([`Probe::behind`]), each repeat begins with
//!
//! ```text
//!          clflush [buffer + missing]
//!          mfence
//!          mov [buffer + missing], counter
//! ```
//!
//! so that the run and the chain set out from an empty buffer, in the time of the miss.
//!
//! The pages are writable until the code is in them, then executable, never both.

use core::ffi::c_void;
use core::ptr;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use super::{CannotMeasure, Pattern};

/// Bytes between two stores to distinct lines.
const LINE: usize = 64;

/// A loop of a run of stores and a chain of square roots, in pages of its own.
#[derive(Debug)]
pub(super) struct Probe {
    mapping: Mapping,
    reach: usize,
}

impl Probe {
    /// The loop with `run` stores in `pattern`, and `chain` square roots.
    pub(super) fn new(pattern: Pattern, run: usize, chain: usize) -> Result<Probe, CannotMeasure> {
        let reach = offset(pattern, run.saturating_sub(1)) + 8;
        Probe::of(assemble(pattern, run, chain, None), reach)
    }

    /// As [`new`](Probe::new), and in front of each run a store to a line that is in no cache.
    pub(super) fn behind(
        pattern: Pattern,
        run: usize,
        chain: usize,
    ) -> Result<Probe, CannotMeasure> {
        let missing = offset(pattern, run).next_multiple_of(LINE) + LINE;
        Probe::of(assemble(pattern, run, chain, Some(missing)), missing + 8)
    }

    fn of(code: Option<Vec<u8>>, reach: usize) -> Result<Probe, CannotMeasure> {
        let far = || CannotMeasure::Assembler("the code or its stores span more than 2 GB".into());
        Ok(Probe { mapping: Mapping::new(&code.ok_or_else(far)?)?, reach })
    }

    /// Bytes of a buffer that the stores need.
    pub(super) fn reach(&self) -> usize {
        self.reach
    }

    /// Runs the loop `repeats` times (at least once) over `buffer`.
    pub(super) fn run(&self, buffer: &mut [u64], repeats: u64) {
        assert!(size_of_val(buffer) >= self.reach, "the probe's buffer is shorter than its reach");
        let entry = self.mapping.start.cast_const();
        // SAFETY: `entry` is the start of the code of `assemble`, which follows the System V
        // calling convention, takes a pointer and a count, and returns nothing; the pages
        // are executable and stay mapped as long as `self`.
        let probe = unsafe {
            core::mem::transmute::<*const c_void, unsafe extern "sysv64" fn(*mut u64, u64)>(entry)
        };
        // SAFETY: the code writes the first `reach` bytes from its first argument on, which are the
        // caller's alone (checked above). It changes no other memory, and only registers that a
        // callee may change. It ends after the count has reached 0, and the count is at least 1.
        unsafe { probe(buffer.as_mut_ptr(), repeats.max(1)) }
    }
}

fn offset(pattern: Pattern, store: usize) -> usize {
    match pattern {
        Pattern::Lines => store * LINE,
        Pattern::Words => store * 8,
        Pattern::One | Pattern::None => 0,
    }
}

/// The code; `None` if a store or the loop's beginning is farther away than an instruction can say.
fn assemble(pattern: Pattern, run: usize, chain: usize, missing: Option<usize>) -> Option<Vec<u8>> {
    // 3 converges on 1 within the warm-up's first repeats, and a root of 1 takes the same time ever
    // after.
    let mut code = vec![0xb8, 3, 0, 0, 0]; // mov eax, 3
    code.extend([0xf2, 0x0f, 0x2a, 0xc0]); // cvtsi2sd xmm0, eax
    let repeat = code.len();
    if let Some(missing) = missing {
        code.extend([0x0f, 0xae]); // clflush [rdi + missing]
        behind_rdi(&mut code, 7, missing)?;
        code.extend([0x0f, 0xae, 0xf0]); // mfence
        store(&mut code, missing)?;
    }
    for at in 0..run {
        match pattern {
            Pattern::None => code.extend([0x48, 0x8d, 0x46, 0x01]), // lea rax, [rsi + 1]
            _ => store(&mut code, offset(pattern, at))?,
        }
    }
    for _ in 0..chain {
        code.extend([0xf2, 0x0f, 0x51, 0xc0]); // sqrtsd xmm0, xmm0
    }
    code.extend([0x48, 0xff, 0xce]); // dec rsi
    // jnz repeat: the distance is counted from the instruction's end.
    let back = i32::try_from(code.len() - repeat).ok()?;
    if let Ok(near) = i8::try_from(-2 - back) {
        code.extend([0x75, near as u8]);
    } else {
        code.extend([0x0f, 0x85]);
        code.extend((-back).checked_sub(6)?.to_le_bytes());
    }
    code.push(0xc3); // ret
    Some(code)
}

/// `mov [rdi + offset], rsi`.
fn store(code: &mut Vec<u8>, offset: usize) -> Option<()> {
    code.extend([0x48, 0x89]);
    behind_rdi(code, 6, offset)
}

/// The operand `[rdi + offset]` beside the register, or the part of the opcode, of this number: in
/// as few bytes as can be.
fn behind_rdi(code: &mut Vec<u8>, register: u8, offset: usize) -> Option<()> {
    const RDI: u8 = 7;
    let offset = i32::try_from(offset).ok()?;
    let both = register << 3 | RDI;
    match i8::try_from(offset) {
        Ok(0) => code.push(both),
        Ok(near) => code.extend([0x40 | both, near as u8]),
        Err(_) => {
            code.push(0x80 | both);
            code.extend(offset.to_le_bytes());
        }
    }
    Some(())
}

#[derive(Debug)]
struct Mapping {
    start: *mut c_void,
    length: usize,
}

impl Mapping {
    fn new(code: &[u8]) -> Result<Mapping, CannotMeasure> {
        let refused = |error: rustix::io::Errno| CannotMeasure::Mapping(error.into());
        let length = code.len().next_multiple_of(rustix::param::page_size());
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address (null, and no MAP_FIXED), so no mapping is
        // replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), length, writable, MapFlags::PRIVATE) }
            .map_err(refused)?;
        let mapping = Mapping { start, length };
        // SAFETY: the source is a slice of that length, the target a new mapping at least as long,
        // which is writable and overlaps nothing.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), start.cast(), code.len()) };
        let executable = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: the range is the mapping made above, to which no reference exists.
        unsafe { mprotect(start, length, executable) }.map_err(refused)?;
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping that `new` made, and nothing runs in it: `run` borrows
        // it.
        let unmapped = unsafe { munmap(self.start, self.length) };
        debug_assert!(unmapped.is_ok(), "the probe's mapping could not be undone: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::IcedError;
    use iced_x86::code_asm::{CodeAssembler, byte_ptr, eax, qword_ptr, rax, rdi, rsi, xmm0};

    use super::*;

    /// [`assemble`] by an assembler that knows all instructions.
    fn assembled(
        pattern: Pattern,
        run: usize,
        chain: usize,
        missing: Option<usize>,
    ) -> Result<Vec<u8>, IcedError> {
        let mut code = CodeAssembler::new(64)?;
        let mut repeat = code.create_label();
        code.mov(eax, 3)?;
        code.cvtsi2sd(xmm0, eax)?;
        code.set_label(&mut repeat)?;
        if let Some(missing) = missing {
            code.clflush(byte_ptr(rdi + missing))?;
            code.mfence()?;
            code.mov(qword_ptr(rdi + missing), rsi)?;
        }
        for store in 0..run {
            match pattern {
                Pattern::None => code.lea(rax, qword_ptr(rsi + 1))?,
                _ => code.mov(qword_ptr(rdi + offset(pattern, store)), rsi)?,
            }
        }
        for _ in 0..chain {
            code.sqrtsd(xmm0, xmm0)?;
        }
        code.dec(rsi)?;
        code.jnz(repeat)?;
        code.ret()?;
        code.assemble(0)
    }

    #[test]
    fn the_bytes_are_those_of_an_assembler() {
        for pattern in [Pattern::Lines, Pattern::Words, Pattern::One, Pattern::None] {
            for run in [0, 1, 2, 3, 15, 16, 17, 40, 100] {
                for chain in [0, 1, 7, 26, 27, 28, 29, 30, 31, 32, 300] {
                    for missing in [None, Some(0), Some(64), Some(127), Some(128), Some(7_040)] {
                        assert_eq!(
                            assemble(pattern, run, chain, missing),
                            assembled(pattern, run, chain, missing).ok(),
                            "{pattern:?} {run} {chain} {missing:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_too_far_away_is_refused() {
        assert_eq!(assemble(Pattern::Words, 0, 0, Some(1 << 31)), None);
        assert!(assemble(Pattern::Words, 0, 0, Some((1 << 31) - 1)).is_some());
    }

    #[test]
    fn the_code_stores_where_the_pattern_says_and_nowhere_else() {
        for (pattern, run, written) in [
            (Pattern::Lines, 3, vec![0, 8, 16]),
            (Pattern::Words, 3, vec![0, 1, 2]),
            (Pattern::One, 3, vec![0]),
            (Pattern::None, 3, vec![]),
        ] {
            let probe = Probe::new(pattern, run, 4).unwrap();
            let mut buffer = vec![u64::MAX; 32];
            probe.run(&mut buffer, 5);
            // The last repeat stores what the counter held: 1.
            let touched: Vec<usize> = buffer
                .iter()
                .enumerate()
                .filter(|(_, word)| **word == 1)
                .map(|(at, _)| at)
                .collect();
            assert_eq!(touched, written, "{pattern:?}");
            assert_eq!(buffer.iter().filter(|word| **word == u64::MAX).count(), 32 - touched.len());
        }
    }

    #[test]
    #[should_panic(expected = "shorter than its reach")]
    fn a_buffer_that_is_too_short_is_refused() {
        Probe::new(Pattern::Lines, 2, 1).unwrap().run(&mut [0; 8], 1);
    }

    #[test]
    fn behind_a_miss_the_stores_and_the_missing_one_are_made() {
        let probe = Probe::behind(Pattern::Words, 3, 1).unwrap();
        let mut buffer = vec![9_u64; probe.reach() / 8];
        probe.run(&mut buffer, 1);
        let last = buffer.len() - 1;
        for (at, word) in buffer.iter().enumerate() {
            // The counter of the only repeat is 1.
            assert_eq!(*word, if at < 3 || at == last { 1 } else { 9 }, "{at}");
        }
    }

    #[test]
    fn a_run_of_no_stores_is_a_probe_too() {
        Probe::new(Pattern::Words, 0, 2).unwrap().run(&mut [0; 1], 3);
    }
}
