//! After any deletions and refreshes every figure of the browser is that of a browser of a fresh walk.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;

use super::*;

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
    let (mut directories, mut files) = (vec![tree.path().to_owned()], Vec::<PathBuf>::new());
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

/// All that the browser shows: each directory's rows, each report, and what the line at the bottom says.
fn figures(browser: &mut Browser) -> BTreeMap<String, Vec<String>> {
    let mut figures = BTreeMap::new();
    // How long the walks took is no figure of what is there.
    browser.scan.elapsed = Duration::ZERO;
    let mut waiting: Vec<_> = browser.scan.tree.roots().collect();
    for measure in [Measure::Disk, Measure::Apparent, Measure::Entries] {
        let rows = poach_scan::listing::rows(&browser.scan, None, measure);
        figures.insert(format!("roots {measure:?}"), vec![format!("{rows:?}")]);
    }
    while let Some(node) = waiting.pop() {
        let path = String::from_utf8_lossy(&node.path()).into_owned();
        for measure in [Measure::Disk, Measure::Apparent, Measure::Entries] {
            let mut rows = poach_scan::listing::rows(&browser.scan, Some(node), measure);
            poach_scan::listing::sort(&mut rows, Order::Name, false);
            let rows = rows.iter().map(|row| format!("{row:?}")).collect();
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

#[test]
fn figures_after_deletions_and_refreshes_are_those_of_a_fresh_walk() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let tree = planted(&mut random);
        let root = tree.path();
        let paths = target_paths(root);
        let open = || Browser::new(scanned(&[root]), Measure::Disk, Order::Size, false);
        let mut browser = open();
        with_report(&mut browser, Report::Duplicates);
        for round in 0..6 {
            let when = format!("seed {seed}, round {round}");
            let mut nodes: Vec<_> = browser.scan.tree.roots().collect();
            let mut all = Vec::new();
            while let Some(node) = nodes.pop() {
                let inside = || node.directories().chain(node.files());
                all.extend(inside().map(|node| split(&browser.scan, &node.path()).expect("ours")));
                nodes.extend(node.directories());
            }
            all.sort();
            if all.is_empty() {
                break;
            }
            if random.below(3) == 0 {
                // Nothing has changed, or only what is in it.
                let below = all[random.below(all.len())].clone();
                let below =
                    if root.join(os_str(&joined(below[1..].iter().map(Vec::as_slice)))).is_dir() {
                        below
                    } else {
                        continue;
                    };
                let path = path_of(&joined(below.iter().map(Vec::as_slice))).expect("a path");
                fs::write(path.join(format!("new-{round}")), vec![1; 70_000]).expect("a file");
                browser.scan.renew(&below, scanned(&[&path])).expect("it is there");
                with_report(&mut browser, Report::Duplicates);
            } else {
                for _ in 0..=random.below(4) {
                    browser.chosen.insert(all[random.below(all.len())].clone());
                }
                let targets = targets(&browser, &paths).expect("they are there");
                let planned = Plan::new(Act::Delete, &targets, &Control::new()).expect("a plan");
                let (before, frees) = (taken(root, &mut HashSet::new()), planned.bytes);
                let outcome = planned.carry_out(&Control::new(), &AtomicU64::new(0));
                assert!(outcome.error.is_none(), "{when}: {outcome:?}");
                assert_eq!(before - taken(root, &mut HashSet::new()), frees, "{when}");
                forget(&mut browser, &outcome.went).expect("they were there");
                browser.changed();
                assert!(browser.chosen.is_empty(), "{when}");
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
