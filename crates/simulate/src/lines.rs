//! Cache lines: which processors hold them or wait for them, and over which links they go.
//!
//! A request is decided at the instant at which it is made. It changes the line's holders at once,
//! and says when the line will be there. Requests for one line that arrive while it is on its way
//! queue behind it (`free`). Copies of a line that is shared already are handed out side by side,
//! each a little later than the one before (`copy`).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::describe::Description;
use crate::place::{Places, Set};

/// Picoseconds.
pub(crate) type Time = u64;

pub(crate) fn picoseconds(nanoseconds: f64) -> Time {
    (nanoseconds * 1000.0).round() as Time
}

/// Bytes of a line, as a shift.
const LINE: u32 = 6;

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// In the memory of its node.
    Memory,
    /// In a node's last-level cache.
    Cache(u16),
    /// In one private cache, modified or exclusive, or owned and copied to others.
    Owner(u16),
    /// In private caches, all copies alike.
    Shared,
}

#[derive(Debug)]
struct Line {
    at: Home,
    /// The processors that have a copy; if there is an owner, it is one of them.
    holders: Set,
    /// Until when the line is on its way.
    free: Time,
    /// The memory node.
    node: u16,
    /// The processor that had the line alone before; until `leaves` the request has not come there.
    left: u16,
    leaves: Time,
    /// The processors whose copies have to go; until `fresh` they still read the old content.
    stale: Set,
    fresh: Time,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fetch {
    /// When the line is there.
    pub(crate) done: Time,
    /// How long the request waited for others' transfers.
    pub(crate) queued: Time,
    /// The line was there already.
    pub(crate) hit: bool,
    /// It came from another cache, or copies elsewhere had to go.
    pub(crate) transfer: bool,
    /// It came from memory.
    pub(crate) fill: bool,
    /// A copy that has to go was read: until when it is there.
    pub(crate) stale: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct LevelCosts {
    transfer: Time,
    link: Time,
    memory: Time,
}

/// All lines, caches and links of a machine.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) places: Places,
    costs: Vec<LevelCosts>,
    copy: Time,
    controller: Time,
    queued: f64,
    kept: f64,
    jitter: f64,
    owned_state: bool,
    capacity: usize,
    /// Lines that are asked for ahead, the numbers of the lines that each processor came to last,
    /// and those on their way to it.
    ahead: usize,
    recent: Vec<VecDeque<usize>>,
    arriving: Vec<Vec<(usize, Time)>>,
    index: HashMap<usize, u32, BuildHasherDefault<Mix>>,
    all: Vec<Line>,
    /// What each private cache took in, the oldest first.
    caches: Vec<VecDeque<u32>>,
    /// For each level, until when each group's link is busy.
    links: Vec<Vec<Time>>,
    /// Until when each node's controller is busy.
    controllers: Vec<Time>,
    /// All of the memory is at this node, if it is anywhere in particular.
    pub(crate) central: Option<usize>,
    random: fastrand::Rng,
}

impl Lines {
    pub(crate) fn new(description: &Description, seed: u64) -> Self {
        let places = Places::of(description);
        let last = description.processors - 1;
        let costs = description.levels.iter().map(|level| LevelCosts {
            transfer: picoseconds(level.transfer),
            link: picoseconds(level.link),
            memory: picoseconds(level.memory),
        });
        Lines {
            costs: costs.collect(),
            copy: picoseconds(description.memory.copy),
            controller: picoseconds(description.memory.line),
            queued: description.memory.queued,
            kept: description.memory.kept,
            jitter: description.jitter,
            owned_state: description.owned_state,
            capacity: description.processor.cache_lines,
            ahead: description.processor.prefetch,
            recent: vec![VecDeque::new(); description.processors],
            arriving: vec![Vec::new(); description.processors],
            index: HashMap::default(),
            all: Vec::new(),
            caches: vec![VecDeque::new(); description.processors],
            links: (0..places.levels())
                .map(|level| vec![0; places.group(level, last) + 1])
                .collect(),
            controllers: vec![0; places.node_of(last) + 1],
            central: None,
            random: fastrand::Rng::with_seed(seed),
            places,
        }
    }

