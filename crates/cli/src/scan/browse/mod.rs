//! `poach scan -i`: browsing a scan on a terminal, while it runs and after.
//!
//! [`state`] holds the current directory and the effects of keys, [`view`] draws it, [`screen`] has
//! the terminal, and this module carries out the actions outside of the browser. [`walk`] scans on
//! a thread of its own. [`poach_scan::listing`] holds what the walk has found so far, and makes the
//! rows. [`remove`] deletes, [`trash`] moves and brings back; [`reports`] are tabs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use poach_scan::duplicates::Made;
use poach_scan::listing::{Growing, Live, Stored};
use poach_scan::report::{Look, Measure, Order, bytes, count, escape};
use poach_scan::survey::{Report, Settings, Survey, Told};
use poach_scan::sys::{Native, Sys as _};
use poach_scan::{Control, Options, RenewError, Scan};

mod act;
mod beside;
mod canvas;
mod keys;
mod lines;
mod out;
mod outside;
#[cfg(any(unix, windows))]
mod remove;
#[cfg(not(any(unix, windows)))]
#[path = "cannot_remove.rs"]
mod remove;
mod reports;
mod screen;
mod state;
#[cfg(target_os = "linux")]
mod trash;
#[cfg(all(any(unix, windows), not(target_os = "linux")))]
#[path = "cannot_trash.rs"]
mod trash;
mod view;
mod walk;

#[cfg(any(unix, windows))]
use super::item;
use super::names::{self, Names, Roots, joined, of};

use act::Act;
use keys::Input;
use lines::Lines;
use outside::path_of;
use remove::{Plan, Target, Trashed};
use reports::Page;
use screen::Screen;
pub(super) use screen::{ask_to_end, is_aside};
use state::{Browser, Key, Mode, Question, Wish};
use walk::{Walk, What};

/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(100);

/// How often the end of a task is looked for that the user waits for.
const SOON: Duration = Duration::from_millis(4);

/// How often a running walk is drawn, and its end looked for.
const RUNNING: Duration = Duration::from_millis(50);

/// How many deletions to the trash can be undone: each holds a few handles.
const MOST_UNDONE: usize = 32;

/// The scan to browse, and its first view.
pub(super) struct Start<'a> {
    /// What is scanned; a document is shown as it is.
    pub(super) paths: Option<&'a [PathBuf]>,
    pub(super) options: &'a Options,
    pub(super) measure: Measure,
    pub(super) order: (Order, bool),
    pub(super) look: Look,
    /// Of the reports.
    pub(super) settings: Settings,
    /// Whether blocks that files share count once.
    pub(super) shared: bool,
    /// Whether nothing may be deleted, moved or run.
    pub(super) read_only: bool,
    /// Whether what is chosen is printed at the end, so that standard output may be no terminal.
    pub(super) prints: bool,
    /// What is imported in the place of a scan, and how much memory it may take.
    pub(super) document: Option<(&'a Path, Option<u64>)>,
}

/// A document that is browsed.
pub(super) enum Document {
    Whole(Box<Scan>),
    /// A document that is read as far as it is shown.
    Stored(Stored),
}

/// What a browser ends with.
pub(super) struct Ended {
    /// The scan, and what the last report on duplicates did not compare of what is there still;
    /// nothing, if the first walk was not waited for.
    pub(super) seen: Option<(Scan, Made)>,
    /// The paths of what was chosen, but for what lies within another of them.
    pub(super) chosen: Vec<Vec<u8>>,
    /// Whether Ctrl-C or a signal ended it.
    pub(super) interrupted: bool,
}

/// Browses until the user ends it.
///
/// # Errors
///
/// If there is no terminal, or it cannot be written to, or the scan cannot begin.
pub(super) fn run(start: &Start<'_>, imported: Option<Document>) -> Result<Ended> {
    if !io::stdin().is_terminal() || !out::is_there(start.prints) {
        bail!("-i: it needs a terminal");
    }
    let screen = Screen::open()?;
    App::begin(start, screen, imported)?.run()
}

