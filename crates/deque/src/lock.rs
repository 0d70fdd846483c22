//! A test-and-set lock made of a [`Word`], for the queues that have one a queue.
//!
//! The sections it guards are a few instructions long, owners come to it only when they have met a
//! thief, and thieves do not wait for it at all. So it is as small as can be. It is made of the
//! memory's own words, so a checker of a queue checks its lock, too.

use core::marker::PhantomData;

use poach_memory::{Memory, Ordering, Word};

/// Rounds of waiting after which a waiter gives up its time slice: the holder may be behind it on
/// the same processor.
const ROUNDS: u32 = 100;

/// Waits a moment for another thread, as long as it is asked.
pub(crate) struct Wait<M: Memory> {
    rounds: u32,
    memory: PhantomData<M>,
}

impl<M: Memory> Wait<M> {
    pub(crate) fn new() -> Self {
        Wait { rounds: 0, memory: PhantomData }
    }

    /// One moment.
    pub(crate) fn pause(&mut self) {
        M::pause();
        self.rounds += 1;
        if self.rounds == ROUNDS {
            self.rounds = 0;
            M::give_way();
        }
    }
}

/// The lock. Blocking for who waits, not fair.
pub(crate) struct Lock<M: Memory>(M::Word);

/// The lock, held until this is dropped.
pub(crate) struct Held<'a, M: Memory>(&'a Lock<M>);

impl<M: Memory> Lock<M> {
    pub(crate) fn new() -> Self {
        Lock(M::Word::new(0))
    }

    /// Takes the lock if it is free. Wait-free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Held<'_, M>> {
        // Relaxed: the exchange decides.
        (self.0.load(Ordering::Relaxed) == 0 && self.take()).then(|| Held(self))
    }

    /// Waits for the lock. Blocking.
    pub(crate) fn lock(&self) -> Held<'_, M> {
        let mut wait = Wait::<M>::new();
        while !self.take() {
            wait.pause();
        }
        Held(self)
    }

    #[inline(always)]
    fn take(&self) -> bool {
        // Acquire: pairs with the release in `drop`; what the last holder did is seen by the next.
        self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

impl<M: Memory> Drop for Held<'_, M> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `try_lock`.
        self.0.0.store(0, Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::{Cell, RefCell};
    use std::thread;

    use super::*;
    use poach_memory::Machine;

    thread_local! {
        static PAUSES: Cell<u32> = const { Cell::new(0) };
        static GIVEN: Cell<u32> = const { Cell::new(0) };
        static BARRIERS: Cell<u32> = const { Cell::new(0) };
        static THEN: RefCell<Option<Then>> = const { RefCell::new(None) };
    }

    /// At which of a thread's calls something is done, and what.
    type Then = (Call, Box<dyn FnOnce()>);

    #[derive(Clone, Copy, PartialEq)]
    pub(crate) enum Call {
        Pause,
        Full,
        /// An owner's fence with [`Asymmetric`](crate::Asymmetric).
        Light,
        /// A thief's.
        Heavy,
    }

    /// The machine's memory, which knows how often a thread has waited.
    pub(crate) struct Told;

    impl Told {
        /// How often `act` pauses, and gives its time slice up.
        pub(crate) fn waits(act: impl FnOnce()) -> (u32, u32) {
            let before = (PAUSES.get(), GIVEN.get());
            act();
            (PAUSES.get() - before.0, GIVEN.get() - before.1)
        }

        /// How many process-wide barriers `act` makes.
        pub(crate) fn barriers(act: impl FnOnce()) -> u32 {
            let before = BARRIERS.get();
            act();
            BARRIERS.get() - before
        }

        /// Has `then` done at this thread's next pause.
        pub(crate) fn at_a_pause(then: impl FnOnce() + 'static) {
            Self::at_a(Call::Pause, then);
        }

        /// Has `then` done at this thread's next call of this kind, before it has any effect.
        pub(crate) fn at_a(call: Call, then: impl FnOnce() + 'static) {
            THEN.set(Some((call, Box::new(then))));
        }

        /// Whether what was to be done is still to be done.
        pub(crate) fn waits_still() -> bool {
            THEN.with_borrow(Option::is_some)
        }

        fn called(call: Call) {
            let then = THEN.with_borrow_mut(|then| then.take_if(|then| then.0 == call));
            if let Some((_, then)) = then {
                then();
            }
        }
    }

    // SAFETY: the machine's memory, for one thread, to which any two fences are the ends of an
    // asymmetric one. What is done at a call another thread might do.
    unsafe impl Memory for Told {
        type Word = <Machine as Memory>::Word;
        type Pointer<T> = <Machine as Memory>::Pointer<T>;
        type Cell<T> = <Machine as Memory>::Cell<T>;

        fn full() {
            Told::called(Call::Full);
            Machine::full();
        }

        fn light() {
            Told::called(Call::Light);
            Machine::light();
        }

        fn heavy() {
            BARRIERS.set(BARRIERS.get() + 1);
            Told::called(Call::Heavy);
            Machine::heavy();
        }

        fn asymmetric() -> bool {
            true
        }

        fn pause() {
            PAUSES.set(PAUSES.get() + 1);
            Told::called(Call::Pause);
        }

        fn give_way() {
            GIVEN.set(GIVEN.get() + 1);
        }
    }

    #[test]
    fn a_waiter_gives_way_each_so_many_rounds() {
        let waits = Told::waits(|| {
            let mut wait = Wait::<Told>::new();
            (0..2 * ROUNDS + ROUNDS / 2).for_each(|_| wait.pause());
        });
        assert_eq!(waits, (2 * ROUNDS + ROUNDS / 2, 2));
    }

    #[test]
    fn one_holder_at_a_time() {
        let lock = Lock::<Machine>::new();
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none(), "a failed attempt does not open it");
        drop(held);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn a_waiter_gets_it_in_the_end() {
        let lock = Lock::<Machine>::new();
        let held = lock.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(lock.lock()));
            thread::yield_now();
            drop(held);
            waiter.join().unwrap();
        });
    }
}
