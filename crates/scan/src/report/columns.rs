//! How many columns a text takes on a terminal, and texts and lines cut to columns.
//!
//! All views measure and cut by these functions alone. Both go by grapheme clusters: a letter with
//! its marks, an emoji with its variation selector or its skin, a flag. So a text is as wide as the
//! sum of what it can be cut into, and what is cut off is no part of what stays. Terminals that go
//! by characters instead may show some of them narrower or wider.

use std::borrow::Cow;
use std::io::{self, Write};
use std::iter;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The mark at a cut.
const CUT: char = '…';

/// How many columns a text takes: what its [`clusters`] take together.
///
/// ```
/// use poach_scan::report::width;
/// assert_eq!(["plain", "日本", "e\u{301}", "⚠\u{fe0f}"].map(width), [5, 4, 1, 2]);
/// ```
pub fn width(text: &str) -> usize {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.len();
    }
    clusters(text).map(|(_, columns)| columns).sum()
}

/// The grapheme clusters of a text, each with the columns that it takes: 0 to 2 of nearly all. A
/// cluster that takes more, such as a syllable of many consonants, is told in parts: each of its
/// characters that has columns, with the marks behind it. A control character takes one column;
/// what was [escaped](super::escape) has none.
///
/// ```
/// use poach_scan::report::clusters;
/// assert_eq!(clusters("a日e\u{301}").collect::<Vec<_>>(), [("a", 1), ("日", 2), ("e\u{301}", 1)]);
/// ```
pub fn clusters(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.graphemes(true).flat_map(|cluster| {
        let (mut rest, whole) = (cluster, cluster.width() <= 2);
        iter::from_fn(move || {
            let has_columns = |&(_, character): &(usize, char)| character.width() > Some(0);
            let next = rest.char_indices().skip(1).find(has_columns).filter(|_| !whole);
            let (part, after) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
            rest = after;
            (!part.is_empty()).then(|| (part, part.width()))
        })
    })
}

/// A text in at most `columns` columns, cut in the middle, because both ends tell more.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let clusters: Vec<_> = clusters(text).collect();
    let (_, head) = fitting(clusters.iter(), room / 2);
    let (end, tail) = fitting(clusters.iter().rev(), room - head);
    // What the end has left may hold one more of the beginning.
    let (start, _) = fitting(clusters.iter(), room - tail);
    let part = |part: &[(&str, usize)]| part.iter().map(|(text, _)| *text).collect::<String>();
    format!("{}{CUT}{}", part(&clusters[..start]), part(&clusters[clusters.len() - end..]))
}

/// How many clusters fit into some columns, and how many of these they take.
fn fitting<'c>(
    clusters: impl Iterator<Item = &'c (&'c str, usize)>,
    columns: usize,
) -> (usize, usize) {
    let mut fit = (0, 0);
    for (_, more) in clusters {
        if fit.1 + more > columns {
            break;
        }
        fit = (fit.0 + 1, fit.1 + more);
    }
    fit
}

/// A writer that cuts lines to `columns` columns, at their ends. The escape codes of colours take
/// no column, and none is cut off.
pub(crate) struct Fit<W> {
    out: W,
    columns: usize,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
}

impl<W: Write> Fit<W> {
    /// [`usize::MAX`] cuts none.
    pub(crate) fn new(out: W, columns: usize) -> Fit<W> {
        Fit { out, columns, line: Vec::new() }
    }
}

impl<W: Write> Write for Fit<W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.columns == usize::MAX {
            return self.out.write(part);
        }
        for line in part.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(line);
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
                let line = String::from_utf8_lossy(&self.line);
                writeln!(self.out, "{}", fit(&line, self.columns))?;
                self.line.clear();
            }
        }
        Ok(part.len())
    }

    /// A line that has not ended waits for its end.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A line cut at its end. Escape codes stay.
fn fit(line: &str, columns: usize) -> Cow<'_, str> {
    let plain: String = segments(line).map(|(_, text)| text).collect();
    if width(&plain) <= columns {
        return line.into();
    }
    let (mut used, mut kept) = (0, 0);
    for (text, more) in clusters(&plain) {
        used += more;
        if used >= columns {
            break;
        }
        kept += text.len();
    }
    let (mut fitted, mut kept) = (String::new(), Some(kept));
    for (code, text) in segments(line) {
        fitted.push_str(code);
        kept = match kept {
            Some(kept) if kept < text.len() => {
                fitted.push_str(&text[..kept]);
                fitted.extend((columns > 0).then_some(CUT));
                None
            }
            Some(kept) => {
                fitted.push_str(text);
                Some(kept - text.len())
            }
            None => None,
        };
    }
    fitted.into()
}

