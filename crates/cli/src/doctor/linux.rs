//! Checks for Linux: filters, limits of control groups, address space and large pages.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::{Finding, State};

pub(super) fn findings() -> Vec<Finding> {
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group(&text));
    let limits = |name: &str| -> Vec<String> {
        let groups = group.iter().flat_map(|group| group.ancestors());
        groups
            .take_while(|group| group.starts_with(GROUPS))
            .filter_map(|group| fs::read_to_string(group.join(name)).ok())
            .filter(|limit| !limit.starts_with("max"))
            .collect()
    };
    vec![
        seccomp(&fs::read_to_string("/proc/self/status").unwrap_or_default()),
        quota(&limits("cpu.max")),
        memory(&limits("memory.max")),
        address_space(
            getrlimit(Resource::As).current,
            fs::read_to_string("/proc/sys/vm/overcommit_memory").ok().as_deref(),
        ),
        files(getrlimit(Resource::Nofile).current),
        large_pages(
            fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok().as_deref(),
        ),
    ]
}

const GROUPS: &str = "/sys/fs/cgroup";

/// How a limit of unknown form is shown.
const UNREADABLE: &str = "Poach does not understand this limit.";

/// The directory of the process's group, by `/proc/self/cgroup` of version 2.
fn group(text: &str) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(GROUPS).join(path))
}

/// The number in `/proc/self/status`.
fn seccomp(status: &str) -> Finding {
    const WHAT: &str = "seccomp";
    match status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(str::trim) {
        Some("0") => Finding::new(WHAT, State::Good, "no filter", "No system call is refused."),
        Some("1" | "2") => Finding::new(
            WHAT,
            State::Known,
            "a filter",
            "If it refuses membarrier(2), owners execute full fences. If it refuses sched_setaffinity(2), workers cannot be pinned.",
        ),
        _ => Finding::new(WHAT, State::Known, "unknown", "Poach works with a filter and without."),
    }
}

/// The limits of a control group and its ancestors: "quota period", both in microseconds. The
/// smallest counts.
fn quota(limits: &[String]) -> Finding {
    const WHAT: &str = "cgroup CPU quota";
    let processors = |limit: &String| {
        let mut numbers = limit.split_whitespace().map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(quota)), Some(Ok(period))) if period > 0.0 => Some(quota / period),
            _ => None,
        }
    };
    match limits.iter().map(processors).collect::<Option<Vec<f64>>>() {
        None => Finding::new(WHAT, State::Known, limits.concat().trim(), UNREADABLE),
        Some(limits) => match limits.into_iter().reduce(f64::min) {
            None => Finding::new(WHAT, State::Good, "none", "Workers can use whole processors."),
            Some(least) => Finding::new(
                WHAT,
                State::Known,
                format!("{least:.2} processors"),
                "A pool has this number of workers by default, rounded down, at least one. Threads that exceed the quota pause until the next period.",
            ),
        },
    }
}

/// The limits of a control group and its ancestors, in bytes. The smallest counts.
fn memory(limits: &[String]) -> Finding {
    const WHAT: &str = "cgroup memory limit";
    let bytes = |limit: &String| limit.trim().parse::<u64>().ok();
    match limits.iter().map(bytes).collect::<Option<Vec<u64>>>() {
        None => Finding::new(WHAT, State::Known, limits.concat().trim(), UNREADABLE),
        Some(limits) => match limits.into_iter().min() {
            None => Finding::new(WHAT, State::Good, "none", "Pools can use all memory."),
            Some(least) => Finding::new(
                WHAT,
                State::Known,
                format!("{} MiB", least >> 20),
                "A pool's memory counts page by page, when it is first used.",
            ),
        },
    }
}

/// The limit of the process in bytes, and the system's rule for reserved memory.
fn address_space(limit: Option<u64>, overcommit: Option<&str>) -> Finding {
    const WHAT: &str = "address space";
    let charged = overcommit.is_some_and(|rule| rule.trim() == "2");
    let given = match limit {
        None => "no limit".to_owned(),
        Some(bytes) => format!("{} MiB (ulimit -v)", bytes >> 20),
    };
    let so = "Pools reserve deques and call stacks whole, and use them page by page.";
    match (limit, charged) {
        (None, false) => Finding::new(WHAT, State::Good, given, so),
        (_, true) => {
            let given = format!("{given}; reserved memory is charged (overcommit_memory 2)");
            Finding::new(WHAT, State::Known, given, so)
        }
        (Some(_), false) => {
            let so =
                format!("{so} `ThreadPoolBuilder::task_stack` and `stack_size` make them smaller.");
            Finding::new(WHAT, State::Known, given, so)
        }
    }
}

/// The number of files that the process may have open.
fn files(limit: Option<u64>) -> Finding {
    let given =
        limit.map_or_else(|| "no limit".to_owned(), |number| format!("{number} (ulimit -n)"));
    let so = "If this is too few, `poach scan` lists the directories that it could not read.";
    Finding::new("open files", State::Good, given, so)
}

/// The system's use of large pages: the word in brackets.
fn large_pages(enabled: Option<&str>) -> Finding {
    const WHAT: &str = "large pages";
    let chosen = enabled.and_then(|text| text.split(['[', ']']).nth(1));
    let given = chosen.unwrap_or("unknown").to_owned();
    Finding::new(
        WHAT,
        State::Known,
        given,
        "Poach requests none, because growing queues became slower with them.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_the_one_of_version_2() {
        let text = "1:cpu:/old\n0::/user.slice/session-1.scope\n";
        assert_eq!(group(text).unwrap(), Path::new("/sys/fs/cgroup/user.slice/session-1.scope"));
        assert_eq!(group("0::/\n").unwrap(), Path::new("/sys/fs/cgroup/"));
        assert_eq!(group("1:cpu:/old\n"), None);
    }

    #[test]
    fn of_several_groups_the_smallest_limit_counts_and_garbage_is_said_to_be() {
        let limits = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert_eq!(quota(&limits(&["400000 100000", "150000 100000\n"])).given, "1.50 processors");
        assert_eq!(quota(&[]).state, State::Good);
        for garbage in ["", "1", "x y", "5 0"] {
            assert_eq!(quota(&limits(&["1 1", garbage])).so, UNREADABLE, "{garbage}");
        }
        assert_eq!(memory(&limits(&["2147483648", "1073741824\n"])).given, "1024 MiB");
        assert_eq!(memory(&limits(&["1", "-"])).so, UNREADABLE);
        assert_eq!(memory(&[]).state, State::Good);
    }

    #[test]
    fn filters_and_limits_are_told_from_none() {
        assert_eq!(seccomp("Name:\tx\nSeccomp:\t0\n").state, State::Good);
        assert_eq!(seccomp("Seccomp:\t2\n").given, "a filter");
        assert_eq!(seccomp("").state, State::Known);
        assert_eq!(files(Some(64)).given, "64 (ulimit -n)");
        assert_eq!(files(None).given, "no limit");
        assert_eq!(large_pages(Some("always [madvise] never\n")).given, "madvise");
        assert_eq!(large_pages(Some("garbage")).given, "unknown");
    }

    #[test]
    fn a_limit_of_address_space_and_a_charge_for_it_are_said() {
        assert_eq!(address_space(Some(1 << 30), None).given, "1024 MiB (ulimit -v)");
        assert!(address_space(None, Some("2\n")).given.contains("charged"));
        assert_eq!(address_space(None, Some("0\n")).state, State::Good);
    }
}
