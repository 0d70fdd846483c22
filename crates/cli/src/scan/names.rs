//! Where an entry lies: a given path, and the names below it.

use std::collections::HashMap;
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

/// The paths that a scan was given, to be found by what begins with them.
pub(super) struct Roots<'s> {
    scan: &'s Scan,
    /// Where each stands among them.
    places: HashMap<&'s [u8], usize>,
}

impl<'s> Roots<'s> {
    pub(super) fn of(scan: &'s Scan) -> Roots<'s> {
        let mut places = HashMap::new();
        for (place, root) in scan.tree.roots().enumerate() {
            places.entry(root.name()).or_insert(place);
        }
        Roots { scan, places }
    }

    /// The names of a path of the scan, if it is there.
    pub(super) fn names_of(&self, path: &[u8]) -> Option<Names> {
        let mut splits = self.splits(path).map(|(_, names)| names);
        splits.find(|names| self.scan.tree.find(names).is_some())
    }

    /// The names of a path below a given path, whether it is there or not, and the number of that
    /// given path. Where one given path lies below another, the lower counts: entries below it are
    /// no entries of the upper.
    pub(super) fn split(&self, path: &[u8]) -> Option<(usize, Names)> {
        self.splits(path).next()
    }

    /// The lowest given path first.
    fn splits(&self, path: &[u8]) -> impl Iterator<Item = (usize, Names)> {
        let separator = std::path::MAIN_SEPARATOR as u8;
        // The part that ends before a separator, or with it.
        let ends = (0..path.len()).rev().filter(move |&at| path[at] == separator);
        let ends = std::iter::once(path.len()).chain(ends.flat_map(|at| [at + 1, at]));
        let mut last = usize::MAX;
        let ends = ends.filter(move |&end| std::mem::replace(&mut last, end) != end);
        ends.filter_map(move |end| {
            let (above, rest) = path.split_at(end);
            let place = *self.places.get(above)?;
            let fits = rest.is_empty() || rest[0] == separator || above.ends_with(&[separator]);
            let below = rest.split(move |&byte| byte == separator).filter(|name| !name.is_empty());
            fits.then(|| (place, std::iter::once(above).chain(below).map(<[u8]>::to_vec).collect()))
        })
    }
}

/// [`Roots::names_of`] of one path.
pub(super) fn names_of(scan: &Scan, path: &[u8]) -> Option<Names> {
    Roots::of(scan).names_of(path)
}

/// An error of the system, which names no file, with the names that it is about, unescaped:
/// messages are escaped when they are shown.
pub(super) fn of(names: &[Vec<u8>], error: io::Error) -> io::Error {
    if error.raw_os_error().is_none() {
        return error;
    }
    let path = joined(names.iter().map(Vec::as_slice));
    io::Error::new(error.kind(), format!("{}: {error}", String::from_utf8_lossy(&path)))
}

#[cfg(test)]
mod tests {
    use poach_scan::{Control, Options, scan};

    use super::*;

    #[test]
    fn a_path_is_split_behind_the_given_path_that_it_begins_with() {
        let tree = tempfile::tempdir().expect("a directory for the test");
        let path = |name: &str| tree.path().join(name);
        for name in ["a/b", "ab", "c"] {
            std::fs::create_dir_all(path(name)).expect("directories");
        }
        // The last one is given with a separator at its end.
        let paths = ["a", "ab", "c/"].map(path);
        let scan = scan(&paths, &Options::default(), &Control::new()).expect("threads");
        let roots = Roots::of(&scan);
        let split = |name: &str| {
            let (place, names) = roots.split(path(name).as_os_str().as_encoded_bytes())?;
            Some((place, names[1..].join(&b' ')))
        };
        assert_eq!(split("a"), Some((0, Vec::new())));
        assert_eq!(split("a/b/x"), Some((0, b"b x".to_vec())));
        assert_eq!(split("ab/x"), Some((1, b"x".to_vec())));
        assert_eq!(split("c/x"), Some((2, b"x".to_vec())));
        assert_eq!((split("abc"), split("")), (None, None));
        let there = |name: &str| roots.names_of(path(name).as_os_str().as_encoded_bytes());
        assert_eq!((there("a/b").map(|names| names.len()), there("a/x")), (Some(2), None));
    }
}
