//! Where an entry lies: a given path, and the names below it.

use std::io;

use poach_scan::Scan;

/// A given path, and the names below it.
pub(super) type Names = Vec<Vec<u8>>;

/// The path at the end of some names.
pub(super) fn joined<'n>(names: impl Iterator<Item = &'n [u8]>) -> Vec<u8> {
    let mut path = Vec::new();
    for name in names {
        if !path.is_empty() && path.last() != Some(&(std::path::MAIN_SEPARATOR as u8)) {
            path.push(std::path::MAIN_SEPARATOR as u8);
        }
        path.extend_from_slice(name);
    }
    path
}

/// The names that a path of a scan is made of, if it is there.
pub(super) fn names_of(scan: &Scan, path: &[u8]) -> Option<Names> {
    splits(scan, path).find(|names| scan.tree.find(names).is_some())
}

/// The names that a path below one of a scan's is made of, whether it is there or not. Where one given path lies below another, the
/// lower counts: what is below it is no entry of the upper.
pub(super) fn split(scan: &Scan, path: &[u8]) -> Option<Names> {
    splits(scan, path).max_by_key(|names| names[0].len())
}

fn splits(scan: &Scan, path: &[u8]) -> impl Iterator<Item = Names> {
    let separator = std::path::MAIN_SEPARATOR as u8;
    scan.tree.roots().filter_map(move |root| {
        let rest = path.strip_prefix(root.name())?;
        let ends = rest.is_empty() || rest[0] == separator || root.name().ends_with(&[separator]);
        let below = rest.split(|&byte| byte == separator).filter(|name| !name.is_empty());
        ends.then(|| std::iter::once(root.name()).chain(below).map(<[u8]>::to_vec).collect())
    })
}

/// An error of the system's, which says nothing of names, with the names that it is about, as they are: messages are escaped when
/// they are shown.
pub(super) fn of(names: &[Vec<u8>], error: io::Error) -> io::Error {
    if error.raw_os_error().is_none() {
        return error;
    }
    let path = joined(names.iter().map(Vec::as_slice));
    io::Error::new(error.kind(), format!("{}: {error}", String::from_utf8_lossy(&path)))
}
