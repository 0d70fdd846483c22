//! What safe code can ask of the models: queues that are kept, pools that cannot be had, scenarios
//! of any numbers.

#![forbid(unsafe_code)]

use core::num::NonZeroU64;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use poach_check::history::Outcome;
use poach_check::{
    Config, Coverage, Incomplete, Report, Simulated, SimulatedWord, Spec, Threads, Verdict, explore,
};
use poach_deque::{ChaseLev, Owner};
use poach_memory::Full;
use poach_models::alone::{Fate, Law, five_runs};
use poach_models::matrix::{self, Case, Extent, Named, PolicyKind};
use poach_models::played::Plays;
use poach_models::{
    Algorithm, Deque, Policy, Scenario, Step, Subject, emptiness, plays, shared, taken, thefts,
};

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
    assert!(text.contains("inside of poach_check::explore"), "{text}");
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
    let lies =
        explore(&config, &poach_models::model(&pops(&[Step::Watch, Step::Pop]), &[], |_| Liar));
    assert!(matches!(lies.verdict, Verdict::Violation(_)));
    let none = Scenario { capacity: 3, ..Scenario::brief(0, 0, 0) };
    let make =
        |capacity| Deque(ChaseLev::<u64, Full, Simulated>::starting_at(Full, capacity, 0).unwrap());
    assert!(!panics(|| explore(&config, &poach_models::model(&none, &[], make))).is_empty());
    for scenario in [Scenario::echo(), Scenario::brief(0, 1, 1), Scenario::mixed(1, 0, 9)] {
        let found = poach_models::check(
            Algorithm::ChaseLev,
            Policy::Full,
            &scenario,
            &Config::sequential(),
        );
        assert_eq!(found.verdict.word(), "clean");
    }
    assert_eq!(poach_models::spec(Algorithm::Fifo, Policy::Unfenced), Spec::Fifo);
    assert!(Algorithm::The.has_policy() && Algorithm::Salsa.is_shared());
    assert_eq!(matrix::delta(u32::MAX, true, u32::MAX).get(), 1);
    let Named { policy, .. } = matrix::QUEUES[0];
    assert_eq!(policy, PolicyKind::Full);
    assert_eq!(policy.with(NonZeroU64::MIN), Policy::Full);
    let case: Case = matrix::bounds(&(1..=1), &(1..=1)).swap_remove(0);
    let report = case.run(&case.config());
    assert!(case.as_expected(&report));
    let rows =
        [Extent::Quick, Extent::Usual, Extent::Full].map(|extent| matrix::cases(extent).len());
    assert!(rows[0] < rows[1] && rows[1] < rows[2]);
    let laws: Vec<Law> = five_runs();
    assert!(laws.iter().all(|law| law.fate == law.expected && law.fate != Fate::Other));
}

/// Plays a queue by pushing a task that nobody takes.
struct Alone;

impl Plays for Alone {
    fn play<O: Owner<u64, Thief: 'static> + 'static>(self, make: impl Fn() -> O) -> Report {
        explore(&Config::sequential(), &|threads: &mut Threads| {
            let owner = make();
            threads.spawn("owner", move || owner.push(1));
        })
    }
}

#[test]
fn deques_are_made_by_name_and_pools_are_none() {
    for &Named { algorithm, .. } in matrix::QUEUES {
        let made =
            || poach_models::play_deque!(poach_deque, algorithm, Full, 2, Alone).verdict.word();
        if algorithm.is_shared() || algorithm == Algorithm::Stack {
            assert!(panics(made).contains("is no deque"));
        } else {
            assert_eq!(made(), "clean");
        }
    }
    let often = [Algorithm::IdempotentFifo, Algorithm::Multiplicity].map(Algorithm::taken);
    assert_eq!(often, [taken::Taken::AtLeastOnce; 2]);
    assert_eq!(Algorithm::The.taken(), taken::Taken::Once);
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
        panics(|| explore(&config, &emptiness::pass(none))),
        panics(|| explore(&config, &thefts::fed_by_two(none))),
        panics(|| explore(&config, &thefts::robbed_thief(none))),
        panics(|| explore(&config, &thefts::robbed_in_window(none))),
        panics(|| explore(&config, &thefts::late_task(none))),
        panics(|| explore(&config, &thefts::robbed_and_fed(none))),
        panics(|| explore(&config, &thefts::oversleeps(none))),
        panics(|| explore(&config, &thefts::refilled(none))),
        panics(|| explore(&config, &thefts::two_chunks(none))),
        panics(|| explore(&config, &thefts::head_returns(none))),
        panics(|| explore(&config, &thefts::held_grows(none))),
        panics(|| explore(&config, &thefts::list_grows(none))),
    ] {
        assert!(!refused.is_empty());
    }
    drop(thefts::refused(|_: Arc<SimulatedWord>| none()));
    assert!(!panics(|| explore(&config, &emptiness::behind(none))).is_empty());
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
