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

/// Bits of a head, and of a size. The tag has the rest.
const BITS: u32 = 22;
const MASK: u64 = (1 << BITS) - 1;

/// The most tasks that the double-ended queue can hold: what its size field counts, as a power of two.
pub(super) const MOST: usize = 1 << (BITS - 1);

/// The double-ended queue's: where the oldest task is, how many there are, and the tag.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) head: u64,
    pub(super) size: u64,
    pub(super) tag: u64,
}

impl Span {
    #[inline(always)]
    pub(super) fn pack(self) -> u64 {
        self.tag << (2 * BITS) | (self.size & MASK) << BITS | self.head & MASK
    }

    #[inline(always)]
    pub(super) fn unpack(word: u64) -> Self {
        Span { head: word & MASK, size: word >> BITS & MASK, tag: word >> (2 * BITS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_wrap_on_their_own() {
        let full = Span { head: MASK, size: MASK, tag: (1 << (64 - 2 * BITS)) - 1 };
        let next = Span::unpack(Span { head: full.head + 1, size: 5, tag: full.tag + 1 }.pack());
        assert_eq!((next.head, next.size, next.tag), (0, 5, 0));
        let top = Top::unpack(Top { tail: 7, tag: u32::MAX }.pack());
        assert_eq!((top.tail, top.tag), (7, u32::MAX));
    }
}
