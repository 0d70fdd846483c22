use std::fs;
use std::path::{MAIN_SEPARATOR, MAIN_SEPARATOR_STR, Path};
use std::thread;

use poach_scan::Failure;
use poach_scan::duplicates::Made;
use poach_scan::report::escape;

use super::*;

#[cfg(unix)]
mod model;
// Their paths are Unix's.
#[cfg(unix)]
mod screenshots;

/// A name that no terminal should get. Windows has none with the character that begins the first.
const ODD: &str = if cfg!(windows) { "b\u{9b}[31m" } else { "b\x1b[31m" };

fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    fs::create_dir_all(tree.path().join("large/inner")).expect("directories");
    fs::create_dir(tree.path().join(ODD)).expect("a directory");
    for (name, size) in [("large/inner/x", 300_000), ("large/y", 9000), ("z", 50_000)] {
        fs::write(tree.path().join(name), vec![1; size]).expect("a file");
    }
    tree
}

fn scanned(paths: &[&Path]) -> Scan {
    let paths: Vec<PathBuf> = paths.iter().map(Into::into).collect();
    let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
    poach_scan::scan(&paths, &options, &Control::new()).expect("a scan")
}

fn browser(root: &Path) -> Browser {
    Browser::new(scanned(&[root]), Measure::Apparent, Order::Size, false)
}

/// The screen's lines.
fn shown(browser: &mut Browser, width: u16, height: u16) -> Vec<String> {
    let mut canvas = canvas::Canvas::new(width, height);
    view::draw(browser, Look::default(), &mut canvas);
    canvas.lines().iter().map(|line| line.trim_end().to_owned()).collect()
}

fn press(browser: &mut Browser, keys: &str) -> Wish {
    keys.chars().map(|key| browser.press(Key::Char(key))).last().expect("a key")
}

fn names(browser: &Browser) -> Vec<&str> {
    browser.rows.iter().map(|row| std::str::from_utf8(&row.name).expect("UTF-8")).collect()
}

#[test]
fn one_goes_in_and_out_and_stands_where_one_stood() {
    let tree = grown();
    let mut browser = browser(tree.path());
    assert_eq!(names(&browser), ["large", "z", ODD]);
    press(&mut browser, "l");
    assert_eq!(names(&browser), ["inner", "y"]);
    press(&mut browser, "l");
    assert_eq!(names(&browser), ["x"]);
    // Not into a file, and not out of the given path.
    press(&mut browser, "l");
    press(&mut browser, "hhhh");
    assert_eq!((names(&browser)[0], browser.marked), ("large", 0));
    press(&mut browser, "jjjjjj");
    assert_eq!(browser.marked, 2);
    press(&mut browser, "lh");
    assert_eq!(browser.marked, 2, "an empty directory is entered and left");
    // Escape asks, as the one before it may have stopped a walk.
    assert_eq!((browser.press(Key::Escape), &browser.mode), (Wish::None, &Mode::Leave));
    assert!(shown(&mut browser, 80, 10)[9].starts_with("y: end"));
    assert_eq!((browser.press(Key::Escape), &browser.mode), (Wish::None, &Mode::Browse));
    browser.press(Key::Escape);
    assert_eq!(press(&mut browser, "y"), Wish::Quit);
    assert_eq!(press(&mut browser, "q"), Wish::Quit);
    assert_eq!(browser.press(Key::Interrupt), Wish::Quit);
}

