//! This processor's store buffer and its reordering bound.
//!
//! Source: section 7 of Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*.
//! `poach measure` uses this library.
//!
//! | module | measures |
//! |---|---|
//! | [`capacity`] | the entries of the store buffer |
//! | [`litmus`] | the reordering bound: how many stores a load can overtake |
//! | [`stores`] | how many stores a program makes between two pops |
//! | [`coherence`] | what accesses cost |
//! | [`report`] | prints all results |
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
