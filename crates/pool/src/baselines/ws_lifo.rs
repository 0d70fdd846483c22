//! Treiber's stack: WS-LIFO's pool.
//!
//! Source: Michael, *Hazard Pointers*, IEEE TPDS 2004, figure 10: IBM's LIFO list with a hazard
//! pointer on the topmost node, which is not freed meanwhile. So its address cannot be on top again
//! as another node, and the exchange cannot mistake one for the other.

use core::mem::MaybeUninit;
use core::ptr;

use poach_memory::{CachePadded, Cell, Memory, Ordering, Pointer};

use super::hazard::{Domain, Hazards};
use super::shared_queue::{SharedQueue, SharedQueues};
use crate::registry::each;

/// Work stealing over stacks, over memory `M`. Lock-free.
pub type WsLifo<T, M> = SharedQueues<T, M, Stack<T, M>>;

/// A node of a [`Stack`].
pub struct Node<T, M: Memory> {
    next: M::Pointer<Node<T, M>>,
    task: M::Cell<MaybeUninit<T>>,
}

// SAFETY: a node hands its task from the thread that pushed it to the one that popped it.
unsafe impl<T: Send, M: Memory> Send for Node<T, M> {}

/// A stack for all threads.
pub struct Stack<T, M: Memory> {
    top: CachePadded<M::Pointer<Node<T, M>>>,
}

impl<T: Send, M: Memory> SharedQueue<T, M> for Stack<T, M> {
    type Node = Node<T, M>;

    fn new() -> Option<Self> {
        Some(Stack { top: CachePadded::new(M::Pointer::new(ptr::null_mut())) })
    }

    fn node(task: T) -> Node<T, M> {
        Node { next: M::Pointer::new(ptr::null_mut()), task: M::Cell::new(MaybeUninit::new(task)) }
    }

    fn into_task(node: Box<Node<T, M>>) -> T {
        take::<T, M>(&node)
    }

    #[allow(private_interfaces)]
    fn push(&self, _hazards: &Hazards<Node<T, M>, M>, node: Box<Node<T, M>>) {
        let node = Box::into_raw(node);
        // SAFETY: from a box just now, and nobody else's yet.
        let shared = unsafe { &*node };
        // Relaxed: not dereferenced, only stored below.
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            shared.next.store(top, Ordering::Relaxed);
            // AcqRel: publishes the node, and those below stay visible through it.
            match self.top.compare_exchange(top, node, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    #[allow(private_interfaces)]
    fn pop(
        &self,
        domain: &Domain<Node<T, M>, M>,
        hazards: &Hazards<Node<T, M>, M>,
        exchanges: &mut u64,
        mut announce: impl FnMut(),
    ) -> Option<T> {
        loop {
            let top = hazards.protect(0, &self.top);
            // SAFETY: null, or kept by the hazard pointer.
            let Some(node) = (unsafe { top.as_ref() }) else {
                hazards.clear();
                return None;
            };
            // Relaxed: set before the node was published.
            let next = node.next.load(Ordering::Relaxed);
            *exchanges += 1;
            if next.is_null() {
                announce();
            }
            if self.top.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                let task = take::<T, M>(node);
                hazards.clear();
                // SAFETY: from a box in `push`; it is off the stack, and only the winner of the
                // exchange retires it.
                unsafe { domain.retire(hazards, top) };
                return Some(task);
            }
        }
    }

    #[allow(private_interfaces)]
    fn is_empty(&self, _hazards: &Hazards<Node<T, M>, M>) -> bool {
        // Acquire keeps the order of the traversal's loads.
        self.top.load(Ordering::Acquire).is_null()
    }
}

/// The task of a node that the caller has won, or that nobody else knows.
fn take<T, M: Memory>(node: &Node<T, M>) -> T {
    node.task.with(|task| {
        // SAFETY: written before the node was published, and never again.
        let task = unsafe { task.read() };
        // SAFETY: every node is made with a task, and only the winner reads it.
        unsafe { task.assume_init() }
    })
}

impl<T, M: Memory> Drop for Stack<T, M> {
    fn drop(&mut self) {
        // Relaxed: with `&mut self` all other uses happened before.
        let mut node = self.top.load(Ordering::Relaxed);
        each(|| {
            if node.is_null() {
                return false;
            }
            // SAFETY: from a box, and on the stack once.
            let freed = unsafe { Box::from_raw(node) };
            node = freed.next.load(Ordering::Relaxed);
            drop(take::<T, M>(&freed));
            true
        });
    }
}
