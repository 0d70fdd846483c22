//! The model's threads as coroutines, made once for all executions, and how they end if one is cut.

use super::{
    Aborts, Alone, Any, AssertUnwindSafe, Coroutine, CoroutineResult, DefaultStack, ENGINE, End,
    Engine, Fiber, GivenUp, Mode, Once, Op, STACK_BYTES, TEARDOWN_STEPS, Violation, Yielder,
    catch_unwind, with,
};
use crate::write_choices;

mod slots {
    use super::Yielder;
    use scoped_tls::scoped_thread_local;

    // One for each model thread: each is set and reset within its own coroutine, so that coroutines
    // that take turns do not disturb each other's.
    scoped_thread_local!(pub(super) static S0: Yielder<(), ()>);
    scoped_thread_local!(pub(super) static S1: Yielder<(), ()>);
    scoped_thread_local!(pub(super) static S2: Yielder<(), ()>);
    scoped_thread_local!(pub(super) static S3: Yielder<(), ()>);
    scoped_thread_local!(pub(super) static S4: Yielder<(), ()>);
    scoped_thread_local!(pub(super) static S5: Yielder<(), ()>);
    scoped_thread_local!(pub(super) static S6: Yielder<(), ()>);
    scoped_thread_local!(pub(super) static S7: Yielder<(), ()>);
}

pub(super) fn slot(thread: usize) -> &'static scoped_tls::ScopedKey<Yielder<(), ()>> {
    match thread {
        0 => &slots::S0,
        1 => &slots::S1,
        2 => &slots::S2,
        3 => &slots::S3,
        4 => &slots::S4,
        5 => &slots::S5,
        6 => &slots::S6,
        _ => &slots::S7,
    }
}

pub(super) fn fiber(thread: usize) -> Fiber {
    let stack = DefaultStack::new(STACK_BYTES).expect("no memory for a model thread's stack");
    Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        loop {
            let (job, closing) = with(|engine| (engine.jobs[thread].take(), engine.closing));
            match job {
                Some(job) => {
                    with(|engine| {
                        if engine.mode == Mode::Run {
                            engine.perform(thread);
                        }
                    });
                    slot(thread).set(yielder, || run_job(job));
                    with(Engine::ended);
                }
                None if closing => return,
                None => {}
            }
            yielder.suspend(());
        }
    })
}

/// A thread of the model, from its beginning to its end. What it panics with is the model's, too:
/// its destructor may take steps, and may panic.
fn run_job(job: super::Job) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(job)) else { return };
    // Said first: the destructor may never return.
    let text = message(&*payload);
    let is_verdict = with(|engine| engine.panics(text));
    if let Some(text) = dispose(payload) {
        if is_verdict {
            with(|engine| engine.search.destructor_panicked(&text));
        }
    }
}

/// # Errors
///
/// What it panics with.
pub(crate) fn catch_own<T>(act: impl FnOnce() -> T) -> std::thread::Result<T> {
    let result = catch_unwind(AssertUnwindSafe(act));
    match result {
        Err(payload) if payload.is::<GivenUp>() => std::panic::resume_unwind(payload),
        Err(payload) => {
            with(|engine| {
                engine.panicked[engine.current] = false;
                engine.last_panic = None;
            });
            Err(payload)
        }
        Ok(value) => Ok(value),
    }
}

/// Drops what is the model's and nobody takes; the message of its destructor's panic.
pub(super) fn dispose<T>(value: T) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(|| drop(value))).err()?;
    let text = message(&*payload);
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // The payload's destructor panics with another payload, whose destructor may panic as well.
        std::mem::forget(payload);
    }
    text
}

/// A panic's message; `None` for the unwinding of an execution that was given up.
pub(super) fn message(panic: &(dyn Any + Send)) -> Option<String> {
    if panic.is::<GivenUp>() {
        return None;
    }
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Some(text.unwrap_or_else(|| "a value that is no text".to_owned()))
}

/// Keeps the panics of models, which are verdicts, off the standard error stream, and stops a
/// thread of a model whose panic would end the process.
pub(super) fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let state = |engine: &Engine| (engine.mode, engine.aborts);
            let state = ENGINE.try_with(|engine| engine.try_borrow().map(|engine| state(&engine)));
            let text = message(info.payload()).unwrap_or_default();
            let ends_all = CANNOT_UNWIND.iter().any(|start| text.starts_with(start));
            match state {
                Ok(Ok((Mode::Run | Mode::Teardown | Mode::Unwind, aborts))) if ends_all => {
                    let place = info.location().map(|place| format!(" at {place}"));
                    let violation = panicked(&format!("{text}{}", place.unwrap_or_default()));
                    if aborts == Aborts::AreViolations {
                        go_no_further(violation);
                    }
                    let (found, choices) =
                        with(|engine| (engine.search.found(), engine.search.choices()));
                    let choices = write_choices(&choices);
                    match found {
                        Some(found) => eprintln!("{found}\nchoices: {choices}\n{violation}"),
                        None => eprintln!("{violation}\nchoices: {choices}"),
                    }
                }
                Ok(Ok((Mode::Run | Mode::Teardown | Mode::Unwind, _))) if !ends_all => {
                    with(|engine| {
                        engine.panicked[engine.current] = true;
                        engine.last_panic = Some((engine.current, text));
                    });
                    if with(|engine| engine.loud) {
                        usual(info);
                    }
                }
                Ok(Ok((Mode::After, _))) if !ends_all => {}
                _ => usual(info),
            }
        }));
    });
}

