//! Machines made of files, which Miri keeps from its programs.

#![forbid(unsafe_code)]
#![cfg(not(miri))]

use std::fs;
use std::path::Path;

use poach_topology::{Distance, Placement, Processor, Topology, TopologyError};

#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_is_bound_may_use_one_processor() {
    let first = poach_topology::allowed().unwrap()[0];
    let bound = std::thread::spawn(move || {
        assert!(poach_topology::bind(usize::MAX).is_err());
        poach_topology::bind(first).unwrap();
        (poach_topology::allowed().unwrap(), Topology::read().unwrap().processors().len())
    });
    assert_eq!(bound.join().unwrap(), (vec![first], 1));
}

/// A tree in the form of `/sys/devices`.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(online: &str) -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        machine.file("system/cpu/online", online)
    }

    fn file(self, path: &str, content: &str) -> Machine {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
        self
    }

    /// A processor: its package, the threads of its core, and those under its last-level cache.
    fn processor(self, id: usize, package: i64, siblings: &str, cache: &str) -> Machine {
        let of = |file: &str| format!("system/cpu/cpu{id}/{file}");
        self.file(&of("topology/physical_package_id"), &package.to_string())
            .file(&of("topology/thread_siblings_list"), siblings)
            .file(&of("cache/index0/level"), "1")
            .file(&of("cache/index0/type"), "Data")
            .file(&of("cache/index0/shared_cpu_list"), siblings)
            .file(&of("cache/index1/level"), "1")
            .file(&of("cache/index1/type"), "Instruction")
            .file(&of("cache/index1/shared_cpu_list"), siblings)
            .file(&of("cache/index2/level"), "3")
            .file(&of("cache/index2/type"), "Unified")
            .file(&of("cache/index2/shared_cpu_list"), cache)
    }

    fn node(self, id: usize, processors: &str, distances: &str) -> Machine {
        self.file(&format!("system/node/node{id}/cpulist"), processors)
            .file(&format!("system/node/node{id}/distance"), distances)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read(&self) -> Topology {
        Topology::read_from(self.path()).unwrap()
    }

    /// What is wrong with it.
    fn refused(&self) -> TopologyError {
        Topology::read_from(self.path()).unwrap_err()
    }
}

fn place(topology: &Topology, placement: &Placement) -> Vec<usize> {
    let workers = topology.processors().len();
    topology.place(placement, workers).unwrap().unwrap()
}

fn distance(topology: &Topology, from: usize, to: usize) -> Distance {
    topology.distance(topology.processor(from).unwrap(), topology.processor(to).unwrap())
}

/// Two packages, each a node with two cores of two threads; siblings are numbered as Linux does it,
/// the second threads after all first ones.
fn two_sockets() -> Machine {
    let mut machine = Machine::new("0-7").file("system/node/online", "0-1");
    for id in 0..8 {
        let (package, core) = (id % 4 / 2, id % 4);
        let cache = if package == 0 { "0-1,4-5" } else { "2-3,6-7" };
        let siblings = format!("{core},{}", core + 4);
        machine = machine.processor(id, package as i64, &siblings, cache);
    }
    machine.node(0, "0-1,4-5", "10 21").node(1, "2-3,6-7", "21 10")
}

#[test]
fn two_sockets_of_cores_with_two_threads() {
    let topology = two_sockets().read();
    let seven = topology.processor(7).unwrap();
    assert_eq!((seven.node, seven.package, seven.cache), (1, 1, 2));
    assert_eq!((seven.core, seven.thread, seven.class), (3, 1, 0));
    assert_eq!(distance(&topology, 0, 4), Distance::Core);
    assert_eq!(distance(&topology, 0, 5), Distance::Cache);
    assert_eq!(distance(&topology, 0, 7), Distance::Remote(21));
    assert_eq!(place(&topology, &Placement::Compact), [0, 1, 4, 5, 2, 3, 6, 7]);
    assert_eq!(place(&topology, &Placement::Scatter), [0, 2, 1, 3, 4, 6, 5, 7]);
}

#[test]
fn a_node_with_two_caches_fills_one_first_or_takes_turns() {
    let mut machine = Machine::new("0-3");
    for id in 0..4 {
        machine = machine.processor(id, 0, &id.to_string(), if id < 2 { "0-1" } else { "2-3" });
    }
    let topology = machine.node(0, "0-3", "10").read();
    assert_eq!(distance(&topology, 0, 1), Distance::Cache);
    assert_eq!(distance(&topology, 0, 2), Distance::Node);
    assert_eq!(place(&topology, &Placement::Compact), [0, 1, 2, 3]);
    assert_eq!(place(&topology, &Placement::Scatter), [0, 2, 1, 3]);
}

