//! Delta: how many of an owner's pops a thief may fail to see, from the size of a store buffer.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 4
//! ("Bounding worker position", "Determining delta") and section 7 (from capacity to bound).
//!
//! A load can overtake no more stores than the processor can hold back: `S` in the entries of its
//! store buffer, and `E` that have left the buffer and are on their way to the cache. The paper's
//! processors have `E = 1` (section 7.3: 32 entries behave as TSO\[33\]). A processor whose stores
//! pass a write-combining buffer has more: Zen 4 holds 10 (`crates/measure/README.md`). So a
//! capacity is not a bound, and the constructors here take a [`Bound`] instead.
//!
//! If the owner makes at least `x` other stores between two pops, one store in `x + 1` in the
//! buffer is its store of its index. Behind the buffer a run of stores to one cache line may share
//! an entry. So there any number of other stores separates two pops by one entry only, and every
//! second entry may hide a pop. Together:
//!
//! ```text
//! delta = E / 2 + ceil(S / (x + 1))            if E is even
//! delta = (E - 1) / 2 + floor(S / (x + 1)) + 1   if E is odd
//! ```
//!
//! Proof: either the youngest entry behind the buffer holds a pop, and `x` stores in the buffer
//! come before the next pop; or it does not, and the buffer may begin with a pop. If `E` is even,
//! both cases leave `E / 2` entries with a pop, and the second case fits more pops into the buffer.
//! If `E` is odd, the first case has one entry more with a pop. For `E = 1` this is the paper's
//! `ceil((S + 1) / (x + 1))`.
//!
//! With `x = 0` there is no bound, because consecutive stores to one address may leave the buffer
//! as one store. The store between must go to another cache line.

//! # Who promises what
//!
//! A queue with a bound that is too small loses tasks or hands them out twice. So a [`Delta`] is a
//! promise. Safe code gets a `Delta` from [`Delta::for_this_processor`] alone, which returns an
//! error for an unknown processor. [`hidden_pops`] is the arithmetic without the promise.

use core::fmt;
use core::num::NonZeroU64;

pub use crate::processor::{Bound, DOCUMENTED, Documented, Maker, Processor};

/// Entries between the store buffer and the cache on the processors of the paper.
pub const EGRESS: u64 = 1;

/// Returns how many pops a processor can hide.
///
/// The processor has `capacity` entries in its store buffer and `egress` entries behind it, each of
/// which may hold any number of consecutive stores to one cache line. The client makes at least
/// `stores` stores between any two pops, to cache lines other than the queue's. With `stores = 0`
/// the queue itself makes one store at each pop, as for `x = 1`.
///
/// ```
/// use poach_memory::delta::hidden_pops;
///
/// // Zen 4: 64 entries, and 10 behind them.
/// assert_eq!(hidden_pops(64, 10, 1)?.get(), 37);
/// // Seven stores between pops that all go to one line are worth less than seven entries.
/// assert_eq!(hidden_pops(64, 10, 7)?.get(), 13);
/// # Ok::<(), poach_memory::delta::DeltaError>(())
/// ```
///
/// # Errors
///
/// [`DeltaError::NoCapacity`] if `capacity` is 0. A processor without a store buffer is
/// sequentially consistent and needs no bound.
pub fn hidden_pops(capacity: u64, egress: u64, stores: u64) -> Result<NonZeroU64, DeltaError> {
    if capacity == 0 {
        return Err(DeltaError::NoCapacity);
    }
    // 128 bits, so that no sum overflows.
    let between = u128::from(stores.max(1)) + 1;
    let (full, rest) = (u128::from(capacity) / between, u128::from(capacity) % between);
    let one_more = egress % 2 != 0 || rest > 0;
    let pops = u128::from(egress / 2) + full + u128::from(one_more);
    Ok(u64::try_from(pops).ok().and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MAX))
}

