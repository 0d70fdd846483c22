//! The suite `fork-join`: programs that divide their work and join the halves.

use crate::cholesky::Cholesky;
use crate::fft::Fft;
use crate::fib::Fib;
use crate::fork::cases;
use crate::heat::Heat;
use crate::integrate::Integrate;
use crate::jacobi::Jacobi;
use crate::json_walk::JsonWalk;
use crate::knapsack::Knapsack;
use crate::life::Life;
use crate::lud::Lud;
use crate::matmul::Matmul;
use crate::mergesort::Mergesort;
use crate::nbody::Nbody;
use crate::queens::Queens;
use crate::quicksort::Quicksort;
use crate::ray::Ray;
use crate::sieve::Sieve;
use crate::simulate::Machine;
use crate::strassen::Strassen;
use crate::tree_sum::TreeSum;
use crate::uts::{BINOMIAL_3L, GEOMETRIC_1, GEOMETRIC_2L, Uts};
use crate::{Case, Request, Suite};

/// The suite `fork-join`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForkJoin;

/// Lists the programs once, for the suite and for its tests.
macro_rules! programs {
    ($($program:ty),* $(,)?) => {
        fn all(request: &Request) -> Vec<Case> {
            let mut all = Vec::new();
            $(cases::<$program>(request, &mut all);)*
            all
        }

        /// The cases of the same programs in the suite `simulate`.
        pub(crate) fn simulated(machine: &Machine, request: &Request, cases: &mut Vec<Case>) {
            $(machine.program::<$program>(request, cases);)*
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn every_program_checks_its_result() {
                $(crate::fork::tests::checks_its_result::<$program>();)*
            }
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
    Nbody,
    Sieve,
    Life,
    Ray<false>,
    Ray<true>,
    JsonWalk<1>,
    JsonWalk<8>,
}

impl Suite for ForkJoin {
    fn name(&self) -> &'static str {
        "fork-join"
    }

    fn about(&self) -> &'static str {
        "programs that divide their work: Lace's, Cilk's and users', on each scheduler"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        all(request)
    }
}
