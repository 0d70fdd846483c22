//! Processors, their clocks and store buffers, and the order of events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::describe::Description;
use crate::lines::{Fetch, Lines, Time, picoseconds};
use crate::profile::{Cost, Profile};
use crate::step::{NOBODY, Op, Place, Slot, Turn};

/// Kinds of events, in the order in which those of one processor and instant happen.
const DRAIN: u32 = 0;
const INTERRUPT: u32 = 1;
const THREAD: u32 = 2;
const KINDS: u32 = 3;

/// The time; and the processor and the kind in one number.
type Event = (Time, u32);

fn event(at: Time, processor: usize, kind: u32) -> Event {
    (at, processor as u32 * KINDS + kind)
}

/// A store that waits for its line.
#[derive(Debug)]
struct Entry {
    /// `None`: the content is a cell's, and in its place.
    word: Option<u32>,
    address: usize,
    value: u64,
    issued: Time,
    place: Place,
    /// When its line is there, if it was asked for while an older store waited for its own.
    ready: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    No,
    /// For room in the store buffer.
    Room,
    /// For the store buffer to be empty.
    Empty,
    /// For the answers to a barrier.
    Answers,
}

/// What a thread finds if it needs an empty store buffer, or room there.
enum Buffer {
    /// The buffer is as the thread needs it.
    Empty,
    /// The clock has moved to a later instant.
    Later,
    /// The thread waits for its drains.
    Waits,
}

#[derive(Debug)]
pub(crate) struct Processor {
    pub(crate) role: &'static str,
    pub(crate) running: bool,
    pub(crate) clock: Time,
    pub(crate) accesses: u64,
    buffer: VecDeque<Entry>,
    /// When the store that left the buffer last has its line.
    draining: Time,
    /// There is an event for the next drain.
    scheduled: bool,
    /// The store that drained last.
    drained: Option<Place>,
    waits: Waits,
    /// Time lost to interrupts, not yet on the clock.
    stall: Time,
    /// Interrupts on their way, and from whom.
    interrupts: VecDeque<(Time, usize)>,
    /// Answers that a barrier of this processor still waits for, and the last one's time.
    answers: usize,
    answered: Time,
    /// The barrier that it waited for is over.
    fenced: bool,
}

#[derive(Clone, Copy, Debug)]
struct Costs {
    store_buffer: usize,
    store_misses: usize,
    load: Time,
    store: Time,
    forward: Time,
    exchange: Time,
    fence: Time,
    pause: Time,
    give_way: Time,
    call: Time,
    each: Time,
    answer: Time,
    interrupt: Time,
}

/// A simulation that runs.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) lines: Lines,
    pub(crate) processors: Vec<Processor>,
    pub(crate) profile: Profile,
    pub(crate) current: usize,
    pub(crate) failed: Option<crate::Failure>,
    pub(crate) limit: u64,
    costs: Costs,
    events: BinaryHeap<Reverse<Event>>,
    /// A simulated thread's code is running.
    pub(crate) inside: bool,
    accesses: u64,
}

impl Run {
    pub(crate) fn new(description: &Description, seed: u64) -> Self {
        let (costs, barrier) = (&description.processor, &description.barrier);
        let processor = || Processor {
            role: "",
            running: false,
            clock: 0,
            accesses: 0,
            buffer: VecDeque::new(),
            draining: 0,
            scheduled: false,
            drained: None,
            waits: Waits::No,
            stall: 0,
            interrupts: VecDeque::new(),
            answers: 0,
            answered: 0,
            fenced: false,
        };
        Run {
            lines: Lines::new(description, seed),
            processors: std::iter::repeat_with(processor).take(description.processors).collect(),
            profile: Profile::default(),
            current: 0,
            failed: None,
            limit: u64::MAX,
            costs: Costs {
                store_buffer: costs.store_buffer,
                store_misses: costs.store_misses,
                load: picoseconds(costs.load),
                store: picoseconds(costs.store),
                forward: picoseconds(costs.forward),
                exchange: picoseconds(costs.exchange),
                fence: picoseconds(costs.fence),
                pause: picoseconds(costs.pause),
                give_way: picoseconds(costs.give_way),
                call: picoseconds(barrier.call),
                each: picoseconds(barrier.each),
                answer: picoseconds(barrier.answer),
                interrupt: picoseconds(barrier.interrupt),
            },
            events: BinaryHeap::new(),
            inside: false,
            accesses: 0,
        }
    }

