//! Changes of meaning: an operand, a guard, a flag, an argument or a fallback that the program does
//! without.
//!
//! The other rules change an operator, an ordering or a statement. These rules make what a careless
//! edit makes: the code still reads well, and one case of its promise is gone.

use std::collections::HashMap;
use std::ops::Range;

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

use super::{Finder, ident, is_block, mark, range};
use crate::mutate::{IS, Wrap};

/// Methods whose result has the type of the receiver, or may have it: a call can be left out.
const SAME_TYPE: [&str; 16] = [
    "or",
    "or_else",
    "filter",
    "min",
    "max",
    "clamp",
    "rev",
    "skip",
    "take",
    "saturating_add",
    "saturating_sub",
    "trim",
    "checked_add",
    "xor",
    "take_while",
    "skip_while",
];

/// Words that may stand before a bracket and are no function.
const NO_CALL: [&str; 12] =
    ["if", "while", "match", "return", "in", "let", "for", "fn", "else", "move", "break", "as"];

impl Finder<'_> {
    /// An operand of `&&` is true, one of `||` is false.
    pub(super) fn operands(&mut self, tokens: &[TokenTree], at: usize) {
        let joint =
            matches!(&tokens[at], TokenTree::Punct(mark) if mark.spacing() == Spacing::Joint);
        let sign = mark(tokens.get(at));
        let is_pair = joint && matches!(sign, '&' | '|') && mark(tokens.get(at + 1)) == sign;
        // Without a left operand these are a closure without parameters and a reference to a
        // reference.
        if !is_pair || at == 0 || ends_operand(tokens, at - 1) {
            return;
        }
        let (rule, value, open) = match sign {
            '&' => ("operand of && left out", "true", format!("({IS} || (")),
            _ => ("operand of || left out", "false", format!("(!{IS} && (")),
        };
        let mut left = at;
        while left > 0 && !ends_operand(tokens, left - 1) {
            left -= 1;
        }
        let first = at + 2;
        let mut right = first;
        while right < tokens.len()
            && !ends_operand(tokens, right)
            && (!is_block(&tokens[right]) || ident(tokens.get(right - 1)) == "unsafe")
        {
            right += 1;
        }
        for operand in [left..at, first..right] {
            let part = &tokens[operand.clone()];
            if part.is_empty() || is_let(tokens, operand.start) {
                continue;
            }
            let range = range(part);
            // The right operand of one sign may be the left operand of the next.
            if self.found.iter().any(|it| it.rule == rule && it.range == range) {
                continue;
            }
            let wraps = vec![Wrap::new(range.clone(), open.clone(), "))")];
            self.add(rule, range, value, wraps);
        }
    }

    /// A branch that is never taken; where another branch follows, also a branch that is always
    /// taken. `condition` stands between `if` and its block, which stands at `block`.
    pub(super) fn branch(&mut self, tokens: &[TokenTree], condition: &[TokenTree], block: usize) {
        let has_let = condition.iter().any(|token| ident(Some(token)) == "let");
        let range = range(condition);
        let text = &self.source[range.clone()];
        if has_let {
            let end = range.end..range.end;
            let wraps = vec![Wrap::new(end.clone(), format!(" && !{IS}"), "")];
            self.add("never", end, " && false", wraps);
            return;
        }
        let never = vec![Wrap::new(range.clone(), format!("(!{IS} && ("), "))")];
        self.add("never", range.clone(), format!("false && ({text})"), never);
        if ident(tokens.get(block + 1)) == "else" {
            let always = vec![Wrap::new(range.clone(), format!("({IS} || ("), "))")];
            self.add("always", range.clone(), format!("true || ({text})"), always);
        }
    }

    /// `true` for `false` and the other way round; of two flags that are joined by `|`, one is left
    /// out.
    pub(super) fn flag(&mut self, tokens: &[TokenTree], at: usize) {
        let word = ident(tokens.get(at));
        if matches!(word.as_str(), "true" | "false") {
            let (before, next) =
                (mark(at.checked_sub(1).and_then(|at| tokens.get(at))), mark(tokens.get(at + 1)));
            let pattern = next == '=' || next == '|' || before == '|';
            if !pattern {
                let range = range(&tokens[at..=at]);
                let other = if word == "true" { "false" } else { "true" };
                let wraps = vec![Wrap::new(range.clone(), format!("({IS} != "), ")")];
                self.add("flag", range, other, wraps);
            }
        }
        let alone = |at: usize| {
            mark(tokens.get(at)) == '|'
                && mark(tokens.get(at + 1)) != '|'
                && mark(tokens.get(at + 1)) != '='
                && (at == 0 || mark(tokens.get(at - 1)) != '|')
        };
        if !alone(at) {
            return;
        }
        let (left, right) = (path_before(tokens, at), path_after(tokens, at + 1));
        let (Some(left), Some(right)) = (left, right) else { return };
        let (left, right) = (range(&tokens[left]), range(&tokens[right]));
        let texts = [&self.source[left.clone()], &self.source[right.clone()]];
        for (place, (own, other)) in [(left, texts[1]), (right, texts[0])].into_iter().enumerate() {
            // A flag between two others is seen from both sides.
            if place == 0
                && self.found.iter().any(|it| it.rule == "flag left out" && it.range == own)
            {
                continue;
            }
            let wraps = Self::either(own.clone(), other);
            self.add("flag left out", own, other, wraps);
        }
    }

    /// Two neighbouring arguments of a call in the other order.
    pub(super) fn arguments(&mut self, tokens: &[TokenTree], at: usize) {
        let TokenTree::Group(group) = &tokens[at] else { return };
        let called = if at > 0 { ident(tokens.get(at - 1)) } else { String::new() };
        let is_call = group.delimiter() == Delimiter::Parenthesis
            && called.starts_with(|first: char| first.is_lowercase())
            && !NO_CALL.contains(&called.as_str())
            && (at < 2 || ident(tokens.get(at - 2)) != "fn");
        if !is_call {
            return;
        }
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        let arguments: Vec<Range<usize>> =
            split(&inner, ',').into_iter().map(|part| range(&inner[part.clone()])).collect();
        for pair in arguments.windows(2) {
            let (first, second) = (pair[0].clone(), pair[1].clone());
            let (a, b) = (&self.source[first.clone()], &self.source[second.clone()]);
            // Orderings have a rule of their own.
            let is_ordering = |text: &str| {
                ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"]
                    .iter()
                    .any(|it| text.ends_with(it))
            };
            if a == b || !is_simple(a) || !is_simple(b) || is_ordering(a) || is_ordering(b) {
                continue;
            }
            let between = &self.source[first.end..second.start];
            let text = format!("{b}{between}{a}");
            let mut wraps = Self::either(first.clone(), b);
            wraps.extend(Self::either(second.clone(), a));
            self.add("arguments swapped", first.start..second.end, text, wraps);
        }
    }

    /// A parameter of a function where another parameter of the same type would do. `at` is the
    /// word `fn`.
    pub(super) fn parameters(&mut self, tokens: &[TokenTree], at: usize) {
        let is_parameters = |token: &TokenTree| matches!(token, TokenTree::Group(it) if it.delimiter() == Delimiter::Parenthesis);
        let rest = &tokens[at..];
        let Some(parameters) = rest.iter().position(is_parameters) else { return };
        let Some(length) = rest.iter().position(|it| is_block(it) || mark(Some(it)) == ';') else {
            return;
        };
        let (TokenTree::Group(parameters), TokenTree::Group(body)) =
            (&rest[parameters], &rest[length])
        else {
            return;
        };
        let inner: Vec<TokenTree> = parameters.stream().into_iter().collect();
        let mut of_type: HashMap<String, Vec<String>> = HashMap::new();
        for part in split(&inner, ',') {
            let part = &inner[part];
            if mark(part.get(1)) == ':' && mark(part.get(2)) != ':' {
                let kind = self.source[range(&part[2..])].to_owned();
                of_type.entry(kind).or_default().push(ident(part.first()));
            }
        }
        let mut others = HashMap::new();
        for names in of_type.values().filter(|names| names.len() > 1) {
            for (place, name) in names.iter().enumerate() {
                others.insert(name.clone(), names[(place + 1) % names.len()].clone());
            }
        }
        if !others.is_empty() {
            self.replace(body, &others);
        }
    }

    fn replace(&mut self, body: &Group, others: &HashMap<String, String>) {
        let tokens: Vec<TokenTree> = body.stream().into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.replace(group, others),
                TokenTree::Ident(name) => {
                    let before = mark(at.checked_sub(1).and_then(|at| tokens.get(at)));
                    let next = mark(tokens.get(at + 1));
                    // A field, a label of a field, a path, a macro, or what is assigned to.
                    let assigned = next == '=' && mark(tokens.get(at + 2)) != '=';
                    if before == '.' || matches!(next, ':' | '!') || assigned {
                        continue;
                    }
                    if let Some(other) = others.get(&name.to_string()) {
                        let own = range(&tokens[at..=at]);
                        let wraps = Self::either(own.clone(), other);
                        self.add("other argument", own, other.as_str(), wraps);
                    }
                }
                _ => {}
            }
        }
    }

    /// A call left out of a chain of calls: a fallback, a bound, a condition. `at` is the dot
    /// before it.
    pub(super) fn chained(&mut self, tokens: &[TokenTree], at: usize) {
        let is_call = mark(tokens.get(at)) == '.'
            && SAME_TYPE.contains(&ident(tokens.get(at + 1)).as_str())
            && matches!(tokens.get(at + 2), Some(TokenTree::Group(it)) if it.delimiter() == Delimiter::Parenthesis);
        let Some(start) = is_call.then(|| receiver(tokens, at)).flatten() else { return };
        let (own, call) = (range(&tokens[start..at]), range(&tokens[at..at + 3]));
        let whole = own.start..call.end;
        let wraps = Self::either(whole, &self.source[own]);
        self.add("call left out", call, "", wraps);
    }

    /// A field of a value that is made, left to its type's default. `at` is the group of the
    /// fields.
    pub(super) fn fields(&mut self, tokens: &[TokenTree], at: usize) {
        let TokenTree::Group(group) = &tokens[at] else { return };
        let name = if at > 0 { ident(tokens.get(at - 1)) } else { String::new() };
        let item = ["struct", "enum", "union", "impl", "trait", "for", "mod"];
        let is_item = tokens[..at]
            .iter()
            .rev()
            .take_while(|it| !is_block(it) && mark(Some(it)) != ';')
            .any(|it| item.contains(&ident(Some(it)).as_str()) || mark(Some(it)) == '>');
        let is_value = group.delimiter() == Delimiter::Brace
            && name.starts_with(char::is_uppercase)
            && !is_item
            && mark(tokens.get(at + 1)) != '=';
        if !is_value {
            return;
        }
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        for part in split(&inner, ',') {
            let part = &inner[part];
            let has_value = part.len() > 3 && mark(part.get(1)) == ':' && mark(part.get(2)) != ':';
            // Where there is no call and no access it may be a pattern.
            let computed = part.iter().skip(2).any(|it| {
                mark(Some(it)) == '.' || matches!(it, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
            });
            if has_value && computed {
                let own = range(&part[2..]);
                let other = "::core::default::Default::default()";
                let wraps = Self::either(own.clone(), other);
                self.add("field left out", own, other, wraps);
            }
        }
    }

    /// A field left out of a comparison of two tuples. `at` is the first token of the sign,
    /// `length` how many it has.
    pub(super) fn tuples(&mut self, tokens: &[TokenTree], at: usize, length: usize) {
        let tuple = |token: Option<&TokenTree>| match token {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let parts: Vec<String> = split(&inner, ',')
                    .into_iter()
                    .map(|part| self.source[range(&inner[part])].to_owned())
                    .collect();
                (parts.len() > 1).then_some(parts)
            }
            _ => None,
        };
        let Some(before) = at.checked_sub(1) else { return };
        let (Some(left), Some(right)) = (tuple(tokens.get(before)), tuple(tokens.get(at + length)))
        else {
            return;
        };
        // A call's arguments are no tuple.
        if left.len() != right.len() || before > 0 && !ident(tokens.get(before - 1)).is_empty() {
            return;
        }
        let whole = range(&tokens[before..=at + length]);
        let sign = self.source[range(&tokens[at..at + length])].to_owned();
        for place in 0..left.len() {
            let without = |parts: &[String]| {
                let kept = parts.iter().enumerate().filter(|(at, _)| *at != place);
                kept.map(|(_, part)| format!("{part},")).collect::<Vec<_>>().join(" ")
            };
            let text = format!("({}) {sign} ({})", without(&left), without(&right));
            let wraps = Self::either(whole.clone(), &text);
            self.add("field not compared", whole.clone(), text, wraps);
        }
    }
}

