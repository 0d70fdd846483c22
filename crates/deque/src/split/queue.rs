//! The split deque for tasks that are values: they are moved in by `push`, out by `pop` and `steal`.
//!
//! Source: as [`Stack`](super::Stack); stealing several tasks at once is the extension of section
//! 3.3. The slots form a ring of a fixed, power-of-two number, addressed by indices that wrap.
//!
//! # When may a slot be written again?
//!
//! A thief claims tasks first and copies them out afterwards, so a slot below `tail` may still be
//! read. Each thief adds to `copied` when it is done. All claims together have claimed `tail` slots
//! (indices start at 0, and only claims move `tail`: the owner never needs to
//! [reset](super::Bounds::reset) here, its head does not go below `tail`). So if the owner reads
//! `copied` first and `tail` afterwards, and the two are equal, then every claim up to that `tail` had
//! been copied out when it read `copied`: `copied` cannot exceed what had been claimed by then, which
//! cannot exceed the later `tail`. The owner keeps that `tail` and looks again only when the ring
//! seems full. The `copied` additions release, the owner's load acquires: a slot is read before it is
//! overwritten.

use core::cell::Cell as Private;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use std::sync::Arc;

use poach_memory::{CachePadded, Cell, Memory, Ordering, Word};

use super::{Bounds, Claim};

/// The thieves' side of a split queue. Shared by reference; see [`QueueOwner`] for the owner's.
pub struct Queue<T, M: Memory> {
    bounds: CachePadded<Bounds<M>>,
    /// How many tasks thieves have copied out, wrapping like an index.
    copied: CachePadded<M::Word>,
    /// 1 while a thief waits for tasks to be shared.
    requested: CachePadded<M::Word>,
    slots: Box<[M::Cell<MaybeUninit<T>>]>,
}

// SAFETY: tasks are handed from one thread to another by value, so T must be Send; a task is only
// ever reached by the one thread that took it, so T need not be Sync.
unsafe impl<T: Send, M: Memory> Send for Queue<T, M> {}
// SAFETY: as above; everything else in the queue is atomic.
unsafe impl<T: Send, M: Memory> Sync for Queue<T, M> {}

/// The owner's side of a split queue: it may move between threads, but not be shared.
pub struct QueueOwner<T, M: Memory> {
    queue: Arc<Queue<T, M>>,
    head: Private<u32>,
    split: Private<u32>,
    /// Slots below this index have been copied out.
    free: Private<u32>,
    not_sync: PhantomData<*const ()>,
}

// SAFETY: the owner's cells are plain data that move with it.
unsafe impl<T: Send, M: Memory> Send for QueueOwner<T, M> {}

impl<T: Send, M: Memory> QueueOwner<T, M> {
    /// A queue of at most `capacity` tasks.
    ///
    /// # Panics
    ///
    /// If `capacity` is not a power of two from 1 to 2^31.
    pub fn new(capacity: usize) -> Self {
        assert!(
            capacity.is_power_of_two() && capacity <= 1 << 31,
            "a split queue's capacity is a power of two up to 2^31, not {capacity}"
        );
        let slots = (0..capacity).map(|_| M::Cell::new(MaybeUninit::uninit())).collect();
        QueueOwner {
            queue: Arc::new(Queue {
                bounds: CachePadded::new(Bounds::new(0)),
                copied: CachePadded::new(M::Word::new(0)),
                requested: CachePadded::new(M::Word::new(0)),
                slots,
            }),
            head: Private::new(0),
            split: Private::new(0),
            free: Private::new(0),
            not_sync: PhantomData,
        }
    }

    /// The thieves' side.
    pub fn queue(&self) -> &Arc<Queue<T, M>> {
        &self.queue
    }

    /// Pushes a task. `Ok(true)` if that made tasks visible to thieves, because one had asked.
    ///
    /// Wait-free, constant time; no fence and no locked instruction unless a thief has asked.
    ///
    /// # Errors
    ///
    /// The task itself, if the ring is full.
    #[inline]
    pub fn push(&self, task: T) -> Result<bool, T> {
        let head = self.head.get();
        if head.wrapping_sub(self.free.get()) as usize == self.queue.slots.len()
            && !self.make_room()
        {
            return Err(task);
        }
        self.queue.slot(head).with_mut(|slot| {
            // SAFETY: the slot is free: its last task was popped, or copied out (module comment);
            // only the owner writes to free slots.
            unsafe { slot.write(MaybeUninit::new(task)) }
        });
        self.head.set(head.wrapping_add(1));
        // Relaxed: a request seen late is answered late.
        Ok(self.queue.requested.load(Ordering::Relaxed) != 0 && self.share())
    }

    /// Pops the youngest task, and says whether that made tasks visible to thieves.
    ///
    /// Constant time; no fence and no locked instruction while the task is private, a lock-free loop
    /// over one compare-and-swap when it is shared.
    #[inline]
    pub fn pop(&self) -> Option<(T, bool)> {
        if self.head.get() == self.split.get() {
            self.split.set(self.queue.bounds.take_back()?);
        }
        let head = self.head.get().wrapping_sub(1);
        self.head.set(head);
        let task = self.queue.slot(head).with(|slot| {
            // SAFETY: slots in `split..head` hold tasks of the owner's that no thief can claim.
            unsafe { slot.read() }
        });
        // SAFETY: as above, the slot held a task.
        let task = unsafe { task.assume_init() };
        // Relaxed: as in `push`.
        Some((task, self.queue.requested.load(Ordering::Relaxed) != 0 && self.share()))
    }

