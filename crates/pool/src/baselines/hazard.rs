//! Hazard pointers for the nodes of the other pools: one thread reads a node that another removes.
//!
//! Source: Michael, *Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects*, IEEE TPDS
//! 2004. A thread publishes which node it is about to read, issues a full fence, and checks that
//! the node is still where it found it. A thread that has removed a node issues a full fence before
//! it looks for hazard pointers on it. So either it sees the pointer, or the reader sees that the
//! node is gone. Each operation of these pools pays for that, as in the paper's evaluation.
//! (SALSA's own hazard pointers are for chunks, which are not freed: see `salsa`.)

use core::ptr::{self, NonNull};

use poach_memory::{CachePadded, Cell, Freed, Memory, Ordering, Pointer};

use crate::registry::{Entries, MOST};

const HAZARDS: usize = 2;

/// How many retired nodes a thread keeps before it scans which of them can be freed. Any number is
/// safe: more cost memory, fewer cost scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// For each hazard pointer of all threads.
    pub for_each_hazard: usize,
    /// In addition.
    pub more: usize,
}

impl Retention {
    /// The default of the pools: a scan frees at least half of the nodes.
    pub const USUAL: Retention = Retention { for_each_hazard: 2, more: 64 };
    /// No node is kept: each retirement scans at once.
    pub const NONE: Retention = Retention { for_each_hazard: 0, more: 0 };
}

struct Record<N, M: Memory> {
    hazards: CachePadded<[M::Pointer<N>; HAZARDS]>,
    retired: M::Cell<Vec<*mut N>>,
}

// SAFETY: the pointers are words; the cell is touched by the entry's holder alone, which took it
// over from the last by an Acquire of the entry, and by `drop`.
unsafe impl<N: Send, M: Memory> Send for Record<N, M> {}
// SAFETY: the cell is touched by the entry's holder alone, and by `drop`.
unsafe impl<N: Send, M: Memory> Sync for Record<N, M> {}

impl<N, M: Memory> Drop for Record<N, M> {
    fn drop(&mut self) {
        self.retired.with_mut(|retired| {
            // SAFETY: `&mut self`: nobody else uses the cell.
            let retired = unsafe { &mut *retired };
            for node in retired.drain(..) {
                // SAFETY: it came from a box, was retired once, and no thread is left to read it.
                drop(unsafe { Box::from_raw(node) });
            }
        });
    }
}

pub(crate) struct Domain<N, M: Memory> {
    entries: Entries<Record<N, M>, M>,
    retention: Retention,
}

impl<N, M: Memory> Domain<N, M> {
    pub(crate) fn new(retention: Retention) -> Self {
        Domain { entries: Entries::new(), retention }
    }

    /// A thread's hazard pointers; `None` if there is no memory. `release` gives them back.
    pub(crate) fn claim(&self) -> Option<Hazards<N, M>> {
        let make = |_| {
            Some(Record {
                hazards: CachePadded::new(core::array::from_fn(|_| {
                    M::Pointer::new(ptr::null_mut())
                })),
                retired: M::Cell::new(Vec::new()),
            })
        };
        let (number, record) = self.entries.claim(MOST, make)?;
        Some(Hazards { record: NonNull::from(record), number })
    }

    pub(crate) fn release(&self, hazards: &Hazards<N, M>) {
        hazards.clear();
        self.entries.release(hazards.number);
    }

    /// Frees `node` once no thread reads it.
    ///
    /// # Safety
    ///
    /// `node` came from a box, no new reader can find it, and it is retired once. `hazards` belongs
    /// to this domain, and has no hazard pointer on the node, or its thread is done with the node.
    pub(crate) unsafe fn retire(&self, hazards: &Hazards<N, M>, node: *mut N) {
        hazards.record().retired.with_mut(|retired| {
            // SAFETY: the entry is this thread's, which is in no other call of this.
            let retired = unsafe { &mut *retired };
            retired.push(node);
            let Retention { for_each_hazard, more } = self.retention;
            let hazards = HAZARDS * self.entries.len();
            if retired.len() >= for_each_hazard.saturating_mul(hazards).saturating_add(more) {
                self.scan(retired);
            }
        });
    }