/// Whether an operand of `&&` or `||` ends at the token at `at`.
fn ends_operand(tokens: &[TokenTree], at: usize) -> bool {
    const WORDS: [&str; 10] =
        ["if", "while", "return", "match", "in", "break", "else", "move", "loop", "let"];
    let this = mark(tokens.get(at));
    let next = mark(tokens.get(at + 1));
    let before = at.checked_sub(1).map_or(' ', |at| mark(tokens.get(at)));
    let compares = |first: char| matches!(first, '=' | '!' | '<' | '>');
    let assigns = this == '=' && next != '=' && !compares(before);
    let arrow = this == '>' && matches!(before, '=' | '-');
    // The colon of a field, and no part of a path.
    let label = this == ':' && next != ':' && before != ':';
    matches!(this, ';' | ',' | '|' | '#')
        || assigns
        || arrow
        || label
        || (this == '&' && (next == '&' || before == '&'))
        || (this == '.' && (next == '.' || before == '.'))
        || WORDS.contains(&ident(tokens.get(at)).as_str())
        || (at > 0
            && is_block(&tokens[at])
            && !matches!(mark(tokens.get(at + 1)), '.' | '?')
            && ident(tokens.get(at - 1)) != "unsafe")
}

/// Whether the operand that begins at `start` belongs to a `let` of a condition: its pattern, or
/// the value that is matched.
fn is_let(tokens: &[TokenTree], start: usize) -> bool {
    let is_let = |at: usize| ident(tokens.get(at)) == "let";
    if is_let(start) || start > 0 && is_let(start - 1) {
        return true;
    }
    if start == 0 || mark(tokens.get(start - 1)) != '=' {
        return false;
    }
    let Some(word) = (0..start).rev().find(|at| is_let(*at) || is_block(&tokens[*at])) else {
        return false;
    };
    let before = word.checked_sub(1).and_then(|at| tokens.get(at));
    is_let(word) && (matches!(ident(before).as_str(), "if" | "while") || mark(before) == '&')
}

