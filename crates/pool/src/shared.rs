//! What the handles of one [`TaskPool`](crate::TaskPool) share.

use std::sync::Arc;

use poach_memory::Machine;

use crate::admission::{Admission, Room};
use crate::policy::{Policy, Taker};
use crate::salsa::Salsa;
use crate::seats::Seats;

pub(crate) struct Shared<T: Send> {
    pub(crate) pools: Arc<Salsa<T>>,
    pub(crate) seats: Seats<T>,
    pub(crate) admission: Admission<Machine>,
    pub(crate) policy: Policy,
}

impl<T: Send> Shared<T> {
    /// Drops all tasks in the pool, which nobody is left to take. Where there is no memory for a consumer's entry they stay until the
    /// pool is dropped.
    #[cold]
    #[inline(never)]
    pub(crate) fn discard(&self) {
        if let Ok(mut taker) = Taker::at(&self.pools, Policy::default(), 0) {
            self.discard_by(&mut taker);
        }
    }

    pub(crate) fn discard_by(&self, taker: &mut Taker<T, Salsa<T>>) {
        taker.discard(|| {
            if let Some(room) = &self.admission.room {
                room.release();
            }
        });
    }

    /// The most tasks that the pool may hold, if there is a limit.
    pub(crate) fn capacity(&self) -> Option<usize> {
        self.admission.room.as_ref().map(Room::capacity)
    }

    /// Whether the pool holds as many tasks as it may, or is about to.
    pub(crate) fn is_full(&self) -> bool {
        self.admission.room.as_ref().is_some_and(Room::is_full)
    }
}
