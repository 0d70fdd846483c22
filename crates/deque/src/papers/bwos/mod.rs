//! Block-based work stealing: owner and thieves meet at the borders of blocks only.
//!
//! Source: Wang et al., *BWoS: Formally Verified Block-based Work Stealing for Parallel Processing*
//! (OSDI 2023), and the public implementations: of the FIFO form jschwe/bwosqueue (an author's), of
//! the LIFO form NVIDIA's stdexec (`bwos_lifo_queue.hpp`). `push` and `pop` are `put` and `get`
//! there.
//!
//! # How it works
//!
//! Tasks stand in blocks of a fixed number of slots. Blocks follow one another by *position*; the
//! low 32 bits of a position are the block's *round*. Each block has a word for its thieves,
//! `open`: the round, the index `next` of the oldest task that thieves may take, and the `end` of
//! what they may take. The owner works in a block that is closed to thieves, `end` 0, and needs no
//! synchronisation there at all.
//!
//! | step | who | what |
//! |---|---|---|
//! | *put*, *get* | owner | plain accesses to its own block; a FIFO owner stores the number of tasks in the block that it fills, `committed` |
//! | *grant* | owner | stores `open`: thieves may take what the block has. A LIFO owner does so when its block is full and it goes on to the next |
//! | *takeover* | owner | clears `end` by one read-modify-write and so learns `next`: what is above is the owner's. A LIFO owner does so when its block is empty and it goes back to the one before, a FIFO owner when it goes on to the next |
//! | *steal* | thief | compares and swaps `open` for one with a higher `next`, reads the tasks, and adds their number to `stolen` |
//! | *reclaim* | owner | enters a block anew if thieves have finished (`stolen` is what they have claimed) and the block has no more to take |
//!
//! A thief begins at the block at `start`. If that has nothing left, `next` at `end`, it steps
//! `start` up by a compare-and-swap: such a block is never granted again at this position, because
//! a LIFO owner that finds it so stays where it is.
//!
//! The number of blocks is a power of two, and a position's block is found in a table by the low
//! bits. When each place of the table has a block that may not be entered anew, the owner doubles
//! it. In a FIFO queue a closed block at `start` keeps all above it, even those that thieves have
//! emptied.
//!
//! # Why it is correct
//!
//! *Each task is taken once.* `open` has one order of changes, in which a thief's exchange reads
//! the value just before: it takes indices that no other thief has, of a range that the owner has
//! granted. `takeover` closes the range by a read-modify-write: a claim comes before, and the owner
//! leaves it alone, or fails. An exchange that succeeds for a value that has been away and back
//! claims what is granted now.
//!
//! | | load | must see |
//! |---|---|---|
//! | 1 | a thief's exchange of `open` (LIFO) or load of `committed` (FIFO), acquire | the tasks: the grant or the store of `committed` releases them, and other thieves' exchanges go on with that release |
//! | 2 | the owner's load of `stolen` in `reclaim`, acquire | the thieves' reads of the slots, which each thief's addition releases and the next addition goes on with: the slots may be written |
//! | 3 | a thief's load of the table and of a block's address in it, acquire | the block as it was made |
//!
//! Everything else is relaxed. `takeover` acquires nothing, since the tasks that it gets are the
//! owner's own writes. `start` orders nothing: a value that the owner reads was written when all
//! blocks below had nothing left, which never changes, and `reclaim` sees by `open` itself whether
//! it knows all claims. A thief that sees an old `open` or `committed` finds another round there,
//! or no task.
//!
//! *No task is lost.* A position's block is replaced or entered anew only if `start` has passed the
//! position, or if the LIFO owner has been there and popped the block empty. An owner that is
//! dropped grants what it has.
//!
//! # Departures
//!
//! - The paper's queue has a fixed number of blocks and is full when the next is in use; its
//!   `reclaim` waits for a thief that has claimed a task and not yet read it. Here the table grows.
//!   If a thief still reads a block, the owner puts another in its place, and uses the first one
//!   later.
//! - `start` is stepped up by thieves. In the paper the LIFO owner does it, and each theft walks
//!   over the empty blocks.
//! - A grant says where it ends, so a block may be granted that is not full: `share`. The tasks of
//!   an owner that does not call it are out of the thieves' reach while they are in the owner's
//!   block.
//! - A FIFO owner that finds nothing gives its block back, so that what it pushes next can be
//!   stolen.
//! - A thief may take several tasks by one exchange.
//! - The order in which thieves look at victims is the scheduler's; [`len`](crate::Thief::len) is
//!   the estimate that the paper's thieves use. It is exact for the first 32 blocks, and counts the
//!   others as full.
//! - `open` and `stolen` share a cache line, which a thief needs anyway.
//!
//! # Limits
//!
//! A FIFO thief may sleep in the midst of a steal while its owner fills 2^32 blocks. If it wakes
//! when the block at the same place in the table has the same `next`, it may take what is not
//! there. With blocks of 64 tasks that is minutes of pushes at least, and one moment in them; with
//! blocks of one task less than a minute. A LIFO thief that sleeps as long may take from a block
//! that is not the oldest. If it empties that block, the owner may find nothing while older blocks
//! hold tasks, which are left to thieves.

/// What the owners' handles of both forms have in common, beside their words in `blocks`.
macro_rules! owner_of_blocks {
    ($owner:ident, $fifo:literal) => {
        impl<T: Send> $owner<T> {
            /// An empty queue of blocks of 64.
            pub fn new() -> Self {
                Self::default()
            }
        }

        impl<T: Send, M: Memory> $owner<T, M> {
            /// An empty queue with `capacity` slots at first, in blocks of
            /// `capacity`, or of 64 if that is less.
            ///
            /// # Errors
            ///
            /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
            pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
                Self::starting_at(capacity, 0)
            }
        }

        impl<T: Send, M: Memory> Default for $owner<T, M> {
            fn default() -> Self {
                crate::traits::made::<T, _, _>(Self::with_capacity(crate::ring::DEFAULT_CAPACITY))
            }
        }

        impl<T: Send, M: Memory> crate::traits::ExactlyOnce<T> for $owner<T, M> {}

        impl<T: Send, M: Memory> $owner<T, M> {
            /// A handle for thieves; any number of them.
            pub fn thief(&self) -> Thief<T, $fifo, M> {
                Thief::new(&self.shared)
            }

            /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
            pub fn len(&self) -> usize {
                self.shared.len()
            }
        }

        impl<T: Send, M: Memory> ::core::fmt::Debug for $owner<T, M> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($owner)).field("len", &self.len()).finish_non_exhaustive()
            }
        }

        crate::handles::owner_methods!(
            [T: Send, M: Memory] [T: Send, M: Memory] $owner<T, M>, Thief<T, $fifo, M>
        );
    };
}

mod block;
mod blocks;
mod fifo;
mod lifo;

pub use blocks::Thief;
pub use fifo::BwosFifo;
pub use lifo::BwosLifo;

/// Slots of a block where the caller does not say.
const BLOCK: usize = 64;
