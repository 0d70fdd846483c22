//! Mistakes in the split deque.

use super::{Caught, Mutant, Scene};

const BOUNDS: Mutant =
    Mutant::of("deque/src/papers/split/bounds.rs", "split", Scene::Mixed, Caught::Twice);
const EXPOSED: Mutant = Mutant {
    file: "deque/src/papers/split/sharing.rs",
    queue: "exposed",
    scene: Scene::Once,
    ..BOUNDS
};
const OWNER: Mutant = Mutant { file: "deque/src/papers/split/growing.rs", ..BOUNDS };

mutants! {
    BOUNDS: "split-takes-back-none",
        "off by one: the owner takes no task back, and pops a task that is still shared",
        "let new = tail.wrapping_add(shared / 2);" =>
        "let new = tail.wrapping_add(shared.div_ceil(2));";
    BOUNDS: "split-claims-two", "off by one: a thief moves `tail` over two tasks and takes one",
        "let new = pack(tail.wrapping_add(count), split);" =>
        "let new = pack(tail.wrapping_add(count + 1), split);",
        scene: Scene::Four, caught: Caught::Lost;
    BOUNDS: "split-loser-takes", "a thief whose exchange fails takes the tasks all the same",
        "Err(_) => Claim::Lost," => "Err(_) => Claim::Taken { first: tail, count },";
    BOUNDS: "split-takes-back-what-it-saw",
        "the owner, when it is outrun by a thief, takes back what it saw before",
        "                Ok(_) => return Some(new),
                Err(now) => seen = now," =>
        "                Ok(_) => return Some(new),
                Err(now) => { seen = now; return Some(new) }";
    OWNER: "split-past-the-split", "off by one: a pop at the split does not stop there",
        "head > self.request.value()" => "head >= self.request.value()";
    OWNER: "split-never-takes-back", "the owner pops below the split without taking tasks back",
        "let at_the_split = below(self.known().get());" => "let at_the_split = false;";
    EXPOSED: "split-no-barrier", "a thief that exposes private tasks makes no process-wide barrier",
        "Fence::Heavy => M::try_heavy()," => "Fence::Heavy => true,";
    EXPOSED: "split-pops-without-its-fence",
        "where there is no barrier, the owner pops with its last store still in its store buffer",
        "            // O2, where no thief's fence is process-wide.
            M::full();
" =>
        "",
        file: "deque/src/papers/split/growing.rs", queue: "fenced-exposed";
    OWNER: "split-half-drops-the-rest",
        "a batch's first task is returned, and the others are dropped",
        "                for task in claimed {
                    into.push(task);
                }
" =>
        "                drop(claimed);
",
        scene: Scene::Halves, caught: Caught::Lost;
    EXPOSED: "split-shares-before-it-listens",
        "the owner shares, and then takes down a request that a thief has raised since: who took all and asks again is overlooked",
        "            let to_or_later = to.wrapping_add(u32::from(later));
" =>
        "            if half > 0 && self.bounds.share(split, split, to) {
                request.take_down(place(to));
                known.set(to);
                return true;
            }
            let to_or_later = to.wrapping_add(u32::from(later));
",
        scene: Scene::Asks, caught: Caught::RequestLost;
    EXPOSED: "split-does-not-ask", "a thief that finds nothing shared leaves no request",
        "                self.request();
                Steal::Empty" =>
        "                Steal::Empty",
        file: "deque/src/papers/split/growing.rs", scene: Scene::Asks, caught: Caught::RequestLost;
    EXPOSED: "split-puts-back-unseen",
        "an owner that puts a task back does not look whether a thief has asked: the thief has found nothing, and sleeps",
        "        if self.shared.request.is_asked() {
            self.answer();
        }
" =>
        "",
        file: "deque/src/papers/split/growing/emplace.rs", scene: Scene::PutsBack, caught: Caught::RequestLost;
    BOUNDS: "split-never-steals",
        "a thief takes none of the tasks that it finds shared, and says that there are none",
        "if shared == 0 {
            return Claim::Empty;" =>
        "if shared < u32::MAX {
            return Claim::Empty;",
        caught: Caught::NeverSteals;
    EXPOSED: "split-late-head",
        "a pop compares its head with the request before it stores the head",
        "        shared.set_head(index);
        if !shared.undisturbed(head) {
            return self.pop_disturbed(index);
        }
" =>
        "        if !shared.undisturbed(head) {
            shared.set_head(index);
            return self.pop_disturbed(index);
        }
        shared.set_head(index);
",
        file: "deque/src/papers/split/growing.rs";
    EXPOSED: "split-does-not-settle", "a pop that meets an exposure leaves it to go on",
        "self.known().set(bounds.settle());" => "self.known().set(bounds.tail());",
        file: "deque/src/papers/split/growing.rs";
    EXPOSED: "split-follow-overwrites",
        "an owner that takes tasks back overwrites the request of an exposure that has just begun",
        "self.0.compare_exchange(own, split, Ordering::Relaxed, Ordering::Relaxed).is_ok()" =>
        "{ self.0.store(split, Ordering::Relaxed); true }",
        file: "deque/src/papers/split/growing/request.rs", scene: Scene::Four;
    EXPOSED: "split-answers-an-exposure",
        "the owner shares where it knows the split to be, though a thief has moved it",
        "let mut seen = pack(tail, from);" =>
        "if tail == from {
            self.word.store(pack(tail, to), Ordering::Release);
            return true;
        }
        let mut seen = pack(tail, from);",
        file: "deque/src/papers/split/bounds.rs", scene: Scene::Pair;
}
