//! Memory that is freed, and memory that is not.
//!
//! Every word and cell is entered here when it is made and crossed out when it is dropped. What is
//! left when an execution is over, its final check done and all handles gone, is a leak.
//!
//! [`Memory::free`](poach_memory::Memory::free) says that no thread uses an object any more. The
//! object is dropped at the end of the execution, so a thread that still uses it finds it whole.
//! Its words and cells are checked when they are dropped. Each remembers when each thread accessed
//! it last, in the thread's own time, and the freeing thread's vector clock says how much of each
//! thread happens before the freeing. A later access is not ordered before the freeing: it came
//! after it, or might have. So the order in which the search takes the two does not matter, and
//! freeing is not an event.
//!
//! That a handle is the last is the business of a reference count that the machine does not see.
//! Whatever is dropped by the last handle is not freed in this sense.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use poach_memory::Freed;

use super::{Clock, Loc, MAX_THREADS, Machine, Touch, mix};

pub(crate) struct Kept {
    pub(crate) object: Freed,
    /// `None` if later uses do not matter.
    pub(crate) freeing: Option<Freeing>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Freeing {
    pub(crate) thread: usize,
    clock: Clock,
    pub(crate) site: &'static Location<'static>,
}

impl Freeing {
    /// The use, of those by each thread, that nothing orders before the freeing.
    pub(crate) fn unordered(&self, touches: &[Option<Touch>]) -> Option<(usize, Touch)> {
        let mut touches = touches.iter().zip(self.clock).enumerate();
        touches.find_map(|(thread, (touch, known))| {
            touch.filter(|(time, _)| *time > known).map(|touch| (thread, touch))
        })
    }
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(1);

#[derive(Debug, Default)]
pub(crate) struct Register {
    pub(crate) execution: u64,
    pub(crate) alive: usize,
    /// Where each word was made; `None` if it is gone.
    words: Vec<Option<&'static Location<'static>>>,
    cells: Vec<Option<&'static Location<'static>>>,
    /// The fingerprints of what the cells hold: of all that their writers knew.
    contents: Vec<u64>,
    /// When each thread last used each word, if clocks are kept.
    used: Vec<[Option<Touch>; MAX_THREADS]>,
    /// When each thread last stored to each word, if clocks are kept.
    stored: Vec<[Option<Touch>; MAX_THREADS]>,
    /// When each thread last used a word without synchronization.
    alone: Vec<(Loc, [Option<Touch>; MAX_THREADS])>,
}

impl Register {
    pub(super) fn resize(&mut self, words: usize) {
        self.words.resize(words, None);
        self.used.resize(words, [None; MAX_THREADS]);
        self.stored.resize(words, [None; MAX_THREADS]);
    }

    pub(super) fn clear(&mut self) {
        // Relaxed: the numbers must differ, and say nothing of each other.
        self.execution = EXECUTIONS.fetch_add(1, Ordering::Relaxed);
        self.alive = 0;
        self.cells.clear();
        self.contents.clear();
        self.alone.clear();
    }

    pub(super) fn begins(&mut self, loc: Loc) {
        self.used[loc as usize] = [None; MAX_THREADS];
        self.stored[loc as usize] = [None; MAX_THREADS];
    }

    pub(super) fn used(&self, loc: Loc) -> &[Option<Touch>] {
        &self.used[loc as usize]
    }

    pub(super) fn stored(&self, loc: Loc) -> &[Option<Touch>] {
        &self.stored[loc as usize]
    }

    pub(super) fn store_to(&mut self, loc: Loc, thread: usize, touch: Touch) {
        self.stored[loc as usize][thread] = Some(touch);
    }

    pub(super) fn alone(&self, loc: Loc) -> Option<&[Option<Touch>]> {
        self.alone.iter().find(|(known, _)| *known == loc).map(|(_, touches)| &touches[..])
    }

    pub(super) fn use_alone(&mut self, loc: Loc, thread: usize, touch: Touch) {
        let known = self.alone.iter().position(|(known, _)| *known == loc);
        let at = known.unwrap_or_else(|| {
            self.alone.push((loc, [None; MAX_THREADS]));
            self.alone.len() - 1
        });
        self.alone[at].1[thread] = Some(touch);
    }

    pub(crate) fn word_made(&mut self, loc: Loc, site: &'static Location<'static>) {
        self.alive += 1;
        self.words[loc as usize] = Some(site);
        self.used[loc as usize] = [None; MAX_THREADS];
    }

    pub(crate) fn made_at(&self, loc: Loc) -> Option<&'static Location<'static>> {
        self.words[loc as usize]
    }

    pub(crate) fn cell_made(&mut self, site: &'static Location<'static>) -> u32 {
        self.alive += 1;
        self.cells.push(Some(site));
        self.contents.push(0);
        self.cells.len() as u32 - 1
    }

    /// Removes a word, and returns the threads that have used it.
    pub(crate) fn word_dropped(&mut self, loc: Loc) -> &[Option<Touch>] {
        self.alive -= 1;
        self.words[loc as usize] = None;
        &self.used[loc as usize]
    }

    pub(crate) fn cell_dropped(&mut self, number: u32) {
        self.alive -= 1;
        self.cells[number as usize] = None;
    }
}

fn use_of(key: u64, touch: Option<Touch>) -> u64 {
    touch.map_or(0, |(time, _)| mix(key, u64::from(time) + 1))
}

impl Machine {
    #[inline]
    pub(super) fn use_word(&mut self, index: usize, loc: Loc) {
        if self.clocks {
            let thread = &mut self.threads[index];
            let touch = (thread.clock[index], thread.site);
            let before = self.register.used[loc as usize][index].replace(touch);
            // The place in the source is no part of it.
            if before.is_none_or(|(time, _)| time != touch.0) {
                thread.uses ^= use_of(u64::from(loc), before) ^ use_of(u64::from(loc), Some(touch));
            }
        }
    }

    /// Thread `index` uses the content of a cell; no other thread could notice when. The thread
    /// takes in what the cell's last writer knew. If it writes, the content is a function of that
    /// and of all that the thread knows.
    pub(crate) fn use_cell(
        &mut self,
        index: usize,
        cell: u32,
        writes: bool,
        before: Option<Touch>,
    ) {
        let (thread, key) = (&mut self.threads[index], !u64::from(cell));
        let now = Some((thread.clock[index], thread.site));
        thread.uses ^= use_of(key, before) ^ use_of(key, now);
        let content = &mut self.register.contents[cell as usize];
        thread.hash = mix(thread.hash, *content);
        if writes {
            self.memory_hash ^= mix(key, *content);
            *content = thread.hash;
            self.memory_hash ^= mix(key, *content);
        }
    }

    pub(crate) fn freeing(&mut self, thread: usize, site: &'static Location<'static>) -> Freeing {
        let clock = &mut self.threads[thread].clock;
        let freeing = Freeing { thread, clock: *clock, site };
        // What it does from here on comes after the freeing.
        clock[thread] += 1;
        freeing
    }

    /// Where one of the words and cells that are left was made.
    pub(crate) fn left(&self) -> Option<&'static Location<'static>> {
        let words = self.words().find_map(|(loc, _)| self.register.words[loc as usize]);
        words.or_else(|| self.register.cells.iter().find_map(|cell| *cell))
    }
}
