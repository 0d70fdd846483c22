//! Executions: the model's threads as coroutines on one thread of the system.
//!
//! A model thread runs until its next step on a shared word, and asks the search what happens next.
//! Only when another thread is to move does the coroutine suspend. So a replayed prefix costs a
//! switch for each change of thread. Coroutines live on from one execution to the next.
//!
//! What remains of an execution that was cut short is run to its end without a schedule, one thread
//! after another: cheaper than unwinding, and nothing leaks. If that does not end, it is unwound.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Once;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::history::{Call, History, Outcome};
use crate::machine::{
    Access, CALLED, Freeing, Kept, Kind, Loc, MAX_THREADS, Machine, Op, Probe, RETURNED, Touch,
    decode,
};
use crate::search::{EAGER, End, Search};
use crate::spec;
use crate::trace::Recording;
use crate::weakening::{self, Orderings};
use crate::{Config, Report, Threads, Violation};

mod alone;
mod dynamic;
mod fibers;
mod freed;
mod run;
mod said;
mod steps;

use alone::Alone;
pub(crate) use dynamic::{
    alone, current, exploring, keep_clocks, keep_whole, print_panics, share_beside_words, spawn,
};
pub(crate) use fibers::catch_own;
use fibers::{Closing, dispose, leave, message, need, quiet_panics, resume, slot, tear_down};
pub(crate) use freed::{cell_dropped, free, new_cell, new_word, word_dropped};
pub(crate) use run::run;
pub(crate) use said::race;
pub use said::{fail, forget, observe, stole};
pub(crate) use steps::{is_weak, step, step_as, step_of};

pub(crate) type Job = Box<dyn FnOnce()>;
type Fiber = Coroutine<(), (), (), DefaultStack>;

/// The check of a history of [`MAX_OPERATIONS`] needs most. What is not touched is not there.
const STACK_BYTES: usize = 1 << 20;

const MAX_OPERATIONS: usize = 250;

/// Steps that a thread of a cut execution may still take before it is unwound.
const TEARDOWN_STEPS: u32 = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Idle,
    SetUp,
    Run,
    /// The rest of a cut execution, unscheduled.
    Teardown,
    /// The rest of an execution that has to be unwound.
    Unwind,
    After,
}

/// Panics of a model's thread that cannot unwind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aborts {
    EndTheProcess,
    AreViolations,
    /// One has been met: this thread of the system can explore no more.
    Met,
}

pub(crate) struct Engine {
    pub(crate) machine: Machine,
    pub(crate) search: Search,
    pub(crate) history: History,
    waiting_calls: [Call; MAX_THREADS],
    mode: Mode,
    current: usize,
    jobs: [Option<Job>; MAX_THREADS],
    next: Option<usize>,
    teardown_steps: u32,
    alone: Option<Alone>,
    kept: Vec<Kept>,
    freeing: Option<Freeing>,
    closing: bool,
    /// The threads that are suspended in a destructor that a panic runs.
    unwinding: [bool; MAX_THREADS],
    /// The threads that have panicked in this execution, or are being unwound.
    panicked: [bool; MAX_THREADS],
    unwound: [bool; MAX_THREADS],
    last_panic: Option<(usize, String)>,
    /// After a violation, threads that have not ended are left as they are instead of unwound.
    keep_whole: bool,
    loud: bool,
    aborts: Aborts,
    orderings: Orderings,
    pub(crate) observed: Vec<u64>,
    pub(crate) recording: Option<Recording>,
}

enum Turn {
    Done(u64),
    Suspend,
    Unwind,
}

/// What unwinds a thread of an execution that is given up.
struct GivenUp;

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(Engine::new());
}

fn with<R>(act: impl FnOnce(&mut Engine) -> R) -> R {
    ENGINE.with_borrow_mut(act)
}

pub(crate) fn new_raw_word(value: u64) -> u32 {
    with(|engine| engine.new_word(value))
}

pub(crate) fn new_common_word(value: u64) -> u32 {
    with(|engine| {
        let loc = engine.new_word(value);
        engine.machine.is_common(loc);
        loc
    })
}

pub(crate) fn number_of(address: u64) -> u64 {
    with(|engine| {
        let creator = engine.creator();
        engine.machine.number_of(address, creator)
    })
}

pub(crate) fn address_of(number: u64) -> u64 {
    with(|engine| engine.machine.address_of(number))
}

/// Records one operation of the running model thread: its call, its return, and where both stand.
///
/// # Panics
///
/// Outside of a model.
pub fn operation(call: Call, act: impl FnOnce() -> Outcome) -> Outcome {
    begin(call);
    let outcome = act();
    finish(outcome);
    outcome
}