#[test]
fn the_order_changes_and_turns_and_a_search_keeps_what_matches() {
    let tree = grown();
    let mut browser = browser(tree.path());
    press(&mut browser, "n");
    assert_eq!(names(&browser), [ODD, "large", "z"]);
    assert_eq!(browser.rows[browser.marked].name, b"large", "the mark stays at its row");
    press(&mut browser, "n");
    assert_eq!(names(&browser)[0], "z");
    press(&mut browser, "c");
    assert_eq!(names(&browser)[0], "large");
    press(&mut browser, "t");
    assert!(shown(&mut browser, 80, 10)[9].contains("by time"));
    press(&mut browser, "s/LAR");
    assert_eq!(names(&browser), ["large"]);
    assert_eq!(shown(&mut browser, 80, 10)[9], "/LAR");
    browser.press(Key::Backspace);
    browser.press(Key::Enter);
    assert_eq!((browser.rows.len(), &browser.mode), (1, &Mode::Browse));
    browser.press(Key::Escape);
    assert_eq!(browser.rows.len(), 3);
}

#[test]
fn it_fits_any_terminal_and_shows_no_control_character() {
    let tree = grown();
    let mut browser = browser(tree.path());
    let lines = shown(&mut browser, 40, 8);
    assert!(
        lines[0].ends_with("KiB") && lines[1].contains(&format!("large{MAIN_SEPARATOR}")),
        "{lines:#?}"
    );
    let odd = format!("{}{MAIN_SEPARATOR}", escape(ODD.as_bytes()));
    assert!(odd.len() > ODD.len() && lines.iter().any(|line| line.contains(&odd)), "{lines:#?}");
    for (width, height) in [(0, 0), (1, 1), (1, 9), (20, 2), (40, 3), (200, 60)] {
        for keys in ["s", "?", " ", "/z", "\u{1b}"] {
            press(&mut browser, keys);
            let lines = shown(&mut browser, width, height);
            assert!(lines.iter().flat_map(|line| line.chars()).all(|it| !it.is_control()));
        }
        browser.press(Key::Escape);
        browser.mode = Mode::Browse;
    }
    // A list longer than the screen follows the mark, and is whole again where there is space for
    // it.
    browser.press(Key::End);
    let lines = shown(&mut browser, 80, 3);
    assert!(!lines[1].contains("large"), "{lines:#?}");
    assert!(shown(&mut browser, 80, 9)[1].contains("large"));
}

