//! The trash, where there is none that this program knows: nothing is moved there.

use std::io;
use std::sync::Arc;

use super::item::{Handle, Item, Parent};
use super::names::Names;

/// Whether there is a trash.
pub(super) const IS_THERE: bool = false;

/// Something in the trash: never anything.
#[derive(Debug)]
pub(super) enum Trashed {}

/// No trash.
#[derive(Debug, Default)]
pub(super) struct Bins;

impl Trashed {
    /// # Errors
    ///
    /// Always.
    pub(super) fn put(
        _: &Handle,
        _: &Arc<Parent>,
        _: &Item,
        _: &Names,
        _: &mut Bins,
    ) -> io::Result<Trashed> {
        Err(io::Error::other("this system has no trash that poach can use"))
    }

    pub(super) fn names(&self) -> &Names {
        match *self {}
    }

    /// # Errors
    ///
    /// Never, as nothing is there.
    pub(super) fn bring_back(&self) -> io::Result<()> {
        match *self {}
    }
}