    /// A thread begins on a processor, at `at`.
    pub(crate) fn begin(&mut self, processor: usize, role: &'static str, at: Time) {
        let it = &mut self.processors[processor];
        (it.role, it.running, it.clock) = (role, true, at);
        self.events.push(Reverse(event(at, processor, THREAD)));
    }

    /// The running thread has ended.
    pub(crate) fn end(&mut self) {
        let it = &mut self.processors[self.current];
        it.clock += std::mem::take(&mut it.stall);
        it.running = false;
    }

    pub(crate) fn accesses(&self) -> u64 {
        self.accesses
    }

    pub(crate) fn now(&self) -> Time {
        self.processors[self.current].clock
    }

    pub(crate) fn advance(&mut self, by: Time) {
        let it = &mut self.processors[self.current];
        it.clock = it.clock.saturating_add(by);
    }

    /// The next thread to run, after the events before it.
    pub(crate) fn next_thread(
        &mut self,
        slots: &mut [Slot],
        unused: &mut Vec<u32>,
    ) -> Option<usize> {
        self.inside = false;
        while self.failed.is_none() {
            let Reverse(event) = self.events.pop()?;
            if event.1 % KINDS == THREAD {
                self.current = (event.1 / KINDS) as usize;
                self.inside = true;
                return Some(self.current);
            }
            self.handle(slots, unused, event);
        }
        None
    }

    /// The running thread's next step.
    #[inline]
    pub(crate) fn attempt(
        &mut self,
        slots: &mut [Slot],
        unused: &mut Vec<u32>,
        op: Op,
        place: Place,
    ) -> Turn {
        loop {
            if let Some(turn) = self.first(slots, unused) {
                return turn;
            }
            if let Some(turn) = self.perform(slots, op, place) {
                return turn;
            }
        }
    }

    /// Handles what comes before the running thread's clock, as far as no other thread is to run.
    #[inline]
    fn first(&mut self, slots: &mut [Slot], unused: &mut Vec<u32>) -> Option<Turn> {
        let current = self.current;
        loop {
            let it = &mut self.processors[current];
            it.clock += std::mem::take(&mut it.stall);
            let mine = event(it.clock, current, THREAD);
            match self.events.peek() {
                Some(Reverse(next)) if *next < mine => {
                    let next = *next;
                    if next.1 % KINDS == THREAD {
                        self.events.push(Reverse(mine));
                        return Some(Turn::Suspend);
                    }
                    self.events.pop();
                    self.handle(slots, unused, next);
                }
                _ => return None,
            }
        }
    }

    /// The running thread's access, whose turn it is; `None` if its clock has moved and it must
    /// look again.
    #[inline]
    fn perform(&mut self, slots: &mut [Slot], op: Op, place: Place) -> Option<Turn> {
        let (costs, current) = (self.costs, self.current);
        let now = self.processors[current].clock;
        let value = match op {
            Op::Load { word, address } => {
                let slot = &slots[word as usize];
                let it = &self.processors[current];
                let own = if slot.pending == 0 {
                    None
                } else {
                    it.buffer.iter().rev().find(|entry| entry.word == Some(word))
                };
                if let Some(entry) = own {
                    let (value, ready) = (entry.value, entry.issued + costs.forward);
                    self.processors[current].clock = ready.max(now + costs.load);
                    value
                } else {
                    let fetch = self.lines.read(current, address, now);
                    let own = slot.writer == current as u32;
                    let ready = if own { slot.written + costs.forward } else { 0 };
                    let done = ready.max(fetch.done + costs.load);
                    self.processors[current].clock = done;
                    self.fetched(fetch, now, place);
                    slot.get(fetch.stale)
                }
            }
            Op::Read { address } => {
                let fetch = self.lines.read(current, address, now);
                self.processors[current].clock = fetch.done + costs.load;
                self.fetched(fetch, now, place);
                0
            }
            Op::Store { word, address, value } => {
                let entry =
                    Entry { word: Some(word), address, value, issued: now, place, ready: 0 };
                match self.store(entry) {
                    Buffer::Empty => {}
                    Buffer::Later => return None,
                    Buffer::Waits => return Some(Turn::Suspend),
                }
                slots[word as usize].pending += 1;
                0
            }
            Op::Write { address } => {
                let entry = Entry { word: None, address, value: 0, issued: now, place, ready: 0 };
                match self.store(entry) {
                    Buffer::Empty => {}
                    Buffer::Later => return None,
                    Buffer::Waits => return Some(Turn::Suspend),
                }
                0
            }
            Op::Change { word, address, change } => {
                match self.buffer(now) {
                    Buffer::Empty => {}
                    Buffer::Later => return None,
                    Buffer::Waits => return Some(Turn::Suspend),
                }
                let fetch = self.lines.own_now(current, address, now);
                let done = fetch.done + costs.exchange;
                self.lines.hold(address, done);
                self.processors[current].clock = done;
                self.fetched(fetch, now, place);
                let stale = self.lines.stale_until(address, now);
                let slot = &mut slots[word as usize];
                let old = slot.value;
                slot.put(change.apply(old), stale);
                (slot.writer, slot.written) = (NOBODY, 0);
                old
            }
            Op::Fence => {
                match self.buffer(now) {
                    Buffer::Empty => {}
                    Buffer::Later => return None,
                    Buffer::Waits => return Some(Turn::Suspend),
                }
                self.processors[current].clock += costs.fence;
                0
            }
            Op::Barrier => {
                if std::mem::take(&mut self.processors[current].fenced) {
                    return Some(self.done(0));
                }
                match self.buffer(now) {
                    Buffer::Empty => {}
                    Buffer::Later => return None,
                    Buffer::Waits => return Some(Turn::Suspend),
                }
                if self.interrupt_others(now) {
                    return Some(Turn::Suspend);
                }
                self.processors[current].clock += costs.call;
                0
            }
            Op::Evict { address } => {
                self.lines.evict(current, address);
                self.processors[current].clock += costs.exchange;
                0
            }
            Op::Pause => {
                self.processors[current].clock += costs.pause;
                0
            }
            Op::GiveWay => {
                self.processors[current].clock += costs.give_way;
                0
            }
        };
        Some(self.done(value))
    }

