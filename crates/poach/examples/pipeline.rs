//! A pipeline: two threads parse lines and a third sums them. The pools between them are bounded,
//! and close by themselves, as channels do.

use std::thread;

use poach::pool::{PutError, TaskPool};

pub(crate) fn main() {
    let lines = TaskPool::builder().capacity(64).build().unwrap();
    let numbers = TaskPool::builder().capacity(64).build().unwrap();
    let sum: u64 = thread::scope(|scope| {
        for _ in 0..2 {
            let (mut from, mut to) = (lines.consumer().unwrap(), numbers.producer().unwrap());
            scope.spawn(move || {
                // Ends when the stage before has ended, by its last statement or by a panic.
                while let Ok(line) = from.get() {
                    let line: String = line;
                    to.put(line.trim().parse::<u64>().unwrap()).unwrap();
                }
            });
        }
        let mut from = numbers.consumer().unwrap();
        let summed = scope.spawn(move || from.iter().sum());
        let mut to = lines.producer().unwrap();
        to.put_many((1..=1000).map(|n| format!(" {n}\n"))).unwrap();
        // The last producer closes a pool: the next stage takes the remaining tasks, and ends.
        drop(to);
        summed.join().unwrap()
    });
    assert_eq!(sum, 500_500);

    // If the consumers end first, a put returns an error with the task, even if the pool is full.
    let orphan = TaskPool::builder().capacity(1).build().unwrap();
    let (mut to, from) = (orphan.producer().unwrap(), orphan.consumer().unwrap());
    drop(from);
    assert_eq!(to.put("nobody takes this"), Err(PutError::NoConsumer("nobody takes this")));
    println!("{sum}");
}
