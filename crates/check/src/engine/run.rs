//! A search from its first execution to its report.

use super::{
    Aborts, AssertUnwindSafe, Closing, Config, End, Engine, Fiber, Mode, Recording, Report,
    Threads, Violation, catch_unwind, dispose, freed::drop_kept, leave, message, need,
    quiet_panics, resume, tear_down, with,
};

use crate::monitor::Monitor;
use crate::search::Exploring;
use crate::{Consistency, Strategy};

pub(crate) fn run(config: &Config, model: &dyn Fn(&mut Threads)) -> Report {
    // During a panic no thread of the model would be scheduled, and the hook cannot be set.
    let panicking = std::thread::panicking();
    if !panicking {
        quiet_panics();
    }
    with(|engine| {
        assert!(engine.mode == Mode::Idle, "a model may not explore another one");
        engine.machine.size = config.size();
        engine.machine.forget(config.consistency == Consistency::C11);
        engine.search.begin(config);
        engine.orderings = config.orderings.clone();
        if engine.aborts != Aborts::Met {
            let outlives = config.outlives_aborts;
            engine.aborts = if outlives { Aborts::AreViolations } else { Aborts::EndTheProcess };
        }
        engine.keep_whole = false;
        engine.loud = false;
    });
    let mut fibers = Closing(Vec::new());
    if with(|engine| engine.aborts == Aborts::Met) {
        return refused(
            "an earlier model of this thread of the system ended in a panic that cannot unwind",
        );
    }
    if panicking {
        return refused("a panic is under way in this thread of the system");
    }
    let replays = matches!(config.strategy, Strategy::Replay(_));
    while with(|engine| engine.aborts != Aborts::Met && engine.search.prepare()) {
        // What cannot be run twice is recorded when it runs.
        with(|engine| engine.recording = replays.then(Recording::default));
        execute(&mut fibers.0, model);
        with(|engine| {
            if engine.search.end == Some(End::Restart) {
                engine.machine.knowledge_grew = false;
            }
            engine.search.conclude(&engine.observed);
        });
    }
    let (mut report, shortest) = with(|engine| engine.search.report());
    if let Some((violation, choices)) = shortest {
        let spoilt = with(|engine| engine.aborts == Aborts::Met);
        report.counterexample = Some(if spoilt {
            recorded(Some(violation), &choices)
        } else {
            record(&mut fibers.0, model, &choices, Some(violation))
        });
    }
    if let Some(choices) = with(|engine| engine.search.duplicate.take()) {
        report.duplicate = Some(record(&mut fibers.0, model, &choices, None));
    }
    report
}

#[cold]
fn refused(why: &str) -> Report {
    with(|engine| {
        let text = format!("{why}: explore in another thread");
        engine.search.violate(Violation::Panic(text));
        engine.search.conclude(&[]);
        engine.search.report().0
    })
}

fn record(
    fibers: &mut Vec<Fiber>,
    model: &dyn Fn(&mut Threads),
    choices: &[u8],
    violation: Option<Violation>,
) -> crate::Counterexample {
    with(|engine| {
        engine.recording = Some(Recording::default());
        engine.search.replay(choices.to_vec());
    });
    execute(fibers, model);
    recorded(violation, choices)
}

fn recorded(violation: Option<Violation>, choices: &[u8]) -> crate::Counterexample {
    with(|engine| {
        let recording = engine.recording.take().unwrap_or_default();
        let found = violation.or_else(|| engine.search.found());
        recording.finish(&engine.search.names, &engine.history, engine.machine.size, found, choices)
    })
}

fn execute(fibers: &mut Vec<Fiber>, model: &dyn Fn(&mut Threads)) {
    with(|engine| {
        engine.machine.reset();
        engine.history.clear();
        engine.search.monitor(Monitor::reset);
        engine.observed.clear();
        engine.alone = None;
        engine.search.exploring = Exploring::Yes;
        engine.mode = Mode::SetUp;
    });
    let mut threads = Threads::default();
    model(&mut threads);
    let Threads { jobs, after, words } = threads;
    let count = jobs.len();
    need(fibers, count);
    let mut next = with(|engine| {
        for (index, (name, job)) in jobs.into_iter().enumerate() {
            engine.machine.add_thread();
            engine.search.names[index] = name;
            engine.jobs[index] = Some(job);
        }
        if let Some(recording) = &mut engine.recording {
            recording.begin(&engine.machine, words);
        }
        engine.machine.begin_weakly();
        engine.mode = Mode::Run;
        engine.search.start(&mut engine.machine);
        engine.advance()
    });
    while let Some(thread) = next {
        with(|engine| engine.current = thread);
        need(fibers, thread + 1);
        resume(&mut fibers[thread]);
        next = with(|engine| engine.next.take());
    }
    let complete = with(|engine| {
        engine.search.close(&engine.machine);
        let complete = engine.search.end == Some(End::Complete);
        if complete && engine.search.wants_duplicates() && !engine.history.duplicates().is_empty() {
            engine.search.note_duplicate();
        }
        engine.machine.drain_all();
        complete
    });
    if complete {
        with(|engine| engine.mode = Mode::After);
        if let Some(after) = after {
            check(after);
        }
        drop_kept(true);
        with(Engine::look_for_leaks);
    } else {
        let violated = || with(|engine| engine.search.end == Some(End::Violation));
        if violated() && with(|engine| engine.keep_whole) {
            leave(fibers);
        } else {
            tear_down(fibers);
        }
        if violated() {
            // What is broken must not be dropped: a queue whose indices have crossed would walk
            // from one to the other. The search ends soon, so little leaks.
            std::mem::forget(after);
            std::mem::forget(with(|engine| std::mem::take(&mut engine.kept)));
        } else {
            // What it owns may look at words once more when it is dropped.
            with(|engine| engine.mode = Mode::After);
            dispose(after);
            drop_kept(false);
        }
    }
    with(|engine| engine.mode = Mode::Idle);
}

fn check(after: Box<dyn FnOnce()>) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(after)) else { return };
    let text = message(&*payload);
    let is_verdict = text.is_some();
    if let Some(text) = text {
        with(|engine| {
            engine.search.violate(Violation::Panic(format!("the final check: {text}")));
        });
    }
    if let Some(text) = dispose(payload) {
        if is_verdict {
            with(|engine| engine.search.destructor_panicked(&text));
        }
    }
}
