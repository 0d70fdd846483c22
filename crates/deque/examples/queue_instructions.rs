//! A chosen number of operations of one kind on one queue, for `valgrind --tool=callgrind`. The
//! difference of the counts of two runs, divided by the difference of their numbers, is the
//! instructions of one operation.
//!
//! ```console
//! $ cargo build --release -p poach-deque --example queue_instructions
//! $ for n in 1000 11000; do
//! >     valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/queue_instructions split owner $n 2>&1 |
//! >         grep Collected
//! > done
//! ```

use std::hint::black_box;

use poach_deque::{
    AsymmetricCl, Biased, BwosFifo, BwosLifo, ChaseLev, FfCl, FfThe, Fifo, IdempotentDeque,
    IdempotentFifo, IdempotentLifo, Multiplicity, Mutex, Owner, PrivateDeque, ResolvedCl, Split,
    The, Thep, Thief,
};
use poach_memory::{Asymmetric, Bounded, Delta, Resolved};

/// `owner`: a push and a pop. `batch`: as many, 64 pushes and then 64 pops. `empty`: a pop of
/// nothing. `steal`: a push and a steal. `drain`: 1024 pushes, 960 steals and then pops of what is
/// left.
fn work<O: Owner<u64>>(queue: &O, kind: &str, number: u64) {
    let thief = queue.thief();
    match kind {
        "owner" => (0..number).for_each(|task| {
            queue.push(black_box(task));
            black_box(queue.pop());
        }),
        "batch" => (0..number / 64).for_each(|_| {
            (0..64).for_each(|task| queue.push(black_box(task)));
            (0..64).for_each(|_| _ = black_box(queue.pop()));
        }),
        "empty" => (0..number).for_each(|_| _ = black_box(queue.pop())),
        "steal" => (0..number).for_each(|task| {
            queue.push(black_box(task));
            black_box(thief.steal().success());
        }),
        "drain" => (0..number / 1024).for_each(|_| {
            (0..1024).for_each(|task| queue.push(black_box(task)));
            (0..960).for_each(|_| _ = black_box(thief.steal().success()));
            while black_box(queue.pop()).is_some() {}
        }),
        _ => panic!("owner, batch, empty, steal or drain"),
    }
}

fn main() {
    let [queue, kind, number]: [String; 3] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("QUEUE KIND NUMBER");
    let number = number.parse().expect("a number");
    // SAFETY: the queues have no thieves but this thread.
    let delta = unsafe { Delta::new(128, 0) }.expect("a bound");
    let bounded = || Bounded::new(delta).expect("total store order");
    let resolved = || Resolved::new(delta).expect("total store order and a barrier");
    match &*queue {
        "split" => work(&Split::new(), &kind, number),
        "biased" => work(&Biased::with_policy(Asymmetric::new()), &kind, number),
        "chase-lev" => work(&ChaseLev::new(), &kind, number),
        "asymmetric-cl" => work(&AsymmetricCl::with_policy(Asymmetric::new()), &kind, number),
        "ff-cl" => work(&FfCl::with_policy(bounded()), &kind, number),
        "resolved" => work(&ResolvedCl::with_policy(resolved()), &kind, number),
        "the" => work(&The::new(), &kind, number),
        "ff-the" => work(&FfThe::with_policy(bounded()), &kind, number),
        "thep" => work(&Thep::with_policy(bounded()), &kind, number),
        "private" => work(&PrivateDeque::new(), &kind, number),
        "mutex" => work(&Mutex::new(), &kind, number),
        "fifo" => work(&Fifo::new(), &kind, number),
        "idempotent-lifo" => work(&IdempotentLifo::new(), &kind, number),
        "idempotent-fifo" => work(&IdempotentFifo::new(), &kind, number),
        "idempotent-deque" => work(&IdempotentDeque::new(), &kind, number),
        "multiplicity" => work(&Multiplicity::new(), &kind, number),
        "bwos-lifo" => work(&BwosLifo::new(), &kind, number),
        "bwos-fifo" => work(&BwosFifo::new(), &kind, number),
        other => panic!("no queue {other}"),
    }
}
