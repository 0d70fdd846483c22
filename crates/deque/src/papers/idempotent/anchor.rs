//! The state of an idempotent queue packed into the one word that its thieves compare and swap.

/// The LIFO queue's: how many tasks there are, and a tag that each push steps up.
#[derive(Clone, Copy)]
pub(super) struct Top {
    pub(super) tail: u32,
    pub(super) tag: u32,
}

impl Top {
    #[inline(always)]
    pub(super) fn pack(self) -> u64 {
        u64::from(self.tag) << 32 | u64::from(self.tail)
    }

    #[inline(always)]
    pub(super) fn unpack(word: u64) -> Self {
        Top { tail: word as u32, tag: (word >> 32) as u32 }
    }
}

/// Bits of a head. The tag has the others.
const BITS: u32 = 23;
const MASK: u64 = (1 << BITS) - 1;

/// The most tasks that the double-ended queue can hold: a head and a tail are as far apart, either
/// way, that half of all heads tells which of them is above.
pub(super) const MOST: usize = 1 << (BITS - 2);

/// The double-ended queue's: where the oldest task is, and the tag.
#[derive(Clone, Copy)]
pub(super) struct Front {
    pub(super) head: u64,
    pub(super) tag: u64,
}

impl Front {
    #[inline(always)]
    pub(super) fn pack(self) -> u64 {
        self.tag << BITS | self.head & MASK
    }

    #[inline(always)]
    pub(super) fn unpack(word: u64) -> Self {
        Front { head: word & MASK, tag: word >> BITS }
    }

    /// How many tasks there are below `tail`; negative if thieves have taken what the owner then
    /// popped.
    #[inline(always)]
    pub(super) fn tasks(self, tail: u64) -> i64 {
        const ABOVE: u32 = 64 - BITS;
        (tail.wrapping_sub(self.head) << ABOVE) as i64 >> ABOVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_wrap_on_their_own() {
        let full = Front { head: MASK, tag: (1 << (64 - BITS)) - 1 };
        let next = Front::unpack(Front { head: full.head + 1, tag: full.tag + 1 }.pack());
        assert_eq!((next.head, next.tag), (0, 0));
        for (tail, tasks) in [(MASK, 0), (MASK + 6, 6), (MASK - 6, -6), (5, 6)] {
            assert_eq!(full.tasks(tail), tasks);
        }
        let top = Top::unpack(Top { tail: 7, tag: u32::MAX }.pack());
        assert_eq!((top.tail, top.tag), (7, u32::MAX));
    }
}