/// The largest known bound of the processors in [`DOCUMENTED`], in stores.
pub fn largest_known() -> NonZeroU64 {
    let held = |row: &Documented| match row.bound {
        Bound::Seen(bound) | Bound::AtLeast(bound) => bound,
        Bound::Unknown => row.capacity + EGRESS,
    };
    let largest = DOCUMENTED.iter().map(held).max().and_then(NonZeroU64::new);
    largest.unwrap_or(NonZeroU64::MIN)
}

/// A promise to a queue: the greatest number of its owner's pops that a thief fails to see.
///
/// The promise concerns every thread that owns the queue, while it owns the queue: the processor on
/// which the thread runs, and the stores that it makes between two pops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    pops: NonZeroU64,
    /// How many stores the client makes between two pops; 0 if the queue makes one itself.
    stores: u64,
}

impl Delta {
    /// The bound of the processor that this program runs on, if it is known. The queue makes one
    /// store at each pop.
    ///
    /// It relies on the table's [`Bound::Seen`], for which this crate vouches, and on `cpuid`. In a
    /// virtual machine it returns an error, because the hypervisor may show a different processor,
    /// or may move the machine to another host later. A caller that knows the host can use
    /// [`measured`](Delta::measured) or [`documented`](Delta::documented) there.
    /// [`Asymmetric`](crate::Asymmetric) needs no bound.
    ///
    /// # Errors
    ///
    /// [`DeltaError::Undocumented`], [`DeltaError::NoBound`], [`DeltaError::Virtual`].
    pub fn for_this_processor() -> Result<Delta, DeltaError> {
        Delta::trusted(Processor::here(), Processor::is_virtual())
    }

    fn trusted(here: Option<Processor>, is_virtual: bool) -> Result<Delta, DeltaError> {
        // SAFETY: the queue makes the store. The table holds the bound of the processor that
        // `cpuid` shows, and no hypervisor changes what it shows, as is checked below.
        let delta = unsafe { Delta::documented_of(here, 0) }?;
        match here {
            Some(shown) if is_virtual => Err(DeltaError::Virtual(shown)),
            _ => Ok(delta),
        }
    }

    /// The bound of the processor that `cpuid` shows, also in a virtual machine. The client makes
    /// at least `stores` stores between any two pops (0: the queue makes one).
    ///
    /// # Errors
    ///
    /// [`DeltaError::Undocumented`] if the processor is not in [`DOCUMENTED`], and
    /// [`DeltaError::NoBound`] if the table has its capacity but no bound. Measure the bound then,
    /// and use [`measured`](Delta::measured).
    ///
    /// # Safety
    ///
    /// While a thread owns a queue with this bound, it runs on a processor of the model that
    /// `cpuid` shows now, or of a model that holds back no more stores. If `stores` is not 0, the
    /// owner makes at least `stores` stores between any two pops, to cache lines other than the
    /// queue's.
    pub unsafe fn documented(stores: u64) -> Result<Delta, DeltaError> {
        // SAFETY: by this function's contract.
        unsafe { Delta::documented_of(Processor::here(), stores) }
    }

    /// # Safety
    ///
    /// As [`documented`](Delta::documented), for the processor `here`.
    unsafe fn documented_of(here: Option<Processor>, stores: u64) -> Result<Delta, DeltaError> {
        match here.and_then(Processor::documented) {
            // SAFETY: by this function's contract.
            Some(entry) => unsafe { Delta::of(entry, stores) },
            None => Err(DeltaError::Undocumented(here)),
        }
    }

    /// The bound of the processors in a row of the table.
    ///
    /// # Errors
    ///
    /// [`DeltaError::NoBound`] if only their capacity is known.
    ///
    /// # Safety
    ///
    /// As [`documented`](Delta::documented), for the row's processors.
    pub unsafe fn of(entry: &'static Documented, stores: u64) -> Result<Delta, DeltaError> {
        match entry.bound {
            Bound::Seen(bound) => {
                let egress = bound.saturating_sub(entry.capacity);
                // SAFETY: the row holds these processors' bound. The caller promises the stores.
                unsafe { Delta::with_egress(entry.capacity, egress, stores) }
            }
            Bound::AtLeast(_) | Bound::Unknown => Err(DeltaError::NoBound(entry)),
        }
    }

