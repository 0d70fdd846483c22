//! One file a verb.

pub(crate) mod asm;
pub(crate) mod capi;
pub(crate) mod ci;
pub(crate) mod cross;
pub(crate) mod dependencies;
pub(crate) mod docs;
pub(crate) mod documents;
pub(crate) mod emulated;
pub(crate) mod fmt;
pub(crate) mod guide;
pub(crate) mod lint;
pub(crate) mod loom;
pub(crate) mod minimal;
pub(crate) mod miri;
pub(crate) mod mpi;
pub(crate) mod mutate;
pub(crate) mod oldest;
pub(crate) mod publish;
pub(crate) mod python;
pub(crate) mod rayon_bench;
pub(crate) mod rayon_programs;
pub(crate) mod rayon_suite;
pub(crate) mod release;
pub(crate) mod soak;
pub(crate) mod spin;
pub(crate) mod tsan;
