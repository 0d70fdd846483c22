//! The mutants: what each changes, where, and how it is found out.
//!
//! A row reads: in this file, in place of `was` stands `is`; that is the mistake `why`; played in
//! this scene, the checker catches it so. The text `was` must stand in the file exactly once, else
//! the build fails: a mutant that changes nothing would prove nothing.

/// The rows of a file: of what row the others' fields are, the name, the mistake, `was => is`, and
/// the fields that differ.
macro_rules! mutants {
    ($(
        $like:ident: $name:literal, $why:literal, $was:expr => $is:expr $(, $field:ident: $value:expr)*;
    )*) => {
        pub(super) const MUTANTS: &[super::Mutant] = &[$(
            super::Mutant { name: $name, why: $why, was: $was, is: $is, $($field: $value,)* ..$like }
        ),*];
    };
}

mod biased;
mod bwos;
mod chase_lev;
mod fifo;
mod hazard;
mod idempotent;
mod injector;
mod mult;
mod others;
mod policies;
mod pools;
mod rings;
mod salsa;
mod split;
mod split_stack;
mod the;
mod thep;
mod weak;

/// One bug.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the build script shares this page and has no use for the verdict")]
pub struct Mutant {
    /// Its name: the queue and the mistake.
    pub name: &'static str,
    /// The mistake, in a sentence.
    pub why: &'static str,
    /// The file that it changes, below `crates`.
    pub file: &'static str,
    /// What stands there.
    pub was: &'static str,
    /// What the mutant has in its place.
    pub is: &'static str,
    /// Another mutant, of another file, whose mistake this one has besides.
    pub besides: Option<&'static str>,
    /// The queue that shows it, as `poach check` or `OTHERS` calls it.
    pub queue: &'static str,
    /// What the queue is made to do.
    pub scene: Scene,
    /// What the checker finds.
    pub caught: Caught,
}

impl Mutant {
    /// What the rows of a file have in common.
    const fn of(file: &'static str, queue: &'static str, scene: Scene, caught: Caught) -> Mutant {
        Mutant { name: "", why: "", file, was: "", is: "", besides: None, queue, scene, caught }
    }
}

