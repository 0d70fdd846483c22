//! Simulated machines whose process-wide barrier does nothing, or fails, or whose owners do not
//! fence in its place.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.
#![allow(dead_code, reason = "not every test uses all of them")]

use std::cell::RefCell;
use std::rc::Rc;

use poach_check::Simulated;
use poach_memory::{Memory, Ordering, Word as _};

/// Its barrier does nothing: for models that must fail on it.
#[derive(Clone, Copy)]
pub(crate) struct Barrierless;

/// It has no barrier, and its full fences do nothing: for models that must fail on it.
#[derive(Clone, Copy)]
pub(crate) struct Fenceless;

/// Its barrier fails, and it has none from then on.
#[derive(Clone, Copy)]
pub(crate) struct Losing;

/// The same, whose full fences do nothing: for models that must fail on it.
#[derive(Clone, Copy)]
pub(crate) struct LosingFenceless;

/// The program [switches its barrier off](Losing::switch_off), which the system goes on to grant.
#[derive(Clone, Copy)]
pub(crate) struct Retiring;

/// The same, whose barrier does nothing: for models that must fail on it.
#[derive(Clone, Copy)]
pub(crate) struct RetiringBarrierless;

type Flag = <Simulated as Memory>::Word;

thread_local! {
    /// That it is lost: a word of the execution under way, all of whose threads are on this one.
    static LOST: RefCell<Option<Rc<Flag>>> = const { RefCell::new(None) };
}

/// What the model of an execution keeps of [`Losing`] until its end.
pub(crate) struct Lost;

impl Losing {
    /// At the beginning of an execution.
    pub(crate) fn begins() -> Lost {
        LOST.set(Some(Rc::new(Flag::new(0))));
        Lost
    }

    /// The barrier is switched off.
    pub(crate) fn switch_off() {
        // As the process's answer is: the release of a note.
        Self::word().swap(1, Ordering::Release);
    }

    fn word() -> Rc<Flag> {
        LOST.with_borrow(|lost| Rc::clone(lost.as_ref().expect("the execution has begun")))
    }

    fn is_lost() -> bool {
        Self::word().load(Ordering::Relaxed) != 0
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        LOST.set(None);
    }
}

/// The simulated machine's words, and these fences.
macro_rules! memory {
    ($memory:ident: full $full:block light {} heavy $heavy:block asymmetric $asymmetric:block $($more:item)*) => {
        // SAFETY: the simulated machine's but for its fences, which are what they are on purpose: for these models alone, whose
        // tasks are numbers.
        unsafe impl Memory for $memory {
            type Word = <Simulated as Memory>::Word;
            type Pointer<T> = <Simulated as Memory>::Pointer<T>;
            type Cell<T> = <Simulated as Memory>::Cell<T>;

            fn full() $full

            fn light() {}

            fn heavy() $heavy

            fn asymmetric() -> bool $asymmetric

            fn pause() {
                Simulated::pause();
            }

            $($more)*
        }
    };
}

memory!(Barrierless: full { Simulated::full(); } light {} heavy {} asymmetric { true });

memory!(Fenceless: full {} light {} heavy {} asymmetric { false }
    fn owners_fence() -> bool {
        true
    }
);

macro_rules! losing {
    ($memory:ident: full $full:block) => {
        memory!($memory: full $full light {} heavy { Simulated::full(); } asymmetric { !Losing::is_lost() }
            fn try_heavy() -> bool {
                Losing::switch_off();
                false
            }

            fn can_lose() -> bool {
                true
            }

            fn owners_fence() -> bool {
                Losing::is_lost()
            }
        );
    };
}

losing!(Losing: full { Simulated::full(); });
losing!(LosingFenceless: full {});

macro_rules! retiring {
    ($memory:ident: heavy $heavy:block) => {
        memory!($memory: full { Simulated::full(); } light {} heavy $heavy asymmetric { !Losing::is_lost() }
            fn heavy_may_succeed() -> bool {
                true
            }

            fn owners_fence() -> bool {
                Losing::is_lost()
            }
        );
    };
}

retiring!(Retiring: heavy { Simulated::heavy(); });
retiring!(RetiringBarrierless: heavy {});