fn begin(call: Call) {
    with(|engine| {
        engine.need_execution();
        engine.begin(call);
    });
}

fn finish(outcome: Outcome) {
    if with(|engine| engine.needs_mark()) {
        step(Op::Mark, Location::caller());
    }
    with(|engine| engine.finish(outcome));
}

pub(crate) fn use_cell(cell: u32, writes: bool, before: Option<Touch>) {
    with(|engine| {
        let current = engine.current;
        engine.machine.use_cell(current, cell, writes, before);
    });
}

/// The clock of the running thread, if this execution keeps clocks; for the cells.
pub(crate) fn cell_clock() -> Option<(usize, [u16; MAX_THREADS])> {
    with(|engine| {
        // A thread that unwinds is not stopped in a destructor.
        if engine.mode != Mode::Run || engine.probes() || std::thread::panicking() {
            return None;
        }
        if !engine.machine.clocks {
            // From the next execution on; this one has no clocks to go by.
            engine.machine.clocks_wanted = true;
            engine.machine.knowledge_grew = true;
            return None;
        }
        Some((engine.current, engine.machine.threads[engine.current].clock))
    })
}

impl Engine {
    fn new() -> Self {
        Engine {
            machine: Machine::new(),
            search: Search::new(),
            history: History::default(),
            waiting_calls: [Call::Pop; MAX_THREADS],
            mode: Mode::Idle,
            current: 0,
            jobs: [const { None }; MAX_THREADS],
            next: None,
            teardown_steps: 0,
            alone: None,
            kept: Vec::new(),
            freeing: None,
            closing: false,
            unwinding: [false; MAX_THREADS],
            panicked: [false; MAX_THREADS],
            unwound: [false; MAX_THREADS],
            last_panic: None,
            keep_whole: false,
            loud: false,
            aborts: Aborts::EndTheProcess,
            orderings: Orderings::AsWritten,
            observed: Vec::new(),
            recording: None,
        }
    }

    fn need_execution(&self) {
        assert!(
            self.mode != Mode::Idle,
            "a word of poach_check::Simulated can only be used inside of poach_check::explore"
        );
    }

    #[cold]
    fn foreign_word(&self) -> ! {
        self.need_execution();
        panic!(
            "a word of poach_check::Simulated can only be used in the execution in which it was made"
        );
    }

    fn new_word(&mut self, value: u64) -> Loc {
        self.need_execution();
        let word = self.machine.new_word(self.creator(), value);
        word.expect("a model may make at most 1024 words in its set-up, and as many in each thread")
    }

    fn creator(&self) -> Option<usize> {
        match self.mode {
            Mode::Idle | Mode::SetUp | Mode::After => None,
            Mode::Run | Mode::Teardown | Mode::Unwind => Some(self.current),
        }
    }

    #[inline]
    fn request(&mut self, op: Op, access: Access, site: &'static Location<'static>) -> Turn {
        if self.mode != Mode::Run {
            return self.request_unscheduled(op);
        }
        let Some(access) = self.access(op, access, site) else { return Turn::Done(0) };
        let current = self.current;
        if std::thread::panicking() {
            return self.request_unwinding(op, access, site);
        }
        self.machine.arrives(current, op, access, site);
        if self.alone.is_some() {
            return self.request_alone(op, site);
        }
        if matches!(op, Op::Pause) {
            self.machine.arrives_at_pause(current);
        }
        match self.advance() {
            Some(chosen) if chosen == current => Turn::Done(self.perform(current)),
            next => {
                self.next = next;
                Turn::Suspend
            }
        }
    }

    /// The access as the search plays it; `None` for a fence that is left out.
    #[inline]
    fn access(
        &mut self,
        op: Op,
        access: Access,
        site: &'static Location<'static>,
    ) -> Option<Access> {
        match &self.orderings {
            Orderings::AsWritten => Some(access),
            Orderings::Listed => {
                self.search.demands.extend(weakening::demands(op, access, site));
                Some(access)
            }
            Orderings::Without(demand) => weakening::weakened(demand, op, access, site),
        }
    }

    /// A step of a thread that unwinds. As a rule the thread has failed, and nothing matters any
    /// more. But if the panic may be caught, the others see what the destructors do. These run in
    /// one go, since the threads of a model share one thread of the system, which panics.
    #[cold]
    fn request_unwinding(
        &mut self,
        op: Op,
        access: Access,
        site: &'static Location<'static>,
    ) -> Turn {
        let current = self.current;
        if !self.keep_whole || matches!(self.alone, Some(Alone::Probe(_))) {
            return self.request_unscheduled(op);
        }
        self.machine.arrives(current, op, access, site);
        while !self.machine.buffer(current).is_empty() {
            self.machine.drain(current);
        }
        if !self.machine.enabled(current) {
            return self.request_unscheduled(op);
        }
        // This wakes every sleeping event.
        self.search.all_changed();
        Turn::Done(self.perform(current))
    }