    /// A processor reads an address, at `now`.
    #[inline]
    pub(crate) fn read(&mut self, processor: usize, address: usize, now: Time) -> Fetch {
        let index = self.find(processor, address);
        if self.all[index].holders.has(processor) {
            if self.arriving[processor].is_empty() {
                return Fetch { done: now, hit: true, ..Fetch::default() };
            }
            return self.arrived(processor, address, now, false);
        }
        let line = &self.all[index];
        if now < line.fresh && line.stale.has(processor) {
            let stale = Some(line.fresh);
            return Fetch { done: now, hit: true, stale, ..Fetch::default() };
        }
        // The processor has written to the line since.
        if now < line.leaves && line.left == processor as u16 {
            return Fetch { done: now, hit: true, ..Fetch::default() };
        }
        let fetch = self.fetch(processor, index, now);
        self.ask_ahead(processor, address, now, false);
        fetch
    }

    /// As [`own`](Lines::own), for a processor that waits for the line.
    pub(crate) fn own_now(&mut self, processor: usize, address: usize, now: Time) -> Fetch {
        let fetch = self.own(processor, address, now);
        if !fetch.hit {
            self.ask_ahead(processor, address, now, true);
        } else if !self.arriving[processor].is_empty() {
            return self.arrived(processor, address, now, true);
        }
        fetch
    }

    /// A processor has a line, or it was asked for ahead and is on its way.
    fn arrived(&mut self, processor: usize, address: usize, now: Time, alone: bool) -> Fetch {
        let line = address >> LINE;
        let arriving = &mut self.arriving[processor];
        let Some(at) = arriving.iter().position(|(of, _)| *of == line) else {
            return Fetch { done: now, hit: true, ..Fetch::default() };
        };
        let (_, ready) = arriving.swap_remove(at);
        self.ask_ahead(processor, address, now, alone);
        Fetch { done: ready.max(now), hit: ready <= now, ..Fetch::default() }
    }

    /// A processor has come to a line that it did not have: asks for the lines that follow, if it
    /// has come to a neighbouring line before.
    fn ask_ahead(&mut self, processor: usize, address: usize, now: Time, alone: bool) {
        /// The number of streams that are noticed at once, and of their lines that may be on their
        /// way (`MOST`).
        const STREAMS: usize = 8;
        const MOST: usize = 128;
        if self.ahead == 0 {
            return;
        }
        let line = address >> LINE;
        let recent = &mut self.recent[processor];
        let from = recent.iter().position(|it| it.abs_diff(line) == 1);
        let before = from.and_then(|at| recent.remove(at));
        recent.push_back(line);
        if recent.len() > STREAMS {
            recent.pop_front();
        }
        let Some(before) = before else { return };
        for step in 1..=self.ahead {
            let next = if before < line { line + step } else { line.wrapping_sub(step) };
            let Some(&index) = self.index.get(&next) else { return };
            let index = index as usize;
            let has = self.all[index].holders.has(processor);
            if has || self.arriving[processor].len() >= MOST {
                continue;
            }
            let fetch = if alone {
                self.take(processor, index, now)
            } else {
                self.fetch(processor, index, now)
            };
            self.arriving[processor].retain(|(of, _)| *of != next);
            self.arriving[processor].push((next, fetch.done));
        }
    }

    /// A processor wants a line for itself, at `now`.
    #[inline]
    pub(crate) fn own(&mut self, processor: usize, address: usize, now: Time) -> Fetch {
        let index = self.find(processor, address);
        let line = &self.all[index];
        let alone = line.at == Home::Owner(processor as u16) && line.alone(processor);
        // What it writes until the request has come is in the line when that leaves.
        if alone || line.left == processor as u16 && now < line.leaves {
            // From here on it reads what is there.
            self.all[index].stale.remove(processor);
            return Fetch { done: now, hit: true, ..Fetch::default() };
        }
        self.take(processor, index, now)
    }

