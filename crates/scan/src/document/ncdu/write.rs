//! Writing an export.

use std::io::{self, Write};

use super::mode_of;
use crate::document::entries::{Entries, Entry, Order};
use crate::document::needs_files;
use crate::report::Extent;
use crate::{Kind, Scan};

/// Writes the export. It holds everything that the scan found.
///
/// # Errors
///
/// The writer's own; and [`io::ErrorKind::InvalidInput`] of a scan without
/// [`Options::keep_files`](crate::Options::keep_files).
pub fn ncdu(scan: &Scan, out: &mut impl Write) -> io::Result<()> {
    ncdu_to(scan, out)
}

fn ncdu_to(scan: &Scan, mut out: &mut dyn Write) -> io::Result<()> {
    let out = &mut out;
    needs_files(scan)?;
    let version = env!("CARGO_PKG_VERSION");
    let taken = scan.taken;
    write!(out, r#"[1,2,{{"progname":"poach","progver":"{version}","timestamp":{taken}}}"#)?;
    let mut roots = scan.tree.roots();
    let alone =
        roots.next().is_some_and(|root| root.kind() == Kind::Directory) && roots.next().is_none();
    let above = usize::from(!alone);
    if !alone {
        out.write_all(b",\n[{\"name\":\"(several paths)\"}")?;
    }
    let mut open = above;
    for entry in Entries::new(scan, &Extent::default(), Order::Name) {
        for _ in entry.depth + above..open {
            out.write_all(b"]")?;
        }
        open = entry.depth + above;
        out.write_all(b",\n")?;
        if entry.node.kind() == Kind::Directory {
            out.write_all(b"[")?;
            open += 1;
        }
        // What an interrupted scan has not read lies anywhere below.
        let is_part = scan.interrupted && entry.depth == 0 && entry.node.kind() == Kind::Directory;
        item(&entry, is_part || entry.error.is_some(), out)?;
    }
    for _ in 0..=open {
        out.write_all(b"]")?;
    }
    out.write_all(b"\n")
}

fn item(entry: &Entry<'_>, unread: bool, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"name\":\"")?;
    name(entry.node.name(), out)?;
    out.write_all(b"\"")?;
    let (apparent, disk) = entry.node.own();
    for (member, bytes) in [("asize", apparent), ("dsize", disk)] {
        if bytes > 0 {
            write!(out, ",\"{member}\":{bytes}")?;
        }
    }
    if let Some(file) = entry.node.link() {
        write!(out, ",\"dev\":{},\"ino\":{},\"hlnkc\":true", file.device, file.inode)?;
        if file.links > 1 {
            write!(out, ",\"nlink\":{}", file.links)?;
        }
    }
    if matches!(entry.node.kind(), Kind::Symlink | Kind::Other) {
        out.write_all(b",\"notreg\":true")?;
    }
    if let Some(facts) = entry.node.facts() {
        let (owner, group) = (facts.owner(), facts.group());
        // ncdu knows no sign: it writes and reads the 64 bits as they are.
        let modified = facts.modified() as u64;
        write!(out, ",\"uid\":{owner},\"gid\":{group},\"mtime\":{modified}")?;
    }
    if let Some(mode) = mode_of(&entry.node) {
        write!(out, ",\"mode\":{mode}")?;
    }
    if unread {
        out.write_all(b",\"read_error\":true")?;
    }
    out.write_all(b"}")
}

/// The bytes of a name between quotes. ncdu reads no `\u` above `\u00ff`, and what is not UTF-8 as
/// it is.
fn name(name: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut written = 0;
    for (at, &byte) in name.iter().enumerate() {
        if matches!(byte, b'"' | b'\\') || byte.is_ascii_control() {
            out.write_all(&name[written..at])?;
            match byte {
                b'"' | b'\\' => out.write_all(&[b'\\', byte])?,
                _ => write!(out, "\\u{byte:04x}")?,
            }
            written = at + 1;
        }
    }
    out.write_all(&name[written..])
}
