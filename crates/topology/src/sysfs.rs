//! The processors as Linux describes them below `/sys/devices`.
//!
//! | file | what is taken from it |
//! |---|---|
//! | `system/cpu/online` | which processors there are; without it, the directories `cpu<n>` |
//! | `system/cpu/cpu<n>/topology/physical_package_id` | the package |
//! | `system/cpu/cpu<n>/topology/thread_siblings_list` | the core |
//! | `system/cpu/cpu<n>/cache/index<i>/{level,type,shared_cpu_list}` | the last-level cache |
//! | `system/cpu/cpu<n>/cpu_capacity` | the class, on ARM and RISC-V |
//! | `cpu_core/cpus`, `cpu_atom/cpus`, `cpu_lowpower/cpus` | the class, on Intel's hybrids |
//! | `system/node/node<n>/cpulist` | the node |
//! | `system/node/online`, `system/node/node<n>/distance` | how far the nodes are apart |
//!
//! Sources: the kernel's `Documentation/admin-guide/cputopology.rst`,
//! `Documentation/ABI/testing/sysfs-devices-system-cpu` and
//! `Documentation/ABI/stable/sysfs-devices-node`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Processor, Topology, TopologyError};

/// Below the devices: where the processors are.
pub(super) const PROCESSORS: &str = "system/cpu";
const NODES: &str = "system/node";

/// Intel's names for its kinds of cores, strongest first.
const KINDS: [&str; 3] = ["cpu_core/cpus", "cpu_atom/cpus", "cpu_lowpower/cpus"];

/// No system numbers its processors or nodes beyond this; a list that does is garbage, and must not
/// be unrolled.
const HIGHEST: usize = 1 << 20;

const A_LIST: &str = "a list of processors such as 0-3,8";
const A_NUMBER: &str = "a number";

pub(super) fn read(devices: &Path) -> Result<Topology, TopologyError> {
    let processors = devices.join(PROCESSORS);
    let online = match list(&processors.join("online"), A_LIST)? {
        Some(online) => online,
        None => numbered(&processors, "cpu")?.into_keys().collect(),
    };
    if online.is_empty() {
        return Err(TopologyError::NoProcessor);
    }
    let nodes = numbered(&devices.join(NODES), "node")?;
    let mut node_of = BTreeMap::new();
    for (&node, path) in &nodes {
        for id in list(&path.join("cpulist"), A_LIST)?.unwrap_or_default() {
            node_of.insert(id, node);
        }
    }
    let class_of = classes(devices, &online)?;
    let mut found = Vec::with_capacity(online.len());
    for &id in &online {
        let path = processors.join(format!("cpu{id}"));
        let siblings = list(&path.join("topology/thread_siblings_list"), A_LIST)?;
        let lowest = |ids: Option<BTreeSet<usize>>| {
            ids.into_iter().flatten().find(|sharer| online.contains(sharer))
        };
        let before = siblings.iter().flatten().filter(|sibling| online.contains(sibling));
        let thread = before.take_while(|&&sibling| sibling < id).count();
        found.push((
            Processor {
                id,
                node: node_of.get(&id).copied().unwrap_or(0),
                package: number(&path.join("topology/physical_package_id"))?.unwrap_or(0),
                cache: id,
                core: lowest(siblings).unwrap_or(id),
                thread,
                class: class_of.get(&id).copied().unwrap_or(0),
            },
            lowest(last_cache(&path.join("cache"))?),
        ));
    }
    // Where no cache is known, a node has one.
    let first_on: BTreeMap<usize, usize> =
        found.iter().rev().map(|(processor, _)| (processor.node, processor.id)).collect();
    let processors = found.into_iter().map(|(processor, cache)| Processor {
        cache: cache.unwrap_or(first_on[&processor.node]),
        ..processor
    });
    Ok(Topology { processors: processors.collect(), nodes: distances(devices, &nodes)? })
}

/// The processors that share the last-level cache, if the system says so.
fn last_cache(caches: &Path) -> Result<Option<BTreeSet<usize>>, TopologyError> {
    let mut last = None;
    for path in numbered(caches, "index")?.values() {
        let kind = text(&path.join("type"))?;
        if kind.as_deref() == Some("Instruction") {
            continue;
        }
        let level = number(&path.join("level"))?;
        if let (Some(level), Some(sharers)) = (level, list(&path.join("shared_cpu_list"), A_LIST)?)
        {
            if last.as_ref().is_none_or(|(highest, _)| level > *highest) {
                last = Some((level, sharers));
            }
        }
    }
    Ok(last.map(|(_, sharers)| sharers))
}

