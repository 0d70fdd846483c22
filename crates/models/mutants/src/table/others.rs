//! Mistakes in the private deque and the queue behind a lock.

use super::{Caught, Mutant, Queue, Scene};

const PRIVATE: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/private.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::Private,
    scene: Scene::Brief,
    caught: Caught::Order,
};
const MUTEX: Mutant = Mutant { file: "deque/src/mutex.rs", queue: Queue::Mutex, ..PRIVATE };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "private-hands-over-first",
        why: "two stores swapped: the owner says that the mailbox is full and then fills it",
        was: "Some(task) => {",
        is: "Some(task) => {
                self.shared.mailbox.store(FULL, Ordering::Release);",
        caught: Caught::Race,
        ..PRIVATE
    },
    Mutant {
        name: "private-lets-go-first",
        why: "two steps swapped: a thief gives the mailbox back and then reads it",
        was: "                    let task = shared.task.with(|place| {
                        // SAFETY: `FULL` belongs to the thief that asked, this one, and says that there is
                        // a task; after the store below nobody reads it again.
                        unsafe { place.cast::<T>().read() }
                    });
                    // Release: pairs with the next asker's acquire: the read is over.
                    shared.mailbox.store(IDLE, Ordering::Release);
                    return Steal::Success(task);",
        is: "                    shared.mailbox.store(IDLE, Ordering::Release);
                    let task = shared.task.with(|place| unsafe { place.cast::<T>().read() });
                    return Steal::Success(task);",
        scene: Scene::Hands,
        caught: Caught::Race,
        ..PRIVATE
    },
    Mutant {
        name: "private-withdraws-by-a-store",
        why: "a thief that is tired of waiting withdraws without asking whether the owner has begun to \
              answer",
        was: "&& shared
                            .mailbox
                            .compare_exchange(ASKED, IDLE, Ordering::Release, Ordering::Relaxed)
                            .is_ok() =>",
        is: "&& {
                            shared.mailbox.store(IDLE, Ordering::Release);
                            true
                        } =>",
        caught: Caught::Lost,
        ..PRIVATE
    },
    Mutant {
        name: "private-asks-regardless",
        why: "a thief waits in a mailbox where another has asked",
        was: ".compare_exchange(IDLE, ASKED, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()",
        is: ".compare_exchange(IDLE, ASKED, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok_and(|_| false)",
        scene: Scene::Hands,
        caught: Caught::Deadlock,
        ..PRIVATE
    },
    Mutant {
        name: "private-pops-oldest",
        why: "the owner pops at the thieves' end",
        was: "let task = tasks.pop_back();",
        is: "let task = tasks.pop_front();",
        ..PRIVATE
    },
    Mutant {
        name: "private-gives-youngest",
        why: "the owner hands over its youngest task",
        was: "let state = match tasks.pop_front() {",
        is: "let state = match tasks.pop_back() {",
        ..PRIVATE
    },
    Mutant {
        name: "mutex-steals-youngest",
        why: "a thief takes at the owner's end",
        was: "self.shared.locked(VecDeque::pop_front)",
        is: "self.shared.locked(VecDeque::pop_back)",
        ..MUTEX
    },
    Mutant {
        name: "mutex-unlocks-first",
        why: "two steps swapped: the lock is let go before the queue is touched",
        was: "let held = self.lock.lock();",
        is: "let held = ();
        drop(self.lock.lock());",
        caught: Caught::Race,
        ..MUTEX
    },
];
