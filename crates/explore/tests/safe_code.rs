//! What safe code can ask of the checker: models that keep things they should not, specifications, names and files of
//! any kind. An answer, an error or a panic comes of it.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use poach_deque::ChaseLev;
use poach_explore::counterexample::{Column, Row};
use poach_explore::herd::{Mistake, Quantifier, Test};
use poach_explore::history::{Call, History, Operation, Outcome};
use poach_explore::litmus::{self, Found, Instruction, Litmus, Seen, X, Y};
use poach_explore::loom::{self, model};
use poach_explore::queues::alone::{Fate, Law, five_runs};
use poach_explore::queues::matrix::{self, Case, Extent, Named, PolicyKind};
use poach_explore::queues::{
    self, Algorithm, Deque, Policy, Scenario, Step, Subject, emptiness, plays, shared, taken,
    thefts,
};
use poach_explore::{
    Config, Counterexample, Coverage, Displacing, Incomplete, Kind, MAX_THREADS, Naming, Report,
    Simulated, SimulatedWord, Spec, Strategy, Threads, Unexplained, Verdict, Violation,
    WithoutBarrier, explore, fail, observe, operation, parse_choices, write_choices,
};
use poach_memory::{Asymmetric, Full, Memory, Ordering::Relaxed, StoreLoad, Word};

type SimulatedDeque = ChaseLev<Box<u64>, Full, Simulated>;

fn panics<R>(act: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).err().expect("a panic");
    panic
        .downcast_ref::<String>()
        .cloned()
        .unwrap_or_else(|| (*panic.downcast_ref::<&str>().expect("a text")).to_owned())
}

#[test]
fn a_queue_that_is_kept_for_another_execution_gives_nothing() {
    let kept: Cell<Option<&'static SimulatedDeque>> = Cell::default();
    let executions = || {
        explore(&Config::default(), &|_: &mut Threads| {
            let Some(old) = kept.get() else {
                let queue = SimulatedDeque::starting_at(Full, 4, 0).unwrap();
                queue.push(Box::new(1));
                // (What its destructor says of it, when the execution is gone, is a panic as well.)
                kept.set(Some(Box::leak(Box::new(queue))));
                return;
            };
            // The words of another queue stand where the words of the old one have stood.
            let new = SimulatedDeque::starting_at(Full, 4, 0).unwrap();
            (0..3).for_each(|task| new.push(Box::new(task)));
            for _ in 0..3 {
                drop(old.pop());
            }
        })
    };
    let text = panics(|| [executions(), executions()]);
    assert!(text.contains("in the execution in which it was made"), "{text}");
    let text = panics(|| kept.get().unwrap().pop());
    assert!(text.contains("inside of poach_explore::explore"), "{text}");
}

#[test]
fn a_word_of_another_thread_is_another_word() {
    let text = panics(|| {
        explore(&Config::default(), &|_: &mut Threads| {
            let word = Arc::new(<Simulated as Memory>::Word::new(1));
            let theirs = Arc::clone(&word);
            let elsewhere = thread::spawn(move || {
                explore(&Config::default(), &|_: &mut Threads| {
                    _ = <Simulated as Memory>::Word::new(2);
                    theirs.store(3, Relaxed);
                });
            });
            assert!(elsewhere.join().is_err());
            panic!("it holds {}", word.load(Relaxed));
        });
    });
    assert_eq!(text, "it holds 1");
}

/// Two threads store and then look at each other's word: a policy's two sides, or the same without the thief's.
fn store_buffering<M: Memory + 'static>(threads: &mut Threads, with_thief: bool) {
    let words = Rc::new([(); 2].map(|()| M::Word::new(0)));
    let missed = Rc::new(Cell::new(0));
    for (own, name) in ["owner", "thief"].into_iter().enumerate() {
        let (words, missed) = (Rc::clone(&words), Rc::clone(&missed));
        threads.spawn(name, move || {
            let policy = Asymmetric::<M>::new();
            words[own].store(1, Relaxed);
            if own == 0 {
                policy.owner();
            } else if with_thief {
                policy.thief();
            }
            if words[1 - own].load(Relaxed) == 0 {
                missed.set(missed.get() + 1);
            }
        });
    }
    threads.finally(move || {
        assert!(missed.get() < 2, "both have missed the other's store");
        drop(words);
    });
}

