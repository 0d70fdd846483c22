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
        // A directory takes the place of a file of its name, as it is found before.
        let all = || node.files().chain(node.directories()).map(|it| (it.name(), it)).collect();
        self.inside.get_or_insert_with(all).get(name).copied()
    }
}

impl Tree {
    /// The entry at the end of each of several ways, as [`find`](Self::find) has it. If the ways are sorted, linear in them and in what
    /// the directories on them hold: each directory is gone through at most twice.
    pub fn find_each<'n, N: AsRef<[u8]> + 'n>(
        &self,
        ways: impl IntoIterator<Item = &'n [N]>,
    ) -> Vec<Option<Node<'_>>> {
        let mut open: Vec<Level<'n, '_>> = Vec::new();
        let find = |way: &'n [N]| {
            let common =
                open.iter().zip(way).take_while(|(level, name)| level.name == name.as_ref());
            let common = common.count();
            open.truncate(common);
            for name in way[common..].iter().map(AsRef::as_ref) {
                let node = match open.last_mut() {
                    Some(above) => above.find(name)?,
                    None => self.roots().find(|root| root.name() == name)?,
                };
                open.push(Level { name, node, asked: false, inside: None });
            }
            open.last().map(|level| level.node)
        };
        ways.into_iter().map(find).collect()
    }
}
