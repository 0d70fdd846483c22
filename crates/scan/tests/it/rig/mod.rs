//! The common parts of the scan's tests: a tree with one of everything, a second way to count it,
//! and a system that does as it is told.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// The system by directory handles.
#[cfg(target_os = "linux")]
pub(crate) use poach_scan::sys::Linux as Direct;
#[cfg(windows)]
pub(crate) use poach_scan::sys::Windows as Direct;
use poach_scan::sys::{DiskExtent, Found, Kind, Meta, Portable, Spent, Sys};
use poach_scan::{Control, Engine, Options, Scan, Totals, scan_on};

/// A way to scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) engine: Engine,
    pub(crate) threads: usize,
    pub(crate) portable: bool,
}

impl Way {
    pub(crate) fn scan(self, paths: &[PathBuf], options: &Options) -> Scan {
        let options = Options {
            engine: self.engine,
            threads: NonZeroUsize::new(self.threads),
            ..options.clone()
        };
        let control = Control::new();
        if self.portable {
            scan_on(&Portable, paths, &options, &control)
        } else {
            scan_on(&Direct, paths, &options, &control)
        }
        .expect("threads can be had")
    }
}

/// Every engine on either system, alone and with others. On Windows without `Portable`, which does
/// not know there that two names are of one file.
pub(crate) fn ways() -> impl Iterator<Item = Way> {
    let ways = [(1, false), (4, false), (2, true)].into_iter();
    let ways = ways.filter(|(_, portable)| cfg!(unix) || !portable);
    let ways: Vec<_> = ways.collect();
    Engine::ALL.into_iter().flat_map(move |engine| {
        ways.clone().into_iter().map(move |(threads, portable)| Way { engine, threads, portable })
    })
}

/// Totals as far as [`second_opinion`] has them: on Windows it knows no bytes on disk.
pub(crate) fn told(totals: Totals) -> Totals {
    if cfg!(windows) { Totals { disk_bytes: 0, ..totals } } else { totals }
}

/// Makes a symbolic link; on Windows nothing, where a user may not, and Wine cannot.
#[cfg(unix)]
pub(crate) fn symlink(target: &str, link: PathBuf) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "Unix makes a link, which may fail")]
pub(crate) fn symlink(_: &str, _: PathBuf) -> io::Result<()> {
    Ok(())
}

/// Opens a file or a directory so that nobody else can.
#[cfg(windows)]
pub(crate) fn held(path: &Path) -> fs::File {
    use std::os::windows::fs::OpenOptionsExt as _;
    // FILE_FLAG_BACKUP_SEMANTICS, without which no directory is opened.
    let mut options = fs::File::options();
    options.read(true).share_mode(0).custom_flags(0x0200_0000).open(path).expect("ours alone")
}

/// Sets when a file or a directory was changed.
pub(crate) fn set_modified(path: &Path, time: std::time::SystemTime) -> io::Result<()> {
    #[cfg(unix)]
    let file = fs::File::open(path)?;
    #[cfg(windows)]
    let file = {
        use std::os::windows::fs::OpenOptionsExt as _;
        // FILE_WRITE_ATTRIBUTES, and FILE_FLAG_BACKUP_SEMANTICS.
        fs::File::options().access_mode(0x100).custom_flags(0x0200_0000).open(path)?
    };
    file.set_modified(time)
}

/// The path that a tree has as bytes.
#[cfg(unix)]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(windows)]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::windows::ffi::OsStringExt as _;
    let mut units = Vec::new();
    for part in bytes.utf8_chunks() {
        units.extend(part.valid().encode_utf16());
    }
    std::ffi::OsString::from_wide(&units).into()
}

/// One of everything: hard links near and far, loops, pipes, holes, odd names, and some width.
pub(crate) fn grow(root: &Path) -> io::Result<()> {
    for number in 0..12 {
        let outer = root.join(format!("outer-{number}"));
        for inner in 0..=number % 5 {
            let inner = outer.join(format!("inner-{inner}"));
            fs::create_dir_all(&inner)?;
            for file in 0..9 {
                fs::write(inner.join(format!("file-{file}")), vec![7; file * 911])?;
            }
        }
        symlink("..", outer.join("loop"))?;
        symlink("/nowhere/at/all", outer.join("dangling"))?;
    }
    let twin = root.join("outer-0/inner-0/file-8");
    fs::hard_link(&twin, root.join("outer-3/a-twin"))?;
    fs::hard_link(&twin, root.join("outer-0/inner-0/twin"))?;
    symlink("itself", root.join("itself"))?;
    fs::create_dir(root.join("empty"))?;
    fs::File::create(root.join("hole"))?.set_len(1 << 40)?;
    #[cfg(unix)]
    std::os::unix::net::UnixListener::bind(root.join("socket")).map(drop)?;
    for name in odd_names() {
        match fs::create_dir(root.join(&name)) {
            // Wine has the names alone that the system below it has.
            Err(_) if cfg!(windows) => continue,
            made => made?,
        }
        fs::write(root.join(&name).join("inside"), b"!")?;
    }
    Ok(())
}

