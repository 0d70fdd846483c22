//! `poach-far scan`: one walk of a directory tree by all ranks, which must all see it.
//!
//! A task is a directory. What is counted is what `poach scan` counts: each entry once, whatever it is, the bytes of a file with
//! several names once, a directory's own size included. Files with several names are kept, by device and number, until the
//! end, when each gives its bytes once. Devices are numbered by whether they are the root's, since the same file system may have another number on
//! another node.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use poach_far::{Context, Error, World, reduction};
use poach_scan::Kind;
use poach_scan::report::escape;
use poach_scan::sys::{Found as _, Native, Sys as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Checkpoints, Report, told};

/// What takes the room below a directory, found by all ranks together.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The directory: the same on all ranks.
    path: PathBuf,
    /// Leave out directories on another file system.
    #[arg(long)]
    one_file_system: bool,
    /// How many of the largest files to show.
    #[arg(long, default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    checkpoints: Checkpoints,
}

/// A directory to be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Directory {
    path: Vec<u8>,
}

/// Lengths and blocks.
type Bytes = (u64, u64);

/// What was found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Findings {
    directories: u64,
    files: u64,
    symlinks: u64,
    other: u64,
    bytes: Bytes,
    /// Files with several names: whether they are on the root's device, that, and their number.
    links: BTreeMap<(u64, u64), Bytes>,
    /// What could not be read.
    errors: Vec<(Vec<u8>, String)>,
    /// The largest files: blocks and paths.
    largest: BTreeSet<(u64, Vec<u8>)>,
}

impl Findings {
    fn count(&mut self, kind: Kind) {
        match kind {
            Kind::Directory => self.directories += 1,
            Kind::File => self.files += 1,
            Kind::Symlink => self.symlinks += 1,
            Kind::Other => self.other += 1,
        }
    }

    fn add(&mut self, (apparent, disk): Bytes) {
        self.bytes.0 = self.bytes.0.saturating_add(apparent);
        self.bytes.1 = self.bytes.1.saturating_add(disk);
    }

    fn note_large(&mut self, disk: u64, path: impl FnOnce() -> Vec<u8>, top: usize) {
        if self.largest.len() < top || self.largest.first().is_some_and(|(least, _)| disk > *least)
        {
            self.largest.insert((disk, path()));
            if self.largest.len() > top {
                self.largest.pop_first();
            }
        }
    }

    fn merge(&mut self, mut more: Findings, top: usize) {
        self.directories += more.directories;
        self.files += more.files;
        self.symlinks += more.symlinks;
        self.other += more.other;
        self.add(more.bytes);
        self.links.append(&mut more.links);
        self.errors.append(&mut more.errors);
        for (disk, path) in more.largest {
            self.note_large(disk, || path, top);
        }
    }
}

/// What all tasks know.
struct Walk {
    sys: Native,
    root: PathBuf,
    device: u64,
    one_file_system: bool,
    top: usize,
}

/// Longer paths are opened step by step.
const LONG: usize = 4_000;

impl Walk {
    fn open(&self, path: &[u8]) -> std::io::Result<<Native as poach_scan::sys::Sys>::Directory> {
        if path.len() < LONG {
            return self.sys.open_path(Path::new(OsStr::from_bytes(path)));
        }
        let below = path[self.root.as_os_str().len()..].split(|&byte| byte == b'/');
        let names: Vec<_> = below
            .filter(|name| !name.is_empty())
            .map(|name| CString::new(name).expect("the system's names hold no NUL"))
            .collect();
        let names: Vec<_> = names.iter().map(CString::as_c_str).collect();
        self.sys.open_below(self.sys.open_path(&self.root)?, &names)
    }

