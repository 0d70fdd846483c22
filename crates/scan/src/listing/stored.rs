//! The rows of an export that is not read whole: of ncdu's binary format, whose blocks can be read
//! by themselves.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read, Seek};

use super::{Row, Sums};
use crate::document::{Blocks, Directory, Entry, ImportError, circle};
use crate::report::Measure;
use crate::sys::Kind;

/// How many decompressed bytes are kept. An ordinary block has 64 KiB or a few times that.
const KEPT: u64 = 8 << 20;

/// An export in ncdu's binary format (ncdu 2.6 and later), of which only the blocks are read that
/// hold what is asked for.
///
/// Holds the index, a few blocks, the path of the last directory that was asked for, and the places
/// of its subdirectories. Sizes of directories are those that the file has. As in ncdu every name
/// of a file with several names has all of its bytes, and each directory counts them once.
/// all of its bytes, and each directory counts them once.
pub struct Stored {
    blocks: Blocks,
    root: u64,
    memory: u64,
    /// The directories from the root down to the last directory that was asked for.
    way: Vec<Level>,
    /// The place of the last directory whose rows were asked for, and for each of its
    /// subdirectories a hash of the name and the place. To enter a subdirectory, the list need not
    /// be read again, whose blocks may be spread over the whole file.
    listed: Option<(u64, Vec<(u64, u64)>)>,
}

/// A directory that was found.
struct Level {
    name: Vec<u8>,
    place: u64,
    directory: Directory,
    sums: Sums,
    unread: bool,
}

impl Level {
    fn of(entry: &Entry<'_>) -> Level {
        Level {
            name: entry.imported.name.to_vec(),
            place: entry.place,
            directory: entry.directory,
            sums: sums(entry),
            unread: entry.unread,
        }
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Stored {
    /// Opens an export: reads its first bytes, the index at its end, and the block that the root
    /// lies in. Nothing, if it is in another format or compressed as a whole.
    ///
    /// The index, and the rows of one directory, may take `memory` bytes at most.
    ///
    /// # Errors
    ///
    /// If it cannot be read, was cut or is damaged.
    pub fn open(
        from: impl Read + Seek + 'static,
        memory: u64,
    ) -> Result<Option<Stored>, ImportError> {
        let Some((mut blocks, root)) = Blocks::open(Box::new(from), memory, KEPT)? else {
            return Ok(None);
        };
        let way = vec![Level::of(&blocks.root(root)?)];
        Ok(Some(Stored { blocks, root, memory, way, listed: None }))
    }

    /// The name of the root: the path that was scanned.
    pub fn root(&self) -> &[u8] {
        &self.way[0].name
    }

    /// Whether something could not be read when the export was made.
    pub fn is_unread(&self) -> bool {
        self.way[0].unread
    }

    /// Goes to the directory that `names` lead to, from the root on. Returns whether it is there.
    fn go_to(&mut self, names: &[&[u8]]) -> Result<bool, ImportError> {
        let common = self.way.iter().zip(names).take_while(|(level, name)| level.name == **name);
        let common = common.count();
        if common == 0 {
            return Ok(false);
        }
        self.way.truncate(common);
        for name in &names[common..] {
            let mut found = None;
            let above = &self.way[self.way.len() - 1];
            match &self.listed {
                Some((place, below)) if *place == above.place => {
                    let hash = hash(name);
                    for &(_, place) in below.iter().filter(|(other, _)| *other == hash) {
                        let entry = self.blocks.at(place, above.directory)?;
                        if found.is_none() && entry.imported.name == *name {
                            found = Some(Level::of(&entry));
                        }
                    }
                }
                _ => self.blocks.each(above.directory, &mut |entry| {
                    let imported = &entry.imported;
                    let is_it = imported.kind == Kind::Directory && imported.name == *name;
                    if is_it {
                        found = Some(Level::of(&entry));
                    }
                    !is_it
                })?,
            }
            let Some(level) = found else { return Ok(false) };
            if self.way.iter().any(|above| above.place == level.place) {
                return Err(circle());
            }
            self.way.push(level);
        }
        Ok(true)
    }

    /// Whether `names`, of which the first is the root's, lead to a directory. Reads the entries of
    /// the directories on the way to it, except those on the way of the last call.
    ///
    /// # Errors
    ///
    /// If a block cannot be read or is damaged, or a directory lies in itself.
    pub fn knows(&mut self, names: &[&[u8]]) -> Result<bool, ImportError> {
        self.go_to(names)
    }

    /// What a directory holds, as the file says: nothing of a directory that is not there.
    ///
    /// # Errors
    ///
    /// As [`knows`](Self::knows).
    pub fn sum(&mut self, names: &[&[u8]]) -> Result<Sums, ImportError> {
        let knows = self.go_to(names)?;
        Ok(self.way.last().filter(|_| knows).map(|level| level.sums).unwrap_or_default())
    }

    /// The rows of a directory, in no order; of no names, the root's. None, if it is not there.
    /// Reads the blocks that its entries lie in.
    ///
    /// # Errors
    ///
    /// As [`knows`](Self::knows), and [`ImportError::Memory`].
    pub fn rows(&mut self, names: &[&[u8]], measure: Measure) -> Result<Vec<Row>, ImportError> {
        let mut rows = Vec::new();
        if names.is_empty() {
            rows.push(row(&self.blocks.root(self.root)?, measure));
            return Ok(rows);
        }
        if !self.go_to(names)? {
            return Ok(rows);
        }
        let Level { directory, place, .. } = self.way[self.way.len() - 1];
        self.listed = None;
        let mut below = Vec::new();
        // What vectors grow to counts twice.
        let (mut taken, memory) = (self.blocks.held(), self.memory);
        self.blocks.each(directory, &mut |entry| {
            let is_directory = entry.imported.kind == Kind::Directory;
            let place = is_directory.then(|| (hash(entry.imported.name), entry.place));
            let size = size_of::<Row>() + place.map_or(0, |place| size_of_val(&place));
            taken += 2 * (size + entry.imported.name.len()) as u64;
            if taken <= memory {
                rows.push(row(&entry, measure));
                below.extend(place);
            }
            taken <= memory
        })?;
        if taken > memory {
            return Err(ImportError::Memory(memory));
        }
        self.listed = Some((place, below));
        Ok(rows)
    }
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

fn sums(entry: &Entry<'_>) -> Sums {
    let (apparent, disk, entries) = entry.all;
    Sums { apparent, disk, entries }
}

fn row(entry: &Entry<'_>, measure: Measure) -> Row {
    let (imported, sums) = (&entry.imported, sums(entry));
    Row {
        name: imported.name.to_vec(),
        kind: imported.kind,
        value: sums.of(measure),
        entries: sums.entries,
        modified: imported.facts.map(|facts| facts.modified()),
        unread: entry.unread,
        ..Row::default()
    }
}
