//! The tests of the program, each file a module; a directory holds what several files use.

#[cfg(target_os = "linux")]
mod rig;

#[cfg(feature = "bench")]
mod bench;
mod browse;
mod check;
mod comfort;
mod dedupe;
mod doctor;
mod documents;
mod heeded;
mod measure;
mod page;
mod scan;
mod windows;
#[cfg(not(feature = "bench"))]
mod without_bench;
