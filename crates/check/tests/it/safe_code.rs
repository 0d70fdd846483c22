//! What safe code can ask of the checker: an answer, an error or a panic comes of it.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use poach_check::counterexample::{Column, Row};
use poach_check::herd::{Mistake, Quantifier, Test};
use poach_check::history::{Call, History, Operation, Outcome};
use poach_check::litmus::{self, Found, Instruction, Litmus, Seen, X, Y};
use poach_check::loom::{self, model};
use poach_check::{
    Config, Consistency, Counterexample, Coverage, Displacing, Incomplete, Kind, MAX_THREADS,
    Naming, Report, Simulated, SimulatedWord, Spec, Strategy, Threads, Unexplained, Verdict,
    Violation, WithoutBarrier, explore, fail, forget, observe, operation, parse_choices, stole,
    write_choices,
};
use poach_memory::{Asymmetric, Memory, Ordering::Relaxed, StoreLoad, Word};

fn panics<R>(act: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).err().expect("a panic");
    panic
        .downcast_ref::<String>()
        .cloned()
        .unwrap_or_else(|| (*panic.downcast_ref::<&str>().expect("a text")).to_owned())
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

/// Two threads store and look at each other's word: a policy's two sides, or without the thief's.
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
    assert_eq!(Config::sequential().consistency, Consistency::Tso);
    let report = explore(&Config::sequential().within(9, 1), &model);
    assert_eq!((report.executions, report.coverage()), (1, Some(Coverage::Executions(1))));
    assert_eq!(report.verdict, Verdict::Incomplete(Incomplete::Executions(1)));
}

#[test]
fn models_that_make_no_sense() {
    let nothing = |_: &mut Threads| ();
    assert!(panics(|| operation(Call::Pop, || Outcome::Empty)).len() > 3);
    assert!(!panics(|| fail(Kind::Lost, "outside")).is_empty());
    observe(usize::MAX, 1);
    // The policy is had by an unsafe function alone.
    let until: fn(Displacing, Arc<SimulatedWord>) -> Displacing = Displacing::until;
    std::hint::black_box(until);
    forget();
    stole();
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
    poach_check::spec::check(Spec::Deque, &History::default()).unwrap();
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

#[test]
fn looms_names() {
    use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
    use loom::sync::{Arc, Barrier, Condvar, Mutex, Notify, RwLock, Weak, mpsc};
    use loom::thread::{Lazy, LocalKey};
    type BuilderOn = loom::tso2::model::Builder;
    static KEY: LocalKey<Box<u8>> = LocalKey::__new(|| Box::new(1));
    static LAZY: Lazy<Box<u8>> = Lazy::__new(|| Box::new(2));

    model(|| {
        let mut tracked = loom::alloc::Track::new(0);
        *tracked.get_mut() = 1;
        loom::cell::UnsafeCell::new(1).get_mut().with(|_| ());
        let mut one = Arc::new(1);
        assert!(Arc::ptr_eq(&one, &one) && Arc::get_mut(&mut one).is_some());
        assert_eq!(Arc::try_unwrap(one).unwrap(), 1);
        assert_eq!(*Mutex::new(2).get_mut().unwrap() + *RwLock::new(3).get_mut().unwrap(), 5);
        assert_eq!(*tracked.get_ref(), 1);
        let cell = loom::cell::Cell::new(2);
        cell.set(3);
        assert_eq!(cell.take(), 3);
        let word = AtomicUsize::new(1);
        assert_eq!(word.compare_exchange_weak(1, 2, SeqCst, SeqCst), Ok(1));
        assert_eq!((word.compare_and_swap(2, 3, SeqCst), word.into_inner()), (2, 3));
        let wild = std::ptr::without_provenance_mut::<u8>(usize::MAX);
        assert_eq!(AtomicPtr::new(wild).load(SeqCst), wild);
        let shared = Arc::from_std(std::sync::Arc::new(4));
        assert_eq!(Arc::strong_count(&shared), 1);
        assert!(!Arc::as_ptr(&shared).is_null());
        let weak = Arc::downgrade(&shared);
        assert!(weak.upgrade().is_some_and(|shared| *shared == 4) && weak.ptr_eq(&weak));
        assert_eq!(Arc::into_inner(shared), Some(4));
        assert!(weak.upgrade().is_none() && Weak::<u8>::new().upgrade().is_none());
        assert_eq!(*Arc::pin(5), 5);
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
        // No other thread notifies: the time is over in the end.
        let (guard, ended) = told.wait_timeout(pair.lock().unwrap(), Duration::ZERO).unwrap();
        assert!(ended.timed_out());
        let (_guard, ended) = told.wait_timeout_while(guard, Duration::MAX, |()| true).unwrap();
        assert!(ended.timed_out());
        let (sender, receiver) = mpsc::channel::<u8>();
        assert!(receiver.recv_timeout(Duration::ZERO).is_err());
        drop(sender);
        assert!(receiver.recv_timeout(Duration::ZERO).is_err());
        assert!(Barrier::new(0).wait().is_leader() && Barrier::new(1).wait().is_leader());
        loom::thread::park_timeout(Duration::ZERO);
        loom::thread::sleep(Duration::MAX);
        assert_eq!(loom::thread::scope(|scope| scope.spawn(|| 6).join().unwrap()), 6);
        assert!(!lock.is_poisoned() && !both.is_poisoned());
        lock.clear_poison();
        both.clear_poison();
        let waker = loom::future::AtomicWaker::new();
        waker.register_by_ref(std::task::Waker::noop());
        assert!(waker.take_waker().is_some() && waker.take_waker().is_none());
        waker.register(std::task::Waker::noop().clone());
        waker.wake();
        assert_eq!(loom::future::block_on(std::future::ready(7)), 7);
        loom::sync::atomic::spin_loop_hint();
    });
    assert!(panics(|| model(|| _ = Arc::into_raw(Arc::new(1)))).contains("an Arc made at"));
    assert_eq!("c11".parse(), Ok(loom::Machine::c11()));
    for text in ["c11", "tso", "tso3", "sc"] {
        assert!(!text.parse::<loom::Machine>().unwrap().to_string().is_empty());
    }
    assert!("tso-1".parse::<loom::Machine>().is_err());
    model(|| {
        loom::stop_exploring();
        loom::explore();
        loom::skip_branch();
    });
    loom::c11::model::Builder::new().check_and_tell(|| (), |covered| assert!(!covered.is_empty()));
    let mut builder = BuilderOn::new();
    builder.checkpoint_file("/dev/null/nothing").max_permutations = Some(0);
    builder.check(|| ());
    model(|| assert_eq!((KEY.try_with(|one| **one), **LAZY.get()), (Ok(1), 2)));
}
