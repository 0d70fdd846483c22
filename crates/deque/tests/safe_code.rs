//! What safe code can do with this crate: every public constructor, the methods that need no trait in scope, and traits
//! of one's own. What it cannot write stands in the crate's module `compile_fail`.

#![forbid(unsafe_code)]

use poach_deque::{
    Asymmetric, AsymmetricCl, Biased, Bounded, CapacityError, ChaseLev, Delta, FfCl, FfThe, Fifo,
    Full, IdempotentDeque, IdempotentFifo, IdempotentLifo, Mutex, Private, Resolved, ResolvedCl,
    Split, Steal, StoreLoad, The, Thep, Unbounded,
};

/// One thread pushes and pops, another steals: each box comes out once. No trait is imported.
macro_rules! once {
    ($($name:ident: $make:expr;)*) => {$(
        #[test]
        fn $name() {
            let tasks = if cfg!(miri) { 60 } else { 3_000 };
            let owner = $make;
            assert!(owner.is_empty() && owner.thief().is_empty());
            let thief = owner.thief();
            let mut seen: Vec<u64> = std::thread::scope(|scope| {
                let stolen = scope.spawn(move || {
                    let mut stolen = Vec::new();
                    for _ in 0..tasks {
                        if let Steal::Success(task) = thief.steal() {
                            stolen.push(task);
                        }
                    }
                    stolen
                });
                let mut popped = Vec::new();
                for task in 0..tasks {
                    owner.push(Box::new(task));
                    assert!(owner.try_push(Box::new(tasks + task)).is_ok());
                    popped.extend(owner.pop().map(|task| *task));
                }
                // A thief in doubt waits for the owner's next pop.
                while !stolen.is_finished() {
                    popped.extend(owner.pop().map(|task| *task));
                }
                popped.extend(std::iter::from_fn(|| owner.pop()).map(|task| *task));
                popped.extend(stolen.join().unwrap().into_iter().map(|task: Box<u64>| *task));
                popped
            });
            assert_eq!(owner.len(), 0);
            seen.sort_unstable();
            assert_eq!(seen, (0..2 * tasks).collect::<Vec<_>>());
        }
    )*};
}

once! {
    chase_lev: ChaseLev::<Box<u64>>::new();
    chase_lev_by_default: ChaseLev::<Box<u64>, Full>::default();
    chase_lev_with_capacity: ChaseLev::with_capacity(Full, 2).unwrap();
    chase_lev_asymmetric: AsymmetricCl::with_policy(Asymmetric::new());
    chase_lev_unbounded: ChaseLev::with_policy(Unbounded);
    biased: Biased::<Box<u64>>::new();
    biased_asymmetric: Biased::<Box<u64>, Asymmetric>::with_policy(Asymmetric::new());
    biased_with_capacity: Biased::<Box<u64>>::with_capacity(Full, 2).unwrap();
    fifo: Fifo::<Box<u64>>::new();
    fifo_with_capacity: Fifo::<Box<u64>>::with_capacity(2).unwrap();
    the: The::<Box<u64>>::new();
    the_by_default: The::<Box<u64>, Asymmetric>::default();
    the_with_capacity: The::with_capacity(Asymmetric::new(), 2).unwrap();
    the_unbounded: The::with_policy(Unbounded);
    thep: Thep::<Box<u64>>::new();
    thep_by_default: Thep::<Box<u64>, Unbounded>::default();
    thep_with_capacity: Thep::with_capacity(Asymmetric::new(), 2).unwrap();
    thep_unbounded: Thep::with_policy(Unbounded);
    split: Split::<Box<u64>>::new();
    split_with_capacity: Split::<Box<u64>>::with_capacity(2).unwrap();
    private: Private::<Box<u64>>::new();
    mutex: Mutex::<Box<u64>>::new();
}

/// Where safe code gets a bound at all, the queues that rest on it are exact, too.
#[test]
fn bounded_policies_are_had_where_the_bound_is_known() {
    fn two<P: StoreLoad<poach_memory::Machine>>(queue: &ChaseLev<Box<u64>, P>) {
        queue.push(Box::new(1));
        queue.push(Box::new(2));
        let popped = (queue.pop(), queue.pop(), queue.pop());
        assert_eq!(popped, (Some(Box::new(2)), Some(Box::new(1)), None));
    }
    let Ok(delta) = Delta::for_this_processor() else { return };
    if let Ok(policy) = Bounded::new(delta) {
        two(&FfCl::with_policy(policy));
    }
    if let Ok(policy) = Resolved::new(delta) {
        two(&ResolvedCl::with_policy(policy));
    }
    if let Ok(policy) = Bounded::new(delta) {
        let queue = FfThe::with_policy(policy);
        queue.push(Box::new(1));
        assert_eq!(queue.pop(), Some(Box::new(1)));
    }
}

/// A task of one's own, whose conversion uses the queue that it is pushed to: no task is lost.
mod repeatable {
    use std::cell::RefCell;
    use std::rc::Rc;

    use poach_deque::idempotent::Repeatable;

    use super::{IdempotentDeque, IdempotentFifo, IdempotentLifo};

    type Use = Rc<dyn Fn()>;

    thread_local! {
        static USE: RefCell<Option<Use>> = const { RefCell::new(None) };
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Task(u64);

    impl Repeatable for Task {
        fn into_word(self) -> u64 {
            if let Some(act) = USE.take() {
                act();
            }
            self.0
        }

        fn from_word(word: u64) -> Self {
            Task(word)
        }
    }

    macro_rules! pushes_within_a_push {
        ($($name:ident: $queue:ident;)*) => {$(
            #[test]
            fn $name() {
                let queue = Rc::new($queue::<Task>::new());
                let own = Rc::clone(&queue);
                USE.set(Some(Rc::new(move || {
                    own.push(Task(1));
                    own.push(Task(2));
                })));
                queue.push(Task(3));
                let mut seen: Vec<_> =
                    std::iter::from_fn(|| queue.pop()).map(|task| task.0).collect();
                seen.sort_unstable();
                assert_eq!(seen, [1, 2, 3]);
            }
        )*};
    }

    pushes_within_a_push! {
        idempotent_deque: IdempotentDeque;
        idempotent_fifo: IdempotentFifo;
        idempotent_lifo: IdempotentLifo;
    }
}

#[test]
fn capacities_that_cannot_be_had_are_refused() {
    for (capacity, error) in [
        (0, CapacityError::Zero),
        (3, CapacityError::NotPowerOfTwo(3)),
        (1 << 40, CapacityError::TooLarge(1 << 40)),
    ] {
        assert_eq!(ChaseLev::<u8>::with_capacity(Full, capacity).err(), Some(error));
        assert_eq!(The::<u8>::with_capacity(Full, capacity).err(), Some(error));
        assert_eq!(Thep::<u8>::with_capacity(Full, capacity).err(), Some(error));
        assert_eq!(Split::<u8>::with_capacity(capacity).err(), Some(error));
        assert_eq!(IdempotentDeque::<u8>::with_capacity(capacity).err(), Some(error));
        assert_eq!(IdempotentFifo::<u8>::with_capacity(capacity).err(), Some(error));
        assert_eq!(IdempotentLifo::<u8>::with_capacity(capacity).err(), Some(error));
    }
}
