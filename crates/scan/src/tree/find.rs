//! Finding many entries at once.

use std::collections::HashMap;

use super::{Node, Tree};

/// A directory on the way to entries that are looked for.
struct Level<'n, 't> {
    name: &'n [u8],
    node: Node<'t>,
    /// Whether something was looked for in it.
    asked: bool,
    /// What is in it, from the second look on.
    inside: Option<HashMap<&'t [u8], Node<'t>>>,
}

impl<'t> Level<'_, 't> {
    fn find(&mut self, name: &[u8]) -> Option<Node<'t>> {
        let node = self.node;
        if self.inside.is_none() && !std::mem::replace(&mut self.asked, true) {
            return node.find(name);
        }
        // A directory replaces a file of the same name, because `find` finds the directory first.
        let all = || node.files().chain(node.directories()).map(|it| (it.name(), it)).collect();
        self.inside.get_or_insert_with(all).get(name).copied()
    }
}

impl Tree {
    /// The entry at the end of each of several ways, as [`find`](Self::find) has it. Sorts the
    /// ways, and is linear in the entries of the directories on them: each directory is gone
    /// through at most twice.
    pub fn find_each<'n, N: AsRef<[u8]> + 'n>(
        &self,
        ways: impl IntoIterator<Item = &'n [N]>,
    ) -> Vec<Option<Node<'_>>> {
        fn names<N: AsRef<[u8]>>(way: &[N]) -> impl Iterator<Item = &[u8]> {
            way.iter().map(AsRef::as_ref)
        }
        let mut ways: Vec<(usize, &'n [N])> = ways.into_iter().enumerate().collect();
        ways.sort_by(|(_, a), (_, b)| names(a).cmp(names(b)));
        let mut nodes = vec![None; ways.len()];
        let mut open: Vec<Level<'n, '_>> = Vec::new();
        let mut find = |way: &'n [N]| {
            let common =
                open.iter().zip(way).take_while(|(level, name)| level.name == name.as_ref());
            let common = common.count();
            open.truncate(common);
            for name in names(&way[common..]) {
                let node = match open.last_mut() {
                    Some(above) => above.find(name)?,
                    None => self.roots().find(|root| root.name() == name)?,
                };
                open.push(Level { name, node, asked: false, inside: None });
            }
            open.last().map(|level| level.node)
        };
        for (place, way) in ways {
            nodes[place] = find(way);
        }
        nodes
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use rustix::time::{ClockId, clock_gettime};

    use crate::{Control, Options};

    /// The processor time in nanoseconds of looking for all files of two directories by turns.
    fn spent(files: usize) -> i64 {
        let tree = tempfile::tempdir().expect("a directory for the test");
        for name in ["a", "b"] {
            fs::create_dir(tree.path().join(name)).expect("a directory");
            for file in 0..files {
                fs::write(tree.path().join(name).join(file.to_string()), "").expect("a file");
            }
        }
        let options = Options { keep_files: true, ..Options::default() };
        let scan = crate::scan(&[tree.path().to_owned()], &options, &Control::new());
        let scan = scan.expect("a scan");
        let root = tree.path().as_os_str().as_encoded_bytes().to_vec();
        let way = |at: usize| {
            let name = if at.is_multiple_of(2) { "a" } else { "b" };
            let file = (at * 7919 % files).to_string();
            [root.clone(), name.into(), file.into_bytes()]
        };
        let ways: Vec<_> = (0..files).map(way).collect();
        let now = || {
            let now = clock_gettime(ClockId::ThreadCPUTime);
            now.tv_sec * 1_000_000_000 + now.tv_nsec
        };
        let began = now();
        let found = scan.tree.find_each(ways.iter().map(|way| &way[..]));
        let spent = now() - began;
        for (way, found) in ways.iter().zip(found) {
            let node = found.expect("it is there");
            assert_eq!((node.name(), node.path()), (&way[2][..], way.join(&b'/')));
        }
        spent
    }

    /// Eight times the files would take 64 times as long if a directory were read for each.
    #[test]
    fn many_are_found_soon_in_whatever_order_they_are_asked_for() {
        let mut ratios = (0..5).map(|_| spent(4800) as f64 / spent(600) as f64);
        assert!(ratios.any(|ratio| ratio < 24.0), "it is quadratic");
    }
}
