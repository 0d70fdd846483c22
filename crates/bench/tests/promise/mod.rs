//! What a test promises of this machine.

/// Has the queues with a bound among the systems on a processor without a known one, too.
pub(crate) fn with_a_bound() {
    // SAFETY: nobody knows; a test that fails on such a processor says what was wrong with the promise.
    let _ = unsafe { poach_bench::use_unproven_bounds() };
}
