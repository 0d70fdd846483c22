//! `poach-far scan`: one walk of a directory tree by all ranks, which must all see it.
//!
//! A task is a directory. What is counted is what `poach scan` counts: each entry once, whatever it
//! is, the bytes of a file with several names once, a directory's own size included. Files with
//! several names are kept, by device and number, until the end, when each gives its bytes once.
//! Devices are numbered by whether they are the root's, since the same file system may have another
//! number on another node.
//!
//! A directory to which several paths may lead (a bind mount, and what it shows) is not entered
//! when it is found, but recorded. After the walk each of these directories is walked once, from
//! the first of its paths in byte order, and so on until none is new. So no rank has to claim a
//! directory during the walk. Each rank asks its own system for these directories.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{CString, OsStr};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use poach_far::{Context, Error, Outcome, World, reduction};
use poach_scan::report::{Look, escape};
use poach_scan::survey::{self, Tallies};
use poach_scan::sys::{Found as _, Meta, Native, Sys as _};
use poach_scan::{Kind, Totals};
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
    /// Reports on what all ranks have found: by-age, extensions, types or owners.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = report_of)]
    report: Vec<survey::Report>,
    #[command(flatten)]
    checkpoints: Checkpoints,
}

/// A report that can be put together from parts.
fn report_of(name: &str) -> Result<survey::Report, String> {
    let known = Tallies::REPORTS.into_iter().find(|report| report.name() == name);
    known.ok_or_else(|| {
        format!("there are {} here", Tallies::REPORTS.map(survey::Report::name).join(", "))
    })
}

/// A directory to be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Directory {
    path: Vec<u8>,
    /// A walk begins here.
    first: bool,
}

/// A directory or file on all nodes: whether it is on the root's device, or on which other, and its
/// number.
type Identity = (u64, u64);

/// Lengths and blocks.
type Bytes = (u64, u64);

/// A file with several names.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Linked {
    bytes: Bytes,
    /// For reports: the first of its paths in byte order, which bears its size, and what they ask
    /// of the file.
    first: Option<(Vec<u8>, bool, i64, u32)>,
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Findings {
    totals: Totals,
    /// Files with several names.
    links: BTreeMap<Identity, Linked>,
    /// For reports.
    tallies: Option<Tallies>,
    /// Directories with several paths, and the first path of each.
    mounts: BTreeMap<Identity, Vec<u8>>,
    /// What could not be read.
    errors: Vec<(Vec<u8>, String)>,
    /// The largest files: blocks and paths.
    largest: BTreeSet<(u64, Vec<u8>)>,
}

impl Findings {
    fn add(&mut self, (apparent, disk): Bytes) {
        let totals = &mut self.totals;
        totals.apparent_bytes = totals.apparent_bytes.saturating_add(apparent);
        totals.disk_bytes = totals.disk_bytes.saturating_add(disk);
    }

    fn note_mount(&mut self, identity: Identity, path: Vec<u8>) {
        let first = self.mounts.entry(identity).or_insert_with(|| path.clone());
        if path < *first {
            *first = path;
        }
    }

    fn note_link(&mut self, identity: Identity, link: Linked) {
        match self.links.entry(identity) {
            Entry::Vacant(free) => {
                free.insert(link);
            }
            Entry::Occupied(mut known) => {
                if link.first < known.get().first {
                    known.insert(link);
                }
            }
        }
    }

