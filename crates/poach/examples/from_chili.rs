//! What a chili or Lace user writes first: the worker as a value, forks with no cut-off, and a deep
//! recursion.

use poach::{ThreadPool, Worker};

struct Node {
    value: u64,
    children: Option<Box<[Node; 2]>>,
}

fn tree(levels: u32) -> Node {
    let children = (levels > 0).then(|| Box::new([tree(levels - 1), tree(levels - 1)]));
    Node { value: 1, children }
}

/// Each half is given the token of the worker that runs it. The outer one, `worker`, does not
/// compile there.
fn sum(mut worker: Worker<'_>, node: &Node) -> u64 {
    let Some(children) = &node.children else {
        return node.value;
    };
    let [left, right] = &**children;
    let (a, b) = worker.join(|w| sum(w, left), |w| sum(w, right));
    node.value + a + b
}

/// A list is as deep as it is long: one half of each fork is a single element.
fn depth(mut worker: Worker<'_>, left: u32) -> u32 {
    if left == 0 { 0 } else { worker.join(|w| depth(w, left - 1), |_| 1).0 + 1 }
}

pub(crate) fn main() {
    // chili's `Scope::global()`, Lace's `lace_start`: the global pool is there when it is first
    // used.
    let tree = tree(12);
    let nodes = poach::worker(|worker| sum(worker, &tree));
    assert_eq!(nodes, (1 << 13) - 1);

    // A pool of one's own. `install` runs on its threads, and so on the call stack that is asked
    // for here.
    let pool = ThreadPool::builder().num_threads(2).stack_size(256 << 20).build().unwrap();
    assert_eq!(pool.install(|| poach::worker(|worker| depth(worker, 50_000))), 50_000);
    println!("{nodes}");
}