#[test]
fn a_name_of_any_clusters_keeps_its_row_and_is_shown_whole_where_it_fits() {
    let long = ["⚠\u{fe0f} ", &"n".repeat(70)].concat();
    let names = [
        &long,
        "日本語".repeat(30).as_str(),
        "👍🏽🇩🇪🇩",
        "e\u{301}\u{202e}\t",
        "क्ष्म",
        "ᄀᄀᄀ",
        "\u{fe0f}x",
    ]
    .map(str::to_owned);
    let rows = names.iter().zip((1..9).rev()).map(|(name, size)| {
        let name = name.replace('\t', "\\t");
        format!(r#",{{"name":"{name}","asize":{size}000,"dsize":{size}000,"mtime":1}}"#)
    });
    let export = format!(
        r#"[1,2,{{"progname":"ncdu","timestamp":1700000000}},[{{"name":"/⚠\ufe0f"}}{}]]"#,
        rows.collect::<String>()
    );
    let scan = poach_scan::document::read(export.as_bytes()).expect("an export");
    let mut browser = Browser::new(scan, Measure::Disk, Order::Size, false);
    browser.message = long.repeat(3);
    let width = poach_scan::report::width;
    let draw = |browser: &mut Browser, columns: usize, what: &str| {
        for line in shown(browser, columns as u16, 12) {
            assert!(width(&line) <= columns, "{what}: {columns}: {line:?}");
        }
    };
    let draw_all = |browser: &mut Browser, what: &str| {
        (0..=200).for_each(|columns| draw(browser, columns, what));
    };
    draw_all(&mut browser, "a message");
    assert!(shown(&mut browser, 101, 12).iter().any(|line| line.ends_with(&long)));
    assert!(!shown(&mut browser, 100, 12).iter().any(|line| line.ends_with(&long)));
    browser.message.clear();
    browser.mode = Mode::Search;
    long.chars().for_each(|character| browser.search.push(character));
    draw_all(&mut browser, "a search");
    (browser.mode, browser.progress) = (Mode::Browse, long.repeat(3));
    browser.search.clear();
    draw_all(&mut browser, "a walk");
    for (tab, report) in Report::ALL.into_iter().enumerate() {
        browser.tab = tab + 1;
        with_report(&mut browser, report);
        (tab..=200).step_by(16).for_each(|columns| draw(&mut browser, columns, report.name()));
    }
    let lines = names.iter().collect();
    browser.mode = Mode::Confirm(Question { act: Act::Trash, lines, top: 0, ahead: None });
    draw_all(&mut browser, "a question");
}

#[test]
fn several_paths_are_a_list_and_another_scan_keeps_the_place() {
    let tree = grown();
    let (a, b) = (tree.path().join("large"), tree.path().join("z"));
    let mut browser = Browser::new(scanned(&[&a, &b]), Measure::Apparent, Order::Size, false);
    assert_eq!(browser.rows.len(), 2);
    press(&mut browser, "ll");
    assert_eq!(names(&browser), ["x"]);
    press(&mut browser, "h");
    fs::remove_dir_all(a.join("inner")).expect("ours");
    browser.replace(scanned(&[&a, &b]));
    assert_eq!(names(&browser), ["y"]);
    fs::remove_dir_all(&a).expect("ours");
    browser.replace(scanned(&[&a, &b]));
    assert!(
        browser
            .rows
            .iter()
            .any(|row| Path::new(&*String::from_utf8_lossy(&row.name)).ends_with("z")),
        "{:?}",
        browser.rows
    );
}

fn target_paths(tree: &Path) -> [PathBuf; 1] {
    [tree.to_owned()]
}

/// Plans what is marked, and asks.
fn plan(browser: &mut Browser, act: Act, paths: &[PathBuf]) -> Option<Plan> {
    let targets = targets(browser, paths).ok()?;
    ask(browser, Plan::new(act, &targets, &Control::new()), Look::default())
}

#[test]
fn a_deletion_says_what_goes_and_wants_a_yes() {
    let tree = grown();
    let paths = target_paths(tree.path());
    let mut browser = browser(tree.path());
    assert_eq!(press(&mut browser, "d"), Wish::Plan(Act::Delete));
    let planned = plan(&mut browser, Act::Delete, &paths).expect("a plan");
    let lines = shown(&mut browser, 80, 14).join("\n");
    let large = format!("{MAIN_SEPARATOR}large/");
    for part in [&large[..], "2 files", "2 directories", "    inner/", "      x", "    y"] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    assert_eq!(press(&mut browser, "n"), Wish::None);
    drop(planned);
    press(&mut browser, "d");
    let planned = plan(&mut browser, Act::Delete, &paths).expect("a plan");
    assert_eq!(press(&mut browser, "y"), Wish::Carry);
    let gone = AtomicU64::new(0);
    let outcome = planned.carry_out(&Control::new(), &gone);
    assert_eq!((outcome.went.len(), gone.into_inner()), (1, 4));
    assert!(!tree.path().join("large").exists() && tree.path().join("z").exists());
    // What is gone already is no plan.
    press(&mut browser, "d");
    assert!(plan(&mut browser, Act::Delete, &paths).is_none());
    assert!(browser.message.starts_with("cannot do that: large: "), "{}", browser.message);
    // The tree without it is the tree of a new walk.
    browser.scan.forget(&outcome.went[0]).expect("it was there");
    browser.changed();
    assert_eq!(names(&browser), ["z", ODD]);
    assert!(plan(&mut browser, Act::Delete, &[]).is_none());
}

#[test]
fn a_question_that_is_longer_than_the_screen_is_gone_through() {
    let tree = grown();
    let mut browser = browser(tree.path());
    let lines = (0..100).map(|number| format!("line {number}")).collect();
    browser.mode = Mode::Confirm(Question { act: Act::Trash, lines, top: 0, ahead: None });
    // What is typed while the program is suspended is typed before the question is shown again.
    if let Mode::Confirm(question) = &mut browser.mode {
        question.ahead = Some(0);
    }
    assert_eq!(browser.press(Key::Suspend), Wish::Suspend);
    assert!(matches!(browser.mode, Mode::Confirm(Question { ahead: None, .. })));
    let first = shown(&mut browser, 60, 10);
    assert!(first[1] == "line 0" && first[9].contains("more"), "{first:#?}");
    browser.press(Key::End);
    let last = shown(&mut browser, 60, 10);
    assert!(last.iter().any(|line| line == "line 99") && !last[9].contains("more"), "{last:#?}");
    for key in [Key::PageUp, Key::Up, Key::Down, Key::PageDown, Key::Home, Key::Click(0, 0)] {
        assert_eq!(browser.press(key), Wish::None);
        assert!(matches!(browser.mode, Mode::Confirm(_)), "{key:?}");
    }
    assert_eq!(shown(&mut browser, 60, 10)[1], "line 0");
    assert_eq!((browser.press(Key::Escape), &browser.mode), (Wish::None, &Mode::Browse));
    // So are the keys, none of which is cut on a narrow terminal.
    press(&mut browser, "?");
    let first = shown(&mut browser, 40, 10);
    assert!(
        first[9].contains("more") && !first.iter().any(|line| line.contains('…')),
        "{first:#?}"
    );
    press(&mut browser, "j");
    assert_eq!(shown(&mut browser, 40, 10)[1], first[2]);
    browser.press(Key::End);
    let last = shown(&mut browser, 40, 10);
    assert!(last[7].starts_with("mouse") && !last[9].contains("more"), "{last:#?}");
    assert!(!last.iter().any(|line| line.contains('…')), "{last:#?}");
    assert_eq!((browser.press(Key::Char('?')), &browser.mode), (Wish::None, &Mode::Browse));
}

#[test]
fn what_is_chosen_stays_so_wherever_one_goes() {
    let tree = grown();
    let mut browser = browser(tree.path());
    press(&mut browser, "l ");
    assert_eq!((names(&browser)[0], browser.marked, browser.chosen.len()), ("inner", 1, 1));
    press(&mut browser, "hj ");
    let lines = shown(&mut browser, 80, 10);
    assert!(lines[9].contains("2 chosen") && lines[2].contains("*z"), "{lines:#?}");
    let ends = |browser: &Browser| -> Vec<String> {
        let targets = browser.targets();
        targets
            .iter()
            .map(|names| String::from_utf8_lossy(&names[1..].join(&b'/')).into())
            .collect()
    };
    assert_eq!(ends(&browser), ["large/inner", "z"]);
    // A directory takes what is in it with it.
    press(&mut browser, "g ");
    assert_eq!(ends(&browser), ["large", "z"]);
    press(&mut browser, "*");
    assert_eq!(browser.chosen.len(), 4);
    press(&mut browser, "*");
    assert_eq!(ends(&browser), ["large/inner"]);
    press(&mut browser, "U");
    assert_eq!(browser.targets().len(), 1, "the marked row");
    // What is gone is not chosen any more.
    press(&mut browser, "*");
    let names = browser.targets()[0].clone();
    browser.scan.forget(&names).expect("it is there");
    browser.changed();
    assert_eq!(browser.chosen.len(), 2);
}

fn with_report(browser: &mut Browser, report: Report) {
    let settings = Settings { top: None, measure: browser.measure, ..Settings::default() };
    let survey = Survey::new(&[report], settings);
    let (parts, control) = (survey.collect(&browser.scan), Control::new());
    let (mut sections, mut groups) = (Vec::new(), Vec::new());
    let mut keep = |told: Told<'_>| match told {
        Told::Group(group) => groups.push(group.clone()),
        Told::Section(section) => sections.push(section.clone()),
    };
    let made =
        survey.finish_each(&browser.scan, parts, &control, &mut keep).expect("threads can be had");
    browser.report = match report {
        Report::Duplicates => {
            let (scan, measure) = (&browser.scan, browser.measure);
            Some(Page::of_groups(scan, groups, None, measure, made))
        }
        _ => sections.into_iter().next().map(Page::new),
    };
}

