//! `cargo xtask hostile`: what pools do on machines that give them little, the original core
//! beside the drop-in.
//!
//! `compat/hostile.rs` is built with both cores. Each of its rows runs on each of [`MACHINES`], on
//! both cores in turn, in a process of its own that is ended after some seconds. The table says how
//! often it came out right, and after how much processor time. What happened otherwise is listed
//! below it. The verb fails where the original core was right more often, and where Poach is not
//! right each time on the machine as it is. The rows of `par_bridge` are an exception: on either
//! core a thread may wait in vain for a lock that is held across a join. The verb names the cells
//! in which neither was ever right, which compare nothing. If a filter cannot be installed, all
//! cells of that machine are such.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::published::on_both_cores;

/// A machine that gives little: its name, what a shell does before it becomes the program, and
/// whether the program is told that the filter comes late.
struct Machine {
    name: &'static str,
    shell: &'static str,
    late: bool,
}

const fn machine(name: &'static str, shell: &'static str) -> Machine {
    Machine { name, shell, late: false }
}

const AS_IT_IS: &str = "as it is";

/// `$FILTERED` runs a program under a filter, and `$ANYBODY` as a user without another process.
const MACHINES: &[Machine] = &[
    machine(AS_IT_IS, "exec"),
    machine("`EPERM`", "exec $FILTERED eperm"),
    machine("`ENOSYS`", "exec $FILTERED enosys"),
    Machine { name: "late `EPERM`", shell: "exec", late: true },
    machine("`POACH_BARRIER=off`", "export POACH_BARRIER=off; exec"),
    machine("one processor", "exec taskset -c 0"),
    machine("`ulimit -v 2000000`", "ulimit -v 2000000 && exec"),
    machine("`ulimit -v 600000`", "ulimit -v 600000 && exec"),
    machine("`ulimit -v 200000`", "ulimit -v 200000 && exec"),
    machine("`ulimit -v 60000`", "ulimit -v 60000 && exec"),
    machine("`ulimit -u 6`", "exec $ANYBODY prlimit --nproc=6"),
    machine("`ulimit -u 2`", "exec $ANYBODY prlimit --nproc=2"),
];

