//! What it costs to give old buffers back: one growing Chase-Lev deque under four ways of doing so.
//!
//! `cargo bench -p poach-deque --bench reclamation`
//!
//! - `poach`: [`poach_deque::ChaseLev`] as it ships. A thief claims first and copies second, and
//!   its word that an index is finished frees slots and buffers alike.
//! - `keep`: the deque as it was published. A thief copies first and claims second; old buffers are
//!   kept until the deque goes, so that a slow thief finds something to read.
//! - `epoch`: as `keep`, but a thief pins an epoch of crossbeam-epoch, which frees the old buffers.
//! - `hazard`: as `keep`, but a thief protects the buffer with a hazard pointer of haphazard.
//!
//! The last three are one source, below, for tasks of one word; all four have the owner's full
//! fence. The rounds interleave, and each figure is the median of [`ROUNDS`].

use std::hint::black_box;
use std::mem::size_of;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crossbeam_epoch as epoch;
use crossbeam_utils::CachePadded;
use haphazard::HazardPointer;
use poach_deque::{ChaseLev, Steal};
use poach_memory::{Full, Machine, Memory};

/// Samples of each figure.
const ROUNDS: usize = 101;
/// Tasks that a queue grows to, from 64 slots.
const TASKS: u64 = 1 << 16;
/// What an owner pushes before it turns around.
const BATCH: u64 = 1000;

struct Buffer(Box<[AtomicU64]>);

impl Buffer {
    fn new(capacity: u64) -> Self {
        Buffer((0..capacity).map(|_| AtomicU64::new(0)).collect())
    }

    /// Relaxed, here and in the callers: the deque's own words order what is in the slots.
    fn slot(&self, index: u64) -> &AtomicU64 {
        &self.0[index as usize & (self.0.len() - 1)]
    }

