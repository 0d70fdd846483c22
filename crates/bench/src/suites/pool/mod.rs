//! The suite `pool`: task pools and what one would use instead, between producers and consumers
//! that are different threads.
//!
//! Source: the SALSA paper, section 6. Figure 4 is the workloads `1p1c` to `16p16c` and the ratios,
//! figure 5 the workloads `1p..c` with their counter `exchanges_per_task`, figure 6 the same with
//! `-unbalanced`, figure 7 `-pinned`, figure 8 `2p2c-chunk`. Beside them stand `pair`, one thread
//! that puts and gets in turn, and `-block`, where consumers sleep rather than poll.
//! `2p2c-bounded-64` has a capacity of 64, and producers that sleep, too; in `-one-processor` the
//! four threads share one. `pending-900` is what it costs that one future more waits for a task
//! where 900 wait.
//!
//! One protocol for all (`protocol`): distinct tasks, each accounted for; a sample is the time from
//! the start of all threads to the last task taken.

mod peers;
pub(crate) mod protocol;
mod systems;
mod waiters;

use poach_memory::{Asymmetric, Displaced, Full, Machine};
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::salsa::{Salsa, SalsaCas};

use crate::{Case, Request, Size, Suite, promise};
use peers::Peer;
use protocol::{Shape, blocking, pair, polling};
use systems::{Face, Pools};

/// The suite `pool`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pool;

const CHUNK: usize = poach_pool::CHUNK_LENGTH;
const BAG_CHUNK: usize = poach_pool::baselines::BAG_CHUNK_LENGTH;

type DefaultSalsa = Salsa<u64, Machine, Asymmetric<Machine>>;

/// The shapes in which everything is measured.
const SHAPES: [(&str, usize, usize); 4] =
    [("1p1c", 1, 1), ("2p2c", 2, 2), ("1p3c", 1, 3), ("3p1c", 3, 1)];

/// More of figures 4 and 5, for the pools alone.
const MORE: [(&str, usize, usize); 5] =
    [("4p4c", 4, 4), ("8p8c", 8, 8), ("16p16c", 16, 16), ("1p2c", 1, 2), ("1p7c", 1, 7)];

/// Those of figure 7, where threads can be bound to processors.
const PINNED: &[(&str, usize, usize)] =
    if cfg!(target_os = "linux") { &[("1p1c-pinned", 1, 1), ("2p2c-pinned", 2, 2)] } else { &[] };

/// SALSA with the paper's own fence: consumer n is bound to the processor that the protocol binds
/// it to.
fn displaced() -> Option<Salsa<u64, Machine, Displaced>> {
    let bound = |seat| promise::displaced(protocol::processor(seat));
    // Every seat of the pinned shapes; a processor that cannot be had shows here, not in a thief.
    (0..2).try_for_each(|seat| bound(seat).map(drop)).ok()?;
    Salsa::with_fences(CHUNK, move |seat| bound(seat).expect("a processor that was there before"))
}

fn the_five(cases: &mut Vec<Case>, request: &Request, shape: Shape) {
    let size = request.size;
    cases.push(polling("salsa", shape, size, Pools(|| DefaultSalsa::new(CHUNK))));
    cases.push(polling("salsa-cas", shape, size, Pools(|| SalsaCas::<u64>::new(CHUNK))));
    cases.push(polling("conc-bag", shape, size, Pools(|| ConcBag::<u64>::new(BAG_CHUNK))));
    cases.push(polling("ws-msq", shape, size, Pools(WsMsq::<u64, Machine>::new)));
    cases.push(polling("ws-lifo", shape, size, Pools(WsLifo::<u64, Machine>::new)));
}

/// The cases of the peers: polling in a shape, sleeping in it, or both ends in one thread.
struct Peers<'a> {
    cases: &'a mut Vec<Case>,
    size: Size,
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    Polling(Shape),
    Blocking(Shape),
    Limited(Shape),
    Pair,
}

impl peers::Visitor for Peers<'_> {
    fn visit<P: Peer>(&mut self, peer: P) {
        let size = self.size;
        let can = |shape: Shape| P::can(shape.producers, shape.consumers);
        match self.way {
            Way::Polling(shape) if can(shape) => {
                self.cases.push(polling(P::NAME, shape, size, peer));
            }
            Way::Blocking(shape) if P::BLOCKS && can(shape) => {
                self.cases.push(blocking(P::NAME, shape, size, peer));
            }
            Way::Limited(shape) if P::LIMITED && can(shape) => {
                self.cases.push(blocking(P::NAME, shape, size, peer));
            }
            Way::Pair => self.cases.push(pair(P::NAME, size, peer)),
            _ => {}
        }
    }
}

