//! Processors: their makers, documented store buffer entries, and observed reordering bounds.

use core::ops::RangeInclusive;

/// The maker of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Maker {
    /// Vendor string `AuthenticAMD`.
    Amd,
    /// Vendor string `GenuineIntel`.
    Intel,
}

/// A processor's identity as its `cpuid` instruction gives it: display family and display model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The maker.
    pub maker: Maker,
    /// Base plus extended family.
    pub family: u32,
    /// Extended and base model.
    pub model: u32,
}

/// A row of [`DOCUMENTED`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documented {
    /// The core's name.
    pub core: &'static str,
    /// The maker.
    pub maker: Maker,
    /// Display family.
    pub family: u32,
    /// Display models, in ranges.
    pub models: &'static [RangeInclusive<u32>],
    /// Entries of the store buffer for a thread that has the core to itself.
    pub capacity: u64,
    /// The document that states the capacity.
    pub source: &'static str,
    /// How many stores a load can overtake.
    pub bound: Bound,
    /// The measurement or paper that the bound comes from.
    pub seen: &'static str,
}

/// What is known of how many stores a load can overtake on a processor. No maker documents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// This number of stores, from a search long enough to rely on: the paper's, or a million
    /// rounds at each point of the litmus grid.
    Seen(u64),
    /// At least this number of stores: no search was long enough to exclude more.
    AtLeast(u64),
    /// Not measured.
    Unknown,
}

const INTEL: &str = "Intel 64 and IA-32 Architectures Optimization Reference Manual";
const AMD: &str = "AMD Software Optimization Guide for the family";
const PAPER: &str =
    "Morrison and Afek, Fence-Free Work Stealing on Bounded TSO Processors, section 8";
const OURS: &str = "poach measure, 2026-11, one virtual machine; crates/measure/README.md";

/// The capacities that makers document, and the bounds that were observed.
///
/// Chips with different cores (performance and efficiency cores) are left out: a thread may move
/// between the cores, and `cpuid` describes one of them.
///
/// A bound observed on one model holds for all models of its row, which have the same core.
pub const DOCUMENTED: &[Documented] = &[
    intel(
        "Nehalem, Westmere",
        &[0x1a..=0x1a, 0x1e..=0x1f, 0x25..=0x25, 0x2c..=0x2c, 0x2e..=0x2f],
        32,
    )
    .seen(Bound::Seen(33), PAPER),
    intel("Sandy Bridge, Ivy Bridge", &[0x2a..=0x2a, 0x2d..=0x2d, 0x3a..=0x3a, 0x3e..=0x3e], 36),
    intel("Haswell", &[0x3c..=0x3c, 0x3f..=0x3f, 0x45..=0x46], 42).seen(Bound::Seen(43), PAPER),
    intel("Broadwell", &[0x3d..=0x3d, 0x47..=0x47, 0x4f..=0x4f, 0x56..=0x56], 42),
    intel("Skylake", &[0x4e..=0x4e, 0x55..=0x55, 0x5e..=0x5e], 56),
    intel("Kaby, Coffee and Comet Lake", &[0x8e..=0x8e, 0x9e..=0x9e, 0xa5..=0xa6], 56),
    intel("Sunny Cove (Ice Lake)", &[0x6a..=0x6a, 0x6c..=0x6c, 0x7d..=0x7e], 72),
    intel("Willow and Cypress Cove (Tiger and Rocket Lake)", &[0x8c..=0x8d, 0xa7..=0xa7], 72),
    intel("Golden Cove (Sapphire and Emerald Rapids)", &[0x8f..=0x8f, 0xcf..=0xcf], 112),
    amd("Zen, Zen+", 0x17, &[0x00..=0x2f], 44),
    amd("Zen 2", 0x17, &[0x30..=0xaf], 48),
    amd("Zen 3", 0x19, &[0x00..=0x0f, 0x20..=0x5f], 64),
    amd("Zen 4", 0x19, &[0x10..=0x1f, 0x60..=0x7f, 0xa0..=0xaf], 64).seen(Bound::Seen(74), OURS),
    amd("Zen 5", 0x1a, &[0x00..=0x2f, 0x40..=0x4f, 0x60..=0x7f], 104)
        .seen(Bound::AtLeast(115), OURS),
];

const fn intel(
    core: &'static str,
    models: &'static [RangeInclusive<u32>],
    capacity: u64,
) -> Documented {
    row(core, Maker::Intel, 6, models, capacity, INTEL)
}

const fn amd(
    core: &'static str,
    family: u32,
    models: &'static [RangeInclusive<u32>],
    capacity: u64,
) -> Documented {
    row(core, Maker::Amd, family, models, capacity, AMD)
}

