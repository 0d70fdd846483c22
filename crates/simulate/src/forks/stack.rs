//! The runtime's task stacks on the simulated memory, one a worker, for tasks that are plain
//! values.
//!
//! The owner forks a task and joins the newest one; a thief steals the oldest. The stack is the
//! shipping one ([`poach_deque::split::Stack`]). This module makes its contracts impossible to
//! break, and uses a slot as the runtime does: a thief writes its number there, and at the end that
//! the task is done.

use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

use poach_deque::split::{
    Context, Exposure, Head, Popped, PushError, Slot, Stack, StackError, Status,
};
use poach_memory::{Ordering, Word};
use poach_runtime::generic::{Wakes, steal};

use super::Error;
use super::seeker::{Bed, SimulatedClock};
use crate::{Coherent, Description, Simulation};

/// What every task is pushed with. Thieves of these stacks ask for no other descriptor.
#[repr(align(8))]
struct Descriptor;

static DESCRIPTOR: Descriptor = Descriptor;

/// Whom a stack wakes when it shares tasks: the runtime's sleepers; under Lace's loop nobody
/// sleeps.
pub(super) struct Events(Option<Wakes<Coherent, Bed, SimulatedClock>>);

impl Context for Events {
    fn shared(&self) {
        self.0.iter().for_each(Context::shared);
    }

    fn reached_split(&self) {
        self.0.iter().for_each(Context::reached_split);
    }

    fn should_share(&self, private: u32) -> bool {
        self.0.as_ref().is_none_or(|wakes| wakes.should_share(private))
    }
}

/// The stacks of all workers.
pub(super) struct Stacks<T> {
    each: Vec<Stack<Coherent, Events>>,
    owned: Vec<Cell<bool>>,
    task: PhantomData<T>,
}

impl<T: Copy> Stacks<T> {
    /// One stack of the same number of slots for each worker.
    ///
    /// # Errors
    ///
    /// If there is no address space for them.
    pub(super) fn new(
        workers: usize,
        slots: usize,
        wakes: impl Fn(usize) -> Option<Wakes<Coherent, Bed, SimulatedClock>>,
    ) -> Result<Self, StackError> {
        const { assert!(Slot::<Coherent>::fits::<T>(), "a task fits in a slot") };
        let make = |worker| Stack::new(slots, Events(wakes(worker)));
        Ok(Stacks {
            each: (0..workers).map(make).collect::<Result<_, _>>()?,
            owned: vec![Cell::new(false); workers],
            task: PhantomData,
        })
    }

    /// The owner's side of a stack.
    ///
    /// # Panics
    ///
    /// If it was had before.
    pub(super) fn owner(&self, worker: usize) -> Owner<'_, T> {
        assert!(!self.owned[worker].replace(true), "a stack has one owner");
        // SAFETY: `owned` lets one `Owner` be made, which is neither copied nor sent to another
        // thread, keeps all heads of the stack to itself, and borrows `self`.
        let bottom = unsafe { self.each[worker].bottom() };
        Owner { heads: vec![bottom], stacks: PhantomData }
    }

    /// Takes the oldest task that `victim` shares, for `thief`; leaves a request if there is none.
    pub(super) fn steal(&self, victim: usize, thief: usize) -> Option<Stolen<'_, T>> {
        let slot = steal(&self.each[victim])?.slot();
        // SAFETY: `steal` has claimed it just now.
        Some(unsafe { Self::take(slot, victim, thief) })
    }

    /// `thief` takes the task of a slot.
    ///
    /// # Safety
    ///
    /// The thief has claimed the slot, and it is one of these stacks'.
    unsafe fn take(slot: &Slot<Coherent>, victim: usize, thief: usize) -> Stolen<'_, T> {
        // SAFETY: the caller has claimed the task, every task of these stacks is a `T`, and `T` is
        // `Copy`.
        let task = unsafe { slot.take::<T>() };
        // Relaxed: a hint where to steal.
        slot.status().store((thief as u64 + 1) << Status::THIEF_SHIFT, Ordering::Relaxed);
        Stolen { slot, task, victim }
    }

    /// Leaves a request with `victim`.
    pub(super) fn request(&self, victim: usize) {
        self.each[victim].request();
    }

    /// Whether `victim` shares tasks.
    pub(super) fn shares(&self, victim: usize) -> bool {
        self.each[victim].shared() != 0
    }

    /// Whether `victim` has private tasks that a thief would find.
    pub(super) fn has_private_tasks(&self, victim: usize) -> bool {
        self.each[victim].has_private_tasks()
    }

    /// Makes private tasks of `victim` visible.
    pub(super) fn expose(&self, victim: usize) -> Exposure {
        self.each[victim].expose()
    }

    /// How often owners have shared tasks, and taken some back.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.each.iter().map(Stack::counts).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    }
}

/// A task that a thief runs.
pub(super) struct Stolen<'s, T> {
    slot: &'s Slot<Coherent>,
    pub(super) task: T,
    /// The worker that forked it.
    pub(super) victim: usize,
}

impl<T> Stolen<'_, T> {
    /// The task is done.
    pub(super) fn finish(self) {
        // Release: pairs with the owner's look.
        self.slot.status().store(Status::DONE, Ordering::Release);
    }
}

/// What a join finds.
pub(super) enum Joined<T> {
    /// The task, which nobody else runs.
    Own(T),
    /// A thief has it; [`Owner::is_done`] says when it is done.
    Stolen,
}

/// The owner's side of a stack.
pub(super) struct Owner<'s, T> {
    /// The head above each task, from the bottom on; the runtime has the last one in a register.
    heads: Vec<Head<Coherent, Events>>,
    stacks: PhantomData<&'s Stacks<T>>,
}

