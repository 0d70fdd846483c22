//! A glob: the globs without braces that it stands for, the text that it matches if it is one, and
//! otherwise a regular expression.
//!
//! The crate `globset` reads a glob and makes the regular expression, which matches bytes: `[é]`
//! would match one of the two bytes of that letter. Here `?` and `[..]` match characters, and bytes
//! that are not UTF-8 become characters that no name has.

use std::borrow::Cow;

use globset::GlobBuilder;

/// The longest that the globs, together, may be that a glob with braces stands for.
pub(super) const MOST: usize = 1 << 20;

/// A glob without braces as it is compared.
pub(super) struct Glob {
    /// Without slashes at its ends.
    pub(super) text: Vec<u8>,
    pub(super) is_path: bool,
    pub(super) may_be_absolute: bool,
}

impl Glob {
    /// What is meant by a text, in which slashes alone are between parts; nothing, if no entry
    /// below a given path can be.
    pub(super) fn of(text: &[u8]) -> Option<Glob> {
        let drive = cfg!(windows) && text.get(1) == Some(&b':');
        let may_be_absolute = text.first() == Some(&b'/') || drive;
        let trimmed = text.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        let is_path = text[..trimmed].contains(&b'/');
        // What looks like a part may be some of the characters in brackets.
        let brackets = text.contains(&b'[');
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in text[..trimmed].split(|&byte| byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => match parts.pop() {
                    Some(above) if above != b"**" && !brackets => {}
                    _ => return None,
                },
                part => parts.push(part),
            }
        }
        let text = parts.join(&b'/');
        (!text.is_empty()).then_some(Glob { text, is_path, may_be_absolute })
    }
}

/// Where the first braces of a glob begin, and where each of their alternatives ends. Brackets and
/// what is escaped are passed over.
fn braces(glob: &[u8]) -> Option<(usize, Vec<usize>)> {
    let (mut start, mut ends, mut depth) = (0, Vec::new(), 0_usize);
    let mut at = 0;
    while let Some(&byte) = glob.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => at = past_brackets(glob, at),
            b'{' => {
                start = if depth == 0 { at } else { start };
                depth += 1;
            }
            b',' if depth == 1 => ends.push(at),
            b'}' if depth == 1 => {
                ends.push(at);
                return Some((start, ends));
            }
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The last byte of what is in brackets.
fn past_brackets(glob: &[u8], at: usize) -> usize {
    let negated = usize::from(matches!(glob.get(at + 1), Some(b'!' | b'^')));
    // A bracket that comes first is one of the characters.
    let first = at + negated + 2;
    let end = glob.get(first..).and_then(|rest| rest.iter().position(|&byte| byte == b']'));
    end.map_or(glob.len(), |end| first + end)
}

/// The globs without braces that a glob stands for; none, if they are too long.
pub(super) fn alternatives(glob: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut done, mut waiting) = (Vec::new(), vec![glob.to_vec()]);
    let mut bytes = 0;
    while let Some(glob) = waiting.pop() {
        let Some((start, ends)) = braces(&glob) else {
            done.push(glob);
            continue;
        };
        let (before, after) = (&glob[..start], &glob[ends[ends.len() - 1] + 1..]);
        let mut from = start + 1;
        for end in ends {
            waiting.push([before, &glob[from..end], after].concat());
            bytes += waiting[waiting.len() - 1].len();
            from = end + 1;
        }
        if bytes > MOST {
            return None;
        }
    }
    Some(done)
}

/// The text that a glob without braces matches, if it is one.
pub(super) fn only_text(glob: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = glob.iter();
    let mut text = Vec::with_capacity(glob.len());
    while let Some(&byte) = bytes.next() {
        match byte {
            b'*' | b'?' | b'[' => return None,
            b'\\' => text.push(*bytes.next()?),
            byte => text.push(byte),
        }
    }
    Some(text)
}

/// A glob as its crate reads it.
pub(super) fn parsed(glob: &[u8]) -> Result<globset::Glob, globset::Error> {
    let text = characters(glob);
    let text = String::from_utf8_lossy(&text);
    GlobBuilder::new(&text).literal_separator(true).empty_alternates(true).build()
}

/// A glob without braces as a regular expression of [`characters`].
pub(super) fn regex(glob: &[u8]) -> Result<String, globset::Error> {
    let glob = parsed(glob)?;
    let mut rest = glob.regex();
    let mut regex = String::with_capacity(rest.len());
    // Of bytes, as `globset` writes it, but for what matches one of several: that matches a
    // character.
    while let Some(at) = rest.find(['\\', '[']) {
        let (before, from) = rest.split_at(at);
        regex.push_str(before);
        let length = if from.starts_with('\\') { 2 } else { class(from) };
        let (token, after) = from.split_at(length);
        if token.starts_with('[') && !after.starts_with('*') {
            regex.push_str("(?u:");
            regex.push_str(&of_characters(token));
            regex.push(')');
        } else {
            regex.push_str(token);
        }
        rest = after;
    }
    regex.push_str(rest);
    Ok(regex)
}

/// How long the class is that a part of a regular expression begins with.
fn class(from: &str) -> usize {
    let mut escaped = false;
    let end = from.find(|it| {
        let ends = it == ']' && !escaped;
        escaped = it == '\\' && !escaped;
        ends
    });
    end.map_or(from.len(), |end| end + 1)
}

/// A class of bytes, as `\xc3\xa9` in it, as one of the characters that they make.
fn of_characters(class: &str) -> String {
    let mut bytes = Vec::with_capacity(class.len());
    let mut rest = class;
    while let Some(at) = rest.find('\\') {
        bytes.extend(rest[..at].bytes());
        let hexadecimal = rest[at..].strip_prefix("\\x").and_then(|it| it.get(..2));
        let byte = hexadecimal.and_then(|it| u8::from_str_radix(it, 16).ok());
        let length = if byte.is_some() { 4 } else { 2 };
        match byte {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(rest[at..at + length].bytes()),
        }
        rest = &rest[at + length..];
    }
    bytes.extend(rest.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text as characters: each byte that belongs to no character becomes a character that no name
/// has.
pub(super) fn characters(text: &[u8]) -> Cow<'_, [u8]> {
    /// Stands for the byte 0.
    const FIRST: u32 = 0x10_ff00;
    if std::str::from_utf8(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let stand_in = |byte: &u8| char::from_u32(FIRST + u32::from(*byte)).unwrap_or_default();
    let mut characters = String::with_capacity(text.len() + 8);
    for chunk in text.utf8_chunks() {
        characters.push_str(chunk.valid());
        characters.extend(chunk.invalid().iter().map(stand_in));
    }
    Cow::Owned(characters.into_bytes())
}

/// A path or a glob with slashes alone between its parts.
pub(super) fn slashes(text: &[u8]) -> Cow<'_, [u8]> {
    if cfg!(windows) && text.contains(&b'\\') {
        return text.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect();
    }
    Cow::Borrowed(text)
}
