//! Every program that divides its work, listed once: for the suites that run them, and for their tests.

use crate::cholesky::Cholesky;
use crate::fft::Fft;
use crate::fib::Fib;
use crate::fork::Program;
use crate::heat::Heat;
use crate::integrate::Integrate;
use crate::jacobi::Jacobi;
use crate::knapsack::Knapsack;
use crate::life::Life;
use crate::lud::Lud;
use crate::matmul::Matmul;
use crate::mergesort::Mergesort;
use crate::queens::Queens;
use crate::quicksort::Quicksort;
use crate::sieve::Sieve;
use crate::strassen::Strassen;
use crate::tree_sum::TreeSum;
use crate::uts::{BINOMIAL_3L, GEOMETRIC_1, GEOMETRIC_2L, Uts};

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
    Sieve,
    Life,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Size;
    use crate::fork::Sequential;

    struct Check;

    impl Visitor for Check {
        /// The check of a program fails before the program has run, and after it was reset; so it looks
        /// at the result, and the result of a run is its own.
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
