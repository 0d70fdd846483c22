//! What each scene has the threads do, on which machine, and how far it is searched.

use poach_check::{Buffer, Config, Coverage, Strategy};
use poach_memory::delta::hidden_pops;
use poach_models::stack::Exposes;
use poach_models::{Scenario, Step};

use crate::Scene;

/// The machine of every run: two entries in each store buffer, and the egress slot.
const STORE_BUFFER: u32 = 2;

/// The store buffer of a machine with more than one entry behind it.
pub(crate) const SHORT_BUFFER: u32 = 1;

impl Scene {
    pub(crate) fn scenario(self, stores: u32) -> Scenario {
        match self {
            Scene::Drain | Scene::WeakThree => Scenario::drain(3, stores, 1, 2),
            // All but the first have a model of their own, without a scenario.
            Scene::Once
            | Scene::Pass
            | Scene::Announced
            | Scene::Again
            | Scene::Goes
            | Scene::Asks
            | Scene::PutsBack
            | Scene::Comes
            | Scene::FedByTwo
            | Scene::RobbedThief
            | Scene::RobbedInWindow
            | Scene::LateTask
            | Scene::RobbedAndFed
            | Scene::Oversleeps
            | Scene::Refilled
            | Scene::TwoChunks
            | Scene::HeadReturns
            | Scene::HeldGrows
            | Scene::ListGrows => Scenario::drain(2, stores, 1, 1),
            Scene::Halves => {
                Scenario { script: vec![Step::Push, Step::Pop], ..Scenario::drain(6, stores, 1, 2) }
            }
            Scene::Hands => {
                Scenario { script: vec![Step::Pop; 2], ..Scenario::drain(4, stores, 2, 1) }
            }
            Scene::Pair | Scene::WeakPair => Scenario::drain(2, stores, 1, 2),
            Scene::WeakTwo => Scenario::drain(2, stores, 2, 1),
            Scene::Exposes | Scene::WeakExposes => Scenario::drain(1, stores, 1, 1),
            Scene::Forks | Scene::WeakForks => Scenario::drain(1, stores, 1, 2),
            Scene::WeakFed => {
                Scenario { script: vec![Step::Push, Step::Pop], ..Scenario::drain(1, stores, 1, 1) }
            }
            Scene::Four => Scenario::drain(4, stores, 1, 2),
            Scene::Robbed => Scenario { script: Vec::new(), ..Scenario::drain(3, stores, 1, 2) },
            Scene::Thieves => Scenario { script: Vec::new(), ..Scenario::drain(2, stores, 2, 1) },
            Scene::Brief | Scene::WeakBrief => Scenario::brief(stores, 1, 2),
            Scene::WeakRoomy => Scenario { capacity: 2, ..Scenario::brief(stores, 1, 2) },
            Scene::WeakAnew => {
                Scenario { script: vec![Step::Push; 4], ..Scenario::brief(stores, 1, 3) }
            }
            Scene::WeakBack => Scenario {
                script: [[Step::Push; 2], [Step::Pop; 2], [Step::Push; 2]].concat(),
                ..Scenario::brief(stores, 1, 2)
            },
            Scene::Short => Scenario::brief(stores, 1, 1),
            Scene::Returns => Scenario {
                script: vec![Step::Pop, Step::Push, Step::PopAll],
                ..Scenario::drain(1, stores, 1, 2)
            },
            Scene::Mixed => Scenario::mixed(stores, 1, 2),
            Scene::Laps => Scenario {
                script: vec![Step::Push, Step::Pop, Step::Push, Step::Push],
                ..Scenario::brief(stores, 1, 1)
            },
            Scene::Pushes => Scenario {
                script: vec![Step::Push, Step::Push, Step::PopAll],
                ..Scenario::brief(stores, 2, 1)
            },
            Scene::Grows => {
                Scenario { script: vec![Step::Push; 4], ..Scenario::brief(stores, 1, 2) }
            }
            Scene::Third => {
                Scenario { script: vec![Step::Pop; 3], ..Scenario::drain(3, stores, 1, 1) }
            }
            Scene::Injects => Scenario {
                script: vec![Step::Push],
                capacity: 1,
                ..Scenario::drain(2, stores, 2, 1)
            },
            Scene::Refills => Scenario {
                script: vec![Step::Push, Step::PopAll],
                ..Scenario::drain(0, stores, 1, 1)
            },
            Scene::Skips => Scenario { script: vec![], ..Scenario::drain(0, stores, 1, 2) },
            Scene::Echo => Scenario::echo(),
            Scene::Egress | Scene::EgressOfTen => {
                let entries = u64::from(self.egress_entries());
                let pops = hidden_pops(SHORT_BUFFER.into(), entries, stores.into());
                let tasks = pops.expect("it has a store buffer").get() as u32 + 1;
                Scenario { one_line: true, ..Scenario::drain(tasks, stores, 1, 2) }
            }
            Scene::Leaving => {
                Scenario { script: vec![Step::Pop; 2], ..Scenario::drain(3, stores, 1, 2) }
            }
            Scene::Leaves | Scene::WeakRobbed => {
                Scenario { script: vec![Step::Pop], ..Scenario::drain(2, stores, 1, 1) }
            }
        }
    }

