//! The rules, over the tokens of a file.

mod meaning;

use std::collections::HashMap;
use std::ops::Range;
use std::str::FromStr as _;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

use super::{IS, Mutant, Wrap};

/// The beginnings of statements that cannot be left out, or are items.
const KEPT: [&str; 20] = [
    "let",
    "return",
    "break",
    "continue",
    "use",
    "fn",
    "pub",
    "const",
    "static",
    "type",
    "struct",
    "enum",
    "impl",
    "mod",
    "trait",
    "extern",
    "unsafe",
    "if",
    "else",
    "thread_local",
];

/// Every mutant of a file, in the order of their places.
///
/// # Errors
///
/// If the file is not Rust.
pub(crate) fn mutants(path: &str, source: &str) -> Result<Vec<Mutant>> {
    let stream = TokenStream::from_str(source).map_err(|error| anyhow!("{path}: {error}"))?;
    let mut finder = Finder { source, found: Vec::new() };
    finder.walk(stream, "");
    finder.found.sort_by_key(|found| (found.range.start, found.range.end));
    let mut times: HashMap<String, usize> = HashMap::new();
    let mutants = finder.found.into_iter().map(|found| {
        let Found { rule, range, text, wraps } = found;
        let line = source[..range.start].matches('\n').count() + 1;
        let what = source.lines().nth(line - 1).unwrap_or_default().trim();
        let anchor = format!("{path}: {rule}: {what}");
        let time = times.entry(anchor.clone()).or_default();
        *time += 1;
        let key = if *time == 1 { anchor } else { format!("{anchor} ({time})") };
        Mutant { key, line, range, text, wraps }
    });
    Ok(mutants.collect())
}

/// The tokens of a file that are code: no comments, and nothing for tests alone. The text itself if
/// it is not Rust.
pub(crate) fn code(source: &str) -> String {
    fn kept(stream: TokenStream) -> TokenStream {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let (mut at, mut kept_tokens) = (0, Vec::new());
        while at < tokens.len() {
            // An inner attribute has a `!` before its brackets.
            let inner = usize::from(mark(tokens.get(at + 1)) == '!');
            if mark(tokens.get(at)) == '#'
                && let Some(TokenTree::Group(group)) = tokens.get(at + 1 + inner)
            {
                let text = group.stream().to_string().replace(' ', "");
                let for_tests = is_for_tests(&text);
                if text.starts_with("doc=") || for_tests {
                    at += 2 + inner;
                    at += if for_tests { item_length(&tokens[at..]) } else { 0 };
                    continue;
                }
            }
            kept_tokens.push(match &tokens[at] {
                TokenTree::Group(group) => {
                    TokenTree::Group(Group::new(group.delimiter(), kept(group.stream())))
                }
                token => token.clone(),
            });
            at += 1;
        }
        kept_tokens.into_iter().collect()
    }
    TokenStream::from_str(source)
        .map_or_else(|_| source.to_owned(), |stream| kept(stream).to_string())
}

struct Finder<'a> {
    source: &'a str,
    found: Vec<Found>,
}

struct Found {
    rule: &'static str,
    range: Range<usize>,
    text: String,
    wraps: Vec<Wrap>,
}

fn ident(token: Option<&TokenTree>) -> String {
    match token {
        Some(TokenTree::Ident(ident)) => ident.to_string(),
        _ => String::new(),
    }
}

fn mark(token: Option<&TokenTree>) -> char {
    match token {
        Some(TokenTree::Punct(mark)) => mark.as_char(),
        _ => ' ',
    }
}

