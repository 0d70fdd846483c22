//! The idempotent double-ended queue: the owner takes the youngest task, thieves the oldest.
//!
//! Source: Michael, Vechev and Saraswat, *Idempotent Work Stealing*, Figure 3.
//!
//! # How it works
//!
//! One word, the anchor, holds the place of the oldest task (`head`) and a tag; another, `tail`,
//! the place above the youngest, which only the owner writes. A *run* is pushes that no pop of a
//! task comes between: at most as many as there were free slots at its first.
//!
//! | | push | pop | thief |
//! |---|---|---|---|
//! | 1 | a run's first: reads the anchor `(head, tag)` | reads the anchor | reads the anchor `(head, tag)` |
//! | 2 | a run's first: stores the anchor `(head, tag + 1)` | no task below `tail`: empty | reads `tail`: no task below it: empty |
//! | 3 | writes the slot at `tail` | reads the slot at `tail - 1`, and ends the run | reads the slot at `head` |
//! | 4 | stores `tail + 1` | stores `tail - 1` | compares and swaps the anchor for `(head + 1, tag)` |
//!
//! A push's step 2 may undo what thieves did since its step 1: those tasks then come out again. (In
//! the paper the anchor holds the number of tasks as well, and each push and pop stores it. A tag
//! beside that has 20 bits, which wrap within 1.5 ms.)
//!
//! The owner may pop a task that thieves take at the same time, so that `head` comes to stand above
//! `tail`. Such a queue is empty, and the next push, which is a run's first, puts `head` back to
//! `tail`, or its task would stand below `head`.
//!
//! # Why no task is lost
//!
//! A tag `g` lasts from the step 2 of a run's first push to that of the next run: that store of the
//! anchor `(first, g)`, the run's pushes, and then pops. The run grows the array, if it must,
//! before its step 2, and it pushes below `first` and a capacity. So while the tag is `g`
//!
//! - each index is written once at most, before all that is popped, and no slot of an index from
//!   `first` on is reused;
//! - thieves alone write the anchor: `head` rises one by one from `first`, by a capacity at most,
//!   so its 23 bits name one index each.
//!
//! *A thief takes what it has read.* Its exchange succeeds if the anchor is still `(head, g)`, so
//! that nobody else has taken what stands at `head`, and no further run has begun. The thief sees
//! what the owner wrote before `(first, g)`: the slot, if it was written before the run, and a
//! `tail` that is the run's first index or later. (The owner releases, thieves' exchanges go on
//! with its release, the thief acquires.) If the run writes the slot, its first index is at or
//! below `head`, so a `tail` above `head` is of the push that writes the slot, or later. Then the
//! thief sees the slot (release and acquire of `tail`). If what it reads, of `tail` or of a slot,
//! is of a further run, it sees that run's anchor as well, and its exchange fails. An array that a
//! further run makes holds what stands at `head`, unless `head` is passed.
//!
//! *No task is passed over.* `head` is stepped up by exchanges alone. A run's first push leaves it
//! where it has read it, at or below where it is, or puts it down to `tail`, above which there is
//! nothing.
//!
//! *No push overwrites a task.* All tasks stand at or above `first`, and pushes stay below `first`
//! and a capacity.
//!
//! # How likely it is that a task is lost all the same
//!
//! The tag has 41 bits, so it comes back after 2^41 runs: an hour of pushes and pops by turns, at 2
//! ns each. A thief that lost its processor between its steps 1 and 4 for so long is deceived if it
//! then runs again at the one run of 2^41 that has left its tag, with `head` where it was.
//!
//! # Why the words share a line
//!
//! A push writes `tail`, and a thief reads both words and writes the anchor. In two lines these
//! pass each other. While the owner waits for the line of `tail`, which a thief has read, the thief
//! takes the anchor's line, for which the owner's next operation waits. With processors whose lines
//! take 190 ns to pass, a push and a pop took 25 to 130 ns so, and the thief got next to nothing.
//! In one line they take 7 to 8 ns, and with pushes that leave the anchor alone, 5 to 6. The end of
//! the run is in the same line, since a push needs that line anyway, and in the handle it could
//! share a line with what other threads read. (The notebook of the deques has the designs,
//! 2026-11-26.)
//!
//! # What it costs
//!
//! Instructions of a push and a pop by turns, in batches of 64, of a push and a steal, and of a pop
//! of nothing: 59, 42, 44 and 12. If each push stores the anchor they are 56, 58, 59 and 12
//! (`examples/queue_instructions.rs`, callgrind, 2026-11-26 and 2026-11-22).

use core::cell::Cell;
use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::anchor::{Front, MOST};
use super::{Repeatable, slots::Slots};
use crate::owned::Owned;
use crate::ring::{CapacityError, NoMemory};
use crate::traits::{OutOfMemory, Steal};

