//! Reports that are sums by a key, of entries that somebody else's walk tells: of many machines,
//! say. Parts of them can be sent, and added up.

use serde::{Deserialize, Serialize};

use super::ages::Ages;
use super::extensions::{Extensions, Types};
use super::owners::Owners;
use super::{Report, Section, Settings};
use crate::sys::Meta;

/// Sums of entries by what their [reports](Tallies::REPORTS) ask for.
///
/// ```
/// use poach_scan::survey::{Report, Settings, Tallies};
/// use poach_scan::sys::{Kind, Meta};
///
/// let (mut here, mut there) = (Tallies::new(0), Tallies::new(0));
/// here.count(b"a.rs", &Meta { disk: 4096, ..Meta::of(Kind::File) }, true);
/// there.count(b"b.rs", &Meta { disk: 8192, ..Meta::of(Kind::File) }, true);
/// here.merge(&there);
/// let section = here.section(Report::Extensions, &Settings::default()).unwrap();
/// assert_eq!(section.rows.len(), 1);
/// assert!(here.section(Report::Duplicates, &Settings::default()).is_none());
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tallies {
    ages: Ages,
    extensions: Extensions,
    owners: Owners,
}

impl Tallies {
    /// The reports that can be made of them.
    pub const REPORTS: [Report; 4] =
        [Report::ByAge, Report::Extensions, Report::Types, Report::Owners];

    /// Of nothing yet; ages are counted to `now`, in seconds since 1970. Parts that are to be
    /// merged need the same.
    pub fn new(now: i64) -> Tallies {
        Tallies {
            ages: Ages::to(now),
            extensions: Extensions::default(),
            owners: Owners::default(),
        }
    }

    /// Counts an entry. A file of several names is counted at each, and its size at the one that
    /// `bears` it.
    pub fn count(&mut self, name: &[u8], meta: &Meta, bears: bool) {
        self.ages.count(meta, bears);
        self.extensions.count(name, meta, bears);
        self.owners.count(meta, bears);
    }

    /// Adds the size of a file that was counted without it, at the name that turned out to bear it.
    pub fn bear(&mut self, name: &[u8], meta: &Meta) {
        self.ages.count(meta, true);
        self.extensions.bear(name, meta);
        self.owners.bear(meta);
    }

    /// Adds what another part has counted.
    pub fn merge(&mut self, other: &Tallies) {
        self.ages.add(&other.ages);
        self.extensions.add(&other.extensions);
        self.owners.add(&other.owners);
    }

    /// Makes a report; none that is not among [`Tallies::REPORTS`].
    pub fn section(&self, report: Report, settings: &Settings) -> Option<Section> {
        match report {
            Report::ByAge => Some(self.ages.section()),
            Report::Extensions => Some(self.extensions.clone().section(settings)),
            Report::Types => Some(Types::of(&self.extensions).section(settings)),
            Report::Owners => Some(self.owners.clone().section(settings)),
            _ => None,
        }
    }
}