#[test]
fn without_a_barrier_both_sides_of_a_policy_have_a_fence() {
    for config in [Config::default(), Config::c11()] {
        let models: [fn(&mut Threads, bool); 2] =
            [store_buffering::<Simulated>, store_buffering::<WithoutBarrier>];
        for model in models {
            let report = explore(&config, &|threads: &mut Threads| model(threads, true));
            assert_eq!(report.clean(Coverage::Complete), Ok(()));
            let report = explore(&config, &|threads: &mut Threads| model(threads, false));
            assert!(matches!(report.verdict, Verdict::Violation(_)));
        }
    }
}

#[test]
fn a_search_within_bounds_says_what_it_covers() {
    // Two threads count by a load and a store.
    let model = |threads: &mut Threads| {
        let count = Rc::new(SimulatedWord::new(0));
        for name in ["one", "another"] {
            let count = Rc::clone(&count);
            threads.spawn(name, move || count.store(count.load(Relaxed) + 1, Relaxed));
        }
        threads.finally(move || drop(count));
    };
    let report = explore(&Config::sequential().within(0, u64::MAX), &model);
    assert_eq!(report.coverage(), Some(Coverage::Preemptions(0)));
    let report = explore(&Config::sequential().within(9, 1), &model);
    assert_eq!((report.executions, report.coverage()), (1, Some(Coverage::Executions(1))));
}

#[test]
fn models_that_make_no_sense() {
    let nothing = |_: &mut Threads| ();
    assert!(panics(|| operation(Call::Pop, || Outcome::Empty)).len() > 3);
    assert!(!panics(|| fail(Kind::Lost, "outside")).is_empty());
    observe(usize::MAX, 1);
    assert!(
        !panics(|| explore(&Config::default(), &|_| _ = explore(&Config::default(), &nothing)))
            .is_empty()
    );
    let many = |threads: &mut Threads| (0..=MAX_THREADS).for_each(|_| threads.spawn("one", || ()));
    assert!(panics(|| explore(&Config::default(), &many)).contains("at most"));
    // Names of words that are not there, of too few, and of the same.
    let named = |threads: &mut Threads| {
        let word = Rc::new(<Simulated as Memory>::Word::new(u64::MAX));
        threads.name_words(vec![
            Naming::new("a"),
            Naming::hidden("a"),
            Naming::halves("", "b", "c"),
        ]);
        threads.spawn("one", move || {
            word.fetch_add(1, Relaxed);
            panic!("it is wrong");
        });
    };
    let report: Report = explore(&Config::default().against(Spec::Fifo), &named);
    let Verdict::Violation(violation) = &report.verdict else { panic!("{report:?}") };
    assert_eq!(violation.kind(), Kind::Panic);
    assert!(matches!(violation, Violation::Panic(text) if text.contains("wrong")));
    let shown: Counterexample = report.counterexample.unwrap();
    assert!(
        shown.svg().contains("</svg>")
            && shown.rows.iter().any(|row: &Row| row.column == Column::Thread(0))
    );
    // A choice string of another model, and one of nonsense.
    for events in [vec![], vec![255; 9], vec![7], (0..=255).collect()] {
        let sense = events.iter().all(|event| event & 0x7F < 32);
        assert_eq!(parse_choices(&write_choices(&events)).is_ok(), sense);
        let config = Config { strategy: Strategy::Replay(events), ..Config::default() };
        assert_ne!(explore(&config, &named).verdict, Verdict::Clean);
    }
    let config = Config { max_executions: 0, max_states: 0, max_steps: 0, ..Config::default() };
    assert!(explore(&config, &nothing).executions <= 2);
}

