//! [`Consumer`]: one thread's handle to take tasks.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use poach_memory::Machine;

use super::admission::Room;
use super::error::{Closed, GetTimeoutError, TryGetError};
use super::iter::{Iter, TryIter};
use super::seats::{KEPT, OWNED};
use super::shared::{Shared, of_the_pool};
use super::sides::Side;
use crate::mechanism::NoHandle;
use crate::policy::Taker;
use crate::registry::try_box;
use crate::salsa::{Found, Salsa};

/// Takes tasks from a [`TaskPool`](crate::TaskPool).
///
/// One thread at a time uses it; it may be sent to another, between two calls. A
/// [clone](Consumer::clone) is another consumer of the same pool: each task goes to one of them.
/// Other consumers steal a dropped consumer's tasks. With the last consumer the pool is
/// [closed](crate::TaskPool#who-closes-a-pool), and what is left in it is dropped.
///
/// It cannot go to another thread in the middle of its use:
///
/// ```compile_fail,E0505
/// let pool = poach_pool::TaskPool::<u8>::new();
/// let mut consumer = pool.consumer().unwrap();
/// let mut tasks = consumer.drain();
/// let other = std::thread::spawn(move || consumer.try_get()); // still borrowed by `tasks`
/// tasks.next();
/// ```
pub struct Consumer<T: Send> {
    seat: Seat<T>,
    pub(crate) shared: Arc<Shared<T>>,
    home: usize,
    /// A task that a get had taken when a waker panicked. Boxed: a task may be large.
    kept: Option<Box<T>>,
    room_given_back: bool,
    not_sync: PhantomData<Cell<()>>,
}

enum Seat<T: Send> {
    Plain(Taker<T, Salsa<T>>),
    /// In a pool with a capacity; or without a seat, until the next get; or for one get; or since a
    /// task was kept.
    Guarded(Option<Taker<T, Salsa<T>>>),
}

