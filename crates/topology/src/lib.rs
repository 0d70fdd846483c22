//! The processors of this machine: their cores, caches and nodes, and how far apart they are.
//!
//! Linux has this information in sysfs, in files of one line each. [`Topology::read_from`] reads
//! such a tree, real or made for a test; `sysfs.rs` lists the files. The library hwloc, through
//! `hwlocality`, knows more systems and more of each. But it is a C library that must be installed
//! or built with its own tools, and a default build of Poach needs no system package. To place
//! workers and to order victims takes the few lines that are read here.
//!
//! The first call in a process reads the machine. Each call asks again which processors may be
//! used, because that can change.
//!
//! | module | contents |
//! |---|---|
//! | `sysfs` | reads Linux's description of its processors |
//! | `placement` | the processor of each worker |
//! | `affinity` | which processors a thread may use, and binding it to one |
#![doc = include_str!("readme.md")]

mod affinity;
mod placement;
mod sysfs;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub use affinity::{allowed, bind};
pub use placement::Placement;

/// A processor: what the system runs one thread on at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Processor {
    /// The system's number for it.
    pub id: usize,
    /// Its memory node.
    pub node: usize,
    /// Its package, or socket. Systems that know none say -1.
    pub package: i64,
    /// The lowest number among the processors with the same last-level cache.
    pub cache: usize,
    /// The lowest number among the processors of the same core.
    pub core: usize,
    /// How many processors of its core come before it: 0 unless cores run several threads.
    pub thread: usize,
    /// 0 for the strongest kind of core, 1 for the next; all 0 unless the machine is a hybrid.
    pub class: usize,
}

/// How far it is from one processor to another. A smaller one is nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Distance {
    /// The same core, if not the same processor.
    Core,
    /// Another core under the same last-level cache.
    Cache,
    /// Another cache, the same memory node.
    Node,
    /// Another node, by the system's table of distances (10 is a node's to itself). Without a
    /// table: 0 in the same package, else 1.
    Remote(u32),
}

/// The processors that may be used, and how far apart they are.
///
/// ```
/// # #[cfg(target_os = "linux")]
/// # fn main() -> Result<(), poach_topology::TopologyError> {
/// let topology = poach_topology::Topology::read()?;
/// let first = topology.processors()[0];
/// println!("processor {} is on node {}", first.id, first.node);
/// # Ok(())
/// # }
/// # #[cfg(not(target_os = "linux"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// By their numbers, ascending; at least one.
    processors: Vec<Processor>,
    /// (From node, to node, distance), as the system lists them.
    nodes: Vec<(usize, usize, u32)>,
}

/// Why a topology cannot be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum TopologyError {
    /// The system refused to tell.
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds something else than it should.
    Garbage {
        /// The file.
        path: PathBuf,
        /// What it holds, the beginning of it.
        content: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// The system did not say which processors this thread may use.
    Affinity(io::Error),
    /// No processor is left that may be used.
    NoProcessor,
    /// A processor was named that is not there, or may not be used.
    Unknown {
        /// Its number.
        id: usize,
        /// The numbers there are.
        known: Vec<usize>,
    },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::Unreadable { path, source } => {
                write!(f, "{} cannot be read: {source}", path.display())
            }
            TopologyError::Garbage { path, content, expected } => {
                write!(f, "{} holds {content:?} where it should hold {expected}", path.display())
            }
            TopologyError::Affinity(source) => {
                write!(f, "the processors that this thread may use are not known: {source}")
            }
            TopologyError::NoProcessor => f.write_str(
                "no processor is left: those that may be used and those that are online have none in \
                 common",
            ),
            TopologyError::Unknown { id, known } => write!(
                f,
                "processor {id} is not there or may not be used by this thread: use some of {}",
                sysfs::List(known)
            ),
        }
    }
}

impl std::error::Error for TopologyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TopologyError::Unreadable { source, .. } | TopologyError::Affinity(source) => {
                Some(source)
            }
            _ => None,
        }
    }
}

