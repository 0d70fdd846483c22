//! The behaviour tests, each file a module; a directory holds what several files use.

#[cfg(any(target_os = "linux", windows))]
mod rig;

mod agreement;
mod choice;
mod deep;
mod diff;
mod documents;
mod duplicates;
mod failures;
mod floor;
mod memory;
mod names;
mod overlap;
mod renew;
mod safe_code;
mod survey;
mod text;
mod visitor;
mod waiting;
mod windows;