/// Whether an attribute, written without blanks, leaves its item to tests.
fn is_for_tests(attribute: &str) -> bool {
    ["cfg(test)", "cfg(all(test,", "cfg(doctest)"].iter().any(|it| attribute.contains(it))
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Whether no argument follows the one at `at`.
fn is_last_argument(tokens: &[TokenTree], at: usize) -> bool {
    !tokens[at + 1..].iter().any(|token| matches!(token, TokenTree::Ident(_)))
}

fn range(tokens: &[TokenTree]) -> Range<usize> {
    let start = tokens.first().map_or(0, |token| token.span().byte_range().start);
    let end = tokens.last().map_or(start, |token| token.span().byte_range().end);
    start..end
}

impl Finder<'_> {
    fn add(
        &mut self,
        rule: &'static str,
        range: Range<usize>,
        text: impl Into<String>,
        wraps: Vec<Wrap>,
    ) {
        self.found.push(Found { rule, range, text: text.into(), wraps });
    }

    /// An expression that is another one in the mutant.
    fn either(whole: Range<usize>, other: &str) -> Vec<Wrap> {
        vec![Wrap::new(whole, format!("(if {IS} {{ {other} }} else {{ "), " })")]
    }

    /// The mutants of a row of tokens and of what its brackets hold. `method` is what is called
    /// with them.
    fn walk(&mut self, stream: TokenStream, method: &str) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            // An attribute is no code; what stands under `#[cfg(test)]` is none that is judged.
            if mark(tokens.get(at)) == '#'
                && let Some(TokenTree::Group(group)) = tokens.get(at + 1)
            {
                let text = group.stream().to_string().replace(' ', "");
                at += 2;
                if is_for_tests(&text) {
                    at += item_length(&tokens[at..]);
                }
                continue;
            }
            let word = ident(tokens.get(at));
            if word == "use" {
                at += item_length(&tokens[at..]);
                continue;
            }
            // What a macro's rules make is judged nowhere: its rules are no code.
            if word == "macro_rules" {
                at += 4;
                continue;
            }
            // An assertion that only debug builds make is no part of the program.
            let asserts = word.starts_with("debug_assert") || word.starts_with("assert");
            if asserts && mark(tokens.get(at + 1)) == '!' {
                at += 3;
                continue;
            }
            self.ordering(&tokens, at, method);
            self.condition(&tokens, at);
            self.comparison(&tokens, at);
            self.offset(&tokens, at);
            self.operands(&tokens, at);
            self.flag(&tokens, at);
            self.arguments(&tokens, at);
            self.chained(&tokens, at);
            self.fields(&tokens, at);
            if word == "fn" {
                self.parameters(&tokens, at);
            }
            if let TokenTree::Group(group) = &tokens[at] {
                if group.delimiter() == Delimiter::Brace {
                    self.statements(group);
                }
                let called = if at > 0 { ident(tokens.get(at - 1)) } else { String::new() };
                self.walk(group.stream(), &called);
            }
            at += 1;
        }
    }

    /// An ordering one step weaker.
    fn ordering(&mut self, tokens: &[TokenTree], at: usize, method: &str) {
        let weaker: &[&str] = match ident(tokens.get(at)).as_str() {
            "Acquire" | "Release" => &["Relaxed"],
            "AcqRel" => &["Acquire", "Release"],
            "SeqCst" => match method {
                "load" => &["Acquire"],
                "store" => &["Release"],
                // The ordering of a failed exchange may be no release.
                _ if method.starts_with("compare_exchange") && is_last_argument(tokens, at) => {
                    &["Acquire"]
                }
                _ => &["AcqRel"],
            },
            _ => return,
        };
        // A pattern or a path to something else is no argument of a call.
        if method.is_empty() || matches!(method, "matches" | "assert") {
            return;
        }
        let mut first = at;
        while first >= 3 && mark(tokens.get(first - 1)) == ':' && mark(tokens.get(first - 2)) == ':'
        {
            first -= 3;
        }
        let (path, name) = (range(&tokens[first..=at]), range(&tokens[at..=at]));
        for weak in weaker {
            let other = format!("{}{weak}", &self.source[path.start..name.start]);
            self.add("ordering", name.clone(), *weak, Self::either(path.clone(), &other));
        }
    }

    /// The condition of an `if` or a `while`, negated.
    fn condition(&mut self, tokens: &[TokenTree], at: usize) {
        if !matches!(ident(tokens.get(at)).as_str(), "if" | "while") {
            return;
        }
        let rest = &tokens[at + 1..];
        // `unsafe { .. }` and `const { .. }` may be part of a condition.
        let inner =
            |at: usize| at > 0 && matches!(ident(rest.get(at - 1)).as_str(), "unsafe" | "const");
        let length = (0..rest.len()).find(|at| is_block(&rest[*at]) && !inner(*at));
        let Some(length) = length else { return };
        let condition = &rest[..length];
        // The guard of a match has no block of its own: `if x => {`.
        let guard = |pair: &[TokenTree]| mark(pair.first()) == '=' && mark(pair.get(1)) == '>';
        if condition.is_empty() || condition.windows(2).any(guard) {
            return;
        }
        if ident(tokens.get(at)) == "if" {
            self.branch(tokens, condition, at + 1 + length);
        }
        if condition.iter().any(|token| ident(Some(token)) == "let") {
            return;
        }
        let range = range(condition);
        let text = format!("!({})", &self.source[range.clone()]);
        let wraps = vec![Wrap::new(range.clone(), format!("({IS} != ("), "))")];
        self.add("negated", range, text, wraps);
    }

    /// A comparison that is off by one, or the other way round.
    fn comparison(&mut self, tokens: &[TokenTree], at: usize) {
        let (first, second) = (mark(tokens.get(at)), mark(tokens.get(at + 1)));
        let joint =
            matches!(&tokens[at], TokenTree::Punct(mark) if mark.spacing() == Spacing::Joint);
        let (length, other) = match (first, joint.then_some(second)) {
            ('<', Some('=')) => (2, "<"),
            ('>', Some('=')) => (2, ">"),
            ('=', Some('=')) => (2, "!="),
            ('!', Some('=')) => (2, "=="),
            ('<', None) => (1, "<="),
            ('>', None) => (1, ">="),
            _ => return,
        };
        let whole = left_end(tokens, at)..right_end(tokens, at + length);
        let (whole, range) = (range(&tokens[whole]), range(&tokens[at..at + length]));
        // Blanks stand around an operator, and not around what brackets a list of types.
        let bytes = self.source.as_bytes();
        let blank = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_whitespace);
        if range.start > 0 && blank(range.start - 1) && blank(range.end) {
            let (left, right) =
                (&self.source[whole.start..range.start], &self.source[range.end..whole.end]);
            let wraps = Self::either(whole.clone(), &format!("{left}{other}{right}"));
            self.add("comparison", range, other, wraps);
            self.tuples(tokens, at, length);
        }
    }

    /// One more or one less, left out.
    fn offset(&mut self, tokens: &[TokenTree], at: usize) {
        if !matches!(mark(tokens.get(at)), '+' | '-') {
            return;
        }
        if let Some(TokenTree::Literal(literal)) = tokens.get(at + 1)
            && literal.to_string() == "1"
        {
            let one = range(&tokens[at + 1..at + 2]);
            self.add("off by one", one.clone(), "0", Self::either(one, "0"));
        }
    }

    /// A statement left out, and two neighbouring stores in the other order.
    fn statements(&mut self, block: &Group) {
        let tokens: Vec<TokenTree> = block.stream().into_iter().collect();
        let mut stores: Option<Range<usize>> = None;
        let mut start = 0;
        for at in 0..tokens.len() {
            if is_block(&tokens[at]) {
                // `if .. { }` and the like end a statement without a sign; a closure's block and a
                // pattern's do not.
                if !matches!(mark(tokens.get(at + 1)), ';' | '.' | '=') {
                    (start, stores) = (at + 1, None);
                }
                continue;
            }
            if mark(tokens.get(at)) != ';' {
                continue;
            }
            let statement = &tokens[start..=at];
            start = at + 1;
            let first = ident(statement.first());
            let unused = first == "let" && ident(statement.get(1)) == "_";
            let plain = statement.len() > 2
                && mark(statement.first()) != '#'
                && (unused || !KEPT.contains(&first.as_str()))
                && !first.starts_with("debug_assert")
                && !first.starts_with("assert");
            if !plain {
                stores = None;
                continue;
            }
            let range = range(statement);
            let text = &self.source[range.clone()];
            let is = |names: &[&str]| {
                names.iter().any(|name| text.ends_with(&format!("{name}();")))
                    || names.iter().any(|name| text.contains(&format!(".{name}(")))
            };
            let fence = is(&["full", "light", "heavy", "owner", "thief"]);
            let rule = if fence { "fence left out" } else { "left out" };
            let unless = || Wrap::new(range.clone(), format!("if !{IS} {{ "), " }");
            self.add(rule, range.clone(), "", vec![unless()]);
            if text.contains(".store(") {
                if let Some(before) = stores.take() {
                    let between = &self.source[before.end..range.start];
                    let swapped = format!("{text}{between}{}", &self.source[before.clone()]);
                    let both = before.start..range.end;
                    let sooner = Wrap::new(both.clone(), format!("if {IS} {{ {text} }} "), "");
                    self.add("stores swapped", both, swapped, vec![sooner, unless()]);
                }
                stores = Some(range);
            } else {
                stores = None;
            }
        }
    }
}

