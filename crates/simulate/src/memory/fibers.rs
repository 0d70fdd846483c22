//! Virtual threads as coroutines. One processor's thread suspends when another event comes first.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::Failure;
use crate::engine::with;
use crate::run::Run;
use crate::step::{Op, Place, Turn};

type Fiber = Coroutine<(), (), (), DefaultStack>;

/// A queue's methods need little; a panic's message needs more. What is not touched is not there.
const STACK_BYTES: usize = 256 << 10;

thread_local! {
    /// For each processor, how its thread suspends; null where none has begun.
    static YIELDERS: RefCell<Vec<*const Yielder<(), ()>>> = const { RefCell::new(Vec::new()) };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Takes a step on behalf of the running thread, when its turn comes.
#[inline]
pub(super) fn step(op: Op, place: Place) -> u64 {
    loop {
        match with(|engine| engine.step(op, place)) {
            Turn::Done(value) => return value,
            Turn::Suspend => suspend(),
        }
    }
}

fn suspend() {
    let current = crate::processor();
    let yielder = YIELDERS.with_borrow(|yielders| yielders[current]);
    // SAFETY: only a running coroutine takes steps that suspend, and it is the current processor's;
    // it has registered its own yielder before it ran its body, and the yielder is there until
    // the coroutine returns.
    let yielder = unsafe { &*yielder };
    yielder.suspend(());
}

fn fiber(stack: DefaultStack, processor: usize, body: Box<dyn FnOnce()>) -> Fiber {
    Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        YIELDERS.with_borrow_mut(|yielders| yielders[processor] = yielder);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
            // Set first: the destructor may take steps, and no thread takes steps in a simulation
            // that has failed.
            let text = message(&*payload);
            failed(processor, text.clone());
            if let Some(again) = dispose(payload) {
                failed(processor, format!("{text}, whose destructor panicked: {again}"));
            }
        }
        with(|engine| {
            if let Some(run) = &mut engine.run {
                run.end();
            }
        });
    })
}

/// The running thread has panicked.
#[cold]
fn failed(processor: usize, message: String) {
    with(|engine| {
        let Some(run) = &mut engine.run else { return };
        let role = run.processors[processor].role;
        run.failed = Some(Failure::Panic { processor, role, message });
    });
}

/// Drops what a thread has panicked with, outside of the engine; the message of its destructor's
/// panic.
#[cold]
fn dispose(payload: Box<dyn Any + Send>) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(|| drop(payload))).err()?;
    let text = message(&*payload);
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // The payload's destructor panics with another payload, whose destructor may panic as well.
        std::mem::forget(payload);
    }
    Some(text)
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a value that is no text".to_owned())
}

/// Runs the bodies, one for each processor, to their ends. `None` if there is no memory for their
/// stacks.
pub(crate) fn run(run: Box<Run>, bodies: Vec<Option<Box<dyn FnOnce()>>>) -> Option<()> {
    let mut stacks = STACKS.take();
    let count = bodies.iter().flatten().count();
    while stacks.len() < count {
        stacks.push(DefaultStack::new(STACK_BYTES).ok()?);
    }
    YIELDERS.set(vec![std::ptr::null(); bodies.len()]);
    let mut fibers: Vec<Option<Fiber>> = bodies
        .into_iter()
        .enumerate()
        .map(|(processor, body)| body.and_then(|body| Some(fiber(stacks.pop()?, processor, body))))
        .collect();
    with(|engine| engine.run = Some(run));
    while let Some(processor) = with(crate::engine::Engine::next_thread) {
        let Some(fiber) = &mut fibers[processor] else { continue };
        if let CoroutineResult::Return(()) = fiber.resume(()) {
            if let Some(fiber) = fibers[processor].take() {
                stacks.push(fiber.into_stack());
            }
        }
    }
    // Threads that have not ended belong to a simulation that failed. To unwind them would run the
    // destructors of code that may wait for others there.
    std::mem::forget(fibers);
    STACKS.set(stacks);
    Some(())
}
