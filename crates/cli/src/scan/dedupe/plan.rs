//! The plan: for each group the file that stays, and the others.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use poach_scan::duplicates::{Copy, Group};
use poach_scan::{Control, Scan};
use rustix::fs::{AtFlags, StatxFlags};

use super::act::{self, Seen, see};
use super::{Became, How, Keep, Name, Outcome, Tell};
use crate::scan::item::{Handle, open_given, open_in};
use crate::scan::names::{Names, Roots};

/// Why a file is left.
const ELSEWHERE: &str = "every file that equals it lies on another file system or mount, where neither a link nor shared blocks lead; \
    --dedupe delete asks for neither";
const OTHERS: &str =
    "every equal file has another owner, group or mode; --dedupe reflink keeps them";

/// Files of equal content on one file system.
pub(super) struct Set {
    pub(super) keeps: File,
    pub(super) others: Vec<File>,
}

/// One of several files of equal content.
pub(super) struct File {
    pub(super) path: Vec<u8>,
    /// The path's names, and those of each of the others.
    pub(super) names: Vec<Names>,
    /// The other names of the file that the scan has found, if they go with this name.
    pub(super) others: Vec<Vec<u8>>,
    pub(super) seen: Seen,
    /// What is free once it is gone.
    pub(super) freed: u64,
    /// Where it stands among the given paths.
    root: usize,
    /// The values that two files must share to become one: the place and, for a link, the owner,
    /// group and mode.
    volume: (u64, u64),
    access: (u32, u32, u32),
    /// The name of its file system, if the system says it.
    pub(super) lies_on: String,
}

pub(super) struct Plan {
    how: How,
    sets: Vec<Set>,
    /// Files that are left, and why.
    apart: Vec<(Vec<u8>, String)>,
}

impl Plan {
    /// Looks at each file of some groups. `names` are those of the files that have several.
    pub(super) fn new(
        scan: &Scan,
        groups: &[Group],
        names: impl Iterator<Item = Name>,
        how: How,
        keep: Keep,
    ) -> Plan {
        let mut several: HashMap<(u64, u64), Vec<Vec<u8>>> = HashMap::new();
        for Name { file, within, bytes } in names {
            several.entry(file).or_default().push(scan.tree.path_within(within, &bytes));
        }
        let (roots, mounts) = (Roots::of(scan), mounts());
        let mut plan = Plan { how, sets: Vec::new(), apart: Vec::new() };
        for group in groups {
            let mut volumes: Vec<Vec<File>> = Vec::new();
            for copy in &group.copies {
                let file = match File::new(&roots, copy, &several, &mounts, how) {
                    Ok(file) => file,
                    Err(error) => {
                        plan.apart.push((copy.path.clone(), act::told(&error)));
                        continue;
                    }
                };
                match volumes.iter_mut().find(|files| files[0].goes_with(&file)) {
                    Some(files) => files.push(file),
                    None => volumes.push(vec![file]),
                }
            }
            let lie: Vec<_> = volumes.iter().map(|files| files[0].volume).collect();
            for mut files in volumes {
                files.sort_by(|a, b| a.rank().cmp(&b.rank()));
                let kept = files.iter().enumerate().min_by_key(|(at, file)| match keep {
                    Keep::First => ((0, 0), *at),
                    Keep::Oldest => (file.seen.modified(), *at),
                    Keep::Newest => {
                        let (seconds, nanoseconds) = file.seen.modified();
                        ((!seconds, !nanoseconds), *at)
                    }
                });
                let Some((kept, _)) = kept else { continue };
                let keeps = files.remove(kept);
                if files.is_empty() {
                    let beside = lie.iter().filter(|&&volume| volume == keeps.volume).count() > 1;
                    if beside || lie.len() > 1 {
                        let why = if beside { OTHERS } else { ELSEWHERE };
                        plan.apart.push((keeps.path, why.to_owned()));
                    }
                    continue;
                }
                plan.sets.push(Set { keeps, others: files });
            }
        }
        plan
    }

    /// Tells of everything that is to be done.
    pub(super) fn each(&self, tell: &mut Tell<'_>) -> io::Result<()> {
        for Set { keeps, others } in &self.sets {
            for File { path, others, freed, .. } in others {
                let (kept, freed) = (Some(&keeps.path[..]), *freed);
                tell(&Outcome { kept, path, others, freed, became: None })?;
            }
        }
        self.tell_apart(tell)
    }

    /// Does everything, and tells of it. Whether it was interrupted.
    pub(super) fn carry_out(&self, control: &Control, tell: &mut Tell<'_>) -> io::Result<bool> {
        for set in &self.sets {
            if !set.carry_out(self.how, control, tell)? {
                return Ok(true);
            }
        }
        self.tell_apart(tell)?;
        Ok(false)
    }

    fn tell_apart(&self, tell: &mut Tell<'_>) -> io::Result<()> {
        self.apart.iter().try_for_each(|(path, why)| {
            let became = Some(Became::Left(why.clone()));
            tell(&Outcome { kept: None, path, others: &[], freed: 0, became })
        })
    }
}

