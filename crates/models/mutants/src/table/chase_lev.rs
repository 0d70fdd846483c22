//! Mistakes in the Chase-Lev deque.

use super::{Caught, Mutant, Scene};

const HERE: Mutant =
    Mutant::of("deque/src/papers/chase_lev.rs", "chase-lev", Scene::Drain, Caught::Twice);

mutants! {
    HERE: "cl-no-owner-fence", "the owner reads `head` with its `tail` still in the store buffer",
        "shared.owner.policy.owner();" => "";
    HERE: "cl-fence-before-store", "the owner's store of `tail` and its fence are swapped",
        "shared.owner.tail.store(index, Ordering::Release);
        shared.owner.policy.owner();" =>
        "shared.owner.policy.owner();
        shared.owner.tail.store(index, Ordering::Release);";
    HERE: "cl-tail-stays", "a pop does not lower `tail`",
        "shared.owner.tail.store(index, Ordering::Release);" => "";
    HERE: "cl-last-uncontested",
        "off by one: the owner takes the last task without competing for it",
        "if index.wrapping_sub(head) as i64 <= 0 {" => "if (index.wrapping_sub(head) as i64) < 0 {";
    HERE: "cl-last-either-way",
        "the owner takes the last task whether or not its exchange succeeds",
        "let won = index == head
            && shared" =>
        "let won = index == head
            || shared";
    HERE: "cl-tail-before-exchange",
        "two stores swapped, as in Figure 2c: `tail` is put back before the competition is over",
        "let won = index == head" => "shared.owner.tail.store(next, Ordering::Release);
        let won = index == head",
        caught: Caught::Order;
    HERE: "cl-pop-too-low", "off by one: a pop takes the task below its own",
        "unsafe { self.buffer().read(index) })" =>
        "unsafe { self.buffer().read(index.wrapping_sub(1)) })",
        scene: Scene::Pair, caught: Caught::Order;
    HERE: "cl-no-thief-barrier", "a thief of an asymmetric queue does without its barrier",
        "policy.try_thief();" => "true;", queue: "asymmetric-cl";
    HERE: "cl-head-read-again", "a thief reads `head` after `tail`, not before",
        "let length = tail.wrapping_sub(head) as i64;" =>
        "let head = shared.thieves.head.load(Ordering::Acquire);
        let length = tail.wrapping_sub(head) as i64;";
    HERE: "cl-empty-in-doubt",
        "off by one: a thief is in doubt about a queue that it has seen to be empty, and aborts",
        "if length <= 0 {" => "if length < 0 {", caught: Caught::Refusal;
    HERE: "cl-steal-two", "a thief moves `head` over two tasks and takes one",
        "head.wrapping_add(1)," => "head.wrapping_add(2),", caught: Caught::Order;
    HERE: "cl-loser-takes", "a thief whose exchange fails takes the task all the same",
        "Err(_) => Steal::Retry," =>
        "Err(_) => Steal::Success(unsafe { shared.thieves.rings.take(head) }),";
    HERE: "cl-delta-less-one", "off by one: a thief trusts a `tail` that is delta ahead",
        "length as u64 <= policy.delta()" => "(length as u64) < policy.delta()", queue: "ff-cl";
    HERE: "cl-no-abort", "a thief within delta goes on where it must abort",
        "return Err(Steal::Abort);" => "return Ok(());", queue: "ff-cl";
    HERE: "cl-resolved-off-by-one",
        "after its barrier a thief takes the task that the owner has taken",
        "if (tail.wrapping_sub(head) as i64) <= 0 { Err(Steal::Empty) }" =>
        "if (tail.wrapping_sub(head) as i64) < 0 { Err(Steal::Empty) }",
        queue: "resolved";
    HERE: "cl-push-shows-first",
        "two stores swapped: a push shows its task before it has written it",
        "unsafe { buffer.write(tail, task) };" =>
        "self.tail.store(tail.wrapping_add(1), Ordering::Release);
        unsafe { buffer.write(tail, task) };",
        file: "deque/src/papers/owner_line.rs", scene: Scene::Brief, caught: Caught::Race;
}