/// Whether an operand of a comparison ends at this token, which stands at `at`: what binds less
/// tightly.
fn ends_operand(tokens: &[TokenTree], at: usize) -> bool {
    const WORDS: [&str; 10] =
        ["if", "while", "return", "match", "in", "break", "let", "else", "move", "loop"];
    let (this, next) = (mark(tokens.get(at)), mark(tokens.get(at + 1)));
    let before = at.checked_sub(1).map_or(' ', |at| mark(tokens.get(at)));
    let pair = |a: char| this == a && (next == a || before == a);
    matches!(this, ';' | ',' | '=' | '|')
        || pair('&')
        || pair('.')
        || (this == '>' && matches!(before, '=' | '-'))
        || WORDS.contains(&ident(tokens.get(at)).as_str())
}

/// Where the left operand of a comparison begins.
fn left_end(tokens: &[TokenTree], at: usize) -> usize {
    let mut start = at;
    while start > 0
        && !ends_operand(tokens, start - 1)
        && (!is_block(&tokens[start - 1]) || start < at && mark(tokens.get(start)) == '.')
    {
        start -= 1;
    }
    start
}

/// Where the right operand of a comparison ends, that begins at `at`.
fn right_end(tokens: &[TokenTree], at: usize) -> usize {
    let mut end = at;
    while end < tokens.len()
        && !ends_operand(tokens, end)
        && (!is_block(&tokens[end]) || ident(tokens.get(end - 1)) == "unsafe")
    {
        end += 1;
    }
    end
}

