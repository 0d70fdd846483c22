//! Programs that divide their work, on a simulated machine: Lace's, and this crate's own with the
//! time that they take here.
//!
//! A program's tree is generated where it can say what that is, else [recorded](super::record)
//! while it runs once.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use poach_simulate::Description;
use poach_simulate::forks::{Search, Setting, private_fork};

use super::{Play, fits, record};
use crate::fork::{self, Input, Program, Sequential};
use crate::programs::fib::FibTree;
use crate::programs::queens::QueensTree;
use crate::programs::uts::{BINOMIAL_3L, GEOMETRIC_2L, Shape, Uts, UtsTree};
use crate::programs::{self, Form};
use crate::{Case, Request, Size, Unit, need_memory};

/// A program of Lace's, by the tree of a size.
type Published = (&'static str, fn(Size) -> Box<dyn Play>);

/// Lace's programs, smaller than in its paper: what one worker does in a simulated second or two,
/// in strands and tasks as long as there. What a worker takes for a task is the paper's `T_1`
/// (Figure 5) over its number of tasks.
const PUBLISHED: [Published; 4] = [
    ("lace-fib", |size| {
        let whole = FibTree { n: 50, grain: 2, unit: 0.0 }.strands();
        let (n, grain) = size.pick((24, 8), (34, 14), (40, 16), (42, 16));
        Box::new(FibTree { n, grain, unit: 144.0e12 / whole })
    }),
    ("lace-queens", |size| {
        let n = size.pick(6, 9, 11, 12);
        Box::new(QueensTree { n, form: Form::Lace, unit: 602.0e12 / 171_129_071.0 })
    }),
    ("lace-uts-t2l", |size| uts::<GEOMETRIC_2L>(86.0e12, size)),
    ("lace-uts-t3l", |size| uts::<BINOMIAL_3L>(44.2e12, size)),
];

/// A tree of so much work that the paper's tree of its kind would take `whole` picoseconds.
fn uts<const KIND: usize>(whole: f64, size: Size) -> Box<dyn Play> {
    let (_, _, nodes) = Uts::<KIND>::published();
    let unit = whole / nodes as f64;
    // Every look of an idle worker is simulated, so the published trees take minutes at least: they
    // are those of `--paper`. These have 62,689 and 3,265,233 nodes, and as wide a root as the
    // published ones.
    let binomial = |probability| (Shape::Binomial { root: 2_000, many: 8, probability }, 42);
    let (shape, seed) = match (KIND, size) {
        (BINOMIAL_3L, Size::Quick) => binomial(0.12),
        (BINOMIAL_3L, Size::Full) => binomial(0.1247),
        _ => {
            let (shape, seed, _) = Uts::<KIND>::new(size).parameters();
            (shape, seed)
        }
    };
    Box::new(UtsTree { shape, seed, form: Form::Lace, unit })
}

/// The tree of a program, made when the first case needs it.
type Made = Rc<OnceCell<Box<dyn Play>>>;

pub(super) fn cases(machine: &Description, request: &Request, cases: &mut Vec<Case>) {
    let size = request.size;
    for (workload, tree) in PUBLISHED {
        let made = Made::default();
        for workers in request.workers.iter().copied() {
            for search in Search::ALL {
                let make = move || Ok(tree(size));
                // What the paper's worker takes for a task holds its fork.
                cases.push(case(machine, workload, search, workers, &made, Inner::Free, make));
            }
        }
    }
    programs::each(&mut Lister { machine, request, cases });
}

/// This machine's programs, with the time that they take here.
struct Lister<'a> {
    machine: &'a Description,
    request: &'a Request,
    cases: &'a mut Vec<Case>,
}

impl programs::Visitor for Lister<'_> {
    fn visit<P: Program>(&mut self) {
        let (size, made, input) = (self.request.size, Made::default(), Input::<P>::default());
        for workers in self.request.workers.iter().copied() {
            let input = Rc::clone(&input);
            let make = move || tree(&input, size);
            let inner = Inner::Charged;
            self.cases.push(case(
                self.machine,
                P::NAME,
                Search::Poach,
                workers,
                &made,
                inner,
                make,
            ));
        }
    }
}

/// Whether forks within a strand take time of their own.
#[derive(Clone, Copy, PartialEq)]
enum Inner {
    Free,
    Charged,
}

fn case(
    machine: &Description,
    workload: &'static str,
    search: Search,
    workers: usize,
    made: &Made,
    inner: Inner,
    make: impl FnOnce() -> Result<Box<dyn Play>> + 'static,
) -> Case {
    let (machine, made) = (machine.clone(), Rc::clone(made));
    let prepare = move || {
        fits(&machine, workers)?;
        if made.get().is_none() {
            let _ = made.set(make()?);
        }
        let fork = if inner == Inner::Charged { private_fork(&machine)? } else { 0 };
        let mut seed = 0;
        Ok(move || {
            seed += 1;
            let tree = made.get().context("the tree was made")?;
            tree.play(&Setting { machine: &machine, workers, search, seed, fork })
        })
    };
    Case::new(workload, search.name(), workers, Unit::SECONDS, prepare).computed()
}

/// The most forks of a recorded tree that are looked at one by one.
const FORKS: usize = 2_000_000;

/// Bytes of a recorded tree for each of them.
const BYTES: u64 = 36;

/// How often the sequential program is timed before a tree is made; the least counts.
const TIMES: usize = 3;

