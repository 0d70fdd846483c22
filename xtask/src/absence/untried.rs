//! The rule `safe-code-tries-everything`: a program of tests that forbids `unsafe` names all that a
//! user can call, make or implement of a library. The library's module `compile_fail` may name it
//! instead; it holds what safe code cannot write.
//!
//! The list is read from the source, so that it cannot fall behind. It has functions, methods,
//! macros, traits with their methods, enums, and structs with public fields. It leaves out what is
//! `unsafe`, since the compiler keeps safe code from it. A bare `pub` is an item that users reach
//! (rustc's `unreachable_pub` says so), and so is what a public trait declares. A function of a
//! type without `self` makes something, so it must be named with its type, `Type::name`; of
//! everything else the name is enough. What a macro gives to its parameter (`impl $type`) belongs
//! to each type that comes first where that macro is used.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::tokens::{Token, flatten};
use super::{Finding, rules, walk};

pub(super) const NAME: &str = "safe-code-tries-everything";

/// The libraries that users name. Not `mutants`, which is not published (`publish = false`).
const LIBRARIES: [&str; 16] = [
    "far",
    "crates/memory",
    "crates/deque",
    "crates/pool",
    "crates/runtime",
    "crates/parallel",
    "crates/check",
    "crates/models",
    "crates/measure",
    "crates/bench",
    "crates/scan",
    "crates/simulate",
    "crates/topology",
    "crates/poach",
    "capi",
    "compat/rayon-core",
];

const KINDS: [&str; 6] = ["struct", "enum", "union", "trait", "macro", "fn"];

/// Something that a user can call, make or implement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    /// The type or the trait that it belongs to; a parameter of a macro with its `$`.
    of: Option<String>,
    name: String,
    line: usize,
    /// An associated function without `self`.
    makes: bool,
    /// The macro that it stands in.
    by: Option<String>,
}

impl Item {
    /// The item; if it belongs to a parameter of its macro, one for each use of that.
    fn of_each(self, uses: &[(String, String)]) -> Vec<Item> {
        match (&self.of, &self.by) {
            (Some(of), Some(by)) if of.starts_with('$') => uses
                .iter()
                .filter(|(name, _)| name == by)
                .map(|(_, first)| Item { of: Some(first.clone()), ..self.clone() })
                .collect(),
            _ => vec![self],
        }
    }
}

/// Each use of a macro whose first argument is a name: the macro's, and that.
fn uses(tokens: &[Token]) -> Vec<(String, String)> {
    let of_four = tokens.windows(4).filter(|four| {
        let [name, mark, open, first] = four else { return false };
        let named = |token: &Token| token.text.starts_with(char::is_alphabetic);
        named(name)
            && mark.text == "!"
            && ["(", "{", "["].contains(&open.text.as_str())
            && named(first)
    });
    of_four.map(|four| (four[0].text.clone(), four[3].text.clone())).collect()
}

/// Appends each public item below `root` that nothing tries.
pub(super) fn check(root: &Path, findings: &mut Vec<Finding>) -> Result<()> {
    for library in LIBRARIES {
        let home = root.join(library);
        let tried = Tried::of(&home)?;
        let mut files = Vec::new();
        for (path, source) in sources(&home.join("src"))? {
            let file = crate::run::from_root(root, &path).to_string().replace('\\', "/");
            if !rules::is_test_file(&file) && !file.ends_with("/compile_fail.rs") {
                let tokens = flatten(&source).with_context(|| file.clone())?;
                files.push((file, tokens));
            }
        }
        let uses: Vec<_> = files.iter().flat_map(|(_, tokens)| uses(tokens)).collect();
        for (file, tokens) in &files {
            let items = items(tokens).into_iter().flat_map(|item| item.of_each(&uses));
            for item in items.filter(|item| !tried.has(item)) {
                let of = item.of.map_or(String::new(), |of| format!("{of}::"));
                findings.push(Finding {
                    file: file.clone(),
                    line: item.line,
                    rule: NAME,
                    advice: format!(
                        "no test under `forbid(unsafe_code)` names `{of}{}`, nor does `compile_fail`",
                        item.name
                    ),
                });
            }
        }
    }
    Ok(())
}

