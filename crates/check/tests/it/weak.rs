//! The memory of C11 against litmus tests and against its axioms.
//!
//! The axioms are RC11's (Lahav et al., PLDI 2017) with C++20's order of what is sequentially
//! consistent, where program order, reads-from and that order have no cycle together. They are
//! enumerated without views and without an order of execution: every choice of reads-from and
//! modification order that the axioms allow.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::sync::Arc;

use poach_check::{Config, Simulated, Strategy, Threads, Verdict, Violation, explore, observe};
use poach_memory::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use poach_memory::{Cell, Memory, Word};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generates;

mod axioms;

const X: usize = 0;
const Y: usize = 1;
const Z: usize = 2;
const WORDS: usize = 3;
const REGISTERS: usize = 4;
const NAMES: [&str; 4] = ["P0", "P1", "P2", "P3"];

#[derive(Clone, Copy, Debug)]
enum Does {
    Store(usize, u64, Ordering),
    Load(usize, Ordering),
    /// A read-modify-write that exchanges.
    Swap(usize, u64, Ordering),
    /// A sequentially consistent fence.
    Fence,
}
use Does::{Fence, Load, Store, Swap};

type Program = Vec<Vec<Does>>;

/// What each thread reads, by its number and the read's, and then what the words hold in the end.
type Outcome = Vec<u64>;

const LENGTH: usize = NAMES.len() * REGISTERS + WORDS;

fn run(program: &Program, config: &Config) -> (BTreeSet<Outcome>, poach_check::Report) {
    let programs: Arc<Program> = Arc::new(program.clone());
    let model = move |threads: &mut Threads| {
        let words = Arc::new([(); WORDS].map(|()| <Simulated as Memory>::Word::new(0)));
        for thread in 0..programs.len() {
            let (words, programs) = (Arc::clone(&words), Arc::clone(&programs));
            threads.spawn(NAMES[thread], move || {
                let mut read = thread * REGISTERS;
                let mut register = |value| {
                    observe(read, value);
                    read += 1;
                };
                for does in &programs[thread] {
                    match *does {
                        Store(word, value, order) => words[word].store(value, order),
                        Load(word, order) => register(words[word].load(order)),
                        Swap(word, value, order) => register(words[word].swap(value, order)),
                        Fence => Simulated::full(),
                    }
                }
            });
        }
        threads.finally(move || {
            for (word, place) in words.iter().zip(LENGTH - WORDS..) {
                observe(place, word.load(Relaxed));
            }
        });
    };
    let mut report = explore(config, &model);
    (std::mem::take(&mut report.outcomes), report)
}

/// Whether an outcome with these reads, (thread, number, value), and last values occurs.
fn occurs(program: &Program, reads: &[(usize, usize, u64)], last: &[(usize, u64)]) -> bool {
    let (outcomes, report) = run(program, &Config::c11());
    assert_eq!(report.verdict, Verdict::Clean);
    let right = |outcome: &Outcome| {
        reads.iter().all(|(thread, number, value)| outcome[thread * REGISTERS + number] == *value)
            && last.iter().all(|(word, value)| outcome[LENGTH - WORDS + word] == *value)
    };
    let found = outcomes.iter().any(right);
    assert_eq!(axioms::outcomes(program).iter().any(right), found, "the axioms say otherwise");
    found
}

#[test]
fn message_passing_needs_a_release_and_an_acquire() {
    let passes = |stores, loads| {
        let program = vec![
            vec![Store(X, 1, Relaxed), Store(Y, 1, stores)],
            vec![Load(Y, loads), Load(X, Relaxed)],
        ];
        !occurs(&program, &[(1, 0, 1), (1, 1, 0)], &[])
    };
    assert!(passes(Release, Acquire));
    assert!(!passes(Relaxed, Acquire));
    assert!(!passes(Release, Relaxed));
    assert!(!passes(Relaxed, Relaxed));
}

#[test]
fn fences_pass_messages_for_relaxed_accesses() {
    let program = |fences: [bool; 2]| {
        let fence = |wanted| if wanted { vec![Fence] } else { vec![] };
        let stores = [vec![Store(X, 1, Relaxed)], fence(fences[0]), vec![Store(Y, 1, Relaxed)]];
        let loads = [vec![Load(Y, Relaxed)], fence(fences[1]), vec![Load(X, Relaxed)]];
        vec![stores.concat(), loads.concat()]
    };
    let bad = |fences| occurs(&program(fences), &[(1, 0, 1), (1, 1, 0)], &[]);
    assert!(!bad([true, true]));
    assert!(bad([true, false]));
    assert!(bad([false, true]));
}