impl<T: Send> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("closed", &self.shared.admission.tasks.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T: Send> Consumer<T> {
    pub(crate) fn new(shared: &Arc<Shared<T>>, home: usize) -> Result<Self, NoHandle> {
        let seat = match shared.seats.begin(&shared.pools, &shared.policy, home)? {
            Some(seat) if shared.admission.room.is_none() => Seat::Plain(seat),
            seat => Seat::Guarded(seat),
        };
        shared.admission.sides.join(Side::Takes);
        let shared = Arc::clone(shared);
        let (kept, room_given_back, not_sync) = (None, false, PhantomData);
        Ok(Consumer { seat, shared, home, kept, room_given_back, not_sync })
    }

    /// One more consumer of the same pool and home. (`clone` panics where this gives an error.)
    ///
    /// # Errors
    ///
    /// [`NoHandle::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, NoHandle> {
        Consumer::new(&self.shared, self.home)
    }

    /// Takes a task; sleeps while there is none, after a bounded number of looks. A chunk's tasks
    /// come oldest first; the order of chunks is not promised.
    ///
    /// # Errors
    ///
    /// [`Closed`], once the pool is closed, or all handles that could put are gone, and all its
    /// tasks are taken.
    ///
    /// # Panics
    ///
    /// If a future's waker panics: the waker of a producer, which learns that the pool is no longer
    /// full, or of another consumer, which is woken in place of this one. The task that was taken
    /// is kept for this consumer's next get, or dropped with the consumer.
    #[inline]
    #[doc(alias = "recv")]
    pub fn get(&mut self) -> Result<T, Closed> {
        let mut place = MaybeUninit::uninit();
        let found = match self.find(&mut place) {
            Some(task) => task,
            None => match self.wait(None, &mut place) {
                Some(Ok(task)) => task,
                _ => return Err(Closed),
            },
        };
        Ok(found.read())
    }

    /// Takes a task if there is one. Lock-free, but for a mutex once the pool is closed.
    ///
    /// # Errors
    ///
    /// [`TryGetError::Empty`] if there was no task at an instant of this call;
    /// [`TryGetError::Closed`] if there will never be one.
    #[inline]
    #[doc(alias = "try_recv")]
    pub fn try_get(&mut self) -> Result<T, TryGetError> {
        let mut place = MaybeUninit::uninit();
        Ok(self.try_find(&mut place)?.read())
    }

    #[inline(always)]
    fn try_find(&mut self, place: &mut MaybeUninit<T>) -> Result<Found<T>, TryGetError> {
        match self.find(place) {
            Some(task) => Ok(task),
            None if !self.shared.admission.tasks.is_closed() => Err(TryGetError::Empty),
            None => match self.look(place) {
                Some(got) => got.map_err(|Closed| TryGetError::Closed),
                None => Err(TryGetError::Empty),
            },
        }
    }

    /// Takes a task; waits for one no longer than `timeout`, and returns within a slice of the
    /// system's scheduler from then. With [`Duration::ZERO`] it looks once.
    ///
    /// # Errors
    ///
    /// [`GetTimeoutError::TimedOut`] or [`GetTimeoutError::Closed`].
    #[doc(alias = "recv_timeout")]
    pub fn get_timeout(&mut self, timeout: Duration) -> Result<T, GetTimeoutError> {
        let mut place = MaybeUninit::uninit();
        let found = match self.try_find(&mut place) {
            Ok(task) => task,
            Err(TryGetError::Closed) => return Err(GetTimeoutError::Closed),
            // A time beyond the range of the clock is for ever.
            Err(TryGetError::Empty) => {
                self.wait_until(Instant::now().checked_add(timeout), &mut place)?
            }
        };
        Ok(found.read())
    }

    /// Takes a task; waits for one until `deadline`, which may have passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Consumer::get_timeout).
    #[doc(alias = "recv_deadline")]
    pub fn get_deadline(&mut self, deadline: Instant) -> Result<T, GetTimeoutError> {
        let mut place = MaybeUninit::uninit();
        let found = match self.try_find(&mut place) {
            Ok(task) => task,
            Err(TryGetError::Closed) => return Err(GetTimeoutError::Closed),
            Err(TryGetError::Empty) => self.wait_until(Some(deadline), &mut place)?,
        };
        Ok(found.read())
    }

    fn wait_until(
        &mut self,
        deadline: Option<Instant>,
        place: &mut MaybeUninit<T>,
    ) -> Result<Found<T>, GetTimeoutError> {
        match self.wait(deadline, place) {
            Some(got) => got.map_err(|Closed| GetTimeoutError::Closed),
            None => Err(GetTimeoutError::TimedOut),
        }
    }

    of_the_pool!();

    /// Takes up to `most` tasks and appends them to `into`; waits for the first, not for the rest.
    /// Returns how many. The order is that of [gets](Consumer::get).
    ///
    /// # Errors
    ///
    /// [`Closed`], if there is not even one and there never will be.
    pub fn get_many(&mut self, most: usize, into: &mut Vec<T>) -> Result<usize, Closed> {
        if most == 0 {
            return Ok(0);
        }
        into.push(self.get()?);
        let before = into.len();
        into.extend(self.drain().take(most - 1));
        Ok(into.len() - before + 1)
    }

    /// Takes tasks until there are none, in the order of [gets](Consumer::get). Never waits.
    pub fn try_iter(&mut self) -> TryIter<'_, T> {
        TryIter(self)
    }

    /// The same as [`try_iter`](Consumer::try_iter).
    pub fn drain(&mut self) -> TryIter<'_, T> {
        TryIter(self)
    }

    /// Takes tasks, and waits for them, until the pool is closed and empty ([who closes a
    /// pool](crate::TaskPool#who-closes-a-pool)), in the order of [gets](Consumer::get). `for task
    /// in &mut consumer` does the same, and so does `for task in consumer`.
    pub fn iter(&mut self) -> Iter<'_, T> {
        Iter(self)
    }

    /// A task, in its slot or at `place`. Read it before this consumer is used otherwise.
    #[inline(always)]
    pub(crate) fn find(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        match &mut self.seat {
            Seat::Plain(seat) => seat.find(place),
            Seat::Guarded(_) => self.find_and_release(place),
        }
    }

    /// Out of line and cold, as in `Producer`. With a branch that the compiler held equally likely
    /// both ways, a loop around a get kept its variables in memory: 44 instructions instead of 36.
    #[cold]
    #[inline(never)]
    fn find_and_release(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        if self.kept.is_some() {
            return self.find_kept(place);
        }
        let found = self.sit().find(place);
        let task = if self.number().is_some_and(|number| number >= OWNED) {
            // In its slot it is safe while the seat is held. In two steps: it may be in `place`.
            let task = found.map(Found::read);
            // SAFETY: it is written here, into a place that is lent to this function alone.
            let found = task.map(|task| unsafe { Found::at(place.write(task)) });
            self.rise();
            found
        } else {
            found
        };
        let task = task?;
        Some(match &self.shared.admission.room {
            Some(_) if mem::take(&mut self.room_given_back) => task,
            Some(room) => keep_while(&mut self.kept, task, || room.release()),
            None => task,
        })
    }

    pub(crate) fn wake_with(
        &mut self,
        found: Result<Found<T>, Closed>,
        wake: impl FnOnce(),
    ) -> Result<Found<T>, Closed> {
        /// A get looks for a kept task only if the seat is guarded.
        struct Guards<'a, T: Send>(&'a mut Seat<T>);
        impl<T: Send> Drop for Guards<'_, T> {
            fn drop(&mut self) {
                let seat = mem::replace(self.0, Seat::Guarded(None));
                *self.0 = match seat {
                    Seat::Plain(seat) => Seat::Guarded(Some(seat)),
                    guarded @ Seat::Guarded(_) => guarded,
                };
            }
        }
        let Ok(task) = found else {
            wake();
            return Err(Closed);
        };
        let guards = Guards(&mut self.seat);
        let task = keep_while(&mut self.kept, task, wake);
        mem::forget(guards);
        Ok(task)
    }

    /// The task that a get had taken when a waker panicked. The pool counted it out then.
    #[cold]
    #[inline(never)]
    fn find_kept(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        let task = place.write(*self.kept.take()?);
        // SAFETY: it was written just now, into a place that is lent to this function alone.
        Some(unsafe { Found::at(task) })
    }

    fn number(&self) -> Option<usize> {
        match &self.seat {
            Seat::Plain(seat) => Some(seat.number()),
            Seat::Guarded(seat) => seat.as_ref().map(Taker::number),
        }
    }

    fn sit(&mut self) -> &mut Taker<T, Salsa<T>> {
        let Shared { seats, pools, policy, admission } = &*self.shared;
        let take = || seats.take(pools, policy, self.home);
        if let Seat::Guarded(None) = &self.seat {
            let seat = take();
            let plain = admission.room.is_none() && seat.number() < OWNED;
            self.seat = if plain { Seat::Plain(seat) } else { Seat::Guarded(Some(seat)) };
        }
        match &mut self.seat {
            Seat::Plain(seat) => seat,
            Seat::Guarded(seat) => seat.get_or_insert_with(take),
        }
    }

    fn rise(&mut self) {
        let seat = mem::replace(&mut self.seat, Seat::Guarded(None));
        if let Seat::Plain(seat) | Seat::Guarded(Some(seat)) = seat {
            self.shared.seats.give(seat);
        }
    }

    /// After a poll: a waiting future has no seat, and few ready ones keep theirs.
    pub(crate) fn polled(&mut self, ready: bool) {
        if !ready || self.number().is_some_and(|number| number >= KEPT) {
            self.rise();
        }
    }

    /// A task, or `Closed` if there will never be one; `None` if neither is known.
    pub(crate) fn look(&mut self, place: &mut MaybeUninit<T>) -> Option<Result<Found<T>, Closed>> {
        // In this order: a task that is not there once all puts are over never comes.
        let settled = self.shared.admission.is_settled();
        match self.find(place) {
            Some(task) => Some(Ok(task)),
            None => settled.then_some(Err(Closed)),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(
        &mut self,
        deadline: Option<Instant>,
        place: &mut MaybeUninit<T>,
    ) -> Option<Result<Found<T>, Closed>> {
        // A get with a deadline has looked whether the pool is closed.
        if deadline.is_none() {
            if let Some(found) = self.look(place) {
                return Some(found);
            }
        }
        let shared = Arc::clone(&self.shared);
        let room = shared.admission.room.as_ref().filter(|_| deadline.is_none());
        let waits = Waits::begin(self, room);
        let looks = || waits.consumer.look(place);
        let (found, entered) =
            shared.admission.tasks.wait(deadline, || shared.pools.taken(), looks)?;
        drop(waits);
        Some(self.wake_with(found, || drop(entered)))
    }
}

/// A get that waits. If it gets no task, its drop takes back the room that it gave back beforehand.
struct Waits<'a, T: Send> {
    consumer: &'a mut Consumer<T>,
    room: Option<&'a Room<Machine>>,
}

