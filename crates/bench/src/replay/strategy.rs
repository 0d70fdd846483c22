//! What a worker does while the half that it waits for is under way elsewhere.

/// Where a waiting worker looks for work.
///
/// Source: Lace, sections 1.2 and 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// At the thief of that half only: what it steals there is part of what it waits for.
    Leapfrog,
    /// At the thief, then at the thief of what the thief waits for, and so on.
    Transitive,
    /// At the thief, then at anybody.
    Random,
}

impl Strategy {
    pub(crate) const ALL: [Strategy; 3] =
        [Strategy::Leapfrog, Strategy::Transitive, Strategy::Random];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Strategy::Leapfrog => "leapfrog",
            Strategy::Transitive => "transitive",
            Strategy::Random => "random",
        }
    }
}
