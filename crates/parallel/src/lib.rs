//! Parallel loops and sorts that split themselves, over the public interface of
//! [`poach_runtime`] alone.
//!
//! A loop starts on the calling thread. Whenever another worker of the pool is idle
//! ([`Worker::should_fork`](poach_runtime::Worker::should_fork)), it forks half of the remaining
//! iterations. So there is no grain size to choose.
//!
//! | module | contents |
//! |---|---|
//! | `loops` | the loop that splits itself, and its forms that fold |
//! | `collect` | forms that collect, stop at an error, keep a state, or take an iterator |
//! | `items`, `index` | the types that a loop accepts |
//! | `sort` | merge sort and quicksort |
//! | `grain` | a threshold that a program's own recursion learns |
//!
//! # Panics
//!
//! The functions of a loop are halves of joins, and their panics propagate as from joins. In
//! [`par_bridge`] the loop goes on until as many calls have panicked as there are workers.
#![doc = include_str!("readme.md")]

mod collect;
#[cfg(doctest)]
mod compile_fail;
mod grain;
mod index;
mod items;
mod loops;
mod sort;

pub use collect::{
    par_bridge, par_for_init, par_map, par_map_init, try_par_for, try_par_map, try_par_reduce,
};
pub use grain::Grain;
pub use index::Index;
pub use items::{Items, Limited};
pub use loops::{WorkerLoops, par_chunks, par_chunks_mut, par_for, par_reduce};
pub use sort::{
    par_sort, par_sort_by, par_sort_by_key, par_sort_unstable, par_sort_unstable_by,
    par_sort_unstable_by_key,
};
