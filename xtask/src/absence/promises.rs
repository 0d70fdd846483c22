//! The rule `promises-are-tested`: each sentence of a crate's documentation that promises something
//! names the test that fails without it.
//!
//! The documentation is that of public items and of `impl`s, each module's comment, the README, and
//! the pages of the guide in [`GUIDE`]. A sentence promises something if one of [`WORDS`] is in it;
//! in the documentation of an item, `if` as well. A page names the tests,
//! `docs/promises/<crate>.md`. It has a heading and a table for each source file; a row has a part
//! of the sentence, and the tests or the reason why no test can check the sentence (`none: ..`). A
//! row [`ARGUMENT`] covers all sentences of the module's comment that no other row names: those of a
//! proof, whose steps the tests of its result check together.
//!
//! A finding is a sentence that no row names, a row whose part is empty or in no sentence, and a
//! test that does not exist or is ignored. So a change of a sentence leads to its test, and a
//! change of a test's name leads to the sentences that the test checks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use anyhow::{Context as _, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tokens::{Token, flatten};
use super::{Finding, rules, walk};

pub(super) const NAME: &str = "promises-are-tested";

/// The crates that are held to the rule: the directory, and the name of the page.
const CRATES: [(&str, &str); 6] = [
    ("crates/runtime", "runtime"),
    ("crates/parallel", "parallel"),
    ("crates/topology", "topology"),
    ("compat/rayon-core", "rayon-core"),
    ("crates/pool", "pool"),
    ("crates/scan", "scan"),
];

/// Pages of the guide that are held to the rule, and the page with their rows, whose headings are
/// the paths from the root.
const GUIDE: [(&str, &str); 4] = [
    ("docs/guide/pages/browser.md", "scan"),
    ("docs/guide/pages/duplicates.md", "scan"),
    ("docs/guide/pages/from-dust.md", "scan"),
    ("docs/guide/pages/large-disks.md", "scan"),
];

/// Words by which a sentence promises something.
const WORDS: [&str; 9] =
    ["only", "never", "always", "before", "at most", "at least", "exactly", "once", "until"];

/// What has one of [`WORDS`] in it and promises nothing by it.
const IDIOMS: [&str; 3] = ["at once", "as always", "as before"];

/// The row of a module's comment as a whole.
const ARGUMENT: &str = "the argument";

/// The beginning of the second cell of a row that names no test.
const NONE: &str = "none: ";

/// A sentence of the documentation.
#[derive(Debug, PartialEq)]
struct Sentence {
    line: usize,
    /// Without the marks of links, code and emphasis.
    text: String,
    /// Whether it stands in the module's comment.
    of_module: bool,
}

/// A row of a page.
struct Row {
    line: usize,
    part: String,
    held_by: String,
}

impl Row {
    fn is_about(&self, sentence: &Sentence) -> bool {
        // An empty part would be in each.
        !self.part.is_empty() && sentence.text.contains(&self.part)
    }
}

/// Adds a finding for each promise below `root` that no test holds, and for each row of a page that
/// is out of date.
pub(super) fn check(root: &Path, findings: &mut Vec<Finding>) -> Result<()> {
    for (directory, name) in CRATES {
        let home = root.join(directory);
        if !home.join("src").is_dir() {
            continue;
        }
        let page = format!("docs/promises/{name}.md");
        let text = fs::read_to_string(root.join(&page)).unwrap_or_default();
        let mut tables = rows(&text);
        for (file, sentences) in documentation(&home)? {
            let table = tables.remove(&file).unwrap_or_default();
            compare(root, &home, &file, &page, &sentences, &table, findings)?;
        }
        for (file, _) in GUIDE.into_iter().filter(|(_, page)| *page == name) {
            let table = tables.remove(file).unwrap_or_default();
            compare(root, root, file, &page, &text_of(&root.join(file))?, &table, findings)?;
        }
        for (file, table) in tables {
            let line = table.first().map_or(1, |row| row.line);
            let advice = format!("{file} is no source file of {directory}");
            findings.push(Finding { file: page.clone(), line, rule: NAME, advice });
        }
    }
    Ok(())
}

