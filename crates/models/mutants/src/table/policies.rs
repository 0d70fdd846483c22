//! Mistakes in the fence policies with a bound, and in the reckoning of one.

use super::{Caught, Mutant, Scene};

const HERE: Mutant = Mutant::of("memory/src/order.rs", "filled-cl", Scene::Four, Caught::Twice);

const RECKONED: Mutant =
    Mutant { file: "memory/src/delta.rs", queue: "reckoned-cl", scene: Scene::Egress, ..HERE };

mutants! {
    HERE: "bounded-makes-no-store",
        "the policy makes no store between two pops, whose stores leave the store buffer as one",
        "            self.elsewhere.store(0, Ordering::Release);\n" => "";
    HERE: "resolved-makes-no-store",
        "the policy that resolves forgets the other's store between two pops",
        "        self.bounded.owner();\n" => "", queue: "filled-resolved";
    HERE: "resolved-without-barrier", "a thief in doubt makes no barrier, and says that it knows",
        "    fn resolve(&self) -> bool {
        M::heavy_may_succeed() && M::try_heavy()" =>
        "    fn resolve(&self) -> bool {
        true",
        queue: "filled-resolved";
    RECKONED: "delta-without-egress", "the entries behind the store buffer are not counted",
        "u128::from(egress / 2) + full" => "full";
    RECKONED: "delta-rounds-down",
        "off by one: where the pops do not fill the store buffer, the last one of them is not counted",
        "egress % 2 != 0 || rest > 0" => "egress % 2 != 0", scene: Scene::EgressOfTen;
}
