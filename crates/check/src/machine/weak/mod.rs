//! The machine under C11's and Rust's memory model: messages and views in place of store buffers.
//!
//! # The model
//!
//! Sources, both of 2017:
//!
//! - Kang, Hur, Lahav, Vafeiadis and Dreyer, *A Promising Semantics for Relaxed-Memory Concurrency*
//!   (POPL), without its promises;
//! - Lahav, Vafeiadis, Kang, Hur and Dreyer, *Repairing Sequential Consistency in C/C++11* (PLDI):
//!   this model is an operational form of its model RC11.
//!
//! Each word has its *modification order*: the list of its *messages*, one for each store. A *view*
//! names a place in each word's list. A thread reads no message before the place in its view.
//!
//! | step | what happens |
//! |---|---|
//! | load | the thread reads any message at or after its view, which moves there. Acquire: the view takes in the message's view. Relaxed: a later fence takes it in |
//! | store | a new message anywhere behind the thread's view, but not between a read-modify-write and what that has read. Its view is the thread's (release), or that of the thread's last fence (relaxed) |
//! | read-modify-write | a load of a message that none has read from yet, and a store right behind it, whose view takes in that of the message read: the release sequence of C++20 |
//! | fence | the thread's view and the view of all fences so far become their union; what relaxed loads have read is acquired, and what relaxed stores publish from here on is this view |
//! | `SeqCst` access | as acquire and release; and it reads no message before the place that the view of all fences has of this word, stores behind it, and moves it to its own place. It learns nothing of other words from it |
//! | process-wide barrier | a fence of the caller, then one of each other thread at some moment before the call returns, then one of the caller |
//!
//! # Why this one
//!
//! - A state is a few lists, a step is a choice among what is there. So the sleep sets, the pruning
//!   of states and the replays of [`search`](crate::search) hold for it as for TSO\[S\]. An
//!   axiomatic checker (`GenMC`) would be a second engine.
//! - Stores are not put at the end of the modification order only, as loom's are: 2+2W needs that.
//! - No promises: a load reads what has been stored. So load buffering (LB), which Arm allows for
//!   relaxed accesses, is left out, as RC11 and loom leave it out.
//!
//! The order of sequentially consistent operations, S, is C++20's ([atomics.order], which Rust
//! refers to). `A` is *coherence-ordered before* `B` if a chain of reads-from, modification order
//! and from-read leads from `A` to `B`. Then in S `A` comes before `B`, or before a fence after
//! `B`, and a fence before `A` comes before those. RC11's psc is the same between fences. For
//! accesses it has modification order and from-read in place of the chain.
//!
//! The executions are those in which program order, reads-from and S have no cycle together. C++20
//! and RC11 ask that of S with a part of happens-before, and of program order with reads-from
//! alone. So this model leaves out the executions in which a `SeqCst` access comes before another
//! by way of an access that is only release or acquire, and after it in S. Power has such
//! executions, x86 and 64-bit Arm have none (`tests/it/weak.rs`, the test Z6.U). That file compares
//! the outcomes with an enumeration of candidate executions under these axioms.
//!
//! Why a place for each word is enough: the steps of an execution are taken in S. A fence or a
//! `SeqCst` access `B` that was taken has left at least the place that it knows, or stands at, of
//! each word or of its own. A `SeqCst` access at a place before that would be coherence-ordered
//! before `B`, or before what `B` knows, and so come before `B` in S.
//!
//! The thread that makes a word or a cell writes it, without an atomic store. The making must
//! happen before each use by another thread, or the two race. Clocks, for that and for races on
//! cells, go with the views of messages, not with those of fences alone.
//!
//! # Waiting
//!
//! A store becomes visible in finite time, but nothing says when. A thread that waits goes on when
//! there is a message that it has not seen, and may then still read what it read before. A round
//! that reads the same and learns nothing leads back to the state before it, so the execution ends
//! there ([`Machine::fruitless`]): the search has others in which the thread has waited on. It may
//! give up at any moment at which it could read the same again.
//!
//! A thread whose rounds write is in another state after each of them. In a loom model, once it has
//! read the same in [`MOST_OLD`] rounds although there was a newer message, it reads the newest: no
//! thread sees an older store for ever. The search then says that it was not complete.

use super::parts::FENCES;
use super::{Access, Change, Clock, Footprint, Kind, Loc, Look, MAX_THREADS, Machine, Op, mix};

mod state;

