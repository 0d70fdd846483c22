//! Runs litmus files on TSO without a bound, and prints each name with `Allow` or `Forbid`, as the
//! lists of kinds that come with public collections say it, or with what is not understood.
//!
//! ```console
//! $ cargo run --release -p poach-check --example herd_kinds -- tests/*.litmus
//! ```

use std::process::ExitCode;

use poach_check::Config;
use poach_check::herd::Test;

fn main() -> ExitCode {
    let mut well = true;
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"));
        let test =
            text.and_then(|text| Test::parse(&text).map_err(|mistake| format!("{path}:{mistake}")));
        match test {
            Ok(test) => {
                let answer = test.run(&Config::default());
                well &= answer.conclusive;
                let kind = if answer.satisfying > 0 { "Allow" } else { "Forbid" };
                println!("{}\t{kind}\t{}\t{}", test.name(), answer.states.len(), answer.conclusive);
            }
            Err(why) => {
                well = false;
                println!("{why}");
            }
        }
    }
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
