//! The machine's memory, over which something else is done at one of this thread's accesses: what
//! another thread might do then.

use std::cell::RefCell;

#[path = "../../../../memory/tests/watched/mod.rs"]
mod watched;

pub(crate) use watched::Kind;
use watched::{Watched, Watcher};

thread_local! {
    /// What is done, and before which of the coming accesses of its kind.
    static MEANWHILE: RefCell<Option<Meanwhile>> = const { RefCell::new(None) };
}

struct Meanwhile {
    kind: Kind,
    /// How many of these go before.
    left: u32,
    act: Box<dyn FnOnce()>,
}

/// Has `act` done before this thread's next access of the kind: the first, if `left` is 0.
pub(crate) fn before(kind: Kind, left: u32, act: impl FnOnce() + 'static) {
    MEANWHILE.set(Some(Meanwhile { kind, left, act: Box::new(act) }));
}

/// The machine's memory, with [`before`].
pub(crate) type Interrupted = Watched<Others>;

/// What another thread might do.
pub(crate) struct Others;

impl Watcher for Others {
    fn before(kind: Kind) {
        let due = MEANWHILE.with_borrow_mut(|meanwhile| {
            let due = meanwhile.take_if(|it| it.kind == kind && it.left == 0);
            if let Some(it) = meanwhile.as_mut().filter(|it| it.kind == kind) {
                it.left -= 1;
            }
            due
        });
        if let Some(due) = due {
            (due.act)();
        }
    }
}
