//! Asks whether an input fits before it is made. So an input that is too large fails its case, and
//! neither the allocator nor the system ends the program.
//!
//! The memory that is available is the least of three:
//!
//! - what the machine can give without swapping (`MemAvailable`);
//! - what the limit of the address space leaves (`ulimit -v`);
//! - what the limits of the control group and of the groups above it leave, as containers have
//!   them.
//!
//! A value that cannot be read sets no limit.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use super::machine::{field, meminfo, read};

/// What stays free beside an input: for the document, the figures and the queues.
const SPARE: u64 = 64 << 20;

/// What can be had, and what keeps it from being more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    bytes: u64,
    by: &'static str,
}

const NO_LIMIT: Limit = Limit { bytes: u64::MAX, by: "on this machine" };

/// A case calls this before it makes an input of `bytes` bytes.
///
/// # Errors
///
/// If there is less; the message says how much there is, what limits it, and what can be done.
/// Where that cannot be told there is no error.
pub fn need_memory(bytes: u64) -> Result<()> {
    let machine = meminfo("MemAvailable").map_or(NO_LIMIT, |bytes| Limit { bytes, ..NO_LIMIT });
    let group = control_group(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup"));
    let limit = [machine, group, address_space()].into_iter().min_by_key(|limit| limit.bytes);
    let instead = "choose a smaller size (--quick is the smallest, --paper the largest) or other \
                   workloads";
    ask("its input needs", bytes, limit.unwrap_or(NO_LIMIT), instead)
}

/// A system calls this before it starts threads whose call stacks are `bytes` bytes together. Call
/// stacks are address space, and only what is used of them is memory.
///
/// # Errors
///
/// As [`need_memory`].
pub(crate) fn need_stacks(bytes: u64) -> Result<()> {
    let instead = "run fewer systems of a workload at a time (--system)";
    ask("the stacks of its workers need", bytes, address_space(), instead)
}

fn ask(what: &str, bytes: u64, limit: Limit, instead: &str) -> Result<()> {
    let (needed, there) = (bytes.saturating_add(SPARE) >> 20, limit.bytes >> 20);
    ensure!(
        needed <= there,
        "{what} {} MiB of memory and {} MiB beside that, and {there} MiB are available {}: give it more, \
         or {instead}",
        bytes >> 20,
        SPARE >> 20,
        limit.by
    );
    Ok(())
}

/// What the limit of the address space leaves.
fn address_space() -> Limit {
    let left = || {
        let limit = limit_of(&read("/proc/self/limits"))?;
        let used = field(&read("/proc/self/status"), "VmSize")?;
        let used = used.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
        Some(limit.saturating_sub(used))
    };
    let by = "in its address space (`ulimit -v`)";
    left().map_or(NO_LIMIT, |bytes| Limit { bytes, by })
}

/// The soft limit of the address space in the form of `/proc/self/limits`; none if it is unlimited.
fn limit_of(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The files of a control group, and what `memory.stat` calls the part of files that makes way.
struct Files {
    limit: &'static str,
    used: &'static str,
    cached: &'static str,
}

const SECOND: Files =
    Files { limit: "memory.max", used: "memory.current", cached: "inactive_file " };
const FIRST: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: "total_inactive_file ",
};

/// What the limits of the control group, and of the groups that it is in, leave. `listed` has the
/// form of `/proc/self/cgroup`: the line of version 2 begins with `0::`, a line of version 1 names
/// `memory`.
fn control_group(root: &Path, listed: &str) -> Limit {
    let left = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, files) = match controllers {
            "" => (root.to_owned(), SECOND),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), FIRST)
            }
            _ => return None,
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        groups.filter_map(|group| left_in(&root.join(group), &files)).min()
    };
    let by = "in its control group";
    listed.lines().filter_map(left).min().map_or(NO_LIMIT, |bytes| Limit { bytes, by })
}

fn left_in(group: &Path, files: &Files) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let limit = number(files.limit)?;
    let cached = read("memory.stat").and_then(|stat| {
        let line = stat.lines().find_map(|line| line.strip_prefix(files.cached))?;
        line.trim().parse::<u64>().ok()
    });
    let used = number(files.used)?.saturating_sub(cached.unwrap_or(0));
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said_with_what_to_do() {
        let limit = Limit { bytes: 100 << 20, by: "here" };
        let ask = |bytes, limit| ask("its input needs", bytes, limit, "choose another");
        ask(36 << 20, limit).unwrap();
        let error = ask(37 << 20, limit).unwrap_err().to_string();
        assert_eq!(
            error,
            "its input needs 37 MiB of memory and 64 MiB beside that, and 100 MiB are available \
             here: give it more, or choose another"
        );
        assert!(ask(u64::MAX, limit).is_err());
        assert!(ask(u64::MAX, NO_LIMIT).is_ok());
    }

    #[test]
    fn reads_the_limit_of_the_address_space() {
        let limits = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max cpu time              unlimited            unlimited            seconds   \n\
                 Max address space         {soft:20} unlimited            bytes     \n"
            )
        };
        assert_eq!(limit_of(&limits("1024000")), Some(1_024_000));
        assert_eq!(limit_of(&limits("unlimited")), None);
        assert_eq!(limit_of(""), None);
    }

    #[test]
    fn the_narrowest_control_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        let put = |path: &str, text: &str| fs::write(root.path().join(path), text).unwrap();
        let listed = "1:name=other:/elsewhere\n0::/outer/inner\n";
        assert_eq!(control_group(root.path(), listed), NO_LIMIT);
        put("outer/memory.max", "1000\n");
        put("outer/memory.current", "700\n");
        put("outer/inner/memory.max", "max\n");
        put("outer/inner/memory.current", "700\n");
        assert_eq!(control_group(root.path(), listed).bytes, 300);
        put("outer/memory.stat", "anon 600\ninactive_file 100\n");
        assert_eq!(control_group(root.path(), listed).bytes, 400);
        put("outer/inner/memory.max", "800\n");
        assert_eq!(control_group(root.path(), listed).bytes, 100);
        assert_eq!(control_group(root.path(), "0::/\n"), NO_LIMIT);

        // The first version beside it.
        let listed = "5:memory:/first\n4:cpu,cpuacct:/outer/inner\n0::/outer\n";
        assert_eq!(control_group(root.path(), listed).bytes, 400);
        fs::create_dir_all(root.path().join("memory/first")).unwrap();
        put("memory/first/memory.limit_in_bytes", "500\n");
        put("memory/first/memory.usage_in_bytes", "300\n");
        assert_eq!(control_group(root.path(), listed).bytes, 200);
        put("memory/first/memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
        assert_eq!(control_group(root.path(), listed).bytes, 250);
    }
}
