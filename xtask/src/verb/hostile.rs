//! `cargo xtask hostile`: what pools do on machines that give them little, the original core beside the drop-in.
//!
//! `compat/hostile.rs` is built with both cores. Each of its rows runs on each of [`MACHINES`], on both cores in turn, in a process of
//! its own that is ended after some seconds. The table says how often it came out right, the medians of its processor time and time, and what happened otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::published::cargo;
use crate::workspace;

/// A machine that gives little: its name, what a shell does before it becomes the program, and what else the program is told.
struct Machine {
    name: &'static str,
    shell: &'static str,
    late: bool,
}

const fn machine(name: &'static str, shell: &'static str) -> Machine {
    Machine { name, shell, late: false }
}

/// `$FILTERED` runs a program under a filter, and `$ANYBODY` as a user who has no other process.
const MACHINES: &[Machine] = &[
    machine("as it is", "exec"),
    machine("membarrier: EPERM", "exec $FILTERED eperm"),
    machine("membarrier: ENOSYS", "exec $FILTERED enosys"),
    Machine { name: "membarrier: EPERM once it has worked", shell: "exec", late: true },
    machine("POACH_BARRIER=off", "export POACH_BARRIER=off; exec"),
    machine("one processor", "exec taskset -c 0"),
    machine("ulimit -v 2000000", "ulimit -v 2000000; exec"),
    machine("ulimit -v 600000", "ulimit -v 600000; exec"),
    machine("ulimit -v 200000", "ulimit -v 200000; exec"),
    machine("ulimit -v 60000", "ulimit -v 60000; exec"),
    machine("ulimit -u 6", "exec $ANYBODY sh -c 'ulimit -u 6; exec \"$@\"' -"),
    machine("ulimit -u 2", "exec $ANYBODY sh -c 'ulimit -u 2; exec \"$@\"' -"),
];

/// A user that no system has.
const ANYBODY: &str = "setpriv --reuid 54321 --regid 54321 --clear-groups";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How often each row is run on each machine and core.
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Seconds after which a run counts as one that hangs.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Only machines whose name contains this.
    #[arg(long)]
    machine: Option<String>,
    /// Only rows whose name contains this.
    #[arg(long)]
    row: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    // Where anybody may read it, whoever runs this.
    let directory = std::env::temp_dir().join(format!("poach-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let table = table(options, &directory);
    std::fs::remove_dir_all(&directory)?;
    table
}

fn table(options: &Options, directory: &Path) -> Result<()> {
    let mut programs = Vec::new();
    for package in ["patched", "original"] {
        let target = workspace::target_directory()?.join("compat").join(package);
        cargo(
            "build --release --bin hostile",
            &workspace::root().join("compat").join(package),
            &target,
        )
        .run("the program does not build")?;
        let program = directory.join(package);
        std::fs::copy(target.join("release/hostile"), &program)?;
        programs.push(program);
    }
    let list = Command::new(&programs[0]).arg("list").output()?;
    ensure!(list.status.success(), "the program does not say which rows it has");
    let list = String::from_utf8(list.stdout)?;
    let is_chosen =
        |name: &str, only: &Option<String>| only.as_ref().is_none_or(|only| name.contains(&**only));
    println!(
        "| machine | row | Poach | CPU ms | ms | rayon-core | CPU ms | ms |\n|---|---|---|---|---|---|---|---|"
    );
    for machine in MACHINES.iter().filter(|machine| is_chosen(machine.name, &options.machine)) {
        for row in list.lines().filter(|row| is_chosen(row, &options.row)) {
            let mut runs = programs.iter().map(|_| Runs::default()).collect::<Vec<_>>();
            for _ in 0..options.times {
                for (program, runs) in programs.iter().zip(&mut runs) {
                    runs.add(&once(machine, program, row, options.seconds)?);
                }
            }
            let cells: Vec<String> =
                runs.iter_mut().map(|runs| runs.cells(options.times)).collect();
            println!("| {} | {row} | {} |", machine.name, cells.join(" | "));
        }
    }
    Ok(())
}

/// How a run ended.
enum Ended {
    /// Right, after so many milliseconds of a processor, and so many.
    Right(u64, u64),
    Otherwise(String),
}

/// Runs a row once.
fn once(machine: &Machine, program: &PathBuf, row: &str, seconds: u32) -> Result<Ended> {
    let this = std::env::current_exe()?;
    let script = format!("{} \"$@\"", machine.shell);
    let output = Command::new("timeout")
        .args(["--kill-after", "1", &seconds.to_string(), "sh", "-c", &script, "-"])
        .arg(program)
        .arg(row)
        .args(machine.late.then_some("late"))
        .env("FILTERED", format!("{} filtered", this.display()))
        .env("ANYBODY", ANYBODY)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()
        .context("could not start `timeout` (coreutils)")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut numbers = printed.split_whitespace().map(str::parse);
    if let (true, Some(Ok(processor)), Some(Ok(all))) =
        (output.status.success(), numbers.next(), numbers.next())
    {
        return Ok(Ended::Right(processor, all));
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = errors.lines().find(|line| !line.trim().is_empty() && !line.starts_with("thread '"));
    let said: String = said.unwrap_or_default().trim().replace('|', "/").chars().take(90).collect();
    Ok(Ended::Otherwise(match output.status.code() {
        Some(124 | 137) => "hangs".to_owned(),
        Some(1) => format!("error: {said}"),
        Some(101) => format!("panic: {said}"),
        _ => format!("aborts: {said}"),
    }))
}

/// How the runs of a row on one machine and core ended.
#[derive(Default)]
struct Runs {
    right: Vec<(u64, u64)>,
    otherwise: BTreeMap<String, usize>,
}

impl Runs {
    fn add(&mut self, ended: &Ended) {
        match ended {
            Ended::Right(processor, all) => self.right.push((*processor, *all)),
            Ended::Otherwise(how) => *self.otherwise.entry(how.clone()).or_default() += 1,
        }
    }

    /// The three cells.
    fn cells(&self, times: usize) -> String {
        let median = |mut values: Vec<u64>| {
            values.sort_unstable();
            values.get(values.len() / 2).map(u64::to_string).unwrap_or_default()
        };
        let mut outcome = vec![format!("{}/{times}", self.right.len())];
        outcome.extend(self.otherwise.iter().map(|(how, count)| format!("{count}: {how}")));
        let processor = median(self.right.iter().map(|run| run.0).collect());
        let all = median(self.right.iter().map(|run| run.1).collect());
        format!("{} | {processor} | {all}", outcome.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_how_often_it_was_right_and_what_happened_otherwise() {
        let mut runs = Runs::default();
        runs.add(&Ended::Right(30, 7));
        runs.add(&Ended::Otherwise("hangs".to_owned()));
        runs.add(&Ended::Right(10, 9));
        runs.add(&Ended::Otherwise("hangs".to_owned()));
        runs.add(&Ended::Right(20, 8));
        assert_eq!(runs.cells(5), "3/5; 2: hangs | 20 | 8");
        assert_eq!(Runs::default().cells(5), "0/5 |  | ");
    }
}