/// The class of each processor, where the system tells several kinds apart.
fn classes(
    devices: &Path,
    online: &BTreeSet<usize>,
) -> Result<BTreeMap<usize, usize>, TopologyError> {
    let mut class_of = BTreeMap::new();
    for (class, file) in KINDS.iter().enumerate() {
        for id in list(&devices.join(file), A_LIST)?.unwrap_or_default() {
            class_of.insert(id, class);
        }
    }
    if !class_of.is_empty() {
        return Ok(class_of);
    }
    let mut capacities = BTreeMap::new();
    for &id in online {
        let path = devices.join(PROCESSORS).join(format!("cpu{id}/cpu_capacity"));
        if let Some(capacity) = number(&path)? {
            capacities.insert(id, capacity);
        }
    }
    let kinds: BTreeSet<i64> = capacities.values().copied().collect();
    let class = |capacity| kinds.range(capacity + 1..).count();
    Ok(capacities.into_iter().map(|(id, capacity)| (id, class(capacity))).collect())
}

/// The table of distances: of each node, a row with one number for each online node.
fn distances(
    devices: &Path,
    nodes: &BTreeMap<usize, PathBuf>,
) -> Result<Vec<(usize, usize, u32)>, TopologyError> {
    const A_ROW: &str = "a distance for each online node";
    let online = list(&devices.join(NODES).join("online"), "a list of nodes such as 0-1")?
        .unwrap_or_else(|| nodes.keys().copied().collect());
    let mut table = Vec::new();
    for (&from, path) in nodes {
        let path = path.join("distance");
        let Some(row) = text(&path)? else {
            continue;
        };
        let garbage = || garbage(&path, &row, A_ROW);
        let row: Vec<u32> = row
            .split_whitespace()
            .map(|distance| distance.parse().map_err(|_| garbage()))
            .collect::<Result<_, _>>()?;
        if row.len() != online.len() {
            return Err(garbage());
        }
        table.extend(online.iter().zip(row).map(|(&to, distance)| (from, to, distance)));
    }
    Ok(table)
}

/// The entries `<name><number>` of a directory, by their numbers; none if there is no directory.
fn numbered(directory: &Path, name: &str) -> Result<BTreeMap<usize, PathBuf>, TopologyError> {
    let unreadable = |source| TopologyError::Unreadable { path: directory.to_owned(), source };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let number =
            entry.file_name().to_str().and_then(|entry| entry.strip_prefix(name)?.parse().ok());
        if let Some(number) = number {
            found.insert(number, entry.path());
        }
    }
    Ok(found)
}

/// What a file says, without the white space around it; `None` if there is no such file.
fn text(path: &Path) -> Result<Option<String>, TopologyError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TopologyError::Unreadable { path: path.to_owned(), source }),
    }
}

fn number(path: &Path) -> Result<Option<i64>, TopologyError> {
    let parse = |text: String| text.parse().map_err(|_| garbage(path, &text, A_NUMBER));
    text(path)?.map(parse).transpose()
}

fn list(path: &Path, expected: &'static str) -> Result<Option<BTreeSet<usize>>, TopologyError> {
    let parse = |text: String| parse_list(&text).ok_or_else(|| garbage(path, &text, expected));
    text(path)?.map(parse).transpose()
}

fn garbage(path: &Path, content: &str, expected: &'static str) -> TopologyError {
    let content = content.chars().take(40).collect();
    TopologyError::Garbage { path: path.to_owned(), content, expected }
}

/// Numbers and ranges of numbers, with commas between them: `0-3,8`. Nothing is the empty list.
fn parse_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut numbers = BTreeSet::new();
    if text.is_empty() {
        return Some(numbers);
    }
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > HIGHEST {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Ascending numbers, shown as a list in the system's form.
pub(super) struct List<'n>(pub(super) &'n [usize]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.0.chunk_by(|a, b| a + 1 == *b).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_they_are_written() {
        for text in ["0", "0-3", "0-3,8", "1,3,5-6,100-119", ""] {
            let numbers: Vec<usize> = parse_list(text).unwrap().into_iter().collect();
            assert_eq!(List(&numbers).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in
            [",", "0,", "-", "3-1", "0-", "a", "0 1", "-1", "0-99999999999", "1-2-3", "\u{0}"]
        {
            assert_eq!(parse_list(text), None, "{text:?}");
        }
    }
}
