//! Accesses of an atomic word that are not atomic: its owner says that no other thread uses it.
//!
//! They take no step, since no other thread uses the word at the time, and so none can notice. The
//! clocks check this in both directions: the access must also happen before a later store.

use super::{Loc, Location, Machine, Touch};

fn unheard(touches: &[Option<Touch>], index: usize, clock: &[u16]) -> Option<Site> {
    let mut others = touches.iter().enumerate().filter(|(by, _)| *by != index);
    others.find_map(|(by, touch)| touch.filter(|(time, _)| *time > clock[by])).map(|(_, site)| site)
}

type Site = &'static Location<'static>;

impl Machine {
    /// What a word holds, for a thread that uses it alone, and writes it if `writes`. An error is the
    /// access of another thread that nothing orders before this.
    pub(crate) fn alone(
        &mut self,
        index: usize,
        loc: Loc,
        writes: bool,
        site: Site,
    ) -> Result<u64, Site> {
        let clock = self.threads[index].clock;
        let known = if writes { self.register.used(loc) } else { self.register.stored(loc) };
        if let Some(other) = unheard(known, index, &clock) {
            return Err(other);
        }
        self.register.use_alone(loc, index, (clock[index], site));
        Ok(self.visible(index, loc))
    }

    /// A thread stores to a word. It is a race if another has used it alone of which the thread has
    /// not heard.
    pub(super) fn note_store(&mut self, index: usize, loc: Loc) {
        let thread = &self.threads[index];
        let touch = (thread.clock[index], thread.site);
        self.register.store_to(loc, index, touch);
        if let Some(alone) = self.register.alone(loc) {
            self.used_alone = unheard(alone, index, &thread.clock);
        }
    }
}
