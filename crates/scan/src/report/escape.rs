//! Names for a terminal: one line, no surprises.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A name as it can be shown on a terminal. It stays on one line, moves no cursor and turns no
/// writing around, whatever is in it. Invisible characters are shown, so two names never look the
/// same.
///
/// These are escaped: a control character, an invisible or direction-turning one, a line or
/// paragraph separator, and a byte that is not UTF-8. They are written as `\n`, `\t`, `\r`, `\e`,
/// `\x07`, `\u{202e}`, `\xff`. A backslash is doubled, so that a name cannot spell an escape
/// itself. On Windows, where a backslash separates names, it stays as it is. There a slash, which
/// no name can hold, introduces what is escaped: `/u{202e}`.
///
/// ```
/// use poach_scan::report::escape;
/// assert_eq!(escape(b"plain na\xc3\xafve"), "plain na\u{ef}ve");
/// assert_eq!(escape(b"two\nlines\x1b[31m \xff"), r"two\nlines\e[31m \xff");
/// ```
pub fn escape(name: &[u8]) -> Cow<'_, str> {
    escape_by(if cfg!(windows) { '/' } else { '\\' }, name)
}

/// [`escape`], where this character introduces what is escaped.
fn escape_by(sign: char, name: &[u8]) -> Cow<'_, str> {
    let is_unfit = |character| is_unfit(character) || sign == '\\' && character == '\\';
    if let Ok(name) = std::str::from_utf8(name) {
        if !name.chars().any(is_unfit) {
            return Cow::Borrowed(name);
        }
    }
    let mut shown = String::with_capacity(name.len() + 8);
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if !is_unfit(character) {
                shown.push(character);
                continue;
            }
            shown.push(sign);
            match character {
                '\n' => shown.push('n'),
                '\t' => shown.push('t'),
                '\r' => shown.push('r'),
                '\x1b' => shown.push('e'),
                '\\' => shown.push('\\'),
                '\0'..='\x7f' => hex(&mut shown, character as u8),
                _ => shown.extend(character.escape_unicode().skip(1)),
            }
        }
        for &byte in chunk.invalid() {
            shown.push(sign);
            hex(&mut shown, byte);
        }
    }
    Cow::Owned(shown)
}

fn hex(shown: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(shown, "x{byte:02x}");
}

/// Whether a character is not shown as it is.
pub(crate) fn is_unfit(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}'                  // soft hyphen
            | '\u{61c}'                 // Arabic letter mark
            | '\u{180e}'                // Mongolian vowel separator
            | '\u{200b}'..='\u{200f}'   // zero width, direction marks
            | '\u{2028}'..='\u{202e}'   // line and paragraph separator, embeddings, overrides
            | '\u{2060}'..='\u{206f}'   // word joiner, invisible operators, isolates
            | '\u{feff}'                // byte order mark
            | '\u{fff9}'..='\u{fffb}'   // interlinear annotations
            | '\u{e0000}'..='\u{e007f}' // tags
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_can_be_shown_as_it_is() {
        for name in ["plain", "with space", "émile", "日本語", "a:b*c?", "🦀", ""] {
            assert!(matches!(escape(name.as_bytes()), Cow::Borrowed(same) if same == name));
        }
    }

    #[test]
    fn escapes_what_would_move_the_cursor_or_turn_the_line() {
        let pairs: [(&[u8], &str); 10] = [
            (b"a\nb", r"a\nb"),
            (b"\r\t", r"\r\t"),
            (b"\x1b[2J", r"\e[2J"),
            (b"\x07\x7f", r"\x07\x7f"),
            ("\u{9b}31m".as_bytes(), r"\u{9b}31m"),
            ("exe.\u{202e}gpj".as_bytes(), r"exe.\u{202e}gpj"),
            ("\u{2066}x\u{2069}".as_bytes(), r"\u{2066}x\u{2069}"),
            ("a\u{200b}b\u{2028}".as_bytes(), r"a\u{200b}b\u{2028}"),
            (b"\xff\xc3(", r"\xff\xc3("),
            (br"back\slash", r"back\\slash"),
        ];
        for (name, shown) in pairs {
            assert_eq!(escape_by('\\', name), shown);
        }
    }

    #[test]
    fn where_a_backslash_separates_names_it_is_one_backslash() {
        assert_eq!(escape_by('/', br"Z:\tmp\n"), r"Z:\tmp\n");
        assert_eq!(escape_by('/', b"C:\\a\nb\x1b\xff"), r"C:\a/nb/e/xff");
        assert_eq!(escape_by('/', "C:\\exe.\u{202e}gpj".as_bytes()), r"C:\exe./u{202e}gpj");
    }

    #[test]
    fn two_names_never_look_the_same() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut seen = std::collections::HashMap::new();
        let pieces: [&[u8]; 12] = [
            b"a",
            b"\\",
            b"n",
            b"\n",
            b"x",
            b"0",
            b"\xff",
            b"e",
            b"\x1b",
            b"u{202e}",
            b"\\x",
            "\u{202e}".as_bytes(),
        ];
        for _ in 0..20_000 {
            let length = random.usize(..5);
            let name: Vec<u8> =
                (0..length).flat_map(|_| pieces[random.usize(..12)].to_vec()).collect();
            let shown = escape_by('\\', &name).into_owned();
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            let before = seen.insert(shown, name.clone());
            assert!(before.is_none_or(|before| before == name));
        }
    }
}
