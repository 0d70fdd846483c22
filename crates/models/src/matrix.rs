//! The matrix of `poach check all`: what must be clean, and what must be refuted.

use core::num::NonZeroU64;

pub use super::case::{Case, Named, PolicyKind, QUEUES, delta};
use super::case::{TWICE, case, deques, find};
use super::{Scenario, Step};
use poach_check::Kind;

fn rows(
    queue: Named,
    stores: u32,
    delta: Option<NonZeroU64>,
    sizes: &[u32],
    expected: Option<Kind>,
    quick: bool,
) -> Vec<Case> {
    let mut rows = Vec::new();
    for &store_buffer in sizes {
        let scenes = [
            ("drain", Scenario::drain(3, stores, 1, 2)),
            if quick {
                ("brief", Scenario::brief(stores, 1, 2))
            } else {
                ("mixed", Scenario::mixed(stores, 1, 2))
            },
        ];
        for (scene, scenario) in scenes {
            rows.push(Case {
                stores,
                delta,
                ..case(queue, scene, scenario, store_buffer, expected)
            });
        }
    }
    rows
}

/// What has no owner: SALSA, which needs its fence, and the injector.
///
/// Two threads push into the injector and one steals: 2,239,233 executions, complete, the same
/// number with buffers of two entries as with buffers of one. With one more steal, by a pusher, the
/// search does not end in minutes. Each look of a thief that waits for a push is a choice, and so
/// is each pause of a push that has met another. So loom and the injector's tests play that scene,
/// and this one runs with the smallest buffers alone.
fn shared(sizes: &[u32], extent: Extent) -> Vec<Case> {
    let quick = extent == Extent::Quick;
    let mut cases = Vec::new();
    let robbed = Scenario::drain(2, 0, 1, if quick { 1 } else { 2 });
    let policies =
        [(PolicyKind::Full, None), (PolicyKind::Asymmetric, None), (PolicyKind::Unfenced, TWICE)];
    for &size in sizes {
        for (policy, expected) in policies {
            let salsa = Named { policy, ..find("salsa") };
            cases.push(case(salsa, "robbed", robbed.clone(), size, expected));
        }
    }
    let pushes = Scenario { script: vec![Step::Push], ..Scenario::drain(0, 0, 1, 1) };
    for size in if extent == Extent::Full { 1..=2 } else { 1..=1 } {
        cases.push(case(find("injector"), "pushes", pushes.clone(), size, None));
    }
    cases
}

/// Tasks of the largest model without stores between pops.
const MOST_TASKS: u64 = 6;

/// The rows of FF-THE and FF-CL: clean at the bound, refuted one below; without stores between
/// pops, refuted at every delta that leaves a thief something to steal of up to six tasks.
pub fn bounds(
    sizes: &(impl Iterator<Item = u32> + Clone),
    stores: &(impl Iterator<Item = u32> + Clone),
) -> Vec<Case> {
    let mut rows = Vec::new();
    for name in ["ff-the", "ff-cl"] {
        let queue = find(name);
        for store_buffer in sizes.clone() {
            for x in stores.clone() {
                let case = |delta: NonZeroU64, tasks: u64, expected| {
                    let drain = Scenario::drain(tasks as u32, x, 1, 2);
                    let case = case(queue, "drain", drain, store_buffer, expected);
                    Case { delta: Some(delta), ..case }
                };
                if x == 0 {
                    // Coalescing hides any number of pops: a delta that does not keep thieves off
                    // altogether is too small.
                    let hopeless = (1..=MOST_TASKS - 2).filter_map(NonZeroU64::new);
                    rows.extend(hopeless.map(|delta| case(delta, delta.get() + 2, TWICE)));
                    continue;
                }
                let bound = delta(store_buffer, true, x);
                rows.push(case(bound, bound.get() + 1, None));
                if let Some(below) = NonZeroU64::new(bound.get() - 1) {
                    rows.push(case(below, bound.get() + 1, TWICE));
                } else {
                    // Delta 0 is no policy's: a thief that trusts what it sees is `Unfenced`.
                    rows.push(Case {
                        policy: PolicyKind::Unfenced,
                        delta: None,
                        ..case(bound, 2, TWICE)
                    });
                }
            }
        }
    }
    rows
}

/// How far the matrix is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Fewer rows, with smaller scenes: within half a minute.
    Quick,
    /// Within two minutes on two processors.
    Usual,
    /// The injector's pushes further: with store buffers of two entries as well, and twenty times
    /// as many executions under C11.
    Full,
}

/// The matrix, as far as it is asked for.
pub fn cases(extent: Extent) -> Vec<Case> {
    let quick = extent == Extent::Quick;
    let sizes: &[u32] = if quick { &[1, 2] } else { &[1, 2, 3, 4] };
    let mut cases = Vec::new();
    for queue in deques().filter(|queue| !queue.policy.bounded()) {
        cases.extend(rows(queue, 0, None, sizes, None, quick));
    }
    let the_asymmetric = Named { name: "the", policy: PolicyKind::Asymmetric, ..find("the") };
    cases.extend(rows(the_asymmetric, 0, None, sizes, None, quick));
    // The same without their fences.
    for name in ["chase-lev", "the"] {
        let queue = Named { policy: PolicyKind::Unfenced, ..find(name) };
        let mut unfenced = rows(queue, 0, None, sizes, TWICE, quick);
        unfenced.retain(|case| case.scene == "drain");
        cases.extend(unfenced);
    }
    // THEP at every delta, and with none at all.
    for delta in 1..=3 {
        cases.extend(rows(find("thep"), 0, NonZeroU64::new(delta), &sizes[..1], None, quick));
    }
    let unbounded = Named { policy: PolicyKind::Unbounded, ..find("thep") };
    cases.extend(rows(unbounded, 0, None, sizes, None, quick));
    // An owner that stays and does not pop: the thief must learn all it needs from the one echo.
    for &size in sizes {
        let echo = Scenario::echo();
        cases.push(case(unbounded, "echo", echo.clone(), size, None));
        let delta = NonZeroU64::new(2);
        cases.push(Case { delta, ..case(find("thep"), "echo", echo, size, None) });
    }
    cases.extend(shared(sizes, extent));
    cases.extend(super::scenes::more(quick));
    cases.extend(super::weak::rows(extent));
    for &size in sizes {
        cases.extend(rows(find("resolved"), 1, Some(delta(size, true, 1)), &[size], None, quick));
    }
    if quick {
        cases.extend(bounds(&(1..=3), &(0..=2)));
    } else {
        cases.extend(bounds(&(1..=8), &(0..=3)));
    }
    cases
}