/// The beginnings of messages after which the standard library ends the process: its checks for
/// undefined behaviour, and panics that leave a function or destructor that cannot unwind.
const CANNOT_UNWIND: [&str; 5] = [
    "unsafe precondition(s) violated",
    "null pointer dereference occurred",
    "misaligned pointer dereference",
    "panic in a function that cannot unwind",
    "panic in a destructor during cleanup",
];

/// The violation of a panic that cannot unwind. If it is about leaving a function or a destructor,
/// what it says is about the standard library, and the panic that would have left says more.
fn panicked(message: &str) -> Violation {
    with(|engine| {
        let name = engine.search.names[engine.current];
        let mut text = format!("{name} panicked: {message}");
        if let Some((thread, before)) = engine.last_panic.take() {
            if thread == engine.current && message.starts_with("panic in") {
                text = format!("{text}, after: {before}");
            }
        }
        if engine.unwound[engine.current] {
            text.push_str(" (it was being unwound, since the execution had been given up)");
        }
        Violation::Panic(text)
    })
}

/// The running thread of the model is about to end the process: that is a violation. The thread is
/// never resumed, with the panic hook on its stack. So to this thread of the system a panic is
/// under way for ever, and it can explore no further.
fn go_no_further(violation: Violation) -> ! {
    let current = with(|engine| {
        engine.search.violate(violation);
        engine.aborts = Aborts::Met;
        engine.keep_whole = true;
        engine.next = None;
        engine.current
    });
    loop {
        slot(current).with(|yielder| yielder.suspend(()));
    }
}

/// Ends the coroutines, and leaves the engine ready for the next search, however this one ends.
pub(super) struct Closing(pub(super) Vec<Fiber>);

impl Drop for Closing {
    fn drop(&mut self) {
        with(|engine| {
            engine.mode = Mode::Unwind;
            engine.closing = true;
        });
        for (thread, fiber) in self.0.iter_mut().enumerate() {
            dispose(with(|engine| {
                engine.current = thread;
                engine.jobs[thread].take()
            }));
            while !fiber.done() {
                fiber.resume(());
            }
        }
        with(|engine| {
            engine.mode = Mode::Idle;
            engine.closing = false;
            engine.recording = None;
        });
    }
}

pub(super) fn need(fibers: &mut Vec<Fiber>, count: usize) {
    while fibers.len() < count {
        fibers.push(fiber(fibers.len()));
    }
}

/// Leaves every thread that has not ended where it stands, with its stack. To unwind it would run
/// the destructors of code that may never have been written to fail there.
#[cold]
pub(super) fn leave(fibers: &mut [Fiber]) {
    let count = with(|engine| {
        for job in &mut engine.jobs {
            // It has not begun. What it owns is not dropped, like what the others own.
            std::mem::forget(job.take());
        }
        engine.machine.count
    });
    for (thread, coroutine) in fibers.iter_mut().enumerate().take(count) {
        if with(|engine| !matches!(engine.machine.threads[thread].pending, Op::Finished)) {
            std::mem::forget(std::mem::replace(coroutine, fiber(thread)));
        }
    }
}

#[cold]
pub(super) fn tear_down(fibers: &mut Vec<Fiber>) {
    with(|engine| {
        let broken = matches!(engine.search.end, Some(End::Violation));
        engine.mode = if broken { Mode::Unwind } else { Mode::Teardown };
        engine.teardown_steps = TEARDOWN_STEPS;
    });
    loop {
        let mut left = 0;
        need(fibers, with(|engine| engine.machine.count));
        for (thread, fiber) in fibers.iter_mut().enumerate() {
            let unfinished = with(|engine| {
                engine.current = thread;
                thread < engine.machine.count
                    && !matches!(engine.machine.threads[thread].pending, Op::Finished)
            });
            if unfinished {
                left += 1;
                match with(|engine| engine.drop_unstarted(thread)) {
                    Some(job) => {
                        // The execution shows nothing more.
                        dispose(job);
                        with(|engine| engine.mode = Mode::Unwind);
                    }
                    None => resume(fiber),
                }
                if with(|engine| engine.aborts == Aborts::Met) {
                    return leave(fibers);
                }
            }
        }
        if left == 0 {
            return;
        }
        if with(|engine| engine.teardown_steps == 0 && engine.keep_whole) {
            return leave(fibers);
        }
        with(|engine| {
            if engine.teardown_steps == 0 {
                engine.mode = Mode::Unwind;
            }
            engine.teardown_steps = engine.teardown_steps.saturating_sub(1);
        });
    }
}

pub(super) fn resume(fiber: &mut Fiber) {
    if let CoroutineResult::Return(()) = fiber.resume(()) {
        unreachable!("a coroutine returns only when the engine closes");
    }
}

impl Engine {
    /// Whether a thread's panic, `None` if it was unwound, is what is wrong with the execution.
    fn panics(&mut self, message: Option<String>) -> bool {
        let current = self.current;
        self.panicked[current] = false;
        self.last_panic = None;
        if self.mode != Mode::Run || self.ends_probe() {
            return false;
        }
        let Some(message) = message else { return false };
        let name = self.search.names[current];
        self.search.violate(Violation::Panic(format!("{name} panicked: {message}")));
        true
    }

    fn ended(&mut self) {
        let current = self.current;
        self.machine.ends(current);
        self.panicked[current] = false;
        self.unwound[current] = false;
        if self.mode != Mode::Run {
            return;
        }
        self.next = if self.ends_probe() { None } else { self.advance() };
    }

    /// Whether the running thread is being probed. That it ends, or panics, will be seen when it
    /// gives up.
    fn ends_probe(&mut self) -> bool {
        if !self.probes() {
            return false;
        }
        if let Some(Alone::Probe(probe)) = &self.alone {
            let patience = probe.patience();
            self.probed(patience);
        }
        true
    }
}
