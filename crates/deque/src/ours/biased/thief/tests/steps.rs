//! What the owner and a thief decide, step by step: all by one thread, with what the other does in
//! between done at its fence.

use std::rc::Rc;

use poach_memory::{Asymmetric, Ordering::Relaxed, Unbounded};

use super::super::super::{Biased, LONGEST, POP, SHORTEST};
use super::super::*;
use crate::lock::tests::{Call, Told};
use crate::owners_end::OwnersEnd as _;

type Queue = Biased<u32, Asymmetric<Told>, Told>;
type QueueThief = super::super::Thief<u32, Asymmetric<Told>, Told>;

/// An owner with `tasks` tasks, from 0 on, and thieves that look `looks` times. No thief has asked.
fn queue(tasks: u32, looks: u32) -> (Rc<Queue>, QueueThief) {
    let owner = Queue::starting_at(Asymmetric::new(), 16, 0, looks).unwrap();
    (0..tasks).for_each(|task| owner.push(task));
    let thief = owner.thief();
    (Rc::new(owner), thief)
}

/// The same, and a thief has opened all of them.
fn opened_by_a_thief(tasks: u32) -> (Rc<Queue>, QueueThief) {
    let (owner, thief) = queue(tasks, 0);
    assert!(!thief.request_or_open(0, 1));
    assert_eq!(words(&owner), ((0, 0), (0, tasks), RAISED));
    (owner, thief)
}

/// `head`, `open`, and the request.
fn words(owner: &Queue) -> ((u32, u32), (u32, u32), u64) {
    let thieves = &owner.shared.thieves;
    let (head, open) = (thieves.head.load(Relaxed), thieves.open.load(Relaxed));
    (unpack(head), unpack(open), owner.shared.request.load(Relaxed))
}

fn ask(owner: &Queue) {
    owner.shared.request.store(RAISED, Relaxed);
}

/// For how many pushes the owner is eager, and will be next time.
fn eager(owner: &Queue) -> (u32, u32) {
    let private = owner.private();
    (private.eager.get(), private.next_eager.get())
}

/// Whether the owner knows what is open: else it takes that for a thief's doing.
fn knows_what_is_open(owner: &Queue) -> bool {
    owner.private().opened.get() == owner.shared.thieves.open.load(Relaxed)
}

#[test]
fn an_owner_that_is_asked_opens_half_of_its_tasks() {
    for tasks in 1..10 {
        let (owner, _) = queue(tasks - 1, 0);
        ask(&owner);
        owner.push(7);
        let half = tasks.div_ceil(2);
        assert_eq!(words(&owner), ((1, 0), (1, half), half.into()));
        assert!(knows_what_is_open(&owner));
        assert_eq!(eager(&owner), (0, SHORTEST));
    }
}

#[test]
fn a_pop_that_is_asked_opens_half_of_the_others() {
    for tasks in 2..10 {
        let (owner, _) = queue(tasks, 0);
        ask(&owner);
        assert_eq!(owner.pop(), Some(tasks - 1));
        let half = (tasks - 1).div_ceil(2);
        assert_eq!(words(&owner), ((1, 0), (1, half), half.into()));
        assert!(knows_what_is_open(&owner));
    }
}

#[test]
fn an_owner_closes_where_it_comes_to_open_tasks() {
    let (owner, _) = queue(7, 0);
    ask(&owner);
    owner.push(7);
    // Above the bound it takes its tasks as they are.
    for task in (4..8).rev() {
        assert_eq!(owner.pop(), Some(task));
        assert_eq!(words(&owner), ((1, 0), (1, 4), 4));
    }
    // Nobody has asked again: of the three that are left one stays open.
    assert_eq!(owner.pop(), Some(3));
    assert_eq!(words(&owner), ((2, 0), (2, 1), 1));
    assert!(knows_what_is_open(&owner));
    assert_eq!((owner.pop(), owner.pop()), (Some(2), Some(1)));
    // The last: nothing is left to open.
    assert_eq!(owner.pop(), Some(0));
    assert_eq!(words(&owner), ((3, 0), (2, 1), 0));
    assert_eq!(owner.private().opened.get(), pack(3, 0));
    assert_eq!(owner.pop(), None);
}