/// What is wrong with the rows for one source file.
fn compare(
    root: &Path,
    home: &Path,
    file: &str,
    page: &str,
    sentences: &[Sentence],
    table: &[Row],
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut found = |file: &str, line, advice| {
        findings.push(Finding { file: file.to_owned(), line, rule: NAME, advice });
    };
    let argued = table.iter().any(|row| row.part == ARGUMENT);
    for sentence in sentences.iter().filter(|sentence| sentence.promises()) {
        let named = table.iter().any(|row| row.is_about(sentence));
        let part_of_argument = argued && sentence.of_module;
        if !named && !part_of_argument {
            let path = crate::run::from_root(root, &home.join(file)).to_string();
            let advice = format!("{page} names no test of \"{}\"", sentence.text);
            found(&path.replace('\\', "/"), sentence.line, advice);
        }
    }
    for row in table {
        if row.part.is_empty() {
            found(page, row.line, "the row has no part of a sentence".to_owned());
        } else if row.part != ARGUMENT && !sentences.iter().any(|it| row.is_about(it)) {
            found(page, row.line, format!("no sentence of {file} has \"{}\" in it", row.part));
        }
        if let Some(reason) = row.held_by.strip_prefix(NONE) {
            if reason.trim().is_empty() {
                found(page, row.line, "no reason why no test can hold it".to_owned());
            }
            continue;
        }
        let tests: Vec<&str> = row.held_by.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            found(page, row.line, "neither a test nor a reason".to_owned());
        }
        for test in tests {
            if !exists(root, home, test)? {
                found(page, row.line, format!("there is no test {test}"));
            }
        }
    }
    Ok(())
}

/// Whether there is a test `path::name`, in a file whose path is from the crate's directory or from
/// the root.
fn exists(root: &Path, home: &Path, test: &str) -> Result<bool> {
    let Some((path, name)) = test.rsplit_once("::") else { return Ok(false) };
    let paths = [home.join(path), root.join(path)];
    let Some(path) = paths.iter().find(|path| path.is_file()) else { return Ok(false) };
    let tokens = flatten(&fs::read_to_string(path)?).with_context(|| test.to_owned())?;
    Ok(is_test(&tokens, name))
}

/// Whether a function of this name has the attribute `test`, and not `ignore`; or a macro of the
/// file is given the name.
fn is_test(tokens: &[Token], name: &str) -> bool {
    let has_macros = tokens.iter().any(|token| token.text == "macro_rules");
    tokens.iter().enumerate().any(|(at, token)| {
        if token.text != name {
            return false;
        }
        let before = tokens[..at].iter().rev();
        if at == 0 || tokens[at - 1].text != "fn" {
            return has_macros
                && before.take(3).any(|token| token.text == "!" || token.text == ",");
        }
        let attributes: Vec<&str> = before
            .map(|token| token.text.as_str())
            .take_while(|text| !["}", ";", "{"].contains(text))
            .collect();
        let has = |name| attributes.windows(3).any(|three| three == [name, "[", "#"]);
        has("test") && !has("ignore")
    })
}

impl Sentence {
    fn promises(&self) -> bool {
        let mut text = self.text.to_lowercase();
        for idiom in IDIOMS {
            text = text.replace(idiom, "");
        }
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let has = |phrase: &str| {
            let phrase: Vec<&str> = phrase.split(' ').collect();
            words.windows(phrase.len()).any(|words| words == phrase)
        };
        WORDS.into_iter().any(has) || !self.of_module && has("if")
    }
}

/// The rows of a page by the file that they are about: the text of the heading above them.
fn rows(page: &str) -> BTreeMap<String, Vec<Row>> {
    let mut all: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let mut file = String::new();
    for (at, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.trim().clone_into(&mut file);
            all.entry(file.clone()).or_default();
        } else if let Some(cells) = line.strip_prefix('|')
            && let [part, held_by, _] = cells.split('|').collect::<Vec<_>>()[..]
            && !part.starts_with("---")
            && part.trim() != "promise"
        {
            let (part, held_by) = (plain(part), held_by.trim().to_owned());
            all.entry(file.clone()).or_default().push(Row { line: at + 1, part, held_by });
        }
    }
    all
}

