//! Where runs are kept: a directory for each day and machine.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use crate::Machine;

/// `root/<date>-<machine>`, of today (UTC) and this machine: `2026-11-21-amd-epyc-2-cores`.
pub fn directory(root: &Path, machine: &Machine) -> PathBuf {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    root.join(name(since.as_secs(), machine))
}

/// The day (UTC) of a moment in seconds since 1970: `2026-11-21`.
pub fn day(seconds: u64) -> String {
    let second = Timestamp::from_second(seconds as i64).unwrap_or(Timestamp::MAX);
    second.strftime("%Y-%m-%d").to_string()
}

fn name(seconds: u64, machine: &Machine) -> String {
    let mut cpu = String::new();
    for letter in machine.cpu.chars().filter(char::is_ascii) {
        if letter.is_ascii_alphanumeric() {
            cpu.push(letter.to_ascii_lowercase());
        } else if !cpu.is_empty() && !cpu.ends_with('-') {
            cpu.push('-');
        }
    }
    let cpu = if cpu.is_empty() { machine.arch.as_str() } else { cpu.trim_end_matches('-') };
    format!("{}-{cpu}-{}-cores", day(seconds), machine.cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_by_the_calendar() {
        // From `date -u -d @SECONDS +%F`.
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (1_735_603_200, "2024-12-31"),
            (1_795_219_200, "2026-11-21"),
        ] {
            assert_eq!(super::day(seconds), day);
        }
    }

    #[test]
    fn a_name_without_blanks() {
        let machine = Machine { cpu: "AMD EPYC (4th)  Gen".into(), cores: 2, ..Machine::default() };
        assert_eq!(name(0, &machine), "1970-01-01-amd-epyc-4th-gen-2-cores");
        let unknown = Machine { arch: "riscv64".into(), cores: 1, ..Machine::default() };
        assert_eq!(name(0, &unknown), "1970-01-01-riscv64-1-cores");
    }
}