#[test]
fn an_owner_remembers_that_there_is_nothing() {
    let (owner, thief) = opened_by_a_thief(1);
    assert_eq!(thief.steal(), Steal::Success(0));
    assert_eq!(owner.shared.owner.floor.load(Relaxed), 0);
    assert_eq!(owner.pop(), None);
    assert_eq!(owner.shared.owner.floor.load(Relaxed), 1);
    // It lowered nothing and raised nothing.
    assert_eq!(words(&owner), ((0, 1), (0, 1), RAISED));
    Told::at_a(Call::Light, || {});
    assert_eq!(owner.pop(), None);
    assert!(Told::waits_still(), "it does not look again");
}

/// A thief has opened with a barrier: for a while the owner opens what it pushes, so that the next
/// need not.
#[test]
fn an_owner_that_did_not_answer_is_eager() {
    let (owner, _) = opened_by_a_thief(3);
    owner.push(3);
    assert_eq!(words(&owner), ((0, 0), (0, 4), RAISED));
    assert!(knows_what_is_open(&owner));
    assert_eq!(eager(&owner), (SHORTEST - 1, 2 * SHORTEST));
    assert!(owner.private().was_eager.get());
    // A pop has to close, and costs more.
    assert_eq!(owner.pop(), Some(3));
    assert_eq!(words(&owner), ((1, 0), (1, 3), RAISED));
    assert!(knows_what_is_open(&owner));
    assert_eq!(eager(&owner), (SHORTEST - 1 - POP, 2 * SHORTEST));
    // A push that closes costs what a push costs.
    assert!(owner.close(3, 3));
    assert_eq!(words(&owner), ((2, 0), (2, 3), RAISED));
    assert_eq!(eager(&owner), (SHORTEST - 2 - POP, 2 * SHORTEST));
}

#[test]
fn an_owner_is_eager_for_twice_as_long_each_time() {
    let mut expected = SHORTEST;
    let (owner, thief) = queue(2, 0);
    for _ in 0..12 {
        owner.private().eager.set(0);
        let head = owner.shared.thieves.head.load(Relaxed);
        // It is not known what the owner itself has opened last.
        owner.private().opened.set(pack(unpack(head).0, 0));
        assert!(!thief.request_or_open(head, 1));
        assert!(owner.is_eager(unpack(head).0));
        assert!(knows_what_is_open(&owner));
        let next = (2 * expected).min(LONGEST);
        assert_eq!(eager(&owner), (expected, next));
        expected = next;
    }
    assert_eq!(expected, LONGEST);
}

/// What was opened under an older tag says nothing.
#[test]
fn an_owner_that_has_closed_is_not_eager() {
    let (owner, _) = opened_by_a_thief(2);
    assert!(!owner.is_eager(1));
    assert_eq!(eager(&owner), (0, SHORTEST));
    owner.private().opened.set(pack(0, 2));
    assert!(!owner.is_eager(0), "it knows");
}

#[test]
fn an_eager_owner_goes_back_to_what_it_was() {
    let (owner, _) = opened_by_a_thief(3);
    owner.push(3);
    let private = owner.private();
    private.eager.set(1);
    // Of several tasks thieves have not taken any: it was eager for nothing.
    owner.push(4);
    assert_eq!(eager(&owner), (0, 2 * SHORTEST));
    assert_eq!(words(&owner), ((0, 0), (0, 5), RAISED));
    // The request is raised whether a thief has asked or not, so this answer resets nothing yet.
    owner.push(5);
    assert_eq!(words(&owner), ((1, 0), (1, 3), 3));
    assert!(!private.was_eager.get());
    assert_eq!(eager(&owner), (0, 2 * SHORTEST));
    // Nobody has asked: nor does this.
    assert_eq!((owner.pop(), owner.pop(), owner.pop()), (Some(5), Some(4), Some(3)));
    assert_eq!(owner.pop(), Some(2));
    assert_eq!(eager(&owner), (0, 2 * SHORTEST));
    // This does.
    ask(&owner);
    owner.push(6);
    assert_eq!(eager(&owner), (0, SHORTEST));
}