    /// Gives each file of several names its bytes, once.
    fn settle(&mut self) {
        for Linked { bytes, first } in std::mem::take(&mut self.links).into_values() {
            self.add(bytes);
            if let (Some((path, is_file, modified, owner)), Some(tallies)) =
                (first, &mut self.tallies)
            {
                let kind = if is_file { Kind::File } else { Kind::Other };
                let (apparent, disk) = bytes;
                let meta = Meta { apparent, disk, modified, owner, ..Meta::of(kind) };
                let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                tallies.bear(name, &meta);
            }
        }
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
        self.totals.directories += more.totals.directories;
        self.totals.files += more.totals.files;
        self.totals.symlinks += more.totals.symlinks;
        self.totals.other += more.totals.other;
        self.add((more.totals.apparent_bytes, more.totals.disk_bytes));
        for (identity, link) in more.links {
            self.note_link(identity, link);
        }
        match (&mut self.tallies, more.tallies) {
            (Some(own), Some(more)) => own.merge(&more),
            (own, more) => *own = own.take().or(more),
        }
        for (identity, path) in more.mounts {
            self.note_mount(identity, path);
        }
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
    /// To what time ages are counted, if reports are asked for.
    now: Option<i64>,
    /// Directories that several paths may lead to, and the root if there are any, by device and
    /// number on this node.
    several: HashSet<(u64, u64)>,
}

/// Longer paths are opened step by step.
const LONG: usize = 4_000;

impl Walk {
    /// For reports.
    fn tally(&self, found: &mut Findings, name: &[u8], meta: &Meta, bears: bool) {
        if let Some(now) = self.now {
            found.tallies.get_or_insert_with(|| Tallies::new(now)).count(name, meta, bears);
        }
    }