#[cfg(windows)]
pub(crate) fn odd_names() -> Vec<PathBuf> {
    use std::os::windows::ffi::OsStringExt;
    let surrogate = std::ffi::OsString::from_wide(&[0x61, 0xd800, 0x62]);
    vec!["\u{202e}gpj".into(), "\u{65e5}\u{1f600}".into(), surrogate.into()]
}

#[cfg(unix)]
pub(crate) fn odd_names() -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    [&b"new\nline"[..], b"esc\x1b[31mred", b"not utf-8 \xff\xfe", "\u{202e}gpj".as_bytes(), b" "]
        .map(|name| PathBuf::from(std::ffi::OsString::from_vec(name.to_vec())))
        .into()
}

/// The totals as `std::fs` and a set of inodes have them.
pub(crate) fn second_opinion(root: &Path) -> Totals {
    let mut totals = Totals::default();
    let mut seen = HashSet::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = path.symlink_metadata().expect("the tests' trees can be read");
        let kind = metadata.file_type();
        if kind.is_dir() {
            totals.directories += 1;
            let inside = fs::read_dir(&path).expect("the tests' trees can be read");
            waiting.extend(inside.map(|entry| entry.expect("as above").path()));
        } else if kind.is_file() {
            totals.files += 1;
        } else if kind.is_symlink() {
            totals.symlinks += 1;
        } else {
            totals.other += 1;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            if kind.is_dir() || metadata.nlink() == 1 || seen.insert(metadata.ino()) {
                totals.apparent_bytes += metadata.size();
                totals.disk_bytes += metadata.blocks() * 512;
            }
        }
        // The standard library does not tell there which names are of one file. `grow` makes three.
        #[cfg(windows)]
        {
            let names = ["outer-0/inner-0/file-8", "outer-0/inner-0/twin", "outer-3/a-twin"];
            if !names.iter().any(|name| path.ends_with(name)) || seen.insert(()) {
                totals.apparent_bytes += metadata.len();
            }
        }
    }
    totals
}

/// The next action of a [`Rigged`] system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Looking up a path given by the user, which is the name here.
    Find,
    Open,
    Meta,
    /// Asking what an open directory is.
    Own,
    Read,
    /// Asking where a file's data lie; without a name.
    Data,
}

/// Asked before each action on a name; an error takes the action's place. The directory's handle
/// has no name when it is read, so that action comes with the name by which the directory was
/// opened.
pub(crate) type Hook<'h> = dyn Fn(Deed, &CStr) -> Option<io::Error> + Sync + 'h;

/// A real system with a hook before everything it does.
pub(crate) struct Rigged<'h, S> {
    pub(crate) sys: S,
    pub(crate) hook: &'h Hook<'h>,
    pub(crate) handles: usize,
    /// Mount points, told apart by their last name, and the directories that are seen there.
    pub(crate) mounts: Vec<(PathBuf, PathBuf)>,
    /// Whether directories name no types of entries, as on some file systems.
    pub(crate) typeless: bool,
    /// The place of each file, if it is to be told.
    pub(crate) extents: Option<&'h [DiskExtent]>,
    /// The time that the calling thread has spent, if it is to be told.
    pub(crate) spent: Option<&'h (dyn Fn() -> Spent + Sync)>,
}

impl<'h> Rigged<'h, Direct> {
    pub(crate) fn new(hook: &'h Hook<'h>) -> Self {
        let mounts = Vec::new();
        let (extents, spent) = (None, None);
        Rigged { sys: Direct, hook, handles: 1000, mounts, typeless: false, extents, spent }
    }

    pub(crate) fn scan(&self, paths: &[PathBuf], engine: Engine) -> Scan {
        let options = Options { engine, threads: NonZeroUsize::new(3), ..Options::default() };
        scan_on(self, paths, &options, &Control::new()).expect("threads can be had")
    }
}

pub(crate) struct RiggedFound<'a> {
    inner: &'a dyn Found,
    hook: &'a Hook<'a>,
    typeless: bool,
}

impl Found for RiggedFound<'_> {
    fn name(&self) -> &CStr {
        self.inner.name()
    }

    fn kind(&self) -> Option<Kind> {
        self.inner.kind().filter(|_| !self.typeless)
    }

    fn meta(&self) -> io::Result<Meta> {
        (self.hook)(Deed::Meta, self.name()).map_or_else(|| self.inner.meta(), Err)
    }
}