    #[cold]
    fn request_unscheduled(&mut self, op: Op) -> Turn {
        self.need_execution();
        match self.mode {
            Mode::Teardown => {
                if self.teardown_steps == 0 {
                    if self.keep_whole {
                        self.machine.threads[self.current].pending = op;
                        return Turn::Suspend;
                    }
                    return self.unwind(op);
                }
                self.teardown_steps -= 1;
                if matches!(op, Op::Pause) || !self.machine.unblocked(op) {
                    self.machine.threads[self.current].pending = op;
                    return Turn::Suspend;
                }
            }
            Mode::Unwind => return self.unwind(op),
            _ => {}
        }
        Turn::Done(self.machine.perform_directly(op))
    }

    /// The running thread is to be unwound before `op`. In a destructor that an unwinding already
    /// runs it may not unwind again.
    #[cold]
    fn unwind(&mut self, op: Op) -> Turn {
        if self.unwinds() {
            return Turn::Done(self.machine.perform_directly(op));
        }
        self.panicked[self.current] = true;
        self.unwound[self.current] = true;
        Turn::Unwind
    }

    /// Whether the running thread of the model unwinds. The model's threads share one thread of the
    /// system, whose panics the library counts. So a panic may be that of another thread, suspended
    /// in a destructor.
    fn unwinds(&self) -> bool {
        let others = (0..MAX_THREADS).any(|other| other != self.current && self.unwinding[other]);
        std::thread::panicking() && (!others || self.panicked[self.current])
    }

    /// The running thread is suspended, or goes on.
    fn suspended(&mut self, is: bool) {
        self.unwinding[self.current] = is && self.unwinds();
    }

    /// A coroutine goes on at the step at which it was suspended.
    fn resumed(&mut self) -> Turn {
        let current = self.current;
        match self.mode {
            Mode::Run => Turn::Done(self.perform(current)),
            Mode::Teardown => {
                let pending = self.machine.threads[current].pending;
                if self.machine.unblocked(pending) {
                    Turn::Done(self.machine.perform_directly(pending))
                } else {
                    Turn::Suspend
                }
            }
            _ => {
                let pending = self.machine.threads[current].pending;
                self.unwind(pending)
            }
        }
    }

    fn perform(&mut self, thread: usize) -> u64 {
        let op = self.machine.threads[thread].pending;
        let looked = self.machine.has_looked(thread);
        let result = self.machine.perform(thread);
        self.look_for_races(thread);
        if matches!(op, Op::Pause) && looked {
            if let Some(Alone::Rounds(left)) = &mut self.alone {
                *left -= 1;
                if *left == 0 {
                    self.alone = None;
                }
                return result;
            }
        }
        if let Some(recording) = &mut self.recording {
            if self.alone.is_none() {
                recording.step(&self.machine, thread, op, result);
            }
        }
        result
    }

    /// Lets the search choose events until one is a thread's step, and returns that thread; `None`
    /// when the execution is over.
    fn advance(&mut self) -> Option<usize> {
        loop {
            if self.search.end.is_some() {
                return None;
            }
            if self.machine.knowledge_grew {
                self.search.end = Some(End::Restart);
                return None;
            }
            if let Some(thread) = self.machine.unknown_patience() {
                self.alone = Some(Alone::Probe(Probe::new(&self.machine, thread)));
                return Some(thread);
            }
            let Some(chosen) = self.search.next(&mut self.machine) else {
                if self.search.end.is_none() {
                    self.stuck();
                }
                return None;
            };
            let event = chosen & !EAGER;
            let (kind, thread) = decode(event);
            match kind {
                Kind::Step => {
                    if chosen & EAGER == 0 {
                        self.settle(thread);
                    }
                    return Some(thread);
                }
                Kind::Drain => {
                    let entry = self.machine.buffer(thread)[0];
                    let owner = &self.machine.threads[thread];
                    if owner.call_waits && entry.operation == owner.operation {
                        self.record_call(thread);
                    }
                    self.machine.drain(thread);
                    for _ in 0..entry.flushes {
                        self.record_show(thread);
                    }
                    if let Some(recording) = &mut self.recording {
                        recording.drain(&self.machine, thread, entry);
                    }
                }
                Kind::Coalesce => {
                    let at = self.machine.coalesces_at(thread).expect("the search has looked");
                    let entry = self.machine.coalesce(thread, at);
                    if let Some(recording) = &mut self.recording {
                        recording.coalesce(&self.machine, thread, entry);
                    }
                }
                Kind::Shift => self.machine.shift(thread),
                Kind::Barrier => {
                    self.machine.barrier(thread);
                    if let Some(recording) = &mut self.recording {
                        recording.barrier(&self.machine, thread);
                    }
                }
                Kind::GiveUp => {
                    if chosen & EAGER == 0 {
                        self.settle(thread);
                    }
                    let pauses = self.machine.give_up(thread);
                    if let Some(recording) = &mut self.recording {
                        recording.give_up(&self.machine, thread, pauses);
                    }
                    self.alone = Some(Alone::Rounds(pauses));
                    return Some(thread);
                }
            }
        }
    }