#[test]
fn an_owner_whose_thieves_take_all_stays_eager() {
    for taken in [1, 2] {
        let (owner, thief) = opened_by_a_thief(2);
        owner.private().eager.set(1);
        (0..taken).for_each(|task| assert_eq!(thief.steal(), Steal::Success(task)));
        owner.push(2);
        let left = if taken == 2 { SHORTEST } else { 0 };
        assert_eq!(owner.private().eager.get(), left);
    }
}

#[test]
fn what_an_owner_leaves_is_open() {
    let (owner, thief) = queue(3, 0);
    drop(owner);
    let barriers = Told::barriers(|| {
        for task in 0..3 {
            assert_eq!(thief.steal(), Steal::Success(task));
        }
        assert_eq!(thief.steal(), Steal::Empty);
    });
    assert_eq!(barriers, 0);
}

#[test]
fn a_thief_asks_once_and_opens_all() {
    let (owner, thief) = queue(4, 3);
    let waits = Told::waits(|| {
        assert_eq!(Told::barriers(|| assert_eq!(thief.steal(), Steal::Success(0))), 1);
    });
    assert_eq!(waits.0, 3);
    assert_eq!(words(&owner), ((0, 1), (0, 4), RAISED));
    let barriers = Told::barriers(|| {
        for task in 1..4 {
            assert_eq!(thief.steal(), Steal::Success(task));
        }
        assert_eq!(thief.steal(), Steal::Empty);
    });
    assert_eq!(barriers, 0);
}

#[test]
fn a_thief_that_is_answered_makes_no_barrier() {
    let (owner, thief) = queue(4, 3);
    let answers = Rc::clone(&owner);
    Told::at_a_pause(move || answers.push(4));
    let waits = Told::waits(|| {
        assert_eq!(Told::barriers(|| assert_eq!(thief.steal(), Steal::Success(0))), 0);
    });
    assert_eq!(waits.0, 1);
    assert_eq!(words(&owner), ((1, 1), (1, 3), 3));
}

/// An owner that answers in the last moment, after the looks: nothing is opened under the tag of
/// before.
#[test]
fn a_thief_that_is_late_opens_nothing() {
    let (owner, thief) = queue(4, 0);
    let answers = Rc::clone(&owner);
    Told::at_a(Call::Heavy, move || answers.push(4));
    assert_eq!(thief.steal(), Steal::Success(0));
    assert_eq!(words(&owner), ((1, 1), (1, 3), 3));
}

#[test]
fn a_thief_looks_whether_enough_is_open() {
    for (open, enough, barriers) in [(2, 1, 0), (2, 2, 0), (2, 3, 1)] {
        let (owner, thief) = queue(3, 1);
        owner.shared.thieves.open.store(pack(0, open), Relaxed);
        ask(&owner);
        assert_eq!(
            Told::barriers(|| assert!(!thief.request_or_open(0, enough))),
            barriers,
            "{enough} of {open}"
        );
    }
    // Or whether the head has moved.
    let (owner, thief) = queue(3, 1);
    owner.shared.thieves.head.store(pack(0, 1), Relaxed);
    assert_eq!(Told::barriers(|| assert!(!thief.request_or_open(0, 1))), 0);
    assert_eq!(words(&owner).2, RAISED);
}

#[test]
fn a_thief_asks_no_owner_without_tasks() {
    let (owner, thief) = queue(0, 1);
    assert_eq!(Told::barriers(|| assert!(!thief.request_or_open(0, 1))), 0);
    assert_eq!(words(&owner), ((0, 0), (0, 0), 0));
    // The owner pops the last while the thief makes its barrier.
    let (owner, thief) = queue(1, 0);
    owner.shared.thieves.open.store(pack(9, 3), Relaxed);
    let pops = Rc::clone(&owner);
    Told::at_a(Call::Heavy, move || {
        pops.shared.owner.tail.store(0, Relaxed);
    });
    assert!(!thief.request_or_open(0, 1));
    assert_eq!(words(&owner), ((0, 0), (9, 3), RAISED), "nothing is opened");
}