/// The most rounds in a row in which a waiting thread that writes reads the same old messages.
const MOST_OLD: u32 = 4;

/// A place in the modification order of each word, by its number; places that are not there are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places(Vec<u16>);

impl Places {
    fn at(&self, word: usize) -> usize {
        self.0.get(word).map_or(0, |place| usize::from(*place))
    }

    fn raise(&mut self, word: usize, place: usize) {
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] = self.0[word].max(place as u16);
    }

    fn join(&mut self, other: &Places) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// A message was put at this place: the messages from there on have moved.
    fn make_room(&mut self, word: usize, place: usize) {
        if let Some(known) = self.0.get_mut(word) {
            if usize::from(*known) >= place {
                *known += 1;
            }
        }
    }
}

fn join_clocks(mine: &mut Clock, theirs: &Clock) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = (*mine).max(*theirs);
    }
}

/// Whether `one` has a later time of some thread than `other`.
fn ahead(one: &Clock, other: &Clock) -> bool {
    one.iter().zip(other).any(|(one, other)| one > other)
}

/// What a thread that acquires it knows from then on.
#[derive(Clone, Debug, Default)]
struct View {
    places: Places,
    clock: Clock,
}

impl View {
    fn join(&mut self, other: &View) {
        self.places.join(&other.places);
        join_clocks(&mut self.clock, &other.clock);
    }
}

#[derive(Debug)]
struct Message {
    value: u64,
    view: View,
    /// The fingerprint of what its writer had done, and of what that of a release sequence had.
    past: u64,
    /// A read-modify-write has read it and stands right behind it.
    claimed: bool,
}

#[derive(Debug)]
struct Word {
    loc: Loc,
    messages: Vec<Message>,
    /// The thread that made it, and its time then.
    made: Option<(usize, u16)>,
    /// The word is a count of owners, and its one message stands for all.
    counted: bool,
}

#[derive(Debug, Default)]
struct Knowledge {
    places: Places,
    /// What relaxed loads have read and no fence has acquired.
    read: View,
    /// What relaxed stores publish: all that the last fence knew.
    fenced: View,
    /// The fingerprint of the round before the last pause, if something new ended that pause.
    round: u64,
    /// The fingerprint of what that round read, and how many in a row have read the same.
    same: (u64, u32),
}

#[derive(Debug)]
pub(crate) struct Weak {
    numbers: Vec<u16>,
    words: Vec<Word>,
    threads: Vec<Knowledge>,
    /// What the last fence of all knew, and where the last sequentially consistent access of each
    /// word stands.
    fences: Places,
    fruitless: bool,
    /// A use of a word whose making did not happen before the use.
    pub(crate) race: Option<(Loc, usize)>,
    /// How many messages are behind that of the last step.
    pub(crate) newer: usize,
}

impl Weak {
    pub(super) fn new(words: usize) -> Self {
        Weak {
            numbers: vec![0; words],
            words: Vec::new(),
            threads: Vec::new(),
            fences: Places::default(),
            fruitless: false,
            race: None,
            newer: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Weak { numbers: std::mem::take(&mut self.numbers), ..Weak::new(0) };
    }

    pub(super) fn add_thread(&mut self) {
        self.threads.push(Knowledge::default());
    }

    pub(super) fn add_word(&mut self, loc: Loc, value: u64, made: Option<(usize, u16)>) {
        self.numbers[loc as usize] = self.words.len() as u16;
        let first = Message { value, view: View::default(), past: 0, claimed: false };
        self.words.push(Word { loc, messages: vec![first], made, counted: false });
    }

    pub(super) fn learn(&mut self, index: usize, other: usize) {
        let known = self.threads[other].places.clone();
        self.threads[index].places.join(&known);
    }

    pub(super) fn is_common(&mut self, loc: Loc) {
        let word = self.word(loc);
        self.words[word].made = None;
    }

    fn word(&self, loc: Loc) -> usize {
        usize::from(self.numbers[loc as usize])
    }

    /// The messages that a thread may still read, and the place of the first.
    fn readable(&self, index: usize, loc: Loc) -> (usize, &[Message]) {
        let word = self.word(loc);
        let first = self.threads[index].places.at(word);
        (first, &self.words[word].messages[first..])
    }

    /// The place of the message that a thread's pending load or read-modify-write reads.
    fn read_place(&self, index: usize, loc: Loc, shifted: usize) -> usize {
        self.threads[index].places.at(self.word(loc)) + shifted
    }

    /// The first place at which a sequentially consistent access may stand; any, if it is none.
    fn first_in_order(&self, in_order: bool, loc: Loc) -> usize {
        if in_order { self.fences.at(self.word(loc)) } else { 0 }
    }

    /// The places at which a thread's pending store may stand, the last first.
    fn store_places(
        &self,
        index: usize,
        loc: Loc,
        in_order: bool,
    ) -> impl Iterator<Item = usize> + '_ {
        let (first, messages) = self.readable(index, loc);
        let skipped = self.first_in_order(in_order, loc).saturating_sub(first);
        let (first, messages) = (first + skipped, &messages[skipped..]);
        let free =
            move |(at, message): (usize, &Message)| (!message.claimed).then_some(first + at + 1);
        messages.iter().enumerate().rev().filter_map(free)
    }

