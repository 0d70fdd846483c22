//! A scheduler on the split deque, with thieves that sleep. In contrast to crossbeam-deque, pushes
//! are private until they are shared. (The example `scheduler` of `poach-deque` needs no lock.)

use std::sync::{Condvar, Mutex};
use std::thread;

use poach::deque::Split;
use poach::deque::split::{Exposure, NoTask, Thief};

type Task = Box<dyn FnOnce() -> u32 + Send>;

/// The number of unfinished tasks, and the condition on which idle threads sleep.
struct Pool {
    left: Mutex<u32>,
    bell: Condvar,
}

impl Pool {
    fn is_done(&self) -> bool {
        *self.left.lock().unwrap() == 0
    }

    fn run(&self, task: Task) -> u32 {
        let result = task();
        let mut left = self.left.lock().unwrap();
        *left -= 1;
        if *left == 0 {
            self.bell.notify_all();
        }
        result
    }

    fn thief(&self, victim: &Thief<Task>) -> u32 {
        let mut sum = 0;
        while !self.is_done() {
            match victim.try_steal() {
                Ok(task) => sum += self.run(task),
                Err(NoTask::Lost) => std::hint::spin_loop(),
                // There is private work, and `steal` has left a request: the owner shares at its
                // next push or pop. If the owner does not come back to its queue, this thread can
                // expose the work, on a system with a process-wide barrier.
                Err(NoTask::Private) if victim.expose() != Exposure::Refused => {}
                Err(NoTask::Private | NoTask::Empty) => {
                    let left = self.left.lock().unwrap();
                    if *left != 0 && victim.is_empty() {
                        // A push that answers a request notifies no sleeping thread.
                        let nap = std::time::Duration::from_millis(1);
                        drop(self.bell.wait_timeout(left, nap).unwrap());
                    }
                }
            }
        }
        sum
    }

    fn owner(&self, own: &Split<Task>) -> u32 {
        let mut sum = 0;
        while let Some(task) = own.pop() {
            // Share before a task that may be long: else the others wait for its end.
            if own.share() {
                self.bell.notify_all();
            }
            sum += self.run(task);
        }
        sum
    }
}

pub(crate) fn main() {
    const TASKS: u32 = 100;
    let own: Split<Task> = Split::new();
    for n in 1..=TASKS {
        own.push(Box::new(move || n));
    }
    let pool = Pool { left: Mutex::new(TASKS), bell: Condvar::new() };
    let sum: u32 = thread::scope(|scope| {
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let (pool, victim) = (&pool, own.thief());
                scope.spawn(move || pool.thief(&victim))
            })
            .collect();
        let own = pool.owner(&own);
        thieves.into_iter().fold(own, |sum, thief| sum + thief.join().unwrap())
    });
    assert_eq!(sum, 5050);
    println!("{sum}");
}
