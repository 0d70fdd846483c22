//! A search of a whole tree.

use crate::choice::{PatternError, Patterns};
use crate::{Control, Kind, Node, NodeId, Scan};

/// What is searched for.
enum Wanted {
    /// In lower case.
    Text(String),
    Glob(Box<Patterns>),
}

impl Wanted {
    fn of(text: &str) -> Result<Wanted, PatternError> {
        if text.contains(['*', '?', '[']) {
            return Ok(Wanted::Glob(Box::new(Patterns::new(&[text.to_owned()], &[])?)));
        }
        Ok(Wanted::Text(text.to_lowercase()))
    }

    fn wants_paths(&self) -> bool {
        matches!(self, Wanted::Glob(glob) if glob.wants_paths())
    }

    fn is(&self, name: &[u8], path: &[u8]) -> bool {
        match self {
            Wanted::Text(text) => String::from_utf8_lossy(name).to_lowercase().contains(text),
            Wanted::Glob(glob) => glob.matches(name, path, &[]),
        }
    }
}

/// The entries below the given paths whose names contain a text, in whatever case. A text with `*`,
/// `?` or `[` is a glob: the name matches it or, if it has a slash, the path below the given path.
/// The entries are in the order of their paths, name by name. Linear in the tree, but for the
/// sorting of each directory's entries. `control` can stop it; what was found until then is
/// returned.
///
/// # Errors
///
/// If a glob cannot be read.
pub fn find(scan: &Scan, text: &str, control: &Control) -> Result<Vec<NodeId>, PatternError> {
    let wanted = Wanted::of(text)?;
    let wants_paths = wanted.wants_paths();
    // For each waiting entry: whether it matches, and where the path of its directory ends (nothing
    // for a given path). The last of them is looked at next.
    let roots = scan.tree.roots().map(|root| (root, false, None));
    let mut waiting: Vec<(Node<'_>, bool, Option<usize>)> = roots.collect();
    waiting.reverse();
    let (mut found, mut path) = (Vec::new(), Vec::new());
    let extend = |path: &mut Vec<u8>, above, name: &[u8]| {
        path.truncate(above);
        if wants_paths {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
    };
    while let Some((node, is_it, above)) = waiting.pop().filter(|_| !control.is_stopped()) {
        if is_it {
            found.push(node.id());
        }
        if node.kind() != Kind::Directory {
            continue;
        }
        match above {
            Some(above) => extend(&mut path, above, node.name()),
            None => path.clear(),
        }
        let (end, first) = (path.len(), waiting.len());
        for below in node.files().chain(node.directories()) {
            extend(&mut path, end, below.name());
            let is_it = wanted.is(below.name(), &path);
            if is_it || below.kind() == Kind::Directory {
                waiting.push((below, is_it, Some(end)));
            }
        }
        waiting[first..].sort_unstable_by(|(a, ..), (b, ..)| b.name().cmp(a.name()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Options;

    #[test]
    fn a_text_is_of_the_name_and_a_glob_with_a_slash_of_the_path() {
        let tree = tempfile::tempdir().expect("a directory for the test");
        for name in ["src/deep", "src/b.rs.d", "x"] {
            fs::create_dir_all(tree.path().join(name)).expect("directories");
        }
        for name in ["src/A.rs", "src/deep/a.rs", "x/a.RS", "x/[y]"] {
            fs::write(tree.path().join(name), "").expect("a file");
        }
        let options = Options { keep_files: true, ..Options::default() };
        let scan = crate::scan(&[tree.path().to_owned()], &options, &Control::new());
        let scan = scan.expect("a scan");
        let above = tree.path().as_os_str().len() + 1;
        let found = |text: &str, control: &Control| {
            let found = find(&scan, text, control).expect("a pattern");
            let path = |&id| scan.tree.node(id).expect("it is there").path()[above..].to_vec();
            let paths: Vec<_> = found.iter().map(path).collect();
            let names = |path: &Vec<u8>| -> Vec<Vec<u8>> {
                path.split(|byte| matches!(byte, b'/' | b'\\')).map(<[u8]>::to_vec).collect()
            };
            assert!(paths.is_sorted_by_key(names), "{paths:?}");
            paths.into_iter().map(|path| String::from_utf8(path).expect("text")).collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("a.rs", &["src/A.rs", "src/deep/a.rs", "x/a.RS"][..]),
            ("*.rs", &["src/A.rs", "src/deep/a.rs"]),
            ("src/*.rs", &["src/A.rs"]),
            ("*/deep/*", &["src/deep/a.rs"]),
            ("[[]y]", &["x/[y]"]),
            ("b.rs.", &["src/b.rs.d"]),
            ("nothing", &[]),
        ] {
            let text = text.replace('/', std::path::MAIN_SEPARATOR_STR);
            let found = found(&text, &Control::new());
            let found: Vec<_> = found.iter().map(|it| it.replace('\\', "/")).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(found("", &Control::new()).len(), 8);
        assert!(find(&scan, "[", &Control::new()).is_err());
        let stopped = Control::new();
        stopped.stop();
        assert!(found("", &stopped).is_empty());
    }
}
