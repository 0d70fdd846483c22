//! What safe code can do with this crate: every public constructor, the methods that need no trait
//! in scope, and traits of one's own. What it cannot write stands in the crate's module
//! `compile_fail`.

#![forbid(unsafe_code)]

use poach_deque::{
    Asymmetric, AsymmetricCl, Biased, Bounded, BwosFifo, BwosLifo, CapacityError, ChaseLev, Delta,
    FfCl, FfThe, Fifo, Full, IdempotentDeque, IdempotentFifo, IdempotentLifo, Injector,
    Multiplicity, Mutex, OutOfMemory, Owner, PrivateDeque, Resolved, ResolvedCl, Split, Steal,
    StoreLoad, The, Thep, Thief, Unbounded,
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
    fifo_closed: Fifo::<Box<u64>>::with_patience(2, u64::MAX, 0, 0).unwrap();
    fifo_with_patience: Fifo::<Box<u64>>::with_patience(2, 0, u32::MAX, 1).unwrap();
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
    private: PrivateDeque::<Box<u64>>::new();
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

    use super::{IdempotentDeque, IdempotentFifo, IdempotentLifo, Multiplicity};

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
        multiplicity: Multiplicity;
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
        assert_eq!(BwosLifo::<u8>::with_capacity(capacity).err(), Some(error));
        assert_eq!(BwosFifo::<u8>::with_capacity(capacity).err(), Some(error));
        assert_eq!(IdempotentDeque::<u8>::with_capacity(capacity).err(), Some(error));
        assert_eq!(IdempotentFifo::<u8>::with_capacity(capacity).err(), Some(error));
        assert_eq!(IdempotentLifo::<u8>::with_capacity(capacity).err(), Some(error));
        assert_eq!(Multiplicity::<u8>::with_capacity(capacity).err(), Some(error));
    }
}

/// A queue gives its memory back only where no task is left, at any index.
#[test]
fn a_queue_that_gives_its_memory_back_loses_no_task() {
    for index in [0, u64::from(u32::MAX) - 99, u64::MAX - 99] {
        let owner = Split::<Box<u64>>::starting_at(4, index).unwrap();
        let thief = owner.thief();
        for burst in 0..20 {
            (0..50).for_each(|task| owner.push(Box::new(task)));
            assert!(!owner.shrink_to(4));
            assert_eq!((owner.share(), thief.steal().success()), (true, Some(Box::new(0))));
            (1..50).rev().for_each(|task| assert_eq!(owner.pop(), Some(Box::new(task))));
            assert!(owner.shrink_to(4) && owner.capacity() == 4, "burst {burst}");
        }
        owner.push(Box::new(50));
    }
}

/// Indices may begin anywhere, also where they soon wrap around: a queue that was made so is a
/// queue like any other.
#[test]
fn queues_that_begin_at_any_index() {
    fn all<O: Owner<u64>>(queue: &O) {
        for round in 0..3 {
            for task in 0..40 {
                queue.push(task);
            }
            let mut seen: Vec<u64> = std::iter::from_fn(|| queue.pop()).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..40), "round {round}");
            assert!(queue.is_empty() && !queue.is_awaited());
            let stolen = queue.thief().steal();
            assert!(stolen.is_empty() && !stolen.is_retry() && !stolen.is_abort());
        }
    }
    for index in
        [0, 1, u64::from(u32::MAX) - 9, 1 << 32, i64::MAX as u64 - 9, u64::MAX - 9, u64::MAX]
    {
        all(&ChaseLev::<u64>::starting_at(Full, 4, index).unwrap());
        all(&The::<u64>::starting_at(Full, 4, index).unwrap());
        all(&Thep::<u64, _>::starting_at(Unbounded, 4, index).unwrap());
        all(&Biased::<u64>::starting_at(Full, 4, index, 3).unwrap());
        all(&Fifo::<u64>::starting_at(4, index).unwrap());
        all(&BwosLifo::<u64>::starting_at(4, index).unwrap());
        all(&BwosFifo::<u64>::starting_at(4, index).unwrap());
        all(&Split::<u64>::starting_at(4, index).unwrap());
        all(&IdempotentDeque::<u64>::starting_at(4, index).unwrap());
        all(&IdempotentFifo::<u64>::starting_at(4, index).unwrap());
        all(&Multiplicity::<u64>::starting_at(4, index).unwrap());
    }
}

