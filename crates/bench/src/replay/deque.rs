//! A worker of the simulation: its split deque and what it is in the midst of.
//!
//! The deque is Lace's (Figure 4): a task below `tail` is stolen, one below `split` can be, the others
//! are private. A stolen task keeps its place until its owner has its result.

/// Nobody.
pub(super) const NOBODY: u32 = u32::MAX;

/// A half on a deque.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<T> {
    pub(super) task: T,
    pub(super) thief: u32,
    pub(super) done: bool,
}

/// What a worker goes back to when a task is done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame<T> {
    /// The first half was running; the second is on the deque, or stolen.
    First { after: T },
    /// The second half was running, here.
    Second { after: T },
    /// The second half is stolen, and this worker looks for other work.
    Waiting { after: T },
    /// A half of somebody else's was running.
    Stolen { victim: u32, slot: u32 },
}

/// What a worker does at its next event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next<T> {
    /// Its strand ends so.
    End(super::tree::End<T>),
    /// It reaches for a task of this worker.
    Attempt(u32),
    /// It looks again whether what it waits for is done.
    Look,
    /// It has waited long enough to make somebody's private tasks visible.
    Expose,
}

#[expect(clippy::struct_excessive_bools, reason = "each of them is a state of its own")]
pub(super) struct Worker<T> {
    pub(super) frames: Vec<Frame<T>>,
    pub(super) deque: Vec<Slot<T>>,
    pub(super) tail: usize,
    pub(super) split: usize,
    /// The owner knows that everything on its deque is stolen.
    pub(super) all_stolen: bool,
    /// A thief has asked for more.
    pub(super) asked: bool,
    /// When the request was last answered, and how lucky those who pass by are to be: see
    /// `Simulation::is_asked`.
    pub(super) answered: u64,
    pub(super) luck: f64,
    pub(super) next: Next<T>,
    /// Those who sleep until this one has something for them, and at which of their epochs.
    pub(super) watchers: Vec<(u32, u32)>,
    /// Sleeps: its event, if it has one, is the exposure.
    pub(super) parked: bool,
    /// Sleeps among those whom anybody's tasks wake.
    pub(super) in_pool: bool,
    /// Grows when it wakes, so that what was meant for the sleeper is known for old.
    pub(super) epoch: u32,
    /// Where it stands among those with something to steal, or [`NOBODY`].
    pub(super) place: u32,
}

impl<T: Copy> Worker<T> {
    pub(super) fn new() -> Self {
        Worker {
            frames: Vec::new(),
            deque: Vec::new(),
            tail: 0,
            split: 0,
            all_stolen: false,
            asked: false,
            answered: 0,
            luck: 1.0,
            next: Next::Look,
            watchers: Vec::new(),
            parked: false,
            in_pool: false,
            epoch: 0,
            place: NOBODY,
        }
    }

    /// How many tasks a thief could take now.
    pub(super) fn shared(&self) -> usize {
        self.split - self.tail
    }

    /// How many tasks only the owner can take.
    pub(super) fn private(&self) -> usize {
        if self.all_stolen { 0 } else { self.deque.len() - self.split }
    }

    /// Puts a task on the deque. True if it was visible at once, for all below was stolen.
    pub(super) fn push(&mut self, task: T) -> bool {
        self.deque.push(Slot { task, thief: NOBODY, done: false });
        let visible = self.all_stolen;
        if visible {
            let head = self.deque.len();
            (self.tail, self.split) = (head - 1, head);
            self.all_stolen = false;
        }
        visible
    }

    /// Makes half of the private tasks visible, at least one, and says how many.
    pub(super) fn grow(&mut self) -> usize {
        let half = self.private().div_ceil(2);
        self.split += half;
        half
    }

    /// Whether the newest task is still there: if it is not private, half of the shared ones are taken
    /// back. The second is true if that took a fence.
    pub(super) fn has_newest(&mut self) -> (bool, bool) {
        if self.all_stolen {
            return (false, false);
        }
        if self.split < self.deque.len() {
            return (true, false);
        }
        if self.tail == self.split {
            self.all_stolen = true;
            return (false, false);
        }
        self.split = usize::midpoint(self.tail, self.split);
        (true, true)
    }

    /// A thief takes the oldest task; its place on the deque and the task.
    pub(super) fn steal(&mut self, thief: u32) -> Option<(u32, T)> {
        if self.shared() == 0 {
            return None;
        }
        let at = self.tail;
        self.tail += 1;
        self.deque[at].thief = thief;
        Some((at as u32, self.deque[at].task))
    }

    /// The half that this worker waits for, if it does.
    pub(super) fn waits_for(&self) -> Option<&Slot<T>> {
        match self.frames.last() {
            Some(Frame::Waiting { .. }) => self.deque.last(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(tasks: u32) -> Worker<u32> {
        let mut worker = Worker::new();
        for task in 0..tasks {
            worker.push(task);
        }
        worker
    }

    #[test]
    fn nothing_is_visible_until_half_is_made_so() {
        let mut worker = with(5);
        assert!(worker.steal(1).is_none());
        assert_eq!(worker.grow(), 3);
        assert_eq!(worker.steal(1), Some((0, 0)));
        assert_eq!((worker.shared(), worker.private()), (2, 2));
        assert_eq!(worker.grow(), 1);
    }

    #[test]
    fn the_owner_takes_half_back_with_a_fence() {
        let mut worker = with(4);
        worker.grow();
        worker.grow();
        worker.grow();
        assert_eq!((worker.shared(), worker.private()), (4, 0));
        assert_eq!(worker.has_newest(), (true, true));
        assert_eq!((worker.shared(), worker.private()), (2, 2));
        assert_eq!(worker.has_newest(), (true, false));
    }

    #[test]
    fn when_all_is_stolen_the_next_push_is_visible() {
        let mut worker = with(1);
        worker.grow();
        worker.steal(7);
        assert_eq!(worker.has_newest(), (false, false));
        assert!(worker.all_stolen);
        assert!(worker.push(9));
        assert_eq!(worker.steal(8), Some((1, 9)));
    }
}
