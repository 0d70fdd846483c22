//! What is known of a walk that still runs: its directories, and what they hold so far.
//!
//! [`Live`] is told of each entry during the walk. Each worker adds up the directory that it reads,
//! and hands the sums on now and then; it never waits for who looks. [`Growing`] takes them in. One
//! worker may read a directory and another its parent, so a directory may be known earlier than its
//! parent. Its sums go up as far as the way is known, and are carried on once it is.
//!
//! Files with several names (hard links) are told at the end of a walk, so they are missing here;
//! and files have no rows of their own. The finished scan takes the place of all of this.

use std::collections::HashMap;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Row;
use crate::report::Measure;
use crate::sys::Native;
use crate::visit::{Seen, Visitor, Within};
use crate::{Control, Error, Kind, Options, Scan, scan_with};

/// How long a worker keeps its sums to itself, and how long one look may take them in.
const PATIENCE: Duration = Duration::from_millis(40);

/// After how many files of one directory a worker looks at the clock.
const MANY: u64 = 4096;

/// The sums of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Bytes by the lengths of files.
    pub apparent: u64,
    /// Bytes on disk.
    pub disk: u64,
    /// Entries, without the directory itself.
    pub entries: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.disk = self.disk.saturating_add(other.disk);
        self.entries = self.entries.saturating_add(other.entries);
    }

    /// The given measure of it.
    pub fn of(self, measure: Measure) -> u64 {
        match measure {
            Measure::Disk => self.disk,
            Measure::Apparent => self.apparent,
            Measure::Entries => self.entries,
        }
    }
}

/// The part of a directory's sums that was not handed on yet.
#[derive(Debug)]
struct News {
    own: Within,
    within: Within,
    depth: u32,
    name: Box<[u8]>,
    modified: i64,
    /// Its own size.
    itself: Sums,
    files: Sums,
}

/// Listens to a walk. All clones are one listener.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Mutex<Vec<News>>>);

/// The sums that one worker has not handed on yet.
#[derive(Debug)]
pub struct Part {
    reading: Option<News>,
    waiting: Vec<News>,
    handed_on: Instant,
}

impl Live {
    /// [`scan`](crate::scan), and listens to it.
    ///
    /// # Errors
    ///
    /// As [`scan`](crate::scan).
    pub fn scan(
        &self,
        paths: &[PathBuf],
        options: &Options,
        control: &Control,
    ) -> Result<Scan, Error> {
        Ok(scan_with(&Native::default(), paths, options, control, self)?.0)
    }

    fn hand_on(&self, part: &mut Part) {
        if part.handed_on.elapsed() < PATIENCE {
            return;
        }
        if let Ok(mut all) = self.0.try_lock() {
            all.append(&mut part.waiting);
            part.handed_on = Instant::now();
        }
    }
}

impl Visitor for Live {
    type Part = Part;

    fn part(&self) -> Part {
        Part { reading: None, waiting: Vec::new(), handed_on: Instant::now() }
    }

    fn entry(&self, part: &mut Part, seen: &Seen<'_>) {
        let size = Sums { apparent: seen.apparent(), disk: seen.disk(), entries: 0 };
        if let Some(own) = seen.own {
            part.waiting.extend(part.reading.take());
            part.reading = Some(News {
                own,
                within: seen.within,
                depth: seen.depth,
                name: seen.name.into(),
                modified: seen.meta.modified,
                itself: size,
                files: Sums::default(),
            });
            return self.hand_on(part);
        }
        let Some(reading) = part.reading.as_mut().filter(|it| it.own == seen.within) else {
            return;
        };
        reading.files.add(Sums { entries: 1, ..size });
        if reading.files.entries % MANY == 0 {
            let (itself, files) = (mem::take(&mut reading.itself), mem::take(&mut reading.files));
            let News { own, within, depth, ref name, modified, .. } = *reading;
            part.waiting.push(News {
                own,
                within,
                depth,
                name: name.clone(),
                modified,
                itself,
                files,
            });
            self.hand_on(part);
        }
    }
}

/// A directory, as far as it is known.
#[derive(Debug, Default)]
struct Directory {
    /// Empty until it was told of itself.
    name: Box<[u8]>,
    told: bool,
    above: Option<usize>,
    inside: Vec<usize>,
    modified: i64,
    /// With all that is in it.
    sum: Sums,
    files: Sums,
}

/// The directories of a walk that runs, as far as they are known.
#[derive(Debug, Default)]
pub struct Growing {
    live: Live,
    /// Sums that were handed on and not taken in yet.
    waiting: std::vec::IntoIter<News>,
    numbers: HashMap<Within, usize>,
    all: Vec<Directory>,
    roots: Vec<usize>,
}

impl Growing {
    /// The directories that this listener hears of.
    pub fn new(live: Live) -> Growing {
        Growing { live, ..Growing::default() }
    }

    /// Takes in what is new, for at most some 40 ms.
    pub fn take_in(&mut self) {
        let began = Instant::now();
        loop {
            while let Some(news) = self.waiting.next() {
                self.add(&news);
                if began.elapsed() > PATIENCE {
                    return;
                }
            }
            let mut handed_on = self.live.0.lock().unwrap_or_else(PoisonError::into_inner);
            if handed_on.is_empty() {
                return;
            }
            self.waiting = mem::take(&mut *handed_on).into_iter();
        }
    }

    fn number(&mut self, within: Within) -> usize {
        *self.numbers.entry(within).or_insert_with(|| {
            self.all.push(Directory::default());
            self.all.len() - 1
        })
    }