    #[inline]
    fn settle(&mut self, thread: usize) {
        if self.machine.threads[thread].call_waits {
            self.record_call(thread);
        }
        self.machine.settle(thread);
    }

    fn begin(&mut self, call: Call) {
        if self.mode == Mode::SetUp {
            // The set-up does what the first thread would have done before.
            self.history.call(0, call);
            self.search.monitor(|monitor| monitor.call(0, call, false));
        }
        if self.mode == Mode::Run && !self.probes() {
            let thread = &mut self.machine.threads[self.current];
            thread.operation += 1;
            thread.vain = 0;
            thread.call_waits = true;
            self.waiting_calls[self.current] = call;
            if let Some(recording) = &mut self.recording {
                recording.call(self.current, call);
            }
        }
    }

    /// An operation's end is a step if it had none; and in a cut execution, to unwind each thread.
    fn needs_mark(&self) -> bool {
        match self.mode {
            Mode::Run => self.machine.threads[self.current].call_waits,
            mode => matches!(mode, Mode::Teardown | Mode::Unwind) && !self.unwinds(),
        }
    }

    /// Takes note that an event changes the history, if anybody asks.
    fn note(&mut self, mark: u8) {
        if self.search.spec.is_some() {
            self.machine.marks |= mark;
        }
    }

    fn record_call(&mut self, thread: usize) {
        self.machine.threads[thread].call_waits = false;
        self.note(CALLED);
        let call = self.waiting_calls[thread];
        let others = (0..self.machine.count).filter(|&other| other != thread);
        let outrun = others.clone().any(|other| {
            self.history.is_open(other) || self.machine.has_undrained_operation(other)
        });
        self.history.call(thread, call);
        self.search.monitor(|monitor| monitor.call(thread, call, outrun));
    }

    fn record_show(&mut self, thread: usize) {
        self.note(RETURNED);
        if let Some(Call::Push(task)) = self.history.show(thread) {
            self.search.monitor(|monitor| monitor.visible(task));
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        if self.mode == Mode::SetUp {
            self.returns(0, outcome, true);
            self.record_show(0);
        }
        if self.mode != Mode::Run || self.probes() {
            return;
        }
        if self.history.operations().len() > MAX_OPERATIONS {
            self.search.endless();
            return;
        }
        let current = self.current;
        let call = self.waiting_calls[current];
        self.search.stolen |= call == Call::Steal && matches!(outcome, Outcome::Task(_));
        self.note(RETURNED);
        let delayed = self.machine.delays_operation(current);
        if delayed && self.machine.buffer(current).len() == 1 {
            self.search.front_changed(current);
        }
        if let Some(recording) = &mut self.recording {
            recording.ret(current, call, outcome);
        }
        if !self.returns(current, outcome, delayed) {
            let spec = self.search.spec.expect("only a specification is violated");
            let why = spec::check(spec, &self.history);
            let why = why.expect_err("what follows a history and what explains it agree");
            self.search.violate(Violation::History(why));
        }
    }

    /// An operation returns; whether its specification allows it.
    fn returns(&mut self, thread: usize, outcome: Outcome, delayed: bool) -> bool {
        self.history.ret(thread, outcome, delayed);
        let allowed = self.search.monitor(|monitor| monitor.returns(thread, outcome));
        if !delayed {
            if let Call::Push(task) = self.history.last_call(thread) {
                self.search.monitor(|monitor| monitor.visible(task));
            }
        }
        allowed.unwrap_or(true)
    }

    /// The job's captures are to be dropped outside of the engine: they may look at words.
    fn drop_unstarted(&mut self, thread: usize) -> Option<Job> {
        if self.mode != Mode::Unwind {
            return None;
        }
        let job = self.jobs[thread].take()?;
        self.machine.ends(thread);
        self.mode = Mode::After;
        Some(job)
    }
}
