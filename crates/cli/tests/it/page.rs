//! The page of `poach scan --html`, by what it shows in a browser: headless Chromium, where it is
//! installed.
//!
//! A copy of the page gets a script that does what a user does, by events, and leaves what is to be
//! seen in the document, which Chromium then prints.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::rig;

const POACH: &str = env!("CARGO_BIN_EXE_poach");

/// What a user does and sees.
const USER: &str = r##"
const press = (key, target = document.body) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const type = (text) => {
  const search = document.getElementById("search");
  search.value = text;
  search.dispatchEvent(new Event("input", { bubbles: true }));
};
const rows = () => [...document.querySelectorAll("#rows tr")].map((row) => [...row.cells].map((cell) => cell.innerText));
const path = () => document.getElementById("path").innerText;
const cells = () => [...document.querySelectorAll("#chart .cell")].map((cell) => {
  const box = cell.getBoundingClientRect();
  return { label: cell.dataset.label, area: box.width * box.height, dim: getComputedStyle(cell).opacity < 1 };
});
const chosen = () => document.querySelector('[aria-selected="true"]').cells[0].innerText;
const colour = () => getComputedStyle(document.body).backgroundColor;
"##;

fn has_chromium() -> bool {
    rig::has("chromium", "--version")
}

/// Chromium's document of a page, once it is loaded and time has passed.
fn dom(page: &Path, hash: &str, more: &[&str]) -> String {
    let profile = tempfile::tempdir().expect("a directory for the test");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
            "--window-size=1280,900",
        ])
        .args(more)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}{hash}", page.display()))
        .stderr(Stdio::null())
        .output()
        .expect("it is installed");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What `script` returns, run in the page after `USER`.