    #[inline]
    fn done(&mut self, value: u64) -> Turn {
        self.processors[self.current].accesses += 1;
        self.accesses += 1;
        if self.accesses > self.limit {
            self.failed = Some(crate::Failure::Limit { accesses: self.limit });
            return Turn::Suspend;
        }
        Turn::Done(value)
    }

    #[inline]
    fn fetched(&mut self, fetch: Fetch, from: Time, place: Place) {
        if !fetch.hit {
            let waited = fetch.done - from;
            let role = self.processors[self.current].role;
            self.profile.charge(place, role, Cost { waited, ..Cost::of(fetch) });
        }
    }

    /// Puts a store into the buffer if there is room; else the thread waits.
    #[inline]
    fn store(&mut self, entry: Entry) -> Buffer {
        let current = self.current;
        let it = &mut self.processors[current];
        // The store on its way to the cache still has its place.
        let on_its_way = it.draining > it.clock;
        if it.buffer.len() + usize::from(on_its_way) >= self.costs.store_buffer {
            if it.buffer.is_empty() {
                return self.drained(entry.issued);
            }
            it.waits = Waits::Room;
            return Buffer::Waits;
        }
        it.clock += self.costs.store;
        it.buffer.push_back(entry);
        self.schedule(current);
        Buffer::Empty
    }

    /// Whether the running thread's stores are all in memory; else it waits for them.
    #[inline]
    fn buffer(&mut self, now: Time) -> Buffer {
        let it = &mut self.processors[self.current];
        if !it.buffer.is_empty() {
            it.waits = Waits::Empty;
            return Buffer::Waits;
        }
        if it.draining > now { self.drained(now) } else { Buffer::Empty }
    }

    /// The clock moves to when the last store has its line.
    fn drained(&mut self, now: Time) -> Buffer {
        let it = &mut self.processors[self.current];
        let waited = it.draining - now;
        it.clock = it.draining;
        self.waited(self.current, waited);
        Buffer::Later
    }

    /// A processor has waited for its own stores: the last one to drain is what it cost.
    fn waited(&mut self, processor: usize, waited: Time) {
        let it = &self.processors[processor];
        if let Some(place) = it.drained {
            self.profile.charge(place, it.role, Cost { waited, ..Cost::default() });
        }
    }

    /// Interrupts all other running processors; false if none runs.
    fn interrupt_others(&mut self, now: Time) -> bool {
        let (current, costs) = (self.current, self.costs);
        let mut at = now + costs.call;
        let mut count = 0;
        for (processor, it) in self.processors.iter_mut().enumerate() {
            if processor == current || !it.running {
                continue;
            }
            at += costs.each;
            let arrives = at + costs.answer / 2;
            it.interrupts.push_back((arrives, current));
            self.events.push(Reverse(event(arrives, processor, INTERRUPT)));
            count += 1;
        }
        let it = &mut self.processors[current];
        (it.answers, it.answered) = (count, at);
        if count > 0 {
            it.waits = Waits::Answers;
        }
        count > 0
    }

