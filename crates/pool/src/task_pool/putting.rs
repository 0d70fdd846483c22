//! A put under way: steps p1 and p4 to p6 of [`admission`](crate::task_pool::admission).

use std::mem::{self, ManuallyDrop};

use poach_memory::{CachePadded, Memory, Ordering, Word};

use super::gate::Gate;

pub(crate) type Busy<M> = CachePadded<<M as Memory>::Word>;

/// A put under way. Its drop ends the put and wakes threads that may wait for that.
#[must_use]
pub(crate) struct Putting<'a, M: Memory> {
    pub(crate) busy: &'a Busy<M>,
    gate: &'a Gate<M>,
}

impl<'a, M: Memory> Putting<'a, M> {
    #[inline(always)]
    pub(crate) fn begin(busy: &'a Busy<M>, gate: &'a Gate<M>) -> Self {
        // Relaxed: the fence of the following look at the gate orders it.
        busy.store(1, Ordering::Relaxed);
        Putting { busy, gate }
    }

    /// No code can panic from here to the put's [end](Putting::end).
    #[inline(always)]
    pub(crate) fn go_on(self) {
        mem::forget(self);
    }

    /// The put that [went on](Putting::go_on).
    #[inline(always)]
    pub(crate) fn of(busy: &'a Busy<M>, gate: &'a Gate<M>) -> Self {
        Putting { busy, gate }
    }

    /// As [`Gate::is_plain`]; if so, no other check is needed.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.gate.is_plain()
    }

    /// Ends a put whose task is in the pool. Returns whether the pool is closed: then check
    /// [`is_abandoned`](Sides::is_abandoned).
    #[inline(always)]
    pub(crate) fn end(self) -> bool {
        let putting = ManuallyDrop::new(self);
        putting.over();
        !putting.gate.is_plain() && wake_and_look(putting.gate)
    }

    /// p4.
    #[inline(always)]
    fn over(&self) {
        // Release pairs with `is_settled`: a thread that sees the put finished sees its task.
        self.busy.store(0, Ordering::Release);
    }
}

/// p5, p6 if the gate is not plain. Returns whether it is closed.
#[cold]
#[inline(never)]
fn wake_and_look<M: Memory>(gate: &Gate<M>) -> bool {
    gate.wake(1);
    gate.is_closed()
}

impl<M: Memory> Drop for Putting<'_, M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.over();
        self.gate.wake(1);
    }
}