    /// Whether the queue has no task, neither private nor shared, just now.
    pub fn is_empty(&self) -> bool {
        self.head.get() == self.split.get() && self.queue.bounds.shared() == 0
    }

    /// Answers a request: shares half of what is private, the older half, rounded up.
    #[cold]
    fn share(&self) -> bool {
        let (split, head) = (self.split.get(), self.head.get());
        let private = head.wrapping_sub(split);
        if private == 0 {
            return false;
        }
        // Relaxed: a flag without data; a thief that asks after this asks anew.
        self.queue.requested.store(0, Ordering::Relaxed);
        let to = split.wrapping_add(private.div_ceil(2));
        self.queue.bounds.share(split, to);
        self.split.set(to);
        true
    }

    /// Looks whether thieves have made room since.
    #[cold]
    fn make_room(&self) -> bool {
        // Acquire: pairs with the thieves' release; and `tail` must be read after it.
        let copied = self.queue.copied.load(Ordering::Acquire) as u32;
        if copied == self.queue.bounds.tail() {
            self.free.set(copied);
        }
        self.head.get().wrapping_sub(self.free.get()) as usize != self.queue.slots.len()
    }
}

impl<T, M: Memory> Queue<T, M> {
    #[inline(always)]
    fn slot(&self, index: u32) -> &M::Cell<MaybeUninit<T>> {
        &self.slots[index as usize & (self.slots.len() - 1)]
    }

    /// A thief takes the oldest shared task. If there is none it leaves a request with the owner.
    ///
    /// Any thread. Lock-free; never waits for the owner.
    ///
    /// # Errors
    ///
    /// [`Claim::Empty`] if nothing is shared, [`Claim::Lost`] if another was faster.
    #[inline]
    pub fn steal(&self) -> Result<T, Claim> {
        let mut stolen = None;
        self.steal_up_to(|_| 1, |task| stolen = Some(task))?;
        stolen.ok_or(Claim::Empty)
    }

    /// A thief takes the older half of the shared tasks, at most `limit` of them, and hands them to
    /// `each` in the order in which they were pushed. Returns how many.
    ///
    /// # Errors
    ///
    /// As [`steal`](Queue::steal).
    ///
    /// # Panics
    ///
    /// If `limit` is zero.
    pub fn steal_half(&self, limit: u32, each: impl FnMut(T)) -> Result<u32, Claim> {
        assert!(limit > 0, "a thief that may take no task cannot steal");
        self.steal_up_to(|shared| shared.div_ceil(2).min(limit), each)
    }

    fn steal_up_to(
        &self,
        want: impl FnOnce(u32) -> u32,
        mut each: impl FnMut(T),
    ) -> Result<u32, Claim> {
        match self.bounds.claim(want) {
            Claim::Taken { first, count } => {
                // Copies everything out before it hands anything on: `each` may panic.
                let mut done = Copied { queue: self, next: first, end: first.wrapping_add(count) };
                while let Some(task) = done.next() {
                    each(task);
                }
                Ok(count)
            }
            Claim::Empty => {
                self.request();
                Err(Claim::Empty)
            }
            Claim::Lost => Err(Claim::Lost),
        }
    }

    /// Asks the owner to share at its next push or pop. Any thread; wait-free.
    pub fn request(&self) {
        // Relaxed, both: a flag without data. It is only written if it must change, so that the
        // owner's line stays where it is.
        if self.requested.load(Ordering::Relaxed) == 0 {
            self.requested.store(1, Ordering::Relaxed);
        }
    }

    /// How many tasks thieves could claim just now. Any thread; wait-free; out of date at once.
    pub fn shared(&self) -> u32 {
        self.bounds.shared()
    }
}

/// A thief's claim: hands out its tasks, and says to the owner when all are out, even if the
/// receiver panics (the tasks not handed on are then dropped).
struct Copied<'q, T, M: Memory> {
    queue: &'q Queue<T, M>,
    next: u32,
    end: u32,
}

impl<T, M: Memory> Copied<'_, T, M> {
    fn next(&mut self) -> Option<T> {
        if self.next == self.end {
            return None;
        }
        let task = self.queue.slot(self.next).with(|slot| {
            // SAFETY: claimed by this thief and initialised by the owner before it was shared; the
            // owner does not write to it until `copied` says so.
            unsafe { slot.read() }
        });
        self.next = self.next.wrapping_add(1);
        // Release: the reads of this slot come before the owner's next write to it.
        self.queue.copied.fetch_add(1, Ordering::Release);
        // SAFETY: as above.
        Some(unsafe { task.assume_init() })
    }
}

impl<T, M: Memory> Drop for Copied<'_, T, M> {
    fn drop(&mut self) {
        while let Some(task) = self.next() {
            drop(task);
        }
    }
}

impl<T, M: Memory> Drop for QueueOwner<T, M> {
    fn drop(&mut self) {
        // Takes everything back and drops it. Thieves that outlive the owner find nothing.
        loop {
            if self.head.get() == self.split.get() {
                match self.queue.bounds.take_back() {
                    Some(split) => self.split.set(split),
                    None => break,
                }
            }
            let head = self.head.get().wrapping_sub(1);
            self.head.set(head);
            let task = self.queue.slot(head).with(|slot| {
                // SAFETY: as in `pop`.
                unsafe { slot.read() }
            });
            // SAFETY: as in `pop`.
            drop(unsafe { task.assume_init() });
        }
    }
}