/// Where Linux describes its devices.
const DEVICES: &str = "/sys/devices";

impl Topology {
    /// The processors of this machine that the calling thread may use. Linux only.
    ///
    /// Where there is no sysfs, as in some sandboxes, the topology is [flat](Topology::flat).
    ///
    /// # Errors
    ///
    /// [`TopologyError`]; on other systems always `Affinity`.
    pub fn read() -> Result<Topology, TopologyError> {
        static MACHINE: Mutex<Option<Topology>> = Mutex::new(None);
        let allowed = allowed().map_err(TopologyError::Affinity)?;
        // A forked child does not wait for a thread of its parent that held the lock: it reads
        // again.
        let mut known = MACHINE.try_lock().ok();
        if let Some(Some(machine)) = known.as_deref() {
            return machine.restrict(&allowed);
        }
        let devices = Path::new(DEVICES);
        if !devices.join(sysfs::PROCESSORS).exists() {
            return Topology::flat(&allowed);
        }
        let machine = Topology::read_from(devices)?;
        let restricted = machine.restrict(&allowed);
        if let Some(known) = known.as_deref_mut() {
            *known = Some(machine);
        }
        restricted
    }

    /// Reads the online processors from a tree in the form of Linux's `/sys/devices`.
    ///
    /// A missing file means that the system does not know. Without node directories there is one
    /// node. Without cache directories a node has one cache. Without siblings a core has one
    /// thread.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]: something cannot be read, or is not what it should be.
    pub fn read_from(devices: &Path) -> Result<Topology, TopologyError> {
        sysfs::read(devices)
    }

    /// Processors of which nothing is known but their numbers: each a core of its own, under one
    /// cache, on one node.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NoProcessor`], if there is none.
    pub fn flat(ids: &[usize]) -> Result<Topology, TopologyError> {
        let cache = ids.iter().copied().min().ok_or(TopologyError::NoProcessor)?;
        let flat = |id| Processor { id, node: 0, package: 0, cache, core: id, thread: 0, class: 0 };
        let mut processors: Vec<_> = ids.iter().copied().map(flat).collect();
        processors.sort_by_key(|processor| processor.id);
        processors.dedup();
        Ok(Topology { processors, nodes: Vec::new() })
    }

    /// Those of the processors whose numbers are `allowed`.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NoProcessor`], if none is.
    pub fn restrict(&self, allowed: &[usize]) -> Result<Topology, TopologyError> {
        let mut left = self.clone();
        left.processors.retain(|processor| allowed.contains(&processor.id));
        if left.processors.is_empty() {
            return Err(TopologyError::NoProcessor);
        }
        Ok(left)
    }

    /// The processors, by their numbers; at least one.
    pub fn processors(&self) -> &[Processor] {
        &self.processors
    }

    /// The processor of this number.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Unknown`], if there is none.
    pub fn processor(&self, id: usize) -> Result<&Processor, TopologyError> {
        let found = self.processors.binary_search_by_key(&id, |processor| processor.id);
        found.map(|at| &self.processors[at]).map_err(|_| {
            let known = self.processors.iter().map(|processor| processor.id).collect();
            TopologyError::Unknown { id, known }
        })
    }

    /// How far it is from `from` to `to`, processors of this topology.
    ///
    /// Constant time but for the table of nodes.
    pub fn distance(&self, from: &Processor, to: &Processor) -> Distance {
        if from.core == to.core {
            Distance::Core
        } else if from.cache == to.cache {
            Distance::Cache
        } else if from.node == to.node {
            Distance::Node
        } else {
            let listed = self.nodes.iter().find(|(a, b, _)| (*a, *b) == (from.node, to.node));
            Distance::Remote(match listed {
                Some(&(_, _, distance)) => distance,
                None => u32::from(from.package != to.package),
            })
        }
    }
}
