//! Tasks in the order in which one thread has spawned them.
//!
//! A worker runs the youngest of its own tasks first. For first-in-first-out order the tasks wait
//! in a queue beside the worker's own, which holds a ticket for each. A worker that pops or steals
//! a ticket runs the oldest task of the ticket's queue. There are as many tickets as tasks, and a
//! task is queued before its ticket, so a ticket always finds one. (The indirection is
//! rayon-core's; its queue is lock-free, this one is locked for a push or a pop.)

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::system::process::ProcessGuard;
use crate::task::value::Task;
use crate::worker::current::WorkerThread;

/// The tasks of one spawner, oldest first.
pub(crate) struct Fifo {
    tasks: Mutex<VecDeque<Task>>,
    process_guard: ProcessGuard,
}

impl Fifo {
    pub(crate) fn new() -> Fifo {
        Fifo { tasks: Mutex::new(VecDeque::new()), process_guard: ProcessGuard::here() }
    }

    /// Queues a task, and returns its ticket.
    pub(crate) fn ticket(self: &Arc<Self>, task: Task) -> Task {
        self.process_guard.lock(&self.tasks).push_back(task);
        let fifo = Arc::clone(self);
        Task::detached(move || {
            let mut queue = fifo.process_guard.lock(&fifo.tasks);
            let oldest = queue.pop_front();
            drop(queue);
            let oldest = oldest.expect("a ticket stands for a task");
            // A wait of the task must not take the tickets below: they stand for younger tasks.
            WorkerThread::with(|local| {
                let _own = local.map(WorkerThread::own_from_here);
                oldest.run()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_in_any_order_run_the_tasks_in_theirs() {
        let (fifo, seen) = (Arc::new(Fifo::new()), Arc::new(Mutex::new(Vec::new())));
        let mut tickets: Vec<_> = (0..5)
            .map(|i| {
                let seen = Arc::clone(&seen);
                fifo.ticket(Task::detached(move || seen.lock().unwrap().push(i)))
            })
            .collect();
        tickets.rotate_left(2);
        tickets.reverse();
        for ticket in tickets {
            let _ = ticket.run();
        }
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 4]);
    }
}
