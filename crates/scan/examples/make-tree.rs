//! Grows a directory tree to scan: seeded, so that two machines can have the same one.
//!
//! ```text
//! cargo run --release -p poach-scan --example make-tree -- DIR [ENTRIES] [SEED]
//! ```
//!
//! The shape is that of a home directory full of source trees: of 1,000 entries 185 are
//! directories, 16 symbolic links, the rest files. Each directory hangs below a random earlier one,
//! so most are small and near the root while a few hold thousands of entries or lie dozens of
//! levels deep. One file in fifty is one more name of the file made before it (a hard link). Most
//! files are holes with a size, one in four holds real bytes.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fastrand::Rng;

const DEFAULT_ENTRIES: usize = 629_709;
const DEFAULT_SEED: u64 = 0x706f_6163_6821;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(root) = arguments.next().map(PathBuf::from) else {
        bail!("say where: make-tree DIR [ENTRIES] [SEED]");
    };
    let mut number = |name: &str, default: u64| match arguments.next() {
        None => Ok(default),
        Some(text) => text
            .to_string_lossy()
            .parse::<u64>()
            .with_context(|| format!("{name} is to be a number, not {}", text.to_string_lossy())),
    };
    let entries = number("ENTRIES", DEFAULT_ENTRIES as u64)? as usize;
    let seed = number("SEED", DEFAULT_SEED)?;

    let [directories, files, links, hard] = make(root, entries, seed)?;
    println!("{directories} directories, {files} files ({hard} of them hard links), {links} links");
    Ok(())
}

/// How many directories, files, symbolic links it made; and how many of the files are hard links.
pub(crate) fn make(root: PathBuf, entries: usize, seed: u64) -> Result<[usize; 4]> {
    fs::create_dir(&root)
        .with_context(|| format!("cannot make {}; it must not exist yet", root.display()))?;
    let mut tree = Tree { rng: Rng::with_seed(seed), directories: vec![root], made: [0; 4] };
    tree.grow(entries)?;
    Ok(tree.made)
}

struct Tree {
    rng: Rng,
    directories: Vec<PathBuf>,
    /// Directories, files, symbolic links; and how many of the files are hard links.
    made: [usize; 4],
}

impl Tree {
    fn grow(&mut self, entries: usize) -> Result<()> {
        self.made[0] = 1;
        for number in 1..(entries * 185 / 1000).max(1) {
            let parent = self.rng.usize(..self.directories.len());
            let path = self.name(parent, number);
            fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
            self.directories.push(path);
            self.made[0] += 1;
        }
        let links = entries * 16 / 1000;
        for number in 0..links {
            let parent = self.pick();
            let path = self.name(parent, number).with_extension("link");
            symlink(Path::new("../somewhere/else"), &path)
                .with_context(|| format!("cannot make {}", path.display()))?;
            self.made[2] += 1;
        }
        let mut last = None::<PathBuf>;
        for number in 0..entries.saturating_sub(self.made[0] + self.made[2]) {
            let parent = self.pick();
            let path = self.name(parent, number).with_extension("file");
            match &last {
                Some(file) if number % 50 == 49 && fs::hard_link(file, &path).is_ok() => {
                    self.made[3] += 1;
                }
                _ => self.file(&path).with_context(|| format!("cannot make {}", path.display()))?,
            }
            self.made[1] += 1;
            last = Some(path);
        }
        Ok(())
    }

    /// A directory for a file: the cube of a uniform number crowds the early ones.
    fn pick(&mut self) -> usize {
        let uniform = self.rng.f64();
        let skewed = if self.rng.u8(..) < 64 { uniform.powi(3) } else { uniform };
        (skewed * self.directories.len() as f64) as usize
    }

    fn name(&mut self, parent: usize, number: usize) -> PathBuf {
        const SYLLABLES: [&str; 16] = [
            "ba", "cre", "do", "fi", "gra", "hu", "jo", "ki", "lam", "mo", "ne", "pri", "qua",
            "ro", "su", "ta",
        ];
        let mut name = String::new();
        for _ in 0..self.rng.usize(1..=4) {
            name.push_str(SYLLABLES[self.rng.usize(..SYLLABLES.len())]);
        }
        self.directories[parent].join(format!("{name}{number:x}"))
    }

    fn file(&mut self, path: &Path) -> Result<()> {
        let mut file = File::create_new(path)?;
        let size = 1_u64 << self.rng.u32(4..22);
        let size = size + self.rng.u64(..size);
        if self.rng.u8(..) < 64 {
            let bytes = vec![b'p'; size.min(12_000) as usize];
            file.write_all(&bytes)?;
        } else {
            file.set_len(size)?;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn symlink(target: &Path, at: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(not(unix))]
fn symlink(target: &Path, at: &Path) -> std::io::Result<()> {
    let _ = target;
    File::create_new(at).map(drop)
}
