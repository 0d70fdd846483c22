//! That the trees which are generated are those of the programs.

use super::record::record;
use crate::Size;
use crate::fib::{Fib, FibTree};
use crate::fork::Program as _;
use crate::queens::{Queens, QueensTree};
use crate::replay::tree::{End, Form, Tree, totals};
use crate::uts::{BINOMIAL_3L, GEOMETRIC_1, GEOMETRIC_2L, Uts, UtsTree};

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
