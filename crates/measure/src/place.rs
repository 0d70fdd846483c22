//! Where threads run: the processors that this process may use, and which of them share a core.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

/// Where the worker and the thief run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Wherever the operating system puts them.
    Os,
    /// On two hyperthreads of one core, which share what the core has.
    Siblings,
    /// On two cores.
    Cores,
}

impl Placement {
    /// The paper's three, in its order.
    pub const ALL: [Placement; 3] = [Placement::Os, Placement::Siblings, Placement::Cores];

    /// The name in documents and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Os => "os",
            Placement::Siblings => "siblings",
            Placement::Cores => "cores",
        }
    }
}

/// Why a placement cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotPlace {
    /// The process may use one processor only.
    OneProcessor,
    /// No two processors of the process are hyperthreads of one core.
    NoSiblings,
    /// No two processors of the process are on different cores.
    OneCore,
    /// The kernel does not let a thread be bound.
    Refused {
        /// The processor.
        processor: usize,
        /// The kernel's answer.
        answer: String,
    },
    /// This system's affinities are not known to Poach.
    Unsupported,
}

impl fmt::Display for CannotPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotPlace::OneProcessor => f.write_str(
                "this process may use one processor only, and a worker and a thief on one processor see \
                 each other's stores in order: run it on a machine (or in a cpuset) with two",
            ),
            CannotPlace::NoSiblings => {
                f.write_str("no two of the processors that this process may use share a core")
            }
            CannotPlace::OneCore => {
                f.write_str("all processors that this process may use are on one core")
            }
            CannotPlace::Refused { processor, answer } => write!(
                f,
                "the kernel does not bind a thread to processor {processor} ({answer}): allow \
                 sched_setaffinity; only litmus --placement os does without"
            ),
            CannotPlace::Unsupported => f.write_str(
                "threads can be bound to processors under Linux only: use --placement os",
            ),
        }
    }
}

impl std::error::Error for CannotPlace {}

/// The processors that this process may use, with the hyperthreads of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// In ascending order.
    pub processors: Vec<usize>,
    /// Groups of them that share a core, where the system tells.
    pub cores: Vec<Vec<usize>>,
}

impl Topology {
    /// This process's.
    ///
    /// # Errors
    ///
    /// [`CannotPlace`] where the system does not tell.
    pub fn here() -> Result<Topology, CannotPlace> {
        let processors = allowed()?;
        Ok(Topology::new(processors, siblings))
    }

    fn new(processors: Vec<usize>, siblings: impl Fn(usize) -> Option<String>) -> Topology {
        let mut cores: Vec<Vec<usize>> = Vec::new();
        for &processor in &processors {
            if cores.iter().any(|core| core.contains(&processor)) {
                continue;
            }
            let listed = siblings(processor).map(|list| parse_list(&list)).unwrap_or_default();
            let mut core: Vec<usize> =
                listed.into_iter().filter(|other| processors.contains(other)).collect();
            if !core.contains(&processor) {
                core = vec![processor];
            }
            cores.push(core);
        }
        Topology { processors, cores }
    }

    /// The processors of a worker and a thief in this placement; `None` for the operating system's.
    ///
    /// # Errors
    ///
    /// [`CannotPlace`] where the machine has no such two.
    pub fn pair(&self, placement: Placement) -> Result<Option<(usize, usize)>, CannotPlace> {
        if self.processors.len() < 2 {
            return Err(CannotPlace::OneProcessor);
        }
        match placement {
            Placement::Os => Ok(None),
            Placement::Siblings => {
                let core = self.cores.iter().find(|core| core.len() > 1);
                core.map(|core| Some((core[0], core[1]))).ok_or(CannotPlace::NoSiblings)
            }
            Placement::Cores => match &self.cores[..] {
                [first, second, ..] => Ok(Some((first[0], second[0]))),
                _ => Err(CannotPlace::OneCore),
            },
        }
    }
}

/// A list as the kernel writes it: `0,4-6`. What cannot be read is left out.
fn parse_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        // No machine has more: a longer range is no list of processors.
        (from <= to && to < 1 << 20).then_some(from..=to)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Binds the calling thread to a processor.
///
/// # Errors
///
/// [`CannotPlace::Refused`] with the kernel's answer.
pub fn bind(processor: usize) -> Result<(), CannotPlace> {
    poach_topology::bind(processor).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => CannotPlace::Unsupported,
        _ => CannotPlace::Refused { processor, answer: error.to_string() },
    })
}

/// The processors that this process may use: all, on a system that does not tell.
fn allowed() -> Result<Vec<usize>, CannotPlace> {
    poach_topology::allowed().or_else(|_| {
        if cfg!(target_os = "linux") {
            return Err(CannotPlace::Unsupported);
        }
        Ok((0..std::thread::available_parallelism().map_or(1, Into::into)).collect())
    })
}

/// The list of those that share a core with this one, where the system tells.
fn siblings(processor: usize) -> Option<String> {
    let topology = format!("/sys/devices/system/cpu/cpu{processor}/topology");
    std::fs::read_to_string(format!("{topology}/thread_siblings_list")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hyperthreaded(processor: usize) -> Option<String> {
        (processor < 4).then(|| format!("{},{}\n", processor % 2, processor % 2 + 2))
    }

    #[test]
    fn pairs_are_where_the_placement_says() {
        let topology = Topology::new(vec![0, 1, 2, 3], hyperthreaded);
        assert_eq!(topology.cores, [[0, 2], [1, 3]]);
        assert_eq!(topology.pair(Placement::Os), Ok(None));
        assert_eq!(topology.pair(Placement::Siblings), Ok(Some((0, 2))));
        assert_eq!(topology.pair(Placement::Cores), Ok(Some((0, 1))));
    }

    #[test]
    fn processors_outside_of_the_cpuset_are_no_siblings() {
        let topology = Topology::new(vec![1, 2], hyperthreaded);
        assert_eq!(topology.pair(Placement::Siblings), Err(CannotPlace::NoSiblings));
        assert_eq!(topology.pair(Placement::Cores), Ok(Some((1, 2))));
        let topology = Topology::new(vec![0, 2], hyperthreaded);
        assert_eq!(topology.pair(Placement::Cores), Err(CannotPlace::OneCore));
    }

    #[test]
    fn one_processor_is_refused_in_every_placement() {
        let topology = Topology::new(vec![3], hyperthreaded);
        for placement in Placement::ALL {
            assert_eq!(topology.pair(placement), Err(CannotPlace::OneProcessor));
        }
    }

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0,4-6\n"), [0, 4, 5, 6]);
        assert_eq!(parse_list("0-99999999999,x,3"), [3]);
        assert!(Topology::new(vec![0, 1], |_| Some("garbage".to_owned())).cores.len() == 2);
    }
}