/// The sentences of each source file and of the README, by the path from the crate's directory.
fn documentation(home: &Path) -> Result<BTreeMap<String, Vec<Sentence>>> {
    let mut all = BTreeMap::new();
    let readme = home.join("README.md");
    if readme.is_file() {
        all.insert("README.md".to_owned(), text_of(&readme)?);
    }
    let mut for_tests = Vec::new();
    for entry in walk(&home.join("src")) {
        let path = entry.context("could not list the tree")?.into_path();
        let file = crate::run::from_root(home, &path).to_string().replace('\\', "/");
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust && !rules::is_test_file(&file) && !file.ends_with("/compile_fail.rs") {
            let source = fs::read_to_string(&path)?;
            for_tests.extend(crate::verb::mutate::test_modules(&file, &source));
            let stream =
                TokenStream::from_str(&source).map_err(|error| anyhow!("{file}: {error}"))?;
            let mut comments = Vec::new();
            collect(stream, false, &mut comments);
            all.insert(file, sentences(&comments));
        }
    }
    all.retain(|file, _| !for_tests.iter().any(|module| file.starts_with(module.as_str())));
    Ok(all)
}

/// The sentences of a text; none, if it is not there.
fn text_of(file: &Path) -> Result<Vec<Sentence>> {
    if !file.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(file)?;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
    Ok(sentences(&[Comment { lines, of_module: true }]))
}

/// Lines of documentation that stand together.
#[derive(Default)]
struct Comment {
    lines: Vec<(usize, String)>,
    of_module: bool,
}

/// Appends the comments of a module and of its public items; of all items where they are as public
/// as what they stand in.
fn collect(stream: TokenStream, shown: bool, comments: &mut Vec<Comment>) {
    let (mut of_module, mut of_item) =
        (Comment { of_module: true, ..Comment::default() }, Comment::default());
    let mut tokens = stream.into_iter().peekable();
    // Whether a public enum or trait has begun, whose body follows.
    let (mut public, mut shows) = (false, false);
    while let Some(token) = tokens.next() {
        let inner = tokens.peek().is_some_and(|next| is_mark(next, '!'));
        if is_mark(&token, '#') {
            tokens.next_if(|_| inner);
            if let Some(TokenTree::Group(group)) =
                tokens.next_if(|next| matches!(next, TokenTree::Group(_)))
            {
                let comment = if inner { &mut of_module } else { &mut of_item };
                comment.lines.extend(documented(&group.stream()));
            }
            continue;
        }
        let visible = tokens.peek().is_none_or(
            |next| !matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis),
        );
        match &token {
            TokenTree::Ident(word) if word == "pub" => public = visible,
            TokenTree::Ident(word) if word == "enum" || word == "trait" => shows = public,
            TokenTree::Punct(mark) if mark.as_char() == ';' || mark.as_char() == ',' => {
                (public, shows) = (false, false);
            }
            _ => {}
        }
        // The first token behind the comment and the attributes says whether the item is public.
        let comment = std::mem::take(&mut of_item);
        let implements = matches!(&token, TokenTree::Ident(word) if word == "impl");
        if public || shown || implements {
            comments.push(comment);
        }
        if let TokenTree::Group(group) = token {
            collect(group.stream(), shows && group.delimiter() == Delimiter::Brace, comments);
            if group.delimiter() == Delimiter::Brace {
                (public, shows) = (false, false);
            }
        }
    }
    comments.push(of_module);
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// The line of documentation that an attribute is, if it is one.
fn documented(attribute: &TokenStream) -> Option<(usize, String)> {
    let tokens: Vec<TokenTree> = attribute.clone().into_iter().collect();
    let [TokenTree::Ident(doc), TokenTree::Punct(_), TokenTree::Literal(text)] = &tokens[..] else {
        return None;
    };
    let line = text.span().start().line;
    let text = text.to_string();
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    (doc == "doc")
        .then(|| (line, text.replace("\\\"", "\"").replace("\\'", "'").replace("\\\\", "\\")))
}