#[test]
fn a_tab_is_a_report_whose_rows_one_can_go_to_and_choose() {
    let tree = grown();
    let mut browser = browser(tree.path());
    assert_eq!(browser.press(Key::Tab), Wish::Report(Report::ALL[0]));
    with_report(&mut browser, Report::ALL[0]);
    let lines = shown(&mut browser, 80, 12);
    assert!(lines[0] == "summary" && lines[10].starts_with("tree  summary  largest"), "{lines:#?}");
    assert_eq!(browser.press(Key::Tab), Wish::Report(Report::LargestFiles));
    with_report(&mut browser, Report::LargestFiles);
    let lines = shown(&mut browser, 80, 12);
    let deep = ["", "large", "inner", "x"].join(MAIN_SEPARATOR_STR);
    assert!(lines[1].contains("apparent") && lines[2].ends_with(&deep), "{lines:#?}");
    // A shell for a file starts in the file's directory.
    assert_eq!(browser.directory(), names_below(&tree, &["large", "inner"]));
    press(&mut browser, " ");
    assert_eq!(browser.chosen.len(), 1);
    // A click at the line of the third file, and another.
    assert_eq!(browser.press(Key::Click(3, 4)), Wish::None);
    assert_eq!(browser.report.as_ref().map(|report| report.marked), Some(2));
    browser.press(Key::Click(3, 4));
    assert_eq!((browser.tab, names(&browser)[browser.marked]), (0, "y"));
    // The last tab is one step back from the tree, and is in sight on a narrow screen.
    assert_eq!(browser.press(Key::BackTab), Wish::Report(Report::Duplicates));
    let lines = shown(&mut browser, 40, 12);
    assert!(lines[10].contains("duplicates"), "{lines:#?}");
    let (line, tabs) = browser.places.tabs.clone().expect("tabs");
    let (columns, tab) = tabs[0].clone();
    let wish = browser.press(Key::Click(columns.start, line));
    assert_eq!((wish, browser.tab), (Wish::Report(Report::ALL[tab - 1]), tab));
    assert_eq!((browser.press(Key::Escape), browser.tab), (Wish::None, 0));
}

