//! What every queue does, whatever its algorithm and its policy: functions generic over the queue.
//!
//! A queue that aborts or waits close to its owner is driven accordingly: thieves retry until the
//! owner has finished and the queue looks empty, and the owner takes the remaining tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use poach_deque::{Owner, Steal, Thief};

/// Steals until something other than `Retry` comes of it.
pub(crate) fn steal<T, S: Thief<T>>(thief: &S) -> Steal<T> {
    loop {
        match thief.steal() {
            Steal::Retry => thread::yield_now(),
            other => return other,
        }
    }
}

pub(crate) fn owner_takes_the_youngest<O: Owner<u64>>(queue: O) {
    for task in 0..100 {
        queue.push(task);
    }
    assert_eq!(queue.len(), 100);
    for task in (0..100).rev() {
        assert_eq!(queue.pop(), Some(task));
    }
    assert_eq!(queue.pop(), None);
    assert!(queue.is_empty());
}

pub(crate) fn thieves_take_the_oldest<O: Owner<u64>>(queue: O) {
    let thief = queue.thief();
    for task in 0..1000 {
        queue.push(task);
    }
    for task in 0..100 {
        assert_eq!(steal(&thief), Steal::Success(task));
    }
    assert_eq!(queue.pop(), Some(999));
    assert_eq!(thief.len(), 899);
}

pub(crate) fn an_empty_queue_says_so<O: Owner<u64>>(queue: O) {
    let thief = queue.thief();
    for round in 0..200 {
        assert_eq!(queue.pop(), None);
        assert!(steal(&thief).is_empty());
        assert!(queue.is_empty() && thief.is_empty());
        queue.push(round);
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.pop(), Some(round));
    }
}

/// How often a test tries to steal where it may be in vain. (A thief of a private deque waits for
/// its owner each time, and here in vain: an interpreter has no time for many.)
const ATTEMPTS: u64 = if cfg!(miri) { 8 } else { 100 };

/// One attempt, and two more if another thread was in the way.
fn attempt<T, S: Thief<T>>(thief: &S) -> Option<T> {
    (0..3).find_map(|_| thief.steal().success())
}

pub(crate) fn grows_past_a_million<O: Owner<u64>>(queue: O) {
    let tasks = if cfg!(miri) { 1 << 8 } else { (1 << 20) + 7 };
    let thief = queue.thief();
    for task in 0..tasks {
        queue.push(task);
    }
    assert_eq!(queue.len() as u64, tasks);
    let stolen = (0..ATTEMPTS).filter_map(|_| attempt(&thief)).collect::<Vec<_>>();
    assert_eq!(stolen, (0..stolen.len() as u64).collect::<Vec<_>>());
    for task in (stolen.len() as u64..tasks).rev() {
        assert_eq!(queue.pop(), Some(task));
    }
    assert_eq!(queue.pop(), None);
}

/// Laps around a ring, growing at first; `queue` starts a few tasks before its index wraps. There
/// are always more tasks than any delta.
pub(crate) fn indices_wrap_around<O: Owner<u64>>(queue: O) {
    let thief = queue.thief();
    let mut oldest = 0;
    let mut next = 0;
    while next < 150 {
        queue.push(next);
        next += 1;
    }
    for round in 0..if cfg!(miri) { 8 } else { 50_u64 } {
        for _ in 0..round % 7 + 60 {
            queue.push(next);
            next += 1;
        }
        for _ in 0..round % 7 + 60 {
            assert_eq!(steal(&thief), Steal::Success(oldest));
            oldest += 1;
        }
    }
    while let Some(task) = queue.pop() {
        next -= 1;
        assert_eq!(task, next);
    }
    assert_eq!(next, oldest);
}

pub(crate) fn thieves_take_the_oldest_of_a_fifo<O: Owner<u64>>(queue: O) {
    let thief = queue.thief();
    for task in 0..1000 {
        queue.push(task);
    }
    for task in 0..500 {
        assert_eq!(steal(&thief), Steal::Success(2 * task));
        assert_eq!(queue.pop(), Some(2 * task + 1));
    }
    assert!(steal(&thief).is_empty());
}

pub(crate) fn a_fifo_grows_past_a_million<O: Owner<u64>>(queue: O) {
    let tasks = if cfg!(miri) { 1 << 8 } else { (1 << 20) + 7 };
    for task in 0..tasks {
        queue.push(task);
    }
    assert_eq!(queue.len() as u64, tasks);
    for task in 0..tasks {
        assert_eq!(queue.pop(), Some(task));
    }
    assert_eq!(queue.pop(), None);
}

