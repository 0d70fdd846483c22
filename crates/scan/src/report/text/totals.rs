//! The lines below the tree: what was counted, how fast, and what is amiss.

use std::io::{self, Write};

use super::{AMISS, FAINT, LABEL, Look};
use crate::report::{count, cut, escape, width};
use crate::{Kind, Scan, Shared};
use anstyle::Style;

/// The columns of the labels.
const LABELS: usize = 12;

/// A label, and words that are put on as many lines as they need.
struct Field {
    label: &'static str,
    words: Vec<(Style, String)>,
}

impl Field {
    fn new(label: &'static str) -> Field {
        Field { label, words: Vec::new() }
    }

    fn words(mut self, style: Style, words: &str) -> Field {
        self.words.extend(words.split(' ').map(|word| (style, word.to_owned())));
        self
    }

    /// A word that may hold spaces: a name.
    fn word(mut self, style: Style, word: &str) -> Field {
        self.words.push((style, word.to_owned()));
        self
    }

    /// A number and its noun, kept on one line; a comma after it unless it is the last.
    fn number(self, number: u64, one: &str, many: &str, last: bool) -> Field {
        let (what, comma) = (if number == 1 { one } else { many }, if last { "" } else { "," });
        self.words(LABEL, &count(number)).words(Style::new(), &format!("{what}{comma}"))
    }

    fn write(&self, look: Look, out: &mut impl Write) -> io::Result<()> {
        let room = look.columns() - (LABELS + 2);
        let label = |label: &str| look.paint(FAINT, &format!("{label:>LABELS$}"));
        write!(out, "{} ", label(self.label))?;
        let mut used = 0;
        for (style, word) in &self.words {
            let word = cut(word, room);
            if used > 0 && used + 1 + width(&word) > room {
                write!(out, "\n{} ", label(""))?;
                used = 0;
            }
            write!(out, " {}", look.paint(*style, &word))?;
            used += width(&word) + 1;
        }
        writeln!(out)
    }
}

/// Writes them.
pub(super) fn write(scan: &Scan, look: Look, out: &mut impl Write) -> io::Result<()> {
    let totals = &scan.totals;
    let size = |label, number| {
        Field::new(label)
            .words(LABEL, &look.bytes(number))
            .words(FAINT, &format!("({} bytes)", count(number)))
    };
    Field::new("entries")
        .number(totals.directories, "directory", "directories", false)
        .number(totals.files, "file", "files", false)
        .number(totals.symlinks, "symlink", "symlinks", false)
        .number(totals.other, "other", "other", true)
        .write(look, out)?;
    if !scan.options.without_sizes {
        size("on disk", totals.disk_bytes).write(look, out)?;
        size("apparent", totals.apparent_bytes).write(look, out)?;
    }
    if let Some(Shared { bytes, files, unknown_files }) = scan.shared {
        let are = |files: u64| {
            if files == 1 { "1 file".to_owned() } else { format!("{} files", count(files)) }
        };
        let text =
            format!("of {} lie where another file has them, too, and count once", are(files));
        Field::new("shared")
            .words(LABEL, &look.bytes(bytes))
            .words(Style::new(), &text)
            .write(look, out)?;
        if unknown_files > 0 {
            let text = format!(
                "of {}: the file system does not say what is shared, so all of it counts",
                are(unknown_files)
            );
            Field::new("not known").words(Style::new(), &text).write(look, out)?;
        }
    }
    // Of an export of another program nobody knows how long it took.
    if scan.threads > 0 {
        let threads = if scan.threads == 1 { "thread" } else { "threads" };
        let rate = count(scan.entries_per_second() as u64);
        let how = format!("({rate} entries/s; {}, {} {threads})", scan.engine, scan.threads);
        Field::new("time")
            .words(LABEL, &format!("{:.3} s", scan.elapsed.as_secs_f64()))
            .words(FAINT, &how)
            .write(look, out)?;
    }
    for path in &scan.repeated {
        Field::new("counted once")
            .word(Style::new(), &escape(path.as_os_str().as_encoded_bytes()))
            .words(Style::new(), "is another of the paths, or in one")
            .write(look, out)?;
    }
    for link in scan.tree.roots().filter(|root| root.kind() == Kind::Symlink) {
        Field::new("not followed")
            .word(Style::new(), &escape(link.name()))
            .words(Style::new(), "is a symbolic link; -D scans what it points to")
            .write(look, out)?;
    }
    if totals.errors > 0 {
        let what = if totals.errors == 1 { "error" } else { "errors" };
        let text = format!("{} {what}: the totals are of what could be read", count(totals.errors));
        Field::new("amiss").words(AMISS, &text).write(look, out)?;
    }
    if let Some(memory) = scan.options.memory.filter(|_| scan.summed > 0) {
        let (directories, size) = (count(scan.summed), look.bytes(memory));
        let text =
            format!("{directories} directories beyond {size} of memory count where they lie");
        Field::new("summed up").words(AMISS, &text).write(look, out)?;
    }
    if scan.interrupted {
        let text = "interrupted: the totals are of what was read until then";
        Field::new("amiss").words(AMISS, text).write(look, out)?;
    }
    Ok(())
}