#[test]
fn store_buffering_needs_two_fences() {
    let program = |fences: [bool; 2]| -> Program {
        [(X, Y), (Y, X)]
            .into_iter()
            .zip(fences)
            .map(|((mine, other), fenced)| {
                let mut does = vec![Store(mine, 1, Release)];
                does.extend(fenced.then_some(Fence));
                does.push(Load(other, Acquire));
                does
            })
            .collect()
    };
    let both_zero = |fences| occurs(&program(fences), &[(0, 0, 0), (1, 0, 0)], &[]);
    assert!(!both_zero([true, true]));
    assert!(both_zero([true, false]));
    assert!(both_zero([false, true]));
}

#[test]
fn independent_reads_of_independent_writes_need_fences() {
    let program = |fence: &[Does]| {
        let reads =
            |first, second| [&[Load(first, Acquire)], fence, &[Load(second, Acquire)]].concat();
        vec![vec![Store(X, 1, Release)], vec![Store(Y, 1, Release)], reads(X, Y), reads(Y, X)]
    };
    let disagree = [(2, 0, 1), (2, 1, 0), (3, 0, 1), (3, 1, 0)];
    assert!(occurs(&program(&[]), &disagree, &[]));
    assert!(!occurs(&program(&[Fence]), &disagree, &[]));
}

#[test]
fn sequentially_consistent_accesses_have_one_order() {
    // Store buffering: with a weaker ordering of any of the four both may read 0.
    let buffers = |orders: [Ordering; 4]| {
        let [store, load, other, its] = orders;
        let program =
            vec![vec![Store(X, 1, store), Load(Y, load)], vec![Store(Y, 1, other), Load(X, its)]];
        occurs(&program, &[(0, 0, 0), (1, 0, 0)], &[])
    };
    assert!(!buffers([SeqCst; 4]));
    for (weaker, order) in [Release, Acquire, Release, Acquire].into_iter().enumerate() {
        let mut orders = [SeqCst; 4];
        orders[weaker] = order;
        assert!(buffers(orders), "{orders:?}");
    }
    // The same with exchanges in place of the stores, and a fence in place of one thread's order.
    let exchanges = |does: [Does; 2]| {
        let [change, other] = does;
        let program = vec![vec![change, Load(Y, SeqCst)], vec![other, Load(X, SeqCst)]];
        occurs(&program, &[(0, 1, 0), (1, 1, 0)], &[])
    };
    assert!(!exchanges([Swap(X, 1, SeqCst), Swap(Y, 1, SeqCst)]));
    assert!(exchanges([Swap(X, 1, SeqCst), Swap(Y, 1, AcqRel)]));
    let fenced = |fence: &[Does], load| {
        let first = [&[Store(X, 1, Relaxed)], fence, &[Load(Y, Relaxed)]].concat();
        let program = vec![first, vec![Store(Y, 1, SeqCst), Load(X, load)]];
        occurs(&program, &[(0, 0, 0), (1, 0, 0)], &[])
    };
    assert!(!fenced(&[Fence], SeqCst));
    assert!(fenced(&[], SeqCst) && fenced(&[Fence], Acquire));
}

#[test]
fn independent_reads_agree_where_all_is_sequentially_consistent() {
    let disagree = |stores, loads| {
        let reads = |first, second| vec![Load(first, loads), Load(second, loads)];
        let program =
            vec![vec![Store(X, 1, stores)], vec![Store(Y, 1, stores)], reads(X, Y), reads(Y, X)];
        occurs(&program, &[(2, 0, 1), (2, 1, 0), (3, 0, 1), (3, 1, 0)], &[])
    };
    assert!(!disagree(SeqCst, SeqCst));
    assert!(disagree(SeqCst, Acquire) && disagree(Release, Acquire));
}

#[test]
fn what_is_sequentially_consistent_tells_nothing_of_other_words() {
    // Fences in their place would: the first thread's stores come before the second's.
    let program = vec![
        vec![Store(X, 1, Relaxed), Store(Y, 1, SeqCst), Load(Z, SeqCst)],
        vec![Store(Z, 1, SeqCst), Load(X, Relaxed)],
    ];
    assert!(occurs(&program, &[(0, 0, 0), (1, 0, 0)], &[]));
}