/// The browser with its terminal, and what goes on beside it.
struct App<'a> {
    start: &'a Start<'a>,
    screen: Screen,
    browser: Browser,
    walk: Option<Walk>,
    /// What the question that is shown asks for.
    plan: Option<Plan>,
    /// What the last report on duplicates did not compare.
    made: Made,
    /// What can be brought back, the last deletion at the end.
    undo: Vec<Vec<Trashed>>,
}

impl<'a> App<'a> {
    fn begin(start: &'a Start<'a>, screen: Screen, imported: Option<Document>) -> Result<App<'a>> {
        let Start { measure, order, .. } = *start;
        let (browser, walk) = match (imported, start.paths) {
            (Some(Document::Whole(scan)), _) => {
                (Browser::new(*scan, measure, order.0, order.1), None)
            }
            (Some(Document::Stored(stored)), _) => {
                (Browser::of_stored(stored, measure, order), None)
            }
            (None, paths) => {
                let paths = paths.unwrap_or_default();
                let live = Live::default();
                let growing = Growing::new(live.clone());
                let only = match paths {
                    [path] => Some(path.as_os_str().as_encoded_bytes()),
                    _ => None,
                };
                let (options, shared) = (start.options.clone(), start.shared);
                let walk = Walk::begin(What::All, paths.to_vec(), options, shared, live)?;
                (Browser::of_growing(growing, only, measure, order), Some(walk))
            }
        };
        let (made, undo) = (Made::default(), Vec::new());
        Ok(App { start, screen, browser, walk, plan: None, made, undo })
    }

    fn run(mut self) -> Result<Ended> {
        let interrupted = loop {
            self.look_after_walk()?;
            if let Mode::Confirm(Question { ahead: ahead @ None, .. }) = &mut self.browser.mode {
                *ahead = Some(self.screen.typed_ahead()?);
            }
            self.screen.draw(&mut self.browser, self.start.look)?;
            let wait = if self.walk.is_some() { RUNNING } else { TICK };
            let key = match self.screen.input(wait)? {
                Input::Key(key) => key,
                Input::Nothing | Input::Other | Input::Escaped(_) => continue,
            };
            if let Some(walk) = &self.walk {
                if key == Key::Escape && self.browser.mode == Mode::Browse {
                    walk.stop();
                    continue;
                }
            }
            let wish = self.browser.press(key);
            if wish == Wish::Quit {
                break key == Key::Interrupt;
            }
            self.fulfil(wish)?;
        };
        let first = self.browser.growing.is_some();
        if let Some(walk) = self.walk.take() {
            walk.stop();
            let _ = walk.finish();
        }
        let names =
            if self.browser.chosen.is_empty() { Vec::new() } else { self.browser.targets() };
        let chosen = names.iter().map(|names| joined(names.iter().map(Vec::as_slice))).collect();
        let (scan, mut made) = (self.browser.scan, self.made);
        let roots = Roots::of(&scan);
        made.errors.retain(|error| roots.names_of(&error.path).is_some());
        drop(roots);
        Ok(Ended { seen: (!first).then_some((scan, made)), chosen, interrupted })
    }

    /// Shows how far the walk is, and takes over what it has found once it has ended.
    fn look_after_walk(&mut self) -> Result<()> {
        let Some(walk) = self.walk.take_if(|walk| walk.is_done()) else {
            if let Some(walk) = &self.walk {
                self.browser.progress = walk.progress();
                self.browser.grow();
            }
            return Ok(());
        };
        self.browser.progress.clear();
        let what = walk.what.clone();
        match (walk.finish(), what) {
            (Ok(scan), What::All) => self.browser.replace(scan),
            (Ok(scan), What::Below(names)) => {
                if let Err(error) = self.browser.scan.renew(&names, scan) {
                    self.browser.message = format!("scanning all of it again: {error}");
                    self.walk_all()?;
                }
                self.browser.changed();
            }
            (Err(error), _) if self.browser.growing.is_some() => return Err(error.into()),
            (Err(error), _) => self.browser.message = error.to_string(),
        }
        self.remake_report(false)
    }

    /// Carries out an action outside of the browser.
    fn fulfil(&mut self, wish: Wish) -> Result<()> {
        match wish {
            Wish::Plan(_) | Wish::Undo | Wish::Shell if self.start.read_only => {
                "--read-only: nothing is deleted, moved or run from here"
                    .clone_into(&mut self.browser.message);
            }
            Wish::Open | Wish::Copy => self.hand_out(wish),
            Wish::View => self.view()?,
            Wish::Shell => self.shell()?,
            Wish::Find if self.has_all()? => self.find()?,
            Wish::Suspend => self.suspend()?,
            Wish::Redraw => self.screen.forget(),
            Wish::Report(report) if self.has_all()? => self.make(report)?,
            Wish::Report(_) => self.browser.tab = 0,
            Wish::Rescan if self.may_change() => self.walk_all()?,
            Wish::Renew if self.may_change() => {
                let names = self.browser.to_renew();
                self.walk_below(names)?;
            }
            Wish::Plan(act) if self.may_change() => {
                self.plan = self.prepare(act)?;
            }
            Wish::Carry => self.carry_out()?,
            Wish::Undo if self.undo.is_empty() || self.may_change() => self.undo()?,
            // The reason why it may not be done now has been shown.
            Wish::None
            | Wish::Quit
            | Wish::Find
            | Wish::Rescan
            | Wish::Renew
            | Wish::Plan(_)
            | Wish::Undo => {}
        }
        Ok(())
    }

    /// Whether the scan may be changed now; if not, the reason is shown.
    fn may_change(&mut self) -> bool {
        let why = if self.start.paths.is_none() {
            "this is a document, not a directory"
        } else if self.walk.is_some() {
            "the scan is still running; Esc stops it"
        } else {
            return true;
        };
        why.clone_into(&mut self.browser.message);
        false
    }

    /// Reads the rest of an export that was read as far as it was shown. Returns whether all is
    /// known; if not, the reason is shown.
    fn has_all(&mut self) -> Result<bool> {
        let Some((path, memory)) = self.start.document.filter(|_| self.browser.stored.is_some())
        else {
            return Ok(true);
        };
        let control = Control::new();
        let say = || "reading all of it".to_owned();
        let read = || super::document::import(path, memory);
        match self.screen.busy(&control, say, read)? {
            _ if control.is_stopped() => {
                "stopped: not all of it was read".clone_into(&mut self.browser.message);
            }
            Ok(scan) => {
                self.browser.replace(scan);
                return Ok(true);
            }
            Err(error) => self.browser.message = format!("{error:#}"),
        }
        Ok(false)
    }

    /// Walks all of it again; what is known stays until the end.
    fn walk_all(&mut self) -> Result<()> {
        let Start { paths, options, shared, .. } = *self.start;
        let paths = paths.unwrap_or_default().to_vec();
        let walk = Walk::begin(What::All, paths, options.clone(), shared, Live::default())?;
        self.walk = Some(walk);
        Ok(())
    }

    /// Walks one directory again.
    fn walk_below(&mut self, names: Names) -> Result<()> {
        // What is chosen by its path below a given one can be told from there only, and what files
        // share from all of them.
        if names.len() < 2 || self.start.options.choice.is_some() || self.start.shared {
            return self.walk_all();
        }
        let Some(root) = self.root(&names) else { return self.walk_all() };
        let mut path = root.to_owned();
        path.extend(names[1..].iter().map(|name| os_str(name)));
        let options = self.start.options.clone();
        let what = What::Below(names);
        self.walk = Some(Walk::begin(what, vec![path], options, false, Live::default())?);
        Ok(())
    }

    /// The given path that names begin with.
    fn root(&self, names: &Names) -> Option<&'a Path> {
        let mut paths = self.start.paths?.iter().map(PathBuf::as_path);
        let first = names.first()?;
        paths.find(|path| path.as_os_str().as_encoded_bytes() == first)
    }

    /// Gives the path of the marked row to another program.
    fn hand_out(&mut self, wish: Wish) {
        let Some(names) = self.browser.marked_names() else { return };
        let path = joined(names.iter().map(Vec::as_slice));
        let (done, said) = match wish {
            Wish::Open => (outside::open(&path), "opened"),
            _ => (outside::copy(&path), "copied"),
        };
        self.browser.message = match done {
            Ok(()) => format!("{said}: {}", escape(&path)),
            Err(error) => format!("not {said}: {}: {error}", escape(&path)),
        };
    }

    /// Makes the report of the tab that is shown.
    fn make(&mut self, report: Report) -> Result<()> {
        let mut settings = self.start.settings.clone();
        settings.measure = self.browser.measure;
        let (limit, measure) = (settings.top, settings.measure);
        if report == Report::Duplicates {
            // Groups that have no rows now may have some once others are gone.
            settings.top = None;
        }
        let survey = Survey::new(&[report], settings);
        let (scan, control) = (&self.browser.scan, Control::new());
        let (mut sections, mut groups) = (Vec::new(), Vec::new());
        let say = || match control.progress() {
            progress if progress.compared.is_some() => {
                let (compared, most) =
                    (bytes(progress.compared.unwrap_or(0)), bytes(progress.to_compare));
                format!("compared {compared} of at most {most}")
            }
            _ => format!("making the report {report}"),
        };
        let made = self.screen.busy(&control, say, || {
            let mut keep = |told: Told<'_>| match told {
                Told::Group(group) => groups.push(group.clone()),
                Told::Section(section) => sections.push(section.clone()),
            };
            survey.finish_each(scan, survey.collect(scan), &control, &mut keep)
        })??;
        self.browser.report = match report {
            Report::Duplicates => {
                let errors = made.errors.clone();
                self.made = Made { errors, interrupted: made.interrupted };
                Some(Page::of_groups(&self.browser.scan, groups, limit, measure, made))
            }
            _ => sections.pop().map(Page::new),
        };
        Ok(())
    }

    /// Makes the report of the shown tab again, for a scan that has changed. If some entries are
    /// gone and nothing else has changed, the remaining equal files are not compared again.
    fn remake_report(&mut self, only_gone: bool) -> Result<()> {
        let shown = self.browser.tab.checked_sub(1).and_then(|number| Report::ALL.get(number));
        let Some(&report) = shown else { return Ok(()) };
        let Browser { scan, report: page, .. } = &mut self.browser;
        if report == Report::Duplicates
            && only_gone
            && page.as_mut().is_some_and(|page| page.retain(scan))
        {
            return Ok(());
        }
        let marked = self.browser.report.as_ref().map_or(0, |page| page.marked);
        self.make(report)?;
        if let Some(page) = &mut self.browser.report {
            page.marked = marked;
            page.step(0);
        }
        Ok(())
    }

    /// Lists what would go, and asks.
    fn prepare(&mut self, act: Act) -> Result<Option<Plan>> {
        let targets = match targets(&self.browser, self.start.paths.unwrap_or_default()) {
            Ok(targets) => targets,
            Err(error) => {
                self.browser.message = error.to_string();
                return Ok(None);
            }
        };
        let control = Control::new();
        let say = || "listing the entries".to_owned();
        let plan = self.screen.busy(&control, say, || Plan::new(act, &targets, &control))?;
        Ok(ask(&mut self.browser, plan, self.start.look))
    }

    /// Carries out the plan that the user said yes to.
    fn carry_out(&mut self) -> Result<()> {
        let Some(plan) = self.plan.take() else { return Ok(()) };
        let (act, all) = (plan.act, plan.entries());
        let (control, gone) = (Control::new(), AtomicU64::new(0));
        // Relaxed: a number to watch.
        let say = || format!("gone: {} of {}", count(gone.load(Ordering::Relaxed)), entries(all));
        let outcome = self.screen.busy(&control, say, || plan.carry_out(&control, &gone))?;
        let gone = gone.into_inner();
        let done = match act {
            Act::Delete => "deleted",
            Act::Trash if gone == 0 => "moved to the trash",
            Act::Trash => "moved to the trash; u: undo",
        };
        let said = match outcome.error {
            None => format!("{} {done}", entries(gone)),
            Some(error) => format!("{} of {} {done}, then: {error}", count(gone), entries(all)),
        };
        if !outcome.trashed.is_empty() {
            self.undo.push(outcome.trashed);
            if self.undo.len() > MOST_UNDONE {
                self.undo.remove(0);
            }
        }
        let forgot = forget(&mut self.browser, &outcome.went);
        self.browser.changed();
        match outcome.partly.into_iter().reduce(common) {
            // Another file has now what was shared with a file that is gone.
            _ if forgot.is_err() || self.start.shared && gone > 0 => self.walk_all()?,
            Some(names) => self.walk_below(names)?,
            None => {}
        }
        self.remake_report(true)?;
        self.browser.message = said;
        Ok(())
    }

    /// Brings back what was moved to the trash last.
    fn undo(&mut self) -> Result<()> {
        let Some(mut batch) = self.undo.pop() else {
            "nothing to undo".clone_into(&mut self.browser.message);
            return Ok(());
        };
        let (mut brought, mut above, mut failed) = (0, Vec::new(), None);
        while let Some(trashed) = batch.pop() {
            if let Err(error) = trashed.bring_back() {
                failed = Some(of(trashed.names(), error));
                batch.push(trashed);
                break;
            }
            brought += 1;
            let names = trashed.names();
            above.push(names[..names.len() - 1].to_vec());
        }
        if !batch.is_empty() {
            self.undo.push(batch);
        }
        above.sort();
        above.dedup();
        match <[Names; 1]>::try_from(above) {
            Ok([names]) => self.walk_below(names)?,
            Err(above) if !above.is_empty() => self.walk_all()?,
            Err(_) => {}
        }
        self.browser.message = match failed {
            Some(error) => format!("{brought} brought back, then: {error}"),
            None => format!("{brought} brought back"),
        };
        Ok(())
    }
}

