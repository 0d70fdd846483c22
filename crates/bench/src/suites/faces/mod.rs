//! The suite `faces`: the faces of `poach_deque` beside the crates whose names they have,
//! crossbeam-deque and st3.
//!
//! Each workload has two systems, the original first, so that the last column of the table is
//! Poach's speed over the original's. The two differ in nothing but the `use` line: both are
//! written once, as a macro over the source.
//!
//! | workload | what is done | value |
//! |---|---|---|
//! | `..-empty-pop`, `..-empty-steal` | nothing to be had | ns an attempt |
//! | `..-alternate` | push, pop, push, pop | ns a push and a pop |
//! | `..-owner` | 1000 pushes, then 1000 pops | ns a push and a pop |
//! | `..-idle-steals`, `-batch`, `-limit` | 1000 pushes, and then, timed, steals until nothing is left: single, of up to 32, of up to 4 (`-half` in st3) | ns a task |
//! | `..-one-steal`, `..-one-batch` | push, steal, push, steal | ns a push and a steal |
//! | `..-len`, `..-is-empty` | of one task, sixteen times a round | ns |
//! | `..-served-steals`, `..-served-batch` | the owner pushes 1000 and pops until there are none, again and again, while a thief steals | million tasks a second |
//! | `injector-pair`, `injector-empty`, `injector-idle-..` | one thread | ns |
//! | `injector-pushes-2`, `injector-steals-2` | two threads push at once into an empty injector, or steal at once until nothing is left | million tasks a second |
//! | `injector-1p1c` to `-3p1c`, `-batch`, `-limit` | the protocol of the suite `pool` | million tasks a second |

/// Looks sixteen times a round. A look is some seven instructions, and one in a round takes .33 or
/// .47 ns by where the linker has put its loop, of the same code. A macro, as a closure that is
/// called so often is a function.
macro_rules! look {
    ($tasks:expr, $look:expr) => {
        for _ in 0..$tasks / 16 {
            look!(four: look!(four: see($look)));
        }
    };
    (four: $do:expr) => {{
        $do;
        $do;
        $do;
        $do;
    }};
}

mod injectors;
mod workers;

use std::time::Instant;

use crate::{Case, Request, Sample, Size, Suite};

/// The suite `faces`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faces;

impl Suite for Faces {
    fn name(&self) -> &'static str {
        "faces"
    }

    fn about(&self) -> &'static str {
        "Poach under the names of crossbeam-deque and st3, beside the originals: each operation"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let mut cases = workers::cases(request.size);
        cases.extend(injectors::cases(request.size));
        // The original first in each workload, and the workloads one after the other.
        let mut order = Vec::new();
        for case in &cases {
            if !order.contains(&case.workload) {
                order.push(case.workload);
            }
        }
        cases.sort_by_key(|case| {
            let original = case.system != "poach";
            (order.iter().position(|workload| *workload == case.workload), !original)
        });
        cases
    }
}

/// What a thread does before it turns around.
const BATCH: u64 = 1000;

fn tasks(size: Size) -> u64 {
    size.pick(2 * BATCH, 300_000, 5_000_000, 20_000_000)
}

/// Keeps the compiler from leaving out what nobody looks at.
fn see<T>(value: T) {
    let _ = std::hint::black_box(value);
}

/// Nanoseconds of `run`, for each of `tasks`.
fn each(tasks: u64, run: impl FnOnce()) -> Sample {
    let start = Instant::now();
    run();
    (start.elapsed().as_secs_f64() * 1e9 / tasks as f64).into()
}

/// The same, where of each round of a batch only the second half is timed.
fn second_half(tasks: u64, mut first: impl FnMut(), mut second: impl FnMut()) -> Sample {
    let mut seconds = 0.0;
    for _ in 0..tasks / BATCH {
        first();
        let start = Instant::now();
        second();
        seconds += start.elapsed().as_secs_f64();
    }
    (seconds * 1e9 / tasks as f64).into()
}
