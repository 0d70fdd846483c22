//! This processor's store buffer and its reordering bound.
//!
//! Section 7 of Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, as a
//! library: the [`capacity`] of the store buffer, the bound on how many stores a load overtakes
//! ([`litmus`]), how many [`stores`] a program makes between two pops, what its accesses cost
//! ([`coherence`]), and a [`report`] of it all. `poach measure` drives it.
#![doc = include_str!("readme.md")]

pub mod capacity;
pub mod coherence;
pub mod cost;
pub mod knee;
pub mod litmus;
pub mod place;
pub mod report;
pub mod stores;
mod trial;
