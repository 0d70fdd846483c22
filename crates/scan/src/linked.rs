//! What symbolic links lead to, as further paths to scan.
//!
//! A walk follows no link. But a link whose target lies below a given path has nothing to add: the
//! target is counted where it lies. So it is enough to scan the targets that lie elsewhere as
//! further paths, and the links in these, until there is none that is new. A scan counts each
//! directory and each file once, whichever of its paths lead to it, so no loop of links is endless
//! and none counts twice.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::choice::Choice;
use crate::sys::{Native, Sys as _, path_of};
use crate::visit::{Seen, Visitor, Within};
use crate::{Control, Error, Kind, Options, scan_with};

/// Is told of symbolic links.
struct Links;

impl Visitor for Links {
    type Part = Vec<(Within, Vec<u8>)>;

    fn part(&self) -> Self::Part {
        Vec::new()
    }

    fn entry(&self, part: &mut Self::Part, seen: &Seen<'_>) {
        if seen.meta.kind == Kind::Symlink {
            part.push((seen.within, seen.name.to_vec()));
        }
    }
}

/// The given paths, and after them the targets of symbolic links at and below them that lie below
/// none of them: to be scanned together with [`Options::follow_paths`]. A target is named by its
/// path without links; the targets that one walk finds are in byte order.
///
/// Links in excluded directories are not followed. With [`Options::one_file_system`] no link is
/// followed to a file system that no given path lies on. A link that leads nowhere adds nothing. A
/// link whose target may not be looked at is added itself, so that the scan says so.
///
/// Reads every directory once, by names alone, before it is scanned. Once [`Control::stop`] was
/// called it returns what it has.
///
/// ```
/// use poach_scan::{Control, Options, linked, scan};
///
/// let options = Options { follow_paths: true, ..Options::default() };
/// let control = Control::new();
/// let paths = linked(&["src".into()], &options, &control)?;
/// let found = scan(&paths, &options, &control)?;
/// # assert!(found.totals.files > 0);
/// # Ok::<(), poach_scan::Error>(())
/// ```
///
/// # Errors
///
/// As [`scan`](crate::scan).
pub fn linked(
    paths: &[PathBuf],
    options: &Options,
    control: &Control,
) -> Result<Vec<PathBuf>, Error> {
    let sys = Native::default();
    // A selection makes no difference to what is excluded.
    let choice = options.choice.as_ref().map(|choice| {
        let Choice { ignore_files, exclude_caches, exclude_pseudo, .. } = **choice;
        let exclude = choice.exclude.clone();
        Arc::new(Choice {
            exclude,
            ignore_files,
            exclude_caches,
            exclude_pseudo,
            ..Choice::default()
        })
    });
    let names = Options {
        choice,
        follow_paths: true,
        keep_files: false,
        keep_facts: false,
        memory: None,
        without_sizes: true,
        ..options.clone()
    };
    let device = |path: &Path| sys.meta(path, true).map(|meta| meta.device).ok();
    let devices: HashSet<u64> = paths.iter().filter_map(|path| device(path)).collect();
    let mut known: HashSet<PathBuf> =
        paths.iter().filter_map(|it| it.canonicalize().ok()).collect();
    let (mut all, mut new) = (paths.to_vec(), paths.to_vec());
    while !new.is_empty() {
        let (scan, parts) = scan_with(&sys, &new, &names, control, &Links)?;
        let mut targets = BTreeSet::new();
        for (within, name) in parts.into_iter().flatten() {
            if control.is_stopped() {
                break;
            }
            let Ok(link) = path_of(&scan.tree.path_within(within, &name)) else { continue };
            let target = match link.canonicalize() {
                Ok(target) => target,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    // Not what is below a known path, but the link to it.
                    if !known.contains(&link) {
                        targets.insert(link);
                    }
                    continue;
                }
                Err(_) => continue,
            };
            let lies_on = options.one_file_system.then(|| device(&target));
            // With `one_file_system` a walk does not go from one file system to another.
            let leads = |above: &Path| lies_on.is_none_or(|it| it == device(above));
            let is_known = target.ancestors().any(|above| known.contains(above) && leads(above));
            let is_elsewhere = lies_on.flatten().is_some_and(|device| !devices.contains(&device));
            if !(is_known || is_elsewhere) {
                targets.insert(target);
            }
        }
        known.extend(targets.iter().cloned());
        new = targets.into_iter().collect();
        all.extend(new.iter().cloned());
    }
    Ok(all)
}