/// How many tokens an item has: up to its semicolon, or its braces.
fn item_length(tokens: &[TokenTree]) -> usize {
    let end = tokens.iter().position(|token| is_block(token) || mark(Some(token)) == ';');
    // The braces of `use a::{b, c};` are not the end of it.
    match end {
        Some(end) if mark(tokens.get(end + 1)) == ';' => end + 2,
        Some(end) => end + 1,
        None => tokens.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule and change of every mutant of a function's body.
    fn of(body: &str) -> Vec<(String, String)> {
        let source = format!("fn f() {{\n{body}\n}}\n");
        let mutants = mutants("f.rs", &source).expect("Rust");
        let row = |mutant: &Mutant| {
            let rule = mutant.key.split(": ").nth(1).expect("a rule").to_owned();
            assert!(mutant.applied(&source).parse::<TokenStream>().is_ok(), "{mutant:?}");
            (rule, mutant.change(&source))
        };
        mutants.iter().map(row).collect()
    }

    fn has(body: &str, rule: &str, change: &str) {
        let all = of(body);
        assert!(all.contains(&(rule.to_owned(), change.to_owned())), "{body}: {all:?}");
    }

    #[test]
    fn orderings_are_weakened_one_step() {
        has("x.load(Acquire)", "ordering", "Acquire -> Relaxed");
        has("x.store(1, Ordering::Release)", "ordering", "Release -> Relaxed");
        has("x.swap(1, AcqRel)", "ordering", "AcqRel -> Acquire");
        has("x.swap(1, AcqRel)", "ordering", "AcqRel -> Release");
        has("x.load(SeqCst)", "ordering", "SeqCst -> Acquire");
        has("x.store(1, SeqCst)", "ordering", "SeqCst -> Release");
        let exchange = of("x.compare_exchange(1, 2, SeqCst, SeqCst)");
        let changes: Vec<&str> = exchange.iter().map(|(_, change)| change.as_str()).collect();
        assert_eq!(changes, ["1, 2 -> 2, 1", "SeqCst -> AcqRel", "SeqCst -> Acquire"]);
        assert!(of("x.load(Relaxed)").is_empty());
    }

    #[test]
    fn statements_fences_and_stores_are_changed() {
        has("a.go(1);", "left out", "a.go(1); -> nothing");
        has("M::full();", "fence left out", "M::full(); -> nothing");
        has("self.policy.owner();", "fence left out", "self.policy.owner(); -> nothing");
        let two = "a.store(1, Relaxed);\nb.store(2, Relaxed);";
        let swapped = "b.store(2, Relaxed); a.store(1, Relaxed);";
        has(two, "stores swapped", &format!("{} -> {swapped}", two.replace('\n', " ")));
        assert!(of("a.store(1, Relaxed);\nlet x = 2;\nb.store(2, Relaxed);").len() == 2);
        assert!(of("let x = 1; return x;").is_empty());
        assert!(of("let Self { x } = *self;").is_empty());
        assert!(of("debug_assert!(a < b); assert_eq!(a + 1, b);").is_empty());
    }

    #[test]
    fn conditions_are_negated_and_off_by_one() {
        has("if a.b() { c }", "negated", "a.b() -> !(a.b())");
        has("while a { c }", "negated", "a -> !(a)");
        has("if unsafe { a } { c }", "negated", "unsafe { a } -> !(unsafe { a })");
        has("if a < b { c }", "comparison", "< -> <=");
        has("let x = a == b;", "comparison", "== -> !=");
        has("let x = a >= b;", "comparison", ">= -> >");
        has("let x = a + 1;", "off by one", "1 -> 0");
        let all = of("if let Some(x) = a { c }");
        assert!(all.iter().all(|(rule, _)| rule == "never"), "{all:?}");
        assert!(of("let x: Vec<u8> = Vec::<u8>::new();").is_empty());
        assert!(of("match a { _ => b }").is_empty());
    }

    #[test]
    fn tests_attributes_and_imports_are_left_alone() {
        let source = "use a::{Acquire, b};\n#[cfg(test)]\nmod t { fn f() { a.load(Acquire); } }\n\
                      #[cfg(test)]\nuse c::{d};\nfn g() { if a { b } }\n";
        let all = mutants("f.rs", source).expect("Rust");
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[1].key, "f.rs: negated: fn g() { if a { b } }");
        let source = "#[cfg(all(test, unix))]\nmod t { fn f() { a.b(); } }\nfn g() { d.e(); }\n";
        assert_eq!(mutants("f.rs", source).expect("Rust").len(), 1);
        let source = "macro_rules! m { (a) => { b.c(); }; }\nfn g() { d.e(); }\n";
        let all = mutants("f.rs", source).expect("Rust");
        assert_eq!(all.len(), 1, "{all:?}");
    }

    #[test]
    fn a_key_does_not_change_with_what_stands_elsewhere() {
        let line = "    a.load(Acquire) + b.load(Acquire)\n";
        let one = mutants("f.rs", &format!("fn f() {{\n{line}}}\n")).expect("Rust");
        let two = mutants("f.rs", &format!("fn e() {{ x.y(); }}\n\nfn f() {{\n{line}}}\n"));
        let keys = |all: &[Mutant]| all.iter().map(|mutant| mutant.key.clone()).collect::<Vec<_>>();
        assert_eq!(one.len(), 2);
        assert_ne!(one[0].key, one[1].key);
        assert_eq!(keys(&one), keys(&two.expect("Rust")[1..]));
    }
}
