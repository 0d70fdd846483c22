//! The ring by itself: what is free, and when.

use super::*;
use poach_memory::Machine;

fn filled(start: u64) -> (Rings<u64, Machine>, Buffer<u64, Machine>) {
    let (rings, buffer) = Rings::new(2, start).unwrap();
    for index in [start, start.wrapping_add(1)] {
        assert!(buffer.has(index));
        // SAFETY: the slot is free, and `rings` lives.
        unsafe { buffer.write(index, index) };
    }
    assert!(!buffer.has(start.wrapping_add(2)));
    (rings, buffer)
}

/// A free slot at `tail`, where nobody has claimed `waiting` tasks.
fn free_slot<T>(rings: &Rings<T, Machine>, buffer: &Buffer<T, Machine>, tail: u64, waiting: usize) {
    if !buffer.has(tail) {
        buffer.reserve(rings, tail, || waiting).unwrap();
    }
}

#[test]
fn what_thieves_finish_in_order_is_free() {
    let (rings, buffer) = filled(0);
    for index in 0..2 {
        // SAFETY: claimed once, and written.
        assert_eq!(unsafe { rings.take(index) }, index);
    }
    free_slot(&rings, &buffer, 2, 0);
    assert!(buffer.has(2) && buffer.has(3) && !buffer.has(4));
    assert_eq!(buffer.capacity(), 2);
}

#[test]
fn what_thieves_finish_out_of_order_is_free_when_all_below_is() {
    // The indices wrap, also those of 32 bits that some queues know.
    for start in [0, u64::from(u32::MAX), u64::MAX] {
        let (rings, buffer) = filled(start);
        let at = |step: u64| start.wrapping_add(step);
        // SAFETY: claimed once, and written; the low half of an index suffices.
        let mut slow = unsafe { rings.claimed(u64::from(start as u32), 1) };
        // SAFETY: claimed once, and written.
        assert_eq!(unsafe { rings.take(u64::from(at(1) as u32)) }, at(1));
        free_slot(&rings, &buffer, at(2), 0);
        assert_eq!(buffer.capacity(), 4, "the slot of a claimed task was taken for free");
        for index in [at(2), at(3)] {
            assert!(buffer.has(index));
            // SAFETY: the slot is free, and `rings` lives.
            unsafe { buffer.write(index, index) };
        }
        // The slow thief has the old ring, in which the other has left its mark.
        assert_eq!(slow.next(), Some(start));
        drop(slow);
        free_slot(&rings, &buffer, at(4), 0);
        assert_eq!(buffer.capacity(), 4);
        assert!(buffer.has(at(4)) && buffer.has(at(5)) && !buffer.has(at(6)));
    }
}

/// Two claims, of which the second is finished first: one mark says all of it, on each side of the
/// ring's end.
#[test]
fn a_claim_that_is_finished_out_of_order_is_free_as_a_whole() {
    for start in [0, 5, u64::from(u32::MAX) - 3, u64::MAX - 4] {
        let (rings, buffer) = Rings::<u64, Machine>::new(8, start).unwrap();
        let at = |step: u64| start.wrapping_add(step);
        for lap in [0, 8, 16] {
            for step in lap..lap + 8 {
                free_slot(&rings, &buffer, at(step), 0);
                // SAFETY: the slot is free, and `rings` lives.
                unsafe { buffer.write(at(step), at(step)) };
            }
            // SAFETY: claimed once, and written; the low half of an index suffices.
            let claimed = |step, count| unsafe { rings.claimed(at(step), count) };
            let (mut first, second, third) =
                (claimed(lap, 2), claimed(lap + 2, 5), claimed(lap + 7, 1));
            assert!(second.eq((lap + 2..lap + 7).map(at)));
            assert_eq!(buffer.free(&rings, at(lap + 8)), 0);
            assert_eq!(first.next(), Some(at(lap)));
            drop(first);
            // What the third has claimed is not free with the second.
            assert_eq!(buffer.free(&rings, at(lap + 8)), 7);
            drop(third);
            assert_eq!(buffer.free(&rings, at(lap + 8)), 8);
        }
        assert_eq!(buffer.capacity(), 8);
    }
}

