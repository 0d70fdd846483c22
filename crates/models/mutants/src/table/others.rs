//! Mistakes in the private deque and the queue behind a lock.

use super::{Caught, Mutant, Scene};

const PRIVATE: Mutant =
    Mutant::of("deque/src/papers/private.rs", "private", Scene::Brief, Caught::Order);
const MUTEX: Mutant = Mutant { file: "deque/src/mutex.rs", queue: "mutex", ..PRIVATE };

mutants! {
    PRIVATE: "private-hands-over-first",
        "two stores swapped: the owner says that the mailbox is full and then fills it",
        "Some(task) => {" => "Some(task) => {
                self.shared.mailbox.store(FULL, Ordering::Release);",
        caught: Caught::Race;
    PRIVATE: "private-lets-go-first",
        "two steps swapped: a thief gives the mailbox back and then reads it",
        "                    let task = shared.task.with(|place| {
                        // SAFETY: `FULL` belongs to the thief that asked, this one, and says that there is
                        // a task; after the store below nobody reads it again.
                        unsafe { place.cast::<T>().read() }
                    });
                    // Release: pairs with the next asker's acquire: the read is over.
                    shared.mailbox.store(IDLE, Ordering::Release);
                    return Steal::Success(task);" =>
        "                    shared.mailbox.store(IDLE, Ordering::Release);
                    let task = shared.task.with(|place| unsafe { place.cast::<T>().read() });
                    return Steal::Success(task);",
        scene: Scene::Hands, caught: Caught::Race;
    PRIVATE: "private-withdraws-by-a-store",
        "a thief that is tired of waiting withdraws without asking whether the owner has begun to \
              answer",
        "&& shared
                            .mailbox
                            .compare_exchange(ASKED, IDLE, Ordering::Release, Ordering::Relaxed)
                            .is_ok() =>" =>
        "&& {
                            shared.mailbox.store(IDLE, Ordering::Release);
                            true
                        } =>",
        caught: Caught::Lost;
    PRIVATE: "private-asks-regardless", "a thief waits in a mailbox where another has asked",
        ".compare_exchange(IDLE, ASKED, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()" =>
        ".compare_exchange(IDLE, ASKED, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok_and(|_| false)",
        scene: Scene::Hands, caught: Caught::Deadlock;
    PRIVATE: "private-pops-oldest", "the owner pops at the thieves' end",
        "let task = tasks.pop_back();" => "let task = tasks.pop_front();";
    PRIVATE: "private-gives-youngest", "the owner hands over its youngest task",
        "let state = match tasks.pop_front() {" => "let state = match tasks.pop_back() {";
    MUTEX: "mutex-steals-youngest", "a thief takes at the owner's end",
        "self.shared.locked(VecDeque::pop_front)" => "self.shared.locked(VecDeque::pop_back)";
    MUTEX: "mutex-unlocks-first",
        "two steps swapped: the lock is let go before the queue is touched",
        "let held = self.lock.lock();" => "let held = ();
        drop(self.lock.lock());",
        caught: Caught::Race;
}