impl<'a, T: Send> Waits<'a, T> {
    fn begin(consumer: &'a mut Consumer<T>, room: Option<&'a Room<Machine>>) -> Self {
        consumer.room_given_back = room.is_some();
        let waits = Waits { consumer, room };
        // After `waits`, whose drop takes the room back: this wakes a producer, which may panic.
        room.into_iter().for_each(Room::release);
        waits
    }
}

impl<T: Send> Drop for Waits<'_, T> {
    fn drop(&mut self) {
        if mem::take(&mut self.consumer.room_given_back) {
            if let Some(room) = self.room {
                room.take_back();
            }
        }
    }
}

/// Calls `wake`, which calls foreign code. If it panics, the task goes to `kept`.
#[inline(always)]
fn keep_while<T>(kept: &mut Option<Box<T>>, task: Found<T>, wake: impl FnOnce()) -> Found<T> {
    struct Taken<'a, T> {
        kept: &'a mut Option<Box<T>>,
        task: Option<Found<T>>,
    }
    impl<T> Drop for Taken<'_, T> {
        fn drop(&mut self) {
            if let Some(task) = self.task.take() {
                // If there is no memory it is dropped.
                *self.kept = try_box(task.read()).ok();
            }
        }
    }
    let taken = Taken { kept, task: Some(task) };
    wake();
    // Not dropped: its drop would only reserve stack space for a task.
    let mut taken = ManuallyDrop::new(taken);
    taken.task.take().expect("it is taken here or in the drop")
}