impl<T: Copy> Owner<'_, T> {
    /// How many tasks there are, with stolen ones.
    pub(super) fn depth(&self) -> usize {
        self.heads.len() - 1
    }

    fn top(&self) -> Head<Coherent, Events> {
        *self.heads.last().expect("the bottom stays")
    }

    /// Forks a task.
    ///
    /// # Errors
    ///
    /// If the stack is full.
    pub(super) fn fork(&mut self, task: T) -> Result<(), PushError> {
        let descriptor = (&raw const DESCRIPTOR).cast_mut().cast();
        // SAFETY: `self` is the stack's owner, which `'s` keeps; the descriptor is an aligned
        // address; a `T` fits, which `new` asserts, and is `Copy`. `join` pops in reverse
        // order; what is never popped is plain bytes.
        let above = unsafe { self.top().push(descriptor, &raw const task) }?;
        self.heads.push(above);
        Ok(())
    }

    /// Takes the newest task back.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(super) fn join(&mut self) -> Joined<T> {
        let above = self.heads.pop();
        let head = self.top();
        // SAFETY: `self` is the stack's owner, and the newest task was pushed at this head.
        if unsafe { head.pop() } == Popped::Stolen {
            self.heads.extend(above);
            return Joined::Stolen;
        }
        // SAFETY: `self` is the stack's owner, and the head was pushed to.
        let slot = unsafe { head.slot() };
        // SAFETY: the task is the owner's again, a `T`, and `Copy`.
        Joined::Own(unsafe { slot.take::<T>() })
    }

    /// The slot of the newest task.
    fn newest(&self) -> Option<&Slot<Coherent>> {
        let head = self.heads.iter().rev().nth(1)?;
        // SAFETY: `self` is the stack's owner, and the head was pushed to.
        Some(unsafe { head.slot() })
    }

    /// Whether the newest task, which was stolen, is done.
    pub(super) fn is_done(&self) -> bool {
        // Acquire: pairs with the thief's Release.
        self.newest().is_some_and(|slot| slot.status().load(Ordering::Acquire) & Status::DONE != 0)
    }

    /// The thief of the newest task, once it has written its number.
    pub(super) fn thief(&self) -> Option<usize> {
        // Relaxed: a hint where to steal.
        let status = self.newest()?.status().load(Ordering::Relaxed);
        ((status >> Status::THIEF_SHIFT) as usize).checked_sub(1)
    }

    /// Frees the slot of the newest task, if that was stolen and [is done](Owner::is_done). Whether
    /// it was.
    pub(super) fn retire(&mut self) -> bool {
        if !self.is_done() {
            return false;
        }
        self.heads.pop();
        // SAFETY: `self` is the stack's owner. A status of DONE, which `is_done` has acquired, is a
        // thief's, so the pop of this head said `Stolen`; and all above was popped, as
        // `heads` ends here.
        unsafe { self.top().retire() };
        true
    }
}

/// Picoseconds that a fork and its join take on a machine if nobody steals.
///
/// # Errors
///
/// If there is no address space for a stack, or the simulation fails.
#[expect(clippy::missing_panics_doc, reason = "the stack holds as many tasks as are forked")]
pub fn private_fork(machine: &Description) -> Result<u64, Error> {
    const TIMES: u32 = 1_000;
    let stacks = Rc::new(Stacks::<u32>::new(1, TIMES as usize, |_| None).map_err(Error::Stacks)?);
    let took = Rc::new(Cell::new(0));
    let mut simulation = Simulation::new(machine);
    let (mine, time) = (Rc::clone(&stacks), Rc::clone(&took));
    simulation.thread(0, "worker", move || {
        let mut owner = mine.owner(0);
        let turn = |owner: &mut Owner<'_, u32>| {
            (0..TIMES).for_each(|task| owner.fork(task).expect("the stack holds so many"));
            for _ in 0..TIMES {
                let _ = owner.join();
            }
        };
        turn(&mut owner);
        let start = crate::now();
        turn(&mut owner);
        time.set((crate::now() - start) / u64::from(TIMES));
    });
    simulation.run()?;
    Ok(took.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_one_owner_and_gives_each_task_once() {
        let stacks = Stacks::<u32>::new(1, 8, |_| None).unwrap();
        let mut owner = stacks.owner(0);
        for task in 1..=3 {
            owner.fork(task).unwrap();
        }
        // Nothing is shared before the owner has answered the request.
        assert!(stacks.steal(0, 6).is_none());
        owner.fork(4).unwrap();
        let stolen = stacks.steal(0, 6).expect("the owner has answered");
        assert_eq!(stolen.task, 1);
        for task in [4, 3, 2] {
            assert!(matches!(owner.join(), Joined::Own(own) if own == task));
        }
        assert!(matches!(owner.join(), Joined::Stolen));
        assert!(!owner.retire());
        assert_eq!((owner.thief(), owner.depth()), (Some(6), 1));
        stolen.finish();
        assert!(owner.retire());
        assert_eq!(owner.depth(), 0);
    }

    #[test]
    #[should_panic = "a stack has one owner"]
    fn a_second_owner_is_refused() {
        let stacks = Stacks::<u32>::new(1, 8, |_| None).unwrap();
        let _owner = stacks.owner(0);
        let _second = stacks.owner(0);
    }

    #[test]
    fn a_full_stack_says_so() {
        let stacks = Stacks::<u32>::new(1, 2, |_| None).unwrap();
        let mut owner = stacks.owner(0);
        owner.fork(1).unwrap();
        owner.fork(2).unwrap();
        assert!(owner.fork(3).unwrap_err().to_string().contains("full"));
    }
}