    /// Whether a thief may get a task in it, which the history then says.
    pub fn steals(self) -> bool {
        use Scene::{Again, Announced, Asks, Comes, FedByTwo, Goes, HeadReturns, Pass, PutsBack};
        let watch = matches!(self, Pass | Announced | Again | Goes | Comes | Asks | PutsBack);
        !watch && !matches!(self, FedByTwo | HeadReturns)
    }

    /// How far the search of an original goes, at least as far as one of these: a bound where there
    /// is more to see than can be seen. The executions of such a scene have as many preemptions
    /// as its mutants need.
    pub fn coverage(self) -> &'static [Coverage] {
        match self {
            Scene::Pass | Scene::Again => &[Coverage::Preemptions(4), Coverage::Executions(60_000)],
            Scene::Skips => &[Coverage::Preemptions(4)],
            Scene::WeakAnew | Scene::WeakBack => {
                &[Coverage::Preemptions(2), Coverage::Executions(40_000)]
            }
            Scene::LateTask => &[Coverage::Preemptions(3)],
            // As far as the mistake that is found there, and a little further.
            Scene::Oversleeps => &[Coverage::Preemptions(3), Coverage::Executions(500_000)],
            Scene::RobbedAndFed => &[Coverage::Preemptions(3), Coverage::Executions(120_000)],
            Scene::RobbedThief => &[Coverage::Preemptions(1)],
            Scene::HeadReturns | Scene::RobbedInWindow => {
                &[Coverage::Preemptions(3), Coverage::Executions(60_000)]
            }
            Scene::Refilled => &[Coverage::Preemptions(2), Coverage::Executions(60_000)],
            Scene::FedByTwo
            | Scene::TwoChunks
            | Scene::ListGrows
            | Scene::Injects
            | Scene::Refills
            | Scene::Returns => &[Coverage::Preemptions(2)],
            _ => &[Coverage::Complete],
        }
    }

    /// When the thieves of a stack of forks expose.
    pub(crate) fn exposes(self) -> Exposes {
        if matches!(self, Scene::Exposes | Scene::WeakExposes) {
            Exposes::AtOnce
        } else {
            Exposes::Later
        }
    }

    /// Whether it is played under the memory model of C11.
    fn is_weak(self) -> bool {
        use Scene::{
            WeakAnew, WeakBack, WeakBrief, WeakExposes, WeakFed, WeakForks, WeakPair, WeakRobbed,
            WeakRoomy, WeakThree, WeakTwo,
        };
        matches!(
            self,
            WeakPair
                | WeakThree
                | WeakTwo
                | WeakBrief
                | WeakRoomy
                | WeakRobbed
                | WeakFed
                | WeakForks
                | WeakExposes
                | WeakAnew
                | WeakBack
        )
    }

    /// Entries behind the store buffer.
    pub(crate) fn egress_entries(self) -> u32 {
        match self {
            Scene::Egress => 2,
            Scene::EgressOfTen => 10,
            _ => 1,
        }
    }

    pub(crate) fn machine(self) -> Config {
        if self.is_weak() {
            let machine = Config { shorten: 0, ..Config::c11() };
            let is_long = matches!(self, Scene::WeakAnew | Scene::WeakBack);
            return if is_long { machine.within(2, 40_000) } else { machine };
        }
        // What is wanted is whether there is a counterexample, not the shortest.
        let egress_entries = self.egress_entries();
        let entries = if egress_entries > 1 { SHORT_BUFFER } else { STORE_BUFFER };
        let machine = Config { shorten: 0, egress_entries, ..Config::bounded(entries, true) };
        let (preemptions, max_executions) = match *self.coverage() {
            [Coverage::Preemptions(bound), Coverage::Executions(count)] => (Some(bound), count),
            [Coverage::Preemptions(bound)] => (Some(bound), u64::MAX),
            _ => return machine,
        };
        let delayed = matches!(
            self,
            Scene::Again
                | Scene::Returns
                | Scene::RobbedThief
                | Scene::RobbedInWindow
                | Scene::Skips
        );
        let buffer = if delayed { machine.buffer } else { Buffer::Bounded(0) };
        let strategy = Strategy::Exhaustive { preemptions, reduce: true, prune: true };
        Config { buffer, strategy, max_executions, ..machine }
    }
}