fn ask(page: &Path, hash: &str, script: &str) -> Value {
    let asking = page.with_extension("asking.html");
    let html = fs::read_to_string(page).expect("it was written");
    let script = format!(
        "<script>{USER} const answer = document.createElement('pre'); answer.id = 'answer'; \
         answer.textContent = encodeURIComponent(JSON.stringify((() => {{ {script} }})())); \
         document.body.append(answer);</script></body>"
    );
    let (before, after) = html.rsplit_once("</body>").expect("the page is whole");
    fs::write(&asking, [before, &script, after].concat()).expect("a file");
    let dom = dom(&asking, hash, &["--virtual-time-budget=2000"]);
    let answer = dom.rsplit_once("id=\"answer\">").expect("an answer").1;
    let encoded = answer.split_once("</pre>").expect("the end of the answer").0;
    let mut bytes = Vec::new();
    let mut rest = encoded.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let digits = std::str::from_utf8(&after[..2]).expect("two digits");
            bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal"));
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

fn write(page: &Path, arguments: &[&str]) {
    let mut command = Command::new(POACH);
    command.args(["scan", "-o", "/dev/null", "--html"]).arg(page).args(arguments);
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A tree of known lengths, with a name that would end the script.
fn grown() -> (tempfile::TempDir, std::path::PathBuf) {
    let place = tempfile::tempdir().expect("a directory for the test");
    let tree = place.path().join("tree");
    for directory in ["large/inner", "small", "none"] {
        fs::create_dir_all(tree.join(directory)).expect("a directory");
    }
    fs::write(tree.join("large/inner/one"), vec![1; 600_000]).expect("a file");
    fs::write(tree.join("large/two"), vec![1; 300_000]).expect("a file");
    fs::write(tree.join("small/three"), vec![1; 100_000]).expect("a file");
    let page = place.path().join("page.html");
    write(&page, &["--apparent-size", tree.to_str().expect("UTF-8")]);
    (place, page)
}

#[test]
fn the_table_and_the_charts_show_what_there_is() {
    if !has_chromium() {
        return;
    }
    let (_place, page) = grown();
    let seen = ask(
        &page,
        "",
        "return { rows: rows(), path: path(), totals: document.getElementById('totals').innerText, \
        note: document.getElementById('note').innerText, cells: cells(), title: document.title }",
    );
    let names: Vec<_> = seen["rows"].as_array().expect("rows").iter().map(|row| &row[0]).collect();
    assert_eq!(names, ["large/", "small/", "none/"]);
    assert_eq!(seen["rows"][0][1], "887 KiB");
    assert_eq!(seen["rows"][0][3], "3");
    assert!(seen["path"].as_str().is_some_and(|path| path.contains("/tree")), "{seen}");
    let totals = seen["totals"].as_str().expect("totals");
    assert!(totals.contains("5 directories") && totals.contains("3 files"), "{totals}");
    assert_eq!(seen["note"], "");
    assert!(seen["title"].as_str().is_some_and(|title| title.ends_with("/tree - poach scan")));
    // A file's cell is as large as the file is long, but for the frames of the directories around
    // it.
    let area = |name: &str| {
        let cells = seen["cells"].as_array().expect("cells").iter();
        let cell =
            cells.filter(|cell| cell["label"].as_str().is_some_and(|label| label.contains(name)));
        cell.map(|cell| cell["area"].as_f64().expect("a number")).next().expect("it is drawn")
    };
    let share = area("/two\n") / area("/small\n");
    assert!((2.2..3.6).contains(&share), "{share}");
    assert!(area("/large\n") > area("/inner\n") && area("/inner\n") > area("/one\n"));

    let sunburst = ask(&page, "#v=sunburst", "return cells().map((cell) => cell.label)");
    let labels: Vec<_> =
        sunburst.as_array().expect("arcs").iter().filter_map(Value::as_str).collect();
    for name in ["/large\n", "/inner\n", "/one\n", "/two\n", "/small\n", "/three\n"] {
        assert!(labels.iter().any(|label| label.contains(name)), "{name:?} in {labels:?}");
    }
}

#[test]
fn the_keyboard_goes_everywhere() {
    if !has_chromium() {
        return;
    }
    let (_place, page) = grown();
    let seen = ask(
        &page,
        "",
        r#"
        const seen = [];
        press("ArrowDown"); seen.push(chosen());
        press("Home"); press("Enter"); seen.push(path(), rows().map((row) => row[0]).join());
        press("Enter"); press("End"); seen.push(path(), chosen());
        press("Backspace"); seen.push(chosen());
        press("ArrowLeft"); seen.push(chosen());
        press("m"); seen.push(document.getElementById("size-head").innerText);
        press("m"); press("m");
        press("s"); seen.push(document.querySelector("svg").getAttribute("aria-label").split(" ")[0]);
        press("t"); seen.push(document.querySelector("svg").getAttribute("aria-label").split(" ")[0]);
        press("/"); seen.push(document.activeElement.id);
        type("TWO"); seen.push(rows().map((row) => row[0]).join(), cells().filter((cell) => !cell.dim).length);
        press("Enter", document.activeElement); seen.push(path(), chosen());
        type("nothing at all"); seen.push(document.getElementById("note").innerText);
        press("Escape"); seen.push(rows().length);
        const before = colour(); press("d"); seen.push(before !== colour());
        press("?"); seen.push(document.getElementById("keys").open);
        return seen;"#,
    );
    let seen: Vec<String> = seen
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
        .collect();
    let expected = [
        "small/",
        "large",
        "inner/,two",
        "inner",
        "one",
        "inner/",
        "large/",
        "Entries",
        "Sunburst",
        "Treemap",
        "search",
        "two",
        "1",
        "large",
        "two",
        "0 of the 8 entries of this page match.",
        "2",
        "true",
        "true",
    ];
    assert_eq!(seen.len(), expected.len(), "{seen:?}");
    for (at, (seen, expected)) in seen.iter().zip(expected).enumerate() {
        // A path ends in its size; the row of a search has the path below its name.
        let first = seen.lines().next().unwrap_or_default();
        let is_path = [1, 3, 13].contains(&at) && seen.contains(&format!("/{expected}"));
        assert!(is_path || first == expected, "{at}: {seen:?} where {expected:?} is expected");
    }
}

#[test]
fn no_name_is_more_than_text() {
    if !has_chromium() {
        return;
    }
    let place = tempfile::tempdir().expect("a directory for the test");
    let tree = place.path().join("tree<b>&amp;");
    fs::create_dir(&tree).expect("a directory");
    let names: [&[u8]; 7] = [
        b"<script>pwned()<",
        b"<img src=x onerror='pwned()'>",
        b"\"quotes\" and 'these' `${pwned()}`",
        b"new\nline \x1b[31m \x00"[..].split_last().expect("not empty").1,
        b"\xff\xfe",
        "\u{202e}gpj \u{2028}".as_bytes(),
        b"{{data}} <!-- ]]>",
    ];
    for (number, name) in names.iter().enumerate() {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::write(tree.join(name), vec![1; (9 - number) * 10_000]).expect("a file");
    }
    let inner = tree.join("<");
    fs::create_dir(&inner).expect("a directory");
    fs::write(inner.join("script><script>window.pwned = 1;<"), b"1").expect("a file");
    let page = place.path().join("page.html");
    write(&page, &[tree.to_str().expect("UTF-8")]);
    let seen = ask(
        &page,
        "",
        "return { rows: rows().map((row) => row[0]), pwned: typeof window.pwned, \
        scripts: document.scripts.length, images: document.images.length, title: document.title }",
    );
    assert_eq!((&seen["pwned"], &seen["images"]), (&"undefined".into(), &0.into()));
    assert_eq!(seen["scripts"], 3, "the data, the page's own, and this one");
    let expected = [
        "<script>pwned()<",
        "<img src=x onerror='pwned()'>",
        "\"quotes\" and 'these' `${pwned()}`",
        r"new\nline \e[31m",
        r"\xff\xfe",
        r"\u{202e}gpj \u{2028}",
        "{{data}} <!-- ]]>",
        "</",
    ];
    let rows: Vec<_> =
        seen["rows"].as_array().expect("rows").iter().filter_map(Value::as_str).collect();
    assert_eq!(rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>(), expected);
    assert!(seen["title"].as_str().is_some_and(|title| title.contains("tree<b>&amp;")), "{seen}");
}

#[test]
fn what_could_not_be_read_is_marked_and_listed() {
    if !has_chromium() {
        return;
    }
    let place = tempfile::tempdir().expect("a directory for the test");
    let [export, page] = ["export", "page.html"].map(|name| place.path().join(name));
    let text = r#"[1,2,{},[{"name":"/r"},[{"name":"closed","read_error":true,"dsize":4096}],
        {"name":"one","dsize":512,"ino":5,"hlnkc":true},{"name":"two","dsize":512,"ino":5,"hlnkc":true}]]"#;
    fs::write(&export, text).expect("a file");
    let mut command = Command::new(POACH);
    command.args(["scan", "-o", "/dev/null", "--html"]).arg(&page).arg("--import").arg(&export);
    assert_eq!(command.output().expect("the program starts").status.code(), Some(1));
    let seen = ask(
        &page,
        "",
        "document.getElementById('errors').open = true; \
        return [...rows().map((row) => row[0]), document.getElementById('errors').innerText, \
        document.querySelectorAll('#rows .where').length]",
    );
    let seen: Vec<String> =
        seen.as_array().expect("a list").iter().map(ToString::to_string).collect();
    assert!(seen[0].contains("closed/") && seen[0].contains("could not read"), "{seen:?}");
    assert!(seen[1].contains("one") && seen[2].contains("counted at another name"), "{seen:?}");
    assert!(seen[3].contains("1 could not be read") && seen[3].contains("/r/closed: "), "{seen:?}");
    assert_eq!(seen[4], "2");
}