pub(crate) fn indices_of_a_fifo_wrap_around<O: Owner<u64>>(queue: O) {
    let thief = queue.thief();
    let (mut next, mut oldest) = (0, 0);
    for round in 0..50u64 {
        for _ in 0..20 {
            queue.push(next);
            next += 1;
        }
        for _ in 0..round % 3 + 18 {
            let taken = if oldest % 2 == 0 { queue.pop() } else { steal(&thief).success() };
            if let Some(task) = taken {
                assert_eq!(task, oldest);
                oldest += 1;
            }
        }
    }
    assert_eq!(queue.len() as u64, next - oldest);
}

/// A task that counts its drops.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn each_task_is_dropped_once<O: Owner<Counted>>(queue: O) {
    let drops = Arc::new(AtomicUsize::new(0));
    let thief = queue.thief();
    for _ in 0..300 {
        queue.push(Counted(Arc::clone(&drops)));
    }
    let stolen = (0..ATTEMPTS).filter_map(|_| attempt(&thief)).count();
    let popped = (0..30).filter_map(|_| queue.pop()).count();
    assert_eq!(popped, 30);
    assert_eq!(drops.load(Ordering::Relaxed), stolen + popped);
    drop(queue);
    drop(thief);
    assert_eq!(drops.load(Ordering::Relaxed), 300);
}

/// A task whose drop panics if it says so.
pub(crate) struct Panics(Arc<AtomicUsize>, bool);

impl Drop for Panics {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert!(!self.1, "a destructor's panic, as the test wants");
    }
}

pub(crate) fn a_panicking_destructor_spares_the_others<O: Owner<Panics>>(queue: O) {
    let drops = Arc::new(AtomicUsize::new(0));
    for task in 0..100 {
        queue.push(Panics(Arc::clone(&drops), task == 40));
    }
    let caught = catch_unwind(AssertUnwindSafe(|| drop(queue)));
    assert!(caught.is_err(), "the panic is passed on");
    assert_eq!(drops.load(Ordering::Relaxed), 100);
}

pub(crate) fn a_thief_outlives_the_owner<O: Owner<u64>>(queue: O) {
    let thief = queue.thief();
    for task in 0..10 {
        queue.push(task);
    }
    drop(queue);
    for task in 0..10 {
        assert_eq!(steal(&thief), Steal::Success(task));
    }
    assert!(steal(&thief).is_empty());
}

/// A queue whose thieves, too, take the youngest; the last of them after the owner has gone.
pub(crate) fn grows_and_is_stolen_from_at_one_end<O: Owner<u64>>(queue: O) {
    let tasks = if cfg!(miri) { 1 << 8 } else { (1 << 20) + 7 };
    let thief = queue.thief();
    (0..tasks).for_each(|task| queue.push(task));
    for task in (10..tasks).rev() {
        let taken = if task % 2 == 0 { queue.pop() } else { steal(&thief).success() };
        assert_eq!(taken, Some(task));
    }
    drop(queue);
    for task in (0..10).rev() {
        assert_eq!(steal(&thief), Steal::Success(task));
    }
    assert!(steal(&thief).is_empty());
}

/// A steal of half into the very queue stolen from takes the tasks around, and loses none.
pub(crate) fn a_steal_into_oneself_loses_nothing<O: Owner<u64>>(queue: O) {
    let thief = queue.thief();
    for task in 0..400 {
        queue.push(task);
    }
    let Steal::Success(first) = thief.steal_half(&queue) else { panic!("there are 400 tasks") };
    let mut seen = vec![first];
    while let Some(task) = queue.pop() {
        seen.push(task);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..400).collect::<Vec<_>>());
}

pub(crate) fn half_moves_to_another_owner<O: Owner<u64>>(queue: O, other: O) {
    let thief = queue.thief();
    for task in 0..400 {
        queue.push(task);
    }
    assert_eq!(thief.steal_half(&other), Steal::Success(0));
    assert_eq!(other.len() + queue.len(), 399);
    assert_eq!(other.len(), 199);
}

/// Tasks larger than a word, with padding, and of no size.
pub(crate) fn tasks_of_any_size<O: Owner<(u8, u64, u16)>, Z: Owner<()>>(queue: O, unit: Z) {
    let thief = queue.thief();
    for task in 0..300 {
        queue.push((task as u8, task, task as u16));
    }
    for task in 0..ATTEMPTS {
        if let Some(stolen) = attempt(&thief) {
            assert_eq!(stolen, (task as u8, task, task as u16));
        }
    }
    assert_eq!(queue.pop(), Some((43, 299, 299)));
    for _ in 0..300 {
        unit.push(());
    }
    assert_eq!(std::iter::from_fn(|| unit.pop()).count(), 300);
}