    #[cold]
    fn scan(&self, retired: &mut Vec<*mut N>) {
        // Pairs with the fence in `protect`.
        M::full();
        let mut hazardous: Vec<*mut N> = self
            .entries
            .iter()
            // Acquire pairs with the Release in `clear` and `protect`: the reader is done.
            .flat_map(|record| record.hazards.iter().map(|hazard| hazard.load(Ordering::Acquire)))
            .collect();
        hazardous.sort_unstable();
        retired.retain(|node| {
            let keep = hazardous.binary_search(node).is_ok();
            if !keep {
                // SAFETY: it came from a box and was retired once. No reader can find it, and no
                // earlier reader has a hazard pointer on it.
                M::free(unsafe { Freed::new(*node) });
            }
            keep
        });
    }
}

pub(crate) struct Hazards<N, M: Memory> {
    record: NonNull<Record<N, M>>,
    number: usize,
}

// SAFETY: the record is in the domain's registry, which its holder keeps, and it is `Sync`.
unsafe impl<N: Send, M: Memory> Send for Hazards<N, M> {}

impl<N, M: Memory> Hazards<N, M> {
    fn record(&self) -> &Record<N, M> {
        // SAFETY: records live as long as the domain, which outlives its hazard pointers.
        unsafe { self.record.as_ref() }
    }

    /// Puts hazard pointer `which` on the node that `source` names, and returns it. The node is not
    /// freed before the pointer is moved, if threads that remove nodes do so from `source` first.
    pub(crate) fn protect(&self, which: usize, source: &M::Pointer<N>) -> *mut N {
        // Relaxed: only compared.
        let mut node = source.load(Ordering::Relaxed);
        loop {
            self.set(which, node);
            // Acquire pairs with the Release that published the node.
            let now = source.load(Ordering::Acquire);
            if now == node {
                return node;
            }
            node = now;
        }
    }

    /// Puts hazard pointer `which` on `node`; the caller checks afterwards that it is still there.
    pub(crate) fn set(&self, which: usize, node: *mut N) {
        // Release: all accesses of the last node are done. Pairs with the Acquire in `scan`.
        self.record().hazards[which].store(node, Ordering::Release);
        // Pairs with the fence in `scan`.
        M::full();
    }

