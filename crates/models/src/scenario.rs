//! What a model has its queue do: one owner with a script, and thieves.

use std::sync::Arc;

use poach_deque::{Owner, Steal, Thief};
use poach_memory::{Memory, Ordering::Relaxed, Word};

use poach_check::history::{Call, Outcome};
use poach_check::{Naming, Simulated, Threads, operation};

/// A step of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Push the next task.
    Push,
    /// Pop.
    Pop,
    /// Pop until the queue is empty.
    PopAll,
    /// Wait until a thief [waits for the next pop](Owner::is_awaited), or all thieves have ended.
    Watch,
    /// Wait until all thieves have ended.
    Stay,
}

/// What the owner and the thieves do.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Tasks in the queue before it begins, numbered from 1.
    pub tasks: u32,
    /// What the owner does. Without a [`Step::PopAll`] at the end, lost tasks are not noticed.
    pub script: Vec<Step>,
    /// Stores that the client makes after each pop that has given it a task, each to a word of its
    /// own.
    pub stores: u32,
    /// These stores are all to one word, and coalesce.
    pub one_line: bool,
    /// The number of thieves.
    pub thieves: u32,
    /// How often each tries to steal.
    pub steals: u32,
    /// The queue's capacity to begin with.
    pub capacity: usize,
}

impl Scenario {
    /// The paper's program (Figure 9): a queue of `tasks` tasks that the owner and the thieves
    /// empty together.
    pub fn drain(tasks: u32, stores: u32, thieves: u32, steals: u32) -> Self {
        let capacity = (tasks.max(1) as usize).next_power_of_two();
        let script = vec![Step::PopAll];
        Scenario { tasks, script, stores, one_line: false, thieves, steals, capacity }
    }

    /// A short form of [`mixed`](Scenario::mixed).
    pub fn brief(stores: u32, thieves: u32, steals: u32) -> Self {
        use Step::{Pop, PopAll, Push};
        let script = vec![Push, Push, Pop, PopAll];
        Scenario { script, capacity: 1, ..Scenario::drain(0, stores, thieves, steals) }
    }

    /// An owner that pops once when a thief has come, and then neither pops nor goes until the
    /// thief is done: a thief in doubt must learn what it needs from that one pop.
    pub fn echo() -> Self {
        let script = vec![Step::Watch, Step::Pop, Step::Stay];
        Scenario { script, ..Scenario::drain(2, 0, 1, 1) }
    }

    /// An owner that pushes and pops by turns over a queue that starts with one slot and must grow.
    pub fn mixed(stores: u32, thieves: u32, steals: u32) -> Self {
        use Step::{Pop, PopAll, Push};
        let script = vec![Push, Push, Pop, Push, Pop, PopAll];
        Scenario { script, capacity: 1, ..Scenario::drain(0, stores, thieves, steals) }
    }
}

/// A queue as a model uses it.
pub trait Subject: 'static {
    /// A thief's handle.
    type Thief: Clone + 'static;
    /// The owner adds a task.
    fn push(&self, task: u64);
    /// The owner takes a task.
    fn pop(&self) -> Option<u64>;
    /// Whether a thief waits for the owner's next pop.
    fn is_awaited(&self) -> bool;
    /// A handle.
    fn thief(&self) -> Self::Thief;
    /// A thief tries to take a task.
    fn steal(thief: &Self::Thief) -> Outcome;
}

/// Any queue of `poach-deque` that has the crate's traits.
#[derive(Debug)]
pub struct Deque<O>(pub O);

impl<O: Owner<u64, Thief: 'static> + 'static> Subject for Deque<O> {
    type Thief = O::Thief;

    fn push(&self, task: u64) {
        self.0.push(task);
    }

    fn pop(&self) -> Option<u64> {
        self.0.pop()
    }

    fn is_awaited(&self) -> bool {
        self.0.is_awaited()
    }

    fn thief(&self) -> O::Thief {
        self.0.thief()
    }

    fn steal(thief: &O::Thief) -> Outcome {
        match thief.steal() {
            Steal::Success(task) => Outcome::Task(task),
            Steal::Empty => Outcome::Empty,
            Steal::Abort => Outcome::Abort,
            Steal::Retry => Outcome::Retry,
        }
    }
}

pub(super) const THIEVES: [&str; 7] =
    ["thief 1", "thief 2", "thief 3", "thief 4", "thief 5", "thief 6", "thief 7"];

/// A [`Subject`] of any type: the model is compiled once, and not once for each queue and policy.
trait AnySubject {
    fn push(&self, task: u64);
    fn pop(&self) -> Option<u64>;
    fn is_awaited(&self) -> bool;
    fn thief(&self) -> Box<dyn AnyThief>;
}

