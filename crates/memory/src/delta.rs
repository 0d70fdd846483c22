//! Delta: how many of an owner's pops a thief may fail to see, from the size of a store buffer.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 4
//! ("Bounding worker position", "Determining delta") and section 7 (from capacity to bound).
//!
//! A load can overtake no more stores than the processor can hold back: the `S` entries of its store
//! buffer, and one more, for the entry that leaves the buffer is still on its way to the cache (section
//! 7.3: a processor with 32 entries behaves as TSO\[33\]). If between two pops there are at least `x`
//! other stores, one pop in `x + 1` stores is the owner's store of its index, so at most
//!
//! ```text
//! delta = ceil((S + 1) / (x + 1))
//! ```
//!
//! pops are hidden. With `x = 0` there is no such bound: stores to one address with no other between
//! them may leave as one, so any number of them takes one entry. The store between must go to another
//! cache line, since a processor may also join stores to one line.

use core::fmt;
use core::num::NonZeroU64;
use core::ops::RangeInclusive;

use crate::profile::{Profile, ProfileError};

/// Entries in flight between a store buffer and the cache: they hold stores back as the buffer does.
pub const EGRESS: u64 = 1;

/// What a queue knows about hidden pops: the bound itself, and who makes the stores it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    pops: NonZeroU64,
    fill: bool,
}

impl Delta {
    /// The bound on a processor with `capacity` store buffer entries, for a client that makes at
    /// least `stores` stores, to cache lines other than the queue's, between any two pops.
    ///
    /// With `stores = 0` the queue makes one itself at each pop ([`fills`](Delta::fills)), and the
    /// bound is that of `x = 1`.
    ///
    /// A `capacity` below the processor's, or `stores` above what the client does, breaks the promise
    /// of each queue that is given the bound: tasks are lost or taken twice.
    ///
    /// # Errors
    ///
    /// [`DeltaError::NoCapacity`] if `capacity` is 0: a processor without a store buffer needs no
    /// bound, it is sequentially consistent.
    pub fn new(capacity: u64, stores: u64) -> Result<Delta, DeltaError> {
        if capacity == 0 {
            return Err(DeltaError::NoCapacity);
        }
        let bound = capacity.saturating_add(EGRESS);
        Ok(Delta::for_bound(NonZeroU64::new(bound).unwrap_or(NonZeroU64::MIN), stores))
    }

    /// The bound on the processor that this program runs on, from the capacity that its maker
    /// documents.
    ///
    /// # Errors
    ///
    /// [`DeltaError::Undocumented`] if the processor is not in [`DOCUMENTED`]. Measure it and use
    /// [`new`](Delta::new).
    pub fn documented(stores: u64) -> Result<Delta, DeltaError> {
        match Processor::here() {
            Some(here) => match here.documented() {
                Some(entry) => Delta::new(entry.capacity, stores),
                None => Err(DeltaError::Undocumented(Some(here))),
            },
            None => Err(DeltaError::Undocumented(None)),
        }
    }

    /// The bound on this processor, from a profile that was measured on it.
    ///
    /// The measured reordering bound stands for `S + 1`: a processor may hold more stores back between
    /// its store buffer and the cache than the one entry that [`new`](Delta::new) allows for.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Foreign`] if the profile is another processor's.
    pub fn measured(profile: &Profile, stores: u64) -> Result<Delta, ProfileError> {
        profile.check_here()?;
        Ok(Delta::for_bound(profile.bound, stores))
    }

    fn for_bound(bound: NonZeroU64, stores: u64) -> Delta {
        let between = stores.max(1).saturating_add(1);
        let pops = NonZeroU64::new(bound.get().div_ceil(between)).unwrap_or(NonZeroU64::MIN);
        Delta { pops, fill: stores == 0 }
    }

    /// A bound that the caller has from elsewhere, with the queue making one store at each pop.
    ///
    /// As with [`new`](Delta::new), one that is too small breaks the queue.
    pub fn exactly(pops: NonZeroU64) -> Delta {
        Delta { pops, fill: true }
    }

    /// The same bound for a client that makes the stores between pops itself: the queue makes none.
    #[must_use]
    pub fn without_fill(self) -> Delta {
        Delta { fill: false, ..self }
    }

    /// How many pops a thief may fail to see.
    pub fn pops(self) -> u64 {
        self.pops.get()
    }

    /// Whether the queue itself stores to another line at each pop.
    pub fn fills(self) -> bool {
        self.fill
    }
}

/// Why there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeltaError {
    /// The capacity given is 0.
    NoCapacity,
    /// This processor (if it is an x86-64 at all) is not in the table.
    Undocumented(Option<Processor>),
}

impl fmt::Display for DeltaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeltaError::NoCapacity => f.write_str(
                "a store buffer of 0 entries has no bound: give its capacity, at least 1",
            ),
            DeltaError::Undocumented(Some(p)) => write!(
                f,
                "no store buffer capacity is known for {:?} family {:#x} model {:#x}: measure it and \
                 give it",
                p.maker, p.family, p.model
            ),
            DeltaError::Undocumented(None) => f.write_str(
                "store buffer capacities are known for x86-64 processors only: use a policy with a \
                 fence",
            ),
        }
    }
}

