//! A push for which there is no memory ends the program; a push that may fail gives the task back.
//!
//! Each push that must end a program is made by a process of its own: this program again, for one
//! of its tests.

#![cfg(not(miri))] // It starts processes.

use poach_deque::{
    Biased, ChaseLev, Fifo, IdempotentFifo, Injector, Mutex, Owner, Split, crossbeam,
};

use crate::LEFT;
use crate::own_process::this_test;

/// Says to the process which push it is to make.
const PUSH: &str = "POACH_TEST_PUSHES_WITHOUT_MEMORY";

/// This number of tasks fills a queue's initial memory, and what is allocated for many at once.
const MANY: u64 = 1 << 16;

type Push = Box<dyn Fn(u64)>;

/// A push of each kind.
fn pushes() -> Vec<(&'static str, Push)> {
    fn of<O: Owner<u64> + 'static>(name: &'static str, owner: O) -> (&'static str, Push) {
        (name, Box::new(move |task| owner.push(task)))
    }
    let biased = Biased::<u64>::new();
    let fifo = Fifo::<u64>::new();
    let injector = Injector::<u64>::new();
    let worker = crossbeam::Worker::new_lifo();
    let all = crossbeam::Injector::new();
    vec![
        of("an owner's", ChaseLev::<u64>::new()),
        of("an idempotent queue's", IdempotentFifo::<u64>::default()),
        of("a split deque's", Split::<u64>::default()),
        of("a queue's with a lock", Mutex::<u64>::default()),
        ("a biased deque's", Box::new(move |task| biased.push(task))),
        ("a first-in, first-out queue's", Box::new(move |task| fifo.push(task))),
        ("an injector's", Box::new(move |task| injector.push(task))),
        ("a worker's", Box::new(move |task| worker.push(task))),
        ("that of a worker's injector", Box::new(move |task| all.push(task))),
    ]
}

#[test]
fn a_push_without_memory_ends_the_program() {
    let pushes = pushes();
    if let Ok(which) = std::env::var(PUSH) {
        let (_, push) = &pushes[which.parse::<usize>().unwrap()];
        LEFT.set(0);
        (0..MANY).for_each(push);
        LEFT.set(u32::MAX);
        return;
    }
    for (number, (name, _)) in pushes.iter().enumerate() {
        let mut child = this_test("a_push_without_memory_ends_the_program");
        let ended = child.env(PUSH, number.to_string()).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success(), "{name} push goes on without memory");
        assert!(said.contains("memory allocation of"), "{name} push: {said}");
    }
}

/// Whichever request for memory it is that is refused.
#[test]
fn a_push_that_may_fail_gives_the_task_back() {
    fn fails<O: Owner<u64>>(make: impl Fn() -> O) {
        for left in 0..12 {
            let owner = make();
            LEFT.set(left);
            let refused =
                (0..MANY).find_map(|task| owner.try_push(task).err().map(|it| (task, it.0)));
            LEFT.set(u32::MAX);
            let (task, back) = refused.expect("there is no memory for so many");
            assert_eq!(task, back);
            // The queue is as it was.
            assert_eq!(owner.len() as u64, task);
            assert!(owner.try_push(task).is_ok());
            let mut all: Vec<u64> = std::iter::from_fn(|| owner.pop()).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..=task));
        }
    }
    fails(ChaseLev::<u64>::new);
    fails(Biased::<u64>::new);
    fails(Fifo::<u64>::new);
    fails(Split::<u64>::default);
    fails(IdempotentFifo::<u64>::default);
}