#[test]
fn intels_hybrid_takes_strong_cores_first_and_second_threads_last() {
    // Two strong cores of two threads, numbered side by side, and two weak ones.
    let topology = Machine::new("0-5")
        .file("cpu_core/cpus", "0-3")
        .file("cpu_atom/cpus", "4-5")
        .processor(0, 0, "0-1", "0-5")
        .processor(1, 0, "0-1", "0-5")
        .processor(2, 0, "2-3", "0-5")
        .processor(3, 0, "2-3", "0-5")
        .processor(4, 0, "4", "0-5")
        .processor(5, 0, "5", "0-5")
        .read();
    let classes: Vec<_> = topology.processors().iter().map(|each| each.class).collect();
    assert_eq!(classes, [0, 0, 0, 0, 1, 1]);
    assert_eq!(place(&topology, &Placement::Compact), [0, 2, 4, 5, 1, 3]);
    assert_eq!(place(&topology, &Placement::Scatter), [0, 2, 4, 5, 1, 3]);
}

#[test]
fn arms_hybrid_takes_the_strong_cluster_first_though_its_numbers_are_higher() {
    let mut machine = Machine::new("0-7");
    for id in 0..8 {
        let (cache, capacity) = match id {
            0..4 => ("0-3", "406"),
            4..7 => ("4-6", "871"),
            _ => ("7", "1024"),
        };
        machine = machine
            .processor(id, -1, &id.to_string(), cache)
            .file(&format!("system/cpu/cpu{id}/cpu_capacity"), capacity);
    }
    let topology = machine.read();
    let classes: Vec<_> = topology.processors().iter().map(|each| each.class).collect();
    assert_eq!(classes, [2, 2, 2, 2, 1, 1, 1, 0]);
    assert_eq!(topology.processor(0).unwrap().package, -1);
    assert_eq!(place(&topology, &Placement::Compact), [7, 4, 5, 6, 0, 1, 2, 3]);
    assert_eq!(place(&topology, &Placement::Scatter), [7, 4, 5, 6, 0, 1, 2, 3]);
}

#[test]
fn one_processor_of_which_nothing_is_told() {
    let topology = Machine::new("0").read();
    let flat = Topology::flat(&[0]).unwrap();
    let only: Processor = flat.processors()[0];
    assert_eq!(topology.processors(), [only]);
    assert_eq!(topology.place(&Placement::Scatter, 3).unwrap(), Some(vec![0, 0, 0]));
    assert_eq!(topology, Topology::flat(&[0]).unwrap());
}

#[test]
fn offline_processors_are_not_there_nor_are_they_anybodys_sibling() {
    let topology = Machine::new("1-2,7")
        .processor(1, 0, "0-1", "0-3")
        .processor(2, 0, "2-3", "0-3")
        .processor(7, 0, "6-7", "4-7")
        .node(0, "0-3", "10 20")
        .node(1, "4-7", "20 10")
        .read();
    let ids: Vec<_> = topology.processors().iter().map(|each| each.id).collect();
    assert_eq!(ids, [1, 2, 7]);
    let one = topology.processor(1).unwrap();
    assert_eq!((one.core, one.thread, one.cache), (1, 0, 1));
    assert_eq!(topology.processor(7).unwrap().core, 7);
    assert_eq!(distance(&topology, 1, 2), Distance::Cache);
    let error = topology.processor(0).unwrap_err().to_string();
    assert!(error.contains("processor 0") && error.contains("1-2,7"), "{error}");
}

#[test]
fn without_a_list_of_those_online_the_directories_tell() {
    let machine = Machine(tempfile::tempdir().unwrap())
        .processor(3, 0, "3", "3")
        .processor(10, 0, "10", "10");
    let topology = machine.file("system/cpu/cpufreq/boost", "1").read();
    let ids: Vec<_> = topology.processors().iter().map(|each| each.id).collect();
    assert_eq!(ids, [3, 10]);
}