const fn row(
    core: &'static str,
    maker: Maker,
    family: u32,
    models: &'static [RangeInclusive<u32>],
    capacity: u64,
    source: &'static str,
) -> Documented {
    let (bound, seen) = (Bound::Unknown, "");
    Documented { core, maker, family, models, capacity, source, bound, seen }
}

impl Documented {
    const fn seen(self, bound: Bound, seen: &'static str) -> Documented {
        Documented { bound, seen, ..self }
    }
}

impl Processor {
    /// The processor that this program runs on, if it is an x86-64 processor of a known maker.
    pub fn here() -> Option<Processor> {
        identify()
    }

    /// Returns `true` if a hypervisor announces itself (`cpuid` leaf 1, ECX bit 31). It decides
    /// what [`here`](Processor::here) returns. `false` if there is no `cpuid`.
    pub fn is_virtual() -> bool {
        has_hypervisor()
    }

    /// This processor's row of [`DOCUMENTED`].
    pub fn documented(self) -> Option<&'static Documented> {
        DOCUMENTED.iter().find(|row| {
            row.maker == self.maker
                && row.family == self.family
                && row.models.iter().any(|models| models.contains(&self.model))
        })
    }

    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only x86-64 has cpuid"))]
    fn from_cpuid(maker: Maker, signature: u32) -> Processor {
        let base_family = signature >> 8 & 0xf;
        let base_model = signature >> 4 & 0xf;
        let extended_family = signature >> 20 & 0xff;
        let extended_model = signature >> 16 & 0xf;
        let family = if base_family == 0xf { base_family + extended_family } else { base_family };
        let extends = base_family == 0xf || base_family == 6;
        let model = if extends { extended_model << 4 | base_model } else { base_model };
        Processor { maker, family, model }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn identify() -> Option<Processor> {
    let vendor = cpuid(0);
    let maker = match [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() {
        b"AuthenticAMD" => Maker::Amd,
        b"GenuineIntel" => Maker::Intel,
        _ => return None,
    };
    Some(Processor::from_cpuid(maker, cpuid(1).eax))
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn has_hypervisor() -> bool {
    cpuid(1).ecx >> 31 != 0
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(
    unused_unsafe,
    reason = "the intrinsic is safe in newer compilers than the oldest that Poach builds with"
)]
fn cpuid(leaf: u32) -> core::arch::x86_64::CpuidResult {
    // SAFETY: the instruction is part of x86-64, and the target is no enclave that forbids it.
    unsafe { core::arch::x86_64::__cpuid(leaf) }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn has_hypervisor() -> bool {
    false
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn identify() -> Option<Processor> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_decoded_as_the_makers_say() {
        let decode = |maker, signature| {
            let p = Processor::from_cpuid(maker, signature);
            (p.family, p.model)
        };
        assert_eq!(decode(Maker::Intel, 0x000_206f2), (6, 0x2f));
        assert_eq!(decode(Maker::Intel, 0x000_306c3), (6, 0x3c));
        assert_eq!(decode(Maker::Amd, 0x00b0_0f21), (0x1a, 0x02));
        assert_eq!(decode(Maker::Amd, 0x0080_0f11), (0x17, 0x01));
        assert_eq!(decode(Maker::Amd, 0x00a2_0f12), (0x19, 0x21));
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
    fn a_hypervisor_is_seen_where_the_kernel_sees_one() {
        let Ok(said) = std::fs::read_to_string("/proc/cpuinfo") else { return };
        let Some(flags) = said.lines().find(|line| line.starts_with("flags")) else { return };
        assert_eq!(has_hypervisor(), flags.split_whitespace().any(|flag| flag == "hypervisor"));
    }

    #[test]
    fn each_model_stands_in_one_row() {
        for (at, row) in DOCUMENTED.iter().enumerate() {
            for model in row.models.iter().cloned().flatten() {
                let p = Processor { maker: row.maker, family: row.family, model };
                assert_eq!(p.documented(), Some(&DOCUMENTED[at]), "{} {model:#x}", row.core);
            }
        }
    }

    #[test]
    fn a_bound_that_was_seen_is_above_its_capacity_and_names_its_witness() {
        for row in DOCUMENTED {
            match row.bound {
                Bound::Seen(bound) | Bound::AtLeast(bound) => {
                    assert!(bound > row.capacity && !row.seen.is_empty(), "{}", row.core);
                }
                Bound::Unknown => assert!(row.seen.is_empty(), "{}", row.core),
            }
        }
    }
}