#[test]
fn a_tab_says_at_its_end_how_many_rows_were_left_out() {
    let tree = grown();
    let mut browser = browser(tree.path());
    browser.press(Key::BackTab);
    browser.tab = 2;
    with_report(&mut browser, Report::LargestFiles);
    let page = browser.report.as_mut().expect("it was made");
    page.section.left_out = 7;
    let rows = page.section.rows.len();
    assert!(rows >= 3, "{rows}");
    let first = shown(&mut browser, 80, 6);
    assert!(first[5].starts_with(&format!("1 of {rows}  ")), "{first:#?}");
    assert!(!first.iter().any(|line| line.contains("7 more")), "{first:#?}");
    browser.press(Key::End);
    let last = shown(&mut browser, 80, 6);
    assert!(last[3].contains("7 more") && last[5].starts_with(&format!("{rows} of ")), "{last:#?}");
}

#[test]
fn a_tab_of_equal_files_says_which_it_could_not_compare() {
    let tree = grown();
    let mut browser = browser(tree.path());
    browser.press(Key::BackTab);
    let failure = |name: &str| Failure { path: name.into(), message: "it is closed".to_owned() };
    let errors = vec![failure("/a/\u{202e}"), failure("/b")];
    let made = Made { errors, interrupted: true };
    let page = Page::of_groups(&browser.scan, Vec::new(), None, Measure::Disk, made);
    browser.report = Some(page);
    let lines = shown(&mut browser, 100, 8);
    assert_eq!(lines[2], "  stopped: not every file was compared");
    assert!(lines[3].starts_with("  2 files are not compared, such as /a/"), "{lines:#?}");
    assert!(lines[3].ends_with("u{202e}: it is closed"), "{lines:#?}");
    // Neither of them is in the scan, so nothing is said of them once what is left is listed.
    assert!(browser.report.as_mut().expect("a report").retain(&browser.scan));
    assert!(!shown(&mut browser, 100, 8).join("\n").contains("not compared, such as"));
}

