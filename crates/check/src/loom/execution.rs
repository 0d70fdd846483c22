//! What one execution of a model knows beside its words: its threads, and what must be gone in the
//! end.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::rc::Rc;

use crate::raw::Raw;

/// A thread of the execution.
pub(super) struct Registered {
    pub(super) name: Option<String>,
    /// 0 if it may go on from its next [`park`](super::thread::park), 1 if it has to wait.
    pub(super) token: Rc<Raw>,
    /// Its thread-local values, in the order in which they were made.
    pub(super) locals: Vec<Local>,
}

impl Registered {
    pub(super) fn new(name: Option<String>) -> Self {
        Registered { name, token: Rc::new(Raw::new(1)), locals: Vec::new() }
    }
}

/// One of a thread's values: the address of its key, the value, and what drops it where it is. A
/// value that is dropped leaves its place, so that it is not made again.
#[derive(Clone)]
pub(super) struct Local {
    pub(super) key: usize,
    pub(super) value: Rc<dyn Any>,
    pub(super) clear: fn(&dyn Any) -> bool,
}

pub(super) struct Execution {
    pub(super) count: Rc<Raw>,
    pub(super) threads: Vec<Registered>,
    /// The statics of [`lazy_static`](super::lazy_static), by the address of their key, each with
    /// the word through which its readers learn of it.
    pub(super) statics: HashMap<usize, (&'static dyn Any, Rc<Raw>)>,
    /// What has not been dropped: what it is, and where it was made.
    alive: HashMap<u64, (&'static str, &'static Location<'static>)>,
    made: u64,
    /// The pointers of [`Arc::into_raw`](super::sync::Arc::into_raw), each with what keeps it
    /// alive.
    pub(super) raw: HashMap<usize, Vec<Box<dyn Any>>>,
}

thread_local! {
    static EXECUTION: RefCell<Option<Execution>> = const { RefCell::new(None) };
}

/// Uses the execution under way.
///
/// # Panics
///
/// If there is none.
#[track_caller]
pub(super) fn with<R>(act: impl FnOnce(&mut Execution) -> R) -> R {
    let used = EXECUTION.with_borrow_mut(|execution| execution.as_mut().map(act));
    used.expect("the names of poach_check::loom can only be used inside of a model")
}

/// The execution under way, if there is one; for destructors.
pub(super) fn try_with<R>(act: impl FnOnce(&mut Execution) -> R) -> Option<R> {
    EXECUTION.try_with(|cell| cell.try_borrow_mut().ok()?.as_mut().map(act)).ok().flatten()
}

/// Begins an execution, in its set-up: its first thread is registered.
pub(super) fn begin() {
    let execution = Execution {
        count: Rc::new(Raw::new(1)),
        threads: vec![Registered::new(None)],
        statics: HashMap::new(),
        alive: HashMap::new(),
        made: 0,
        raw: HashMap::new(),
    };
    leave(EXECUTION.replace(Some(execution)));
}

/// The last execution is over. (The thread of the system would drop it at its own end.)
pub(super) fn end() {
    leave(EXECUTION.take());
}

/// What threads that never ended have left is not dropped: its destructors would take steps.
fn leave(old: Option<Execution>) {
    if let Some(mut old) = old {
        std::mem::forget(std::mem::take(&mut old.raw));
        for thread in &mut old.threads {
            std::mem::forget(std::mem::take(&mut thread.locals));
        }
    }
}

/// Takes note of something that must be dropped before the execution ends.
#[track_caller]
pub(super) fn made(what: &'static str) -> u64 {
    let site = Location::caller();
    with(|execution| {
        execution.made += 1;
        execution.alive.insert(execution.made, (what, site));
        execution.made
    })
}

/// It is dropped.
pub(super) fn dropped(number: u64) {
    try_with(|execution| execution.alive.remove(&number));
}

/// What is left at the end, if nothing may be: the first that was made. A static lives as long as
/// the program, so what it keeps is not asked about.
pub(super) fn left() -> Option<String> {
    with(|execution| {
        if !execution.statics.is_empty() {
            return None;
        }
        let first = execution.alive.iter().min_by_key(|(number, _)| **number);
        first.map(|(_, (what, site))| {
            format!("{what} made at {} is never dropped", crate::trace::place(site))
        })
    })
}
