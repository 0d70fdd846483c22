//! What safe code can do to the library: nothing but what a call says. Jobs of several ranks are
//! tests of this very program, which starts itself under a launcher.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use poach_far::bag::Bag;
use poach_far::balance::victims::Victims;
use poach_far::balance::{
    Balancer, Given, Local, Message, Parcel, Policy, Progress, Stealing, Waves,
};
use poach_far::simulate::{Machine, Program, Simulation};
use poach_far::transport::{Transport, Word};
use poach_far::{
    Builder, Call, Context, Counters, Divided, Ended, Error, Failure, JobBuilder, Lost, Ordered,
    Outcome, RankStats, Reduction, Role, Status, World, join, reduction, sum, supervise,
};
use serde::{Deserialize, Serialize, Serializer};

use crate::launch::{Ran, launcher, wait};

fn panics(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

#[test]
fn a_bag_gives_what_it_has_to_whatever_is_asked() {
    let mut bag: Bag<u16> = (0..6).collect();
    bag.append([6, 7].into_iter().collect());
    assert_eq!(bag.pop_oldest(), Some(0));
    assert!(bag.give(0, 0, 100).unwrap().is_empty());
    assert!(bag.give_first(0, usize::MAX, 0, usize::MAX).unwrap().is_empty());
    assert_eq!(bag.len(), 7);
    let all = bag.give_first(0, usize::MAX, usize::MAX, usize::MAX).unwrap();
    assert_eq!(all.iter().map(|parcel| parcel.tasks).sum::<u32>(), 7);
    assert!(bag.is_empty() && bag.pop_oldest().is_none());
    assert!(bag.give(0, usize::MAX, 0).unwrap().is_empty());
    for parcel in [
        Parcel { tasks: u32::MAX, bytes: vec![1, 2] },
        Parcel { tasks: 0, bytes: vec![1] },
        Parcel { tasks: 1, bytes: vec![0xff; 40] },
    ] {
        assert!(matches!(
            Bag::<u16>::open(1, 0, &parcel),
            Err(Failure::Unreadable { rank: 1, from: 0, .. })
        ));
    }
}

/// A network that says what it was told to.
struct Told {
    ranks: usize,
    inbox: VecDeque<(usize, Message)>,
    sent: Vec<(usize, Message)>,
}

fn told(ranks: usize, inbox: &[(usize, Message)]) -> Told {
    Told { ranks, inbox: inbox.iter().cloned().collect(), sent: Vec::new() }
}

impl Transport for Told {
    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn now(&mut self) -> u64 {
        1
    }

    fn send(&mut self, to: usize, message: Message) {
        self.sent.push((to, message));
    }

    fn receive(&mut self) -> Option<(usize, Message)> {
        self.inbox.pop_front()
    }

    /// Full of parcels, always.
    fn fetch_add(&mut self, _: usize, _: Word, _: u64) -> u64 {
        u64::MAX << 48
    }

    fn get(&mut self, _: usize, _: usize) -> Vec<u8> {
        vec![0xff; 3]
    }

    fn put_own(&mut self, _: usize, _: &[u8]) {}
}

/// A rank that has nothing.
#[derive(Default)]
struct Idle {
    taken: u32,
    paused: bool,
}

impl Local for Idle {
    fn is_idle(&self) -> bool {
        true
    }

    fn is_still(&self) -> bool {
        true
    }

    fn give(&mut self, _: usize, _: usize) -> Result<Given, Failure> {
        Ok(Given::Nothing)
    }

    fn take(&mut self, _: usize, parcel: Parcel) -> Result<(), Failure> {
        self.taken += parcel.tasks;
        Ok(())
    }

    fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    fn save(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        Ok(Some((1, Vec::new())))
    }

    fn commit(&mut self, _: Vec<Vec<u8>>) -> Result<(), Failure> {
        Ok(())
    }
}

#[test]
fn a_balancer_alone_finds_the_end() {
    let (mut network, mut idle) = (told(1, &[]), Idle::default());
    assert!(idle.is_hungry() && idle.wants_back() && idle.tasks() == 0);
    assert!(matches!(idle.returned(1, 2, &[]), Err(Failure::Unreadable { from: 1, .. })));
    let mut balancer = Balancer::new(Policy::default(), 0, &[0]);
    balancer.checkpoint();
    assert_eq!((balancer.progress(), balancer.tasks_below()), (&Progress::Running, 0));
    for _ in 0..10 {
        balancer.poll(&mut network, &mut idle);
    }
    // The checkpoint has found a task, by what this rank says, and the job goes on; then it is
    // over.
    assert_eq!(balancer.progress(), &Progress::Done);
    assert!(!idle.paused && balancer.wakes().is_none_or(|at| at < u64::MAX));
    let mut twice = balancer.counters();
    twice.add(&Counters { messages: 1, ..twice });
    assert_eq!(twice.messages, 2 * balancer.counters().messages + 1);
}

#[test]
fn a_balancer_that_fails_tells_everybody() {
    let mut network = told(3, &[]);
    let mut balancer = Balancer::new(Policy::default(), 0, &[0; 3]);
    balancer.give_back(&mut network, 2, 7, vec![1]);
    let failure = Failure::BagFull { rank: 0, tasks: 1, limit: 0 };
    balancer.fail(&mut network, failure.clone());
    balancer.fail(&mut network, Failure::Other { rank: 0, message: "later".to_owned() });
    // A job that has ended saves nothing.
    balancer.saved_here(&mut network, &mut Idle::default(), (1, Vec::new()));
    assert_eq!(balancer.progress(), &Progress::Failed(failure.clone()));
    let to: Vec<_> = network.sent.iter().map(|(to, _)| *to).collect();
    assert_eq!(to, [2, 1, 2]);
    assert_eq!(network.sent[1].1, Message::Failed(failure));
}

/// Messages that no balancer sends, and a window that no owner has filled: an error or a panic with
/// what is wrong.
#[test]
fn a_network_that_lies_is_told_so() {
    let parcel = Parcel { tasks: u32::MAX, bytes: Vec::new() };
    for (from, message) in [
        (2, Message::Tasks(parcel, true)),
        (0, Message::Count(1)),
        (2, Message::Saved { tasks: 0, parts: Vec::new() }),
    ] {
        let mut balancer = Balancer::new(Policy::default(), 0, &[0; 4]);
        let mut network = told(4, &[(from, message.clone())]);
        // Twice over two lifelines: 1 and 2 are those of rank 0, and 3 is none.
        network.inbox.push_back((3, message));
        assert!(panics(|| balancer.poll(&mut network, &mut Idle::default())));
    }
    let mut balancer = Balancer::new(Policy::default(), 0, &[0; 4]);
    let saved = (1, Vec::new());
    assert!(panics(|| balancer.saved_here(&mut told(4, &[]), &mut Idle::default(), saved)));
    let policy = Policy { stealing: Stealing::Window, waves: Waves::One, ..Policy::default() };
    let mut balancer = Balancer::new(policy, 0, &[0, 0]);
    for _ in 0..10 {
        balancer.poll(&mut told(2, &[]), &mut Idle::default());
    }
    assert!(matches!(balancer.progress(), Progress::Failed(Failure::Unreadable { .. })));
    assert!(panics(|| drop(Balancer::new(Policy::default(), 1, &[0]))));
}

#[test]
fn a_rank_has_victims_only_among_ranks_that_there_are() {
    let mut victims = Victims::new(0, &[0, 1], 1);
    assert_eq!((victims.next(1), victims.next(1)), (Some(1), None));
    victims.restart();
    assert_eq!(victims.next(0), None);
    assert!(Victims::new(0, &[0], 1).is_empty());
    assert!(panics(|| drop(Victims::new(2, &[0, 0], 1))));
}

struct Nothing;

impl Program for Nothing {
    type Task = ();

    fn run(&mut self, _: usize, (): (), _: &mut dyn FnMut(())) -> f64 {
        f64::NAN
    }
}

#[test]
fn a_simulation_takes_a_rank_at_least() {
    let of = |ranks| Simulation::new(ranks, Machine::default(), Policy::default(), Nothing);
    assert!(panics(|| drop(of(0))));
    assert!(panics(|| drop(of(1).ranks_per_node(0))));
    // A cost that is no number: it ends, whatever it says.
    let _ = of(2).turns_at_most(1_000).run(vec![(); 3]);
}

#[test]
fn a_program_without_a_launcher_is_no_world_and_has_no_supervisor() {
    assert!(matches!(World::init(), Err(Error::NotStarted)));
    assert!(matches!(Builder::init(World::builder()), Err(Error::NotStarted)));
    assert_eq!(supervise(|| ()).unwrap(), Role::Rank);
    let lost = Lost { rank: None, process: 7, signal: Some(i32::MIN) };
    assert!(
        lost.to_string().contains("a rank is lost: its process 7 was ended by signal -2147483648")
    );
    let role = Role::Supervisor(Ended { code: 255, lost: Some(lost) });
    assert_ne!(role, Role::Rank);
}

/// Runs a test of this file as `ranks` ranks, each of which finds the number.
fn ranks(ranks: usize, test: &str, number: usize) -> Ran {
    let mut command = launcher();
    command.env("POACH_FAR_TEST", number.to_string());
    command.args(["-n", &ranks.to_string()]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("safe_code::{test}"), "--nocapture", "--test-threads=1"]);
    wait(command)
}