/// The parts between separators.
fn split(tokens: &[TokenTree], separator: char) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut angles = 0_usize;
    for at in 0..=tokens.len() {
        let this = mark(tokens.get(at));
        let arrow = at > 0 && this == '>' && matches!(mark(tokens.get(at - 1)), '-' | '=');
        match this {
            // Brackets of types: `::<A, B>`, `Map<K, V>`.
            '<' if at > 0
                && (mark(tokens.get(at - 1)) == ':'
                    || ident(tokens.get(at - 1)).starts_with(char::is_uppercase)) =>
            {
                angles += 1;
            }
            '>' if !arrow => angles = angles.saturating_sub(1),
            _ => {}
        }
        if at == tokens.len() || (this == separator && angles == 0) {
            if start < at {
                parts.push(start..at);
            }
            start = at + 1;
        }
    }
    parts
}

/// Whether a text is a name, a path, a field or a literal, perhaps behind `&`, `*` or `-`.
fn is_simple(text: &str) -> bool {
    text.parse::<TokenStream>().is_ok_and(|stream| {
        stream.into_iter().all(|token| match token {
            TokenTree::Group(_) => false,
            TokenTree::Punct(mark) => matches!(mark.as_char(), '.' | ':' | '&' | '*' | '-'),
            _ => true,
        })
    })
}

