//! The steps of a model's thread: each waits for its turn.

use std::panic::{Location, resume_unwind};

use super::{GivenUp, Turn, slot, with};
use crate::machine::{Access, Op};

/// Takes one step on behalf of the running model thread, when its turn comes.
#[inline]
pub(crate) fn step(op: Op, site: &'static Location<'static>) -> u64 {
    step_as(op, Access::STRONG, site)
}

#[inline]
pub(crate) fn step_as(op: Op, access: Access, site: &'static Location<'static>) -> u64 {
    match with(|engine| engine.request(op, access, site)) {
        Turn::Done(value) => value,
        turn => wait(turn),
    }
}

/// # Panics
///
/// If another one is on.
#[inline]
pub(crate) fn step_of(
    execution: u64,
    op: Op,
    access: Access,
    site: &'static Location<'static>,
) -> u64 {
    let turn = with(|engine| {
        if engine.machine.register.execution != execution {
            engine.foreign_word();
        }
        engine.request(op, access, site)
    });
    match turn {
        Turn::Done(value) => value,
        turn => wait(turn),
    }
}

fn wait(mut turn: Turn) -> u64 {
    loop {
        match turn {
            Turn::Done(value) => return value,
            Turn::Suspend => {
                let current = with(|engine| {
                    engine.suspended(true);
                    engine.current
                });
                slot(current).with(|yielder| yielder.suspend(()));
                turn = with(|engine| {
                    engine.suspended(false);
                    engine.resumed()
                });
            }
            Turn::Unwind => resume_unwind(Box::new(GivenUp)),
        }
    }
}

pub(crate) fn is_weak() -> bool {
    with(|engine| engine.machine.weak.is_some())
}