/// What the owner and the thieves do. With a bounded policy the client makes one store after each
/// pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "as for `Mutant`")]
pub enum Scene {
    /// Three tasks; the owner pops until none is left, a thief steals twice.
    Drain,
    /// Two tasks; the owner pops until none is left, a thief steals twice.
    Pair,
    /// Two tasks; the owner pops until none is left, a thief steals once.
    Once,
    /// Four tasks; the owner pops two, each of two thieves steals once.
    Hands,
    /// Four tasks; the owner pops until none is left, a thief steals twice.
    Four,
    /// A processor with one entry in its store buffer and two behind it; one task more than these
    /// hide pops, the owner pops until none is left, a thief steals twice. All stores of the
    /// client are to one word.
    Egress,
    /// The same with ten entries behind the store buffer.
    EgressOfTen,
    /// Three tasks; the owner does nothing, a thief steals twice.
    Robbed,
    /// Two tasks; the owner does nothing, each of two thieves steals once.
    Thieves,
    /// The owner pushes two, pops one, and pops until none is left; a thief steals twice. The queue
    /// begins with one slot.
    Brief,
    /// As `Brief`; the thief steals once.
    Short,
    /// One task; the owner pops, pushes one, and pops until none is left; a thief steals twice.
    Returns,
    /// The owner pushes and pops by turns; a thief steals twice. The queue begins with one slot.
    Mixed,
    /// The owner pushes one, pops one and pushes two into a queue of one slot; a thief steals once.
    Laps,
    /// The owner pushes two into a queue of one slot and pops until none is left; each of two
    /// thieves steals once.
    Pushes,
    /// The owner pushes four into a queue of one slot, which grows twice; a thief steals twice.
    Grows,
    /// Two tasks; the owner pops one when the thief has come, and waits for the thief.
    Echo,
    /// Two tasks; the owner pops one and goes; a thief steals once.
    Leaves,
    /// Three tasks; the owner pops two and goes; a thief steals twice.
    Leaving,
    /// A pool that is never empty, and a consumer that asks whether it is while two others put and
    /// take.
    Pass,
    /// Chunks of one task that two producers and a consumer hand round.
    Again,
    /// The topmost of three free chunks comes back while a producer takes it, and another takes the
    /// one below.
    HeadReturns,
    /// A consumer looks at a pool twice while its task is stolen, and hears of that.
    Announced,
    /// Six tasks; the owner pushes one and pops one; a thief takes half, twice.
    Halves,
    /// Two thieves and a request: one takes what the owner has shared, the other asks again.
    Asks,
    /// One private task: the owner begins a pop and puts the task back, and a thief asks and sleeps
    /// if it finds nothing.
    PutsBack,
    /// A consumer leaves its pool while a task comes there.
    Goes,
    /// Three tasks, in chunks of one; the owner pops three times and goes; a thief steals once.
    Third,
    /// A producer leaves its list, and another comes to it, while a consumer looks there.
    Comes,
    /// An injector with two tasks: two threads push one each, and each of two thieves steals once.
    Injects,
    /// An injector: one thread pushes and then takes all that it finds, another pushes.
    Refills,
    /// One thread pushes a task into an injector, and a thief that may skip it comes twice.
    Skips,
    /// The owner forks one task and joins it, a thief tries twice.
    Forks,
    /// The owner forks one task and joins it, a thief exposes it and steals.
    Exposes,
    /// Two producers come to a pool at once; its consumer looks for a task.
    FedByTwo,
    /// A thief goes on in the chunk that it has stolen, and is robbed of it.
    RobbedThief,
    /// A thief is robbed of a chunk before it knows what the owner has taken of it.
    RobbedInWindow,
    /// A task comes while a thief is in its window, and the owner goes on.
    LateTask,
    /// A thief is robbed in its window, while the owner takes and a task comes.
    RobbedAndFed,
    /// A thief reads how much of a chunk is taken in one life of it, and steals it in another.
    Oversleeps,
    /// The last task of a chunk is contested, and the chunk filled again.
    Refilled,
    /// A thief goes from one stolen chunk to another, and is robbed of one.
    TwoChunks,
    /// A thief's list of chunks grows while another looks whether its pool is empty.
    HeldGrows,
    /// A producer's list of chunks grows while a thief steals, and another looks whether the pool
    /// is empty.
    ListGrows,
    /// Under C11: two tasks; the owner pops until none is left and goes, a thief steals twice.
    WeakPair,
    /// Under C11: the same with three tasks.
    WeakThree,
    /// Under C11: two tasks; the owner pops until none is left and goes, each of two thieves steals
    /// once.
    WeakTwo,
    /// Under C11: as `Brief`; then the owner goes.
    WeakBrief,
    /// Under C11: as `WeakBrief`, in a queue that has room for both tasks from the start.
    WeakRoomy,
    /// Under C11: two tasks; the owner pops once, a thief steals once.
    WeakRobbed,
    /// Under C11: one task; the owner pops once while another thread puts one, a thief steals once.
    WeakFed,
    /// Under C11: the owner forks one task and joins it, a thief tries twice.
    WeakForks,
    /// Under C11: as `Exposes`.
    WeakExposes,
    /// Under C11: the owner pushes four into a queue of one slot, and goes; a thief steals three
    /// times.
    WeakAnew,
    /// Under C11: the owner pushes two into a queue of one slot, pops both and pushes two more, and
    /// goes; a thief steals twice.
    WeakBack,
}

/// What the checker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "as for `Mutant`")]
pub enum Caught {
    /// A task is taken twice.
    Twice,
    /// A task is in the queue, and the queue says that it is empty.
    Lost,
    /// Something is taken that nobody put in.
    Invented,
    /// No order of the operations explains what they return.
    Order,
    /// Everybody waits.
    Deadlock,
    /// It never ends.
    Endless,
    /// Two threads are at one slot at once.
    Race,
    /// A pool is said to be empty that never was.
    FalseEmpty,
    /// An assertion of the queue's own fails.
    Broken,
    /// Memory is used that may have been freed.
    Freed,
    /// Memory is never freed.
    Leak,
    /// A thief is turned away without a reason.
    Refusal,
    /// A thief has asked, and the owner's next push shares nothing.
    RequestLost,
    /// Nothing is wrong with any execution, but in none of them does a thief get a task.
    NeverSteals,
    /// Nothing: another step does what this one is there for, as a mutant shows that has both
    /// mistakes.
    Nothing,
}

/// All of them.
pub fn mutants() -> impl Iterator<Item = &'static Mutant> {
    let tables = [
        chase_lev::MUTANTS,
        policies::MUTANTS,
        biased::MUTANTS,
        fifo::MUTANTS,
        the::MUTANTS,
        thep::MUTANTS,
        idempotent::MUTANTS,
        mult::MUTANTS,
        bwos::MUTANTS,
        split::MUTANTS,
        others::MUTANTS,
        injector::MUTANTS,
        rings::MUTANTS,
        salsa::MUTANTS,
        pools::MUTANTS,
        hazard::MUTANTS,
        split_stack::MUTANTS,
        weak::MUTANTS,
    ];
    tables.into_iter().flatten()
}