/// What an owner shares, thieves get, and what it has left is its own.
#[test]
fn owners_of_blocks_share_them() {
    let lifo = BwosLifo::<Box<u32>>::new();
    let fifo = BwosFifo::<Box<u32>>::new();
    let (from_lifo, from_fifo) = (lifo.thief(), fifo.thief());
    // Less than a block in all.
    for round in 0..10 {
        for task in 0..4 {
            lifo.push(Box::new(task));
            fifo.push(Box::new(task));
        }
        assert!(from_lifo.steal().is_empty(), "round {round}");
        assert_eq!(fifo.pop().as_deref(), Some(&0), "round {round}");
        assert!(from_fifo.steal().is_empty(), "round {round}");
        lifo.share();
        fifo.share();
        assert_eq!(from_lifo.steal(), Steal::Success(Box::new(0)), "round {round}");
        assert_eq!(from_fifo.steal(), Steal::Success(Box::new(1)), "round {round}");
        assert_eq!((lifo.len(), fifo.len()), (3, 2), "round {round}");
        assert_eq!((lifo.pop().as_deref(), fifo.pop().as_deref()), (Some(&3), Some(&2)));
        while lifo.pop().is_some() {}
        while fifo.pop().is_some() {}
    }
}

#[test]
fn an_injector_of_any_patience_and_size() {
    for patience in [0, 1, u32::MAX] {
        for capacity in [1, 64, 1 << 12] {
            let injector =
                Injector::<Box<u64>>::with_capacity(capacity).unwrap().with_patience(patience);
            for task in 0..200 {
                injector.push(Box::new(task));
                assert_eq!(injector.try_push(Box::new(200 + task)), Ok(()));
            }
            let into = Mutex::<Box<u64>>::new();
            let mut seen = Vec::new();
            while let Steal::Success(task) = injector.steal_half(&into) {
                seen.push(*task);
                seen.extend(std::iter::from_fn(|| into.pop()).map(|task| *task));
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..400) && injector.is_empty());
        }
    }
    assert_eq!(OutOfMemory(3).0, 3);
}

/// The face's own answers; the queues' are above.
#[test]
fn a_steal_of_the_crossbeam_face_says_what_it_is() {
    use poach_deque::crossbeam::{Steal, Worker};
    let worker = Worker::<u8>::new_lifo();
    let stolen = worker.stealer().steal();
    assert!(stolen.is_empty() && !stolen.is_retry());
    assert!(Steal::<u8>::Retry.is_retry());
}

/// A context that calls back stands in `tests/it/split_context.rs`; the context here answers as it
/// likes.
#[test]
fn a_context_of_any_answers() {
    use poach_deque::split::Split;
    use poach_deque::split::{Context, MAX_SLOTS, Slot, Stack, StackError};
    use poach_memory::Machine;

    #[derive(Default)]
    struct Moody(std::cell::Cell<u32>);
    impl Context for Moody {
        fn shared(&self) {}
        fn reached_split(&self) {
            self.0.set(!self.0.get());
        }
        fn should_share(&self, private: u32) -> bool {
            self.0.set(self.0.get().wrapping_add(private).wrapping_mul(0x9E37_79B1));
            self.0.get() & 4 == 0
        }
    }

    let owner = Split::<Box<u64>, Machine, _>::with_context(2, u64::MAX, Moody::default()).unwrap();
    let thief = owner.thief();
    let mut seen: Vec<u64> = std::thread::scope(|scope| {
        let stolen = scope.spawn(move || {
            (0..500).filter_map(|_| thief.steal().success()).map(|task| *task).collect::<Vec<_>>()
        });
        let mut seen = Vec::new();
        for task in 0..500 {
            owner.push(Box::new(task));
            if task % 3 == 0 {
                seen.extend(owner.pop().map(|task| *task));
            }
        }
        seen.extend(stolen.join().unwrap());
        seen
    });
    seen.extend(std::iter::from_fn(|| owner.pop()).map(|task| *task));
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..500));

    // A stack without an owner has nothing, whatever a thief asks of it.
    for stack in [Stack::<Machine, _>::new(3, ()), Stack::new_untouched(3, ())] {
        let stack = stack.unwrap();
        stack.request();
        assert!(stack.steal().is_err() && !stack.has_private_tasks());
        _ = stack.expose();
        assert_eq!(
            (stack.shared(), stack.counts(), stack.context(), stack.capacity()),
            (0, (0, 0), &(), 3)
        );
    }
    assert!(Slot::<Machine>::fits::<[u64; 6]>() && !Slot::<Machine>::fits::<[u64; 7]>());
    for slots in [0, MAX_SLOTS + 1, usize::MAX] {
        let error: StackError = Stack::<Machine, ()>::new(slots, ()).err().unwrap();
        assert!(!error.to_string().is_empty());
    }
}