    fn insert(&mut self, word: usize, place: usize, message: Message) {
        if place < self.words[word].messages.len() {
            let messages = self.words.iter_mut().flat_map(|word| &mut word.messages);
            let published = messages.map(|message| &mut message.view.places);
            let known = self.threads.iter_mut().flat_map(|thread| {
                [&mut thread.places, &mut thread.read.places, &mut thread.fenced.places]
            });
            for places in published.chain(known).chain([&mut self.fences]) {
                places.make_room(word, place);
            }
        }
        self.words[word].messages.insert(place, message);
        self.newer = self.words[word].messages.len() - 1 - place;
    }
}

impl Machine {
    fn read_place(&self, weak: &Weak, index: usize, loc: Loc) -> usize {
        weak.read_place(index, loc, self.threads[index].shifted)
    }

    fn weakly(&mut self) -> &mut Weak {
        self.weak.as_mut().expect("asked only where the memory is weak")
    }

    /// The set-up is over: what it has left in its words are their first messages.
    pub(crate) fn begin_weakly(&mut self) {
        if let Some(mut weak) = self.weak.take() {
            for (loc, value) in self.words() {
                weak.add_word(loc, value, None);
            }
            self.weak = Some(weak);
        }
    }

    /// Whether the thread that has come to its pause last has read nothing new.
    #[inline]
    pub(crate) fn fruitless(&self) -> bool {
        self.weak.as_ref().is_some_and(|weak| weak.fruitless)
    }

    /// Whether the pending step can be taken with the message that is chosen.
    pub(super) fn enabled_weakly(&self, weak: &Weak, index: usize) -> bool {
        let in_order = self.is_in_order(index);
        match self.threads[index].pending {
            Op::Load(loc) => {
                self.read_place(weak, index, loc) >= weak.first_in_order(in_order, loc)
            }
            Op::Change(loc, _) => {
                let (word, place) = (weak.word(loc), self.read_place(weak, index, loc));
                let message = &weak.words[word].messages[place];
                place >= weak.first_in_order(in_order, loc)
                    && (!message.claimed || self.changes_nothing(index))
            }
            Op::HeavyFinish => self.threads[index].targets.iter().all(|target| *target == 0),
            _ => true,
        }
    }

    /// Whether the pending read-modify-write of the chosen message is no more than a load.
    pub(super) fn changes_nothing(&self, index: usize) -> bool {
        let Some(weak) = &self.weak else { return false };
        match self.threads[index].pending {
            Op::Change(loc, change) => {
                let word = weak.word(loc);
                let message = &weak.words[word].messages[self.read_place(weak, index, loc)];
                change.of(message.value).is_none()
            }
            _ => false,
        }
    }

    /// Whether the pending step, with the chosen message, is a sequentially consistent access.
    pub(super) fn is_in_order(&self, index: usize) -> bool {
        let [in_order, fails_in_order] = self.threads[index].access.in_order;
        match self.threads[index].pending {
            _ if self.weak.is_none() => false,
            Op::Change(..) if self.changes_nothing(index) => fails_in_order,
            Op::Load(_) | Op::Store(..) | Op::Change(..) => in_order,
            _ => false,
        }
    }

