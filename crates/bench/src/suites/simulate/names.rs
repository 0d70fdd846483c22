//! The names that a source has for its words: which field stands before `.load(` at a line and
//! column.
//!
//! The build script reads the queues' and pools' sources with it. A memory knows its caller only by
//! a place in the source; so that place has a name in the account, such as `Bounds::word`.

/// Methods of words, pointers and cells.
const METHODS: [&str; 11] = [
    "load",
    "store",
    "swap",
    "fetch_add",
    "fetch_sub",
    "fetch_or",
    "fetch_and",
    "compare_exchange",
    "with",
    "with_mut",
    "free",
];

/// Each place of a source at which a word may be accessed, as line and column from 1, and the
/// word's name.
pub(crate) fn names(source: &str) -> Vec<(u32, u32, String)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (number, line) in (1..).zip(source.split_inclusive('\n')) {
        for (column, _) in line.match_indices('.') {
            let rest = &line[column + 1..];
            let method = METHODS.iter().find(|method| {
                rest.strip_prefix(**method).is_some_and(|rest| rest.starts_with('('))
            });
            if method.is_some()
                && let Some(field) = receiver(&source[..start + column])
            {
                let name = match declared(source, field) {
                    Some(of) => format!("{of}::{field}"),
                    None => format!("{}::{field}", implemented(&source[..start])),
                };
                found.push((number, column as u32 + 2, name));
            }
        }
        start += line.len();
    }
    found
}

/// The last name of the expression that a text ends with, without what is in brackets.
fn receiver(before: &str) -> Option<&str> {
    let mut rest = before.trim_end();
    loop {
        let close = rest.chars().next_back()?;
        let open = match close {
            ')' => '(',
            ']' => '[',
            _ => break,
        };
        let mut depth = 0;
        let at = rest.char_indices().rev().find(|(_, letter)| {
            depth += i32::from(*letter == close) - i32::from(*letter == open);
            depth == 0
        });
        rest = rest[..at?.0].trim_end();
    }
    let begins = rest.rfind(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let name = &rest[begins.map_or(0, |at| at + 1)..];
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        let of = receiver(rest[..rest.len() - name.len()].strip_suffix('.')?);
        return of.filter(|of| *of != "self").or(Some(name));
    }
    (!name.is_empty()).then_some(name)
}

/// The structure of this source that has such a field.
fn declared<'a>(source: &'a str, field: &str) -> Option<&'a str> {
    let mut structure = None;
    for line in source.lines() {
        let words =
            line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        let words = words.trim_start_matches("pub ");
        if let Some(rest) = words.strip_prefix("struct ") {
            structure = rest.split(['<', ' ', '(', '{', ';', ':']).next();
        } else if line.starts_with('}') {
            structure = None;
        } else if words.strip_prefix(field).is_some_and(|rest| rest.starts_with(':'))
            && structure.is_some()
        {
            return structure;
        }
    }
    None
}

/// What the last `impl` of a text is of.
fn implemented(before: &str) -> &str {
    let last = before
        .lines()
        .rev()
        .find(|line| line.starts_with("impl") || line.starts_with("unsafe impl"));
    let Some(line) = last else { return "here" };
    let of = if let Some(at) = line.rfind(" for ") {
        &line[at + 5..]
    } else if let Some(parameters) = line.strip_prefix("impl<") {
        let mut depth = 1;
        let end = parameters.char_indices().find(|(_, letter)| {
            depth += i32::from(*letter == '<') - i32::from(*letter == '>');
            depth == 0
        });
        end.map_or("here", |(at, _)| &parameters[at + 1..])
    } else {
        line.trim_start_matches("impl")
    };
    of.trim().split(['<', ' ', '{']).next().unwrap_or("here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_name_of_its_field() {
        let source = "
pub struct Shared<T, M> {
    owner: CachePadded<OwnerLine<M>>,
}
struct OwnerLine<M> {
    pub(super) tail: M::Word,
    slots: Vec<M::Word>,
}
struct Pair<M>(M::Word);

impl<T, M: Memory<A>> Shared<T, M> {
    fn len(&self) -> u64 {
        let tail = self.owner.tail.load(Ordering::Relaxed);
        self.owner.slots[(tail % 2) as usize].store(1, Ordering::Relaxed);
        self.owner
            .tail
            .compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
        self.find(tail).swap(1, Ordering::Relaxed);
        self.pair.0.fetch_add(1, Ordering::Relaxed);
        self.0.swap(1, Ordering::Relaxed);
        tail.overload(1)
    }
}
impl Other<'_> {
    fn take(&self) {
        self.done.load(Ordering::Relaxed);
    }
}
";
        let found: Vec<_> = names(source).into_iter().map(|(line, _, name)| (line, name)).collect();
        let wanted = [
            (13, "OwnerLine::tail"),
            (14, "OwnerLine::slots"),
            (17, "OwnerLine::tail"),
            (18, "Shared::find"),
            (19, "Shared::pair"),
            (20, "Shared::0"),
            (26, "Other::done"),
        ];
        assert_eq!(found, wanted.map(|(line, name)| (line, name.to_owned())));
        let line = source.lines().nth(12).unwrap();
        assert_eq!(names(source)[0].1 as usize, line.find("load").unwrap() + 1);
    }
}
