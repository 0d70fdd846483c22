//! What the handles of one [`TaskPool`](crate::TaskPool) share.

use std::sync::Arc;

use poach_memory::Machine;

use super::admission::Admission;
use super::seats::Seats;
use crate::policy::{Policy, Taker};
use crate::salsa::Salsa;

pub(crate) struct Shared<T: Send> {
    pub(crate) pools: Arc<Salsa<T>>,
    pub(crate) seats: Seats<T>,
    pub(crate) admission: Admission<Machine>,
    pub(crate) policy: Policy,
}

impl<T: Send> Shared<T> {
    /// If there is no memory for a consumer's entry the tasks stay until the pool is dropped.
    #[cold]
    #[inline(never)]
    pub(crate) fn discard(&self) {
        if let Ok(mut seat) = self.seats.try_take(&self.pools, &self.policy, 0) {
            self.discard_by(&mut seat);
        }
    }

    pub(crate) fn discard_by(&self, taker: &mut Taker<T, Salsa<T>>) {
        taker.discard(|| {
            if let Some(room) = &self.admission.room {
                room.release();
            }
        });
    }
}

/// Methods of each handle about its pool, for an `impl` of a type with a field `shared`.
macro_rules! of_the_pool {
    () => {
        /// Closes the pool: every put from now on fails, and once all tasks that were put are taken
        /// every get answers [`Closed`](crate::Closed). Returns whether this call closed it.
        ///
        /// A put that runs at the same time either fails or its task is found by a consumer.
        #[doc(alias = "disconnect")]
        pub fn close(&self) -> bool {
            self.shared.admission.close()
        }

        /// Whether the pool is closed. It may still hold tasks.
        #[doc(alias = "is_disconnected")]
        pub fn is_closed(&self) -> bool {
            self.shared.admission.tasks.is_closed()
        }

        /// The approximate number of tasks in the pool: exact while no thread puts or takes. Looks
        /// at every chunk.
        pub fn len(&self) -> usize {
            self.shared.pools.len()
        }

        /// Whether [`len`](Self::len) is 0. Only a consumer's get can be certain.
        pub fn is_empty(&self) -> bool {
            self.shared.pools.is_empty()
        }

        /// The [capacity](crate::Builder::capacity); `None` without a limit.
        pub fn capacity(&self) -> Option<usize> {
            self.shared.admission.room.as_ref().map($crate::task_pool::admission::Room::capacity)
        }

        /// Whether the pool holds or is about to hold as many tasks as its capacity. Never without
        /// a capacity.
        pub fn is_full(&self) -> bool {
            self.shared
                .admission
                .room
                .as_ref()
                .is_some_and($crate::task_pool::admission::Room::is_full)
        }
    };
}
pub(crate) use of_the_pool;

#[cfg(test)]
mod tests {
    use crate::TaskPool;
    use crate::salsa::MOST_CONSUMERS;

    use super::*;

    #[test]
    fn what_is_left_is_dropped_though_there_are_as_many_seats_as_can_be() {
        let pool = TaskPool::builder().chunk_length(4).build().unwrap();
        let mut producer = pool.producer().unwrap();
        let task = Arc::new(());
        producer.put(Arc::clone(&task)).unwrap();
        let Shared { seats, pools, policy, .. } = &**producer.shared();
        // Miri takes minutes for all, and sees as much with few.
        let most = if cfg!(miri) { 20 } else { MOST_CONSUMERS };
        let mut taken: Vec<_> = (0..most).map(|_| seats.take(pools, policy, 0)).collect();
        seats.give(taken.pop().unwrap());
        producer.shared().discard();
        assert_eq!(Arc::strong_count(&task), 1);
    }
}