    /// Until when others may read what was there before a write at `now`, if they may.
    pub(crate) fn stale_until(&self, address: usize, now: Time) -> Option<Time> {
        if self.kept == 0.0 {
            return None;
        }
        let index = self.index.get(&(address >> LINE))?;
        Some(self.all[*index as usize].fresh).filter(|fresh| now < *fresh)
    }

    /// No other transfer of the line begins before `until`.
    pub(crate) fn hold(&mut self, address: usize, until: Time) {
        if let Some(index) = self.index.get(&(address >> LINE)) {
            let line = &mut self.all[*index as usize];
            line.free = line.free.max(until);
        }
    }

    /// A processor writes a line back and gives up its copy, and so do all others.
    pub(crate) fn evict(&mut self, processor: usize, address: usize) {
        let index = self.find(processor, address);
        let line = &mut self.all[index];
        (line.at, line.holders) = (Home::Memory, Set::default());
    }

    fn find(&mut self, processor: usize, address: usize) -> usize {
        let lines = &mut self.all;
        let (places, central) = (&self.places, self.central);
        let index = *self.index.entry(address >> LINE).or_insert_with(|| {
            let node = central.unwrap_or_else(|| places.node_of(processor)) as u16;
            lines.push(Line {
                at: Home::Memory,
                holders: Set::default(),
                free: 0,
                node,
                left: 0,
                leaves: 0,
                stale: Set::default(),
                fresh: 0,
            });
            (lines.len() - 1) as u32
        });
        index as usize
    }

    /// A copy to read.
    fn fetch(&mut self, processor: usize, index: usize, now: Time) -> Fetch {
        let Line { at, holders, free, node, .. } = self.all[index];
        let start = now.max(free);
        let mut fetch = Fetch { queued: start - now, ..Fetch::default() };
        let after = match at {
            Home::Memory | Home::Cache(_) => {
                fetch.done = self.fill(processor, at, node, start, &mut fetch);
                // Alone with it: exclusive.
                self.all[index].free = fetch.done;
                Home::Owner(processor as u16)
            }
            Home::Owner(owner) => {
                let level = self.places.common(processor, owner as usize);
                fetch.done = self.transfer(processor, level, owner as usize, start, start > now);
                fetch.transfer = true;
                let shared = !holders.only(owner as usize);
                if !shared {
                    self.leaves(index, owner, start, fetch.done);
                }
                // The first reader takes the line out of its modified state; with an owned state,
                // or once that is done, the owner hands out copies one after
                // another.
                self.all[index].free = if shared { start + self.copy } else { fetch.done };
                if self.owned_state { at } else { Home::Shared }
            }
            Home::Shared => {
                let level = self.places.nearest(processor, &holders);
                let from = self.some_holder(processor, level, &holders);
                fetch.done = self.transfer(processor, level, from, start, false);
                fetch.transfer = true;
                self.all[index].free = start + self.copy;
                at
            }
        };
        self.all[index].at = after;
        self.all[index].holders.add(processor);
        self.installed(processor, index);
        fetch
    }

    /// The line alone, to write.
    fn take(&mut self, processor: usize, index: usize, now: Time) -> Fetch {
        let Line { at, mut holders, free, node, .. } = self.all[index];
        let start = now.max(free);
        let mut fetch = Fetch { queued: start - now, ..Fetch::default() };
        let had = holders.has(processor);
        holders.remove(processor);
        fetch.done = if holders.is_empty() {
            if had { start } else { self.fill(processor, at, node, start, &mut fetch) }
        } else {
            // The farthest copy's answer is the last.
            let level = self.places.farthest(processor, &holders);
            let from = self.some_holder(processor, level, &holders);
            fetch.transfer = true;
            let done = self.transfer(processor, level, from, start, start > now);
            if self.kept > 0.0 {
                let line = &mut self.all[index];
                line.stale = holders;
                line.fresh = start + ((done - start) as f64 * self.kept) as Time;
            }
            if let Home::Owner(owner) = at {
                if holders.only(owner.into()) {
                    self.leaves(index, owner, start, done);
                }
            }
            done
        };
        let line = &mut self.all[index];
        line.at = Home::Owner(processor as u16);
        line.holders = Set::default();
        line.holders.add(processor);
        line.free = fetch.done;
        if !had {
            self.installed(processor, index);
        }
        fetch
    }

