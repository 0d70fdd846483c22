//! The papers' programs and figures, redone side by side with what a user would pick instead.
//!
//! A [`Suite`] is a list of [`Case`]s. A case is one program (the workload) under one scheduler or
//! queue (the system) with a number of workers, and a closure that takes one sample. The harness
//! interleaves the systems round by round, so that one noisy minute hits all of them alike, and
//! keeps every sample in a [`Document`] that is whole at any moment.
//!
//! ```
//! use poach_bench::{Case, Plan, Request, Sample, Session, Suite, Unit, find};
//!
//! struct Sums;
//!
//! impl Suite for Sums {
//!     fn name(&self) -> &'static str {
//!         "sums"
//!     }
//!     fn about(&self) -> &'static str {
//!         "adding numbers up"
//!     }
//!     fn cases(&self, request: &Request) -> Vec<Case> {
//!         let n = request.size.pick(1_000, 1_000_000, 100_000_000, 1_000_000_000);
//!         vec![Case::timed("ranges", "sequential", 1, move || {
//!             let sum: u64 = std::hint::black_box(0..n).sum();
//!             anyhow::ensure!(sum == n * (n - 1) / 2, "the sum came out as {sum}");
//!             Ok(())
//!         })]
//!     }
//! }
//!
//! let session = Session::new(Plan { rounds: 3, ..Plan::quick() });
//! session.run(&Sums, &|_event| {})?;
//! let document = session.document();
//! assert_eq!(document.rows[0].samples.len(), 3);
//! # anyhow::Ok(())
//! ```
#![doc = include_str!("readme.md")]

pub mod figure;
mod fork;
mod harness;
mod programs;
mod promise;
pub mod runs;
mod suites;
pub mod table;
pub mod words;

pub use harness::case::{Better, Case, Request, Sample, Sampler, Size, Suite, Unit};
pub use harness::document::{Command, Document, Failure, Row, SCHEMA};
pub use harness::machine::Machine;
pub use harness::memory::need_memory;
pub(crate) use harness::memory::need_stacks;
pub use harness::peer::Peer;
pub use harness::session::{Event, Plan, Session};
pub use harness::statistics::{Ratio, Summary, geometric_mean, percentile, ratio};
pub use promise::{is_bounded, use_profile, use_unproven_bounds};
pub use suites::deque::Deque;
pub use suites::faces::Faces;
pub use suites::fork_join::ForkJoin;
pub use suites::graphs::Graphs;
pub use suites::pool::Pool;
pub use suites::processor::Processor;
pub use suites::runtime::Runtime;
pub use suites::simulate::{Simulate, why};
pub use suites::walk::Walk;
pub use suites::{find, suites};
