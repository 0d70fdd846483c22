//! A pattern of an ignore file, compared with a path byte by byte, as git does (gitignore(5);
//! `wildmatch.c` in git's source says what the manual leaves open). Time is at most in proportion
//! to the pattern's length times the path's, whatever stars there are.

/// What a pattern matches.
#[derive(Debug)]
pub(super) enum Pattern {
    /// This text.
    Text(Vec<u8>),
    /// What ends with this and has no slash before it.
    EndsWith(Vec<u8>),
    /// What begins with this text and goes on as the steps say.
    Steps(Vec<u8>, Box<[Step]>),
    /// Nothing: it is damaged.
    Nothing,
}

#[derive(Debug)]
pub(super) enum Step {
    Byte(u8),
    /// `?`: no slash.
    Any,
    /// `[..]`: one of these bytes, which no slash is.
    Set(Box<Set>),
    /// `*`: anything without a slash.
    Star,
    /// `**` between slashes or at an end of the pattern: anything.
    All,
    /// `**/` at the beginning or after a slash: directories, or none.
    Directories,
}

/// Of each byte whether it is in the set.
type Set = [bool; 256];

impl Pattern {
    pub(super) fn of(pattern: &[u8]) -> Pattern {
        let wild = pattern.iter().position(|byte| b"*?[\\".contains(byte));
        let (text, wild) = pattern.split_at(wild.unwrap_or(pattern.len()));
        let Some(steps) = steps(wild) else { return Pattern::Nothing };
        let bytes = |steps: &[Step]| {
            let bytes = steps.iter().map(|step| match step {
                Step::Byte(byte) => Some(*byte),
                _ => None,
            });
            bytes.collect::<Option<Vec<u8>>>()
        };
        match &*steps {
            [] => Pattern::Text(text.into()),
            [Step::Star, rest @ ..] if text.is_empty() => match bytes(rest) {
                Some(end) => Pattern::EndsWith(end),
                None => Pattern::Steps(Vec::new(), steps.into()),
            },
            _ => Pattern::Steps(text.into(), steps.into()),
        }
    }

    pub(super) fn matches(&self, path: &[u8]) -> bool {
        match self {
            Pattern::Nothing => false,
            Pattern::Text(text) => text == path,
            Pattern::EndsWith(end) => {
                path.strip_suffix(&**end).is_some_and(|before| !before.contains(&b'/'))
            }
            Pattern::Steps(text, steps) => {
                path.strip_prefix(&**text).is_some_and(|path| goes_on(steps, path))
            }
        }
    }
}

/// Whether the steps lead from a path's beginning to its end.
fn goes_on(steps: &[Step], path: &[u8]) -> bool {
    // Before which bytes the steps so far may end; or after the last.
    let mut ends = vec![false; path.len() + 1];
    ends[0] = true;
    for step in steps {
        let passes = |byte: u8| match step {
            Step::Byte(it) => *it == byte,
            Step::Any | Step::Star => byte != b'/',
            Step::Set(set) => set[usize::from(byte)] && byte != b'/',
            Step::All | Step::Directories => true,
        };
        match step {
            Step::Byte(_) | Step::Any | Step::Set(_) => {
                for at in (0..path.len()).rev() {
                    ends[at + 1] = ends[at] && passes(path[at]);
                }
                ends[0] = false;
            }
            Step::Star | Step::All => {
                for at in 0..path.len() {
                    ends[at + 1] |= ends[at] && passes(path[at]);
                }
            }
            Step::Directories => {
                let mut begun = false;
                for at in 0..path.len() {
                    begun |= ends[at];
                    ends[at + 1] |= begun && path[at] == b'/';
                }
            }
        }
        if !ends.contains(&true) {
            return false;
        }
    }
    ends[path.len()]
}

/// The steps of a pattern; none, if it is damaged.
fn steps(pattern: &[u8]) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut at = 0;
    while let Some(&byte) = pattern.get(at) {
        let start = at;
        at += 1;
        steps.push(match byte {
            b'?' => Step::Any,
            b'\\' => {
                at += 1;
                Step::Byte(*pattern.get(start + 1)?)
            }
            b'[' => {
                let (set, end) = set(pattern, at)?;
                at = end;
                Step::Set(Box::new(set))
            }
            b'*' => {
                while pattern.get(at) == Some(&b'*') {
                    at += 1;
                }
                let begins = start == 0 || pattern[start - 1] == b'/';
                match &pattern[at..] {
                    _ if at == start + 1 || !begins => Step::Star,
                    [b'/', ..] => {
                        at += 1;
                        Step::Directories
                    }
                    [] | [b'\\', b'/', ..] => Step::All,
                    _ => Step::Star,
                }
            }
            byte => Step::Byte(byte),
        });
    }
    Some(steps)
}

