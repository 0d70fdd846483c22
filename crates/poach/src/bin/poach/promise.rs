//! What the user promises of this machine.

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
