//! After any deletions and refreshes every figure of the browser is that of a browser of a fresh
//! walk.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;

use super::*;
use poach_scan::listing::Row;

use crate::scan::names::{Roots, names_of};

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        // The constants of Knuth's MMIX.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Directories, files of four contents, and files with several names.
fn planted(random: &mut Random) -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let mut directories = ["one", "two"].map(|name| tree.path().join(name)).to_vec();
    for root in &directories {
        fs::create_dir(root).expect("a directory");
    }
    let mut files = Vec::<PathBuf>::new();
    for number in 0..50 {
        let above = directories[random.below(directories.len())].clone();
        match random.below(8) {
            0 | 1 => {
                directories.push(above.join(format!("d{number}")));
                fs::create_dir(directories.last().expect("one")).expect("a directory");
                continue;
            }
            2 if !files.is_empty() => {
                let first = &files[random.below(files.len())];
                fs::hard_link(first, above.join(format!("h{number}"))).expect("a link");
                continue;
            }
            3 => {
                std::os::unix::fs::symlink("nowhere", above.join(format!("l{number}")))
                    .expect("a link");
                continue;
            }
            _ => files.push(above.join(format!("f{number}"))),
        }
        let content = random.below(4);
        let content = vec![content as u8; [70_000, 70_000, 9000, 0][content]];
        fs::write(files.last().expect("one"), content).expect("a file");
    }
    tree
}

/// All that the browser shows: each directory's rows, each report, and what the line at the bottom
/// says.
fn figures(browser: &mut Browser) -> BTreeMap<String, Vec<String>> {
    let mut figures = BTreeMap::new();
    // Where an entry lies in memory is no figure of it.
    let figure = |row: Row| format!("{:?}", Row { id: None, ..row });
    // How long the walks took is no figure of what is there.
    browser.scan.elapsed = Duration::ZERO;
    let mut waiting: Vec<_> = browser.scan.tree.roots().collect();
    for measure in [Measure::Disk, Measure::Apparent, Measure::Entries] {
        let rows = poach_scan::listing::rows(&browser.scan, None, measure);
        figures.insert(format!("roots {measure:?}"), rows.into_iter().map(figure).collect());
    }
    while let Some(node) = waiting.pop() {
        let path = String::from_utf8_lossy(&node.path()).into_owned();
        for measure in [Measure::Disk, Measure::Apparent, Measure::Entries] {
            let mut rows = poach_scan::listing::rows(&browser.scan, Some(node), measure);
            poach_scan::listing::sort(&mut rows, Order::Name, false);
            let rows = rows.into_iter().map(figure).collect();
            figures.insert(format!("{path} {measure:?}"), rows);
        }
        waiting.extend(node.directories());
    }
    for report in Report::ALL.into_iter().filter(|&report| report != Report::Duplicates) {
        let settings = Settings { top: None, now: 2_000_000_000, ..Settings::default() };
        let survey = Survey::new(&[report], settings);
        let sections =
            survey.finish(&browser.scan, survey.collect(&browser.scan)).expect("threads");
        let mut rows: Vec<_> = sections[0].rows.iter().map(|row| format!("{row:?}")).collect();
        // Rows that rank alike have no order.
        rows.sort();
        figures.insert(report.name().to_owned(), rows);
    }
    let page = browser.report.as_ref().expect("the report on duplicates");
    let (titles, rows, below) = page.lines(Look::default(), 300);
    figures.insert("duplicates".to_owned(), titles.into_iter().chain(rows).chain(below).collect());
    figures.insert("totals".to_owned(), vec![format!("{:?}", browser.scan.totals)]);
    figures
}

/// Bytes on disk of all that is there, each file once.
fn taken(path: &Path, seen: &mut HashSet<u64>) -> u64 {
    let meta = path.symlink_metadata().expect("it is there");
    let own = if seen.insert(meta.ino()) { meta.blocks() * 512 } else { 0 };
    let inside = meta.is_dir().then(|| fs::read_dir(path).expect("ours"));
    let inside = inside.into_iter().flatten();
    own + inside.map(|entry| taken(&entry.expect("ours").path(), seen)).sum::<u64>()
}