/// The set in the brackets that begin before an index, and where they end; none, if they do not
/// end, or name an unknown class.
fn set(pattern: &[u8], start: usize) -> Option<(Set, usize)> {
    let mut at = start;
    let negated = matches!(pattern.get(at), Some(b'!' | b'^'));
    at += usize::from(negated);
    let mut set = [false; 256];
    let first = at;
    // The byte that a range may begin with.
    let mut before = None;
    loop {
        let byte = *pattern.get(at)?;
        at += 1;
        let next = pattern.get(at).copied();
        match byte {
            b']' if at > first + 1 => break,
            b'\\' => {
                let escaped = next?;
                at += 1;
                set[usize::from(escaped)] = true;
                before = Some(escaped);
            }
            b'-' if before.is_some() && next.is_some_and(|next| next != b']') => {
                let mut last = next?;
                at += 1;
                if last == b'\\' {
                    last = *pattern.get(at)?;
                    at += 1;
                }
                for byte in before.take()?..=last {
                    set[usize::from(byte)] = true;
                }
            }
            b'[' if next == Some(b':') => {
                let rest = &pattern[at + 1..];
                let end = rest.iter().position(|&byte| byte == b']')?;
                if let Some(name) = rest[..end].strip_suffix(b":") {
                    let class = class(name)?;
                    (0..=u8::MAX).filter(class).for_each(|it| set[usize::from(it)] = true);
                    at += end + 2;
                    before = None;
                } else {
                    set[usize::from(byte)] = true;
                    before = Some(byte);
                }
            }
            byte => {
                set[usize::from(byte)] = true;
                before = Some(byte);
            }
        }
    }
    Some((set.map(|is_in| is_in != negated), at))
}

/// The bytes of a class of POSIX, of ASCII alone.
fn class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        // Without the vertical tab and the form feed, as git has it.
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_bytes_and_stars_stop_at_slashes() {
        for (pattern, path, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*.o", "x.o", true),
            ("*.o", "x/y.o", false),
            ("a*b*c", "abbcbc", true),
            ("a/**", "a/b/c", true),
            ("a/**", "a", false),
            ("**/b", "b", true),
            ("**/b", "a/c/b", true),
            ("**/b", "ab", false),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("a/**/b", "axb", false),
            ("a/x**/b", "a/xy/b", true),
            ("a/x?**/b", "a/xy/z/b", false),
            ("?", "/", false),
            ("[!a]", "/", false),
            ("[a-c-]x", "-x", true),
            ("[]a]", "]", true),
            ("[!]a]", "b", true),
            ("[\\]]", "]", true),
            ("[[:digit:]x]", "7", true),
            ("[[:digit:]x]", "y", false),
            ("[[:no:]x]", "x", false),
            ("[[:x]", "[", true),
            ("[[:x]", ":", true),
            ("[a", "[a", false),
            ("\\*", "*", true),
            ("a\\", "a\\", false),
            ("", "", true),
        ] {
            let found = Pattern::of(pattern.as_bytes()).matches(path.as_bytes());
            assert_eq!(found, expected, "{pattern} of {path}");
        }
        let many = "a*".repeat(1000);
        assert!(!Pattern::of(format!("{many}b").as_bytes()).matches("a".repeat(2000).as_bytes()));
        assert!(Pattern::of(many.as_bytes()).matches("a".repeat(2000).as_bytes()));
    }

    /// A search that goes back from each star to those before it takes longer than there is time.
    #[test]
    fn many_stars_take_no_longer_than_few() {
        let (many, path) = (40, [b"ab/".repeat(400), b"a".repeat(2000)].concat());
        for part in ["*a", "**/", "*?", "**/*b/"] {
            let pattern = [part.repeat(many), "no".to_owned()].concat();
            assert!(!Pattern::of(pattern.as_bytes()).matches(&path), "{part}");
        }
        let pattern = ["**/".repeat(many), "*a".repeat(many)].concat();
        assert!(Pattern::of(pattern.as_bytes()).matches(&path));
    }
}
