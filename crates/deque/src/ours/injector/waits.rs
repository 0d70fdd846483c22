//! How a push waits that has met other pushes.
//!
//! An exchange of `tickets` that fails takes the line of that word from the thread that pushes,
//! which then waits for it as long as a few pushes take, or thirty. So a push that has lost twice
//! keeps away from the line, for as long as many pushes take. The exchange after such a wait is
//! lost as well, if anybody has pushed; but it brings the line and the value, and the next one
//! follows at once. So a push does not wait until the others end.

use poach_memory::Memory;

use crate::pacing::injector::{FIRST_WAIT, LONGEST_WAIT};

/// The waits of one push.
pub(super) struct Waits {
    pauses: u32,
    has_waited: bool,
}

impl Waits {
    pub(super) fn new() -> Self {
        Waits { pauses: FIRST_WAIT, has_waited: false }
    }

    /// Gives the processor away, since thieves or other pushers may have none; then waits, twice as
    /// long each time.
    #[cold]
    pub(super) fn wait<M: Memory>(&mut self) {
        M::give_way();
        for _ in 0..M::patience(self.pauses) {
            M::pause();
        }
        self.pauses = (2 * self.pauses).min(LONGEST_WAIT);
    }

    /// An exchange was lost: waits, unless it was the first after a wait.
    pub(super) fn lost<M: Memory>(&mut self) {
        self.has_waited = !self.has_waited;
        if self.has_waited {
            self.wait::<M>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Injector;
    use super::*;
    use crate::lock::tests::Told;
    use crate::traits::Steal;

    #[test]
    fn a_push_waits_at_each_second_loss_and_twice_as_long_up_to_the_longest() {
        let mut waits = Waits::new();
        let lost = |waits: &mut Waits| Told::waits(|| waits.lost::<Told>());
        let mut pauses = FIRST_WAIT;
        for _ in 0..6 {
            assert_eq!((lost(&mut waits), lost(&mut waits)), ((pauses, 1), (0, 0)));
            pauses = (2 * pauses).min(LONGEST_WAIT);
        }
        assert_eq!(pauses, LONGEST_WAIT);
    }

    /// How a push waits that has read `tickets` at 0, of an injector with blocks of two slots into
    /// which others have pushed since.
    fn waits_after(others: u64) -> (u32, u32) {
        let injector = Injector::<u64, Told, 2>::new();
        (0..others).for_each(|task| injector.push(task));
        let waits = Told::waits(|| assert!(injector.push_slowly(others, 0).is_ok()));
        let tasks: Vec<_> = (0..=others).map(|_| injector.steal()).collect();
        assert_eq!(tasks, (0..=others).map(Steal::Success).collect::<Vec<_>>());
        waits
    }

    #[test]
    fn a_push_waits_that_has_lost_or_whose_block_is_behind() {
        assert_eq!(waits_after(0), (0, 0));
        assert_eq!(waits_after(1), (FIRST_WAIT, 1), "in the same block: its exchange is lost");
        assert_eq!(waits_after(3), (FIRST_WAIT, 1), "in a block before that of the hint");
    }
}
