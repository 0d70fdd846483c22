//! The paper's other pools, which SALSA is measured against, and the hazard pointers under them.
//!
//! | module | the paper's |
//! |---|---|
//! | [`concbag`] | ConcBag: a list of chunks for each producer |
//! | [`ws_msq`] | WS-MSQ: a Michael-Scott queue for each consumer |
//! | [`ws_lifo`] | WS-LIFO: a Treiber stack for each consumer |
//! | `shared_queue` | what WS-MSQ and WS-LIFO have in common |
//! | `hazard` | Michael's hazard pointers |

pub mod concbag;
mod hazard;
mod shared_queue;
pub mod ws_lifo;
pub mod ws_msq;

pub use concbag::{BAG_CHUNK_LENGTH, ConcBag};
pub use hazard::Retention;
pub use ws_lifo::WsLifo;
pub use ws_msq::WsMsq;
