//! How many stores a program makes between two pops, at least: the `x` of delta.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 4,
//! "Determining delta": a weighted shortest path from `take()` to itself over the control-flow
//! graph.
//!
//! The graph is that of all functions of the program together. A node is an instruction, its weight
//! the stores that it makes for certain: operands in memory that it writes, and what `push` and
//! `call` write to the stack; a conditional write counts nothing. A direct call leads into the
//! function called, a return to the instruction after every direct call of it: more ways than the
//! program has, so the shortest one is a lower bound still. The search starts after each call of
//! the queue's function and ends at the next one; what the function itself stores is not counted.
//!
//! What cannot be known stores nothing, and may do two things:
//!
//! | | [`Reading::Likely`] | [`Reading::Certain`] |
//! |---|---|---|
//! | a call out of the program, or through a pointer | returns, and does not pop | may pop at once |
//! | a jump through a pointer | goes to a block of its function, or returns from it | may pop at once |
//! | a return to callers that are not known | is not followed | may pop at once |
//!
//! So `Certain` is a lower bound whatever the program does; `Likely` is one if the pops of a thread
//! are all made by what is seen.

mod flow;
mod program;

use core::fmt;

use serde::Serialize;

pub use program::Program;

/// What is believed of what cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// Nothing: each unknown may pop at once.
    Certain,
    /// Unknown calls return without a pop, and returns to unknown callers lead to none.
    Likely,
}

/// A way from one pop to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// Stores on it.
    pub stores: u64,
    /// Of these, the stores that `push` and `call` make on the stack.
    pub on_stack: u64,
    /// Its instructions, those that only compute left out.
    pub steps: Vec<Step>,
    /// How it ends.
    pub end: End,
}

/// An instruction on a way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its address.
    pub address: u64,
    /// The function that it is in.
    pub function: String,
    /// Its text.
    pub instruction: String,
    /// The stores that it makes for certain.
    pub stores: u64,
    /// What is not known about it, if anything.
    pub unknown: Option<&'static str>,
}

/// How a way ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// At the next call of the queue's function.
    Pop,
    /// At something unknown, which may pop at once.
    Unknown,
}

/// What the analysis found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stores {
    /// The functions that the name stands for.
    pub functions: Vec<String>,
    /// Direct calls of them.
    pub calls: usize,
    /// The way with the fewest stores where each unknown may pop at once.
    pub certain: Option<Way>,
    /// The way with the fewest stores where unknown calls return and do not pop.
    pub likely: Option<Way>,
    /// Calls out of the program or through pointers that the search for `likely` met: each counted
    /// as no store.
    pub unknown_calls: usize,
    /// Jumps through pointers that it met: each counted as no store.
    pub indirect_jumps: usize,
    /// Returns to callers that are not known that it met, and did not follow.
    pub unknown_returns: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotAnalyse {
    /// Not an object file that can be read.
    NotElf(String),
    /// An ELF file of another kind.
    Unsuitable(&'static str),
    /// No symbols of functions are left in it.
    Stripped,
    /// No function has this name.
    NoSuchFunction {
        /// The name.
        name: String,
        /// Names that come near it.
        near: Vec<String>,
    },
    /// The function is there, but nothing calls it directly.
    NeverCalled {
        /// The functions that the name stands for.
        functions: Vec<String>,
    },
}

impl fmt::Display for CannotAnalyse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotAnalyse::NotElf(why) => write!(f, "it is no ELF file that can be read: {why}"),
            CannotAnalyse::Unsuitable(why) => {
                write!(f, "it is {why}: give a linked x86-64 ELF program or shared library")
            }
            CannotAnalyse::Stripped => f.write_str(
                "it has no symbols of functions: build it without stripping (strip = false)",
            ),
            CannotAnalyse::NoSuchFunction { name, near } => {
                write!(
                    f,
                    "no function in it is named {name}: if the compiler inlined it, mark it \
                     #[inline(never)], or name the function that it went into"
                )?;
                if !near.is_empty() {
                    write!(f, "; there are {}", near.join(", "))?;
                }
                Ok(())
            }
            CannotAnalyse::NeverCalled { functions } => write!(
                f,
                "nothing in it calls {} directly: calls through pointers cannot be followed",
                functions.join(", ")
            ),
        }
    }
}

impl std::error::Error for CannotAnalyse {}

/// Finds the ways from one call of the function `name` to the next with the fewest stores.
///
/// `name` is a symbol's name, or the end of a Rust path (`The::pop`, `pop`). Takes time and memory
/// in proportion to the program's code.
///
/// # Errors
///
/// [`CannotAnalyse`], with what to do about it.
pub fn analyse(elf: &[u8], name: &str) -> Result<Stores, CannotAnalyse> {
    let program = Program::read(elf)?;
    let queue = program.named(name)?;
    flow::search(&program, &queue)
}
