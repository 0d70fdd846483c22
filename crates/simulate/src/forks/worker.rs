//! A simulated worker: strands, forks and joins, and Lace's search for work. Poach's is the
//! [seeker](super::seeker)'s.

use poach_memory::{Ordering, Word};
use poach_runtime::generic::{SearchLoop, Unrestricted};

use super::seeker::Seeker;
use super::stack::{Joined, Owner, Stolen};
use super::tree::{End, Tree};
use super::{Pool, Search, bump};

/// Poach's search for work, under way.
type Searching<'s, 'p, T> = SearchLoop<'s, Seeker<'p, T>, Unrestricted>;

/// What a worker goes back to when a task is done.
enum Frame<'s, 'p, T: Tree> {
    /// The first half was running; the second is on the stack, or stolen.
    First { after: T::Task },
    /// The second half was running, here.
    Second { after: T::Task },
    /// The second half is stolen, and this worker looks for other work.
    Waiting { after: T::Task, looking: Option<Searching<'s, 'p, T>> },
    /// A half of another worker's fork was running.
    Stolen(Stolen<'p, T::Task>),
}

/// One worker, on its simulated processor.
struct Worker<'s, 'p, T: Tree> {
    pool: &'p Pool<T>,
    seeker: &'s Seeker<'p, T>,
    number: usize,
    owner: Owner<'p, T::Task>,
    frames: Vec<Frame<'s, 'p, T>>,
    random: fastrand::Rng,
}

impl<T: Tree> Pool<T> {
    /// Works until the end. Worker 0 begins with the root.
    pub(super) fn work(&self, number: usize, seed: u64) {
        let seeker = Seeker::new(self, number, seed);
        let mut worker = Worker {
            pool: self,
            seeker: &seeker,
            number,
            owner: self.stacks.owner(number),
            frames: Vec::new(),
            random: fastrand::Rng::with_seed(seed << 16 | number as u64),
        };
        let idle =
            || (self.search == Search::Poach).then(|| SearchLoop::idle(Unrestricted::idle(), 0));
        let mut idle = idle();
        let mut next = (number == 0).then(|| self.tree.root());
        // Relaxed: a worker that sees the end late only looks for tasks in vain.
        while next.is_some() || self.ended.load(Ordering::Relaxed) == 0 {
            next = match (next, &mut idle) {
                (Some(task), _) => worker.run(task),
                (None, Some(idle)) => worker.search(idle),
                (None, None) => worker.look(),
            };
        }
    }
}

impl<'s, 'p, T: Tree> Worker<'s, 'p, T> {
    /// Runs a strand; what this worker runs next, if it knows.
    fn run(&mut self, task: T::Task) -> Option<T::Task> {
        let counts = &self.pool.counts;
        let strand = self.pool.tree.strand(task);
        bump(&counts.strands);
        crate::work(strand.work + strand.inner * self.pool.fork);
        match strand.end {
            End::Fork { first, second, after } => {
                bump(&counts.forks);
                self.owner.fork(second).expect("a stack holds the forks of the deepest tree");
                counts.depth.set(counts.depth.get().max(self.owner.depth()));
                self.frames.push(Frame::First { after });
                Some(first)
            }
            End::Done => self.finish(),
        }
    }

    /// A task is done.
    fn finish(&mut self) -> Option<T::Task> {
        match self.frames.pop() {
            Some(Frame::First { after }) => match self.owner.join() {
                Joined::Own(second) => {
                    self.frames.push(Frame::Second { after });
                    Some(second)
                }
                Joined::Stolen => {
                    let poach = self.pool.search == Search::Poach;
                    let looking = poach.then(|| self.seeker.waits());
                    self.frames.push(Frame::Waiting { after, looking });
                    None
                }
            },
            Some(Frame::Second { after }) => Some(after),
            Some(Frame::Stolen(stolen)) => {
                let victim = stolen.victim;
                stolen.finish();
                if self.pool.search == Search::Poach {
                    self.seeker.has_finished(victim);
                }
                None
            }
            // What runs while a worker waits stands above a frame of its own.
            Some(Frame::Waiting { .. }) => unreachable!("a task that waits has ended"),
            None => {
                self.pool.counts.took.set(crate::now());
                // Release: what the program has computed comes before it.
                self.pool.ended.store(1, Ordering::Release);
                if self.pool.search == Search::Poach {
                    self.pool.idlers.wake_all();
                }
                None
            }
        }
    }

