//! What users call: [`TaskPool`], its producers and consumers, and how they wait.
//!
//! | module | what |
//! |---|---|
//! | [`pool`] | `TaskPool` and its builder |
//! | [`producer`], [`consumer`], [`iter`] | the handles, for threads |
//! | [`future`], [`owned`], [`select`], `stream` | the handles, for tasks of an async runtime |
//! | [`shared`] | what the handles of one pool share |
//! | [`seats`] | which consumers have a single-consumer pool of their own |
//! | [`admission`], [`putting`], [`sides`] | the close, the capacity, and puts under way |
//! | [`gate`], [`sleepers`], [`wait`] | who sleeps, and how sleepers are woken |

mod admission;
mod consumer;
mod error;
mod future;
mod gate;
mod iter;
mod owned;
mod pool;
mod producer;
mod putting;
mod seats;
mod select;
mod shared;
mod sides;
mod sleepers;
#[cfg(feature = "async")]
mod stream;
mod wait;

pub use consumer::Consumer;
pub use error::{BuildError, Closed, GetTimeoutError, PutError, PutManyError, TryGetError};
pub use future::{Get, Put};
pub use iter::{IntoIter, Iter, TryIter};
pub use owned::{OwnedGet, OwnedPut};
pub use pool::{Builder, CHUNK_LENGTH, CloseGuard, TaskPool};
pub use producer::Producer;
pub use select::{SelectTimeoutError, Selector};
#[cfg(feature = "async")]
pub use stream::{TaskSink, TaskStream};