/// A user that no system has.
const ANYBODY: &str = "setpriv --reuid 54321 --regid 54321 --clear-groups";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How often each row is run on each machine and core.
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Seconds after which a run counts as hanging.
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
    // Every user must be able to read this directory.
    let directory = std::env::temp_dir().join(format!("poach-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let table = table(options, &directory);
    std::fs::remove_dir_all(&directory)?;
    table
}

fn table(options: &Options, directory: &Path) -> Result<()> {
    // By name, so that this program may be built again meanwhile, and where anybody may run it.
    std::fs::copy(std::env::current_exe()?, directory.join("xtask"))?;
    let mut programs = Vec::new();
    let [original, poach] = on_both_cores("build --release --bin hostile")?;
    for (built, core) in [(poach, "Poach"), (original, "rayon-core")] {
        let program = directory.join(core);
        std::fs::copy(built.join("hostile"), &program)?;
        programs.push((core, program));
    }
    let list = Command::new(&programs[0].1).arg("list").output()?;
    ensure!(list.status.success(), "the program does not say which rows it has");
    let list = String::from_utf8(list.stdout)?;
    let is_chosen =
        |name: &str, only: &Option<String>| only.as_ref().is_none_or(|only| name.contains(&**only));
    let is_root = std::fs::metadata("/proc/self")?.uid() == 0;
    let (mut machines, mut left_out) = (Vec::new(), Vec::new());
    for machine in MACHINES.iter().filter(|machine| is_chosen(machine.name, &options.machine)) {
        let can_be_had = is_root || !machine.shell.contains("$ANYBODY");
        if can_be_had { machines.push(machine) } else { left_out.push(machine.name) }
    }
    if !left_out.is_empty() {
        eprintln!("hostile: LEFT OUT, since only root can: {}", left_out.join(", "));
    }
    let columns: Vec<_> = machines.iter().map(|machine| machine.name).collect();
    println!("| | | {} |\n|{}", columns.join(" | "), "---|".repeat(machines.len() + 2));
    let (mut otherwise, mut worse, mut neither) = (Vec::new(), Vec::new(), Vec::new());
    for row in list.lines().filter(|row| is_chosen(row, &options.row)) {
        let mut lines: Vec<_> =
            programs.iter().map(|(core, _)| vec![row.to_owned(), (*core).to_owned()]).collect();
        for machine in &machines {
            let mut runs = programs.iter().map(|_| Runs::default()).collect::<Vec<_>>();
            // In turn, so that what else the machine does meets both.
            for _ in 0..options.times {
                for ((_, program), runs) in programs.iter().zip(&mut runs) {
                    runs.add(&once(machine, program, row, options.seconds)?);
                }
            }
            for (((core, _), runs), line) in programs.iter().zip(&mut runs).zip(&mut lines) {
                line.push(runs.cell(options.times));
                let name = machine.name;
                let said = |(how, count)| format!("- {core}, {row}, {name}: {count} times {how}");
                otherwise.extend(runs.otherwise.iter().map(said));
            }
            let right = [&runs[0], &runs[1]].map(|runs| runs.right.len());
            let cell = format!("{row}, {}", machine.name);
            let must_be_right = machine.name == AS_IT_IS && !row.starts_with("par_bridge");
            if right[0] < right[1] || must_be_right && right[0] < options.times {
                worse.push(cell);
            } else if right == [0, 0] {
                neither.push(cell);
            }
        }
        for line in lines {
            println!("| {} |", line.join(" | "));
        }
    }
    println!(
        "\nA cell: how many runs came out right, and the median of their processor time in ms.\n"
    );
    println!("{}", otherwise.join("\n"));
    if !neither.is_empty() {
        eprintln!("hostile: neither core is right even once: {}", neither.join("; "));
    }
    ensure!(
        worse.is_empty(),
        "the original core is right more often, or Poach is wrong on the machine as it is: {}",
        worse.join("; ")
    );
    eprintln!("hostile: nowhere is the original core right more often than Poach");
    Ok(())
}

/// How a run ended.
enum Ended {
    /// Right, after this number of milliseconds of processor time.
    Right(u64),
    Otherwise(String),
}

/// Runs a row once.
fn once(machine: &Machine, program: &PathBuf, row: &str, seconds: u32) -> Result<Ended> {
    let this = program.with_file_name("xtask");
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
    if let (true, Ok(processor)) = (output.status.success(), printed.trim().parse()) {
        return Ok(Ended::Right(processor));
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
    right: Vec<u64>,
    otherwise: BTreeMap<String, usize>,
}

impl Runs {
    fn add(&mut self, ended: &Ended) {
        match ended {
            Ended::Right(processor) => self.right.push(*processor),
            Ended::Otherwise(how) => *self.otherwise.entry(how.clone()).or_default() += 1,
        }
    }

    fn cell(&mut self, times: usize) -> String {
        self.right.sort_unstable();
        let right = self.right.len();
        let median = self.right.get(right / 2).map(|median| format!(", {median}"));
        format!("{right}/{times}{}", median.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_says_how_often_it_was_right_and_how_long_that_took() {
        let mut runs = Runs::default();
        runs.add(&Ended::Right(30));
        runs.add(&Ended::Otherwise("hangs".to_owned()));
        runs.add(&Ended::Right(10));
        runs.add(&Ended::Otherwise("hangs".to_owned()));
        runs.add(&Ended::Right(20));
        assert_eq!(runs.cell(5), "3/5, 20");
        assert_eq!(runs.otherwise["hangs"], 2);
        assert_eq!(Runs::default().cell(5), "0/5");
    }
}
