//! The split deque of Lace: a shared part for thieves, a private part for the owner alone.
//!
//! Source: van Dijk and van de Pol, *Lace: Non-blocking Split Deque for Work-Stealing*, section 3,
//! Figures 2-4.
//!
//! ```text
//!      0        tail        split            head
//!      | stolen  |  shared   |    private      |  free
//! ```
//!
//! Thieves take the task at `tail` and step `tail` up. The owner pushes and pops at `head`, and as
//! long as it stays above `split` no other thread touches what it touches: no fence, no locked
//! instruction. Only when the owner comes down to `split` does it move `split` to take shared tasks
//! back, and only when a thief has found nothing does it move `split` up to share more.
//!
//! [`Bounds`] is the one word that holds `tail` and `split`, with the argument for both moves.
//! `sharing` is what passes between an owner and its thieves beside: requests, answers, exposure.
//! Two deques stand on them:
//!
//! - [`Stack`], the direct task stack: a task lives in its slot, a stolen task keeps the slot until
//!   its result is back, the head is a value in the owner's registers. For `join`.
//! - [`Split`], the deque of the family: any number of tasks, moved in and out as values; owner and
//!   thieves as all others have them. For `spawn`.
//!
//! # The lines of Figure 4
//!
//! | lines | what | in [`Split`] | in [`Stack`] |
//! |---|---|---|---|
//! | 1-9 | `steal` | `Thief::claim`; 3 to 7 are [`Bounds::claim`] | `steal`; the same |
//! | 10-13, 20 | `push`, and its answer to a thief | `try_push`, `answer` | `push_below_limit`, `push_at_limit` |
//! | 14-19 | a push on a deque whose tasks are all stolen | not needed: there is no `allstolen` | `Bounds::reset`, in `retire` |
//! | 21-30 | `pop` | `pop`, `pop_disturbed` | `pop_above_floor`, `pop_at_floor` |
//! | 31-35 | `pop_stolen` | not needed: tasks are moved out | `retire` |
//! | 36-40 | `grow_shared` | `Sharing::attend`, for both | |
//! | 41-57 | `shrink_shared` | [`Bounds::take_back`], for both | |

mod bounds;
mod growing;
mod sharing;
mod stack;

pub use crate::ring::{Storage, Whole};
#[doc(hidden)]
pub use bounds::{Bounds, Claim};
pub use growing::{NoTask, Split, Thief};
pub use sharing::Exposure;
#[doc(hidden)]
pub use stack::layout;
pub use stack::{
    Context, Head, MAX_SLOTS, PAYLOAD, Popped, PushError, Pushed, Slot, Stack, StackError, Status,
    Stolen,
};