    fn add(&mut self, news: &News) {
        let number = self.number(news.own);
        if !self.all[number].told {
            let directory = &mut self.all[number];
            (directory.told, directory.name) = (true, news.name.clone());
            directory.modified = news.modified;
            if news.depth == 0 {
                self.roots.push(number);
            } else {
                let above = self.number(news.within);
                let so_far = self.all[number].sum;
                self.all[number].above = Some(above);
                self.all[above].inside.push(number);
                self.add_from(above, Sums { entries: so_far.entries + 1, ..so_far });
            }
        }
        self.all[number].files.add(news.files);
        self.add_from(number, news.files);
        self.add_from(number, news.itself);
    }

    /// Adds to a directory and all that are known to be above it.
    fn add_from(&mut self, number: usize, sums: Sums) {
        let mut next = Some(number);
        while let Some(number) = next {
            self.all[number].sum.add(sums);
            next = self.all[number].above;
        }
    }

    /// The directory at the end of these names.
    fn find(&self, names: &[&[u8]]) -> Option<usize> {
        let named = |among: &[usize], name: &[u8]| {
            among.iter().copied().find(|&number| *self.all[number].name == *name)
        };
        let (first, rest) = names.split_first()?;
        let root = named(&self.roots, first)?;
        rest.iter().try_fold(root, |above, name| named(&self.all[above].inside, name))
    }

    /// What a directory holds so far: the one that `names` lead to, from a given path on; of no
    /// names, everything.
    pub fn sum(&self, names: &[&[u8]]) -> Sums {
        if !names.is_empty() {
            return self.find(names).map(|number| self.all[number].sum).unwrap_or_default();
        }
        let mut sum = Sums::default();
        self.roots.iter().for_each(|&root| sum.add(self.all[root].sum));
        sum
    }

    /// Whether a directory is known.
    pub fn knows(&self, names: &[&[u8]]) -> bool {
        self.find(names).is_some()
    }

    /// The rows of a directory, in no order: its directories, and one for its files together; of no
    /// names, the given paths. None, if it is not known.
    pub fn rows(&self, names: &[&[u8]], measure: Measure) -> Vec<Row> {
        let (inside, files) = if names.is_empty() {
            (&self.roots[..], Sums::default())
        } else {
            match self.find(names) {
                Some(number) => (&self.all[number].inside[..], self.all[number].files),
                None => return Vec::new(),
            }
        };
        let row = |&number: &usize| {
            let Directory { name, sum, modified, .. } = &self.all[number];
            Row {
                name: name.to_vec(),
                kind: Kind::Directory,
                value: sum.of(measure),
                entries: sum.entries,
                modified: Some(*modified),
                ..Row::default()
            }
        };
        let mut rows: Vec<Row> = inside.iter().map(row).collect();
        if files.entries > 0 {
            rows.push(Row {
                name: Vec::new(),
                value: files.of(measure),
                entries: files.entries,
                together: true,
                ..Row::default()
            });
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_grows_comes_to_what_the_scan_finds_in_whatever_order_it_is_heard() {
        let tree = tempfile::tempdir().expect("a directory for the test");
        for number in 0..30 {
            let inner = tree.path().join(format!("{}/{}/{number}", number % 3, number % 7));
            fs::create_dir_all(&inner).expect("directories");
            fs::write(inner.join("file"), vec![1; number * 1000]).expect("a file");
        }
        let live = Live::default();
        let paths = [tree.path().to_owned()];
        let (scan, parts) =
            scan_with(&Native::default(), &paths, &Options::default(), &Control::new(), &live)
                .expect("a scan");
        let mut all: Vec<News> = parts
            .into_iter()
            .flat_map(|part| part.waiting.into_iter().chain(part.reading))
            .collect();
        all.append(&mut live.0.lock().expect("nobody panicked"));
        for turn in 0..3 {
            let mut growing = Growing::new(Live::default());
            match turn {
                0 => all.reverse(),
                1 => all.sort_by_key(|news| news.name.clone()),
                _ => all.sort_by_key(|news| std::cmp::Reverse(news.depth)),
            }
            for news in &all {
                growing.add(news);
            }
            let sum = growing.sum(&[]);
            let entries = scan.totals.entries() - 1;
            let Sums { apparent, disk, .. } = sum;
            assert_eq!(sum.entries, entries);
            assert_eq!((apparent, disk), (scan.totals.apparent_bytes, scan.totals.disk_bytes));
            let root = tree.path().as_os_str().as_encoded_bytes();
            let rows = growing.rows(&[root, b"1"], Measure::Entries);
            let node = scan.tree.find(&[root, b"1"]).expect("it is there");
            let inside: u64 = rows.iter().map(|row| row.entries + 1).sum();
            assert_eq!(inside, node.entries());
            assert!(growing.knows(&[root, b"1"]));
            assert!(!growing.knows(&[root, b"no"]));
        }
    }

    #[test]
    fn files_of_a_directory_without_end_are_told_before_its_end() {
        let live = Live::default();
        let tree = tempfile::tempdir().expect("a directory for the test");
        for number in 0..=MANY {
            fs::write(tree.path().join(number.to_string()), "").expect("a file");
        }
        let paths = [tree.path().to_owned()];
        let options = Options::default();
        let (_, parts) = scan_with(&Native::default(), &paths, &options, &Control::new(), &live)
            .expect("a scan");
        let told: u64 = parts.iter().flat_map(|it| &it.waiting).map(|it| it.files.entries).sum();
        let handed_on: u64 =
            live.0.lock().expect("nobody panicked").iter().map(|it| it.files.entries).sum();
        assert_eq!(told + handed_on, MANY);
    }
}
