//! A bounded policy whose client makes no store between two pops makes one itself: without it a
//! thief may miss twice as many pops.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.
#![forbid(unsafe_code)]

use poach_check::{Config, Kind, Report, Verdict};
use poach_models::{Algorithm, Policy, Scenario, check, matrix::delta};

/// THE with store buffers of `size` entries and the egress slot, a delta for one store between two
/// pops, and no store of the client's.
fn explored(size: u32, policy: fn(std::num::NonZeroU64) -> Policy) -> Report {
    let bound = delta(size, true, 1);
    let drain = Scenario::drain(bound.get() as u32 + 1, 0, 1, 2);
    let config = Config { shorten: 0, ..Config::bounded(size, true) };
    check(Algorithm::The, policy(bound), &drain, &config)
}

#[test]
fn a_policy_makes_the_store_that_its_delta_counts() {
    for size in [1, 2, 3] {
        let policies: [fn(std::num::NonZeroU64) -> Policy; 2] = [
            |delta| Policy::Bounded { delta, fill: true },
            |delta| Policy::Resolved { delta, fill: true },
        ];
        for policy in policies {
            let report = explored(size, policy);
            assert_eq!(report.verdict, Verdict::Clean, "S = {size}");
            assert!(report.complete, "{report:?}");
        }
        let policies: [fn(std::num::NonZeroU64) -> Policy; 2] = [
            |delta| Policy::Bounded { delta, fill: false },
            |delta| Policy::Resolved { delta, fill: false },
        ];
        for policy in policies {
            let report = explored(size, policy);
            assert!(
                matches!(&report.verdict, Verdict::Violation(found) if found.kind() == Kind::Duplicate),
                "S = {size}: {report:?}"
            );
        }
    }
}
