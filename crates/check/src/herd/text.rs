//! A file's text, read from its beginning to its end, and where something in it is wrong.

use std::fmt;

/// Something in a file that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Its line, from 1.
    pub line: usize,
    /// Its column, in characters from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for Mistake {}

#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    source: &'a str,
    at: usize,
    /// Where it ends: of the whole file, or of one cell of it.
    end: usize,
}

fn in_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '.'
}

impl<'a> Text<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Text { source, at: 0, end: source.len() }
    }

    pub(super) fn part(&self, at: usize, end: usize) -> Text<'a> {
        Text { at, end, ..*self }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.source[self.at..self.end]
    }

    pub(super) fn at_end(&self) -> bool {
        self.at == self.end
    }

    pub(super) fn mistake(&self, at: usize, what: impl Into<String>) -> Mistake {
        let before = &self.source[..at.min(self.source.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        Mistake { line, column, what: what.into() }
    }

    pub(super) fn found(&self) -> String {
        let rest = self.rest();
        match rest.chars().next() {
            None => "the end".to_owned(),
            Some(first) if !in_word(first) => format!("{first:?}"),
            Some(_) => {
                let end = rest.find(|letter| !in_word(letter)).unwrap_or(rest.len());
                format!("{:?}", &rest[..end])
            }
        }
    }

    pub(super) fn expected(&self, what: &str) -> Mistake {
        self.mistake(self.at, format!("expected {what}, found {}", self.found()))
    }

    /// Over white space and comments, which nest.
    pub(super) fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("(*") {
                return;
            }
            let mut depth = 0;
            let mut ends = self.end;
            let bytes = trimmed.as_bytes();
            let mut at = 0;
            while at + 1 < bytes.len() {
                match &bytes[at..at + 2] {
                    b"(*" => (depth, at) = (depth + 1, at + 1),
                    b"*)" => (depth, at) = (depth - 1, at + 1),
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    ends = self.at + at;
                    break;
                }
            }
            self.at = ends;
        }
    }

    /// Over `sign`, if it stands here.
    pub(super) fn take(&mut self, sign: &str) -> bool {
        self.skip_space();
        let here = self.rest().starts_with(sign);
        if here {
            self.at += sign.len();
        }
        here
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.take(sign) { Ok(()) } else { Err(self.expected(&format!("{sign:?}"))) }
    }

    pub(super) fn peek_word(&mut self) -> Word<'a> {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|letter| !in_word(letter)).unwrap_or(rest.len());
        Word { text: &rest[..end], at: self.at }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<Word<'a>, Mistake> {
        let word = self.peek_word();
        if word.text.is_empty() {
            return Err(self.expected(what));
        }
        self.at += word.text.len();
        Ok(word)
    }

    /// Over a word, if it stands here.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let here = self.peek_word().text == word;
        if here {
            self.at += word.len();
        }
        here
    }

    pub(super) fn number(&mut self) -> Result<Option<u64>, Mistake> {
        self.skip_space();
        let start = *self;
        let negative = self.take("-");
        let word = self.peek_word();
        if !word.text.starts_with(|letter: char| letter.is_ascii_digit()) {
            *self = start;
            return Ok(None);
        }
        self.at += word.text.len();
        let digits = word.text.trim_end_matches(['L', 'U', 'l', 'u']);
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let value = value.map_err(|_| {
            self.mistake(word.at, format!("{:?} is no number of 64 bits", word.text))
        })?;
        Ok(Some(if negative { value.wrapping_neg() } else { value }))
    }

    pub(super) fn rest_of_line(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim()
    }

    /// Over the title and the lines of keys, up to the initial state's brace.
    pub(super) fn skip_to_brace(&mut self) -> Result<(), Mistake> {
        let start = self.at;
        loop {
            self.skip_space();
            if self.take("{") {
                return Ok(());
            }
            if self.at_end() {
                return Err(self.mistake(start, "there is no initial state { .. } after this line"));
            }
            if self.rest().starts_with('"') {
                let close = self.rest()[1..].find('"');
                let Some(close) = close else {
                    return Err(self.mistake(self.at, "the title has no closing quote"));
                };
                self.at += close + 2;
            } else {
                self.rest_of_line();
            }
        }
    }
}