/// What two ways have in common.
fn common(mut a: Names, b: Names) -> Names {
    let common = a.iter().zip(b).take_while(|(a, b)| *a == b).count();
    a.truncate(common);
    a
}

/// Takes out the entries that are gone. Their directories have changed by themselves, too: their
/// times and, on some file systems, their sizes.
fn forget(browser: &mut Browser, went: &[Names]) -> Result<(), RenewError> {
    browser.scan.forget_all(went.iter().map(Vec::as_slice))?;
    let above: BTreeSet<&[Vec<u8>]> = went.iter().map(|names| &names[..names.len() - 1]).collect();
    for names in above {
        let follows = names.len() == 1 && browser.scan.options.follow_paths;
        let path = path_of(&joined(names.iter().map(Vec::as_slice)));
        // If it is gone meanwhile, the next walk finds out.
        if let Ok(meta) = path.and_then(|path| Native::default().meta(&path, follows)) {
            browser.scan.renew_own(names, &meta)?;
        }
    }
    Ok(())
}

/// The marked entries, with the given paths above them. For each of equal files a copy that stays
/// is named.
///
/// # Errors
///
/// If nothing is marked, or no copy would be left.
fn targets(browser: &Browser, paths: &[PathBuf]) -> Result<Vec<Target>> {
    let all = browser.targets();
    if all.is_empty() {
        bail!("nothing is marked");
    }
    let given = |names: &Names| {
        let path = paths.iter().find(|path| path.as_os_str().as_encoded_bytes() == names[0]);
        path.cloned().ok_or_else(|| anyhow::anyhow!("the path is not one of those given"))
    };
    let shown = browser.tab.checked_sub(1).and_then(|number| Report::ALL.get(number));
    let copies = browser.report.as_ref().filter(|_| shown == Some(&Report::Duplicates));
    let groups = copies.map(Page::groups).unwrap_or_default();
    let roots = Roots::of(&browser.scan);
    // Of each group that something goes of, the first file that stays.
    let mut staying = HashMap::new();
    let goes: HashSet<&[Vec<u8>]> = all.iter().map(Vec::as_slice).collect();
    // Itself, or with a directory that it lies in.
    let stays = |names: &Names| !(1..=names.len()).any(|end| goes.contains(&names[..end]));
    let mut twins = Vec::new();
    if let Some(page) = copies {
        for names in &all {
            let path = joined(names.iter().map(Vec::as_slice));
            let Some(rows) = groups.get(&path[..]).cloned() else {
                let path = escape(&path);
                bail!("{path} has no duplicates; this tab deletes duplicates only");
            };
            let found = staying.entry(rows.start).or_insert_with(|| {
                let mut others = rows.filter_map(|row| roots.split(page.path_of(row)?));
                others.find(|(_, names)| stays(names)).map(|(_, names)| names)
            });
            let Some(stays) = found.clone() else {
                let path = escape(&path);
                bail!("no copy of {path} would be left; this tab keeps one");
            };
            twins.push(Some((given(&stays)?, stays)));
        }
    }
    let twins = twins.into_iter().chain(std::iter::repeat(None));
    let target = |(names, twin)| Ok(Target { root: given(&names)?, names, twin });
    all.into_iter().zip(twins).map(target).collect()
}