    /// The bound of a processor with `capacity` store buffer entries and one [`EGRESS`] entry, by
    /// [`hidden_pops`].
    ///
    /// # Errors
    ///
    /// [`DeltaError::NoCapacity`] if `capacity` is 0.
    ///
    /// # Safety
    ///
    /// As [`with_egress`](Delta::with_egress) with an `egress` of 1. Zen 4 and Zen 5 have more.
    pub unsafe fn new(capacity: u64, stores: u64) -> Result<Delta, DeltaError> {
        // SAFETY: by this function's contract.
        unsafe { Delta::with_egress(capacity, EGRESS, stores) }
    }

    /// The bound of a processor with these entries, by [`hidden_pops`].
    ///
    /// # Errors
    ///
    /// [`DeltaError::NoCapacity`] if `capacity` is 0.
    ///
    /// # Safety
    ///
    /// The owners of queues with this bound run on processors with at most `capacity` entries in
    /// the store buffer and `egress` entries behind it. If `stores` is not 0, they make at least
    /// `stores` stores between any two pops, to cache lines other than the queue's.
    pub unsafe fn with_egress(
        capacity: u64,
        egress: u64,
        stores: u64,
    ) -> Result<Delta, DeltaError> {
        hidden_pops(capacity, egress, stores).map(|pops| Delta { pops, stores })
    }

    /// A bound of [`largest_known`] pops, for tests and benchmarks on a processor without a known
    /// bound. With a store between pops this is about twice what the processor with the largest
    /// bound needs.
    ///
    /// # Safety
    ///
    /// As [`exactly`](Delta::exactly). This crate does not vouch for the bound: a later processor
    /// may hold back more stores. If `stores` is not 0, the owners make at least `stores` stores
    /// between any two pops.
    pub unsafe fn ample(stores: u64) -> Delta {
        Delta { pops: largest_known(), stores }
    }

    /// A bound that the caller knows. The queue makes one store at each pop.
    ///
    /// # Safety
    ///
    /// If the owner makes a store to another cache line between any two pops, a thief's load misses
    /// at most `pops` of the pops. This holds on every processor on which an owner of a queue with
    /// this bound runs.
    pub unsafe fn exactly(pops: NonZeroU64) -> Delta {
        Delta { pops, stores: 0 }
    }

    /// The same for a client that makes the stores between pops itself: the queue makes none.
    ///
    /// # Safety
    ///
    /// Between any two pops the owners make as many stores as the bound assumes, at least one, to
    /// cache lines other than the queue's.
    #[must_use]
    pub unsafe fn without_fill(self) -> Delta {
        Delta { stores: self.stores.max(1), ..self }
    }

    /// How many pops a thief may fail to see.
    pub fn pops(self) -> u64 {
        self.pops.get()
    }

    /// Returns `true` if the queue itself stores to another line at each pop.
    #[inline(always)]
    pub fn fills(self) -> bool {
        self.stores == 0
    }

