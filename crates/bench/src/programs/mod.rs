//! Every program that divides its work, listed once: for the suites that run them, and for their
//! tests. `quad` has what the programs on matrices share.

mod cholesky;
mod fft;
pub(crate) mod fib;
mod heat;
mod integrate;
mod jacobi;
mod knapsack;
mod lud;
mod matmul;
pub(crate) mod mergesort;
mod quad;
pub(crate) mod queens;
mod quicksort;
mod strassen;
pub(crate) mod tree_sum;
pub(crate) mod uts;

use self::cholesky::Cholesky;
use self::fft::Fft;
use self::fib::Fib;
use self::heat::Heat;
use self::integrate::Integrate;
use self::jacobi::Jacobi;
use self::knapsack::Knapsack;
use self::lud::Lud;
use self::matmul::Matmul;
use self::mergesort::Mergesort;
use self::queens::Queens;
use self::quicksort::Quicksort;
use self::strassen::Strassen;
use self::tree_sum::TreeSum;
use self::uts::{BINOMIAL_3L, GEOMETRIC_1, GEOMETRIC_2L, Uts};
use crate::fork::Program;

/// How a task divides its children. The programs of this crate divide by halves. Lace's spawn every
/// child, then wait for all, the last one first. In terms of forks of two that is: the first child
/// is pushed, the other half of the fork is the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Halves,
    Lace,
}

/// Sees every program.
pub(crate) trait Visitor {
    fn visit<P: Program>(&mut self);
}

macro_rules! programs {
    ($($program:ty),* $(,)?) => {
        /// Shows `visitor` each program, in the order in which they run.
        pub(crate) fn each(visitor: &mut impl Visitor) {
            $(visitor.visit::<$program>();)*
        }
    };
}

programs! {
    Fib,
    TreeSum<false>,
    TreeSum<true>,
    Queens,
    Uts<GEOMETRIC_1>,
    Uts<GEOMETRIC_2L>,
    Uts<BINOMIAL_3L>,
    Matmul,
    Jacobi,
    Quicksort,
    Integrate,
    Knapsack,
    Cholesky,
    Heat,
    Lud,
    Strassen,
    Fft,
    Mergesort,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Size;
    use crate::fork::Sequential;

    struct Check;

    impl Visitor for Check {
        /// The check of a program fails before the program has run, and after it was reset; so it
        /// looks at the result, and the result of a run is its own.
        fn visit<P: Program>(&mut self) {
            let mut program = P::new(Size::Tiny);
            program.reset();
            assert!(program.check().is_err(), "{} passes without having run", P::NAME);
            program.run(&Sequential);
            program.check().unwrap();
            program.reset();
            assert!(program.check().is_err(), "{} passes with an earlier result", P::NAME);
        }
    }

    #[test]
    fn every_program_checks_its_result() {
        each(&mut Check);
    }
}
