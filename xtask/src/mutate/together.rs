//! One program that holds all mutants of a crate, and behaves as the mutant with the number in
//! `POACH_MUTANT`.
//!
//! To compile is most of what a mutant costs that is compiled by itself. Here each change stands
//! beside what it changes, as a choice: `x.load(if mutant(7) { Relaxed } else { Acquire })`. What a
//! choice cannot say (in a `const`, or a type that differs) is not tried.

use std::ops::Range;

use super::{IS, Mutant};

/// A file with all its mutants in it.
pub(crate) struct Woven {
    pub(crate) text: String,
    /// For each mutant in it: its number, and where in the text its choices stand.
    pub(crate) places: Vec<(usize, Range<usize>)>,
}

impl Woven {
    /// The mutant with the smallest choice around these bytes of the text.
    pub(crate) fn at(&self, bytes: &Range<usize>) -> Option<usize> {
        let around = self
            .places
            .iter()
            .filter(|(_, place)| place.start <= bytes.start && bytes.end <= place.end);
        around.min_by_key(|(_, place)| place.len()).map(|(number, _)| *number)
    }

    /// The mutants with choices on the lines of these bytes, or around them.
    pub(crate) fn near(&self, bytes: &Range<usize>) -> Vec<usize> {
        let start = self.text[..bytes.start].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[bytes.end..].find('\n').map_or(self.text.len(), |at| bytes.end + at);
        let touches = |place: &Range<usize>| place.start < end && start < place.end;
        self.places.iter().filter(|(_, place)| touches(place)).map(|(number, _)| *number).collect()
    }
}

/// Puts the choices of numbered mutants into the text of their file.
pub(crate) fn weave(source: &str, mutants: &[(usize, &Mutant)]) -> Woven {
    let mut all: Vec<(usize, &super::Wrap)> = mutants
        .iter()
        .flat_map(|(number, mutant)| mutant.wraps.iter().map(move |wrap| (*number, wrap)))
        .collect();
    // What is around comes first; of two around the same, the one with the lower number.
    all.sort_by_key(|(number, wrap)| {
        (wrap.range.start, usize::MAX - wrap.range.end, !wrap.close.is_empty(), *number)
    });
    let (mut text, mut from) = (String::new(), 0);
    let mut places = Vec::new();
    // What is open: where its choice began in the text, its end in the source, its number, what
    // closes it.
    let mut open: Vec<(usize, usize, usize, &str)> = Vec::new();
    let close = |open: &mut Vec<(usize, usize, usize, &str)>,
                 up_to: usize,
                 text: &mut String,
                 from: &mut usize,
                 places: &mut Vec<(usize, Range<usize>)>| {
        while let Some(&(began, end, number, with)) = open.last()
            && end <= up_to
        {
            text.push_str(&source[*from..end]);
            *from = end;
            text.push_str(with);
            places.push((number, began..text.len()));
            open.pop();
        }
    };
    for (number, wrap) in all {
        let Range { start, end } = wrap.range;
        close(&mut open, start, &mut text, &mut from, &mut places);
        text.push_str(&source[from..start]);
        from = start;
        let began = text.len();
        let is = format!("crate::poach_mutant::is({number})");
        text.push_str(&wrap.open.replace(IS, &is));
        if wrap.close.is_empty() {
            places.push((number, began..text.len()));
        } else {
            open.push((began, end, number, wrap.close));
        }
    }
    close(&mut open, source.len(), &mut text, &mut from, &mut places);
    text.push_str(&source[from..]);
    Woven { text, places }
}

/// The module that a crate needs beside, at the end of its `lib.rs`; `count` is above every number.
///
/// With `POACH_MUTANTS_REACHED=FILE` the program is no mutant, and writes the number of each mutant
/// that it reaches into the file.
pub(crate) fn module(count: usize) -> String {
    let text = include_str!("../../tables/mutant-module.txt");
    format!("\n{}", text.replace("COUNT", &count.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::mutants;

    fn woven(body: &str) -> String {
        let source = format!("fn f() {{\n{body}\n}}\n");
        let all = mutants("f.rs", &source).unwrap();
        let numbered: Vec<(usize, &Mutant)> = all.iter().enumerate().collect();
        let woven = weave(&source, &numbered);
        assert!(woven.text.parse::<proc_macro2::TokenStream>().is_ok(), "{}", woven.text);
        let is = regexless(&woven.text);
        is.trim_start_matches("fn f() {\n").trim_end_matches("\n}\n").to_owned()
    }

    /// Numbers are of no interest.
    fn regexless(text: &str) -> String {
        let mut parts = text.split("crate::poach_mutant::is(");
        let mut short = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            short.push('m');
            short.push_str(part.split_once(')').unwrap().1);
        }
        short
    }

    #[test]
    fn each_change_stands_beside_what_it_changes() {
        assert_eq!(
            woven("let x = a.load(Ordering::Acquire);"),
            "let x = a.load((if m { Ordering::Relaxed } else { Ordering::Acquire }));"
        );
        assert_eq!(woven("go();"), "if !m { go(); }");
        assert_eq!(woven("let x = a + 1;"), "let x = a + (if m { 0 } else { 1 });");
        assert_eq!(woven("if a.b() { c }"), "if (!m && ((m != (a.b())))) { c }");
        assert_eq!(
            woven("if let Some(x) = a { c } else { d }"),
            "if let Some(x) = a && !m { c } else { d }"
        );
        assert_eq!(
            woven("f(true, a)"),
            "f((m != (if m { a } else { true })), (if m { true } else { a }))"
        );
        assert_eq!(
            woven("x.y(a.b == c[0]);"),
            "if !m { x.y((if m { a.b != c[0] } else { a.b == c[0] })); }"
        );
        assert_eq!(
            woven("while a < b + 1 { c }"),
            "while (m != ((if m { a <= b + 1 } else { a < b + (if m { 0 } else { 1 }) }))) { c }"
        );
        assert_eq!(
            woven("S { a: b.c() || d }"),
            "S { a: (if m { ::core::default::Default::default() } else { (!m && (b.c())) || (!m && (d)) }) }"
        );
        assert_eq!(
            woven("a.store(1);\nb.store(2);"),
            "if m { b.store(2); } if !m { a.store(1); }\nif !m { if !m { b.store(2); } }"
        );
    }

    #[test]
    fn an_error_is_of_the_choice_that_it_stands_in() {
        let source = "fn f() { go(); if a < b { c } }";
        let all = mutants("f.rs", source).unwrap();
        let numbered: Vec<(usize, &Mutant)> = all.iter().enumerate().collect();
        let woven = weave(source, &numbered);
        let at = woven.text.find("<=").unwrap();
        let found = woven.at(&(at..at + 2)).unwrap();
        assert_eq!(all[found].key.split(": ").nth(1), Some("comparison"));
        assert_eq!(woven.near(&(at..at + 2)).len(), all.len());
    }
}