/// The texts between the escape codes of a line, each with the code before it.
fn segments(line: &str) -> impl Iterator<Item = (&str, &str)> {
    const BEGIN: char = '\x1b';
    let mut rest = line;
    iter::from_fn(move || {
        let end = rest.char_indices().skip(1).find(|&(_, it)| it == BEGIN);
        let (segment, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        let code = segment.starts_with(BEGIN).then(|| segment.find('m')).flatten();
        (!segment.is_empty()).then(|| segment.split_at(code.map_or(0, |at| at + 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends_and_fits() {
        assert_eq!(cut("short", 8), "short");
        assert_eq!(cut("a-very-long-name.tar.gz", 11), "a-ver…ar.gz");
        assert_eq!(cut("日本語日本語日本語", 8), "日…本語");
        assert_eq!(cut("name", 0), "");
        assert_eq!(cut("name", 1), "…");
        assert_eq!(cut("⚠\u{fe0f} warning", 5), "⚠\u{fe0f}…ng");
    }

    #[test]
    fn whatever_a_text_holds_it_is_cut_to_its_columns_and_no_further() {
        let alphabet: Vec<&str> = "a|é|e\u{301}|日|⚠\u{fe0f}|⚠|👍🏽|🇩🇪|🇩|👩\u{200d}👩\u{200d}👧|\u{200d}|\u{fe0f}|\u{301}|ᄀ|ᅡ|ᆨ|क्ष्म|ل|ا|1\u{fe0f}\u{20e3}|\u{600}|\u{17d8}|\t|\r\n|\u{202e}|ｶﾞ|  "
            .split('|')
            .collect();
        for seed in 0..150 {
            let mut random = fastrand::Rng::with_seed(seed);
            let text: String =
                (0..random.usize(..60)).map(|_| alphabet[random.usize(..alphabet.len())]).collect();
            let parts: Vec<_> = clusters(&text).collect();
            assert_eq!(
                parts.iter().map(|(part, _)| *part).collect::<String>(),
                text,
                "seed {seed}"
            );
            for columns in 0..=200 {
                let cut = cut(&text, columns);
                assert!(
                    width(&cut) <= columns && cut.width() <= columns,
                    "seed {seed}: {columns}: {cut:?}"
                );
                if width(&text) <= columns {
                    assert_eq!(cut, text, "seed {seed}: {columns}");
                    continue;
                }
                let Some((start, end)) = cut.split_once(CUT) else {
                    assert_eq!((columns, &*cut), (0, ""), "seed {seed}");
                    continue;
                };
                assert!(text.starts_with(start) && text.ends_with(end), "seed {seed}: {cut:?}");
                // Neither end has room for one part more. What is left of a cluster that was told
                // in parts may be narrower.
                let columns_of =
                    |parts: &[(&str, usize)]| parts.iter().map(|part| part.1).sum::<usize>();
                let mut at = start.len();
                let first = parts.iter().position(|(part, _)| {
                    at.checked_sub(part.len()).map(|left| at = left).is_none()
                });
                let mut at = end.len();
                let last = parts.iter().rposition(|(part, _)| {
                    at.checked_sub(part.len()).map(|left| at = left).is_none()
                });
                let (Some(first), Some(last)) = (first, last) else {
                    panic!("seed {seed}: {cut:?}")
                };
                let used = columns_of(&parts[..first]) + 1 + columns_of(&parts[last + 1..]);
                let least = parts[first].1.min(parts[last].1);
                assert!(
                    used <= columns && used + least > columns,
                    "seed {seed}: {columns}: {cut:?}"
                );
            }
        }
    }

    #[test]
    fn a_line_is_cut_at_its_end_and_keeps_the_codes_of_its_colours() {
        let fitted = |columns| {
            let mut out = Vec::new();
            let mut fit = Fit::new(&mut out, columns);
            write!(fit, "\x1b[1mab\x1b[0mc日\x1b[2md\x1b[0m\nx").expect("a vector takes it");
            writeln!(fit, "y").expect("a vector takes it");
            String::from_utf8(out).expect("UTF-8")
        };
        let whole = "\x1b[1mab\x1b[0mc日\x1b[2md\x1b[0m\nxy\n";
        assert_eq!([fitted(usize::MAX), fitted(6)], [whole, whole]);
        assert_eq!(fitted(5), "\x1b[1mab\x1b[0mc…\x1b[2m\x1b[0m\nxy\n");
        assert_eq!(fitted(3), "\x1b[1mab\x1b[0m…\x1b[2m\x1b[0m\nxy\n");
        assert_eq!(fitted(1), "\x1b[1m…\x1b[0m\x1b[2m\x1b[0m\n…\n");
        assert_eq!(fitted(0), "\x1b[1m\x1b[0m\x1b[2m\x1b[0m\n\n");
    }
}
