//! Delta: how many of an owner's pops a thief may fail to see, from the size of a store buffer.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 4
//! ("Bounding worker position", "Determining delta") and section 7 (from capacity to bound).
//!
//! A load can overtake no more stores than the processor can hold back: those in the `S` entries of its
//! store buffer, and those that have left it and are still on their way to the cache, in `E` more. The
//! paper's processors have `E = 1` (section 7.3: one with 32 entries behaves as TSO\[33\]). A processor
//! whose stores pass a write-combining buffer has more: Zen 4 holds 10 (`crates/measure/README.md`). So a
//! capacity is no bound, and [`Delta::documented`] takes it for one nowhere: it wants a [`Bound`].
//!
//! If between two pops there are at least `x` other stores, one store in `x + 1` of those in the buffer is
//! the owner's store of its index. On the way out a whole run of stores to one cache line may share an
//! entry, so there no number of stores keeps two pops apart by more than one entry: every second entry may
//! hide a pop. Together
//!
//! ```text
//! delta = E / 2 + ceil(S / (x + 1))            if E is even
//! delta = (E - 1) / 2 + floor(S / (x + 1)) + 1   if E is odd
//! ```
//!
//! For either the youngest entry on the way out holds a pop, and `x` stores in the buffer come before the
//! next one; or it does not, and the buffer may begin with one. Where `E` is even both of these leave
//! `E / 2` entries with a pop, and the second fits more into the buffer. Where it is odd the first leaves one
//! entry more with a pop. For `E = 1` this is the paper's `ceil((S + 1) / (x + 1))`.
//!
//! With `x = 0` there is no bound: stores to one address with no other between them may leave as one. The
//! store between must go to another cache line.

use core::fmt;
use core::num::NonZeroU64;

pub use crate::processor::{Bound, DOCUMENTED, Documented, Maker, Processor};

/// Entries between the store buffer and the cache on the processors of the paper.
pub const EGRESS: u64 = 1;

/// What a queue knows about hidden pops: the bound itself, and who makes the stores it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    pops: NonZeroU64,
    fill: bool,
}

impl Delta {
    /// The bound on a processor with `capacity` store buffer entries and one [`EGRESS`] entry, for a
    /// client that makes at least `stores` stores, to cache lines other than the queue's, between any two
    /// pops.
    ///
    /// With `stores = 0` the queue makes one itself at each pop ([`fills`](Delta::fills)), and the
    /// bound is that of `x = 1`.
    ///
    /// A `capacity` below the processor's, or `stores` above what the client does, breaks the promise
    /// of each queue that is given the bound: tasks are lost or taken twice. So does a processor that
    /// holds stores back in more entries than these, as Zen 4 and Zen 5 do: [`with_egress`] is for those.
    ///
    /// [`with_egress`]: Delta::with_egress
    ///
    /// # Errors
    ///
    /// [`DeltaError::NoCapacity`] if `capacity` is 0: a processor without a store buffer needs no
    /// bound, it is sequentially consistent.
    pub fn new(capacity: u64, stores: u64) -> Result<Delta, DeltaError> {
        Delta::with_egress(capacity, EGRESS, stores)
    }

