//! Every check that `.ci/run` makes, one verb each.

fn main() {}