/// C++20 allows it, and Power shows it: Z6.U of P0668. A machine whose steps are taken in one order
/// cannot, as the module comment of `machine/weak` says.
#[test]
fn an_order_against_what_happens_before_is_left_out() {
    let program = vec![
        vec![Store(X, 1, SeqCst), Store(Y, 1, Release)],
        vec![Swap(Y, 2, SeqCst), Load(Y, Relaxed)],
        vec![Store(Y, 3, SeqCst), Load(X, SeqCst)],
    ];
    assert!(!occurs(&program, &[(1, 0, 1), (1, 1, 3), (2, 0, 0)], &[]));
}

#[test]
fn stores_of_two_threads_to_two_words_may_cross() {
    let program = |fence: &[Does]| {
        let stores =
            |one, other| [&[Store(one, 1, Relaxed)], fence, &[Store(other, 2, Relaxed)]].concat();
        vec![stores(X, Y), stores(Y, X)]
    };
    assert!(occurs(&program(&[]), &[], &[(X, 1), (Y, 1)]));
    assert!(!occurs(&program(&[Fence]), &[], &[(X, 1), (Y, 1)]));
}

#[test]
fn a_release_sequence_is_of_read_modify_writes() {
    // What the second thread does is read at the end; its first value was the first thread's.
    let program = |by: Does| {
        let first = vec![Store(X, 1, Relaxed), Store(Y, 1, Release)];
        vec![first, vec![Load(Y, Relaxed), by], vec![Load(Y, Acquire), Load(X, Relaxed)]]
    };
    let lost = |by, reads: &[(usize, usize, u64)]| occurs(&program(by), reads, &[]);
    assert!(!lost(Swap(Y, 2, Relaxed), &[(1, 1, 1), (2, 0, 2), (2, 1, 0)]));
    assert!(lost(Store(Y, 2, Relaxed), &[(1, 0, 1), (2, 0, 2), (2, 1, 0)]));
    // A later store of the same thread is none of it, since C++20.
    let program = vec![
        vec![Store(X, 1, Relaxed), Store(Y, 1, Release), Store(Y, 2, Relaxed)],
        vec![Load(Y, Acquire), Load(X, Relaxed)],
    ];
    assert!(occurs(&program, &[(1, 0, 2), (1, 1, 0)], &[]));
}

#[test]
fn each_word_is_coherent() {
    let reads = vec![vec![Store(X, 1, Relaxed)], vec![Load(X, Relaxed), Load(X, Relaxed)]];
    assert!(!occurs(&reads, &[(1, 0, 1), (1, 1, 0)], &[]));
    let own = vec![vec![Store(X, 1, Relaxed), Load(X, Relaxed)], vec![Store(X, 2, Relaxed)]];
    assert!(!occurs(&own, &[(0, 0, 0)], &[]));
    let after = vec![vec![Load(X, Relaxed), Store(X, 1, Relaxed)], vec![Store(X, 2, Relaxed)]];
    assert!(!occurs(&after, &[(0, 0, 2)], &[(X, 2)]));
    let twice = vec![vec![Store(X, 1, Relaxed), Store(X, 2, Relaxed)]];
    assert!(!occurs(&twice, &[], &[(X, 1)]));
}

#[test]
fn one_of_two_exchanges_reads_the_other() {
    let program = vec![vec![Swap(X, 1, Relaxed)], vec![Swap(X, 2, Relaxed)]];
    assert!(!occurs(&program, &[(0, 0, 0), (1, 0, 0)], &[]));
    // And no store comes between an exchange and what it has read.
    let program = vec![vec![Swap(X, 1, Relaxed)], vec![Store(X, 2, Relaxed), Load(X, Relaxed)]];
    assert!(!occurs(&program, &[(0, 0, 0), (1, 0, 1)], &[(X, 2)]));
}

#[test]
fn load_buffering_is_left_out() {
    let program = vec![
        vec![Load(X, Relaxed), Store(Y, 1, Relaxed)],
        vec![Load(Y, Relaxed), Store(X, 1, Relaxed)],
    ];
    assert!(!occurs(&program, &[(0, 0, 1), (1, 0, 1)], &[]));
}

#[test]
fn a_process_wide_barrier_is_a_fence_in_every_thread() {
    let model = |heavy: bool| {
        move |threads: &mut Threads| {
            let words = Arc::new([(); 2].map(|()| <Simulated as Memory>::Word::new(0)));
            let (own, other) = (Arc::clone(&words), words);
            threads.spawn("light", move || {
                own[X].store(1, Relaxed);
                Simulated::light();
                observe(0, own[Y].load(Relaxed));
            });
            threads.spawn("heavy", move || {
                other[Y].store(1, Relaxed);
                if heavy {
                    Simulated::heavy();
                }
                observe(1, other[X].load(Relaxed));
            });
        }
    };
    let outcomes = |heavy| {
        let report = explore(&Config::c11(), &model(heavy));
        assert_eq!(report.verdict, Verdict::Clean);
        report.outcomes
    };
    assert!(!outcomes(true).contains(&vec![0, 0]));
    assert_eq!(outcomes(true).len(), 3);
    assert!(outcomes(false).contains(&vec![0, 0]));
}

