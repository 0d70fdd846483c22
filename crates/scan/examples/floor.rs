//! The least that a walk of a tree can do on Linux: threads that read directories and ask the
//! kernel about each entry, and add up.
//!
//! ```text
//! cargo run --release -p poach-scan --example floor -- DIR [THREADS] [statx|stat|names]
//! ```
//!
//! Nothing is kept. A failure says no more than that an entry could not be read, and ends the walk.
//! `statx` asks `statx` for links and blocks alone, `stat` asks `newfstatat`, `names` asks for
//! nothing but names and kinds. A directory is asked by the handle that is open anyway. The threads
//! share one stack behind a lock.
//!
//! A file with n names counts an n-th of its bytes with each, so the sum is right if all of its
//! names are below DIR.

#[cfg(target_os = "linux")]
use anyhow::Context as _;
use anyhow::{Result, bail};

#[cfg(target_os = "linux")]
fn main() -> Result<()> {
    use linux::{Ask, walk};

    let mut arguments = std::env::args_os().skip(1);
    let Some(root) = arguments.next() else {
        bail!("say what to walk: floor DIR [THREADS] [statx|stat|names]");
    };
    let threads = match arguments.next() {
        None => 2,
        Some(text) => match text.to_string_lossy().parse() {
            Ok(threads @ 1..=1024) => threads,
            _ => bail!("THREADS is a number from 1 to 1024, not {}", text.to_string_lossy()),
        },
    };
    let ask = match arguments.next() {
        None => Ask::Statx,
        Some(text) => match &*text.to_string_lossy() {
            "statx" => Ask::Statx,
            "stat" => Ask::Stat,
            "names" => Ask::Names,
            other => bail!("the calls are statx, stat or names, not {other}"),
        },
    };
    let sums = walk(root.as_ref(), threads, ask)
        .with_context(|| format!("cannot walk {}", root.to_string_lossy()))?;
    let [directories, files, links, others] = sums.kinds;
    println!(
        "{directories} directories, {files} files, {links} links, {others} others, {} bytes",
        sums.disk
    );
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<()> {
    bail!("it walks on Linux only")
}

#[cfg(target_os = "linux")]
pub(crate) mod linux {
    use std::ffi::{CStr, CString};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::{Arc, Condvar, Mutex};
    use std::thread;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags};

    /// The call that asks about an entry.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Ask {
        Statx,
        Stat,
        Names,
    }

    impl Ask {
        /// The bytes on disk of an entry, shared among its names.
        fn disk(self, directory: &OwnedFd, name: &CStr, flags: AtFlags) -> io::Result<u64> {
            let (blocks, links) = match self {
                Ask::Names => return Ok(0),
                Ask::Statx => {
                    let wanted = StatxFlags::NLINK | StatxFlags::BLOCKS;
                    let found = rustix::fs::statx(directory, name, flags, wanted)?;
                    (found.stx_blocks, u64::from(found.stx_nlink))
                }
                Ask::Stat => {
                    let found = rustix::fs::statat(directory, name, flags)?;
                    #[allow(
                        clippy::unnecessary_cast,
                        reason = "the types differ between processors"
                    )]
                    (found.st_blocks as u64, found.st_nlink as u64)
                }
            };
            // A directory has a link from each directory in it, and yet one name.
            let links = if flags.contains(AtFlags::EMPTY_PATH) { 1 } else { links.max(1) };
            Ok(blocks * 512 / links)
        }
    }

    /// What was found: directories, files, symbolic links, others; and bytes on disk.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Sums {
        pub(crate) kinds: [u64; 4],
        pub(crate) disk: u64,
    }

    /// A directory to be read, by its name in an open one.
    struct Pending(Arc<OwnedFd>, CString);

    #[derive(Default)]
    struct Stack {
        pending: Vec<Pending>,
        waiting: usize,
        ended: bool,
    }

    struct Shared {
        stack: Mutex<Stack>,
        more: Condvar,
        threads: usize,
    }

    impl Shared {
        fn take(&self) -> Option<Pending> {
            let mut stack = self.stack.lock().expect("no thread panics");
            loop {
                if stack.ended {
                    return None;
                }
                if let Some(pending) = stack.pending.pop() {
                    return Some(pending);
                }
                if stack.waiting + 1 == self.threads {
                    stack.ended = true;
                    self.more.notify_all();
                    return None;
                }
                stack.waiting += 1;
                stack = self.more.wait(stack).expect("no thread panics");
                stack.waiting -= 1;
            }
        }

        fn add(&self, found: &mut Vec<Pending>) {
            if found.is_empty() {
                return;
            }
            let mut stack = self.stack.lock().expect("no thread panics");
            stack.pending.append(found);
            if stack.waiting > 0 {
                self.more.notify_all();
            }
        }

        fn end(&self) {
            self.stack.lock().expect("no thread panics").ended = true;
            self.more.notify_all();
        }
    }

    /// The sums of the tree below `root`, the root included.
    pub(crate) fn walk(root: &Path, threads: usize, ask: Ask) -> io::Result<Sums> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Arc::new(rustix::fs::openat(CWD, root, flags, Mode::empty())?);
        let first = Stack { pending: vec![Pending(root, c".".to_owned())], ..Stack::default() };
        let shared = Shared { stack: Mutex::new(first), more: Condvar::new(), threads };
        let sums = thread::scope(|scope| {
            let work = || work(&shared, ask).inspect_err(|_| shared.end());
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("no thread panics"))
                .collect::<io::Result<Vec<Sums>>>()
        })?;
        Ok(sums.into_iter().fold(Sums::default(), |mut all, one| {
            all.kinds.iter_mut().zip(one.kinds).for_each(|(all, one)| *all += one);
            all.disk += one.disk;
            all
        }))
    }

    fn work(shared: &Shared, ask: Ask) -> io::Result<Sums> {
        let mut sums = Sums::default();
        let mut buffer = Box::new_uninit_slice(128 << 10);
        let mut found = Vec::new();
        while let Some(Pending(parent, name)) = shared.take() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let directory = rustix::fs::openat(&*parent, &*name, flags, Mode::empty())?;
            drop(parent);
            let directory = Arc::new(directory);
            sums.kinds[0] += 1;
            sums.disk += ask.disk(&directory, c"", AtFlags::EMPTY_PATH)?;
            let mut entries = RawDir::new(&*directory, &mut buffer);
            while let Some(entry) = entries.next() {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                sums.kinds[match entry.file_type() {
                    FileType::Directory => {
                        found.push(Pending(Arc::clone(&directory), name.to_owned()));
                        continue;
                    }
                    FileType::RegularFile => 1,
                    FileType::Symlink => 2,
                    FileType::Unknown => return Err(io::ErrorKind::Unsupported.into()),
                    _ => 3,
                }] += 1;
                let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
                sums.disk += ask.disk(&directory, name, flags)?;
            }
            shared.add(&mut found);
        }
        Ok(sums)
    }
}
