//! Programs that must not compile. Beside each stands a similar program that compiles, so that it
//! fails for the stated reason.
//!
//! Users implement neither the integers of ranges nor `Items`:
//!
//! ```compile_fail,E0603
//! let three = poach_parallel::index::sealed::Count::after(1, 2);
//! ```
//! ```compile_fail,E0603
//! let one = poach_parallel::index::sealed::Count::steps_to(1, 2);
//! ```
//! ```
//! poach_parallel::par_for(1..3, |_| ());
//! ```
//! ```compile_fail,E0603
//! let halves = poach_parallel::items::sealed::Piece::cut(&[1, 2][..], 1);
//! ```
//! ```
//! poach_parallel::par_for(&[1, 2][..], |_| ());
//! ```
//! ```compile_fail,E0599
//! use poach_parallel::Items;
//! let length = (1..3).into_piece().length();
//! ```
//! ```
//! use poach_parallel::Items;
//! let piece = (1..3).into_piece();
//! ```
//! ```compile_fail,E0277
//! use poach_parallel::Items;
//! struct Mine;
//! impl Items for Mine {
//!     type Item = u8;
//!     type Piece = <std::ops::Range<u8> as Items>::Piece;
//!     fn into_piece(self) -> Self::Piece {
//!         (1..3).into_piece()
//!     }
//! }
//! ```
//! ```
//! use poach_parallel::Items;
//! fn count<I: Items<Item = u8>>(items: I) -> usize {
//!     poach_parallel::par_map(items, |_| ()).len()
//! }
//! assert_eq!(count(1..3), 2);
//! ```
//!
//! A user's type cannot implement `Items`, because its supertrait `Sealed` is private:
//!
//! ```compile_fail,E0277
//! struct Mine;
//! fn loops<I: poach_parallel::Items>() {}
//! loops::<Mine>();
//! ```
//! ```
//! fn loops<I: poach_parallel::Items>() {}
//! loops::<&[u32]>();
//! ```