/// The number, in a rank that [`ranks`] has started.
fn number() -> Option<usize> {
    std::env::var("POACH_FAR_TEST").ok().map(|number| number.parse().unwrap())
}

/// A value that cannot be encoded, if it is 1.
#[derive(Clone, Debug, Deserialize)]
struct Silent(u8);

impl Serialize for Silent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == 1 {
            return Err(serde::ser::Error::custom("silent"));
        }
        self.0.serialize(serializer)
    }
}

#[test]
fn a_world_can_be_asked_for_all_that_it_has() {
    if let Some(ranks) = number() {
        return ask_for_everything(ranks);
    }
    for n in [1, 2] {
        let ran = ranks(n, "a_world_can_be_asked_for_all_that_it_has", n);
        assert!(ran.output.status.success(), "{}{}", ran.stdout(), ran.stderr());
        assert_eq!(ran.stdout().matches("all asked").count(), n, "{}", ran.stdout());
    }
}

fn fib(n: u32, call: &mut Call<'_, u32, u32>) -> u32 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(call, n - 1, n - 2);
    a + b
}

fn ask_for_everything(there: usize) {
    let alone = || World::builder().alone(true).threads(2).tasks_at_most(1 << 20);
    let mut world = alone().lifelines(false).stealing(Stealing::Window).init().unwrap();
    assert!(matches!(alone().init(), Err(Error::Twice)));
    let (rank, ranks) = (world.rank(), world.ranks());
    assert_eq!((ranks, world.nodes(), world.threads()), (there, 1, 2));
    assert!(world.threads_granted() >= mpi::Threading::Serialized);

    world.agree("the number of ranks", &ranks).unwrap();
    match world.agree("their numbers", &rank) {
        Ok(()) => assert_eq!(ranks, 1),
        Err(error) => assert!(matches!(error, Error::Disagree { rank: 1, .. })),
    }
    assert_eq!(world.tell(format!("of {rank}")).unwrap(), "of 0");
    assert_eq!(world.tell(()).ok(), Some(()));
    assert_eq!(world.tell(Silent(1)).is_err(), ranks > 1);
    assert_eq!(world.tell(Silent(2)).unwrap().0, 2);

    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    world.progress(move |status: Status| {
        assert!(status.elapsed < Duration::from_secs(3600));
        count.fetch_add(1, Ordering::Relaxed);
    });
    let outcome = world.run(0..1000u32, sum::<u64>(), |n, context: &mut Context<'_, u32, u64>| {
        *context.result() += u64::from(n);
    });
    let sum_of_all = outcome.unwrap().map(|outcome: Outcome<u64>| {
        let mut twice = outcome.clone();
        twice.add(outcome.elapsed, &outcome.ranks);
        // Ranks that there are not.
        twice.add(Duration::ZERO, &[RankStats::default(); 9]);
        assert_eq!(twice.ranks.len(), ranks);
        assert_eq!(twice.ranks.iter().map(|r| r.tasks).sum::<u64>(), 2 * 1000 * ranks as u64);
        twice.result
    });
    assert_eq!(sum_of_all, (rank == 0).then_some(499_500 * ranks as u64));

    let file = tempfile::tempdir().unwrap();
    let path = world.tell(file.path().join("checkpoint")).unwrap();
    let largest: Reduction<u32, _> = reduction(0, |a: &mut u32, b| *a = b.max(*a));
    let job: JobBuilder<'_, u32> = world.job([rank as u32]);
    let outcome = job
        .checkpoint(path, Duration::ZERO, "all")
        .progress(|_| {})
        .delays(Duration::from_micros(50), 3)
        .run(largest, |n, context| {
            if n < 100 {
                context.push(n + 1);
            }
            *context.result() = n.max(*context.result());
        });
    assert_eq!(outcome.unwrap().map(|outcome| outcome.result), (rank == 0).then_some(100));

    let ordered = world.job((rank == 0).then_some(0u32)).run_ordered(
        |n, context: &mut Ordered<'_, '_, u32, u32>| {
            context.emit(n);
            if n < 3 {
                context.push(n + 1);
                context.push(n + 2);
            }
        },
    );
    let order = ordered.unwrap().map(|outcome| outcome.result);
    assert_eq!(order, (rank == 0).then(|| vec![0, 1, 2, 3, 4, 3, 2, 3, 4]));

    let halves = |n: u32| if n < 2 { Divided::Whole(n) } else { Divided::Halves(n - 1, n - 2) };
    let divided = world.divide(15, halves, |a, b| a + b).unwrap();
    assert_eq!(divided.map(|outcome| outcome.result), (rank == 0).then_some(610));
    let called = world.call(15, fib).unwrap();
    assert_eq!(called.map(|outcome| outcome.result), (rank == 0).then_some(610));

    for bytes in [0, 8, 1_000] {
        match world.ping_pong(4, bytes) {
            Ok(machine) => assert_eq!(machine.is_some_and(|m| m.byte >= 0.0), rank == 0),
            Err(error) => assert!(matches!(error, Error::Failed(_)) && ranks == 1),
        }
    }
    println!("all asked");
}