impl<S: Subject> AnySubject for S {
    fn push(&self, task: u64) {
        Subject::push(self, task);
    }

    fn pop(&self) -> Option<u64> {
        Subject::pop(self)
    }

    fn is_awaited(&self) -> bool {
        Subject::is_awaited(self)
    }

    fn thief(&self) -> Box<dyn AnyThief> {
        Box::new(Handle::<S>(Subject::thief(self)))
    }
}

/// A thief's handle of any type.
trait AnyThief {
    fn another(&self) -> Box<dyn AnyThief>;
    /// By a fresh handle, which keeps nothing of the steals before.
    fn steal(&self);
}

struct Handle<S: Subject>(S::Thief);

impl<S: Subject> AnyThief for Handle<S> {
    fn another(&self) -> Box<dyn AnyThief> {
        Box::new(Handle::<S>(self.0.clone()))
    }

    fn steal(&self) {
        let thief = self.0.clone();
        operation(Call::Steal, || S::steal(&thief));
        if size_of_val(&thief) <= size_of::<usize>() {
            drop(thief);
            poach_check::forget();
        }
    }
}

/// The model: `make` makes the queue, whose words are called `names`; the others are the client's.
///
/// The model panics if the scenario has more than seven thieves.
pub fn model<S: Subject>(
    scenario: &Scenario,
    names: &[Naming],
    make: impl Fn(usize) -> S,
) -> impl Fn(&mut Threads) {
    let mut names = names.to_vec();
    names.extend((1..=scenario.stores).map(|number| Naming::hidden(format!("client{number}"))));
    // A word that nobody reads would be one more store in a buffer: it is there for who waits for
    // it.
    let waits = scenario.script.iter().any(|step| matches!(step, Step::Watch | Step::Stay));
    names.extend(waits.then(|| Naming::hidden("ended")));
    let (scenario, names) = (Arc::new(scenario.clone()), Arc::from(names));
    move |threads| set_up(threads, Box::new(make(scenario.capacity)), &scenario, &names, waits)
}

fn set_up(
    threads: &mut Threads,
    queue: Box<dyn AnySubject>,
    scenario: &Arc<Scenario>,
    names: &Arc<[Naming]>,
    waits: bool,
) {
    let words = if scenario.one_line { scenario.stores.min(1) } else { scenario.stores };
    let client = (0..words).map(|_| <Simulated as Memory>::Word::new(0)).collect();
    let ended = waits.then(|| Arc::new(<Simulated as Memory>::Word::new(0)));
    threads.name_words(Arc::clone(names));
    for task in 1..=u64::from(scenario.tasks) {
        operation(Call::Push(task), || {
            queue.push(task);
            Outcome::Done
        });
    }
    let thief = queue.thief();
    let plan = Arc::clone(scenario);
    let all = ended.clone();
    threads.spawn("owner", move || own(&*queue, &plan, &client, all.as_deref()));
    for name in THIEVES.iter().take(scenario.thieves as usize) {
        let thief = thief.another();
        let steals = scenario.steals;
        let ended = ended.clone();
        threads.spawn(name, move || {
            for _ in 0..steals {
                thief.steal();
            }
            if let Some(ended) = ended {
                ended.fetch_add(1, Relaxed);
            }
        });
    }
    // The last handle goes when all is over: what its going does is no part of the model.
    threads.finally(move || drop(thief));
}

type Client = Vec<<Simulated as Memory>::Word>;

fn own(
    queue: &dyn AnySubject,
    scenario: &Scenario,
    client: &Client,
    ended: Option<&<Simulated as Memory>::Word>,
) {
    let mut next = u64::from(scenario.tasks);
    let all_ended = || ended.is_none_or(|ended| ended.load(Relaxed) == u64::from(scenario.thieves));
    let pop = || {
        let outcome = operation(Call::Pop, || queue.pop().map_or(Outcome::Empty, Outcome::Task));
        if outcome != Outcome::Empty {
            for store in 0..scenario.stores as usize {
                client[store % client.len()].store(0, Relaxed);
            }
        }
        outcome
    };
    for step in &scenario.script {
        match step {
            Step::Push => {
                next += 1;
                operation(Call::Push(next), || {
                    queue.push(next);
                    Outcome::Done
                });
            }
            Step::Pop => {
                pop();
            }
            Step::PopAll => while pop() != Outcome::Empty {},
            Step::Watch => {
                while !queue.is_awaited() && !all_ended() {
                    Simulated::pause();
                }
            }
            Step::Stay => {
                while !all_ended() {
                    Simulated::pause();
                }
            }
        }
    }
}