/// Where every put may have to wait, and where few do.
fn limited(cases: &mut Vec<Case>, size: Size) {
    const CAPACITIES: [(usize, &str, &str); 4] = [
        (1, "2p2c-bounded-1", "2p2c-bounded-1-one-processor"),
        (8, "2p2c-bounded-8", "2p2c-bounded-8-one-processor"),
        (64, "2p2c-bounded-64", "2p2c-bounded-64-one-processor"),
        (1024, "2p2c-bounded-1024", "2p2c-bounded-1024-one-processor"),
    ];
    for (capacity, workload, on_one) in CAPACITIES {
        let shape = Shape { capacity: Some(capacity), ..Shape::new(workload, 2, 2) };
        let on_one = Shape { workload: on_one, one_processor: true, ..shape };
        let on_one = cfg!(target_os = "linux").then_some(on_one);
        for shape in [shape].into_iter().chain(on_one) {
            cases.push(blocking("task-pool-bounded", shape, size, Face));
            peers::each(&mut Peers { cases, size, way: Way::Limited(shape) });
        }
    }
}

fn pairs(cases: &mut Vec<Case>, request: &Request) {
    let size = request.size;
    cases.push(pair("salsa", size, Pools(|| DefaultSalsa::new(CHUNK))));
    cases.push(pair("salsa-full-fence", size, Pools(|| Salsa::<u64, Machine, Full>::new(CHUNK))));
    cases.push(pair("task-pool", size, Face));
    cases.push(pair("salsa-cas", size, Pools(|| SalsaCas::<u64>::new(CHUNK))));
    cases.push(pair("conc-bag", size, Pools(|| ConcBag::<u64>::new(BAG_CHUNK))));
    cases.push(pair("ws-msq", size, Pools(WsMsq::<u64, Machine>::new)));
    cases.push(pair("ws-lifo", size, Pools(WsLifo::<u64, Machine>::new)));
    peers::each(&mut Peers { cases, size, way: Way::Pair });
}

impl Suite for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn about(&self) -> &'static str {
        "task pools and channels between producers and consumers: SALSA's figures 4 to 8"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let size = request.size;
        let mut cases = Vec::new();
        pairs(&mut cases, request);
        for (workload, producers, consumers) in SHAPES {
            let shape = Shape::new(workload, producers, consumers);
            the_five(&mut cases, request, shape);
            cases.push(polling("task-pool", shape, size, Face));
            peers::each(&mut Peers { cases: &mut cases, size, way: Way::Polling(shape) });
        }
        for (workload, producers, consumers) in MORE {
            the_five(&mut cases, request, Shape::new(workload, producers, consumers));
        }
        for (workload, consumers) in
            [("1p1c-unbalanced", 1), ("1p3c-unbalanced", 3), ("1p7c-unbalanced", 7)]
        {
            let shape = Shape { balancing: false, ..Shape::new(workload, 1, consumers) };
            cases.push(polling("salsa", shape, size, Pools(|| DefaultSalsa::new(CHUNK))));
            cases.push(polling("salsa-cas", shape, size, Pools(|| SalsaCas::<u64>::new(CHUNK))));
        }
        for (workload, producers, consumers) in PINNED {
            let shape = Shape { pinned: true, ..Shape::new(workload, *producers, *consumers) };
            the_five(&mut cases, request, shape);
            // The paper's own fence, where threads can be bound.
            if promise::displaced(0).is_ok() {
                let name = "salsa-displaced";
                cases.push(polling(name, shape, size, Pools(displaced)));
            }
        }
        let shape = Shape::new("2p2c-chunk", 2, 2);
        for chunk in [16, 64, 128, 256, 1000, 4000, 16000] {
            let name = |system: &str| format!("{system}-{chunk}");
            let make = move || DefaultSalsa::new(chunk);
            cases.push(polling(name("salsa"), shape, size, Pools(make)));
            let make = move || SalsaCas::<u64>::new(chunk);
            cases.push(polling(name("salsa-cas"), shape, size, Pools(make)));
            let make = move || ConcBag::<u64>::new(chunk);
            cases.push(polling(name("conc-bag"), shape, size, Pools(make)));
        }
        for (workload, producers, consumers) in
            [("1p1c-block", 1, 1), ("2p2c-block", 2, 2), ("1p3c-block", 1, 3), ("3p1c-block", 3, 1)]
        {
            let shape = Shape::new(workload, producers, consumers);
            cases.push(blocking("task-pool", shape, size, Face));
            peers::each(&mut Peers { cases: &mut cases, size, way: Way::Blocking(shape) });
        }
        limited(&mut cases, size);
        waiters::cases(&mut cases, size);
        cases
    }
}