#[test]
fn histories_are_the_machines_own() {
    assert!(
        History::default().operations().is_empty() && History::default().duplicates().is_empty()
    );
    poach_explore::spec::check(Spec::Deque, &History::default()).unwrap();
    let operation = Operation {
        thread: usize::MAX,
        call: Call::Push(1),
        outcome: None,
        called: 0,
        returned: 0,
        visible: 0,
    };
    assert!(!operation.to_string().is_empty());
    let told = Unexplained { kind: Kind::Order, text: String::new() };
    assert_eq!(Violation::History(told).kind(), Kind::Order);
}

#[test]
fn litmus_tests_of_ones_own() {
    let test = Litmus {
        name: "mine",
        threads: &[&[Instruction::Store(X, 1), Instruction::Load(Y)], &[]],
        outcome: &[(Seen::Final(X), 1), (Seen::Register(0, 0), 0)],
        allowed: true,
        sequential: true,
    };
    let Found { occurred, report } = test.run(&Config::sequential());
    assert!(occurred && report.complete);
    // Words and threads that a program has not.
    let far = |place| litmus::outcomes(&Config::default(), &[vec![Instruction::Load(place)]]);
    assert!(matches!(far(usize::MAX).1.verdict, Verdict::Violation(_)));
    assert!(
        !panics(|| litmus::outcomes(&Config::default(), &vec![vec![]; MAX_THREADS + 1])).is_empty()
    );

    for text in ["", "X86_64", "ARM SB", "X86_64 SB\n{", "X86_64 SB\n{ x=99999999999999999999 }"] {
        let Mistake { line, column, what } = Test::parse(text).unwrap_err();
        assert!(line > 0 && column > 0 && !what.is_empty(), "{text}");
    }
    let asked = [
        ("exists", Quantifier::Exists),
        ("~exists", Quantifier::NotExists),
        ("forall", Quantifier::ForAll),
    ];
    for (word, quantifier) in asked {
        let test = Test::parse(&format!("X86_64 one\n{{ }}\n P0 ;\n movl $1,(x) ;\n{word} (x=1)"))
            .unwrap();
        assert_eq!((test.quantifier(), quantifier.word()), (quantifier, word));
        let answer = test.run(&Config::default());
        assert_eq!(
            (answer.observation(), answer.witnesses().0 + answer.witnesses().1),
            ("Always", 1)
        );
        assert!(!quantifier.kind().is_empty());
    }
}

/// A subject that answers what it likes: the specification says what is wrong with it.
struct Liar;

impl Subject for Liar {
    type Thief = ();
    fn push(&self, _: u64) {}
    fn pop(&self) -> Option<u64> {
        Some(7)
    }
    fn is_awaited(&self) -> bool {
        true
    }
    fn thief(&self) {}
    fn steal((): &()) -> Outcome {
        Outcome::Task(7)
    }
}

#[test]
fn scenarios_of_any_numbers() {
    let pops = |steps: &[Step]| Scenario { script: steps.to_vec(), ..Scenario::drain(1, 0, 1, 1) };
    let config = Config::default().against(Spec::Deque);
    let lies = explore(&config, &queues::model(&pops(&[Step::Watch, Step::Pop]), &[], |_| Liar));
    assert!(matches!(lies.verdict, Verdict::Violation(_)));
    let none = Scenario { capacity: 3, ..Scenario::brief(0, 0, 0) };
    let make =
        |capacity| Deque(ChaseLev::<u64, Full, Simulated>::starting_at(Full, capacity, 0).unwrap());
    assert!(!panics(|| explore(&config, &queues::model(&none, &[], make))).is_empty());
    for scenario in [Scenario::echo(), Scenario::brief(0, 1, 1), Scenario::mixed(1, 0, 9)] {
        let found =
            queues::check(Algorithm::ChaseLev, Policy::Full, &scenario, &Config::sequential());
        assert_eq!(found.verdict.word(), "clean");
    }
    assert_eq!(queues::spec(Algorithm::Fifo, Policy::Unfenced), Spec::Fifo);
    assert!(Algorithm::The.has_policy() && Algorithm::Salsa.is_shared());
    assert_eq!(matrix::delta(u32::MAX, true, u32::MAX).get(), 1);
    let Named { policy, .. } = matrix::QUEUES[0];
    assert_eq!(policy, PolicyKind::Full);
    let case: Case = matrix::bounds(&(1..=1), &(1..=1)).swap_remove(0);
    let report = case.run(&case.config());
    assert!(case.as_expected(&report));
    let rows =
        [Extent::Quick, Extent::Usual, Extent::Full].map(|extent| matrix::cases(extent).len());
    assert!(rows[0] < rows[1] && rows[1] < rows[2]);
    let laws: Vec<Law> = five_runs();
    assert!(laws.iter().all(|law| law.fate == law.expected && law.fate != Fate::Other));
}