/// Every entry below the given paths.
fn entries_of(scan: &Scan) -> Vec<Names> {
    let mut nodes: Vec<_> = scan.tree.roots().collect();
    let (mut all, roots) = (Vec::new(), Roots::of(scan));
    while let Some(node) = nodes.pop() {
        let inside = || node.directories().chain(node.files());
        all.extend(inside().map(|node| roots.split(&node.path()).expect("ours").1));
        nodes.extend(node.directories());
    }
    all.sort();
    all
}

/// Walks a directory again, as the browser does.
fn walk_again(browser: &mut Browser, names: &Names, roots: &[&Path]) {
    if names.len() < 2 {
        return browser.replace(scanned(roots));
    }
    let path = path_of(&joined(names.iter().map(Vec::as_slice))).expect("a path");
    browser.scan.renew(names, scanned(&[&path])).expect("it is there");
    browser.changed();
}

/// Chooses some entries of the tree, or of the tab of duplicates some copies. Whether they may be
/// deleted.
fn choose(browser: &mut Browser, random: &mut Random, all: &[Names], copies: bool) -> bool {
    browser.chosen.clear();
    browser.tab = if copies { Report::ALL.len() } else { 0 };
    assert_eq!(Report::ALL.last(), Some(&Report::Duplicates));
    for _ in 0..=random.below(4) {
        if !copies {
            browser.chosen.insert(all[random.below(all.len())].clone());
            continue;
        }
        let page = browser.report.as_ref().expect("it was made");
        if let rows @ 1.. = page.section.rows.len() {
            let path = page.path_of(random.below(rows)).expect("a copy");
            browser.chosen.extend(names_of(&browser.scan, path));
        }
    }
    !browser.chosen.is_empty()
}

/// Of one given path or two, with files that have names in both: plain deletions, copies in the tab
/// of duplicates, deletions that are stopped midway, and directories that are walked again.
#[test]
fn figures_after_deletions_and_refreshes_are_those_of_a_fresh_walk() {
    let (mut stopped, mut of_copies) = (0, 0);
    for seed in 0..16 {
        let mut random = Random(seed);
        let tree = planted(&mut random);
        let both = ["one", "two"].map(|name| tree.path().join(name));
        let roots: &[&Path] = if seed % 2 == 0 { &[tree.path()] } else { &[&both[0], &both[1]] };
        let paths: Vec<PathBuf> = roots.iter().map(|root| (*root).to_owned()).collect();
        let open = || Browser::new(scanned(roots), Measure::Disk, Order::Size, false);
        let mut browser = open();
        with_report(&mut browser, Report::Duplicates);
        for round in 0..6 {
            let when = format!("seed {seed}, round {round}");
            let all = entries_of(&browser.scan);
            if all.is_empty() {
                break;
            }
            let what = random.below(6);
            if what < 2 {
                // Nothing has changed, or only what is in it.
                let below = all[random.below(all.len())].clone();
                let path = path_of(&joined(below.iter().map(Vec::as_slice))).expect("a path");
                if !path.symlink_metadata().expect("it is there").is_dir() {
                    continue;
                }
                fs::write(path.join(format!("new-{round}")), vec![1; 70_000]).expect("a file");
                walk_again(&mut browser, &below, roots);
                with_report(&mut browser, Report::Duplicates);
            } else if choose(&mut browser, &mut random, &all, what == 2) {
                let Ok(targets) = targets(&browser, &paths) else { continue };
                let planned = Plan::new(Act::Delete, &targets, &Control::new()).expect("a plan");
                let (before, frees) = (taken(tree.path(), &mut HashSet::new()), planned.bytes);
                let (control, gone) = (Control::new(), AtomicU64::new(0));
                let most = (what == 3).then(|| random.below(planned.entries() as usize) as u64);
                let outcome = thread::scope(|scope| {
                    let work = scope.spawn(|| planned.carry_out(&control, &gone));
                    while !work.is_finished() {
                        if most.is_some_and(|most| gone.load(Ordering::Relaxed) >= most) {
                            control.stop();
                        }
                    }
                    work.join().expect("no panic")
                });
                assert!(outcome.error.is_none() || most.is_some(), "{when}: {outcome:?}");
                let freed = before - taken(tree.path(), &mut HashSet::new());
                if outcome.error.is_none() {
                    assert_eq!(freed, frees, "{when}");
                } else {
                    assert!(freed <= frees, "{when}");
                    stopped += 1;
                }
                of_copies += usize::from(what == 2);
                forget(&mut browser, &outcome.went).expect("they were there");
                browser.changed();
                if let Some(names) = outcome.partly.into_iter().reduce(common) {
                    walk_again(&mut browser, &names, roots);
                }
                assert!(browser.chosen.is_empty() || outcome.error.is_some(), "{when}");
                let mut page = browser.report.take().expect("it was made");
                let is_all = page.retain(&browser.scan);
                browser.report = Some(page);
                if !is_all {
                    with_report(&mut browser, Report::Duplicates);
                }
            }
            let mut fresh = open();
            with_report(&mut fresh, Report::Duplicates);
            let (known, fresh) = (figures(&mut browser), figures(&mut fresh));
            for (what, figures) in &fresh {
                assert_eq!(known.get(what), Some(figures), "{when}: {what}");
            }
            assert_eq!(known.len(), fresh.len(), "{when}");
        }
    }
    assert!(stopped > 0 && of_copies > 0, "{stopped} stopped, {of_copies} of copies");
}

