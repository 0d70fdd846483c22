//! The process is registered for the barrier before `main`, while it has one thread.
#![cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]

use rustix::thread::MembarrierCommand::PrivateExpedited;
use rustix::thread::{MembarrierQuery, membarrier, membarrier_query};

use crate::own_process::alone;

#[test]
fn nobody_has_asked_and_the_process_is_registered() {
    alone("nobody_has_asked_and_the_process_is_registered", registered);
}

fn registered() {
    // This links the program with the crate, which registers the process.
    assert!(size_of::<poach_memory::membarrier::Unavailable>() > 0);
    if membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED) {
        assert_eq!(
            membarrier(PrivateExpedited),
            Ok(()),
            "the kernel refuses who is not registered"
        );
        assert!(poach_memory::membarrier::is_registered(), "no thread is needed to ask");
    }
}