    pub(crate) fn clear(&self) {
        for hazard in &*self.record().hazards {
            hazard.store(ptr::null_mut(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell as Count;
    use std::rc::Rc;

    use poach_memory::Machine;

    use super::*;

    struct Dropped(Rc<Count<usize>>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    fn nodes<const N: usize>(count: &Rc<Count<usize>>) -> [*mut Dropped; N] {
        [(); N].map(|()| Box::into_raw(Box::new(Dropped(Rc::clone(count)))))
    }

    fn retire(
        domain: &Domain<Dropped, Machine>,
        hazards: &Hazards<Dropped, Machine>,
        node: *mut Dropped,
    ) {
        // SAFETY: from a box, found by nobody without a hazard pointer, and retired once.
        unsafe { domain.retire(hazards, node) };
    }

    #[test]
    fn so_many_nodes_are_kept_before_a_look() {
        let count = Rc::default();
        let domain = Domain::<Dropped, Machine>::new(Retention { for_each_hazard: 1, more: 1 });
        let hazards = domain.claim().expect("memory");
        let dropped = nodes::<3>(&count).map(|node| {
            retire(&domain, &hazards, node);
            count.get()
        });
        assert_eq!(dropped, [0, 0, 3]);
        domain.release(&hazards);
    }

    #[test]
    fn who_has_gone_keeps_no_node() {
        let count = Rc::default();
        let domain = Domain::<Dropped, Machine>::new(Retention::NONE);
        let [gone, stays] = [(); 2].map(|()| domain.claim().expect("memory"));
        let [node] = nodes(&count);
        gone.set(1, node);
        domain.release(&gone);
        retire(&domain, &stays, node);
        assert_eq!(count.get(), 1);
        domain.release(&stays);
    }

    #[test]
    fn each_hazard_pointer_is_found_in_whatever_order_they_are() {
        for turns in 0..4 {
            let count = Rc::default();
            let domain = Domain::<Dropped, Machine>::new(Retention::NONE);
            let threads = [(); 2].map(|()| domain.claim().expect("memory"));
            let mut all: [_; 4] = nodes(&count);
            all.sort_unstable();
            all.reverse();
            all.rotate_left(turns);
            for (place, node) in all.into_iter().enumerate() {
                threads[place / HAZARDS].set(place % HAZARDS, node);
            }
            for node in all {
                retire(&domain, &threads[0], node);
            }
            assert_eq!(count.get(), 0);
            for thread in &threads {
                domain.release(thread);
            }
            drop(domain);
            assert_eq!(count.get(), all.len());
        }
    }

    #[cfg(not(miri))]
    mod models {
        use std::sync::Arc;

        use crate::models::clean_on_both;
        use poach_check::Simulated;

        use super::super::*;

        type Place = <Simulated as Memory>::Cell<u32>;
        type Sources = [<Simulated as Memory>::Pointer<Place>; 2];

        fn place() -> *mut Place {
            Box::into_raw(Box::new(Place::new(0)))
        }

        fn look(place: *mut Place) {
            // SAFETY: null, or a place that the caller's hazard pointer keeps.
            if let Some(place) = unsafe { place.as_ref() } {
                place.with(|_| ());
            }
        }

        fn look_again(hazards: &Hazards<Place, Simulated>, sources: &Sources) {
            for source in sources {
                look(hazards.protect(0, source));
            }
            hazards.clear();
        }

        /// One looks at two nodes, one after the other under the same hazard pointer; another takes
        /// the first away, or the second, and frees it once nobody looks at it.
        #[test]
        fn no_node_is_freed_under_who_looks_at_it() {
            for which in 0..2 {
                clean_on_both(|threads| {
                    let domain = Arc::new(Domain::<Place, Simulated>::new(Retention::NONE));
                    let sources =
                        Arc::new([place(), place()].map(<Simulated as Memory>::Pointer::new));
                    let [looks, takes] = [(); 2].map(|()| domain.claim().expect("memory"));
                    let seen = Arc::clone(&sources);
                    threads.spawn("looks", move || look_again(&looks, &seen));
                    let (seen, frees) = (Arc::clone(&sources), Arc::clone(&domain));
                    threads.spawn("takes", move || {
                        let node = seen[which].swap(ptr::null_mut(), Ordering::AcqRel);
                        // SAFETY: from a box, and no source names it any more.
                        unsafe { frees.retire(&takes, node) };
                    });
                    threads.finally(move || {
                        let left = sources[1 - which].load(Ordering::Relaxed);
                        // SAFETY: from a box, and the threads have ended.
                        drop(unsafe { Box::from_raw(left) });
                        drop((domain, sources));
                    });
                });
            }
        }

        /// A node is removed, written anew once no thread reads it, and put back, as when an
        /// allocator returns the same address again.
        #[test]
        fn who_finds_a_node_again_finds_what_is_in_it_now() {
            clean_on_both(|threads| {
                let domain = Arc::new(Domain::<Place, Simulated>::new(Retention::NONE));
                let source = Arc::new(<Simulated as Memory>::Pointer::new(place()));
                let looks = domain.claim().expect("memory");
                let seen = Arc::clone(&source);
                threads.spawn("looks", move || {
                    look(looks.protect(0, &seen));
                    looks.clear();
                });
                let (seen, asks) = (Arc::clone(&source), Arc::clone(&domain));
                threads.spawn("puts back", move || {
                    let node = seen.swap(ptr::null_mut(), Ordering::AcqRel);
                    Simulated::full();
                    let hazards = asks.entries.iter().flat_map(|record| record.hazards.iter());
                    let mut hazards = hazards.map(|hazard| hazard.load(Ordering::Acquire));
                    if hazards.all(|hazard| hazard != node) {
                        // SAFETY: from a box that is freed in the end.
                        unsafe { &*node }.with_mut(|_| ());
                    }
                    seen.store(node, Ordering::Release);
                });
                threads.finally(move || {
                    // SAFETY: from a box, and the threads have ended.
                    drop(unsafe { Box::from_raw(source.load(Ordering::Relaxed)) });
                    drop((domain, source));
                });
            });
        }
    }
}