    /// What others notice of a thread's pending step. A message that is there to be read stays
    /// there, so a load conflicts with no store.
    pub(super) fn weak_footprint(&self, index: usize) -> Footprint {
        let ordered = |loc| self.is_in_order(index).then_some(loc);
        let base = Footprint { steps: true, ..Footprint::default() };
        match self.threads[index].pending {
            Op::Load(loc) => Footprint { in_order: ordered(loc), ..base },
            Op::Change(loc, _) if self.changes_nothing(index) => {
                Footprint { in_order: ordered(loc), ..base }
            }
            Op::Store(loc, _) | Op::Change(loc, _) | Op::Await(loc, ..) => {
                Footprint { loc: Some(loc), writes: true, in_order: ordered(loc), ..base }
            }
            Op::Full | Op::HeavyStart(_) | Op::HeavyFinish => {
                Footprint { in_order: Some(FENCES), ..base }
            }
            _ => base,
        }
    }

    /// What others notice of the events that are no steps. To look further is to ask which messages
    /// there are.
    pub(super) fn weak_footprint_of(&self, kind: Kind, index: usize) -> Footprint {
        let none = Footprint::default();
        match (kind, self.threads[index].pending) {
            (Kind::Barrier, _) => Footprint { in_order: Some(FENCES), ..none },
            (Kind::Shift, Op::Load(loc) | Op::Change(loc, _) | Op::Store(loc, _)) => {
                // The step follows at once.
                let ordered = self.threads[index].access.in_order.contains(&true);
                Footprint { loc: Some(loc), in_order: ordered.then_some(loc), ..none }
            }
            _ => none,
        }
    }

    /// Whether the pending step may be taken with another message yet: a newer one to read, or an
    /// older one to stand before.
    pub(crate) fn can_shift(&self, index: usize) -> bool {
        let thread = &self.threads[index];
        if let Op::Choose(choice) = thread.pending {
            return thread.shifted + 1 < choice.count();
        }
        let Some(weak) = &self.weak else { return false };
        match thread.pending {
            Op::Load(loc) | Op::Change(loc, _) => {
                let word = weak.word(loc);
                self.read_place(weak, index, loc) + 1 < weak.words[word].messages.len()
            }
            Op::Store(loc, _) => {
                let in_order = self.is_in_order(index);
                let mut places = weak.store_places(index, loc, in_order);
                places.nth(thread.shifted + 1).is_some()
            }
            _ => false,
        }
    }

    pub(crate) fn shift(&mut self, index: usize) {
        self.threads[index].shifted += 1;
        self.choosing = Some(index);
    }

    /// Whether a process-wide barrier has not reached a thread yet.
    pub(crate) fn barrier_comes(&self, index: usize) -> bool {
        self.weak.is_some()
            && self.threads[..self.count].iter().any(|thread| {
                matches!(thread.pending, Op::HeavyFinish) && thread.targets[index] != 0
            })
    }

    /// A thread is reached by all process-wide barriers that are under way.
    pub(crate) fn barrier(&mut self, index: usize) {
        self.fence(index);
        for thread in &mut self.threads[..self.count] {
            thread.targets[index] = 0;
        }
    }

    pub(super) fn perform_weakly(&mut self, index: usize, op: Op) -> Option<u64> {
        let in_order = self.is_in_order(index);
        let result = match op {
            Op::Load(loc) => {
                self.use_weakly(index, loc, false);
                let shifted = self.threads[index].shifted;
                let place = self.weakly().read_place(index, loc, shifted);
                let acquires = self.threads[index].access.acquires;
                self.read(index, loc, place, acquires)
            }
            Op::Store(loc, value) => {
                self.use_weakly(index, loc, true);
                let shifted = self.threads[index].shifted;
                let weak = self.weakly();
                let mut places = weak.store_places(index, loc, in_order);
                let place = places.nth(shifted).expect("it was possible");
                drop(places);
                self.append(index, loc, place, value, None);
                0
            }
            Op::Change(loc, change) => {
                self.use_weakly(index, loc, true);
                let shifted = self.threads[index].shifted;
                let place = self.weakly().read_place(index, loc, shifted);
                self.change(index, loc, place, change)
            }
            Op::Await(loc, _, change) => {
                self.use_weakly(index, loc, true);
                let weak = self.weakly();
                let place = weak.words[weak.word(loc)].messages.len() - 1;
                self.change(index, loc, place, change)
            }
            Op::Full | Op::HeavyFinish => {
                self.fence(index);
                0
            }
            Op::Fence => {
                self.half_fence(index);
                0
            }
            Op::HeavyStart(reaches) => {
                self.fence(index);
                let reached =
                    |other| other != index && other < self.count && reaches >> other & 1 == 1;
                self.threads[index].targets =
                    core::array::from_fn(|other| u32::from(reached(other)));
                0
            }
            _ => return None,
        };
        let weak = self.weakly();
        if in_order {
            if let Op::Load(loc) | Op::Store(loc, _) | Op::Change(loc, _) = op {
                // The access has moved the thread's view to where it stands.
                let word = weak.word(loc);
                let place = weak.threads[index].places.at(word);
                weak.fences.raise(word, place);
            }
        }
        self.threads[index].shifted = 0;
        self.choosing = None;
        Some(result)
    }

