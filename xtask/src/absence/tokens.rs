//! A source file as a flat row of tokens, so that a rule looks at code and never at comments or
//! strings, and sees into macros as well.

use std::str::FromStr as _;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One word, mark or bracket of a source file.
#[derive(Debug)]
pub(crate) struct Token {
    /// The text; a literal's is empty, for no rule is about literals.
    pub(crate) text: String,
    /// The line that it stands on, from 1.
    pub(crate) line: usize,
    /// Whether it stands in an item under `#[cfg(test)]`.
    pub(crate) test: bool,
}

/// The tokens of `source`, brackets included.
pub(crate) fn flatten(source: &str) -> Result<Vec<Token>> {
    let stream = TokenStream::from_str(source)
        .map_err(|error| anyhow!("line {}: not Rust: {error}", error.span().start().line))?;
    let mut tokens = Vec::new();
    append(stream, false, &mut tokens);
    Ok(tokens)
}

fn append(stream: TokenStream, in_test: bool, tokens: &mut Vec<Token>) {
    let mut after_hash = false;
    // From `#[cfg(test)]` to the end of its item, which a brace group or a semicolon makes.
    let mut test_item = false;
    for tree in stream {
        let test = in_test || test_item;
        let line = tree.span().start().line;
        let mut push = |text: String, line| tokens.push(Token { text, line, test });
        let hash = matches!(&tree, TokenTree::Punct(mark) if mark.as_char() == '#');
        match tree {
            TokenTree::Ident(word) => push(word.to_string(), line),
            TokenTree::Literal(_) => push(String::new(), line),
            TokenTree::Punct(mark) => {
                push(mark.to_string(), line);
                test_item &= mark.as_char() != ';';
            }
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                let last = group.span_close().end().line;
                push(open.to_owned(), line);
                let content = group.stream();
                let cfg_test = after_hash && is_cfg_test(&content);
                append(content, test, tokens);
                tokens.push(Token { text: close.to_owned(), line: last, test });
                if cfg_test {
                    test_item = true;
                } else if group.delimiter() == Delimiter::Brace {
                    test_item = false;
                }
            }
        }
        after_hash = hash;
    }
}

fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

/// Whether an attribute's content is a `cfg` that only tests satisfy.
fn is_cfg_test(attribute: &TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str, test: bool) -> Vec<String> {
        let tokens = flatten(source).unwrap();
        tokens.into_iter().filter(|token| token.test == test).map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        assert_eq!(words("// unsafe\n/* unsafe */ let a = \"unsafe\";", false).len(), 5);
    }

    #[test]
    fn knows_an_item_of_tests_from_the_next() {
        let source = "#[cfg(test)] #[allow(x)] mod tests { fn inner() {} } fn outer() {}";
        assert!(words(source, true).contains(&"inner".to_owned()));
        assert!(words(source, false).contains(&"outer".to_owned()));
        assert!(!words(source, true).contains(&"outer".to_owned()));
        let source = "#[cfg(test)] const N: [u8; 3] = [1; 3]; const M: u8 = 2;";
        assert!(words(source, true).contains(&"N".to_owned()));
        assert!(words(source, false).contains(&"M".to_owned()));
    }

    #[test]
    fn sees_into_macros() {
        let source = "macro_rules! m { () => { unsafe { f() } } }";
        assert!(words(source, false).contains(&"unsafe".to_owned()));
    }

    #[test]
    fn says_where_a_file_is_not_rust() {
        let error = flatten("fn f() {\n  (\n}").unwrap_err().to_string();
        assert!(error.contains("not Rust"), "{error}");
    }
}
