//! How the text looks: the flags of order, names and numbers.

use clap::ValueEnum;
use poach_scan::report::{Look, Order, Units};

use super::choice::size;

/// The flags of the text. A document has an order and numbers of its own.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Text")]
pub(super) struct View {
    /// What the entries of a directory are ordered by; the largest are shown, whatever their
    /// order.
    #[arg(long, value_enum, default_value_t = Sort::Size)]
    pub(super) sort: Sort,
    /// Turn that order around.
    #[arg(long, short)]
    reverse: bool,
    /// Show whole paths, and no lines of a tree.
    #[arg(long)]
    full_paths: bool,
    /// Show what lies in each directory itself, and not in a directory below it, as a row
    /// `(files)`.
    #[arg(long, conflicts_with = "all")]
    own_files: bool,
    /// Show sizes in powers of 1024, in powers of 1000, or in bytes.
    #[arg(long, value_enum, value_name = "UNITS", default_value_t = Show::Binary)]
    units: Show,
    /// Cut lines to so many columns [default: the terminal's; none into a pipe].
    #[arg(long, value_name = "COLUMNS")]
    pub(super) width: Option<usize>,
    /// Leave out what is smaller, of the text and of documents, but count it: bytes, or a number
    /// with K, M, G or T; with `--by entries` a number of entries.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) min_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// What --by says, the largest first.
    Size,
    /// Names.
    Name,
    /// The number of entries below.
    Entries,
    /// The time of the last change, the newest first.
    Time,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Show {
    /// KiB, MiB, GiB.
    Binary,
    /// kB, MB, GB.
    Si,
    /// Bytes.
    Bytes,
}

impl View {
    /// What the entries of a directory are ordered by, and whether that is turned around.
    pub(super) fn order(&self) -> (Order, bool) {
        let order = match self.sort {
            Sort::Size => Order::Size,
            Sort::Name => Order::Name,
            Sort::Entries => Order::Entries,
            Sort::Time => Order::Time,
        };
        (order, self.reverse)
    }

    /// How the text looks on a terminal of some size, if it is for one.
    pub(super) fn look(&self, width: usize, height: Option<usize>, colour: bool) -> Look {
        let units = match self.units {
            Show::Binary => Units::Binary,
            Show::Si => Units::Si,
            Show::Bytes => Units::Plain,
        };
        let width = self.width.unwrap_or(width);
        let View { full_paths, own_files, .. } = *self;
        Look { width, height, colour, units, full_paths, own_files }
    }
}
