//! The actions on a file of which an equal file stays.
//!
//! Both files are reached by the handles of their directories, and no link is followed. Each has to
//! be the file that the plan saw: device, number, length, and the times of its content and
//! attributes. The files are compared byte by byte, and looked at again. For shared blocks the
//! kernel compares (`FIDEDUPERANGE`), while it lets nobody write, so no change can be lost.
//!
//! A hard link is made beside the file under another name, and exchanged with it (`renameat2`). So
//! there is always a file under the name, and a crash leaves at worst the other file as `.poach-…`
//! beside it. The exchanged file is then checked. It is moved back if it is not the file that was
//! compared, and deleted otherwise. If a file system has no exchange, another process may change
//! the file between the last check and the rename, as in [`remove`](crate::scan::item::remove).
//!
//! Numbers do not tell all copies from the file that stays: overlayfs, bindfs, sshfs and others
//! show one file under another device. So the file to delete is renamed to `.poach-…` beside its
//! name, and the kept file is looked at again: opened by its name, and by the handle that was open
//! before. If the kept file is gone, or the rename has touched it, the name is given back. A crash
//! before the rename has changed nothing. A crash after it leaves the content under the other name.
//! The deletion that follows leaves the file alone that was found to stay.
//!
//! The file that stays is written to its disk (`fsync`) before the first of the others goes, so
//! that no crash leaves a file that was not written yet. On a file system that writes nothing
//! (squashfs, iso9660, erofs) the content is on the disk already.

use std::ffi::CString;
use std::fs;
use std::io;

use poach_scan::Control;
use poach_scan::duplicates::same_content;
use poach_scan::sys::{Native, Sys as _};
use rustix::fs::{AtFlags, RenameFlags, Stat, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::plan::{File, Set, place};
use super::{Became, How, Outcome, Tell};
use crate::scan::item::{
    Handle, Identity, Item, beside, changed, open_file, remove_copy, stat, sync,
};

/// A file, as it is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    identity: Identity,
    modified: (i64, i64),
    /// When its attributes were last changed, its names among them.
    changed: (i64, i64),
    device: u64,
    inode: u64,
    /// Owner, group and mode.
    pub(super) access: (u32, u32, u32),
    pub(super) names: u64,
}

impl Seen {
    #[expect(clippy::useless_conversion, reason = "the fields' types differ between processors")]
    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between processors")]
    fn of(stat: &Stat) -> Seen {
        Seen {
            identity: Identity::of(stat),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            device: stat.st_dev.into(),
            inode: stat.st_ino.into(),
            access: (stat.st_uid, stat.st_gid, stat.st_mode.into()),
            names: stat.st_nlink.into(),
        }
    }

    /// Device and number.
    pub(super) fn number(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    pub(super) fn modified(&self) -> (i64, i64) {
        self.modified
    }
}

/// What a name stands for.
pub(super) fn see(within: &Handle, name: &CString) -> io::Result<Seen> {
    Ok(Seen::of(&stat(within, name)?))
}

/// An error as it is told.
pub(super) fn told(error: &io::Error) -> String {
    error.to_string()
}

/// The file that stays, open.
struct Kept {
    within: Handle,
    name: CString,
    file: fs::File,
    seen: Seen,
    /// Whether its content is on its disk, once that was asked: an error is told once only.
    synced: Option<Result<(), String>>,
}

impl Set {
    /// Does it with each of the others. Returns whether it came to the end, uninterrupted.
    pub(super) fn carry_out(
        &self,
        how: How,
        control: &Control,
        tell: &mut Tell<'_>,
    ) -> io::Result<bool> {
        let mut kept = self.keeps.open().map(|(within, name, file)| Kept {
            within,
            name,
            file,
            seen: self.keeps.seen,
            synced: None,
        });
        for other in &self.others {
            if control.is_stopped() {
                return Ok(false);
            }
            let acted = match &mut kept {
                Ok(kept) => kept.act(how, other, control),
                Err(error) => {
                    Err(io::Error::other(format!("the kept file cannot be opened: {error}")))
                }
            };
            let became = match acted {
                Ok(became) => became,
                Err(error)
                    if error.kind() == io::ErrorKind::Interrupted && control.is_stopped() =>
                {
                    return Ok(false);
                }
                Err(error) => Became::Left(other.why(&error)),
            };
            let (kept, path, freed) = (Some(&self.keeps.path[..]), &other.path[..], other.freed);
            let freed = if became == Became::Done { freed } else { 0 };
            let others = &other.others[..];
            tell(&Outcome { kept, path, others, freed, became: Some(became) })?;
        }
        Ok(true)
    }
}

impl File {
    /// Opens it, if it is the file that the plan saw.
    fn open(&self) -> io::Result<(Handle, CString, fs::File)> {
        let (within, name) = place(&self.names[0])?;
        let (file, _) = open_file(&within, &name)?;
        if Seen::of(&rustix::fs::fstat(&file)?) != self.seen {
            return Err(changed(&name));
        }
        Ok((within, name, file))
    }