#[test]
fn of_equal_files_one_stays() {
    let tree = grown();
    for name in ["one", "two", "large/three"] {
        fs::write(tree.path().join(name), vec![9; 70_000]).expect("a file");
    }
    let paths = target_paths(tree.path());
    let mut browser = browser(tree.path());
    browser.press(Key::BackTab);
    with_report(&mut browser, Report::Duplicates);
    let lines = shown(&mut browser, 100, 12);
    assert!(lines[2].contains(" 137 KiB "), "{lines:#?}");
    let three = format!("{MAIN_SEPARATOR}large{MAIN_SEPARATOR}three");
    let two = format!("{MAIN_SEPARATOR}two");
    assert!(lines[2].ends_with(&three) && lines[4].ends_with(&two), "{lines:#?}");
    press(&mut browser, "  ");
    let found = targets(&browser, &paths).expect("one stays");
    assert!(found.iter().all(|target| {
        target.twin.as_ref().is_some_and(|(_, names)| names.last().is_some_and(|it| it == b"two"))
    }));
    // With the third one, or the directory that it is in, none would.
    press(&mut browser, " ");
    let error = targets(&browser, &paths).expect_err("none stays").to_string();
    assert!(error.contains("no copy of"), "{error}");
    browser.press(Key::Home);
    press(&mut browser, " ");
    let planned = plan(&mut browser, Act::Delete, &paths).expect("a plan");
    assert!(shown(&mut browser, 200, 14).join("\n").contains("which equals"));
    let outcome = planned.carry_out(&Control::new(), &AtomicU64::new(0));
    assert!(outcome.error.is_none() && outcome.went.len() == 2, "{outcome:?}");
    assert!(tree.path().join("large/three").exists() && !tree.path().join("one").exists());
    // The group that is left has one file, and goes.
    forget(&mut browser, &outcome.went).expect("they were there");
    let page = browser.report.as_mut().expect("a report");
    assert!(page.retain(&browser.scan));
    assert!(page.section.rows.is_empty());
}

/// A copy in a directory that goes does not stay.
#[test]
fn of_equal_files_the_last_does_not_go_with_the_directory_that_it_is_in() {
    let tree = grown();
    fs::create_dir_all(tree.path().join("zz/deep")).expect("directories");
    for name in ["one", "zz/deep/two"] {
        fs::write(tree.path().join(name), vec![9; 70_000]).expect("a file");
    }
    let paths = target_paths(tree.path());
    let mut browser = browser(tree.path());
    browser.press(Key::BackTab);
    with_report(&mut browser, Report::Duplicates);
    let root = tree.path().as_os_str().as_encoded_bytes().to_vec();
    let way = |names: &[&str]| -> Names {
        std::iter::once(root.clone()).chain(names.iter().map(|it| it.as_bytes().to_vec())).collect()
    };
    browser.chosen.insert(way(&["one"]));
    assert_eq!(targets(&browser, &paths).expect("one stays").len(), 1);
    for directory in [&["zz"][..], &["zz", "deep"]] {
        browser.chosen.insert(way(directory));
        let error = targets(&browser, &paths).expect_err("none stays").to_string();
        assert!(error.contains("no copy of") && error.contains("one would be"), "{error}");
        // Nor is anything else deleted from here.
        browser.chosen.remove(&way(&["one"]));
        let error = targets(&browser, &paths).expect_err("a directory").to_string();
        assert!(error.contains("has no duplicates"), "{error}");
        browser.chosen = BTreeSet::from([way(&["one"])]);
    }
}