    /// Takes note that a thread uses a word, and whether it has heard of the word's making.
    fn use_weakly(&mut self, index: usize, loc: Loc, writes: bool) {
        self.touch(index, loc, writes);
        self.use_word(index, loc);
        let clock = self.threads[index].clock;
        let weak = self.weakly();
        if let Some((maker, time)) = weak.words[weak.word(loc)].made {
            if maker != index && clock[maker] < time {
                weak.race = Some((loc, maker));
            }
        }
    }

    fn read(&mut self, index: usize, loc: Loc, place: usize, acquires: bool) -> u64 {
        let whole_past = self.whole_past;
        let Machine { weak: Some(weak), threads, .. } = self else { return 0 };
        let (word, thread) = (weak.word(loc), &mut threads[index]);
        let message = &weak.words[word].messages[place];
        if whole_past && ahead(&message.view.clock, &thread.clock) {
            thread.hash = mix(thread.hash, message.past);
        }
        let knowledge = &mut weak.threads[index];
        knowledge.places.raise(word, place);
        if acquires {
            knowledge.places.join(&message.view.places);
            join_clocks(&mut thread.clock, &message.view.clock);
        } else {
            knowledge.read.join(&message.view);
        }
        thread.reads.push(Look { loc, value: message.value, site: thread.site });
        weak.newer = weak.words[word].messages.len() - 1 - place;
        message.value
    }

    fn change(&mut self, index: usize, loc: Loc, place: usize, change: Change) -> u64 {
        let weak = self.weakly();
        let word = weak.word(loc);
        let old = weak.words[word].messages[place].value;
        let Access { acquires, fails_acquiring, .. } = self.threads[index].access;
        let Some(new) = change.of(old) else {
            return self.read(index, loc, place, fails_acquiring);
        };
        self.read(index, loc, place, acquires);
        let weak = self.weakly();
        let message = &mut weak.words[word].messages[place];
        message.claimed = true;
        // The release sequence goes on.
        let sequence = (message.view.clone(), message.past);
        self.append(index, loc, place + 1, new, Some(sequence));
        old
    }

    /// Adds a message. `sequence` is what a read-modify-write has read.
    fn append(
        &mut self,
        index: usize,
        loc: Loc,
        place: usize,
        value: u64,
        sequence: Option<(View, u64)>,
    ) {
        let releases = self.threads[index].access.releases;
        let mut past = self.threads[index].hash;
        let clock = self.threads[index].clock;
        let weak = self.weakly();
        let word = weak.word(loc);
        let last = place == weak.words[word].messages.len();
        weak.insert(word, place, Message { value, view: View::default(), past, claimed: false });
        let knowledge = &mut weak.threads[index];
        knowledge.places.raise(word, place);
        let mut view = if releases {
            View { places: knowledge.places.clone(), clock }
        } else {
            knowledge.fenced.clone()
        };
        if let Some((mut sequence, before)) = sequence {
            past = mix(past, before);
            sequence.places.make_room(word, place);
            view.join(&sequence);
        }
        view.places.raise(word, place);
        let message = &mut weak.words[word].messages[place];
        message.view = view;
        message.past = past;
        if releases {
            // What the thread does from here on this message does not publish.
            self.threads[index].clock[index] += 1;
        }
        if last {
            self.write(loc, value);
        }
    }

    /// A step on a count of owners that has become `count`.
    pub(super) fn count_weakly(
        &mut self,
        index: usize,
        loc: Loc,
        count: u64,
        releases: bool,
        acquires: bool,
    ) {
        let whole_past = self.whole_past;
        let Machine { weak: Some(weak), threads, .. } = self else { return };
        let (word, thread) = (weak.word(loc), &mut threads[index]);
        let Weak { words, threads: knowledge, .. } = weak;
        let (word, knowledge) = (&mut words[word], &mut knowledge[index]);
        word.counted = true;
        let message = &mut word.messages[0];
        message.value = count;
        if releases {
            message.view.join(&View { places: knowledge.places.clone(), clock: thread.clock });
            // A sum, which is the same in every order.
            message.past = message.past.wrapping_add(mix(index as u64, thread.hash));
            thread.clock[index] += 1;
        }
        if acquires {
            if whole_past && ahead(&message.view.clock, &thread.clock) {
                thread.hash = mix(thread.hash, message.past);
            }
            knowledge.places.join(&message.view.places);
            join_clocks(&mut thread.clock, &message.view.clock);
        }
    }