/// The Rust files below `directory` with what is in them; none, if it is not there.
fn sources(directory: &Path) -> Result<Vec<(std::path::PathBuf, String)>> {
    let mut sources = Vec::new();
    if directory.is_dir() {
        for entry in walk(directory) {
            let path = entry.context("could not list the tree")?.into_path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let source = fs::read_to_string(&path)
                    .with_context(|| format!("reading {}", path.display()))?;
                sources.push((path, source));
            }
        }
    }
    Ok(sources)
}

/// What the safe programs of a library name.
#[derive(Default)]
struct Tried {
    names: HashSet<String>,
    /// `Type`, `name` of each `Type::name`.
    paths: HashSet<(String, String)>,
}

impl Tried {
    fn of(home: &Path) -> Result<Self> {
        let mut tried = Tried::default();
        for (path, source) in sources(&home.join("tests"))? {
            let tokens = flatten(&source).with_context(|| path.display().to_string())?;
            if tokens.windows(3).any(|t| texts(t) == ["forbid", "(", "unsafe_code"]) {
                tried.read(&tokens);
            }
        }
        let compile_fail = home.join("src/compile_fail.rs");
        if compile_fail.exists() {
            // Its programs stand in comments, where a row of marks is as good as one of tokens.
            let source = fs::read_to_string(&compile_fail)?;
            let code: String = source.lines().filter_map(code_of_a_comment).collect();
            tried.read(&words(&code));
        }
        Ok(tried)
    }

    fn read(&mut self, tokens: &[Token]) {
        for (at, token) in tokens.iter().enumerate() {
            self.names.insert(token.text.clone());
            if let Some(of) = qualifier(&tokens[..at]) {
                self.paths.insert((of.to_owned(), token.text.clone()));
            }
        }
    }

    fn has(&self, item: &Item) -> bool {
        match &item.of {
            Some(of) if item.makes => self.paths.contains(&(of.clone(), item.name.clone())),
            _ => self.names.contains(&item.name),
        }
    }
}

fn texts(tokens: &[Token]) -> Vec<&str> {
    tokens.iter().map(|token| token.text.as_str()).collect()
}

fn code_of_a_comment(line: &str) -> Option<String> {
    let line = line.trim_start();
    let code = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(format!("{code}\n"))
}

/// Words and marks of a text that may not be Rust.
fn words(text: &str) -> Vec<Token> {
    let mut words: Vec<Token> = Vec::new();
    let mut open = false;
    for c in text.chars() {
        let part = c.is_alphanumeric() || c == '_';
        match words.last_mut() {
            Some(word) if part && open => word.text.push(c),
            _ if c.is_whitespace() => {}
            _ => words.push(Token { text: c.to_string(), line: 0, test: true }),
        }
        open = part;
    }
    words
}

