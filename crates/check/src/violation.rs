//! What can be wrong with an execution.

use std::fmt;

/// The kinds of violation: what an expectation names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A task is taken twice.
    Duplicate,
    /// A task is in the queue, and the queue says that it is empty, or nobody can have it any more.
    Lost,
    /// Something is taken that nobody put in.
    Invented,
    /// A pool is said to be empty in which there was a task at every instant.
    FalseEmpty,
    /// No order of the operations explains what they returned.
    Order,
    /// A thief is turned away without a reason.
    Refusal,
    /// A thief has asked, and its owner, which has something to share, is not told.
    Request,
    /// Nobody can move.
    Deadlock,
    /// It does not end.
    Livelock,
    /// Two threads are at one slot at once.
    Race,
    /// Memory is used that may have been freed.
    Freed,
    /// Memory is not freed.
    Leak,
    /// A thread, or the final check, panics.
    Panic,
    /// The choice string is another model's.
    Replay,
}

impl Kind {
    /// Its name, as `poach check` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Duplicate => "duplicate",
            Kind::Lost => "lost",
            Kind::Invented => "invented",
            Kind::FalseEmpty => "false-empty",
            Kind::Order => "order",
            Kind::Refusal => "refusal",
            Kind::Request => "request",
            Kind::Deadlock => "deadlock",
            Kind::Livelock => "livelock",
            Kind::Race => "race",
            Kind::Freed => "freed",
            Kind::Leak => "leak",
            Kind::Panic => "panic",
            Kind::Replay => "replay",
        }
    }
}

/// A history that the specification does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// What is wrong with it.
    pub kind: Kind,
    /// The same in a sentence.
    pub text: String,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A thread, or the final check, panicked.
    Panic(String),
    /// Nobody can move.
    Deadlock(String),
    /// An execution has more events than the bound, or more operations than a history may have
    /// (250). Holds the number of its events.
    Livelock(usize),
    /// Two accesses to a cell that no store and load put in order.
    Race(String),
    /// Memory is used that nothing says is not freed yet, or is freed twice.
    Freed(String),
    /// Memory that nobody frees.
    Leak(String),
    /// A history that the specification does not allow, or the final check's finding.
    History(Unexplained),
    /// The choice string does not fit the model from this event on.
    Replay(usize),
}

impl Violation {
    /// What kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Violation::Panic(_) => Kind::Panic,
            Violation::Deadlock(_) => Kind::Deadlock,
            Violation::Livelock(_) => Kind::Livelock,
            Violation::Race(_) => Kind::Race,
            Violation::Freed(_) => Kind::Freed,
            Violation::Leak(_) => Kind::Leak,
            Violation::History(found) => found.kind,
            Violation::Replay(_) => Kind::Replay,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Panic(text) | Violation::History(Unexplained { text, .. }) => {
                f.write_str(text)
            }
            Violation::Deadlock(text) => write!(f, "deadlock: {text}"),
            Violation::Livelock(steps) => write!(f, "no end after {steps} events"),
            Violation::Race(text) => write!(f, "data race: {text}"),
            Violation::Freed(text) => write!(f, "use of freed memory: {text}"),
            Violation::Leak(text) => write!(f, "leak: {text}"),
            Violation::Replay(at) => {
                write!(f, "the choice string does not fit this model: event {at} cannot happen")
            }
        }
    }
}
