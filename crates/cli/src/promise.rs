//! The bounds of this machine that the user vouches for.

use std::num::NonZeroU64;

use anyhow::Result;
use poach_memory::Profile;

/// Has the suites take the bound of a profile that `--profile` names.
///
/// # Errors
///
/// If it is another processor's.
pub(crate) fn use_profile(profile: &Profile) -> Result<()> {
    // SAFETY: the user has measured it on this machine by `poach measure all`, and asks for it.
    unsafe { poach_bench::use_profile(profile) }
}

/// Has the suites take the bound of the processor that `cpuid` shows, and an ample one where none
/// is known of it and none was given; returns the ample one then.
pub(crate) fn use_unproven_bounds() -> Option<NonZeroU64> {
    // SAFETY: `cpuid` is trusted. The ample bound is not known to hold: the user is told so before
    // the first sample, and how to give a measured bound. Each sample's result is checked.
    unsafe { poach_bench::use_unproven_bounds() }
}
