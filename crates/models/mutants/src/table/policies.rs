//! Mistakes in the fence policies with a bound, and in the reckoning of one.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "memory/src/order.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::FilledCl,
    scene: Scene::Four,
    caught: Caught::Twice,
};

const RECKONED: Mutant =
    Mutant { file: "memory/src/delta.rs", queue: Queue::ReckonedCl, scene: Scene::Egress, ..HERE };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "bounded-makes-no-store",
        why: "the policy makes no store between two pops, whose stores leave the store buffer as one",
        was: "            self.elsewhere.store(0, Ordering::Release);\n",
        is: "",
        ..HERE
    },
    Mutant {
        name: "resolved-makes-no-store",
        why: "the policy that resolves forgets the other's store between two pops",
        was: "        self.bounded.owner();\n",
        is: "",
        queue: Queue::FilledResolved,
        ..HERE
    },
    Mutant {
        name: "resolved-without-barrier",
        why: "a thief in doubt makes no barrier, and says that it knows",
        was: "    fn resolve(&self) -> bool {
        M::heavy_may_succeed() && M::try_heavy()",
        is: "    fn resolve(&self) -> bool {
        true",
        queue: Queue::FilledResolved,
        ..HERE
    },
    Mutant {
        name: "delta-without-egress",
        why: "the entries behind the store buffer are not counted",
        was: "u128::from(egress / 2) + full",
        is: "full",
        ..RECKONED
    },
    Mutant {
        name: "delta-rounds-down",
        why: "off by one: where the pops do not fill the store buffer, the last one of them is not counted",
        was: "egress % 2 != 0 || rest > 0",
        is: "egress % 2 != 0",
        scene: Scene::EgressOfTen,
        ..RECKONED
    },
];
