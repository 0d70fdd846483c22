//! What a run ran on. A figure without it says nothing.

use std::collections::BTreeMap;
use std::fs;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

/// A hash of the sources' changes since the commit that was built; empty if there are none.
const DIRTY: &str = env!("POACH_DIRTY");

/// The machine and the build. What could not be found out is an empty text or a zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Its family, model and stepping, for a name says little of a processor.
    #[serde(default)]
    pub model: String,
    /// The processors that this process may use.
    pub cores: usize,
    /// How many of them share a core, as the system says: 2 with hyperthreads, 0 if it does not.
    #[serde(default)]
    pub threads_per_core: usize,
    /// The memory, in bytes.
    pub memory_bytes: u64,
    /// The operating system and its kernel's version.
    pub os: String,
    /// The instruction set.
    pub arch: String,
    /// The compiler of this program.
    pub rustc: String,
    /// `release` or `debug`.
    pub profile: String,
    /// The commit of this program.
    pub commit: String,
    /// What its source had that the commit has not: a hash of the difference, or nothing.
    #[serde(default)]
    pub dirty: String,
    /// The versions of the peers from crates.io.
    pub peers: BTreeMap<String, String>,
}

impl Machine {
    /// The commit, and whether it is all that the program was built from.
    pub fn source(&self) -> String {
        let commit = if self.commit.is_empty() { "unknown" } else { &self.commit };
        if self.dirty.is_empty() {
            format!("commit {commit}")
        } else {
            format!("commit {commit} with changes {}", self.dirty)
        }
    }

    /// This one.
    pub fn here() -> Self {
        let kernel = read("/proc/sys/kernel/osrelease");
        let cpu = read("/proc/cpuinfo");
        Machine {
            cpu: field(&cpu, "model name").unwrap_or_default(),
            model: model(&cpu),
            threads_per_core: siblings(&read(
                "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
            )),
            cores: available_parallelism().map_or(0, Into::into),
            memory_bytes: meminfo("MemTotal").unwrap_or(0),
            os: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            rustc: env!("POACH_RUSTC").to_owned(),
            profile: env!("POACH_PROFILE").to_owned(),
            commit: env!("POACH_COMMIT").to_owned(),
            dirty: DIRTY.to_owned(),
            peers: peers(env!("POACH_PEERS")),
        }
    }
}

/// The family, model and stepping that `/proc/cpuinfo` has on x86.
fn model(cpuinfo: &str) -> String {
    let number = |name: &str| {
        // `model` and `model name` begin alike.
        let is = |line: &&str| line.split(':').next().is_some_and(|field| field.trim() == name);
        field(cpuinfo.lines().find(is)?, name)
    };
    let part = |name: &str| Some(format!("{} {}", name.trim_start_matches("cpu "), number(name)?));
    ["cpu family", "model", "stepping"]
        .iter()
        .filter_map(|name| part(name))
        .collect::<Vec<_>>()
        .join(" ")
}

/// How many processors a list such as `0,4` or `0-1` names.
fn siblings(list: &str) -> usize {
    let range = |part: &str| -> Option<usize> {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(to.trim().parse::<usize>().ok()?.checked_sub(from.trim().parse().ok()?)? + 1)
    };
    list.split(',').filter_map(range).sum()
}

/// What else the machine does: where the system does not say so, zeros.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// The load average over a minute.
    pub(super) average: f64,
    /// The processors' time since they started, in ticks, and what of it the hypervisor gave to
    /// others.
    total: f64,
    stolen: f64,
}

impl Load {
    pub(super) fn now() -> Self {
        let average = read("/proc/loadavg");
        let average = average.split_whitespace().next().and_then(|text| text.parse().ok());
        let (total, stolen) = ticks(&read("/proc/stat")).unwrap_or_default();
        Load { average: average.unwrap_or_default(), total, stolen }
    }

    /// The percentage of the time since `earlier` that the hypervisor gave to others.
    pub(super) fn steal_percent(self, earlier: Load) -> f64 {
        let passed = self.total - earlier.total;
        if passed > 0.0 { 100.0 * (self.stolen - earlier.stolen) / passed } else { 0.0 }
    }
}

/// All ticks of the first line of `/proc/stat`, and the stolen ones. What guests had is in `user`
/// already.
fn ticks(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().filter_map(|text| text.parse().ok()).collect();
    Some((ticks.iter().take(8).sum(), *ticks.get(7)?))
}

pub(super) fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

pub(super) fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

pub(super) fn meminfo(name: &str) -> Option<u64> {
    let kibibytes = field(&read("/proc/meminfo"), name)?;
    Some(kibibytes.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn peers(listed: &str) -> BTreeMap<String, String> {
    let pairs = listed.split(',').filter_map(|peer| peer.split_once(' '));
    pairs.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_forms_of_proc() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU @ 3 GHz"));
        assert_eq!(field(text, "flags"), None);
    }

    #[test]
    fn a_processor_by_its_numbers_and_its_siblings() {
        let text = "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: EPYC\nstepping\t: 1\n";
        assert_eq!(model(text), "family 25 model 17 stepping 1");
        assert_eq!(model("BogoMIPS\t: 50\n"), "");
        for (list, count) in [("0\n", 1), ("0-1\n", 2), ("0,4\n", 2), ("0-1,8-9\n", 4), ("", 0)] {
            assert_eq!(siblings(list), count, "{list}");
        }
    }

    #[test]
    fn stolen_time_is_a_share_of_what_passed() {
        let load = |stat| {
            let (total, stolen) = ticks(stat).unwrap();
            Load { average: 0.0, total, stolen }
        };
        let earlier = load("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2 3\n");
        let later = load("cpu  20 0 20 130 0 0 0 30 9 0\n");
        assert!((later.steal_percent(earlier) - 20.0).abs() < 1e-9);
        assert!(earlier.steal_percent(earlier).abs() < 1e-9);
        assert!(ticks("intr 1 2 3").is_none());
    }

    #[test]
    fn knows_what_it_is_built_from() {
        let machine = Machine::here();
        assert!(machine.cores > 0);
        assert!(machine.rustc.starts_with("rustc "), "{}", machine.rustc);
        assert!(["debug", "release"].contains(&machine.profile.as_str()));
    }

    #[test]
    fn lists_peers_by_name() {
        let peers = peers("chili 0.2.1,rayon 1.12.0");
        assert_eq!(peers["rayon"], "1.12.0");
        assert!(super::peers("").is_empty());
    }
}
