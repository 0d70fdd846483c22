//! The browser's work beside its list: a search of the whole tree, and other programs on its
//! terminal.

use std::path::PathBuf;

use anyhow::Result;
use poach_scan::report::escape;
use poach_scan::{Control, Kind, listing};

use super::names::{Names, joined};
use super::{App, outside};

impl App<'_> {
    /// Searches the whole tree for what was typed.
    pub(super) fn find(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.browser.sought);
        let (scan, control) = (&self.browser.scan, Control::new());
        let say = || format!("searching for {}", escape(text.as_bytes()));
        let find = || listing::find(scan, &text, &control);
        match self.screen.busy(&control, say, find)? {
            Ok(all) => self.browser.show_found(text, all, control.is_stopped()),
            Err(error) => self.browser.message = error.to_string(),
        }
        Ok(())
    }

    /// Shows what is in the marked file.
    pub(super) fn view(&mut self) -> Result<()> {
        let Some(names) = self.marked_on_disk() else { return Ok(()) };
        let kind = self.browser.scan.tree.find(&names).map(|node| node.kind());
        if kind.is_some_and(|kind| kind != Kind::File) {
            "only files can be viewed".clone_into(&mut self.browser.message);
            return Ok(());
        }
        let path = joined(names.iter().map(Vec::as_slice));
        let read_only = self.start.read_only;
        let viewed = self.screen.aside(|| outside::view(&path, read_only))?;
        self.browser.message = match viewed {
            Ok(said) => said.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        Ok(())
    }

    /// Runs a shell in the directory that is shown, which is walked again afterwards.
    pub(super) fn shell(&mut self) -> Result<()> {
        let names = self.browser.directory();
        let directory = match self.on_disk(&names) {
            Some(directory) if !names.is_empty() => directory,
            _ => {
                "this is not a directory".clone_into(&mut self.browser.message);
                return Ok(());
            }
        };
        let run = self.screen.aside(|| outside::shell(&directory))?;
        if let Err(error) = run {
            self.browser.message = error.to_string();
        } else if self.walk.is_none() {
            self.walk_below(names)?;
        }
        Ok(())
    }

    /// The names of the marked row, if it is an entry of a directory and not of a document.
    fn marked_on_disk(&mut self) -> Option<Names> {
        let names = self.browser.marked_names();
        if names.as_ref().is_none_or(|names| self.on_disk(names).is_none()) {
            "this row is not an entry of a directory".clone_into(&mut self.browser.message);
            return None;
        }
        names
    }

    /// The path at the end of some names, if they begin with a path that was given.
    fn on_disk(&self, names: &Names) -> Option<PathBuf> {
        let root = self.root(names)?;
        let below = names[1..].iter().map(|name| super::os_str(name));
        Some(below.fold(root.to_owned(), |path, name| path.join(name)))
    }

    /// Leaves the terminal to the shell that the browser was started from, until that has it go on.
    #[cfg(unix)]
    pub(super) fn suspend(&mut self) -> Result<()> {
        use rustix::process::{Signal, kill_current_process_group};
        let stop = || kill_current_process_group(Signal::TSTP).map_err(std::io::Error::from);
        Ok(self.screen.aside(stop)??)
    }

    /// Windows has no such thing.
    #[cfg(not(unix))]
    pub(super) fn suspend(&mut self) -> Result<()> {
        "this system cannot suspend a program".clone_into(&mut self.browser.message);
        Ok(())
    }
}