#[test]
fn pools_that_cannot_be_had() {
    use poach_pool::salsa::Salsa;
    type Pool = Salsa<u32, Simulated, Full>;
    /// An injector that answers what it likes.
    struct Liar;
    impl shared::Injecting for Liar {
        fn push(&self, _: u64) {}
        fn steal(&self) -> poach_deque::Steal<u64> {
            poach_deque::Steal::Success(9)
        }
    }
    let scenario = Scenario::drain(1, 0, 1, 1);
    let none = || None::<Pool>;
    let config = Config::default();
    assert!(
        !panics(|| explore(&config, &shared::pool(&scenario, none, |thief| thief.steal(0))))
            .is_empty()
    );
    assert!(!panics(|| explore(&config, &shared::chunks_again(none))).is_empty());
    assert!(!panics(|| explore(&config, &shared::consumer_goes(none))).is_empty());
    assert!(!panics(|| explore(&config, &shared::producer_goes(none))).is_empty());
    assert!(!panics(|| explore(&config, &emptiness::announcements(none))).is_empty());
    for refused in [
        panics(|| explore(&config, &thefts::fed_by_two(none))),
        panics(|| explore(&config, &thefts::robbed_thief(none))),
        panics(|| explore(&config, &thefts::robbed_in_window(none))),
        panics(|| explore(&config, &thefts::refilled(none))),
        panics(|| explore(&config, &thefts::two_chunks(none))),
        panics(|| explore(&config, &thefts::head_returns(none))),
        panics(|| explore(&config, &thefts::held_grows(none))),
        panics(|| explore(&config, &thefts::list_grows(none))),
    ] {
        assert!(!refused.is_empty());
    }
    drop(thefts::refused(|_: Arc<SimulatedWord>| none()));
    // The policy is had by an unsafe function alone.
    let until: fn(Displacing, Arc<SimulatedWord>) -> Displacing = Displacing::until;
    std::hint::black_box(until);
    assert!(!panics(|| explore(&config, &emptiness::behind(none, |_| 0))).is_empty());
    let few = Config { max_executions: 3, ..Config::bounded(1, true) };
    let pushes = Scenario { capacity: 1, ..scenario };
    let config = few.clone().against(Spec::Fifo);
    let lies = explore(&config, &shared::injector(&pushes, |_| Liar));
    assert!(matches!(lies.verdict, Verdict::Violation(_)));
    let model = shared::injector::<poach_deque::Injector<u64, Simulated, 1>>(&pushes, |capacity| {
        poach_deque::Injector::with_capacity(capacity).unwrap()
    });
    assert_eq!(explore(&few, &model).verdict, Verdict::Incomplete(Incomplete::Executions(3)));
}