#[test]
fn many_are_deleted_by_several_threads_until_one_is_not_what_it_was() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let (directories, files) = (30, 50);
    let place = |directory: usize| tree.path().join(format!("{directory}"));
    for directory in 0..directories {
        fs::create_dir(place(directory)).expect("a directory");
        for file in 0..files {
            fs::write(place(directory).join(file.to_string()), "").expect("a file");
        }
    }
    let paths = target_paths(tree.path());
    let mut browser = browser(tree.path());
    press(&mut browser, "*");
    let targets = targets(&browser, &paths).expect("they are there");
    let plan = Plan::new(Act::Delete, &targets, &Control::new()).expect("a plan");
    assert_eq!(plan.entries(), (directories * (files + 1)) as u64);
    fs::write(place(17).join("new"), "").expect("a file");
    let gone = AtomicU64::new(0);
    let outcome = plan.carry_out(&Control::new(), &gone);
    assert!(outcome.error.is_some(), "{outcome:?}");
    let left: Vec<usize> = (0..directories).filter(|&it| place(it).exists()).collect();
    let inside = |&directory: &usize| fs::read_dir(place(directory)).expect("ours").count();
    // What is said to be gone is, and nothing else.
    assert_eq!(outcome.went.len(), directories - left.len());
    let missing: usize = left.iter().map(|it| files - (inside(it) - usize::from(*it == 17))).sum();
    assert_eq!(gone.into_inner() as usize, outcome.went.len() * (files + 1) + missing);
    let partly = left.iter().filter(|it| inside(it) - usize::from(**it == 17) < files).count();
    assert_eq!(outcome.partly.len(), partly);
    forget(&mut browser, &outcome.went).expect("they were there");
    browser.changed();
    assert_eq!((browser.rows.len(), browser.chosen.len()), (left.len(), left.len()));
    // The rest goes, but for what a stop leaves.
    let control = Control::new();
    control.stop();
    let targets = self::targets(&browser, &paths).expect("they are there");
    let plan = Plan::new(Act::Delete, &targets, &Control::new()).expect("a plan");
    let outcome = plan.carry_out(&control, &AtomicU64::new(0));
    assert!(outcome.went.is_empty() && outcome.partly.is_empty() && outcome.error.is_some());
}
