//! The suite `fork-join`: programs that divide their work and join the halves.

use crate::fork::{Program, cases};
use crate::{Case, Request, Suite, programs};

/// The suite `fork-join`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForkJoin;

struct Lister<'a> {
    request: &'a Request,
    cases: &'a mut Vec<Case>,
}

impl programs::Visitor for Lister<'_> {
    fn visit<P: Program>(&mut self) {
        cases::<P>(self.request, self.cases);
    }
}

impl Suite for ForkJoin {
    fn name(&self) -> &'static str {
        "fork-join"
    }

    fn about(&self) -> &'static str {
        "programs that divide their work: Lace's, Cilk's and users', on each scheduler"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let mut cases = Vec::new();
        programs::each(&mut Lister { request, cases: &mut cases });
        cases
    }
}
