//! What a run ran on. A figure without it says nothing.

use std::collections::BTreeMap;
use std::fs;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

/// The machine and the build. What could not be found out is an empty text or a zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// The processors that this process may use.
    pub cores: usize,
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
    /// The versions of the peers from crates.io.
    pub peers: BTreeMap<String, String>,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let kernel = read("/proc/sys/kernel/osrelease");
        Machine {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores: available_parallelism().map_or(0, Into::into),
            memory_bytes: meminfo("MemTotal").unwrap_or(0),
            os: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            rustc: env!("POACH_RUSTC").to_owned(),
            profile: env!("POACH_PROFILE").to_owned(),
            commit: env!("POACH_COMMIT").to_owned(),
            peers: peers(env!("POACH_PEERS")),
        }
    }
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