/// A thread makes something, and says so; another uses it when it has heard of it.
fn made_and_used<T: 'static>(
    orders: (Ordering, Ordering),
    make: fn() -> T,
    uses: fn(&T) -> u64,
) -> Verdict {
    use std::cell::RefCell;
    use std::rc::Rc;
    let model = move |threads: &mut Threads| {
        let ready = Arc::new(<Simulated as Memory>::Word::new(0));
        // What the flag says is there passes by no memory of the model.
        let made = Rc::new(RefCell::new(None));
        let (says, leaves) = (Arc::clone(&ready), Rc::clone(&made));
        threads.spawn("makes", move || {
            *leaves.borrow_mut() = Some(make());
            says.store(1, orders.0);
        });
        threads.spawn("uses", move || {
            if ready.load(orders.1) == 1 {
                assert_eq!(made.borrow().as_ref().map(uses), Some(7));
            }
        });
    };
    explore(&Config::c11(), &model).verdict
}

#[test]
fn who_has_not_heard_of_the_making_of_a_word_or_cell_races() {
    type Place = <Simulated as Memory>::Cell<u64>;
    let word = |orders| {
        made_and_used(orders, || <Simulated as Memory>::Word::new(7), |word| word.load(Relaxed))
    };
    // What is in it is not read: that it is looked at is enough.
    let cell = |orders| made_and_used(orders, || Place::new(7), |cell| cell.with(|_| 7));
    let verdicts: [&dyn Fn((Ordering, Ordering)) -> Verdict; 2] = [&word, &cell];
    for verdict in verdicts {
        assert_eq!(verdict((Release, Acquire)), Verdict::Clean);
        for orders in [(Relaxed, Acquire), (Release, Relaxed)] {
            let found = verdict(orders);
            assert!(matches!(found, Verdict::Violation(Violation::Race(_))), "{found:?}");
        }
    }
}

fn order_of_a_load() -> impl Generates<Value = Ordering> {
    prop_oneof![Just(Relaxed), Just(Acquire), Just(SeqCst)]
}

fn instruction() -> impl Generates<Value = Does> {
    let word = || 0..WORDS;
    let value = || 1..3u64;
    let stores = || prop_oneof![Just(Relaxed), Just(Release), Just(SeqCst)];
    let changes =
        || prop_oneof![Just(Relaxed), Just(Release), Just(Acquire), Just(AcqRel), Just(SeqCst)];
    prop_oneof![
        4 => (word(), value(), stores()).prop_map(|(word, value, order)| Store(word, value, order)),
        4 => (word(), order_of_a_load()).prop_map(|(word, order)| Load(word, order)),
        2 => (word(), value(), changes()).prop_map(|(word, value, order)| Swap(word, value, order)),
        2 => Just(Fence),
    ]
}

fn program(threads: usize, length: usize) -> impl Generates<Value = Program> {
    let thread = proptest::collection::vec(instruction(), 1..=length);
    proptest::collection::vec(thread, threads)
}

fn compare(program: &Program) {
    let want = axioms::outcomes(program);
    for (reduce, prune) in [(true, true), (true, false), (false, true)] {
        let config = Config {
            strategy: Strategy::Exhaustive { preemptions: None, reduce, prune },
            max_executions: 300_000,
            ..Config::c11()
        };
        let (found, report) = run(program, &config);
        if report.complete {
            assert_eq!(found, want, "reduce {reduce}, prune {prune}: {program:?}");
        } else {
            assert!(found.is_subset(&want), "reduce {reduce}, prune {prune}: {program:?}");
            assert!(!prune, "{report:?}");
        }
    }
}

proptest! {
    #[test]
    fn two_threads_have_the_outcomes_of_the_axioms(program in program(2, 4)) {
        compare(&program);
    }

    #[test]
    fn three_threads_have_the_outcomes_of_the_axioms(program in program(3, 3)) {
        compare(&program);
    }

    #[test]
    fn four_threads_have_the_outcomes_of_the_axioms(program in program(4, 2)) {
        compare(&program);
    }
}
