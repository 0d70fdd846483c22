//! Mounts that show a part of a file system that another path leads to as well.
//!
//! The source is `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`). Of each line: field 3 is the
//! device, field 5 the mount point, in which a space, a tab, a newline and a backslash are written
//! as three octal digits.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// The mount points whose device is mounted at another point, too.
pub(super) fn twice(table: &[u8]) -> Vec<PathBuf> {
    let mut of_device: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    for line in table.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b' ');
        if let (Some(device), Some(point)) = (fields.nth(2), fields.nth(1)) {
            of_device.entry(device).or_default().push(point);
        }
    }
    let several = of_device.into_values().filter(|points| points.len() > 1);
    several.flatten().map(|point| PathBuf::from(OsString::from_vec(unescape(point)))).collect()
}

/// The device of a mount, by the mount's number, which is the first field. The volumes of a btrfs
/// have one, whatever the devices of their files are.
pub(super) fn device_of(table: &[u8], mount: u64) -> Option<u64> {
    let table = String::from_utf8_lossy(table);
    table.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let number = fields.next()?.parse::<u64>().ok()?;
        let (major, minor) = fields.nth(1)?.split_once(':')?;
        let device = u64::from(major.parse::<u32>().ok()?) << 32;
        (number == mount).then_some(device | u64::from(minor.parse::<u32>().ok()?))
    })
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, others)) = rest.split_first() {
        let octal = others.get(..3).filter(|_| first == b'\\');
        let octal =
            octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &others[3..] } else { others };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_mounted_once_is_left_out() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            23 22 0:5 / /proc rw - proc proc rw\n\
            24 22 8:1 /srv /mnt/a\\040b rw shared:1 - ext4 /dev/sda1 rw\n\
            a damaged line\n";
        let mut found = twice(table);
        found.sort();
        assert_eq!(found, [PathBuf::from("/"), PathBuf::from("/mnt/a b")]);
        assert!(twice(b"").is_empty());
    }

    #[test]
    fn octal_digits_are_read_and_other_backslashes_kept() {
        assert_eq!(unescape(br"a\040\134\9z\"), br"a \\9z\");
    }
}