    /// Why it was left, so that the user can do something about it.
    fn why(&self, error: &io::Error) -> String {
        let number = error.raw_os_error().map(Errno::from_raw_os_error);
        match number {
            Some(Errno::PERM | Errno::ACCESS) if self.is_immutable() => {
                "it is immutable or append-only (chattr -i, chattr -a)".to_owned()
            }
            Some(Errno::XDEV) => {
                "the kept file is on another file system or mount; use --dedupe delete".to_owned()
            }
            _ => told(error),
        }
    }

    fn is_immutable(&self) -> bool {
        let attributes = || {
            let (within, name) = place(&self.names[0]).ok()?;
            let (flags, mask) = (AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
            Some(rustix::fs::statx(&within, &name, flags, mask).ok()?.stx_attributes)
        };
        let either = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        attributes().is_some_and(|it| it.intersects(either))
    }
}

impl Kept {
    fn act(&mut self, how: How, other: &File, control: &Control) -> io::Result<Became> {
        let (_, name, file) = other.open()?;
        if self.seen.number() == other.seen.number() {
            return Ok(Became::Already);
        }
        if how == How::Reflink {
            return self.share(other, &file, control);
        }
        if how == How::Link && attributes(&self.file)? != attributes(&file)? {
            return Err(io::Error::other(
                "its extended attributes differ from those of the kept file; --dedupe reflink keeps them",
            ));
        }
        let sync = || sync(&self.file).map_err(|error| told(&error));
        if let Err(error) = self.synced.get_or_insert_with(sync) {
            return Err(io::Error::other(format!(
                "the kept file could not be flushed to disk: {error}"
            )));
        }
        if !same_content(&Native::default(), &self.file, &file, control)? {
            return Err(io::Error::other("it no longer equals the kept file"));
        }
        self.check()?;
        if Seen::of(&rustix::fs::fstat(&file)?) != other.seen {
            return Err(changed(&name));
        }
        for (done, names) in other.names.iter().enumerate() {
            let acted = place(names).and_then(|(within, name)| {
                let identity = other.seen.identity;
                if how == How::Delete {
                    // When it was changed has been looked at: with the first of its names that
                    // goes it changes.
                    let (changed, is_several) = (None, true);
                    let item = Item { name, identity, changed, is_several, inside: None };
                    return remove_copy(&within, &item, || self.check());
                }
                let replaced = self.replace(&within, &name, identity);
                // It has one name more, or had it for a moment.
                let now = Seen::of(&rustix::fs::fstat(&self.file)?);
                if now.identity == self.seen.identity {
                    self.seen = now;
                }
                replaced
            });
            match acted {
                Err(error) if done > 0 => return Ok(Became::Partly(done, other.why(&error))),
                acted => acted?,
            }
        }
        Ok(Became::Done)
    }

    /// Whether it is unchanged, and its name still stands for it. The name is opened, because a
    /// network file system's memory of it may be old.
    fn check(&self) -> io::Result<()> {
        let is_same = |file: &fs::File| {
            rustix::fs::fstat(file).is_ok_and(|stat| Seen::of(&stat) == self.seen)
        };
        // By the handle first: the mount that shows it may remember its name.
        let named = || open_file(&self.within, &self.name).is_ok_and(|(file, _)| is_same(&file));
        if is_same(&self.file) && named() {
            return Ok(());
        }
        Err(io::Error::other("the kept file has changed"))
    }

