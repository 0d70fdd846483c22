//! The abstract machine: threads, words, store buffers, the egress slot.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 2 (the
//! machine TSO\[S\]) and section 7.3 (the entry behind the buffer, which coalesces).
//!
//! # The machine
//!
//! Every thread has a FIFO store buffer of capacity S. A store enters its thread's buffer, and
//! waits while that is full. A load returns the newest matching entry of the thread's own buffer,
//! else what memory holds. The memory subsystem may at any time write the oldest entry of any
//! buffer to memory. A fence waits until the thread's buffer is empty. A read-modify-write takes
//! the memory lock, and can release it only with an empty buffer. So no thread sees a state between
//! its drained stores and its own write. Here it waits for an empty buffer and then acts in one
//! step, which admits the same executions. With S = 0 a store goes to memory at once, which is
//! sequential consistency.
//!
//! # The egress slot
//!
//! Section 7.3 found one more place behind the buffer, the slot. The oldest store moves there,
//! frees its buffer entry, and is written to memory later. If the next store is to the same
//! address, it may overwrite the store in the slot (they *coalesce*). A store loses nothing by
//! moving into an empty slot at once: it can do from there all it could do before, and its entry is
//! free. So a buffer of capacity S with a slot is one FIFO of capacity S + 1 whose front is the
//! slot. There is one more event, [`coalesce`], that merges the two oldest entries if they are to
//! one address. Merging is observable only by the room it makes (merging and then writing is
//! writing twice with nothing in between), so it is offered only to a thread that waits for room.
//!
//! A processor may have `n` such entries. The buffer is then one FIFO of S + n, and the search may
//! merge the first two neighbours to one address among the first n + 1 entries. The order of merges
//! makes no difference to the final number of free entries: merging the pair nearest to the front
//! brings the others nearer to it. (It does to what memory shows in between, where both pairs are
//! of words that others read. So with n > 1 this is exact for clients that make a store between two
//! pops, to which the bound applies, and not where one shared word is stored again and again.)
//!
//! # The process-wide barrier
//!
//! [`Op::HeavyStart`] and [`Op::HeavyFinish`] model `membarrier(2)`: between the call and the
//! return, every other thread passes some point of its program at which its buffer is empty. The
//! weakest such point is the last step that another thread could observe, because the stores after
//! it could as well have been issued after the call. So `HeavyStart` notes for each thread the
//! stores issued before its last observable step, and `HeavyFinish` waits until those have drained.
//! A visit to another thread's processor (displacement) is the same for that thread alone: while
//! the visitor is there the other is not, and was switched at some point of its program.
//!
//! [`coalesce`]: Machine::coalesce

use std::collections::HashMap;
use std::panic::Location;

mod alone;
mod kept;
mod owners;
mod parts;
mod state;
mod threads;
mod waits;
mod weak;
mod words;

use kept::Register;
pub(crate) use kept::{Freeing, Kept};
pub(crate) use parts::*;
pub use parts::{MAX_THREADS, MAX_WORDS};
pub(crate) use waits::{Look, MOST_IN_VAIN, Patience, Probe};
pub(crate) use weak::Weak;