/// Asks whether to do what was planned, if it could be planned.
fn ask(browser: &mut Browser, plan: io::Result<Plan>, look: Look) -> Option<Plan> {
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            browser.message = format!("cannot do that: {error}");
            return None;
        }
    };
    let question = match plan.act {
        Act::Delete if cfg!(target_os = "linux") => "Delete this for good?",
        Act::Delete => "Delete this for good? (On this system nothing is moved to a trash.)",
        Act::Trash => "Move this to the trash?",
    };
    let mut heading = vec![
        question.to_owned(),
        format!("  {}", number(plan.files, ["file or link", "files and links"])),
        format!("  {}", number(plan.directories, ["directory", "directories"])),
        format!("  {} on disk", look.units.show(plan.bytes)),
    ];
    if plan.shared > 0 {
        let shared = look.units.show(plan.shared);
        heading.push(format!("  {shared} of it stay: other files or snapshots share them"));
    }
    heading.push("Links are not followed. The entries:".to_owned());
    let mut lines: Lines = heading.into_iter().collect();
    plan.tell(&mut lines);
    browser.mode = Mode::Confirm(Question { act: plan.act, lines, top: 0, ahead: None });
    Some(plan)
}

/// A number and its noun, in the singular or the plural.
fn number(number: u64, [one, more]: [&str; 2]) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { more })
}

fn entries(entries: u64) -> String {
    number(entries, ["entry", "entries"])
}

#[cfg(unix)]
fn os_str(name: &[u8]) -> std::borrow::Cow<'_, std::ffi::OsStr> {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(name).into()
}

#[cfg(not(unix))]
fn os_str(name: &[u8]) -> std::borrow::Cow<'_, std::ffi::OsStr> {
    std::ffi::OsString::from(String::from_utf8_lossy(name).into_owned()).into()
}

#[cfg(test)]
mod tests;
