//! `cargo xtask rayon-bench`: rayon's iterators on the original core and on `compat/rayon-core`, in
//! turn.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::published::on_both_cores;
use crate::samples::median;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How often each core runs each workload and size, in turn.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// These workloads alone.
    #[arg(long, value_delimiter = ',')]
    workload: Vec<String>,
}

/// The sizes of a workload that has no limit below them.
const SIZES: [usize; 6] = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// A program that times workloads as it is asked.
struct Program {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Program {
    fn start(binary: &Path, threads: usize) -> Result<Program> {
        let mut child = Command::new(binary)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start {}", binary.display()))?;
        let ask = child.stdin.take().context("its input is piped")?;
        let answers = BufReader::new(child.stdout.take().context("its output is piped")?);
        Ok(Program { child, ask, answers })
    }

    fn ask(&mut self, line: &str) -> Result<String> {
        writeln!(self.ask, "{line}")?;
        let mut answer = String::new();
        ensure!(self.answers.read_line(&mut answer)? != 0, "`{line}` ended the program");
        Ok(answer.trim_end().to_owned())
    }

    fn end(mut self) -> Result<()> {
        drop(self.ask);
        ensure!(self.child.wait()?.success(), "a program failed");
        Ok(())
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let binaries = on_both_cores("build --release")?;
    println!(
        "Times of the original core as multiples of Poach's, and microseconds of Poach's; medians of {} rounds.",
        options.rounds
    );
    for &threads in &options.threads {
        println!("\n| threads {threads} | {} |", SIZES.map(|size| size.to_string()).join(" | "));
        println!("|---|{}", "---|".repeat(SIZES.len()));
        let mut programs = Vec::new();
        for binary in &binaries {
            programs.push(Program::start(&binary.join("iterators"), threads)?);
        }
        let list = programs[0].ask("list")?;
        let words: Vec<&str> = list.split_whitespace().collect();
        for workload in words.chunks(2) {
            let (name, most) = (workload[0], workload[1].parse::<usize>()?);
            if !options.workload.is_empty() && !options.workload.iter().any(|only| only == name) {
                continue;
            }
            print!("| {name} |");
            for size in SIZES.map(|size| if name == "fib" { fib_size(size) } else { size }) {
                if size > most {
                    print!(" |");
                    continue;
                }
                let [original, poach] = medians(&mut programs, options.rounds, name, size)?;
                print!(" {:.2} ({:.1}) |", original / poach, poach / 1e3);
                std::io::stdout().flush()?;
            }
            println!();
        }
        programs.into_iter().try_for_each(Program::end)?;
    }
    if options.workload.is_empty() { pools(&binaries, options.rounds) } else { Ok(()) }
}

/// What `compat/pools.rs` measures, in its order.
const POOLS: [(&str, &str, f64); 5] = [
    ("address space that a pool of 64 threads adds", "MiB", (1 << 20) as f64),
    ("memory that it adds once each thread has worked", "MiB", (1 << 20) as f64),
    ("a pool of 1 thread made and dropped", "us", 1.0),
    ("a pool of 2 threads made and dropped", "us", 1.0),
    ("the same, with a join in it", "us", 1.0),
];

/// A table of what pools cost, medians of runs in turn.
fn pools(directories: &[PathBuf], rounds: usize) -> Result<()> {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (directory, runs) in directories.iter().zip(&mut runs) {
            let output = Command::new(directory.join("pools")).output()?;
            ensure!(output.status.success(), "pools: {}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout)?;
            let numbers: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
            runs.push(numbers?);
        }
    }
    println!("\n| pools | original | Poach |\n|---|---|---|");
    for (index, (what, unit, one)) in POOLS.into_iter().enumerate() {
        let [original, poach] = [0, 1].map(|core| {
            let values: Vec<f64> = runs[core].iter().map(|run: &Vec<f64>| run[index]).collect();
            median(&values) / one
        });
        println!("| {what}, {unit} | {original:.1} | {poach:.1} |");
    }
    Ok(())
}

/// The number for which Fibonacci's tree has about `leaves` leaves.
fn fib_size(leaves: usize) -> usize {
    let (mut a, mut b, mut n) = (1, 1, 1);
    while b < leaves {
        (a, b, n) = (b, a + b, n + 1);
    }
    n
}

fn medians(programs: &mut [Program], rounds: usize, name: &str, size: usize) -> Result<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (program, times) in programs.iter_mut().zip(&mut times) {
            times.push(program.ask(&format!("{name} {size}"))?.parse::<f64>()?);
        }
    }
    Ok(times.map(|times| median(&times)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_about_so_many_leaves() {
        assert_eq!([100, 1_000, 10_000].map(fib_size), [11, 16, 20]);
    }
}