    /// Makes a name stand for this file, if it stands for the compared file.
    fn replace(&self, within: &Handle, name: &CString, expected: Identity) -> io::Result<()> {
        let beside = self.link_beside(within)?;
        let mut exchanged = false;
        let replaced = (|| {
            if !see(within, &beside)?.identity.is_same_file(&self.seen.identity) {
                return Err(io::Error::other("the kept file has changed"));
            }
            match rustix::fs::renameat_with(within, &beside, within, name, RenameFlags::EXCHANGE) {
                Ok(()) => exchanged = true,
                Err(Errno::INVAL | Errno::NOSYS) => {
                    if see(within, name)?.identity != expected {
                        return Err(changed(name));
                    }
                    return Ok(rustix::fs::renameat(within, &beside, within, name)?);
                }
                Err(error) => return Err(error.into()),
            }
            if see(within, &beside)?.identity == expected {
                return Ok(());
            }
            rustix::fs::renameat_with(within, &beside, within, name, RenameFlags::EXCHANGE)?;
            exchanged = false;
            Err(changed(name))
        })();
        // What is beside it now is what was compared, or a link to what stays. After an exchange
        // that could not be undone it may be neither, and is kept.
        if exchanged == replaced.is_ok() {
            match rustix::fs::unlinkat(within, &beside, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return replaced.and(Err(error.into())),
            }
        }
        replaced
    }

    /// Makes a link to it in a directory, under a name that nothing has.
    fn link_beside(&self, within: &Handle) -> io::Result<CString> {
        loop {
            let name = beside();
            match rustix::fs::linkat(&self.within, &self.name, within, &name, AtFlags::empty()) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes a file share the blocks of this one.
    fn share(&self, other: &File, file: &fs::File, control: &Control) -> io::Result<Became> {
        if shares(&self.file, file) {
            return Ok(Became::Already);
        }
        let length = file.metadata()?.len();
        let mut offset = 0;
        while offset < length {
            if control.is_stopped() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let shared = Native::default().share(&self.file, file, offset, length - offset);
            match shared.map_err(|error| other.cannot_share(error))? {
                Some(0) => {
                    return Err(io::Error::other(
                        "the file system refused to share the rest of it",
                    ));
                }
                Some(bytes) => offset += bytes,
                None => return Err(io::Error::other("it no longer equals the kept file")),
            }
        }
        Ok(Became::Done)
    }
}

impl File {
    /// An error of sharing, with what to do in its place if the file system cannot.
    fn cannot_share(&self, error: io::Error) -> io::Error {
        let kind = &self.lies_on;
        let number = error.raw_os_error().map(Errno::from_raw_os_error);
        match number {
            Some(Errno::INVAL) if matches!(&**kind, "btrfs" | "xfs") => error,
            Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS) => {
                io::Error::other(format!(
                    "{kind} cannot share blocks between files (btrfs and xfs can); use --dedupe link or delete"
                ))
            }
            _ => error,
        }
    }
}

/// Whether two files lie in the same places of the disk.
fn shares(a: &fs::File, b: &fs::File) -> bool {
    let places = |file| {
        let mut places = Vec::new();
        let told = Native::default().extents(file, &mut |it| places.push(it));
        told.ok().map(|()| places)
    };
    let (a, b) = (places(a), places(b));
    let all_shared = a.as_ref().is_some_and(|it| !it.is_empty() && it.iter().all(|it| it.shared));
    all_shared && a == b
}

/// The extended attributes of a file, access lists among them.
fn attributes(file: &fs::File) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    /// The most that the kernel has of either.
    const MOST: usize = 64 << 10;
    let mut list = vec![0; MOST];
    let length = match rustix::fs::flistxattr(file, &mut list[..]) {
        Err(Errno::OPNOTSUPP) => 0,
        length => length?,
    };
    let mut value = vec![0; MOST];
    let mut all = Vec::new();
    for name in list[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let length = rustix::fs::fgetxattr(file, name, &mut value[..])?;
        all.push((name.to_vec(), value[..length].to_vec()));
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, OFlags};

