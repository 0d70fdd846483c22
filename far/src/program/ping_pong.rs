//! `poach-far ping-pong`: what a message between two ranks costs, as the simulator wants to know
//! it.

use poach_far::{Error, World};
use serde_json::json;

use super::Report;

/// The `LogGP` parameters of the network between ranks 0 and 1, for `simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How many messages there and back, of each size.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Bytes of the long message.
    #[arg(long, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    bytes: u32,
}

pub(super) fn run(world: &mut World, arguments: &Arguments) -> Result<Option<Report>, Error> {
    let Some(costs) = world.ping_pong(arguments.rounds, arguments.bytes as usize)? else {
        return Ok(None);
    };
    let text = format!(
        "--latency {:.0} --overhead {:.0} --gap {:.0} --byte {:.3}\n",
        costs.latency, costs.overhead, costs.gap, costs.byte
    );
    let document = json!({
        "latency_ns": costs.latency,
        "overhead_ns": costs.overhead,
        "gap_ns": costs.gap,
        "byte_ns": costs.byte,
    });
    Ok(Some(Report { text, document, well: true }))
}
