//! loom models of the inbox: a task that was put in can be taken, wherever other pushers stand.

use loom::sync::{Arc, Mutex};
use loom::thread;
use poach_memory::{Loom, Ordering};

use super::{Inbox, Lock, Locks};

struct LoomLock<T>(Mutex<T>);

impl<T: Send> Lock<T> for LoomLock<T> {
    fn new(tasks: T) -> Self {
        LoomLock(Mutex::new(tasks))
    }

    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        Some(body(&mut self.0.lock().unwrap()))
    }
}

enum LoomLocks {}

impl Locks for LoomLocks {
    type Lock<T: Send> = LoomLock<T>;
}

type Modelled = Inbox<u64, Loom, LoomLocks>;

/// One thread puts 1 in, another 2, and the second thread then takes until it has its own.
fn two_pushers(put: fn(&Modelled, u64), take: fn(&Modelled) -> Option<u64>) {
    loom::model(move || {
        let inbox = Arc::new(Modelled::new());
        let other = Arc::clone(&inbox);
        let pusher = thread::spawn(move || put(&other, 1));
        put(&inbox, 2);
        let mut taken = vec![take(&inbox).expect("a task that was put in is hidden")];
        if taken == [1] {
            taken.push(take(&inbox).expect("a task that was put in is hidden"));
        }
        pusher.join().unwrap();
        taken.extend(take(&inbox));
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        assert!(inbox.is_empty() && inbox.take().is_none());
    });
}

#[test]
fn a_task_whose_push_is_complete_can_be_taken() {
    two_pushers(Inbox::put, Inbox::take);
}

#[test]
#[should_panic(expected = "a task that was put in is hidden")]
fn a_length_that_is_counted_after_the_lock_hides_anothers_task() {
    let put = |inbox: &Modelled, task| {
        inbox.put.tasks.with(|tasks| tasks.push(task));
        inbox.put.count.fetch_add(1, Ordering::Relaxed);
    };
    two_pushers(put, Inbox::take);
}

#[test]
fn two_takers_share_what_is_there() {
    loom::model(|| {
        let inbox = Arc::new(Modelled::new());
        inbox.put(1);
        let other = Arc::clone(&inbox);
        let taker = thread::spawn(move || other.take());
        inbox.put(2);
        let mut taken: Vec<u64> = inbox.take().into_iter().collect();
        taken.extend(taker.join().unwrap());
        taken.extend(inbox.take());
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}