/// `Type`, if what stands before a name is `Type::` or `Type::<..>::`.
fn qualifier(before: &[Token]) -> Option<&str> {
    let colons =
        |tokens: &[Token]| tokens.len() >= 2 && texts(&tokens[tokens.len() - 2..]) == [":", ":"];
    if !colons(before) {
        return None;
    }
    let mut before = &before[..before.len() - 2];
    if before.last()?.text == ">" {
        let mut depth = 0;
        while let Some((last, rest)) = before.split_last() {
            before = rest;
            match last.text.as_str() {
                ">" => depth += 1,
                "<" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        if colons(before) {
            before = &before[..before.len() - 2];
        }
    }
    before.last().map(|token| token.text.as_str())
}

/// The public items of a file.
fn items(tokens: &[Token]) -> Vec<Item> {
    let mut items = Vec::new();
    // The `impl`s and public traits that we are in: name, whether it is a trait, in which all is
    // public, depth.
    let mut inside: Vec<(String, bool, usize)> = Vec::new();
    let mut next: Option<(String, bool)> = None;
    let mut by: Option<(String, usize)> = None;
    let mut depth = 0;
    let mut public = false;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let text = token.text.as_str();
        match text {
            "{" => {
                depth += 1;
                if let Some((name, of_trait)) = next.take() {
                    inside.push((name, of_trait, depth));
                }
            }
            "}" => {
                inside.retain(|&(.., level)| level < depth);
                by.take_if(|&mut (_, level)| level == depth);
                depth -= 1;
            }
            // A trait without a body, or a field of a type named like a keyword's: nothing opens.
            ";" => next = None,
            "impl" if depth == inside.last().map_or(depth, |&(.., level)| level - 1) => {
                next = Some((implemented(&tokens[at + 1..]), false));
            }
            "macro_rules" if tokens.len() > at + 2 => {
                by = Some((tokens[at + 2].text.clone(), depth + 1));
            }
            "pub" => {
                public = tokens.get(at + 1).is_some_and(|next| next.text != "(");
                at += 1;
                if public {
                    continue;
                }
            }
            _ => {}
        }
        let within = inside.last().filter(|&&(.., level)| level == depth);
        let of = within.map(|(name, ..)| name.clone());
        let shown = public || within.is_some_and(|&(_, of_trait, _)| of_trait);
        let name = tokens.get(at + 1).map_or("", |name| name.text.as_str());
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if shown && is_name && !token.test && KINDS.contains(&text) {
            let keeps_out = is_unsafe(&tokens[..at]);
            if !keeps_out && (text != "struct" || has_public_fields(&tokens[at + 2..])) {
                let of_type = within.is_some_and(|&(_, of_trait, _)| !of_trait);
                let makes = text == "fn" && of_type && !has_receiver(&tokens[at + 2..]);
                let by = by.as_ref().map(|(name, _)| name.clone());
                items.push(Item { of, name: name.to_owned(), line: token.line, makes, by });
            }
            if text == "trait" {
                next = Some((name.to_owned(), true));
            }
            public = false;
        } else if !["const", "unsafe", "async", "extern", "", "auto"].contains(&text) {
            public = false;
        }
        at += 1;
    }
    items
}

/// Whether `unsafe` stands before a function or a trait, given what stands before its keyword:
/// `unsafe extern "C"`, too.
fn is_unsafe(before: &[Token]) -> bool {
    let mut before = before.iter().rev().peekable();
    // A literal's text is left out.
    before.next_if(|token| token.text.is_empty());
    before.next_if(|token| token.text == "extern");
    before.next().is_some_and(|token| token.text == "unsafe")
}

/// The name of the type that an `impl` is of, from the tokens behind the word.
fn implemented(tokens: &[Token]) -> String {
    let mut depth = 0;
    let mut name = String::new();
    let mut before = "";
    for token in tokens {
        match token.text.as_str() {
            "<" => depth += 1,
            ">" if before != "-" => depth -= 1,
            "{" | "where" => break,
            "for" if depth == 0 => name = String::new(),
            word if depth == 0 && word.starts_with(char::is_alphabetic) => {
                let mark = if before == "$" { "$" } else { "" };
                name = format!("{mark}{word}");
            }
            _ => {}
        }
        before = &token.text;
    }
    name
}

/// Whether the fields of a struct, from the tokens behind its name, are for everybody to set:
/// whether the first is.
fn has_public_fields(tokens: &[Token]) -> bool {
    let mut body =
        tokens.iter().skip_while(|token| !["{", "(", ";"].contains(&token.text.as_str()));
    let mut attribute = 0;
    body.next().is_some_and(|open| open.text != ";")
        && body
            .find(|token| {
                match token.text.as_str() {
                    "[" => attribute += 1,
                    "]" => attribute -= 1,
                    "#" => {}
                    _ => return attribute == 0,
                }
                false
            })
            .is_some_and(|first| first.text == "pub")
}

/// Whether the parameters of a function, from the tokens behind its name, begin with `self`.
fn has_receiver(tokens: &[Token]) -> bool {
    let parameters = tokens.iter().skip_while(|token| token.text != "(").skip(1);
    parameters
        .take_while(|token| ![",", ")", ":"].contains(&token.text.as_str()))
        .any(|token| token.text == "self")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, test: &str, compile_fail: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("crates/pool");
        fs::create_dir_all(home.join("src")).unwrap();
        fs::create_dir_all(home.join("tests")).unwrap();
        fs::write(home.join("src/lib.rs"), source).unwrap();
        fs::write(home.join("src/compile_fail.rs"), compile_fail).unwrap();
        fs::write(home.join("tests/safe_code.rs"), test).unwrap();
        let mut findings = Vec::new();
        check(root.path(), &mut findings).unwrap();
        findings
            .iter()
            .map(|f| format!("{} {}", f.line, f.advice.split('`').nth(3).unwrap()))
            .collect()
    }

    const SOURCE: &str = "pub mod m { pub(crate) fn inner() {} fn own() {} }
        pub const LIMIT: usize = 1; pub struct Private { field: u8 }
        pub struct Pool<T> { #[doc(hidden)] pub field: T }
        impl<T: Fn() -> u8> Pool<T> {
            pub const fn new() -> Self { fn f() {} }
            pub unsafe fn unchecked<'a>(&'a mut self) {}
            fn own(&self) {}
        }
        impl<T> Other for Pool<T> { fn other(&self) {} }
        pub trait Call { type Out; fn call(&self) { let a = 1; } }
        #[cfg(test)] pub fn test() {}";

    #[test]
    fn what_nobody_tries_is_found() {
        let all = ["3 Pool", "5 Pool::new", "10 Call", "10 Call::call"];
        assert_eq!(found(SOURCE, "", ""), all);
        let named =
            "fn f() { m::LIMIT; Pool::<Vec<u8>>::new(); let _: &dyn Call<Out = u8>; a.call() }";
        // A program that may hold `unsafe` shows nothing.
        assert_eq!(found(SOURCE, named, ""), all);
        let safe = format!("#![forbid(unsafe_code)] {named}");
        assert!(found(SOURCE, &safe, "").is_empty());
        let some = format!("#![forbid(unsafe_code)] {}", named.replace("Pool", "Other"));
        assert_eq!(found(SOURCE, &some, ""), ["3 Pool", "5 Pool::new"]);
        assert!(found(SOURCE, &some, "/// Pool::new();").is_empty());
    }

    #[test]
    fn what_a_macro_gives_its_parameter_is_of_each_type_that_it_is_used_for() {
        let source = "macro_rules! owner { ($owner:ident) => { impl<T> $owner<T> { pub fn new() -> Self {} } }; }
            pub struct A; pub struct B; owner!(A); owner! { B }";
        assert_eq!(found(source, "#![forbid(unsafe_code)] fn f() { B::new() }", ""), ["1 A::new"]);
        let both = "#![forbid(unsafe_code)] fn f() { A::new(); B::new() }";
        assert!(found(source, both, "").is_empty());
    }

    #[test]
    fn what_is_unsafe_is_kept_from_safe_code() {
        let source = "pub unsafe extern \"C\" fn f() {} pub unsafe fn g() {} pub unsafe trait T {} pub extern \"C\" fn h() {}";
        assert_eq!(found(source, "", ""), ["1 h"]);
    }

    #[test]
    fn a_constructor_is_named_with_its_type() {
        let source = "pub struct A; impl A { pub fn new() -> A {} }";
        assert_eq!(
            found(source, "#![forbid(unsafe_code)] fn f(_: A) { B::new() }", ""),
            ["1 A::new"]
        );
        assert!(found(source, "#![forbid(unsafe_code)] fn f() { A::new() }", "").is_empty());
    }
}