    use super::*;
    use crate::scan::item::open_given;

    #[test]
    fn what_took_a_name_at_the_last_moment_has_it_again() {
        let tree = tempfile::tempdir().expect("a directory for the test");
        let path = |name: &str| tree.path().join(name);
        for name in ["stays", "goes", "takes its place"] {
            fs::write(path(name), name).expect("a file");
        }
        let within = open_given(tree.path()).expect("ours");
        let name = |name: &str| CString::new(name).expect("no NUL");
        let (file, identity) = open_file(&within, &name("goes")).expect("ours");
        drop(file);
        let (stays, _) = open_file(&within, &name("stays")).expect("ours");
        let seen = see(&within, &name("stays")).expect("ours");
        let beside = open_given(tree.path()).expect("ours");
        let kept =
            Kept { within: beside, name: name("stays"), file: stays, seen, synced: Some(Ok(())) };
        fs::rename(path("takes its place"), path("goes")).expect("ours");
        let error = kept.replace(&within, &name("goes"), identity).expect_err("it is another");
        assert!(told(&error).contains("has changed since it was listed"), "{error}");
        assert_eq!(fs::read(path("goes")).expect("it is there"), b"takes its place");
        assert_eq!(fs::read_dir(tree.path()).expect("ours").count(), 2);
        // And of what is expected nothing is left.
        let (_, identity) = open_file(&within, &name("goes")).expect("ours");
        kept.replace(&within, &name("goes"), identity).expect("it is what was compared");
        assert_eq!(fs::read(path("goes")).expect("it is there"), b"stays");
        assert_eq!(fs::read_dir(tree.path()).expect("ours").count(), 2);
        // A file whose name belongs to another file by now is not linked.
        fs::remove_file(path("stays")).expect("ours");
        fs::write(path("stays"), "another").expect("a file");
        fs::write(path("goes too"), "x").expect("a file");
        let (_, identity) = open_file(&within, &name("goes too")).expect("ours");
        kept.replace(&within, &name("goes too"), identity).expect_err("it is not what stays");
        assert_eq!(fs::read(path("goes too")).expect("it is there"), b"x");
        assert_eq!(fs::read_dir(tree.path()).expect("ours").count(), 3);
    }

    #[test]
    fn nothing_goes_if_what_stays_cannot_be_written_to_its_disk() {
        let tree = tempfile::tempdir().expect("a directory for the test");
        let place = |name: &str| {
            let path = tree.path().join(name);
            fs::write(&path, "the same").expect("a file");
            vec![tree.path().as_os_str().as_encoded_bytes().to_vec(), name.as_bytes().to_vec()]
        };
        let within = open_given(tree.path()).expect("ours");
        let name = CString::new("stays").expect("no NUL");
        place("stays");
        let seen = see(&within, &name).expect("ours");
        // What is open for its name alone cannot be written to a disk, and a disk tells of an error
        // once.
        let file = rustix::fs::open(tree.path().join("stays"), OFlags::PATH, Mode::empty());
        let file = fs::File::from(file.expect("ours"));
        let mut kept = Kept { within, name, file, seen, synced: None };
        for copy in ["goes", "goes too"] {
            let other = File::of(place(copy));
            let error = kept.act(How::Delete, &other, &Control::new()).expect_err("no disk");
            assert!(told(&error).contains("could not be flushed to disk"), "{error}");
        }
        assert_eq!(fs::read_dir(tree.path()).expect("ours").count(), 3);
    }

    #[test]
    fn what_a_file_system_has_no_way_to_write_is_there_already() {
        // fsync answers EINVAL there, as on squashfs and iso9660.
        let file = fs::File::open("/proc/self/stat").expect("a file");
        let error = file.sync_all().expect_err("nothing is written there").raw_os_error();
        assert_eq!(error, Some(Errno::INVAL.raw_os_error()));
        sync(&file).expect("nothing is to be written");
    }
}