/// A ring of eight is full, with `waiting` tasks that no thief has claimed. The larger ring is at
/// its limit when thieves have taken `taken`: its capacity then.
fn capacity_after(start: u64, waiting: usize, taken: u64) -> usize {
    let (rings, buffer) = Rings::<u64, Machine>::new(8, start).unwrap();
    let at = |step: u64| start.wrapping_add(step);
    let push = |step: u64| {
        free_slot(&rings, &buffer, at(step), waiting);
        // SAFETY: the slot is free, and `rings` lives.
        unsafe { buffer.write(at(step), at(step)) };
    };
    (0..9).for_each(push);
    assert_eq!((buffer.capacity(), buffer.free(&rings, at(9))), (16, 7));
    (9..16).for_each(push);
    for step in 0..taken {
        // SAFETY: claimed once, and written.
        assert_eq!(unsafe { rings.take(at(step)) }, at(step));
    }
    push(16);
    let capacity = buffer.capacity();
    for step in taken..17 {
        // SAFETY: claimed once, and written.
        assert_eq!(unsafe { rings.take(at(step)) }, at(step), "it did not come along");
    }
    (17..50).for_each(|step| {
        push(step);
        // SAFETY: claimed once, and written.
        assert_eq!(unsafe { rings.take(at(step)) }, at(step));
    });
    capacity
}

#[test]
fn a_ring_goes_back_to_what_tasks_have_needed() {
    for start in [0, u64::from(u32::MAX) - 7, u64::MAX - 12] {
        // With a quarter to spare,
        assert_eq!(capacity_after(start, 4, 10), 8);
        assert_eq!(capacity_after(start, 4, 9), 16);
        // and if more than half of the smaller ring was not tasks.
        assert_eq!(capacity_after(start, 5, 10), 16);
    }
}

/// The owner finishes some indices by itself, a thief has the others, before and after the ring
/// grows.
#[test]
fn what_the_owner_finishes_by_itself_counts_once_and_what_thieves_have_does_not() {
    let (rings, buffer) = Rings::<u64, Machine>::new(4, 0).unwrap();
    let push = |range: core::ops::Range<u64>| {
        for index in range {
            free_slot(&rings, &buffer, index, 0);
            // SAFETY: the slot is free, and `rings` lives.
            unsafe { buffer.write(index, index) };
        }
    };
    let take = |index| {
        // SAFETY: written, taken once, and finished after.
        assert_eq!(unsafe { buffer.read(index) }, index);
        // SAFETY: written, taken once, and its task has been read.
        unsafe { buffer.finish_privately(index) };
    };
    push(0..4);
    (0..4).for_each(take);
    // A lap later: the owner's bits of the first are gone.
    push(4..8);
    assert_eq!(buffer.capacity(), 4);
    // SAFETY: claimed once, and written.
    let slow = unsafe { rings.claimed(4, 1) };
    (5..7).for_each(take);
    // It grows, and the owner's bits come along: below 4 all is finished, and 4 is not.
    push(8..9);
    assert_eq!(buffer.capacity(), 8);
    take(7);
    push(9..12);
    assert_eq!(buffer.capacity(), 8);
    drop(slow);
    take(8);
    push(12..17);
    assert_eq!(buffer.capacity(), 8, "what was finished in the ring before does not count");
    assert!(!buffer.find(&rings, 17), "the slot of a task that nobody has taken is free");
}

#[test]
fn a_ring_that_grows_after_several_laps_has_a_lap_more_of_free_slots() {
    let (rings, buffer) = filled(0);
    for index in 0..6 {
        // SAFETY: claimed once, and written.
        assert_eq!(unsafe { rings.take(index) }, index);
        free_slot(&rings, &buffer, index + 2, 1);
        // SAFETY: the slot is free, and `rings` lives.
        unsafe { buffer.write(index + 2, index + 2) };
    }
    assert_eq!(buffer.capacity(), 2);
    free_slot(&rings, &buffer, 8, 2);
    assert_eq!(buffer.capacity(), 4);
    assert!(buffer.has(8) && buffer.has(9) && !buffer.has(10), "6 and 7 are not taken yet");
}

#[test]
fn several_are_finished_at_once_and_dropped_if_nobody_took_them() {
    let (rings, buffer) = Rings::<std::rc::Rc<()>, Machine>::new(4, 7).unwrap();
    let task = std::rc::Rc::new(());
    for index in 7..11 {
        // SAFETY: the slot is free, and `rings` lives.
        unsafe { buffer.write(index, std::rc::Rc::clone(&task)) };
    }
    // SAFETY: claimed once, and written.
    let mut claimed = unsafe { rings.claimed(7, 4) };
    assert_eq!(claimed.size_hint(), (4, Some(4)));
    drop((claimed.next(), claimed.next_back()));
    drop(claimed);
    assert_eq!(std::rc::Rc::strong_count(&task), 1);
    free_slot(&rings, &buffer, 11, 0);
    assert!(buffer.has(14) && !buffer.has(15));
    assert_eq!(buffer.capacity(), 4);
}
