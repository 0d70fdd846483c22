//! Any outside program as one more system: `--peer NAME=COMMAND`.
//!
//! The command is run by the shell once a sample and prints its seconds as its last line. In it,
//! `{workload}`, `{workers}` and `{size}` stand for what the case is about.

use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};

use super::case::{Case, Sample, Size, Unit};

/// An outside program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name among the systems.
    pub name: String,
    /// What the shell runs.
    pub command: String,
}

impl FromStr for Peer {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, command) = text
            .split_once('=')
            .with_context(|| format!("a peer is NAME=COMMAND, and there is no `=` in `{text}`"))?;
        ensure!(!name.trim().is_empty(), "a peer is NAME=COMMAND, and `{text}` has no name");
        ensure!(!command.trim().is_empty(), "the peer `{name}` has no command");
        Ok(Peer { name: name.trim().to_owned(), command: command.to_owned() })
    }
}

impl Peer {
    /// This peer as a system of a workload.
    pub(crate) fn case(&self, workload: &'static str, workers: usize, size: Size) -> Case {
        let command = self
            .command
            .replace("{workload}", workload)
            .replace("{workers}", &workers.to_string())
            .replace("{size}", size.name());
        Case::new(workload, self.name.clone(), workers, Unit::SECONDS, || {
            Ok(move || run(&command).map(Sample::from))
        })
    }
}

fn run(command: &str) -> Result<f64> {
    let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let output = Command::new(shell)
        .args([option, command])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("could not start `{command}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        match said.trim_end().lines().next_back() {
            Some(said) => bail!("`{command}` ended with {}: {said}", output.status),
            None => bail!("`{command}` ended with {} and said nothing on stderr", output.status),
        }
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let last = printed.trim_end().lines().next_back().unwrap_or_default().trim();
    match last.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        _ => bail!("the last line that `{command}` prints must be its seconds, not `{last}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_command() {
        let peer: Peer = "lace=./fib -w {workers} a=b".parse().unwrap();
        assert_eq!(peer, Peer { name: "lace".into(), command: "./fib -w {workers} a=b".into() });
        for (text, why) in
            [("lace", "there is no `=`"), ("=x", "has no name"), ("lace= ", "has no command")]
        {
            let error = text.parse::<Peer>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn the_last_line_is_the_seconds() {
        let seconds = run("echo warming up; echo ' 1.25 '").unwrap();
        assert!((seconds - 1.25).abs() < f64::EPSILON);
    }

    #[test]
    #[cfg(unix)]
    fn a_peer_that_fails_or_prints_no_number() {
        for (command, why) in [
            ("echo 1; exit 3", "ended with exit status: 3 and said nothing on stderr"),
            ("echo sorry >&2; false", "sorry"),
            ("echo fast", "must be its seconds, not `fast`"),
            ("true", "must be its seconds, not ``"),
            ("echo NaN", "must be its seconds, not `NaN`"),
            ("echo -1", "must be its seconds, not `-1`"),
            ("no-such-program-here", "ended with exit status: 127"),
        ] {
            let error = format!("{:#}", run(command).unwrap_err());
            assert!(error.contains(why), "{command}: {error}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_case_fills_in_what_it_is_about() {
        let peer = Peer {
            name: "echo".into(),
            command: "test {workload}-{size} = fib-quick && echo {workers}".into(),
        };
        let case = peer.case("fib", 3, Size::Quick);
        let sample = (case.prepare)().unwrap()().unwrap();
        assert!((sample.value - 3.0).abs() < f64::EPSILON);
    }
}