    /// Begins what was stolen.
    fn begin(&mut self, stolen: Stolen<'p, T::Task>) -> T::Task {
        let waits = matches!(self.frames.last(), Some(Frame::Waiting { .. }));
        let counts = &self.pool.counts;
        bump(if waits { &counts.leaps } else { &counts.steals });
        let task = stolen.task;
        self.frames.push(Frame::Stolen(stolen));
        task
    }

    /// Poach's: searches until what this worker waits for is done, or there is work. `idle` is the
    /// search of a worker with nothing under way.
    fn search(&mut self, idle: &mut Searching<'s, 'p, T>) -> Option<T::Task> {
        let Worker { pool, seeker, owner, frames, .. } = self;
        let found = match frames.last_mut() {
            Some(Frame::Waiting { after, looking: Some(looking) }) => {
                let after = *after;
                let found = looking.next(*seeker, &|| owner.is_done(), &|| owner.thief());
                if found.is_none() {
                    owner.retire();
                    frames.pop();
                    return Some(after);
                }
                found
            }
            // Relaxed: as in `work`.
            _ => idle.next(*seeker, &|| pool.ended.load(Ordering::Relaxed) != 0, &|| None),
        };
        found.map(|stolen| self.begin(stolen))
    }

    /// Lace's: looks once, whether what this worker waits for is done, else for work.
    fn look(&mut self) -> Option<T::Task> {
        let (mut waits, mut thief) = (false, None);
        if let Some(Frame::Waiting { after, .. }) = self.frames.last() {
            let after = *after;
            if self.owner.retire() {
                self.frames.pop();
                self.follow(None);
                return Some(after);
            }
            (waits, thief) = (true, self.owner.thief());
            self.follow(thief);
        }
        let stolen = self.find(waits, thief)?;
        Some(self.begin(stolen))
    }

    /// Says which worker this worker waits for, so that others can follow the chain.
    fn follow(&self, thief: Option<usize>) {
        if self.pool.search.follows_further() {
            let word = &self.pool.follows[self.number];
            let new = thief.map_or(0, |thief| thief as u64 + 1);
            // Relaxed, both: this worker's own word, and a hint to the others.
            if word.load(Ordering::Relaxed) != new {
                word.store(new, Ordering::Relaxed);
            }
        }
    }

    /// `waits` if this worker is not idle; `thief` has what it waits for, if that is known.
    fn find(&mut self, waits: bool, mut thief: Option<usize>) -> Option<Stolen<'p, T::Task>> {
        let search = self.pool.search;
        if waits {
            let reach = if search.follows_further() { self.pool.follows.len() } else { 1 };
            for _ in 0..reach {
                let Some(victim) = thief.filter(|&victim| victim != self.number) else { break };
                if let Some(stolen) = self.steal(victim) {
                    return Some(stolen);
                }
                if reach > 1 {
                    // Relaxed: a hint.
                    let further = self.pool.follows[victim].load(Ordering::Relaxed);
                    thief = (further as usize).checked_sub(1);
                }
            }
            if !search.takes_any() {
                return None;
            }
        }
        // One of all others, if there are any.
        let others = self.pool.follows.len() - 1;
        let victim = (others > 0).then(|| self.random.usize(..others))?;
        self.steal(victim + usize::from(victim >= self.number))
    }

    fn steal(&self, victim: usize) -> Option<Stolen<'p, T::Task>> {
        let stolen = self.pool.stacks.steal(victim, self.number);
        if stolen.is_none() {
            bump(&self.pool.counts.failed);
        }
        stolen
    }
}
