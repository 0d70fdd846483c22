//! What an execution of a model knows beside its words: threads, and what must be gone in the end.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc as StdArc;

use super::sync::Count;
use crate::machine::Choice;
use crate::raw::{self, Raw};

pub(super) struct Registered {
    pub(super) name: Option<String>,
    /// 0 if it may go on from its next [`park`](super::thread::park), 1 if it has to wait.
    pub(super) token: Rc<Raw>,
    /// Its thread-local values, in the order in which they were made.
    pub(super) locals: Vec<Local>,
    /// It has panicked, and nobody has been told.
    pub(super) panicked: bool,
    /// How many of its waits may still end without a reason.
    spurious: u32,
}

impl Registered {
    pub(super) fn new(name: Option<String>, settings: &Settings) -> Self {
        let spurious = settings.spurious_wakeups;
        let token = Rc::new(Raw::common(1));
        Registered { name, token, locals: Vec::new(), panicked: false, spurious }
    }
}

/// What a model's [`Builder`](super::model::Builder) says of its threads.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) spurious_wakeups: u32,
    pub(super) any_waiter: bool,
    pub(super) catches_panics: bool,
}

/// One of a thread's values: the address of its key, the value, and what drops it where it is. A
/// value that is dropped leaves its place, so that it is not made again.
#[derive(Clone)]
pub(super) struct Local {
    pub(super) key: usize,
    pub(super) value: Rc<dyn Any>,
    pub(super) clear: fn(&dyn Any) -> bool,
}

/// What a [`lazy_static`](super::lazy_static!) holds in this execution.
#[derive(Clone)]
pub(super) struct Static {
    pub(super) key: usize,
    pub(super) value: Rc<dyn Any>,
    /// The word through which threads learn of the value.
    pub(super) word: Rc<Raw>,
    /// The threads that have learnt of the value: bit `i` is thread `i`.
    pub(super) heard: u8,
}

pub(super) struct Execution {
    pub(super) count: Rc<Raw>,
    pub(super) threads: Vec<Registered>,
    pub(super) settings: Settings,
    /// The statics of [`lazy_static`](super::lazy_static!), in the order in which they were made.
    pub(super) statics: Vec<Static>,
    /// What has not been dropped: what it is, and where it was made.
    alive: HashMap<u64, (&'static str, &'static Location<'static>)>,
    made: u64,
    memory: HashMap<usize, u64>,
    /// The counts of all owned values, by their addresses.
    pub(super) arcs: HashMap<usize, StdArc<Count>>,
}

thread_local! {
    static EXECUTION: RefCell<Option<Execution>> = const { RefCell::new(None) };
}

/// # Panics
///
/// If there is none.
#[track_caller]
pub(super) fn with<R>(act: impl FnOnce(&mut Execution) -> R) -> R {
    let used = EXECUTION.with_borrow_mut(|execution| execution.as_mut().map(act));
    used.expect("loom's names can only be used inside of a model")
}

/// The execution under way, if there is one; for destructors.
pub(super) fn try_with<R>(act: impl FnOnce(&mut Execution) -> R) -> Option<R> {
    EXECUTION.try_with(|cell| cell.try_borrow_mut().ok()?.as_mut().map(act)).ok().flatten()
}

pub(super) fn begin(settings: &Settings) {
    let execution = Execution {
        count: Rc::new(Raw::new(1)),
        threads: vec![Registered::new(None, settings)],
        settings: settings.clone(),
        statics: Vec::new(),
        alive: HashMap::new(),
        made: 0,
        memory: HashMap::new(),
        arcs: HashMap::new(),
    };
    leave(EXECUTION.replace(Some(execution)));
}

pub(super) fn end() {
    leave(EXECUTION.take());
}

/// What threads that never ended have left is not dropped: its destructors would take steps.
fn leave(old: Option<Execution>) {
    if let Some(mut old) = old {
        std::mem::forget(std::mem::take(&mut old.statics));
        for thread in &mut old.threads {
            std::mem::forget(std::mem::take(&mut thread.locals));
        }
    }
}

#[track_caller]
pub(super) fn made(what: &'static str) -> u64 {
    let site = Location::caller();
    with(|execution| {
        execution.made += 1;
        execution.alive.insert(execution.made, (what, site));
        execution.made
    })
}

pub(super) fn dropped(number: u64) {
    try_with(|execution| execution.alive.remove(&number));
}

#[track_caller]
pub(super) fn allocated(address: usize) {
    let number = made("memory");
    with(|execution| execution.memory.insert(address, number));
}

/// # Panics
///
/// If it was not allocated, or is given back already.
#[track_caller]
pub(super) fn deallocated(address: usize) {
    let number = with(|execution| execution.memory.remove(&address));
    dropped(number.expect("memory is given back that was not allocated, or not by loom::alloc"));
}

/// Whether the running thread's wait ends without a reason: a choice, as often as the settings say.
#[track_caller]
pub(super) fn wakes_spuriously() -> bool {
    let thread = super::thread::running();
    if with(|execution| execution.threads[thread].spurious == 0) {
        return false;
    }
    let wakes = raw::choose(Choice::WakesUp) == 1;
    if wakes {
        with(|execution| execution.threads[thread].spurious -= 1);
    }
    wakes
}

/// All threads have ended: drops the statics. Returns the first that was made of what is left then.
pub(super) fn close() -> Option<String> {
    loop {
        let last = with(|execution| execution.statics.pop());
        if last.is_none() {
            break;
        }
    }
    with(|execution| {
        let first = execution.alive.iter().min_by_key(|(number, _)| **number);
        first.map(|(_, (what, site))| {
            format!("{what} made at {} is never dropped", crate::trace::place(site))
        })
    })
}