    /// How many stores the client has promised to make between two pops.
    pub fn stores(self) -> u64 {
        self.stores
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
    /// Its capacity is in the table, but not its bound.
    NoBound(&'static Documented),
    /// `cpuid` shows this processor in a virtual machine, which may run on another processor, now
    /// or later.
    Virtual(Processor),
}

impl fmt::Display for DeltaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeltaError::NoCapacity => f.write_str(
                "a store buffer of 0 entries has no bound: give its capacity, at least 1",
            ),
            DeltaError::Undocumented(Some(p)) => write!(
                f,
                "no store buffer capacity is known for {:?} family {:#x} model {:#x}: measure it \
                 (poach measure all) and use its profile",
                p.maker, p.family, p.model
            ),
            DeltaError::Virtual(shown) => write!(
                f,
                "this is a virtual machine, whose real processor may not be the {:?} family {:#x} model {:#x} \
                 that it shows: use `Asymmetric`, or a bound that was measured on the host",
                shown.maker, shown.family, shown.model
            ),
            DeltaError::Undocumented(None) => f.write_str(
                "store buffer capacities are known for x86-64 processors only: use a policy with a \
                 fence",
            ),
            DeltaError::NoBound(entry) => {
                write!(f, "{} has {} store buffer entries, ", entry.core, entry.capacity)?;
                match entry.bound {
                    Bound::AtLeast(seen) => {
                        write!(f, "and loads were seen to overtake {seen} stores")?;
                    }
                    _ => f.write_str("but how many stores a load overtakes is not known")?,
                }
                f.write_str(
                    ": measure it (poach measure all) and use its profile, or a policy with a fence",
                )
            }
        }
    }
}