#[test]
fn what_grows_is_gone_through_and_keeps_its_place_when_it_has_grown() {
    let tree = grown();
    let live = Live::default();
    let name = tree.path().as_os_str().as_encoded_bytes().to_vec();
    let order = (Order::Size, false);
    let growing = Growing::new(live.clone());
    let mut browser = Browser::of_growing(growing, Some(&name), Measure::Apparent, order);
    assert!(shown(&mut browser, 60, 8)[1].contains("nothing is known yet"));
    browser.press(Key::Tab);
    assert!(browser.tab == 0 && browser.message.contains("has ended"), "{}", browser.message);
    let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
    let what = What::All;
    let walk =
        Walk::begin(what, vec![tree.path().to_owned()], options, false, live).expect("a thread");
    while !walk.is_done() {
        browser.progress = walk.progress();
        browser.grow();
        shown(&mut browser, 80, 8);
        thread::yield_now();
    }
    let scan = walk.finish().expect("a scan");
    press(&mut browser, "l");
    browser.replace(scan);
    browser.press(Key::Home);
    // One may have entered `large` already, or not.
    assert!(matches!(names(&browser)[0], "large" | "inner"), "{:?}", browser.rows);
    assert_eq!(press(&mut browser, "q"), Wish::Quit);
}

/// The terminal is the user's again, in the state that it was in, before the panic says what it has
/// to say.
#[cfg(target_os = "linux")]
#[test]
fn a_panic_restores_the_terminal() {
    const HERE: &str = "POACH_TEST_PANICS_ON_A_TERMINAL";
    if std::env::var_os(HERE).is_some() {
        let mut screen = Screen::open().expect("a terminal");
        screen.say("beforehand").expect("it is drawn");
        panic!("on purpose");
    }
    let version = std::process::Command::new("script").arg("--version").output();
    if version.is_err() {
        return;
    }
    let (own, place) =
        (std::env::current_exe().expect("a program"), tempfile::tempdir().expect("ours"));
    let (own, at) = (own.display(), place.path().display());
    let line = format!(
        "stty cols 80 rows 24; stty -a > '{at}/before'; {HERE}=1 '{own}' --exact scan::browse::tests::a_panic_restores_the_terminal \
         --nocapture; stty -a > '{at}/after'"
    );
    let out = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm-256color")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it starts");
    let shown = String::from_utf8_lossy(&out.stdout).into_owned();
    let found = |text| shown.find(text).unwrap_or_else(|| panic!("{text:?} in {shown:?}"));
    let order =
        [found("\x1b[?1049h"), found("beforehand"), found("\x1b[?1049l"), found("on purpose")];
    assert!(order.is_sorted(), "{shown:?}");
    assert!(found("\x1b[?25l") < shown.rfind("\x1b[?25h").expect("a cursor"), "{shown:?}");
    let state = |name| fs::read_to_string(place.path().join(name)).expect("stty wrote it");
    assert_eq!(state("before"), state("after"));
    assert!(state("before").contains(" icanon"), "{}", state("before"));
}

#[test]
fn a_search_says_whether_it_was_stopped_and_shows_what_it_has() {
    let tree = grown();
    let mut browser = browser(tree.path());
    for (stopped, said) in [(true, "stopped; no such name so far: q"), (false, "no such name: q")] {
        browser.show_found("q".to_owned(), Vec::new(), stopped);
        assert_eq!((&*browser.message, browser.found.is_some()), (said, false));
    }
    for (stopped, said) in [(true, "stopped; there may be more"), (false, "")] {
        let all = poach_scan::listing::find(&browser.scan, "y", &Control::new()).expect("text");
        browser.show_found("y".to_owned(), all, stopped);
        assert_eq!((&*browser.message, browser.found.is_some()), (said, true));
    }
}