    /// Twice as large, with the same tasks.
    fn grown(&self, head: u64, tail: u64) -> Self {
        let new = Buffer::new(2 * self.0.len() as u64);
        for index in head..tail {
            new.slot(index).store(self.slot(index).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        new
    }
}

/// How thieves find the buffer, and what becomes of the old one.
trait Reclaim: Send + Sync {
    /// What a thief has for itself.
    type Guard;
    fn new(buffer: Buffer) -> Self;
    fn guard() -> Self::Guard;
    /// A thief reads the slot of `index`.
    fn read(&self, guard: &mut Self::Guard, index: u64) -> u64;
    /// The owner looks at the buffer, which only it replaces.
    fn owner<R>(&self, look: impl FnOnce(&Buffer) -> R) -> R;
    fn replace(&self, buffer: Buffer);
    /// Slots that are kept for nobody but slow thieves, if that is known.
    fn kept(&self) -> Option<usize>;
}

struct Keep {
    current: AtomicPtr<Buffer>,
    /// All of them; the boxes stay where they are.
    #[expect(clippy::vec_box, reason = "thieves have pointers into them")]
    buffers: Mutex<Vec<Box<Buffer>>>,
}

impl Keep {
    fn push(&self, buffer: Buffer) {
        let mut boxed = Box::new(buffer);
        let pointer: *mut Buffer = &raw mut *boxed;
        self.buffers.lock().expect("nobody panics with it").push(boxed);
        // Release: pairs with the acquire in `read`.
        self.current.store(pointer, Ordering::Release);
    }
}

impl Reclaim for Keep {
    type Guard = ();

    fn new(buffer: Buffer) -> Self {
        let keep = Keep { current: AtomicPtr::default(), buffers: Mutex::default() };
        keep.push(buffer);
        keep
    }

    fn guard() {}

    #[inline]
    fn read(&self, (): &mut (), index: u64) -> u64 {
        // SAFETY: all buffers live as long as `self`.
        let buffer = unsafe { &*self.current.load(Ordering::Acquire) };
        buffer.slot(index).load(Ordering::Relaxed)
    }

    #[inline]
    fn owner<R>(&self, look: impl FnOnce(&Buffer) -> R) -> R {
        // SAFETY: all buffers live as long as `self`.
        look(unsafe { &*self.current.load(Ordering::Relaxed) })
    }

    fn replace(&self, buffer: Buffer) {
        self.push(buffer);
    }

    fn kept(&self) -> Option<usize> {
        let buffers = self.buffers.lock().expect("nobody panics with it");
        Some(buffers.iter().rev().skip(1).map(|buffer| buffer.0.len()).sum())
    }
}

struct Epoch(epoch::Atomic<Buffer>);

impl Reclaim for Epoch {
    type Guard = ();

    fn new(buffer: Buffer) -> Self {
        Epoch(epoch::Atomic::new(buffer))
    }

    fn guard() {}

    #[inline]
    fn read(&self, (): &mut (), index: u64) -> u64 {
        let guard = epoch::pin();
        // Acquire: pairs with the release in `replace`.
        let buffer = self.0.load(Ordering::Acquire, &guard);
        // SAFETY: never null, and not freed while the guard pins the epoch.
        let buffer = unsafe { buffer.deref() };
        buffer.slot(index).load(Ordering::Relaxed)
    }

    #[inline]
    fn owner<R>(&self, look: impl FnOnce(&Buffer) -> R) -> R {
        // SAFETY: only the owner replaces the buffer, and it is here.
        let guard = unsafe { epoch::unprotected() };
        let buffer = self.0.load(Ordering::Relaxed, guard);
        // SAFETY: never null, and the current buffer is not freed.
        look(unsafe { buffer.deref() })
    }

    fn replace(&self, buffer: Buffer) {
        let guard = epoch::pin();
        let old = self.0.swap(epoch::Owned::new(buffer), Ordering::Release, &guard);
        // SAFETY: no longer reachable, and retired once.
        unsafe { guard.defer_destroy(old) };
    }

    fn kept(&self) -> Option<usize> {
        None
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // SAFETY: nobody else has the deque any more.
        let guard = unsafe { epoch::unprotected() };
        let last = self.0.load(Ordering::Relaxed, guard);
        // SAFETY: nobody else has the deque any more, and the pointer is never null.
        drop(unsafe { last.into_owned() });
    }
}

struct Hazard(haphazard::AtomicPtr<Buffer>);

impl Reclaim for Hazard {
    type Guard = HazardPointer<'static>;

    fn new(buffer: Buffer) -> Self {
        Hazard(haphazard::AtomicPtr::from(Box::new(buffer)))
    }

    fn guard() -> Self::Guard {
        HazardPointer::new()
    }

    #[inline]
    fn read(&self, guard: &mut Self::Guard, index: u64) -> u64 {
        let value =
            self.0.safe_load(guard).map(|buffer| buffer.slot(index).load(Ordering::Relaxed));
        guard.reset_protection();
        value.expect("there is always a buffer")
    }

    #[inline]
    fn owner<R>(&self, look: impl FnOnce(&Buffer) -> R) -> R {
        // SAFETY: never null; only the owner replaces the buffer, and it is here.
        look(unsafe { &*self.0.load_ptr() })
    }

    fn replace(&self, buffer: Buffer) {
        let old = self.0.swap(Box::new(buffer)).expect("there is always a buffer");
        // SAFETY: no longer reachable, and retired once.
        unsafe { old.retire() };
    }

    fn kept(&self) -> Option<usize> {
        None
    }
}

impl Drop for Hazard {
    fn drop(&mut self) {
        // SAFETY: nobody else has the deque any more; the pointer came from a box.
        drop(unsafe { Box::from_raw(self.0.load_ptr()) });
    }
}

/// The published deque: copy, then claim.
struct Classic<R> {
    tail: CachePadded<AtomicU64>,
    head: CachePadded<AtomicU64>,
    buffer: R,
}

impl<R: Reclaim> Classic<R> {
    fn new() -> Arc<Self> {
        Arc::new(Classic {
            tail: CachePadded::new(AtomicU64::new(0)),
            head: CachePadded::new(AtomicU64::new(0)),
            buffer: R::new(Buffer::new(64)),
        })
    }

    #[inline]
    fn push(&self, task: u64) {
        let tail = self.tail.load(Ordering::Relaxed);
        // Acquire: slots below `head` have been read.
        let head = self.head.load(Ordering::Acquire);
        let grown = self.buffer.owner(|buffer| {
            (tail - head >= buffer.0.len() as u64).then(|| buffer.grown(head, tail))
        });
        if let Some(grown) = grown {
            self.buffer.replace(grown);
        }
        self.buffer.owner(|buffer| buffer.slot(tail).store(task, Ordering::Relaxed));
        // Release: pairs with the acquire in `steal`.
        self.tail.store(tail + 1, Ordering::Release);
    }

    #[inline]
    fn pop(&self) -> Option<u64> {
        let index = self.tail.load(Ordering::Relaxed).checked_sub(1)?;
        self.tail.store(index, Ordering::Relaxed);
        // The store of `tail` before the load of `head`; the partner is in `steal`.
        Machine::full();
        let head = self.head.load(Ordering::Relaxed);
        if index > head {
            return Some(self.buffer.owner(|buffer| buffer.slot(index).load(Ordering::Relaxed)));
        }
        let order = Ordering::SeqCst;
        let won = index == head
            && self.head.compare_exchange(head, head + 1, order, Ordering::Relaxed).is_ok();
        let task =
            won.then(|| self.buffer.owner(|buffer| buffer.slot(index).load(Ordering::Relaxed)));
        self.tail.store(index + 1, Ordering::Release);
        task
    }

    #[inline]
    fn steal(&self, guard: &mut R::Guard) -> Option<u64> {
        // Acquire: what the last thief had seen.
        let head = self.head.load(Ordering::Acquire);
        // The partner of the fence in `pop`.
        Machine::full();
        // Acquire: pairs with the owner's release.
        let tail = self.tail.load(Ordering::Acquire);
        if head >= tail {
            return None;
        }
        let task = self.buffer.read(guard, head);
        let order = Ordering::SeqCst;
        self.head.compare_exchange(head, head + 1, order, Ordering::Relaxed).ok().map(|_| task)
    }
}

/// Nanoseconds of a task in each workload.
#[derive(Default)]
struct Figures {
    batch: Vec<f64>,
    grow: Vec<f64>,
    steal: Vec<f64>,
}

fn nanoseconds(tasks: u64, run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64() * 1e9 / tasks as f64
}

/// Nanoseconds a task of an owner alone that pushes a batch and pops it.
fn batches(push: impl Fn(u64), pop: impl Fn() -> Option<u64>) -> f64 {
    nanoseconds(50 * BATCH, || {
        for _ in 0..50 {
            (0..BATCH).for_each(&push);
            let popped = std::iter::from_fn(&pop).fold(0, u64::wrapping_add);
            assert_eq!(black_box(popped), BATCH * (BATCH - 1) / 2);
        }
    })
}

fn classic<R: Reclaim>(figures: &mut Figures) -> Option<usize> {
    let queue = Classic::<R>::new();
    figures.grow.push(nanoseconds(TASKS, || (0..TASKS).for_each(|task| queue.push(task))));
    let kept = queue.buffer.kept();
    let mut guard = R::guard();
    figures.steal.push(nanoseconds(TASKS, || {
        let stolen = std::iter::from_fn(|| queue.steal(&mut guard)).fold(0, u64::wrapping_add);
        assert_eq!(stolen, TASKS * (TASKS - 1) / 2);
    }));
    figures.batch.push(batches(|task| queue.push(task), || queue.pop()));
    kept
}

fn poach(figures: &mut Figures) {
    let queue: ChaseLev<u64, Full> = ChaseLev::new();
    let thief = queue.thief();
    figures.grow.push(nanoseconds(TASKS, || (0..TASKS).for_each(|task| queue.push(task))));
    figures.steal.push(nanoseconds(TASKS, || {
        let steal = || match thief.steal() {
            Steal::Success(task) => Some(task),
            _ => None,
        };
        let stolen = std::iter::from_fn(steal).fold(0, u64::wrapping_add);
        assert_eq!(stolen, TASKS * (TASKS - 1) / 2);
    }));
    figures.batch.push(batches(|task| queue.push(task), || queue.pop()));
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    let mut all: [Figures; 4] = Default::default();
    let mut kept = None;
    for _ in 0..ROUNDS {
        let [of_poach, of_keep, of_epoch, of_hazard] = &mut all;
        poach(of_poach);
        kept = classic::<Keep>(of_keep);
        classic::<Epoch>(of_epoch);
        classic::<Hazard>(of_hazard);
    }
    println!("ns a task, medians of {ROUNDS}; the queue grows from 64 slots to {TASKS}\n");
    println!("{:8} {:>14} {:>14} {:>14}", "", "push, growing", "steal", "push and pop");
    for (name, mut figures) in ["poach", "keep", "epoch", "hazard"].into_iter().zip(all) {
        let Figures { batch, grow, steal } = &mut figures;
        let (grow, steal, batch) = (median(grow), median(steal), median(batch));
        println!("{name:8} {grow:>14.2} {steal:>14.2} {batch:>14.2}");
    }
    let bytes = kept.unwrap_or_default() * size_of::<AtomicU64>();
    println!("\n`keep` holds {bytes} bytes of old buffers for as long as the queue lives.");
}
