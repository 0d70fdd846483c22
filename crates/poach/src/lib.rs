//! Work stealing without fences.