    fn visit(&self, task: &Directory, context: &mut Context<'_, Directory, Findings>) {
        let path = &task.path;
        let opened = self.open(path).and_then(|directory| {
            let meta = self.sys.meta_of(&directory)?;
            Ok((directory, meta))
        });
        let (directory, meta) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let known = self.sys.meta(Path::new(OsStr::from_bytes(path)), false);
                let found = context.result();
                if let Ok(meta) = known
                    && meta.kind == Kind::Directory
                {
                    found.count(Kind::Directory);
                    found.add((meta.apparent, meta.disk));
                }
                found.errors.push((path.clone(), format!("cannot open the directory: {error}")));
                return;
            }
        };
        if self.one_file_system && meta.device != self.device {
            return;
        }
        let found = context.result();
        found.count(Kind::Directory);
        found.add((meta.apparent, meta.disk));
        let mut below = Vec::new();
        let mut buffer = self.sys.buffer();
        let read = self.sys.read(&directory, &mut buffer, &mut |entry| {
            let joined = || {
                let mut joined = path.clone();
                if joined.last() != Some(&b'/') {
                    joined.push(b'/');
                }
                joined.extend_from_slice(entry.name().to_bytes());
                joined
            };
            if entry.kind() == Some(Kind::Directory) {
                below.push(Directory { path: joined() });
                return ControlFlow::Continue(());
            }
            match entry.meta() {
                Ok(meta) if meta.kind == Kind::Directory => {
                    below.push(Directory { path: joined() });
                }
                Ok(meta) => {
                    found.count(meta.kind);
                    let bytes = (meta.apparent, meta.disk);
                    if meta.links > 1 {
                        let device = if meta.device == self.device { 0 } else { meta.device };
                        found.links.insert((device, meta.inode), bytes);
                    } else {
                        found.add(bytes);
                        if meta.kind == Kind::File {
                            found.note_large(meta.disk, joined, self.top);
                        }
                    }
                }
                Err(error) => {
                    found.errors.push((joined(), format!("cannot ask for its size: {error}")));
                }
            }
            ControlFlow::Continue(())
        });
        if let Err(error) = read {
            found
                .errors
                .push((path.clone(), format!("cannot read the directory to its end: {error}")));
        }
        for task in below {
            context.push(task);
        }
    }
}

pub(super) fn run(world: &mut World, arguments: &Arguments) -> Result<Option<Report>, Error> {
    let (sys, top) = (Native::default(), arguments.top);
    let meta = sys.meta(&arguments.path, false).ok();
    let what = format!("what `{}` is", arguments.path.display());
    world.agree(&what, &meta.map(|meta| (meta.kind as u8, meta.inode)))?;
    let device = meta.map_or(0, |meta| meta.device);
    let root = arguments.path.clone();
    let walk = Walk { sys, root, device, one_file_system: arguments.one_file_system, top };
    let seed = (world.rank() == 0)
        .then(|| Directory { path: arguments.path.clone().into_os_string().into_vec() });
    let mut job = world.job(seed);
    if let Some(path) = &arguments.checkpoints.checkpoint {
        let about = format!("scan {} {}", arguments.path.display(), arguments.one_file_system);
        job = job.checkpoint(path, arguments.checkpoints.every(), &about);
    }
    let merge = move |all: &mut Findings, more| all.merge(more, top);
    let outcome = job.run(reduction(Findings::default(), merge), |task: Directory, context| {
        walk.visit(&task, context);
    })?;
    let Some(outcome) = outcome else { return Ok(None) };
    let mut found = outcome.result.clone();
    for bytes in std::mem::take(&mut found.links).into_values() {
        found.add(bytes);
    }
    found.errors.sort();
    let (mut text, mut document) = told(world, &outcome);
    let (apparent, disk) = found.bytes;
    text = format!(
        "{} directories, {} files, {} symbolic links, {} others; {apparent} bytes, {disk} on disk; {} errors\n{text}",
        found.directories,
        found.files,
        found.symlinks,
        found.other,
        found.errors.len(),
    );
    for (disk, path) in found.largest.iter().rev() {
        let _ = writeln!(text, "{disk:>16} {}", escape(path));
    }
    for (path, message) in &found.errors {
        let _ = writeln!(text, "{}: {message}", escape(path));
    }
    document["totals"] = json!({
        "directories": found.directories,
        "files": found.files,
        "symlinks": found.symlinks,
        "other": found.other,
        "errors": found.errors.len(),
        "apparent_bytes": apparent,
        "disk_bytes": disk,
    });
    let shown = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
    document["largest_files"] = found
        .largest
        .iter()
        .rev()
        .map(|(disk, path)| json!({ "path": shown(path), "disk_bytes": disk }))
        .collect();
    document["errors"] = found
        .errors
        .iter()
        .map(|(path, message)| json!({ "path": shown(path), "message": message }))
        .collect();
    Ok(Some(Report { text, document, well: found.errors.is_empty() }))
}