/// The sentences of comments, without code, headings and the rules of tables.
fn sentences(comments: &[Comment]) -> Vec<Sentence> {
    let mut all = Vec::new();
    for comment in comments {
        let mut paragraph: Vec<(usize, String)> = Vec::new();
        let mut code = false;
        let mut end = |paragraph: &mut Vec<(usize, String)>| {
            split(&std::mem::take(paragraph), comment.of_module, &mut all);
        };
        for (line, text) in &comment.lines {
            let text = text.trim();
            let fence = text.starts_with("```");
            code ^= fence;
            if fence || code || text.is_empty() || text.starts_with('#') {
                end(&mut paragraph);
                continue;
            }
            if ["- ", "* ", "|"].iter().any(|mark| text.starts_with(mark)) || is_numbered(text) {
                end(&mut paragraph);
            }
            paragraph.push((*line, text.to_owned()));
        }
        end(&mut paragraph);
    }
    all
}

/// Whether a line begins an item of a numbered list.
fn is_numbered(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with(". ")
}

/// The sentences of a paragraph.
fn split(paragraph: &[(usize, String)], of_module: bool, all: &mut Vec<Sentence>) {
    let mut text = String::new();
    let mut begins = Vec::new();
    for (line, part) in paragraph {
        begins.push((text.len(), *line));
        text.push_str(part);
        text.push(' ');
    }
    let line_at =
        |at| begins.iter().take_while(|(begin, _)| *begin <= at).last().map_or(0, |it| it.1);
    let mut start = 0;
    for (at, end) in text.match_indices([' ']).map(|(at, _)| (at, at + 1)) {
        let closed = text[..at].trim_end_matches([')', '*', '`']).ends_with(['.', '!', '?']);
        let opens = text[end..].chars().next();
        if opens.is_none() || closed && opens.is_some_and(|c| !c.is_lowercase()) {
            let sentence = plain(&text[start..at]);
            if !sentence.is_empty() {
                all.push(Sentence { line: line_at(start), text: sentence, of_module });
            }
            start = end;
        }
    }
}

