//! A group of equal files as text.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::Group;
use crate::report::{Look, count, cut, escape};

/// Writes a group: what it frees, and a line for each file.
pub(crate) fn write(group: &Group, look: Look, out: &mut impl Write) -> io::Result<()> {
    let files = count(group.copies.len() as u64);
    let freed = look.strong(&look.bytes(group.freed_bytes));
    let each = look.bytes(group.apparent_bytes);
    writeln!(
        out,
        "\n  {freed} {}",
        look.faint(&format!("freed by one of {files} files of {each}"))
    )?;
    for copy in &group.copies {
        let mut note = if copy.disk_bytes < group.apparent_bytes / 2 {
            format!(" (sparse: {} on disk)", look.bytes(copy.disk_bytes))
        } else {
            String::new()
        };
        if copy.shared_bytes > 0 {
            // Writing to a string cannot fail.
            let _ = write!(note, " (shared: {})", look.bytes(copy.shared_bytes));
        }
        let room = look.columns().saturating_sub(4 + note.len());
        writeln!(out, "    {}{}", cut(&escape(&copy.path), room), look.faint(&note))?;
    }
    Ok(())
}
