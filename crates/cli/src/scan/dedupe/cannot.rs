//! On systems without these actions each file is left, and the reason is given.

use std::io;

use poach_scan::duplicates::Group;
use poach_scan::{Control, Scan};

use super::{Became, How, Keep, Name, Outcome, Tell};

/// What is to be done: nothing.
pub(super) struct Plan(Vec<Vec<u8>>);

impl Plan {
    pub(super) fn new(
        scan: &Scan,
        groups: &[Group],
        names: impl Iterator<Item = Name>,
        _: How,
        _: Keep,
    ) -> Plan {
        // Other names of a file are of no use here.
        for Name { file, within, bytes } in names {
            let _ = (file, within, bytes);
        }
        let _ = scan;
        Plan(groups.iter().flat_map(|group| &group.copies).map(|copy| copy.path.clone()).collect())
    }

    pub(super) fn each(&self, tell: &mut Tell<'_>) -> io::Result<()> {
        let why = "--dedupe is not available on this system";
        self.0.iter().try_for_each(|path| {
            let became = Some(Became::Left(why.to_owned()));
            tell(&Outcome { kept: None, path, others: &[], freed: 0, became })
        })
    }

    pub(super) fn carry_out(&self, _: &Control, tell: &mut Tell<'_>) -> io::Result<bool> {
        self.each(tell).map(|()| false)
    }
}
