//! A memory that charges for each access: queues' own source on machines that one does not have.
//!
//! [`Coherent`] is a [`Memory`](poach_memory::Memory) in simulated time. Whatever is generic over
//! `Memory` runs on it unchanged, on as many simulated processors as a [`Description`] has, on one
//! thread of the system. A [`Simulation`] says how long everything took, and which words cost the
//! most.
//!
//! ```
//! use poach_simulate::{Coherent, Description, Simulation, now};
//! use poach_memory::{Memory, Ordering, Word};
//! use std::rc::Rc;
//!
//! let machine = Description::shipped("lace").unwrap();
//! let word = Rc::new(<Coherent as Memory>::Word::new(0));
//! let mut simulation = Simulation::new(&machine);
//! for processor in [0, 47] {
//!     let word = Rc::clone(&word);
//!     simulation.thread(processor, "counter", move || {
//!         for _ in 0..100 {
//!             word.fetch_add(1, Ordering::Relaxed);
//!         }
//!     });
//! }
//! let outcome = simulation.run().unwrap();
//! assert_eq!(word.load(Ordering::Relaxed), 200);
//! assert!(outcome.end > 0, "in picoseconds");
//! ```
//!
//! # The machine
//!
//! | part | what it does |
//! |---|---|
//! | clock | Each simulated processor has one, in picoseconds. An access advances it by what the access costs; [`work`] by what it is told. Code between accesses costs nothing else |
//! | store buffer | A store enters the buffer of its processor, and waits there only if the buffer is full. The buffer drains in order: the oldest store gets its line for itself, then the next one. While a store waits, the lines of the stores behind it are asked for, too, up to `store_misses`. A store drains as early as a load could get it forwarded. A load of a word with a store in the buffer reads that store |
//! | cache line | 64 bytes, by the real address of a word or cell, so words that share a line in the source share a line here. A line has one owner (modified or exclusive), or sharers, or is in a node's last-level cache, or in the memory of its home node, the node of the processor that touched it first. Until a request has come to the line's owner, the owner's stores still hit (`kept`). That is MESI, and MOESI where a machine's file says so: then a modified line stays with its owner when others read it |
//! | private cache | holds `cache_lines` lines a processor, first in, first out |
//! | prefetching | A processor that misses a line next to a line that it missed shortly before, or comes to a line that was asked for ahead, asks for the next `prefetch` lines, if they exist |
//! | topology | processors in groups of groups, from the inside out. A line costs what the file says for the innermost group that both ends are in |
//! | bandwidth | A line serves one transfer at a time: a contended line is a queue. A group's link takes a number of nanoseconds for each line that enters or leaves the group, and a memory controller for each line that it serves: both are queues, too |
//! | fence | waits until the buffer is empty |
//! | read-modify-write | waits until the buffer is empty, then owns the line; nobody else's transfer of that line overlaps it |
//! | `membarrier` | an interrupt to each running processor, which drains its buffer and loses time |
//!
//! # Order
//!
//! Virtual threads are coroutines. Each step is an *event* with a time: a thread's next access, or
//! the start of the drain of a processor's oldest store. Events happen in the order of their times;
//! where two have one time, the lower processor is first, and a drain precedes an access. What an
//! event changes (a value, a line's owner, a queue) it changes at once, and the time that it takes
//! is added to the clock of the thread or buffer that waits for it. So all accesses have one order,
//! which is total store order, and one description, seed and program have one result. A thread runs
//! on without a switch for as long as its clock is the least; events of store buffers are handled
//! in place.
//!
//! The seed varies the transfers by up to `jitter` of their latency, and the first instants of
//! threads, so that processors do not move in lockstep by accident. Several seeds show how far a
//! result depends on such accidents.
//!
//! # What is not modelled
//!
//! - Processors execute in order: a load that misses waits, and no other load overlaps it, but for
//!   what `prefetch` asks for ahead. There is no speculation.
//! - Only words, pointers, cells, fences and waiting cost. Plain fields, `Arc` counts, the
//!   allocator and arithmetic do not, but for the share of them that the measured costs of an
//!   access contain.
//! - The last-level caches have no bound, no associativity and no port; interconnects have links,
//!   but no routes.
//! - Each virtual thread has its processor for itself: no operating system, no preemption, no
//!   frequency changes, no page faults, no translation misses.
//! - Where words lie depends on the allocator. Queues pad what they write often, so it matters
//!   little; but two words that happen to share a line in one run may not in another, if they are
//!   parts of small allocations. `tests/deterministic.rs` shows equal results where objects are
//!   aligned to lines.
//!
//! # Why a crate of its own
//!
//! `poach-check`'s machine has no time: it enumerates orders, keeps every access undoable, and
//! bounds threads (8), words and operations (250). This one runs one order, millions of accesses of
//! it, on up to 1,024 processors. All that they would share is the coroutines, which are the crate
//! `corosensei` in both.
#![doc = include_str!("readme.md")]

mod describe;
mod engine;
pub mod forks;
mod lines;
mod memory;
mod place;
mod profile;
mod run;
mod simulation;
mod step;

pub use describe::{
    Barrier, Description, DescriptionError, Level, MAX_PROCESSORS, MemoryCosts, ProcessorCosts,
    SHIPPED, Threads,
};
pub use memory::{Coherent, CoherentCell, CoherentPointer, CoherentWord};
pub use profile::{Cost, Count, Site};
pub use simulation::{Failure, Outcome, Simulation, Thread, count, now, processor, work};