/// The word of a split deque, as its models use it: numbers, with which nobody reaches a task.
#[test]
fn bounds_are_numbers() {
    use poach_deque::split::{Bounds, Claim};
    let bounds = Bounds::<poach_memory::Machine>::new(u32::MAX);
    assert_eq!(bounds.claim(|_| 9), Claim::Empty);
    assert!(bounds.share(u32::MAX, u32::MAX, 2) && !bounds.share(2, u32::MAX, 3));
    assert_eq!(bounds.claim(|shared| shared - 1), Claim::Taken { first: u32::MAX, count: 2 });
    assert_eq!((bounds.tail(), bounds.shared()), (1, 1));
    assert_eq!(bounds.take_back(), Some(1));
    assert_eq!(bounds.take_back(), None);
    bounds.reset(5);
    assert_eq!((bounds.tail(), bounds.shared()), (5, 0));
}

/// Traits of one's own: an owner and a thief that say what they like. A queue's thief that is told
/// to steal half into one loses no task by it but those that it is given and drops.
#[test]
fn an_owner_that_lies() {
    #[expect(clippy::vec_box, reason = "a box that comes twice is freed twice")]
    struct Liar(std::cell::RefCell<Vec<Box<u64>>>);
    #[derive(Clone)]
    struct Never;
    impl poach_deque::Thief<Box<u64>> for Never {
        fn steal(&self) -> Steal<Box<u64>> {
            Steal::Abort
        }
        fn len(&self) -> usize {
            usize::MAX
        }
    }
    impl Owner<Box<u64>> for Liar {
        type Thief = Never;
        fn try_push(&self, task: Box<u64>) -> Result<(), OutOfMemory<Box<u64>>> {
            self.0.borrow_mut().push(task);
            Ok(())
        }
        fn pop(&self) -> Option<Box<u64>> {
            None
        }
        fn thief(&self) -> Never {
            Never
        }
        fn len(&self) -> usize {
            usize::MAX
        }
        fn is_awaited(&self) -> bool {
            true
        }
    }
    impl poach_deque::ExactlyOnce<Box<u64>> for Liar {}
    fn robbed<O: Owner<Box<u64>>>(queue: &O) {
        let liar = Liar(std::cell::RefCell::default());
        let mut seen = Vec::new();
        for task in 0..50 {
            queue.push(Box::new(task));
        }
        for _ in 0..50 {
            seen.extend(queue.thief().steal_half(&liar).success().map(|task| *task));
        }
        assert!(Never.steal_half(queue).is_abort());
        seen.extend(liar.0.take().into_iter().map(|task| *task));
        seen.extend(std::iter::from_fn(|| queue.pop()).map(|task| *task));
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..50));
    }
    robbed(&ChaseLev::new());
    robbed(&Biased::new());
    robbed(&Fifo::new());
    robbed(&The::new());
    robbed(&Split::new());
    robbed(&Mutex::new());
}