    /// As [`new`](Delta::new), on a processor with `egress` entries between the store buffer and the
    /// cache, each of which may hold any number of stores in a row to one cache line.
    ///
    /// ```
    /// use poach_memory::Delta;
    ///
    /// // Zen 4: 64 entries, and 10 behind them.
    /// assert_eq!(Delta::with_egress(64, 10, 1)?.pops(), 37);
    /// // Seven stores between pops that all go to one line are worth less than seven entries.
    /// assert_eq!(Delta::with_egress(64, 10, 7)?.pops(), 13);
    /// # Ok::<(), poach_memory::delta::DeltaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DeltaError::NoCapacity`] if `capacity` is 0.
    pub fn with_egress(capacity: u64, egress: u64, stores: u64) -> Result<Delta, DeltaError> {
        if capacity == 0 {
            return Err(DeltaError::NoCapacity);
        }
        // In 128 bits: the numbers of the caller's may be as great as they like.
        let between = u128::from(stores.max(1)) + 1;
        let (full, rest) = (u128::from(capacity) / between, u128::from(capacity) % between);
        let one_more = !egress.is_multiple_of(2) || rest > 0;
        let pops = u128::from(egress / 2) + full + u128::from(one_more);
        let pops = u64::try_from(pops).ok().and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MAX);
        Ok(Delta { pops, fill: stores == 0 })
    }

    /// The bound on the processor that this program runs on, from the capacity that its maker documents
    /// and what loads were seen to overtake on others of its kind.
    ///
    /// # Errors
    ///
    /// [`DeltaError::Undocumented`] if the processor is not in [`DOCUMENTED`], and
    /// [`DeltaError::NoBound`] if its capacity is there and its bound is not known. Measure it and use
    /// [`measured`](Delta::measured).
    pub fn documented(stores: u64) -> Result<Delta, DeltaError> {
        let here = Processor::here();
        match here.and_then(Processor::documented) {
            Some(entry) => Delta::of(entry, stores),
            None => Err(DeltaError::Undocumented(here)),
        }
    }

    /// The bound on a processor of the table.
    ///
    /// # Errors
    ///
    /// [`DeltaError::NoBound`] if only its capacity is known.
    pub fn of(entry: &'static Documented, stores: u64) -> Result<Delta, DeltaError> {
        match entry.bound {
            Bound::Seen(bound) => {
                Delta::with_egress(entry.capacity, bound.saturating_sub(entry.capacity), stores)
            }
            Bound::AtLeast(_) | Bound::Unknown => Err(DeltaError::NoBound(entry)),
        }
    }

    /// A bound for tests and benchmarks on a processor that has none: as many pops as any processor of
    /// [`DOCUMENTED`] holds stores back, as far as is known; with a store between pops that is about twice
    /// what it needs.
    ///
    /// Nobody vouches for it. A program that must not lose tasks uses [`documented`](Delta::documented) or
    /// [`measured`](Delta::measured), and a policy with a fence where they refuse.
    pub fn ample(stores: u64) -> Delta {
        let held = |row: &Documented| match row.bound {
            Bound::Seen(bound) | Bound::AtLeast(bound) => bound,
            Bound::Unknown => row.capacity + EGRESS,
        };
        let largest = DOCUMENTED.iter().map(held).max().unwrap_or(1);
        let pops = NonZeroU64::new(largest).unwrap_or(NonZeroU64::MIN);
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
    /// Its capacity is in the table, but not what loads overtake.
    NoBound(&'static Documented),
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

    /// The most pops among stores on their way: `egress` runs of stores to one line, of which the oldest
    /// may be half gone and the youngest half come, and `capacity` stores behind them. The client stores
    /// `between` times between two pops, each time to the same line.
    fn hidden(capacity: u64, egress: u64, between: u64) -> u64 {
        let period = between + 1;
        let pops = |from: u64, to: u64| (from..to).filter(|at| at.is_multiple_of(period)).count();
        let mut most = 0;
        for oldest in 0..period {
            // Where the run ends that the store at `at` is in.
            let end = |at: u64| {
                if at.is_multiple_of(period) { at + 1 } else { at.next_multiple_of(period) }
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
                    let delta = Delta::with_egress(capacity, egress, stores).unwrap();
                    let most = hidden(capacity, egress, stores);
                    assert_eq!(delta.pops(), most, "S {capacity}, E {egress}, x {stores}");
                }
            }
        }
    }

    #[test]
    fn with_one_entry_on_the_way_out_it_is_the_papers() {
        for (capacity, stores) in (1..70).flat_map(|s| (1..20).map(move |x| (s, x))) {
            let papers = (capacity + 1_u64).div_ceil(stores + 1);
            assert_eq!(Delta::new(capacity, stores).unwrap().pops(), papers, "{capacity} {stores}");
        }
    }

    fn row(core: &str) -> &'static Documented {
        DOCUMENTED.iter().find(|row| row.core.starts_with(core)).unwrap()
    }

    #[test]
    fn a_capacity_alone_is_no_bound() {
        assert_eq!(Delta::of(row("Nehalem"), 1).unwrap(), Delta::new(32, 1).unwrap());
        // More than the 33 that 64 entries and one would allow.
        assert_eq!(Delta::of(row("Zen 4"), 1).unwrap().pops(), 37);
        // Twelve stores to one word between pops: 9 was seen to be too little.
        assert_eq!(Delta::of(row("Zen 4"), 12).unwrap().pops(), 10);
        for core in ["Skylake", "Zen 3", "Zen 5"] {
            assert_eq!(Delta::of(row(core), 1), Err(DeltaError::NoBound(row(core))));
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
            let needed = Delta::with_egress(row.capacity, bound - row.capacity, 1).unwrap();
            assert!(Delta::ample(0).pops() > needed.pops() && Delta::ample(0).fills());
        }
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn here_the_table_is_asked() {
        let here = Processor::here().and_then(Processor::documented);
        let expected = here.map_or_else(
            || Err(DeltaError::Undocumented(Processor::here())),
            |row| Delta::of(row, 1),
        );
        assert_eq!(Delta::documented(1), expected);
    }

    #[test]
    fn an_unknown_processor_is_refused_by_name() {
        let unknown = Processor { maker: Maker::Amd, family: 0x7f, model: 1 };
        assert_eq!(unknown.documented(), None);
        let said = DeltaError::Undocumented(Some(unknown)).to_string();
        assert!(said.contains("Amd family 0x7f model 0x1"), "{said}");
    }
}