    fn wake(&mut self, processor: usize, at: Time) {
        let it = &mut self.processors[processor];
        it.waits = Waits::No;
        it.clock = it.clock.max(at);
        self.events.push(Reverse(event(it.clock, processor, THREAD)));
    }

    fn handle(&mut self, slots: &mut [Slot], unused: &mut Vec<u32>, (at, whose): Event) {
        let processor = (whose / KINDS) as usize;
        match whose % KINDS {
            DRAIN => {
                self.processors[processor].scheduled = false;
                let begins = self.processors[processor].draining;
                if begins <= at {
                    self.drain(slots, unused, processor, at);
                }
                self.schedule(processor);
            }
            _ => self.interrupted(slots, unused, processor, at),
        }
    }

    /// Schedules the next drain, if there is one without an event.
    fn schedule(&mut self, processor: usize) {
        let it = &mut self.processors[processor];
        if !it.scheduled {
            if let Some(next) = it.buffer.front() {
                it.scheduled = true;
                let at = it.draining.max(next.issued + self.costs.forward);
                self.events.push(Reverse(event(at, processor, DRAIN)));
            }
        }
    }

    /// The oldest store gets its line, at `at`, and becomes visible.
    fn drain(&mut self, slots: &mut [Slot], unused: &mut Vec<u32>, processor: usize, at: Time) {
        let Some(entry) = self.processors[processor].buffer.pop_front() else { return };
        let fetch = self.lines.own(processor, entry.address, at);
        let done = if fetch.hit { entry.ready.max(at) + self.costs.store } else { fetch.done };
        if done > at + self.costs.store {
            self.ask_ahead(processor, at);
        }
        if let Some(word) = entry.word {
            let slot = &mut slots[word as usize];
            slot.pending -= 1;
            if slot.dropped {
                if slot.pending == 0 {
                    unused.push(word);
                }
            } else {
                slot.put(entry.value, self.lines.stale_until(entry.address, at));
                (slot.writer, slot.written) = (processor as u32, entry.issued);
            }
        }
        let it = &mut self.processors[processor];
        it.draining = done;
        it.drained = Some(entry.place);
        if !fetch.hit {
            self.profile.charge(entry.place, it.role, Cost::of(fetch));
        }
        let wakes = match it.waits {
            // The store before this one has left its place.
            Waits::Room => Some(at),
            Waits::Empty if it.buffer.is_empty() => Some(done),
            Waits::Empty | Waits::No | Waits::Answers => None,
        };
        if let Some(wakes) = wakes {
            let waited = wakes.saturating_sub(it.clock);
            self.waited(processor, waited);
            self.wake(processor, wakes);
        }
    }

    /// While a store waits for its line, the lines of the stores behind it are asked for, too.
    /// Stores become visible in their order all the same, and a line that is lost before its
    /// store's turn is asked for again.
    fn ask_ahead(&mut self, processor: usize, at: Time) {
        let it = &mut self.processors[processor];
        let mut left = self.costs.store_misses - 1;
        for entry in it.buffer.iter_mut().take(self.costs.store_buffer) {
            if left == 0 {
                return;
            }
            if entry.ready > 0 {
                left -= usize::from(entry.ready > at);
                continue;
            }
            let fetch = self.lines.own(processor, entry.address, at);
            if !fetch.hit {
                left -= 1;
                entry.ready = fetch.done;
                self.profile.charge(entry.place, it.role, Cost::of(fetch));
            }
        }
    }

    /// An interrupt of a barrier arrives: the buffer drains, and the caller hears of it.
    fn interrupted(
        &mut self,
        slots: &mut [Slot],
        unused: &mut Vec<u32>,
        processor: usize,
        at: Time,
    ) {
        let Some((_, caller)) = self.processors[processor].interrupts.pop_front() else { return };
        while !self.processors[processor].buffer.is_empty() {
            let begins = self.processors[processor].draining.max(at);
            self.drain(slots, unused, processor, begins);
        }
        let it = &mut self.processors[processor];
        it.stall += self.costs.interrupt;
        let answer = it.draining.max(at) + self.costs.answer / 2;
        let caller_ = &mut self.processors[caller];
        caller_.answered = caller_.answered.max(answer);
        caller_.answers -= 1;
        if caller_.answers == 0 {
            caller_.fenced = true;
            let answered = caller_.answered;
            self.wake(caller, answered);
        }
    }
}
