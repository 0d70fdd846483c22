//! The flags of the text: order, names and units.

use clap::ValueEnum;
use poach_scan::report::{Look, Order, Units};

use super::choice::size;

/// The flags of the text. A document has an order and numbers of its own.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Text")]
pub(super) struct View {
    /// Order of the entries of a directory. The largest are shown in any order.
    #[arg(long, value_enum, default_value_t = Sort::Size)]
    pub(super) sort: Sort,
    /// Reverse the order.
    #[arg(long, short)]
    reverse: bool,
    /// Show whole paths instead of a tree.
    #[arg(long)]
    full_paths: bool,
    /// Show the files directly in each directory as a row `(files)`.
    #[arg(long, conflicts_with = "all")]
    own_files: bool,
    /// Units of sizes.
    #[arg(long, value_enum, value_name = "UNITS", default_value_t = Show::Binary)]
    units: Show,
    /// Truncate lines to COLUMNS [default: the terminal's width; no limit in a pipe].
    #[arg(long, value_name = "COLUMNS")]
    pub(super) width: Option<usize>,
    /// Hide smaller entries, but count them (K, M, G or T; a number with `--by entries`).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) min_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// By the measure of --by, the largest first.
    Size,
    /// By name.
    Name,
    /// By the number of entries below, the largest first.
    Entries,
    /// By the time of the last change, the newest first.
    Time,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Show {
    /// Powers of 1024: KiB, MiB, GiB.
    Binary,
    /// Powers of 1000: kB, MB, GB.
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