/// In the place of a window that holds sixteen such parcels there was one as large as the product's
/// last 64 bits, and slots outside of it.
#[test]
fn parcels_too_large_for_a_window_are_refused() {
    if let Some(bytes) = number() {
        return ask_for_parcels(bytes);
    }
    for bytes in [usize::MAX, usize::MAX - 15, (1 << 60) - 16, 1 << 31] {
        let ran = ranks(2, "parcels_too_large_for_a_window_are_refused", bytes);
        assert!(ran.output.status.success(), "{bytes}: {}{}", ran.stdout(), ran.stderr());
        assert_eq!(ran.stdout().matches("too large").count(), 2, "{}", ran.stdout());
    }
}

fn ask_for_parcels(bytes: usize) {
    let builder = World::builder().threads(1).stealing(Stealing::Window).parcel_bytes(bytes);
    let mut world = builder.init().unwrap();
    let seeds = if world.rank() == 0 { 0..1_000u32 } else { 0..0 };
    let outcome = world.run(seeds, sum::<u64>(), |n, context| {
        thread::sleep(Duration::from_micros(100));
        *context.result() += u64::from(n);
    });
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Window { .. }));
    assert!(error.to_string().contains("too large"), "{error}");
    println!("{error}");
}

#[test]
fn a_world_is_ended_by_one_rank() {
    if let Some(code) = number() {
        end(code);
    }
    let ran = ranks(2, "a_world_is_ended_by_one_rank", 3);
    assert!(!ran.output.status.success());
    assert!(!ran.stdout().contains("test result"), "{}", ran.stdout());
    assert_eq!(ran.stdout().matches("no place for a task").count(), 2, "{}", ran.stdout());
}

fn end(code: usize) -> ! {
    let mut world = World::builder().threads(1).tasks_at_most(0).init().unwrap();
    let failed = world.run([1u32], sum::<u64>(), |n, context| context.push(n));
    assert!(matches!(failed, Err(Error::Failed(Failure::BagFull { .. }))));
    println!("no place for a task");
    // The other rank has said so, too.
    thread::sleep(Duration::from_millis(200));
    world.abort(code as i32);
}