#[expect(clippy::struct_excessive_bools, reason = "they are asked in each step")]
pub(crate) struct Machine {
    pub(crate) size: Size,
    memory: Vec<u64>,
    memory_hash: u64,
    setup_words: usize,
    pub(crate) threads: Vec<Thread>,
    pub(crate) count: usize,
    touched: Vec<Touched>,
    /// A thread has touched a word that the reduction had taken for another's own.
    pub(crate) knowledge_grew: bool,
    /// The addresses behind the model's pointers: the number of each is its place here.
    addresses: Vec<(u64, u64)>,
    /// Whether vector clocks are kept: a model has used a cell.
    pub(crate) clocks: bool,
    pub(crate) clocks_wanted: bool,
    memory_clocks: Vec<Clock>,
    versions: Vec<u64>,
    /// What the steps since the last observable step did to the history.
    pub(crate) marks: u8,
    pub(crate) writes: u64,
    /// The threads that are at a pause: bit `i` is thread `i`.
    pausing: u8,
    /// What is known of waiting threads, by their fingerprints.
    patiences: HashMap<u64, Patience, ByFingerprint>,
    pub(crate) register: Register,
    /// Messages and views, in place of buffers, where the memory is not TSO.
    pub(crate) weak: Option<Weak>,
    choosing: Option<usize>,
    /// A thread reads the newest where it could go on to read what is old.
    pub(crate) left_old: bool,
    /// The last step has stored to a word that another thread uses alone, at this place.
    pub(crate) used_alone: Option<&'static Location<'static>>,
    /// A thread's state is a function of all that happened before, and not of what it has read alone:
    /// the model's threads share what no word holds.
    pub(crate) whole_past: bool,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Machine {
            size: Size { capacity: 0, egress: 0 },
            memory: Vec::new(),
            memory_hash: 0,
            setup_words: 0,
            threads: Vec::new(),
            count: 0,
            touched: Vec::new(),
            knowledge_grew: false,
            addresses: Vec::new(),
            clocks: false,
            clocks_wanted: false,
            memory_clocks: Vec::new(),
            versions: Vec::new(),
            marks: 0,
            writes: 0,
            pausing: 0,
            patiences: HashMap::default(),
            register: Register::default(),
            weak: None,
            choosing: None,
            left_old: false,
            used_alone: None,
            whole_past: false,
        }
    }

    pub(crate) fn forget(&mut self, weak: bool) {
        self.touched.clear();
        self.touched.resize(MAX_WORDS * (MAX_THREADS + 1), Touched::default());
        self.memory.resize(MAX_WORDS * (MAX_THREADS + 1), 0);
        self.memory_clocks.resize(self.memory.len(), [0; MAX_THREADS]);
        self.versions.resize(self.memory.len(), 0);
        self.register.resize(self.memory.len());
        self.patiences.clear();
        self.knowledge_grew = false;
        self.clocks = false;
        // A word that is used before one has heard of its making is a race, which weak memory asks
        // about at once.
        self.clocks_wanted = weak;
        self.weak = weak.then(|| Weak::new(self.memory.len()));
    }

    pub(crate) fn reset(&mut self) {
        self.clocks = self.clocks_wanted;
        self.register.clear();
        self.memory_hash = 0;
        self.setup_words = 0;
        self.count = 0;
        self.addresses.clear();
        if let Some(weak) = &mut self.weak {
            weak.clear();
        }
        self.marks = 0;
        self.writes = 0;
        self.pausing = 0;
        self.choosing = None;
        self.left_old = false;
        self.used_alone = None;
        self.whole_past = false;
    }

    /// The thread that has begun to choose a possibility of its step, and must go on.
    #[inline]
    pub(crate) fn choosing(&self) -> Option<usize> {
        self.choosing
    }

    #[inline]
    pub(crate) fn arrives(
        &mut self,
        index: usize,
        op: Op,
        access: Access,
        site: &'static Location<'static>,
    ) {
        let thread = &mut self.threads[index];
        thread.pending = op;
        thread.access = access;
        thread.site = site;
        let pauses = u8::from(matches!(op, Op::Pause));
        self.pausing = self.pausing & !(1 << index) | pauses << index;
        if matches!(op, Op::Choose(_)) {
            self.choosing = Some(index);
        }
    }

    pub(crate) fn ends(&mut self, index: usize) {
        self.threads[index].pending = Op::Finished;
        self.pausing &= !(1 << index);
    }

    pub(crate) fn add_thread(&mut self) {
        let index = self.count;
        if self.threads.len() == index {
            self.threads.push(Thread {
                log: Vec::new(),
                head: 0,
                stable: 0,
                targets: [0; MAX_THREADS],
                pending: Op::Start,
                access: Access::STRONG,
                site: Location::caller(),
                hash: 0,
                uses: 0,
                reads: Vec::new(),
                patience: Patience::Unknown,
                vain: 0,
                passes: 0,
                operation: 0,
                call_waits: false,
                clock: [0; MAX_THREADS],
                log_clocks: Vec::new(),
                words: 0,
                shifted: 0,
            });
        }
        let thread = &mut self.threads[index];
        thread.log.clear();
        thread.log_clocks.clear();
        thread.head = 0;
        thread.stable = 0;
        thread.pending = Op::Start;
        thread.hash = index as u64;
        thread.uses = 0;
        thread.reads.clear();
        thread.vain = 0;
        thread.passes = 0;
        thread.operation = 0;
        thread.call_waits = false;
        thread.clock = [0; MAX_THREADS];
        thread.clock[index] = 1;
        thread.words = 0;
        thread.shifted = 0;
        thread.targets = [0; MAX_THREADS];
        if let Some(weak) = &mut self.weak {
            weak.add_thread();
        }
        self.count += 1;
    }

    pub(crate) fn buffer(&self, thread: usize) -> &[Entry] {
        let thread = &self.threads[thread];
        &thread.log[thread.head..]
    }

    #[inline]
    fn buffered(&self, thread: usize) -> usize {
        self.threads[thread].log.len() - self.threads[thread].head
    }

    #[inline]
    fn visible(&self, thread: usize, loc: Loc) -> u64 {
        self.buffer(thread)
            .iter()
            .rev()
            .find(|entry| entry.loc == loc)
            .map_or(self.memory[loc as usize], |entry| entry.value)
    }

    #[inline]
    fn write(&mut self, loc: Loc, value: u64) {
        let word = &mut self.memory[loc as usize];
        self.memory_hash ^= mix(u64::from(loc), *word) ^ mix(u64::from(loc), value);
        *word = value;
        self.writes += 1;
    }

    #[inline]
    fn touch(&mut self, thread: usize, loc: Loc, writes: bool) {
        let bit = 1u8 << thread;
        let known = &mut self.touched[loc as usize];
        if known.by & bit == 0 || (writes && known.written_by & bit == 0) {
            known.by |= bit;
            known.written_by |= if writes { bit } else { 0 };
            // What one thread alone has touched is its own, whatever it does with it.
            self.knowledge_grew |= known.by != bit;
        }
    }

    #[inline]
    fn shared(&self, thread: usize, loc: Loc) -> bool {
        self.touched[loc as usize].by & !(1u8 << thread) != 0
    }

    #[inline]
    fn written_by_others(&self, thread: usize, loc: Loc) -> bool {
        self.touched[loc as usize].written_by & !(1u8 << thread) != 0
    }

    #[inline]
    pub(crate) fn enabled(&self, index: usize) -> bool {
        let thread = &self.threads[index];
        let weakly = matches!(thread.pending, Op::Load(_) | Op::Change(..) | Op::HeavyFinish);
        if let (Some(weak), true) = (&self.weak, weakly) {
            return self.enabled_weakly(weak, index);
        }
        match thread.pending {
            Op::Finished => false,
            Op::Start | Op::Load(_) | Op::Mark | Op::Fence | Op::Choose(_) => true,
            Op::Store(..) => self.size.capacity == 0 || self.buffered(index) < self.size.capacity,
            Op::Change(..) | Op::Count(..) | Op::Full | Op::HeavyStart(_) => {
                self.buffered(index) == 0
            }
            Op::Await(loc, shift, _) => {
                self.buffered(index) == 0 && self.memory[loc as usize] >> shift == 0
            }
            Op::Join(other) => self.ended(other as usize),
            Op::HeavyFinish => self.threads[..self.count]
                .iter()
                .zip(thread.targets)
                .all(|(other, target)| other.head >= target as usize),
            Op::Pause => self.wakes(index),
        }
    }

    /// Where two neighbours in the buffer of a thread that waits for room can become one.
    #[inline]
    pub(crate) fn coalesces_at(&self, index: usize) -> Option<usize> {
        if self.size.egress == 0 || !matches!(self.threads[index].pending, Op::Store(..)) {
            return None;
        }
        let buffer = self.buffer(index);
        if buffer.len() < self.size.capacity {
            return None;
        }
        let behind = &buffer[..buffer.len().min(self.size.egress + 1)];
        behind.windows(2).position(|pair| pair[0].loc == pair[1].loc)
    }

    /// Whether another thread could notice when the pending step is taken, as far as the search
    /// knows which threads touch which words.
    ///
    /// A step that no thread can notice is taken at once, without a choice: it commutes with
    /// everything that may happen before it. Such are a store that only enters the buffer, a load
    /// of a word that no other thread writes, and a fence (its waiting is the drains' choice).
    ///
    /// The knowledge grows while the search runs. When a step contradicts it, the search starts
    /// again with the better knowledge, so a search that ends has relied on nothing wrong. Until
    /// the first step that contradicts it the knowledge was right, so the search covers the
    /// executions with such a step.
    #[inline]
    pub(crate) fn noticeable(&self, index: usize) -> bool {
        match self.threads[index].pending {
            // Others notice where it has read, and it notices where they have.
            Op::Load(loc) if self.is_in_order(index) => self.shared(index, loc),
            Op::Load(loc) => self.written_by_others(index, loc),
            Op::Store(loc, _) => self.size.capacity == 0 && self.shared(index, loc),
            Op::Count(loc, Owners::More | Owners::FewerUnnoticed) => {
                self.written_by_others(index, loc)
            }
            Op::Change(loc, _) | Op::Await(loc, ..) | Op::Count(loc, _) => self.shared(index, loc),
            Op::HeavyStart(_) | Op::Mark | Op::Choose(_) => true,
            Op::Full | Op::HeavyFinish => self.weak.is_some(),
            _ => false,
        }
    }

    /// A drain that no thread can notice, of a word that only its writer touches. It is done at
    /// once: the later stores can do without that entry all that they could do with it, and sooner.
    #[inline]
    pub(crate) fn drains_unnoticed(&self, index: usize) -> bool {
        self.buffer(index).first().is_some_and(|entry| {
            let thread = &self.threads[index];
            let of_a_waiting_call = entry.operation == thread.operation && thread.call_waits;
            !self.shared(index, entry.loc) && !of_a_waiting_call
        })
    }

    pub(crate) fn footprint(&self, event: Event) -> Footprint {
        let (kind, index) = decode(event);
        let thread = &self.threads[index];
        match kind {
            Kind::Step => {
                let marks = if thread.call_waits { CALLED } else { 0 };
                let base = Footprint { steps: true, marks, ..Footprint::default() };
                if let Op::Count(loc, owners) = thread.pending {
                    return self.count_footprint(loc, owners, base);
                }
                if self.weak.is_some() {
                    return self.weak_footprint(index);
                }
                match thread.pending {
                    Op::Load(loc) => Footprint { loc: Some(loc), ..base },
                    Op::Change(loc, _) | Op::Await(loc, ..) => {
                        Footprint { loc: Some(loc), writes: true, ..base }
                    }
                    Op::Store(loc, _) if self.size.capacity == 0 => {
                        Footprint { loc: Some(loc), writes: true, ..base }
                    }
                    Op::HeavyStart(_) => Footprint { all: true, ..base },
                    _ => base,
                }
            }
            Kind::Drain => match self.buffer(index).first() {
                Some(entry) => {
                    let calls = thread.call_waits && entry.operation == thread.operation;
                    Footprint {
                        loc: Some(entry.loc),
                        writes: true,
                        steps: false,
                        marks: if calls { CALLED } else { 0 }
                            | if entry.flushes > 0 { RETURNED } else { 0 },
                        ..Footprint::default()
                    }
                }
                None => Footprint::default(),
            },

            // What it has looked at stays there to be seen again, whatever others store.
            Kind::GiveUp | Kind::Shift | Kind::Barrier if self.weak.is_some() => {
                self.weak_footprint_of(kind, index)
            }
            Kind::Coalesce | Kind::Shift | Kind::Barrier => Footprint::default(),
            Kind::GiveUp => {
                let marks = if thread.call_waits { CALLED } else { 0 };
                let looks = thread.reads.iter().fold(0, |all, look| all | 1 << (look.loc % 64));
                Footprint { steps: true, marks, looks, ..Footprint::default() }
            }
        }
    }

    #[inline]
    pub(crate) fn settle(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        thread.stable = thread.log.len();
    }

    #[inline]
    fn join(&mut self, index: usize, loc: Loc) {
        let version = self.versions[loc as usize];
        let released = self.memory_clocks[loc as usize];
        let thread = &mut self.threads[index];
        thread.hash = mix(thread.hash, version);
        for (mine, theirs) in thread.clock.iter_mut().zip(released) {
            *mine = (*mine).max(theirs);
        }
    }

    #[inline]
    fn release(&mut self, loc: Loc, index: usize, version: u64, clock: Clock) {
        let version = mix(index as u64 + 1, version);
        let old = std::mem::replace(&mut self.versions[loc as usize], version);
        self.memory_hash ^= mix(!u64::from(loc), old) ^ mix(!u64::from(loc), version);
        self.memory_clocks[loc as usize] = clock;
    }

    #[inline]
    pub(crate) fn perform(&mut self, index: usize) -> u64 {
        let op = self.threads[index].pending;
        if self.clocks {
            if let Op::Store(loc, _) | Op::Change(loc, _) | Op::Await(loc, ..) = op {
                self.note_store(index, loc);
            }
        }
        if self.weak.is_some() {
            if let Some(result) = self.perform_weakly(index, op) {
                let thread = &mut self.threads[index];
                thread.hash = mix(thread.hash, result);
                return result;
            }
        }
        let result = match op {
            Op::Load(loc) => {
                self.touch(index, loc, false);
                self.use_word(index, loc);
                let forwarded = self.buffer(index).iter().rev().find(|entry| entry.loc == loc);
                let value = if let Some(entry) = forwarded {
                    entry.value
                } else {
                    if self.clocks {
                        self.join(index, loc);
                    }
                    self.memory[loc as usize]
                };
                let thread = &mut self.threads[index];
                thread.reads.push(Look { loc, value, site: thread.site });
                value
            }
            Op::Store(loc, value) => {
                self.touch(index, loc, true);
                self.use_word(index, loc);
                if self.size.capacity == 0 {
                    self.write(loc, value);
                    if self.clocks {
                        let thread = &mut self.threads[index];
                        let clock = thread.clock;
                        thread.clock[index] += 1;
                        self.release(loc, index, u64::from(clock[index]), clock);
                    }
                } else {
                    let thread = &mut self.threads[index];
                    let operation = thread.operation;
                    thread.log.push(Entry { loc, value, operation, flushes: 0 });
                    if self.clocks {
                        thread.log_clocks.push(thread.clock);
                        thread.clock[index] += 1;
                    }
                }
                0
            }
            Op::Change(loc, change) | Op::Await(loc, _, change) => {
                self.touch(index, loc, true);
                self.use_word(index, loc);
                if self.clocks {
                    self.join(index, loc);
                }
                let old = self.memory[loc as usize];
                let new = change.of(old);
                if let Some(new) = new {
                    self.write(loc, new);
                    if self.clocks {
                        let thread = &mut self.threads[index];
                        let clock = thread.clock;
                        thread.clock[index] += 1;
                        self.release(loc, index, u64::from(clock[index]), clock);
                    }
                }
                let thread = &mut self.threads[index];
                thread.reads.push(Look { loc, value: old, site: thread.site });
                old
            }
            Op::HeavyStart(reaches) => {
                let mut targets = [0; MAX_THREADS];
                for (at, other) in self.threads[..self.count].iter().enumerate() {
                    if reaches >> at & 1 == 1 {
                        targets[at] = other.stable as u32;
                    }
                }
                self.threads[index].targets = targets;
                0
            }
            Op::Pause => {
                self.passes_pause(index);
                0
            }
            Op::Join(other) => {
                self.learn(index, other as usize);
                0
            }
            Op::Count(loc, owners) => self.count(index, loc, owners),
            Op::Choose(_) => {
                self.choosing = None;
                std::mem::take(&mut self.threads[index].shifted) as u64
            }
            Op::Start | Op::Full | Op::Fence | Op::HeavyFinish | Op::Mark | Op::Finished => 0,
        };
        let thread = &mut self.threads[index];
        thread.hash = mix(thread.hash, result);
        result
    }

    #[inline]
    pub(crate) fn drain(&mut self, index: usize) -> Entry {
        let thread = &mut self.threads[index];
        let place = thread.head;
        let entry = thread.log[place];
        thread.head += 1;
        self.write(entry.loc, entry.value);
        if self.clocks {
            let clock = self.threads[index].log_clocks[place];
            self.release(entry.loc, index, u64::from(clock[index]), clock);
        }
        entry
    }

    /// Lets the entry behind this place in a buffer take that place, whose entry is to the same
    /// word; returns the entry that is overwritten.
    pub(crate) fn coalesce(&mut self, index: usize, at: usize) -> Entry {
        let thread = &mut self.threads[index];
        let place = thread.head + at;
        let entry = thread.log.remove(place);
        if self.clocks {
            thread.log_clocks.remove(place);
        }
        thread.log[place].flushes += entry.flushes;
        // The stores behind have one place less before them. But a barrier that waits for the first
        // of the two waits for the survivor: the point of the program that a process-wide barrier
        // finds lies before both of them or after both.
        let moved = |stores: usize| if stores > place + 1 { stores - 1 } else { stores };
        thread.stable = moved(thread.stable);
        for waiting in &mut self.threads[..self.count] {
            if matches!(waiting.pending, Op::HeavyFinish) {
                waiting.targets[index] = moved(waiting.targets[index] as usize) as u32;
            }
        }
        entry
    }
}