impl File {
    fn new(
        roots: &Roots<'_>,
        copy: &Copy,
        several: &HashMap<(u64, u64), Vec<Vec<u8>>>,
        mounts: &HashMap<u64, Mount>,
        how: How,
    ) -> io::Result<File> {
        let lost = || io::Error::other("it is not below any of the paths");
        let (root, names) = roots.split(&copy.path).ok_or_else(lost)?;
        let (within, name) = place(&names)?;
        let seen = see(&within, &name)?;
        let mut all = vec![names];
        // A name makes no difference to what blocks are shared.
        let several = several.get(&seen.number()).filter(|_| how != How::Reflink);
        let several = several.into_iter().flatten().filter(|path| **path != copy.path);
        let several = several.filter_map(|path| Some((path.clone(), roots.split(path)?.1)));
        let (others, names): (Vec<Vec<u8>>, Vec<Names>) = several.unzip();
        all.extend(names);
        // A name that the scan has not come upon keeps all of it.
        let goes = how == How::Reflink || all.len() as u64 >= seen.names;
        let freed = if goes { copy.disk_bytes.saturating_sub(copy.shared_bytes) } else { 0 };
        let (flags, mask) = (AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID);
        let mount = rustix::fs::statx(&within, &name, flags, mask).map_or(0, |it| it.stx_mnt_id);
        let known = mounts.get(&mount);
        let volume = match how {
            How::Delete => (0, 0),
            How::Link => (seen.number().0, mount),
            // A file system of several volumes (btrfs) has a device for each of them.
            How::Reflink => (known.map_or(seen.number().0, |it| it.device), 0),
        };
        let lies_on = known.map_or_else(|| "this file system".to_owned(), |it| it.kind.clone());
        let access = if how == How::Link { seen.access } else { (0, 0, 0) };
        let path = copy.path.clone();
        Ok(File { path, names: all, others, seen, freed, root, volume, access, lies_on })
    }

    /// Whether it can become one with another file.
    fn goes_with(&self, other: &File) -> bool {
        (self.volume, self.access) == (other.volume, other.access)
    }

    /// The order in which the files of a group are candidates to stay.
    fn rank(&self) -> (usize, usize, &[u8]) {
        (self.root, self.names[0].len(), &self.path)
    }
}

/// The directory that the last of some names is in, and that name. No link is followed below the
/// given path.
pub(super) fn place(names: &Names) -> io::Result<(Handle, CString)> {
    let given = Path::new(OsStr::from_bytes(&names[0]));
    if let [_] = names[..] {
        let within = given.parent().filter(|it| !it.as_os_str().is_empty());
        let name = given.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let within = open_given(within.unwrap_or(Path::new(".")))?;
        return Ok((within, CString::new(name.as_encoded_bytes())?));
    }
    let (last, above) = names.split_last().ok_or(io::ErrorKind::InvalidInput)?;
    let within = above[1..]
        .iter()
        .try_fold(open_given(given)?, |within, name| open_in(&within, &CString::new(&name[..])?))?;
    Ok((within, CString::new(&last[..])?))
}

/// A mount, of `/proc/self/mountinfo`.
struct Mount {
    /// The number of its file system.
    device: u64,
    /// What its file system is.
    kind: String,
}

fn mounts() -> HashMap<u64, Mount> {
    mounts_of(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// `proc_pid_mountinfo(5)`: the mount's number, its parent's, `major:minor`, and after a hyphen the
/// kind of file system.
fn mounts_of(list: &[u8]) -> HashMap<u64, Mount> {
    let list = String::from_utf8_lossy(list);
    let mount = |line: &str| {
        let mut fields = line.split(' ');
        let number = fields.next()?.parse().ok()?;
        let (major, minor) = fields.nth(1)?.split_once(':')?;
        let device =
            u64::from(major.parse::<u32>().ok()?) << 32 | u64::from(minor.parse::<u32>().ok()?);
        let kind = fields.skip_while(|&field| field != "-").nth(1)?.to_owned();
        Some((number, Mount { device, kind }))
    };
    list.lines().filter_map(mount).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl File {
        /// A file with one name.
        pub(in super::super) fn of(names: Names) -> File {
            let (within, name) = place(&names).expect("ours");
            let seen = see(&within, &name).expect("ours");
            let (path, others) =
                (crate::scan::names::joined(names.iter().map(Vec::as_slice)), Vec::new());
            let (freed, root, volume, access) = (0, 0, (0, 0), (0, 0, 0));
            let (names, lies_on) = (vec![names], String::new());
            File { path, names, others, seen, freed, root, volume, access, lies_on }
        }
    }

    #[test]
    fn a_mount_has_a_number_a_device_and_a_kind() {
        let list = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            36 22 0:31 /sub /mnt/a\\040b rw - btrfs /dev/loop0 rw,subvol=/sub\n37 22 nonsense\n\xff\n";
        let mounts = mounts_of(list);
        assert_eq!(mounts.len(), 2);
        assert_eq!((mounts[&22].device, &*mounts[&22].kind), (254 << 32, "ext4"));
        assert_eq!((mounts[&36].device, &*mounts[&36].kind), (31, "btrfs"));
    }
}