/// `tasks` tasks, one owner that pushes in bursts and pops some of them, `thieves` thieves: each
/// task comes out exactly once, as the ids of all that anyone took must show.
pub(crate) fn every_task_comes_out_once<O: Owner<u64>>(
    queue: &O,
    thieves: usize,
    tasks: u64,
    seed: u64,
) where
    O::Thief: 'static,
{
    let counts = count(queue, thieves, tasks, seed);
    let wrong = wrong(&counts, |count| count != 1);
    assert!(wrong.is_empty(), "seed {seed}, {thieves} thieves: task, how often it came: {wrong:?}");
}

/// As [`every_task_comes_out_once`], for queues that may hand a task out again.
pub(crate) fn every_task_comes_out<O: Owner<u64>>(queue: &O, thieves: usize, tasks: u64, seed: u64)
where
    O::Thief: 'static,
{
    let counts = count(queue, thieves, tasks, seed);
    let lost = wrong(&counts, |count| count == 0);
    assert!(lost.is_empty(), "seed {seed}, {thieves} thieves: lost {lost:?}");
}

/// As [`every_task_comes_out`], and nobody takes a task twice.
pub(crate) fn every_task_comes_out_once_by_each<O: Owner<u64>>(
    queue: &O,
    thieves: usize,
    tasks: u64,
    seed: u64,
) where
    O::Thief: 'static,
{
    let mut counts = vec![0; tasks as usize];
    for (who, taken) in take_all(queue, thieves, tasks, seed).into_iter().enumerate() {
        let mut own = vec![0; tasks as usize];
        for &task in &taken {
            own[task as usize] += 1;
        }
        let again = wrong(&own, |count| count > 1);
        assert!(again.is_empty(), "seed {seed}, {thieves} thieves: {who} took again {again:?}");
        counts.iter_mut().zip(own).for_each(|(count, own)| *count += own);
    }
    let lost = wrong(&counts, |count| count == 0);
    assert!(lost.is_empty(), "seed {seed}, {thieves} thieves: lost {lost:?}");
}

fn count<O: Owner<u64>>(queue: &O, thieves: usize, tasks: u64, seed: u64) -> Vec<u32>
where
    O::Thief: 'static,
{
    let mut counts = vec![0; tasks as usize];
    for task in take_all(queue, thieves, tasks, seed).into_iter().flatten() {
        counts[task as usize] += 1;
    }
    counts
}

/// The first few tasks whose count is wrong.
fn wrong(counts: &[u32], is_wrong: impl Fn(u32) -> bool) -> Vec<(usize, u32)> {
    let all = counts.iter().copied().enumerate();
    all.filter(|&(_, count)| is_wrong(count)).take(10).collect()
}

/// Runs the owner and the thieves dry and returns what each of them took, the owner first.
pub(crate) fn take_all<O: Owner<u64>>(
    queue: &O,
    thieves: usize,
    tasks: u64,
    seed: u64,
) -> Vec<Vec<u64>>
where
    O::Thief: 'static,
{
    let done = Arc::new(AtomicBool::new(false));
    let handles: Vec<_> = (0..thieves)
        .map(|_| {
            let thief = queue.thief();
            let done = Arc::clone(&done);
            thread::spawn(move || {
                let mut taken = Vec::new();
                loop {
                    match thief.steal() {
                        Steal::Success(task) => taken.push(task),
                        Steal::Retry => std::hint::spin_loop(),
                        Steal::Empty | Steal::Abort => {
                            if done.load(Ordering::Acquire) {
                                return taken;
                            }
                            thread::yield_now();
                        }
                    }
                }
            })
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut own = Vec::new();
    let mut next = 0;
    while next < tasks {
        let burst = random.u64(1..200).min(tasks - next);
        for _ in 0..burst {
            queue.push(next);
            next += 1;
        }
        // A third of it is the owner's at most, and now and then it lets the thieves catch up.
        for _ in 0..random.u64(0..=burst / 3) {
            own.extend(queue.pop());
        }
        if random.u64(0..8) == 0 {
            thread::yield_now();
        }
    }
    while let Some(task) = queue.pop() {
        own.push(task);
    }
    done.store(true, Ordering::Release);
    let mut all = vec![own];
    for handle in handles {
        all.push(handle.join().expect("a thief does not panic"));
    }
    // What a thief took away between the owner's last look and its own is accounted for by its
    // list.
    while let Some(task) = queue.pop() {
        all[0].push(task);
    }
    all
}
