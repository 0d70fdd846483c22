//! For users of chili and Lace: the worker as a value, forks without a cut-off, a deep recursion.

use poach::{ThreadPool, Worker};

struct Node {
    value: u64,
    children: Option<Box<[Node; 2]>>,
}

fn tree(levels: u32) -> Node {
    let children = (levels > 0).then(|| Box::new([tree(levels - 1), tree(levels - 1)]));
    Node { value: 1, children }
}

/// Each half gets the token of the worker that runs it. Using the outer token, `worker`, in a half
/// does not compile.
fn sum(mut worker: Worker<'_>, node: &Node) -> u64 {
    let Some(children) = &node.children else {
        return node.value;
    };
    let [left, right] = &**children;
    let (a, b) = worker.join(|w| sum(w, left), |w| sum(w, right));
    node.value + a + b
}

/// A list's recursion is as deep as the list is long: one half of each fork is a single element.
fn depth(mut worker: Worker<'_>, left: u32) -> u32 {
    if left == 0 { 0 } else { worker.join(|w| depth(w, left - 1), |_| 1).0 + 1 }
}

pub(crate) fn main() {
    // Instead of chili's `Scope::global()` and Lace's `lace_start`: the first use creates the
    // global pool.
    let tree = tree(12);
    let nodes = poach::worker(|worker| sum(worker, &tree));
    assert_eq!(nodes, (1 << 13) - 1);

    // A pool of your own. `install` runs on its threads, and so on call stacks of this size.
    let pool = ThreadPool::builder().num_threads(2).stack_size(256 << 20).build().unwrap();
    assert_eq!(pool.install(|| poach::worker(|worker| depth(worker, 50_000))), 50_000);
    println!("{nodes}");
}