    fn identity(&self, meta: &Meta) -> Identity {
        (if meta.device == self.device { 0 } else { meta.device }, meta.inode)
    }

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
                if let Ok(meta) = known {
                    if meta.kind == Kind::Directory {
                        found.totals.count(Kind::Directory);
                        found.add((meta.apparent, meta.disk));
                        self.tally(found, b"", &meta, true);
                    }
                }
                found.errors.push((path.clone(), format!("cannot open the directory: {error}")));
                return;
            }
        };
        if self.one_file_system && meta.device != self.device {
            return;
        }
        let found = context.result();
        if !task.first && self.several.contains(&(meta.device, meta.inode)) {
            found.note_mount(self.identity(&meta), path.clone());
            return;
        }
        found.totals.count(Kind::Directory);
        found.add((meta.apparent, meta.disk));
        self.tally(found, b"", &meta, true);
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
                below.push(Directory { path: joined(), first: false });
                return ControlFlow::Continue(());
            }
            match entry.meta() {
                Ok(meta) if meta.kind == Kind::Directory => {
                    below.push(Directory { path: joined(), first: false });
                }
                Ok(meta) => {
                    found.totals.count(meta.kind);
                    let bytes = (meta.apparent, meta.disk);
                    let name = entry.name().to_bytes();
                    self.tally(found, name, &meta, meta.links <= 1);
                    if meta.links > 1 {
                        let first = self.now.map(|_| {
                            (joined(), meta.kind == Kind::File, meta.modified, meta.owner)
                        });
                        found.note_link(self.identity(&meta), Linked { bytes, first });
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

/// The directories below `root` that several paths may lead to, and the root itself: none, if there
/// are no others.
fn several(sys: Native, root: &Path) -> HashSet<(u64, u64)> {
    let Ok(whole) = root.canonicalize() else { return HashSet::new() };
    let mounted = sys.mounted_twice();
    let below = mounted.iter().filter(|point| *point != &whole && point.starts_with(&whole));
    let metas = below.filter_map(|point| sys.meta(point, false).ok());
    let directories = metas.filter(|meta| meta.kind == Kind::Directory && meta.inode != 0);
    let mut several: HashSet<_> = directories.map(|meta| (meta.device, meta.inode)).collect();
    if let Ok(meta) = sys.meta(root, false) {
        if !several.is_empty() {
            several.insert((meta.device, meta.inode));
        }
    }
    several
}

pub(super) fn run(world: &mut World, arguments: &Arguments) -> Result<Option<Report>, Error> {
    let (sys, top) = (Native::default(), arguments.top);
    let meta = sys.meta(&arguments.path, false).ok();
    let what = format!("what `{}` is", arguments.path.display());
    world.agree(&what, &meta.map(|meta| (meta.kind as u8, meta.inode)))?;
    let device = meta.map_or(0, |meta| meta.device);
    let root = arguments.path.clone();
    let several = several(sys, &root);
    let now = (!arguments.report.is_empty()).then(|| survey::Settings::default().now);
    // The same on all ranks.
    let now = world.tell(now)?;
    let one_file_system = arguments.one_file_system;
    let walk = Walk { sys, root, device, one_file_system, top, now, several };
    // The root's own identity: a mount of it below itself is walked already.
    let mut walked: BTreeSet<Identity> = meta.iter().map(|meta| walk.identity(meta)).collect();
    let mut firsts = vec![arguments.path.clone().into_os_string().into_vec()];
    let mut whole: Option<Outcome<Findings>> = None;
    for round in 0.. {
        let outcome = walk_from(world, arguments, &walk, &firsts, round)?;
        // At rank 0: what to walk next. All ranks have to know whether there is anything.
        firsts.clear();
        if let Some(more) = outcome {
            for (identity, path) in &more.result.mounts {
                if walked.insert(*identity) {
                    firsts.push(path.clone());
                }
            }
            match &mut whole {
                Some(whole) => {
                    whole.result.merge(more.result, top);
                    whole.add(more.elapsed, &more.ranks);
                }
                None => whole = Some(more),
            }
        }
        if !world.tell(!firsts.is_empty())? {
            break;
        }
    }
    Ok(whole.map(|outcome| report(world, &outcome, arguments)))
}

/// One walk by all ranks, from directories that rank 0 knows.
fn walk_from(
    world: &mut World,
    arguments: &Arguments,
    walk: &Walk,
    firsts: &[Vec<u8>],
    round: usize,
) -> Result<Option<Outcome<Findings>>, Error> {
    let top = arguments.top;
    let firsts = if world.rank() == 0 { firsts } else { &[] };
    let mut job =
        world.job(firsts.iter().map(|path| Directory { path: path.clone(), first: true }));
    if let Some(path) = &arguments.checkpoints.checkpoint {
        let mut about = format!("scan {} {}", arguments.path.display(), arguments.one_file_system);
        let mut path = path.clone().into_os_string();
        if round > 0 {
            let _ = write!(about, " round {round}");
            path.push(format!(".{round}"));
        }
        job = job.checkpoint(path, arguments.checkpoints.every(), &about);
    }
    let merge = move |all: &mut Findings, more| all.merge(more, top);
    job.run(reduction(Findings::default(), merge), |task: Directory, context| {
        walk.visit(&task, context);
    })
}

fn report(world: &World, outcome: &Outcome<Findings>, arguments: &Arguments) -> Report {
    let mut found = outcome.result.clone();
    found.settle();
    found.errors.sort();
    found.totals.errors = found.errors.len() as u64;
    let totals = &found.totals;
    let (mut text, mut document) = told(world, outcome);
    text = format!(
        "{} directories, {} files, {} symbolic links, {} others; {} bytes, {} on disk; {} errors\n{text}",
        totals.directories,
        totals.files,
        totals.symlinks,
        totals.other,
        totals.apparent_bytes,
        totals.disk_bytes,
        totals.errors,
    );
    for (disk, path) in found.largest.iter().rev() {
        let _ = writeln!(text, "{disk:>16} {}", escape(path));
    }
    let settings = survey::Settings { top: Some(arguments.top), ..survey::Settings::default() };
    let tallies = found.tallies.clone().unwrap_or_else(|| Tallies::new(settings.now));
    let reports = arguments.report.iter();
    let sections: Vec<_> =
        reports.filter_map(|&report| tallies.section(report, &settings)).collect();
    let mut tables = Vec::new();
    // Nothing can go wrong in writing to memory.
    let _ = survey::text(&sections, Look::default(), &mut tables);
    text.push_str(&String::from_utf8_lossy(&tables));
    for (path, message) in &found.errors {
        let _ = writeln!(text, "{}: {message}", escape(path));
    }
    document["totals"] = json!(totals);
    document["reports"] =
        sections.iter().map(|section| (section.report.name().to_owned(), json!(section))).collect();
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
    Report { text, document, well: found.errors.is_empty() }
}