    fn half_fence(&mut self, index: usize) {
        let Machine { weak: Some(weak), threads, .. } = self else { return };
        let (knowledge, thread) = (&mut weak.threads[index], &mut threads[index]);
        if thread.access.acquires {
            let read = std::mem::take(&mut knowledge.read);
            knowledge.places.join(&read.places);
            join_clocks(&mut thread.clock, &read.clock);
        }
        if thread.access.releases {
            knowledge.fenced = View { places: knowledge.places.clone(), clock: thread.clock };
            // What the thread does from here on the fence does not publish.
            thread.clock[index] += 1;
        }
    }

    fn fence(&mut self, index: usize) {
        let Machine { weak: Some(weak), threads, .. } = self else { return };
        let (knowledge, clock) = (&mut weak.threads[index], &mut threads[index].clock);
        let read = std::mem::take(&mut knowledge.read);
        knowledge.places.join(&read.places);
        join_clocks(clock, &read.clock);
        knowledge.places.join(&weak.fences);
        weak.fences.clone_from(&knowledge.places);
        knowledge.fenced = View { places: knowledge.places.clone(), clock: *clock };
        clock[index] += 1;
    }

    /// Whether a paused thread could see something that it has not seen.
    pub(super) fn something_new(&self, weak: &Weak, index: usize) -> bool {
        self.threads[index].reads.iter().any(|look| {
            let (_, messages) = weak.readable(index, look.loc);
            messages.iter().any(|message| message.value != look.value)
        })
    }

    /// Whether a paused thread could see again what it has seen.
    pub(super) fn same_again(&self, weak: &Weak, index: usize) -> bool {
        self.threads[index].reads.iter().all(|look| {
            let (_, messages) = weak.readable(index, look.loc);
            messages.first().is_some_and(|message| message.value == look.value)
        })
    }

    /// The fingerprint of a thread's looks since its last pause, and of what it knows; not 0.
    fn round(&self, weak: &Weak, index: usize) -> u64 {
        let knowledge = &weak.threads[index];
        let looks = self.threads[index].reads.iter();
        let seen = looks.fold(1, |hash, look| mix(mix(hash, u64::from(look.loc)), look.value));
        let known = knowledge.places.0.iter().chain(&knowledge.read.places.0);
        let clocks = self.threads[index].clock.iter().chain(&knowledge.read.clock);
        known.chain(clocks).fold(seen, |hash, place| mix(hash, u64::from(*place))) | 1
    }

    pub(super) fn arrives_weakly(&mut self, index: usize) {
        if let Some(mut weak) = self.weak.take() {
            weak.fruitless = weak.threads[index].round == self.round(&weak, index);
            self.weak = Some(weak);
        }
    }

    /// A thread passes a pause: because there is something new, or because it gives up.
    pub(super) fn passes_weakly(&mut self, index: usize, woken: bool) {
        if let Some(mut weak) = self.weak.take() {
            let round = if woken { self.round(&weak, index) } else { 0 };
            let reads = &self.threads[index].reads;
            let read =
                reads.iter().fold(1, |hash, look| mix(mix(hash, u64::from(look.loc)), look.value));
            let knowledge = &mut weak.threads[index];
            knowledge.round = round;
            knowledge.same = match knowledge.same {
                (before, times) if woken && before == read => (read, times + 1),
                _ => (read, 0),
            };
            if self.whole_past && knowledge.same.1 == MOST_OLD {
                // Its rounds write, or they would have led back to an earlier state.
                self.left_old = true;
                for look in reads {
                    let word = weak.word(look.loc);
                    let last = weak.words[word].messages.len() - 1;
                    weak.threads[index].places.raise(word, last);
                }
            }
            weak.fruitless = false;
            self.weak = Some(weak);
        }
    }
}

/// More words than a view can name are more than a model may make.
const _: () = assert!(super::MAX_WORDS * (MAX_THREADS + 1) < u16::MAX as usize);