#[test]
fn a_narrow_window_has_no_second_column_and_nothing_sticks_out() {
    if !has_chromium() {
        return;
    }
    let (_place, page) = grown();
    // A frame of 390 pixels, since a window of Chromium is wider.
    let seen = ask(
        &page,
        "",
        r#"
        document.documentElement.style.width = "390px";
        const style = [...document.styleSheets[0].cssRules].find((rule) => rule.media);
        for (const rule of style.cssRules) document.styleSheets[0].insertRule(rule.cssText, document.styleSheets[0].cssRules.length);
        dispatchEvent(new Event("resize"));
        const right = [...document.querySelectorAll("body *")].map((it) => it.getBoundingClientRect().right);
        return { right: Math.max(...right), columns: getComputedStyle(document.querySelector("main")).gridTemplateColumns }"#,
    );
    assert!(seen["right"].as_f64().is_some_and(|right| right <= 390.0), "{seen}");
    assert_eq!(
        seen["columns"].as_str().map(|columns| columns.split(' ').count()),
        Some(1),
        "{seen}"
    );
}

/// A million entries where `cargo xtask documents` asks, which prints the time; otherwise fewer.
#[test]
fn what_is_too_small_to_see_is_summed_up() {
    use std::fmt::Write as _;
    if !has_chromium() {
        return;
    }
    let directories = if std::env::var_os("POACH_NOTHING_LEFT_OUT").is_some() { 1000 } else { 60 };
    let place = tempfile::tempdir().expect("a directory for the test");
    let [export, page] = ["export", "page.html"].map(|name| place.path().join(name));
    let mut text = String::from("[1,2,{},[{\"name\":\"/many\"}");
    for directory in 0..directories {
        write!(text, ",[{{\"name\":\"d{directory}\",\"dsize\":4096,\"asize\":4096}}")
            .expect("a string");
        for file in 0..999 {
            let size = 4096 * (1 + (directory * 7 + file * 13) % 97);
            write!(text, ",{{\"name\":\"file-{file}.data\",\"asize\":{size},\"dsize\":{size}}}")
                .expect("a string");
        }
        text.push(']');
    }
    text.push_str("]]");
    fs::write(&export, text).expect("a file");
    write(&page, &["--import", export.to_str().expect("UTF-8")]);
    let bytes = fs::metadata(&page).expect("it was written").len();
    assert!(bytes < 4_000_000, "{bytes}");
    let seen = ask(
        &page,
        "",
        "press('Enter'); document.getElementById('more').click(); return rows().at(-1)[0]",
    );
    assert!(seen.as_str().is_some_and(|last| last.ends_with(" smaller entries")), "{seen}");
    let note = ask(&page, "", "return document.getElementById('note').innerText");
    let entries = 1 + 1000 * directories;
    let note = note.as_str().expect("a note").replace(',', "");
    assert!(note.contains(&format!("40001 largest of {entries} entries")), "{note}");

    // Without virtual time: the page's own clock, from when it was asked for until it was laid out.
    let dom = dom(&page, "", &[]);
    let shown = dom.split_once("data-shown=\"").expect("it was shown").1;
    let milliseconds = shown.split_once('"').expect("a number").0;
    let said = format!("{entries} entries, {bytes} bytes, shown after {milliseconds} ms\n");
    // Not by a macro, whose output the harness keeps to itself. Where stderr is closed there is
    // nobody to tell.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes());
}

/// The picture of the page in crates/scan/README.md. Chromium's versions draw differently, so it is
/// not compared; with `POACH_DRAW=1` it is drawn anew, from the sources of the crates.
#[test]
fn the_readme_has_a_picture_of_the_page() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let picture = crates.join("scan/screenshots/page.png");
    if std::env::var_os("POACH_DRAW").is_some() && has_chromium() {
        let place = tempfile::tempdir().expect("a directory for the test");
        let page = place.path().join("page.html");
        let output = Command::new(POACH)
            .args(["scan", "-o", "/dev/null", "--apparent-size", "crates", "--html"])
            .arg(&page)
            .current_dir(crates.join(".."))
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let status = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,620"])
            .arg("--virtual-time-budget=2000")
            .arg(format!("--screenshot={}", picture.display()))
            .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
            .arg(format!("file://{}", page.display()))
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("it is installed").success());
    }
    let bytes = fs::read(&picture).expect("the picture is there");
    assert!(bytes.starts_with(b"\x89PNG\r\n") && bytes.len() < 300_000, "{}", bytes.len());
    let readme = fs::read_to_string(crates.join("scan/README.md")).expect("a page");
    assert!(readme.contains("screenshots/page.png"));
}
