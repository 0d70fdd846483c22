//! For users of crossbeam: producers and consumers, and a deque.

use poach::deque::split::NoTask;
use poach::deque::{Split, Steal};
use poach::pool::TaskPool;

pub(crate) fn main() {
    let pool = TaskPool::new();
    let sum: u64 = std::thread::scope(|scope| {
        let mut consumer = pool.consumer().unwrap();
        let taken = scope.spawn(move || consumer.iter().sum::<u64>());
        // The last producer closes the pool, also if it panics.
        pool.producer().unwrap().put_many(1..=100).unwrap();
        taken.join().unwrap()
    });
    assert_eq!(sum, 5050);

    // Pushes are private until the owner shares them.
    let owner: Split<u32> = Split::new();
    (0..10).for_each(|task| owner.push(task));
    let thief = owner.thief();
    assert_eq!(thief.steal(), Steal::Empty);
    // `try_steal` tells private tasks from none, which `Empty` does not.
    assert_eq!(thief.try_steal(), Err(NoTask::Private));
    assert!(owner.share());
    assert_eq!(thief.steal(), Steal::Success(0));
    println!("{sum}");
}