impl std::error::Error for DeltaError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn pops(capacity: u64, egress: u64, stores: u64) -> u64 {
        hidden_pops(capacity, egress, stores).unwrap().get()
    }

    fn delta(capacity: u64, stores: u64) -> Delta {
        // SAFETY: no queue is given it.
        unsafe { Delta::new(capacity, stores) }.unwrap()
    }

    fn of(entry: &'static Documented, stores: u64) -> Result<Delta, DeltaError> {
        // SAFETY: no queue is given it.
        unsafe { Delta::of(entry, stores) }
    }

    #[test]
    fn the_bound_counts_the_egress_entry_and_the_stores_between() {
        // The paper's: 32 entries behave as 33, 42 as 43, and one store between pops halves that.
        assert_eq!(pops(32, EGRESS, 1), 17);
        assert_eq!(pops(42, EGRESS, 1), 22);
        assert_eq!(pops(32, EGRESS, 2), 11);
        assert_eq!(pops(32, EGRESS, 32), 1);
        assert_eq!(pops(32, EGRESS, 1000), 1);
        assert_eq!(pops(u64::MAX, EGRESS, u64::MAX), 1);
    }

    #[test]
    fn without_stores_of_the_client_the_queue_makes_one() {
        let filling = delta(32, 0);
        assert!(filling.fills());
        assert_eq!(filling.pops(), delta(32, 1).pops());
        assert!(!delta(32, 1).fills());
        // SAFETY: no queue is given it.
        let bare = unsafe { filling.without_fill() };
        assert_eq!((bare.pops(), bare.fills(), bare.stores()), (filling.pops(), false, 1));
    }

    #[test]
    fn no_capacity_is_refused() {
        assert_eq!(hidden_pops(0, 1, 1), Err(DeltaError::NoCapacity));
        // SAFETY: there is none.
        assert_eq!(unsafe { Delta::new(0, 1) }, Err(DeltaError::NoCapacity));
    }

    /// The most pops among the stores that a processor holds back: `egress` runs of stores to one
    /// line, the oldest and the youngest of which may be incomplete, and `capacity` stores after
    /// them. The client stores `between` times between two pops, each time to the same line.
    fn hidden(capacity: u64, egress: u64, between: u64) -> u64 {
        let period = between + 1;
        let pops = |from: u64, to: u64| (from..to).filter(|at| at % period == 0).count();
        let mut most = 0;
        for oldest in 0..period {
            // Where the run ends that the store at `at` is in.
            let end = |at: u64| {
                if at % period == 0 { at + 1 } else { at.next_multiple_of(period) }
            };
            let mut youngest = oldest;
            for _ in 1..egress {
                youngest = end(youngest);
            }
            let cuts = if egress == 0 { oldest..=oldest } else { youngest + 1..=end(youngest) };
            for cut in cuts {
                most = most.max(pops(oldest, cut + capacity));
            }
        }
        most as u64
    }

    #[test]
    fn the_bound_is_the_most_that_the_entries_hide() {
        for capacity in 1..14 {
            for egress in 0..6 {
                for stores in 1..7 {
                    let most = hidden(capacity, egress, stores);
                    assert_eq!(
                        pops(capacity, egress, stores),
                        most,
                        "S {capacity}, E {egress}, x {stores}"
                    );
                }
            }
        }
    }

    #[test]
    fn with_one_entry_on_the_way_out_it_is_the_papers() {
        for (capacity, stores) in (1..70).flat_map(|s| (1..20).map(move |x| (s, x))) {
            let papers = (capacity + 1_u64).div_ceil(stores + 1);
            assert_eq!(pops(capacity, EGRESS, stores), papers, "{capacity} {stores}");
        }
    }

    fn row(core: &str) -> &'static Documented {
        DOCUMENTED.iter().find(|row| row.core.starts_with(core)).unwrap()
    }

    #[test]
    fn a_capacity_alone_is_no_bound() {
        assert_eq!(of(row("Nehalem"), 1).unwrap(), delta(32, 1));
        // More than the 33 that 64 entries and one would allow.
        assert_eq!(of(row("Zen 4"), 1).unwrap().pops(), 37);
        // Twelve stores to one word between pops: 9 was seen to be too little.
        assert_eq!(of(row("Zen 4"), 12).unwrap().pops(), 10);
        for core in ["Skylake", "Zen 3", "Zen 5"] {
            assert_eq!(of(row(core), 1), Err(DeltaError::NoBound(row(core))));
        }
        let said = DeltaError::NoBound(row("Zen 5")).to_string();
        assert!(
            said.contains("Zen 5 has 104")
                && said.contains("115")
                && said.contains("poach measure")
        );
    }

    #[test]
    fn an_ample_bound_covers_each_that_is_known() {
        for row in DOCUMENTED {
            let (Bound::Seen(bound) | Bound::AtLeast(bound)) = row.bound else { continue };
            let needed = pops(row.capacity, bound - row.capacity, 1);
            // SAFETY: no queue is given it.
            let ample = unsafe { Delta::ample(0) };
            assert!(ample.pops() > needed && ample.fills());
        }
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn here_the_table_is_asked() {
        let here = Processor::here().and_then(Processor::documented);
        let expected =
            here.map_or_else(|| Err(DeltaError::Undocumented(Processor::here())), |row| of(row, 1));
        // SAFETY: no queue is given it.
        assert_eq!(unsafe { Delta::documented(1) }, expected);
    }

    #[test]
    fn safe_code_gets_no_bound_that_is_a_guess() {
        let nehalem = Processor { maker: Maker::Intel, family: 6, model: 0x1a };
        assert_eq!(Delta::trusted(Some(nehalem), false), Ok(delta(32, 0)));
        let refused = Delta::trusted(Some(nehalem), true).unwrap_err();
        assert_eq!(refused, DeltaError::Virtual(nehalem));
        assert!(refused.to_string().contains("virtual machine"), "{refused}");
        assert_eq!(Delta::trusted(None, false), Err(DeltaError::Undocumented(None)));
        let zen_5 = Processor { maker: Maker::Amd, family: 0x1a, model: 0 };
        assert_eq!(Delta::trusted(Some(zen_5), false), Err(DeltaError::NoBound(row("Zen 5"))));
        let here = Delta::trusted(Processor::here(), Processor::is_virtual());
        assert_eq!(Delta::for_this_processor(), here);
    }

    #[test]
    fn an_unknown_processor_is_refused_by_name() {
        let unknown = Processor { maker: Maker::Amd, family: 0x7f, model: 1 };
        assert_eq!(unknown.documented(), None);
        let said = DeltaError::Undocumented(Some(unknown)).to_string();
        assert!(said.contains("Amd family 0x7f model 0x1"), "{said}");
    }
}