fn is_flag(token: Option<&TokenTree>) -> bool {
    let name = ident(token);
    name.len() > 1
        && name.chars().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_')
}

/// The path to a constant that ends before `at`.
fn path_before(tokens: &[TokenTree], at: usize) -> Option<Range<usize>> {
    let last = at.checked_sub(1).filter(|last| is_flag(tokens.get(*last)))?;
    let mut first = last;
    while first >= 3 && mark(tokens.get(first - 1)) == ':' && mark(tokens.get(first - 2)) == ':' {
        first -= 3;
    }
    Some(first..at)
}

/// The path to a constant that begins at `first`.
fn path_after(tokens: &[TokenTree], first: usize) -> Option<Range<usize>> {
    let mut last = first;
    while mark(tokens.get(last + 1)) == ':' && mark(tokens.get(last + 2)) == ':' {
        last += 3;
    }
    is_flag(tokens.get(last)).then_some(first..last + 1)
}

/// The beginning of the receiver of the method whose dot stands at `at`: names, calls, indices and
/// `?` in a chain.
fn receiver(tokens: &[TokenTree], at: usize) -> Option<usize> {
    let mut start = at;
    loop {
        let part = start.checked_sub(1)?;
        start = match &tokens[part] {
            TokenTree::Punct(mark) if mark.as_char() == '?' => {
                start = part;
                continue;
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return None,
            TokenTree::Group(_) => match part.checked_sub(1).map(|at| &tokens[at]) {
                // What is called or indexed.
                Some(TokenTree::Ident(name)) if !NO_CALL.contains(&name.to_string().as_str()) => {
                    part - 1
                }
                Some(TokenTree::Group(group)) if group.delimiter() != Delimiter::Brace => {
                    start = part;
                    continue;
                }
                Some(TokenTree::Punct(mark)) if matches!(mark.as_char(), '>' | '!') => return None,
                _ => part,
            },
            TokenTree::Ident(name) if NO_CALL.contains(&name.to_string().as_str()) => return None,
            TokenTree::Ident(_) | TokenTree::Literal(_) => part,
            TokenTree::Punct(_) => return None,
        };
        let before = start.checked_sub(1).map_or(' ', |at| mark(tokens.get(at)));
        let second = start.checked_sub(2).map_or(' ', |at| mark(tokens.get(at)));
        match before {
            '.' if second != '.' => start -= 1,
            ':' if second == ':' => start -= 2,
            _ => return Some(start),
        }
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    use crate::mutate::{Mutant, mutants};

    /// What the changes by a rule make of a function's body.
    fn of(rule: &str, body: &str) -> Vec<String> {
        let source = format!("fn f() {{\n{body}\n}}\n");
        let all = mutants("f.rs", &source).expect("Rust");
        let is = |mutant: &&Mutant| mutant.key.starts_with(&format!("f.rs: {rule}: "));
        let made = all.iter().filter(is).map(|mutant| {
            let text = mutant.applied(&source);
            assert!(text.parse::<TokenStream>().is_ok(), "{text}");
            let lines = text.lines().skip(1);
            let line = lines.map(str::trim).collect::<Vec<_>>().join(" ");
            line.strip_suffix(" }").expect("the function's end").to_owned()
        });
        made.collect()
    }

    #[test]
    fn an_operand_is_left_out() {
        assert_eq!(
            of("operand of && left out", "x = a.b && c != d;"),
            ["x = true && c != d;", "x = a.b && true;"]
        );
        assert_eq!(
            of("operand of || left out", "if a || b(c) { d }"),
            ["if false || b(c) { d }", "if a || false { d }"]
        );
        let three = of("operand of && left out", "a && b && c");
        assert_eq!(three, ["true && b && c", "a && true && c", "a && b && true"]);
        assert_eq!(
            of("operand of && left out", "if let Some(x) = a && b { c }"),
            ["if let Some(x) = a && true { c }"]
        );
        assert_eq!(
            of("operand of && left out", "if a && let Some(x) = b { c }"),
            ["if true && let Some(x) = b { c }"]
        );
        for other in ["f(|| a)", "let x = || b;", "g(&&a)", "let f = move || c;", "a.map(|x| &&x)"]
        {
            assert!(of("operand of || left out", other).is_empty(), "{other}");
            assert!(of("operand of && left out", other).is_empty(), "{other}");
        }
        assert_eq!(of("operand of && left out", "let x = a >= b && c;")[0], "let x = true && c;");
        assert_eq!(
            of("operand of || left out", "S { a: b::C || d }"),
            ["S { a: false || d }", "S { a: b::C || false }"]
        );
        assert_eq!(
            of("operand of || left out", "a.any(|x| x || y)"),
            ["a.any(|x| false || y)", "a.any(|x| x || false)"]
        );
    }

    #[test]
    fn a_branch_is_never_taken_or_always() {
        assert_eq!(
            of("never", "if a.b() { return c; } d"),
            ["if false && (a.b()) { return c; } d"]
        );
        assert_eq!(
            of("never", "if let Some(x) = a { return x; } d"),
            ["if let Some(x) = a && false { return x; } d"]
        );
        assert_eq!(of("always", "if a { b } else { c }"), ["if true || (a) { b } else { c }"]);
        assert!(of("always", "if a { b }").is_empty());
        assert!(of("never", "while a { b }").is_empty());
    }

    #[test]
    fn a_flag_is_another() {
        assert_eq!(of("flag", "f(true)"), ["f(false)"]);
        assert!(of("flag", "match a { true => b, _ => c }").is_empty());
        let flags = of("flag left out", "open(O::READ | O::WRITE | O::NEW)");
        assert_eq!(flags.len(), 3, "{flags:?}");
        assert_eq!(flags[0], "open(O::WRITE | O::WRITE | O::NEW)");
        assert!(of("flag left out", "f(|A| b)").is_empty());
    }

    #[test]
    fn arguments_change_places() {
        assert_eq!(of("arguments swapped", "f(a, &b.c, 3)"), ["f(&b.c, a, 3)", "f(a, 3, &b.c)"]);
        assert!(of("arguments swapped", "a.store(b, Relaxed)").is_empty());
        assert!(of("arguments swapped", "Some(a); m!(a, b); if (a, b) == c { }").is_empty());
        let source = "fn g(from: &Pool, to: &Pool, n: usize) { to.send(from.next(n)); }";
        let all = mutants("f.rs", source).expect("Rust");
        let made: Vec<_> = all.iter().filter(|it| it.key.contains("other argument")).collect();
        assert_eq!(made.len(), 2);
        assert!(made[0].applied(source).ends_with("{ from.send(from.next(n)); }"));
    }

    #[test]
    fn a_call_and_a_field_are_left_out() {
        assert_eq!(of("call left out", "self.own().or_else(|| self.next(a))"), ["self.own()"]);
        assert_eq!(of("call left out", "let x = a + b.c[d].min(e);"), ["let x = a + b.c[d];"]);
        assert!(of("call left out", "if a { b }.min(c)").is_empty());
        let made = of("field left out", "let key = Key { device, time: stat.time(), size: 3 };");
        assert_eq!(
            made,
            ["let key = Key { device, time: ::core::default::Default::default(), size: 3 };"]
        );
        assert!(of("field left out", "let Key { a: b.c() } = d;").is_empty());
        assert_eq!(
            of("field not compared", "x = (a, b) == (c, d);"),
            ["x = (b,) == (d,);", "x = (a,) == (c,);"]
        );
        assert!(of("field not compared", "x = f(a, b) == (c, d);").is_empty());
        assert_eq!(of("left out", "let _ = self.tell(a);"), [""]);
    }
}
