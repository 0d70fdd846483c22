//! How JSON is laid out: strings that a terminal can show, and one entry a line.

use std::io::{self, Write};

use serde_json::ser::Formatter;

use crate::report::is_unfit;

/// Writes the part of a string that JSON itself does not ask to be escaped. Control characters of
/// C1, DEL and what is invisible or turns writing around are escaped all the same.
fn fragment(out: &mut (impl Write + ?Sized), fragment: &str) -> io::Result<()> {
    if fragment.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return out.write_all(fragment.as_bytes());
    }
    escaping(out, fragment, is_unfit)
}

/// Writes a part of a string with these characters escaped.
fn escaping(
    out: &mut (impl Write + ?Sized),
    fragment: &str,
    escaped: impl Fn(char) -> bool,
) -> io::Result<()> {
    let mut written = 0;
    for (at, character) in fragment.char_indices().filter(|&(_, it)| escaped(it)) {
        out.write_all(&fragment.as_bytes()[written..at])?;
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}")?;
        }
        written = at + character.len_utf8();
    }
    out.write_all(&fragment.as_bytes()[written..])
}

/// Everything on one line.
pub(super) struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        it: &str,
    ) -> io::Result<()> {
        fragment(out, it)
    }
}

/// Within a page of HTML: nothing in it is markup.
pub(super) struct InPage;

impl Formatter for InPage {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        it: &str,
    ) -> io::Result<()> {
        escaping(out, it, |it| is_unfit(it) || matches!(it, '<' | '>' | '&'))
    }
}

/// The document's members a line each, and the elements of its lists a line each.
pub(crate) struct Lines {
    depth: usize,
    /// Whether the list or object that was begun last is empty so far.
    empty: bool,
    /// What lies deeper stands on the line of the element that it belongs to.
    apart: usize,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines::apart(2)
    }
}

impl Lines {
    /// With lines of their own for what lies so deep, in 4 at most.
    pub(crate) fn apart(apart: usize) -> Lines {
        Lines { depth: 0, empty: false, apart }
    }

    fn begin(&mut self, out: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        out.write_all(bracket)
    }

    fn element(&mut self, out: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        self.empty = false;
        if !first {
            out.write_all(b",")?;
        }
        if self.depth <= self.apart {
            self.line(out)
        } else if first {
            Ok(())
        } else {
            out.write_all(b" ")
        }
    }

    fn end(&mut self, out: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        let apart = self.depth <= self.apart && !self.empty;
        self.depth -= 1;
        self.empty = false;
        if apart {
            self.line(out)?;
        }
        out.write_all(bracket)
    }

    fn line(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        out.write_all(&b"\n        "[..=self.depth * 2])
    }
}

impl Formatter for Lines {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        it: &str,
    ) -> io::Result<()> {
        fragment(out, it)
    }
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize as _;
    use serde_json::{Serializer, Value, json};

    use super::*;

    fn written(value: &Value, lines: bool) -> String {
        let mut out = Vec::new();
        if lines {
            value.serialize(&mut Serializer::with_formatter(&mut out, Lines::default()))
        } else {
            value.serialize(&mut Serializer::with_formatter(&mut out, OneLine))
        }
        .expect("a vector can be written to");
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn what_a_terminal_must_not_get_is_escaped_and_means_the_same() {
        let name = "é\u{9b}31m\u{7f}\u{202e}\u{e0001}\u{1b}\"\\\n日本\u{feff}";
        for lines in [false, true] {
            let text = written(&json!([name]), lines);
            assert!(!text.chars().any(|it| it != '\n' && is_unfit(it) && it != '\\'), "{text:?}");
            assert!(text.contains("é") && text.contains("日本"), "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), json!([name]));
        }
    }

    #[test]
    fn each_element_of_a_list_of_the_document_is_a_line() {
        let value = json!({"a": [], "b": {}, "c": [{"d": [1, 2], "e": {"f": 1}}, {}], "g": 1});
        let expected = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    {\"d\": [1, 2], \"e\": {\"f\": 1}},\n    {}\n  ],\n  \"g\": 1\n}";
        assert_eq!(written(&value, true), expected);
        assert_eq!(written(&value, false).lines().count(), 1);
        let mut out = Vec::new();
        let deep = json!({"a": {"b": {"c": [{"d": 1}]}}});
        deep.serialize(&mut Serializer::with_formatter(&mut out, Lines::apart(4)))
            .expect("a vector");
        let expected = "{\n  \"a\": {\n    \"b\": {\n      \"c\": [\n        {\"d\": 1}\n      ]\n    }\n  }\n}";
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }
}