/// The program's tree, generated or recorded, with the time that it takes here.
fn tree<P: Program>(input: &Input<P>, size: Size) -> Result<Box<dyn Play>> {
    let mut program = fork::make(input, size)?.borrow_mut();
    let mut seconds = f64::INFINITY;
    for _ in 0..TIMES {
        program.reset();
        let start = Instant::now();
        program.run(&Sequential);
        seconds = seconds.min(start.elapsed().as_secs_f64());
        program.check()?;
    }
    if let Some(tree) = program.tree(seconds) {
        return Ok(tree);
    }
    need_memory(BYTES * FORKS as u64)?;
    Ok(Box::new(record::record(&mut *program, seconds, FORKS)?))
}

#[cfg(test)]
mod tests {
    use poach_simulate::forks::{End, Tree, totals};

    use super::record::record;
    use super::*;
    use crate::fork::{Split, System as _};
    use crate::programs::fib::Fib;
    use crate::programs::queens::Queens;
    use crate::programs::uts::GEOMETRIC_1;

    /// Both trees have the same forks in the same places.
    fn same_shape<A: Tree, B: Tree>(left: &A, right: &B) {
        let mut waiting = vec![(left.root(), right.root())];
        while let Some((one, other)) = waiting.pop() {
            match (left.strand(one).end, right.strand(other).end) {
                (End::Done, End::Done) => {}
                (
                    End::Fork { first, second, after },
                    End::Fork { first: first2, second: second2, after: after2 },
                ) => waiting.extend([(first, first2), (second, second2), (after, after2)]),
                _ => panic!("one forks, the other does not"),
            }
        }
    }

    #[test]
    fn what_is_generated_is_what_the_programs_do() {
        fn uts<const KIND: usize>() {
            let mut uts = Uts::<KIND>::new(Size::Tiny);
            let (shape, seed, _) = uts.parameters();
            let tree = UtsTree { shape, seed, form: Form::Halves, unit: 1.0 };
            same_shape(&record(&mut uts, 1.0, usize::MAX).unwrap(), &tree);
        }
        let whole = usize::MAX;
        let mut fib = Fib::new(Size::Tiny);
        let tree = FibTree { n: 16, grain: 2, unit: 1.0 };
        same_shape(&record(&mut fib, 1.0, whole).unwrap(), &tree);
        let mut queens = Queens::new(Size::Tiny);
        let tree = QueensTree { n: 6, form: Form::Halves, unit: 1.0 };
        same_shape(&record(&mut queens, 1.0, whole).unwrap(), &tree);
        uts::<GEOMETRIC_1>();
        uts::<GEOMETRIC_2L>();
        uts::<BINOMIAL_3L>();
    }

    #[test]
    #[should_panic(expected = "one forks, the other does not")]
    fn another_tree_is_not_the_same() {
        let mut fib = Fib::new(Size::Tiny);
        let tree = FibTree { n: 17, grain: 2, unit: 1.0 };
        same_shape(&record(&mut fib, 1.0, usize::MAX).unwrap(), &tree);
    }

    #[test]
    fn one_worker_counts_the_same_on_the_runtime_and_in_simulated_time() {
        let (split, mut program) = (Split::new(1).unwrap(), Fib::of(20));
        // On the worker itself: the calling thread would work as a guest, beside a worker that may
        // ask it for tasks.
        split.pool().install(|| program.run(&split));
        let real = split.counters();
        let machine = Description::shipped("lace").unwrap();
        let setting =
            Setting { machine: &machine, workers: 1, search: Search::Poach, seed: 1, fork: 0 };
        let simulated = FibTree { n: 20, grain: 2, unit: 1e4 }.play(&setting).unwrap();
        for name in ["steals", "leaps", "grows", "shrinks"] {
            let (_, counted) = real.iter().find(|(it, _)| *it == name).unwrap();
            assert_eq!(simulated.counters[name] as u64, *counted, "{name}");
        }
        assert_eq!(simulated.counters["forks"] as u64, FibTree::forks(20));
    }

    #[test]
    fn a_grain_hides_forks_and_loses_none() {
        let whole = totals(&FibTree { n: 20, grain: 2, unit: 100.0 });
        let coarse = totals(&FibTree { n: 20, grain: 12, unit: 100.0 });
        assert_eq!(whole.forks, FibTree::forks(20));
        assert_eq!((coarse.forks, coarse.work), (whole.forks, whole.work));
        assert!(coarse.outer < whole.outer / 50);
    }

    #[test]
    fn lace_spawns_every_node_but_the_root() {
        for kind in 0..3 {
            let (shape, seed, nodes) = match kind {
                0 => Uts::<GEOMETRIC_1>::new(Size::Tiny).parameters(),
                1 => Uts::<GEOMETRIC_2L>::new(Size::Tiny).parameters(),
                _ => Uts::<BINOMIAL_3L>::new(Size::Tiny).parameters(),
            };
            let lace = totals(&UtsTree { shape, seed, form: Form::Lace, unit: 1000.0 });
            assert_eq!((lace.outer + 1, lace.work), (nodes, (nodes - 1) * 1000));
            let ours = totals(&UtsTree { shape, seed, form: Form::Halves, unit: 1000.0 });
            assert_eq!(ours.work, lace.work);
        }
        let lace = totals(&QueensTree { n: 6, form: Form::Lace, unit: 1000.0 });
        assert_eq!((lace.outer + 1) * 1000, lace.work);
    }
}