#[test]
fn an_export_is_gone_through_before_it_is_read_whole_and_after() {
    let tree = grown();
    let scan = scanned(&[tree.path()]);
    let mut export = Vec::new();
    poach_scan::document::ncdu_binary(&scan, &mut export).expect("a vector can be written to");
    let stored = |export: Vec<u8>| {
        let from = io::Cursor::new(export);
        let stored = Stored::open(from, u64::MAX).expect("sound").expect("an export");
        Browser::of_stored(stored, Measure::Apparent, (Order::Size, false))
    };
    let mut browser = stored(export.clone());
    assert_eq!((names(&browser), browser.path()), (vec!["large", "z", ODD], scan_path(&tree)));
    assert_eq!(browser.whole(), scan.totals.apparent_bytes);
    press(&mut browser, "l");
    assert_eq!(names(&browser), ["inner", "y"]);
    assert!(browser.whole() > 309_000 && browser.rows[1].value == 9000);
    press(&mut browser, "l");
    assert_eq!(names(&browser), ["x"]);
    // Not into a file, and not out of the root.
    press(&mut browser, "l ");
    assert_eq!(browser.targets(), [names_below(&tree, &["large", "inner", "x"])]);
    press(&mut browser, "hhh");
    assert_eq!(names(&browser)[browser.marked], "large");
    press(&mut browser, "n");
    assert_eq!(names(&browser), [ODD, "large", "z"]);
    press(&mut browser, "/Z");
    assert_eq!(names(&browser), ["z"]);
    browser.press(Key::Escape);
    press(&mut browser, "s");
    press(&mut browser, "gl");
    // Then all of it is read, and one stands where one stood.
    assert_eq!(browser.press(Key::Tab), Wish::Report(Report::ALL[0]));
    browser.replace(poach_scan::document::read(&export[..]).expect("an export"));
    browser.press(Key::Escape);
    assert_eq!(names(&browser), ["inner", "y"]);
    assert_eq!(browser.chosen.len(), 1);
}

fn scan_path(tree: &tempfile::TempDir) -> Vec<u8> {
    tree.path().as_os_str().as_encoded_bytes().to_vec()
}

fn names_below(tree: &tempfile::TempDir, names: &[&str]) -> Names {
    let names = names.iter().map(|name| name.as_bytes().to_vec());
    std::iter::once(scan_path(tree)).chain(names).collect()
}

#[test]
fn what_was_found_is_listed_by_path_and_held_by_name() {
    let tree = grown();
    for name in ["a/x", "large/x"] {
        fs::create_dir_all(tree.path().join(name)).expect("a directory");
    }
    let mut browser = browser(tree.path());
    let all = poach_scan::listing::find(&browser.scan, "x", &Control::new()).expect("text");
    browser.show_found("x".to_owned(), all, false);
    let paths = |browser: &Browser| -> Vec<String> {
        let name = |row| String::from_utf8_lossy(&browser.shown_name(row)).replace('\\', "/");
        browser.rows.iter().map(name).collect()
    };
    assert!(browser.rows.iter().all(|row| row.name == b"x"));
    assert_eq!(paths(&browser), ["large/inner/x", "a/x", "large/x"]);
    press(&mut browser, "n");
    assert_eq!(paths(&browser), ["a/x", "large/inner/x", "large/x"]);
    assert_eq!(browser.marked, 1, "the mark stays at its entry");
    press(&mut browser, "n");
    assert_eq!(paths(&browser), ["large/x", "large/inner/x", "a/x"]);
    press(&mut browser, "g ");
    assert_eq!(browser.targets(), [names_below(&tree, &["large", "x"])]);
    assert_eq!(browser.rows.iter().map(|it| it.chosen).collect::<Vec<_>>(), [true, false, false]);
    // A part of the path is searched for.
    press(&mut browser, "/INNER");
    assert_eq!(paths(&browser), ["large/inner/x"]);
}
