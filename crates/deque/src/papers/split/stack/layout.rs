//! The layout of the words that a fork's fast path touches, for a fast path written in another
//! language.
//!
//! In C, with the bytes of a slot at `slot` and `stack = slot & ~(ALIGN - 1)`:
//!
//! ```text
//! push:  [slot + TASK] has no PRESENT   write [slot + PAYLOAD ..]   [slot + TASK] = descriptor | PRESENT (release)
//!        compiler barrier               slot < [stack + LIMIT] ?    the head is slot + SLOT then; else `push_at_limit`
//! pop:   [slot + TASK] = descriptor     compiler barrier            slot >= [stack + FLOOR] ?  else `pop_at_floor`
//! ```
//!
//! This is [`push_below_limit`](super::Head::push_below_limit) and
//! [`pop_above_floor`](super::Head::pop_above_floor), whose comments say what each step pairs with.
//! `LIMIT` and `FLOOR` are read with relaxed order.

use core::mem::{offset_of, size_of};

use poach_memory::Machine;

use super::{Header, Hot, Slot};

/// A stack begins at a multiple of this.
pub const ALIGN: usize = super::ALIGN;
/// From the beginning of a stack: the address from which on a push is more than a few stores.
pub const LIMIT: usize = offset_of!(Header<Machine, ()>, hot) + offset_of!(Hot<Machine>, limit);
/// From the beginning of a stack: the address below which a pop is more than a store and a load.
pub const FLOOR: usize = offset_of!(Header<Machine, ()>, hot) + offset_of!(Hot<Machine>, floor);
/// Bytes of a slot.
pub const SLOT: usize = size_of::<Slot<Machine>>();
/// In a slot: the address of the task's descriptor, with [`PRESENT`].
pub const TASK: usize = offset_of!(Slot<Machine>, task);
/// In a slot: what the task needs, and then its result; aligned to 16.
pub const PAYLOAD: usize = offset_of!(Slot<Machine>, payload);
/// Set in a slot's task word while a task stands there.
pub const PRESENT: usize = super::slot::PRESENT;

#[cfg(test)]
mod tests {
    use super::super::{PAYLOAD as PAYLOAD_BYTES, Stack};
    use super::*;

    /// What a program in C was compiled with. A change here breaks all of them: raise the version
    /// of the C library.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_layout_is_the_one_that_c_programs_have() {
        assert_eq!((ALIGN, LIMIT, FLOOR), (1 << 27, 0, 8));
        assert_eq!((SLOT, TASK, PAYLOAD, PAYLOAD_BYTES, PRESENT), (64, 0, 16, 48, 1));
    }

    fn word(at: *const usize) -> usize {
        // SAFETY: the caller names an aligned word of a stack that nobody else uses.
        unsafe { at.read() }
    }

    #[test]
    fn the_words_are_where_the_layout_says() {
        let stack: Stack<Machine> = Stack::new(10, ()).unwrap();
        // SAFETY: this thread owns the stack.
        let bottom = unsafe { stack.bottom() };
        let slot = bottom.as_ptr().as_ptr();
        let start = slot.map_addr(|address| address & !(ALIGN - 1)).cast::<usize>();
        let floor = word(start.wrapping_byte_add(FLOOR));
        assert_eq!(floor, slot.addr(), "nothing is shared");
        let limit = word(start.wrapping_byte_add(LIMIT));
        assert_eq!(limit, floor + 10 * SLOT, "ten slots and a spare one are ready");
        let descriptor = core::ptr::without_provenance_mut(0x40);
        // SAFETY: this thread owns the stack; nobody steals; the pop follows.
        let above = unsafe { bottom.push(descriptor, &raw const descriptor) }.unwrap();
        assert_eq!(above.as_ptr().addr().get(), floor + SLOT);
        assert_eq!(word(slot.cast::<usize>().wrapping_byte_add(TASK)), 0x40 | PRESENT);
        assert_eq!(word(slot.cast::<usize>().wrapping_byte_add(PAYLOAD)), 0x40);
        // SAFETY: this thread owns the stack, whose topmost task it is.
        unsafe { bottom.pop() };
    }
}