impl<S> Rigged<'_, S> {
    /// What is seen at the mount point of a name.
    fn mounted(&self, name: &CStr) -> Option<&Path> {
        let is_named = |point: &Path| {
            point.file_name().is_some_and(|last| last.as_encoded_bytes() == name.to_bytes())
        };
        self.mounts.iter().find(|(point, _)| is_named(point)).map(|(_, seen)| &**seen)
    }
}

impl<S: Sys> Sys for Rigged<'_, S> {
    type Directory = (S::Directory, std::ffi::CString);
    type Buffer = S::Buffer;
    type Found<'a>
        = RiggedFound<'a>
    where
        Self: 'a;

    fn buffer(&self) -> S::Buffer {
        self.sys.buffer()
    }

    fn handles(&self) -> usize {
        self.handles
    }

    fn meta(&self, path: &Path, follow: bool) -> io::Result<Meta> {
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
        let mounted = self.mounts.iter().find(|(point, _)| point == path);
        match (self.hook)(Deed::Find, &name) {
            Some(error) => Err(error),
            None => self.sys.meta(mounted.map_or(path, |(_, seen)| seen), follow),
        }
    }

    fn read_file(
        &self,
        directory: &Self::Directory,
        name: &CStr,
        most: usize,
    ) -> io::Result<Vec<u8>> {
        match (self.hook)(Deed::Open, name) {
            Some(error) => Err(error),
            None => self.sys.read_file(&directory.0, name, most),
        }
    }

    fn open_file(&self, directory: &Self::Directory, name: &CStr) -> io::Result<(fs::File, Meta)> {
        match (self.hook)(Deed::Open, name) {
            Some(error) => Err(error),
            None => self.sys.open_file(&directory.0, name),
        }
    }

    fn extents(&self, file: &fs::File, each: &mut dyn FnMut(DiskExtent)) -> io::Result<()> {
        match self.extents {
            Some(told) => told.iter().for_each(|&extent| each(extent)),
            None => self.sys.extents(file, each)?,
        }
        Ok(())
    }

    fn data_after(&self, file: &fs::File, offset: u64) -> io::Result<Option<Range<u64>>> {
        match (self.hook)(Deed::Data, c"") {
            Some(error) => Err(error),
            None => self.sys.data_after(file, offset),
        }
    }

    fn mounted_twice(&self) -> Vec<PathBuf> {
        self.mounts.iter().map(|(point, _)| point.clone()).collect()
    }

    fn open_path(&self, path: &Path) -> io::Result<Self::Directory> {
        Ok((self.sys.open_path(path)?, c"".into()))
    }

    fn open(&self, parent: &Self::Directory, name: &CStr) -> io::Result<Self::Directory> {
        match (self.hook)(Deed::Open, name) {
            Some(error) => Err(error),
            None => match self.mounted(name) {
                Some(seen) => Ok((self.sys.open_path(seen)?, name.into())),
                None => Ok((self.sys.open(&parent.0, name)?, name.into())),
            },
        }
    }

    fn duplicate(&self, directory: &Self::Directory) -> io::Result<Self::Directory> {
        Ok((self.sys.duplicate(&directory.0)?, directory.1.clone()))
    }

    fn meta_of(&self, directory: &Self::Directory) -> io::Result<Meta> {
        match (self.hook)(Deed::Own, &directory.1) {
            Some(error) => Err(error),
            None => self.sys.meta_of(&directory.0),
        }
    }

    fn meta_in(&self, parent: &Self::Directory, name: &CStr) -> io::Result<Meta> {
        match (self.hook)(Deed::Meta, name) {
            Some(error) => Err(error),
            None => match self.mounted(name) {
                Some(seen) => self.sys.meta(seen, false),
                None => self.sys.meta_in(&parent.0, name),
            },
        }
    }

    fn is_pseudo_in(&self, _: &Self::Directory, name: &CStr) -> bool {
        let seen = self.mounted(name).map(|seen| self.sys.open_path(seen));
        seen.is_some_and(|seen| seen.is_ok_and(|directory| self.sys.is_pseudo(&directory)))
    }

    fn read(
        &self,
        directory: &Self::Directory,
        buffer: &mut S::Buffer,
        each: &mut impl FnMut(&RiggedFound<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.sys.read(&directory.0, buffer, &mut |found| {
            each(&RiggedFound { inner: found, hook: self.hook, typeless: self.typeless })
        })?;
        (self.hook)(Deed::Read, &directory.1).map_or(Ok(()), Err)
    }

    fn spent(&self) -> Option<Spent> {
        self.spent.map(|spent| spent())
    }

    fn exhausted(&self, error: &io::Error) -> bool {
        self.sys.exhausted(error)
    }
}