/// A text without the marks of links, code and emphasis, and with single blanks.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](").or_else(|| rest.find("][")) {
        plain.push_str(&rest[..at]);
        // The target may have brackets of its own, as `fn.join()`.
        let mut depth = 0;
        let close = rest[at + 1..].find(|c| {
            depth += i32::from(c == '(' || c == '[') - i32::from(c == ')' || c == ']');
            depth == 0
        });
        rest = close.map_or("", |close| &rest[at + 1 + close + 1..]);
    }
    plain.push_str(rest);
    let plain = plain.replace(['`', '*', '[', ']'], "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the rule finds in a tree with one source file, one file of tests and one page.
    fn found(source: &str, tests: &str, page: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("crates/pool/src/get.rs", source);
        write("crates/pool/tests/gets.rs", tests);
        write("docs/promises/pool.md", page);
        let mut findings = Vec::new();
        check(root.path(), &mut findings).unwrap();
        findings.iter().map(|it| format!("{}:{}: {}", it.file, it.line, it.advice)).collect()
    }

    const SOURCE: &str = "//! Gets. A get never waits.\n\n/// Takes a [task](crate::f()), `once`.\n/// It\n/// comes second.\npub fn get() {}\n";
    const TESTS: &str = "#[test]\n#[cfg(unix)]\nfn one_is_taken() {}\nfn helper() {}\n";
    const PAGE: &str = "# Pool\n\n## src/get.rs\n\n| promise | test |\n|---|---|\n\
        | never waits | none: no clock |\n| Takes a task, once | `tests/gets.rs::one_is_taken` |\n";

    #[test]
    fn each_promise_has_a_test_or_a_reason() {
        assert_eq!(found(SOURCE, TESTS, PAGE), [""; 0]);
    }

    #[test]
    fn a_promise_that_no_row_names_is_found() {
        let unnamed = |line, text| {
            format!(
                "crates/pool/src/get.rs:{line}: docs/promises/pool.md names no test of \"{text}\""
            )
        };
        let (module, item) = (unnamed(1, "A get never waits."), unnamed(3, "Takes a task, once."));
        assert_eq!(found(SOURCE, TESTS, ""), [item.clone(), module.clone()]);
        // A row for the module's comment as a whole does not speak for an item.
        let page = "## src/get.rs\n| the argument | `tests/gets.rs::one_is_taken` |\n";
        assert_eq!(found(SOURCE, TESTS, page), [item]);
        // A row of another file names nothing here.
        let page = PAGE.replace("src/get.rs", "src/put.rs");
        assert!(found(SOURCE, TESTS, &page).contains(&module));
    }

    #[test]
    fn a_row_that_is_out_of_date_is_found() {
        let page = PAGE.replace("never waits", "never sleeps");
        let there = found(SOURCE, TESTS, &page);
        assert_eq!(there.len(), 2);
        assert_eq!(
            there[1],
            "docs/promises/pool.md:7: no sentence of src/get.rs has \"never sleeps\" in it"
        );
        let page = PAGE.replace("never waits", "");
        let empty = found(SOURCE, TESTS, &page);
        assert_eq!(empty.len(), 2);
        assert_eq!(empty[1], "docs/promises/pool.md:7: the row has no part of a sentence");
        let page = format!("{PAGE}## src/put.rs\n| never | none: gone |\n");
        let gone = "docs/promises/pool.md:10: src/put.rs is no source file of crates/pool";
        assert_eq!(found(SOURCE, TESTS, &page), [gone]);
    }

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        for (name, answer) in [
            ("`tests/gets.rs::two_are_taken`", "there is no test tests/gets.rs::two_are_taken"),
            ("`tests/gets.rs::helper`", "there is no test tests/gets.rs::helper"),
            ("`tests/puts.rs::one_is_taken`", "there is no test tests/puts.rs::one_is_taken"),
            ("`one_is_taken`", "there is no test one_is_taken"),
            ("one_is_taken", "neither a test nor a reason"),
            ("none: ", "neither a test nor a reason"),
        ] {
            let page = PAGE.replace("`tests/gets.rs::one_is_taken`", name);
            assert_eq!(found(SOURCE, TESTS, &page), [format!("docs/promises/pool.md:8: {answer}")]);
        }
        let ignored = TESTS.replace("#[test]", "#[test]\n#[ignore = \"slow\"]");
        let none = "docs/promises/pool.md:8: there is no test tests/gets.rs::one_is_taken";
        assert_eq!(found(SOURCE, &ignored, PAGE), [none]);
        let under_miri = TESTS.replace("#[test]", "#[test]\n#[cfg_attr(miri, ignore)]");
        assert_eq!(found(SOURCE, &under_miri, PAGE), [""; 0]);
        let by_macro = "macro_rules! on { ($($name:ident),*) => {}; } on!(of_salsa, one_is_taken);";
        assert_eq!(found(SOURCE, by_macro, PAGE), [""; 0]);
    }

    #[test]
    fn what_is_public_and_what_promises() {
        let promises = |source: &str| found(source, "", "").len();
        assert_eq!(promises("/// Only so.\nfn f() {}"), 0);
        assert_eq!(promises("/// Only so.\npub(crate) fn f() {}"), 0);
        assert_eq!(promises("/// Only so.\n#[must_use]\npub fn f() {}"), 1);
        assert_eq!(promises("pub enum E {\n/// Only so.\nA }"), 1);
        assert_eq!(promises("enum E {\n/// Only so.\nA }"), 0);
        assert_eq!(promises("pub trait T {\n/// Only so.\nfn f(); }"), 1);
        assert_eq!(promises("pub struct S {\n/// Only so.\na: u8,\n/// Only so.\npub b: u8 }"), 1);
        assert_eq!(promises("pub fn f() {}\nenum E {\n/// Only so.\nA }"), 0);
        assert_eq!(promises("/// Only so.\nimpl Future for Get {}"), 1);
        assert_eq!(promises("/// Runs at once, as before.\npub fn f() {}"), 0);
        assert_eq!(promises("/// Only so. Once. Not\n/// before.\npub fn f() {}"), 3);
        assert_eq!(promises("/// If so.\npub fn f() {}"), 1);
        assert_eq!(promises("//! If so."), 0);
        assert_eq!(promises("//! ```\n//! only\n//! ```\n//! # Only\n"), 0);
        assert_eq!(promises("//! - Only this;\n//! - only that;\n"), 2);
    }
}