    /// A request was sent at `start`, for which `owner` will have given the line up by `done`.
    fn leaves(&mut self, index: usize, owner: u16, start: Time, done: Time) {
        let line = &mut self.all[index];
        (line.left, line.leaves) = (owner, start + ((done - start) as f64 * self.kept) as Time);
    }

    /// A processor of the set that shares a group of that level with `processor`, and none inside
    /// of it.
    fn some_holder(&self, processor: usize, level: usize, holders: &Set) -> usize {
        let (from, to) = self.places.range(level, processor);
        let mut all = holders.within(from, to);
        all.find(|other| self.places.common(processor, *other) == level).unwrap_or(processor)
    }

    /// From another cache, over the links between.
    fn transfer(
        &mut self,
        to: usize,
        level: usize,
        from: usize,
        start: Time,
        queued: bool,
    ) -> Time {
        let start = self.cross(to, from, level, start);
        let latency = self.costs[level].transfer;
        let latency = if queued { (latency as f64 * self.queued) as Time } else { latency };
        start + self.varied(latency)
    }

    /// From a node's last-level cache or its memory.
    fn fill(&mut self, to: usize, at: Home, node: u16, start: Time, fetch: &mut Fetch) -> Time {
        if let Home::Cache(node) = at {
            let from = self.places.first_of(usize::from(node));
            let level = self.places.common(to, from);
            fetch.transfer = true;
            return self.transfer(to, level, from, start, false);
        }
        let from = self.places.first_of(usize::from(node));
        let level = self.places.common(to, from).max(self.places.level_of_nodes());
        fetch.fill = true;
        let start = self.cross(to, from, level, start);
        let busy = &mut self.controllers[usize::from(node)];
        let start = start.max(*busy);
        *busy = start + self.controller;
        let latency = self.costs[level].memory;
        start + self.varied(latency)
    }

    /// Waits for the links that a line goes over, from group to group below `level`, and keeps them
    /// busy.
    fn cross(&mut self, to: usize, from: usize, level: usize, start: Time) -> Time {
        let mut begin = start;
        for inner in 0..level {
            for processor in [to, from] {
                let link = self.costs[inner].link;
                if link > 0 {
                    let busy = &mut self.links[inner][self.places.group(inner, processor)];
                    begin = begin.max(*busy);
                    *busy = begin + link;
                }
            }
        }
        begin
    }

    fn varied(&mut self, latency: Time) -> Time {
        if self.jitter == 0.0 {
            return latency;
        }
        (latency as f64 * (1.0 + self.jitter * (2.0 * self.random.f64() - 1.0))) as Time
    }

    /// A line came into a private cache: the oldest goes, if there is no room.
    fn installed(&mut self, processor: usize, index: usize) {
        let cache = &mut self.caches[processor];
        cache.push_back(index as u32);
        if cache.len() <= self.capacity {
            return;
        }
        let Some(oldest) = cache.pop_front() else { return };
        let node = self.places.node_of(processor) as u16;
        let line = &mut self.all[oldest as usize];
        if oldest as usize == index || !line.holders.has(processor) {
            return;
        }
        line.holders.remove(processor);
        if line.holders.is_empty() {
            line.at = Home::Cache(node);
        } else if line.at == Home::Owner(processor as u16) {
            line.at = Home::Shared;
        }
    }
}

impl Line {
    fn alone(&self, processor: usize) -> bool {
        self.holders.only(processor)
    }
}

/// A hash of a few shifts: keys are line numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}