impl std::error::Error for DeltaError {}

/// Who made a processor.
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
    /// Who made it.
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
    /// Who made it.
    pub maker: Maker,
    /// Display family.
    pub family: u32,
    /// Display models, in ranges.
    pub models: &'static [RangeInclusive<u32>],
    /// Entries of the store buffer; what one thread gets if it has the core for itself.
    pub capacity: u64,
    /// Where that is stated.
    pub source: &'static str,
}

const INTEL: &str = "Intel 64 and IA-32 Architectures Optimization Reference Manual";
const AMD: &str = "AMD Software Optimization Guide for the family";

/// The capacities that makers document.
///
/// Cores of one chip that differ (performance and efficiency cores) are left out: a thread may move
/// between them, and `cpuid` tells of one.
pub const DOCUMENTED: &[Documented] = &[
    intel(
        "Nehalem, Westmere",
        &[0x1a..=0x1a, 0x1e..=0x1f, 0x25..=0x25, 0x2c..=0x2c, 0x2e..=0x2f],
        32,
    ),
    intel("Sandy Bridge, Ivy Bridge", &[0x2a..=0x2a, 0x2d..=0x2d, 0x3a..=0x3a, 0x3e..=0x3e], 36),
    intel("Haswell", &[0x3c..=0x3c, 0x3f..=0x3f, 0x45..=0x46], 42),
    intel("Broadwell", &[0x3d..=0x3d, 0x47..=0x47, 0x4f..=0x4f, 0x56..=0x56], 42),
    intel("Skylake", &[0x4e..=0x4e, 0x55..=0x55, 0x5e..=0x5e], 56),
    intel("Kaby, Coffee and Comet Lake", &[0x8e..=0x8e, 0x9e..=0x9e, 0xa5..=0xa6], 56),
    intel("Sunny Cove (Ice Lake)", &[0x6a..=0x6a, 0x6c..=0x6c, 0x7d..=0x7e], 72),
    intel("Willow and Cypress Cove (Tiger and Rocket Lake)", &[0x8c..=0x8d, 0xa7..=0xa7], 72),
    intel("Golden Cove (Sapphire and Emerald Rapids)", &[0x8f..=0x8f, 0xcf..=0xcf], 112),
    amd("Zen, Zen+", 0x17, &[0x00..=0x2f], 44),
    amd("Zen 2", 0x17, &[0x30..=0xaf], 48),
    amd("Zen 3", 0x19, &[0x00..=0x0f, 0x20..=0x5f], 64),
    amd("Zen 4", 0x19, &[0x10..=0x1f, 0x60..=0x7f, 0xa0..=0xaf], 64),
    amd("Zen 5", 0x1a, &[0x00..=0x2f, 0x40..=0x4f, 0x60..=0x7f], 104),
];

const fn intel(
    core: &'static str,
    models: &'static [RangeInclusive<u32>],
    capacity: u64,
) -> Documented {
    Documented { core, maker: Maker::Intel, family: 6, models, capacity, source: INTEL }
}

const fn amd(
    core: &'static str,
    family: u32,
    models: &'static [RangeInclusive<u32>],
    capacity: u64,
) -> Documented {
    Documented { core, maker: Maker::Amd, family, models, capacity, source: AMD }
}

impl Processor {
    /// The processor that this program runs on, if it is an x86-64 by a maker of the table.
    pub fn here() -> Option<Processor> {
        identify()
    }

    /// What its maker documents.
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
    use core::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    let maker = match [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() {
        b"AuthenticAMD" => Maker::Amd,
        b"GenuineIntel" => Maker::Intel,
        _ => return None,
    };
    Some(Processor::from_cpuid(maker, __cpuid(1).eax))
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn identify() -> Option<Processor> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_counts_the_egress_entry_and_the_stores_between() {
        // The paper's: 32 entries behave as 33, 42 as 43, and one store between pops halves that.
        assert_eq!(Delta::new(32, 1).unwrap().pops(), 17);
        assert_eq!(Delta::new(42, 1).unwrap().pops(), 22);
        assert_eq!(Delta::new(32, 2).unwrap().pops(), 11);
        assert_eq!(Delta::new(32, 32).unwrap().pops(), 1);
        assert_eq!(Delta::new(32, 1000).unwrap().pops(), 1);
        assert_eq!(Delta::new(u64::MAX, u64::MAX).unwrap().pops(), 1);
    }

    #[test]
    fn without_stores_of_the_client_the_queue_makes_one() {
        let delta = Delta::new(32, 0).unwrap();
        assert!(delta.fills());
        assert_eq!(delta.pops(), Delta::new(32, 1).unwrap().pops());
        assert!(!Delta::new(32, 1).unwrap().fills());
    }

    #[test]
    fn no_capacity_is_refused() {
        assert_eq!(Delta::new(0, 1), Err(DeltaError::NoCapacity));
    }

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
    fn an_unknown_processor_is_refused_by_name() {
        let unknown = Processor { maker: Maker::Amd, family: 0x7f, model: 1 };
        assert_eq!(unknown.documented(), None);
        let said = DeltaError::Undocumented(Some(unknown)).to_string();
        assert!(said.contains("Amd family 0x7f model 0x1"), "{said}");
    }
}
