//! The Michael-Scott queue: WS-MSQ's pool.
//!
//! Source: Michael and Scott, *Simple, Fast, and Practical Non-Blocking and Blocking Concurrent
//! Queue Algorithms*, PODC 1996, with hazard pointers as in Michael's paper of 2004, figure 9. A
//! linked list after a dummy node. A thread that moves `head` to the next node has that node's
//! task, and retires the old head. It reads the task under a hazard pointer, because the node is
//! the dummy now and may be removed at any time.
//!
//! `tail` may be one behind. No thread moves `head` past it: a put takes effect when `tail` moves.

use core::mem::MaybeUninit;
use core::ptr;

use poach_memory::{CachePadded, Cell, Memory, Ordering, Pointer};

use super::hazard::{Domain, Hazards};
use super::shared_queue::{SharedQueue, SharedQueues};
use crate::registry::{each, try_box};

/// Work stealing over Michael-Scott queues, over memory `M`. Lock-free.
pub type WsMsq<T, M> = SharedQueues<T, M, MsQueue<T, M>>;

/// A node of a [`MsQueue`].
pub struct Node<T, M: Memory> {
    next: M::Pointer<Node<T, M>>,
    task: M::Cell<MaybeUninit<T>>,
}

// SAFETY: a node hands its task from the thread that pushed it to the one that won it.
unsafe impl<T: Send, M: Memory> Send for Node<T, M> {}

/// A queue for all threads.
pub struct MsQueue<T, M: Memory> {
    head: CachePadded<M::Pointer<Node<T, M>>>,
    tail: CachePadded<M::Pointer<Node<T, M>>>,
}

impl<T: Send, M: Memory> SharedQueue<T, M> for MsQueue<T, M> {
    type Node = Node<T, M>;

    fn new() -> Option<Self> {
        let dummy = Node {
            next: M::Pointer::new(ptr::null_mut()),
            task: M::Cell::new(MaybeUninit::uninit()),
        };
        let dummy = Box::into_raw(try_box(dummy).ok()?);
        let at_dummy = || CachePadded::new(M::Pointer::new(dummy));
        Some(MsQueue { head: at_dummy(), tail: at_dummy() })
    }

    fn node(task: T) -> Node<T, M> {
        Node { next: M::Pointer::new(ptr::null_mut()), task: M::Cell::new(MaybeUninit::new(task)) }
    }

    fn into_task(node: Box<Node<T, M>>) -> T {
        take::<T, M>(&node)
    }

    #[allow(private_interfaces)]
    fn push(&self, hazards: &Hazards<Node<T, M>, M>, node: Box<Node<T, M>>) {
        let node = Box::into_raw(node);
        loop {
            let last = hazards.protect(0, &self.tail);
            // SAFETY: `tail` is never null, and the hazard pointer keeps its node.
            let last_node = unsafe { &*last };
            // Acquire: the node will be the tail, and dereferenced by others.
            let next = last_node.next.load(Ordering::Acquire);
            if !next.is_null() {
                let _ = self.tail.compare_exchange(last, next, Ordering::AcqRel, Ordering::Relaxed);
                continue;
            }
            // Release publishes the node with its task.
            let null = ptr::null_mut();
            if last_node
                .next
                .compare_exchange(null, node, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                // Release, as above. If it fails another thread has helped.
                let _ =
                    self.tail.compare_exchange(last, node, Ordering::Release, Ordering::Relaxed);
                hazards.clear();
                return;
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
            let first = hazards.protect(0, &self.head);
            // SAFETY: `head` is never null, and the hazard pointer keeps its node.
            let next = hazards.protect(1, unsafe { &(*first).next });
            // The next node may have been removed before the pointer was on it, unless the head is
            // still the same. Acquire: `tail` is read after it.
            if self.head.load(Ordering::Acquire) != first {
                continue;
            }
            // SAFETY: null, or kept by the hazard pointer.
            let Some(next_node) = (unsafe { next.as_ref() }) else {
                hazards.clear();
                return None;
            };
            *exchanges += 1;
            if self.tail.load(Ordering::Acquire) == first {
                let _ =
                    self.tail.compare_exchange(first, next, Ordering::AcqRel, Ordering::Relaxed);
                continue;
            }
            // Before the exchange: afterwards another task may come, and the take would not be
            // announced. Relaxed: a task that is seen there is there.
            if next_node.next.load(Ordering::Relaxed).is_null() {
                announce();
            }
            // AcqRel: the old head is done with; what the new one links to was acquired.
            if self.head.compare_exchange(first, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                let task = take::<T, M>(next_node);
                hazards.clear();
                // SAFETY: from a box in `new` or `push`. The head has passed it, so no thread finds
                // it any more, and only the winner of the exchange retires it.
                unsafe { domain.retire(hazards, first) };
                return Some(task);
            }
        }
    }

    #[allow(private_interfaces)]
    fn is_empty(&self, hazards: &Hazards<Node<T, M>, M>) -> bool {
        let first = hazards.protect(0, &self.head);
        // SAFETY: `head` is never null, and the hazard pointer keeps its node.
        let first_node = unsafe { &*first };
        let empty = first_node.next.load(Ordering::Acquire).is_null();
        hazards.clear();
        empty
    }
}

/// The task of a node that the caller has won, or that nobody else knows.
fn take<T, M: Memory>(node: &Node<T, M>) -> T {
    node.task.with(|task| {
        // SAFETY: written before the node was published, and never again.
        let task = unsafe { task.read() };
        // SAFETY: the winner alone reads it, from a node with a task: the first dummy, made without
        // one, is no `next`.
        unsafe { task.assume_init() }
    })
}

impl<T, M: Memory> Drop for MsQueue<T, M> {
    fn drop(&mut self) {
        // Relaxed: with `&mut self` all other uses happened before. The head is a dummy.
        let mut node = self.head.load(Ordering::Relaxed);
        let mut dummy = true;
        each(|| {
            if node.is_null() {
                return false;
            }
            // SAFETY: from a box, and in this list once.
            let freed = unsafe { Box::from_raw(node) };
            node = freed.next.load(Ordering::Relaxed);
            if !core::mem::take(&mut dummy) {
                drop(take::<T, M>(&freed));
            }
            true
        });
    }
}