#[test]
fn without_caches_a_node_has_one_and_without_distances_packages_count() {
    let mut machine = Machine::new("0-5");
    for (id, package) in [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1)] {
        let file = format!("system/cpu/cpu{id}/topology/physical_package_id");
        machine = machine.file(&file, &package.to_string());
    }
    let topology = machine
        .file("system/node/node0/cpulist", "0-1")
        .file("system/node/node1/cpulist", "2-3")
        .file("system/node/node2/cpulist", "4-5")
        .read();
    assert_eq!(distance(&topology, 2, 3), Distance::Cache);
    assert_eq!(distance(&topology, 0, 2), Distance::Remote(0));
    assert_eq!(distance(&topology, 0, 4), Distance::Remote(1));
}

#[test]
fn a_cpuset_leaves_its_processors_and_their_places() {
    let topology = two_sockets().read().restrict(&[3, 5, 6, 7, 99]).unwrap();
    assert_eq!(place(&topology, &Placement::Compact), [3, 6, 7, 5]);
    assert_eq!(distance(&topology, 3, 7), Distance::Core);
    assert!(matches!(topology.restrict(&[0]), Err(TopologyError::NoProcessor)));
    assert!(matches!(Topology::flat(&[]), Err(TopologyError::NoProcessor)));
}

#[test]
fn named_processors_must_be_there() {
    let topology = two_sockets().read();
    let on = |ids: &[usize]| topology.place(&Placement::On(ids.to_vec()), 3);
    assert_eq!(on(&[6, 1]).unwrap(), Some(vec![6, 1, 6]));
    assert!(matches!(on(&[]), Err(TopologyError::NoProcessor)));
    let error = on(&[0, 8]).unwrap_err();
    assert!(matches!(error, TopologyError::Unknown { id: 8, .. }));
    assert!(error.to_string().contains("0-7"), "{error}");
    assert_eq!(topology.place(&Placement::Anywhere, 3).unwrap(), None);
}

#[test]
fn garbage_is_refused_by_its_name() {
    let file = |path, content: &str| two_sockets().file(path, content).refused();
    for (path, content) in [
        ("system/cpu/online", "0-7,"),
        ("system/cpu/online", "everything"),
        ("system/cpu/online", "0-99999999999999999999"),
        ("system/cpu/cpu2/topology/physical_package_id", "one"),
        ("system/cpu/cpu2/topology/thread_siblings_list", "3-2"),
        ("system/cpu/cpu2/cache/index2/shared_cpu_list", "00ff"),
        ("system/cpu/cpu2/cache/index2/level", ""),
        ("system/cpu/cpu2/cpu_capacity", "\u{0}"),
        ("system/node/node1/cpulist", "2-3;6-7"),
        ("system/node/node1/distance", "21"),
        ("system/node/node1/distance", "21 10 x"),
        ("system/node/online", "?"),
        ("cpu_atom/cpus", "ff"),
    ] {
        let error = file(path, content);
        assert!(
            matches!(&error, TopologyError::Garbage { path: named, .. } if named.ends_with(path))
        );
        // Windows joins paths by a mark of its own.
        let error = error.to_string().replace('\\', "/");
        assert!(error.contains(path) && error.contains("should hold"), "{error}");
    }
    // A long one is not repeated in full.
    let error = file("system/cpu/online", &"x".repeat(5000)).to_string();
    assert!(error.len() < 300, "{error}");
}

#[test]
fn what_is_no_file_or_no_machine_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Topology::read_from(empty.path()), Err(TopologyError::NoProcessor)));
    assert!(matches!(Machine::new("").refused(), TopologyError::NoProcessor));
    let machine = Machine::new("0");
    fs::create_dir_all(machine.path().join("system/cpu/cpu0/cpu_capacity")).unwrap();
    let error = machine.refused();
    assert!(matches!(error, TopologyError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("cpu_capacity cannot be read"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn this_machine_is_read_and_holds_together() {
    let topology = Topology::read().unwrap();
    let ids: Vec<_> = topology.processors().iter().map(|each| each.id).collect();
    assert_eq!(ids, poach_topology::allowed().unwrap());
    for placement in [Placement::Compact, Placement::Scatter] {
        let mut order = place(&topology, &placement);
        order.sort_unstable();
        assert_eq!(order, ids, "{placement:?} names every processor once");
    }
    for from in topology.processors() {
        assert_eq!(topology.distance(from, from), Distance::Core);
        for to in topology.processors() {
            assert_eq!(topology.distance(from, to), topology.distance(to, from));
        }
    }
}