#[test]
fn plays_of_any_numbers() {
    use plays::Play;
    let (fifo, config) = (Algorithm::Fifo, Config::bounded(1, true));
    let run = |play: Play, algorithm, scenario: &Scenario| {
        play.run(algorithm, Policy::Full, scenario, &config)
    };
    let none = Scenario::drain(0, 0, 0, 0);
    for play in [Play::Tasks, Play::Halves, Play::Exposure, Play::Forks] {
        let found = run(play, fifo, &none);
        assert_eq!((found.coverage(), play.steals()), (Some(Coverage::Complete), true));
        assert_eq!(found.clean(Coverage::Preemptions(3)), Ok(()));
    }
    assert!(!panics(|| run(Play::Halves, Algorithm::Private, &none)).is_empty());
    assert!(!panics(|| run(Play::Emptiness, fifo, &none)).is_empty());
    let make = || poach_deque::Fifo::<u64, Simulated>::starting_at(4, 0).unwrap();
    let four = Scenario::drain(4, 0, 1, 1);
    let halves = taken::halves(&four, make);
    assert_eq!(explore(&config, &halves).verdict.word(), "clean");
    assert_eq!(explore(&config, &plays::late_request).verdict.word(), "clean");
    let asks = |threads: &mut Threads| plays::late_request_of(threads, make, |_| ());
    assert_eq!(explore(&config, &asks).verdict.word(), "clean");
}

#[test]
fn looms_names() {
    use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
    use loom::sync::{Arc, Condvar, Mutex, Notify, RwLock};
    use loom::thread::{Lazy, LocalKey};
    type BuilderOn = loom::tso2::model::Builder;
    static KEY: LocalKey<Box<u8>> = LocalKey::__new(|| Box::new(1));
    static LAZY: Lazy<Box<u8>> = Lazy::__new(|| Box::new(2));

    model(|| {
        let tracked = loom::alloc::Track::new(1);
        assert_eq!(*tracked.get_ref(), 1);
        let cell = loom::cell::Cell::new(2);
        cell.set(3);
        assert_eq!(cell.take(), 3);
        let word = AtomicUsize::new(1);
        assert_eq!(word.compare_exchange_weak(1, 2, SeqCst, SeqCst), Ok(1));
        assert_eq!((word.compare_and_swap(2, 3, SeqCst), word.unsync_load()), (2, 3));
        // Pointers that are no addresses of anything.
        let wild = std::ptr::without_provenance_mut::<u8>(usize::MAX);
        assert_eq!(AtomicPtr::new(wild).load(SeqCst), wild);
        let shared = Arc::from_std(std::sync::Arc::new(4));
        assert_eq!(Arc::strong_count(&shared), 1);
        let raw = Arc::into_raw(shared);
        Arc::increment_strong_count(raw);
        Arc::decrement_strong_count(raw);
        assert_eq!(Arc::as_ptr(&Arc::from_raw(raw)), raw);
        let lock = Mutex::new(5);
        let guard = lock.lock().unwrap();
        assert!(lock.try_lock().is_err());
        drop(guard);
        let both = RwLock::new(6);
        let read = both.try_read().unwrap();
        assert!(both.try_read().is_ok() && both.try_write().is_err());
        drop(read);
        Notify::new().notify();
        loom::hint::spin_loop();
        let builder = loom::thread::Builder::new().name("\0".to_owned()).stack_size(0);
        builder.spawn(|| ()).unwrap().join().unwrap();
        let (told, pair) = (Condvar::new(), Mutex::new(()));
        // Nobody else is there: the time does not pass, and the model would wait for ever.
        if *lock.lock().unwrap() == 0 {
            let (_guard, ended) =
                told.wait_timeout(pair.lock().unwrap(), std::time::Duration::ZERO).unwrap();
            assert!(!ended.timed_out());
        }
    });
    // An owner that was not given up, or twice taken back.
    assert!(!panics(|| model(|| drop(Arc::from_raw(std::ptr::null::<u8>())))).is_empty());
    assert!(!panics(|| model(|| loom::hint::unreachable_unchecked())).is_empty());
    let mut builder = BuilderOn::new();
    builder.checkpoint_file("/dev/null/nothing").max_permutations = Some(0);
    builder.check(|| ());
    // Keys that are made by hand.
    model(|| assert_eq!((KEY.try_with(|one| **one), **LAZY.get()), (Ok(1), 2)));
}