// As for the pool.
impl<T: Send> UnwindSafe for Consumer<T> {}
impl<T: Send> RefUnwindSafe for Consumer<T> {}

/// As [`TaskPool::consumer`](crate::TaskPool::consumer), with the same home.
///
/// # Panics
///
/// If there is no memory; [`try_clone`](Consumer::try_clone) gives an error instead.
impl<T: Send> Clone for Consumer<T> {
    fn clone(&self) -> Self {
        match self.try_clone() {
            Ok(consumer) => consumer,
            Err(error) => panic!("{error}"),
        }
    }
}

impl<T: Send> Drop for Consumer<T> {
    fn drop(&mut self) {
        /// Drops the remaining tasks, also if a waker panics during the close.
        struct Discards<'a, T: Send>(&'a mut Consumer<T>);
        impl<T: Send> Drop for Discards<'_, T> {
            fn drop(&mut self) {
                let Consumer { shared, seat, .. } = self.0;
                if shared.admission.sides.is_abandoned() {
                    match seat {
                        Seat::Plain(seat) | Seat::Guarded(Some(seat)) => shared.discard_by(seat),
                        Seat::Guarded(None) => shared.discard(),
                    }
                }
            }
        }
        let discards = Discards(self);
        discards.0.shared.admission.leave(Side::Takes);
    }
}

#[cfg(test)]
mod tests {
    use crate::{PutError, TaskPool};

    use super::*;

    #[test]
    fn a_get_that_waits_is_room_for_one_task() {
        let pool = TaskPool::bounded(1);
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        let shared = Arc::clone(&consumer.shared);
        let waits = Waits::begin(&mut consumer, shared.admission.room.as_ref());
        assert_eq!(producer.try_put(1), Ok(()));
        assert!(!pool.is_full());
        assert_eq!(producer.try_put(2), Ok(()));
        assert!(pool.is_full());
        assert_eq!(producer.try_put(3), Err(PutError::Full(3)));
        drop(waits);
        assert_eq!(consumer.try_get(), Ok(1));
        assert_eq!(producer.try_put(3), Err(PutError::Full(3)), "the capacity is what it was");
        assert_eq!(consumer.try_get(), Ok(2));
        assert_eq!(producer.try_put(3), Ok(()));
    }

    #[test]
    fn what_a_waiting_get_takes_makes_no_more_room() {
        let pool = TaskPool::bounded(1);
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        let shared = Arc::clone(&consumer.shared);
        let waits = Waits::begin(&mut consumer, shared.admission.room.as_ref());
        assert_eq!((producer.try_put(1), producer.try_put(2)), (Ok(()), Ok(())));
        let mut place = MaybeUninit::uninit();
        let found = waits.consumer.look(&mut place).map(|got| got.map(Found::read));
        assert_eq!(found, Some(Ok(1)));
        drop(waits);
        assert_eq!(producer.try_put(3), Err(PutError::Full(3)));
    }
}
