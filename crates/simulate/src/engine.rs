//! The words of a thread of the system, and the simulation that runs there.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::run::Run;
use crate::step::{NOBODY, Op, Place, Slot, Turn};

/// The words of a thread of the system, and the simulation that runs there.
#[derive(Debug)]
pub(crate) struct Engine {
    tag: u32,
    slots: Vec<Slot>,
    unused: Vec<u32>,
    pub(crate) run: Option<Box<Run>>,
}

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(Engine::new());
}

pub(crate) fn with<R>(act: impl FnOnce(&mut Engine) -> R) -> R {
    ENGINE.with_borrow_mut(act)
}

/// A word is dropped, perhaps after its thread's words are gone, or on another thread.
pub(crate) fn word_dropped(tag: u32, word: u32) {
    // Both errors mean that the table is gone, or that nobody needs the place again.
    let _ = ENGINE.try_with(|engine| {
        if let Ok(mut engine) = engine.try_borrow_mut() {
            if engine.tag == tag {
                engine.forget(word);
            }
        }
    });
}

impl Engine {
    fn new() -> Self {
        static TAGS: AtomicU32 = AtomicU32::new(0);
        // Relaxed: the tags need only be unique.
        let tag = TAGS.fetch_add(1, Ordering::Relaxed);
        assert!(tag < u32::MAX, "four thousand million threads have used simulated memory");
        Engine { tag, slots: Vec::new(), unused: Vec::new(), run: None }
    }

    /// A word: the thread's tag and the place of its content.
    pub(crate) fn new_word(&mut self, value: u64) -> (u32, u32) {
        let slot = Slot {
            value,
            pending: 0,
            dropped: false,
            writer: NOBODY,
            written: 0,
            before: 0,
            fresh: 0,
        };
        let word = if let Some(word) = self.unused.pop() {
            self.slots[word as usize] = slot;
            word
        } else {
            assert!(self.slots.len() < NOBODY as usize, "too many simulated words");
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        (self.tag, word)
    }

    fn forget(&mut self, word: u32) {
        let slot = &mut self.slots[word as usize];
        slot.dropped = true;
        if slot.pending == 0 {
            self.unused.push(word);
        }
    }

    /// # Panics
    ///
    /// If the word was made by another thread of the system.
    pub(crate) fn need(&self, tag: u32) {
        assert!(
            tag == self.tag,
            "a word of simulated memory belongs to the thread of the system that made it"
        );
    }

    /// A step of the running thread; at once, outside of a simulation.
    #[inline]
    pub(crate) fn step(&mut self, op: Op, place: Place) -> Turn {
        match &mut self.run {
            Some(run) if run.inside => run.attempt(&mut self.slots, &mut self.unused, op, place),
            _ => Turn::Done(self.directly(op)),
        }
    }

    fn directly(&mut self, op: Op) -> u64 {
        match op {
            Op::Load { word, .. } => self.slots[word as usize].value,
            Op::Store { word, value, .. } => {
                self.slots[word as usize].value = value;
                0
            }
            Op::Change { word, change, .. } => {
                let slot = &mut self.slots[word as usize];
                let old = slot.value;
                slot.value = change.apply(old);
                old
            }
            _ => 0,
        }
    }

    /// The next thread to run, after the events before it; `None` when all is over.
    pub(crate) fn next_thread(&mut self) -> Option<usize> {
        self.run.as_mut()?.next_thread(&mut self.slots, &mut self.unused)
    }
}
