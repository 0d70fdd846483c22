//! What every suite shares: cases, sessions, samples, documents.

pub(crate) mod case;
pub(crate) mod document;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod peer;
pub(crate) mod session;
pub(crate) mod statistics;