/// The owner pops the last task: if that is open it may go to a thief.
#[test]
fn a_thief_finds_nothing_where_only_the_owner_can_take() {
    type Look = fn(&QueueThief) -> Steal<u32>;
    let looks: [Look; 2] =
        [|thief| thief.look().map(|()| 0), |thief| thief.claim_of_all(|all| all).map(|_| 0)];
    for look in looks {
        let (owner, thief) = queue(1, 0);
        let looks = thief.clone();
        Told::at_a(Call::Light, move || assert_eq!(look(&looks), Steal::Empty));
        assert_eq!(owner.pop(), Some(0));
        assert_eq!(look(&thief), Steal::Empty);

        let (owner, thief) = opened_by_a_thief(1);
        let looks = thief.clone();
        Told::at_a(Call::Light, move || assert_eq!(look(&looks), Steal::Retry));
        assert_eq!(owner.pop(), Some(0));
        assert_eq!(look(&thief), Steal::Empty);
        assert!(!Told::waits_still());
    }
}

#[test]
fn a_claim_asks_only_for_what_is_not_open() {
    let claim = |thief: &QueueThief, wanted| match thief.claim_of_all(|_| wanted) {
        Steal::Success(claimed) => claimed.collect::<Vec<_>>(),
        _ => panic!("there are tasks"),
    };
    let (owner, thief) = queue(6, 0);
    owner.shared.thieves.open.store(pack(0, 2), Relaxed);
    ask(&owner);
    assert_eq!(Told::barriers(|| assert_eq!(claim(&thief, 2), [0, 1])), 0);
    assert_eq!(Told::barriers(|| assert_eq!(claim(&thief, 2), [2, 3])), 1);
    // Nothing is wanted of what there is.
    assert!(thief.claim_of_all(|all| all - 2).is_empty());
    assert_eq!(owner.len(), 2);
}

/// As if its barrier were refused: it is never certain, and opens nothing itself.
#[test]
fn a_claim_of_more_than_is_open_gets_that_if_the_policy_aborts() {
    let owner = Biased::<u32, Unbounded, Told>::starting_at(Unbounded, 16, 0, 1).unwrap();
    (0..7).for_each(|task| owner.push(task));
    let thief = owner.thief();
    assert!(matches!(thief.claim_of_all(|all| all), Steal::Abort), "nothing is open");
    // It answers: half is open.
    owner.push(7);
    match thief.claim_of_all(|all| all) {
        Steal::Success(claimed) => assert_eq!(claimed.collect::<Vec<_>>(), [0, 1, 2, 3]),
        _ => panic!("four tasks are open"),
    }
    assert!(matches!(thief.claim_of_all(|all| all), Steal::Abort), "nothing more is open");
}

/// A thief of a thief: what it has counted, and what it finds after it has asked.
#[test]
fn a_claim_gets_what_is_left() {
    let (owner, thief) = queue(4, 0);
    let other = thief.clone();
    Told::at_a(Call::Heavy, move || {
        let all = other.shared.owner.tail.load(Relaxed);
        other.shared.thieves.open.store(pack(0, all), Relaxed);
        assert_eq!(other.steal(), Steal::Success(0));
    });
    let claimed: Vec<u32> = match thief.claim_of_all(|all| all) {
        Steal::Success(claimed) => claimed.collect(),
        _ => panic!("there are tasks"),
    };
    assert_eq!(claimed, [1, 2, 3]);
    assert!(owner.is_empty());
}

/// However it comes to the end of its tasks.
#[test]
fn an_owner_that_is_asked_while_it_pushes_several_answers() {
    for tasks in 1..10 {
        let (owner, _) = queue(0, 0);
        ask(&owner);
        owner.extend_within(0..tasks);
        assert_eq!(owner.len(), tasks as usize);
        // It shows four at once, and answers with the first store of its tail that is no such:
        // once, so that it stays open.
        let shown = tasks / 4 * 4 + u32::from(tasks % 4 > 0);
        let ((tag, _), open, _) = words(&owner);
        assert_eq!((tag, open), (1, (1, shown.div_ceil(2))), "{tasks}");
    }
}

#[test]
fn an_owner_that_opens_all_takes_none_without_closing() {
    let (owner, thief) = queue(3, 0);
    owner.open_all();
    assert_eq!(words(&owner), ((0, 0), (0, 3), RAISED));
    assert!(knows_what_is_open(&owner));
    assert_eq!(owner.pop(), Some(2));
    assert_eq!(words(&owner), ((1, 0), (1, 1), 1));
    assert_eq!(eager(&owner), (0, SHORTEST), "no thief has opened anything");
    assert_eq!(thief.steal(), Steal::Success(0));
}