/// In one line; the module says why.
struct Ends<M: Memory> {
    anchor: M::Word,
    /// Above the youngest task. Written by the owner alone.
    tail: M::Word,
    /// The `tail` at which a push begins a run: where the last one ends.
    run_end: Owned<Cell<u64>>,
}

struct Shared<M: Memory> {
    ends: CachePadded<Ends<M>>,
    slots: Slots<M>,
}

impl<M: Memory> Shared<M> {
    fn new(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        if capacity.is_power_of_two() && capacity > MOST {
            return Err(CapacityError::TooLarge(capacity));
        }
        let ends = CachePadded::new(Ends {
            anchor: M::Word::new(Front { head: index, tag: 0 }.pack()),
            tail: M::Word::new(index),
            run_end: Owned::new(Cell::new(index)),
        });
        Ok(Shared { ends, slots: Slots::new(capacity)? })
    }

    fn len(&self) -> usize {
        // Relaxed: lengths are estimates.
        let front = Front::unpack(self.ends.anchor.load(Ordering::Relaxed));
        usize::try_from(front.tasks(self.ends.tail.load(Ordering::Relaxed))).unwrap_or(0)
    }
}

repeating! {
    /// The owner of an idempotent double-ended queue. **A task may come out more than once.** The
    /// module says what a thief would have to sleep through for one to be lost.
    ///
    IdempotentDeque, pub starting_at
}

impl<T: Repeatable, M: Memory> IdempotentDeque<T, M> {
    /// Adds a task (`put` of Figure 3).
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not, or
    /// holds 2^21 tasks.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        // Before anything of the queue is read: it is the client's code, which may use this queue.
        let word = task.into_word();
        let Shared { ends, slots } = &*self.shared;
        // Relaxed: only the owner writes it.
        let tail = ends.tail.load(Ordering::Relaxed);
        if tail == self.run_end().get() && self.begin_run(tail).is_err() {
            return Err(OutOfMemory(task));
        }
        slots.write(tail, word);
        // Release: the slot is seen by who acquires this.
        ends.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Takes the youngest task (`take` of Figure 3).
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let Shared { ends, slots } = &*self.shared;
        // Relaxed, both: as in `try_push`, and the owner wrote the slots itself.
        let tail = ends.tail.load(Ordering::Relaxed);
        let front = Front::unpack(ends.anchor.load(Ordering::Relaxed));
        if front.tasks(tail) <= 0 {
            return None;
        }
        let tail = tail.wrapping_sub(1);
        self.run_end().set(tail);
        let word = slots.read(tail);
        // Release: who acquires it still sees the other slots.
        ends.tail.store(tail, Ordering::Release);
        Some(T::from_word(word))
    }

    #[inline(always)]
    fn run_end(&self) -> &Cell<u64> {
        // SAFETY: this is the owner's handle, and the returned reference borrows it.
        unsafe { self.shared.ends.run_end.get() }
    }

    /// Steps 1 and 2 of a push at `tail`.
    #[inline(always)]
    fn begin_run(&self, tail: u64) -> Result<(), NoMemory> {
        let Shared { ends, slots } = &*self.shared;
        // Relaxed: what thieves do to it meanwhile may be undone.
        let mut front = Front::unpack(ends.anchor.load(Ordering::Relaxed));
        let tasks = front.tasks(tail);
        let capacity = slots.capacity() as i64;
        let mut free = capacity - tasks;
        if tasks < 0 {
            front.head = tail;
            free = capacity;
        } else if free == 0 {
            slots.grow(tail.wrapping_sub(tasks as u64), tail, MOST)?;
            // It has doubled.
            free = capacity;
        }
        self.run_end().set(tail.wrapping_add(free as u64));
        // Release: a thread that acquires it sees the slots of the runs before. And the stores of
        // the run release, so that a thread that sees one of them sees this.
        ends.anchor.store(Front { tag: front.tag + 1, ..front }.pack(), Ordering::Release);
        Ok(())
    }
}

impl<T: Repeatable, M: Memory> Thief<T, M> {
    /// Takes the oldest task (`steal` of Figure 3).
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let Shared { ends, slots } = &*self.shared;
        // Acquire: pairs with the release of a run's first push, which then shows the slots and the
        // `tail` of what was before.
        let seen = ends.anchor.load(Ordering::Acquire);
        let front = Front::unpack(seen);
        // Acquire: pairs with the release of a push, whose slot is then seen.
        if front.tasks(ends.tail.load(Ordering::Acquire)) <= 0 {
            return Steal::Empty;
        }
        let word = slots.read(front.head);
        let next = Front { head: front.head + 1, ..front }.pack();
        // AcqRel: the next thief that acquires this sees what this one had acquired.
        match ends.anchor.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Steal::Success(T::from_word(word)),
            Err(_) => Steal::Retry,
        }
    }
}
