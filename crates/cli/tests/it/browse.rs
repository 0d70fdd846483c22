//! `poach scan -i` on a terminal of its own (by `script`): what is shown, what keys and the mouse
//! do, and that the terminal is left as it was.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::rig;

const POACH: &str = env!("CARGO_BIN_EXE_poach");

/// The most time that anything may take; it only ends a test that fails.
const LONG: Duration = Duration::from_secs(240);

/// A browser on a terminal.
struct Session {
    script: Child,
    keys: ChildStdin,
    out: Receiver<Vec<u8>>,
    /// Everything that was written to the terminal.
    shown: Vec<u8>,
    /// The screen of the terminal.
    screen: vt100::Parser,
    place: tempfile::TempDir,
}

/// The result of a session.
struct Ended {
    code: Option<i32>,
    shown: String,
}

impl Session {
    /// Begins a session of `size` columns and lines, and waits until the scan has ended. `None` if
    /// there is no program `script`.
    fn begin(size: (u16, u16), words: &[&str], path: &str) -> Option<Session> {
        let mut session = Session::begin_early(size, words, "", path)?;
        session.wait("by size");
        Some(session)
    }

    fn begin_early(
        size: (u16, u16),
        words: &[&str],
        environment: &str,
        path: &str,
    ) -> Option<Session> {
        let words = ["-i", &words.join(" ")].join(" ");
        Session::scan(size, &words, environment, path)
    }

    /// Begins any scan.
    fn scan(
        (columns, lines): (u16, u16),
        words: &str,
        environment: &str,
        path: &str,
    ) -> Option<Session> {
        if !rig::has("script", "--version") {
            return None;
        }
        let place = tempfile::tempdir().expect("a directory for the test");
        let at = place.path().display();
        let line = format!(
            "trap : INT; stty cols {columns} rows {lines}; tty > '{at}/tty'; stty -a > '{at}/before'; \
             {environment} sh -c 'echo $$ > {at}/pid; exec {POACH} scan --no-config {words} {path}'; \
             code=$?; [ $code = 148 ] && {{ echo > '{at}/stopped'; fg; code=$?; }}; \
             stty -a > '{at}/after'; exit $code"
        );
        let mut script = rig::program("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .spawn()
            .expect("it starts");
        let keys = script.stdin.take().expect("piped");
        let mut from = script.stdout.take().expect("piped");
        let (to, out) = mpsc::channel();
        thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = from.read(&mut part) {
                if to.send(part[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let screen = vt100::Parser::new(lines, columns, 0);
        Some(Session { script, keys, out, shown: Vec::new(), screen, place })
    }

    /// Waits until the terminal shows something.
    fn wait(&mut self, text: &str) {
        self.wait_until(text, |session| session.screen.screen().contents().contains(text));
    }

    fn wait_until(&mut self, what: &str, is_so: impl Fn(&Session) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            let left = LONG.saturating_sub(began.elapsed());
            if let Ok(part) = self.out.recv_timeout(left) {
                self.screen.process(&part);
                self.shown.extend(part);
            } else {
                let _ = self.script.kill();
                panic!("{what:?} is not shown: {}", self.screen.screen().contents());
            }
        }
    }

    /// Types keys.
    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Types keys and waits until something is shown.
    fn press_for(&mut self, keys: &str, text: &str) {
        self.press(keys);
        self.wait(text);
    }

    /// Gives the terminal another size.
    fn resize(&mut self, columns: u16, lines: u16) {
        let tty = fs::read_to_string(self.place.path().join("tty")).expect("the shell wrote it");
        let size = ["cols", &columns.to_string(), "rows", &lines.to_string()];
        let resized = Command::new("stty").args(["-F", tty.trim()]).args(size).status();
        assert!(resized.expect("stty is there").success());
        self.screen.screen_mut().set_size(lines, columns);
    }

    fn pid(&self) -> Pid {
        let pid = fs::read_to_string(self.place.path().join("pid")).expect("the shell wrote it");
        Pid::from_raw(pid.trim().parse().expect("a number")).expect("not 0")
    }

    /// Reads until the end of the program.
    fn finish(&mut self) -> Option<i32> {
        loop {
            match self.out.recv_timeout(LONG) {
                Ok(part) => {
                    self.screen.process(&part);
                    self.shown.extend(part);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.script.kill();
                    panic!("the program does not end: {}", self.screen.screen().contents());
                }
            }
        }
        self.script.wait().expect("it ends").code()
    }

    /// Waits for the end of the program. The terminal is what it was before.
    fn end(mut self) -> Ended {
        let code = self.finish();
        let state = |name| fs::read_to_string(self.place.path().join(name)).expect("stty wrote it");
        // A resized terminal is one on purpose.
        let modes = |name| state(name).lines().skip(1).collect::<Vec<_>>().join("\n");
        assert_eq!(modes("before"), modes("after"));
        let shown = String::from_utf8_lossy(&self.shown).into_owned();
        let (entered, left) = (shown.find("\x1b[?1049h"), shown.rfind("\x1b[?1049l"));
        assert!(entered.is_some() && entered < left, "{shown:?}");
        assert!(shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l"), "{shown:?}");
        assert!(shown.rfind("\x1b[?1000l") > shown.rfind("\x1b[?1000h"), "{shown:?}");
        Ended { code, shown }
    }
}

/// Three entries that differ in size: `b` is a directory with two files.
fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    fs::create_dir(tree.path().join("b")).expect("a directory");
    for (name, size) in [("b/large", 300_000), ("b/small", 5000), ("a", 90_000), ("c", 20_000)] {
        fs::write(tree.path().join(name), vec![1; size]).expect("a file");
    }
    tree
}

fn path(tree: &Path) -> &str {
    tree.to_str().expect("plain")
}

fn left(tree: &Path) -> [bool; 3] {
    ["a", "b", "c"].map(|name| tree.join(name).exists())
}

#[test]
fn help_resizing_and_the_mouse() {
    let tree = grown();
    let Some(mut session) = Session::begin((90, 30), &[], path(tree.path())) else { return };
    session.press_for("?", "to the trash, likewise");
    session.press_for("?", "1 of 3");
    // The wheel goes down a row, a click enters the one that is marked.
    session.press_for("\x1b[<65;3;3M", "2 of 3");
    session.press("\x1b[<0;3;2M");
    session.wait("1 of 3");
    session.press_for("\x1b[<0;3;2M", "large");
    // A click at the tab of the largest files: `tree  summary  largest-files`.
    session.press_for("\x1b[<0;17;29M", "Enter: go there");
    session.press_for("h", "by size");
    // Another size: the line at the bottom is drawn again, at another place.
    session.resize(70, 12);
    session.wait_until("a line at the bottom", |session| {
        let rows: Vec<String> = session.screen.screen().rows(0, 70).collect();
        rows[11].contains("by size")
    });
    session.press("q");
    let ended = session.end();
    assert_eq!(ended.code, Some(0), "{:?}", ended.shown);
}

/// The browser finds both when it goes on, often the change first.
#[test]
fn a_key_that_comes_with_a_change_of_size_is_heard() {
    let tree = grown();
    for _ in 0..8 {
        let Some(mut session) = Session::begin((90, 24), &[], path(tree.path())) else { return };
        let pid = session.pid();
        kill_process(pid, Signal::STOP).expect("it runs");
        session.resize(70, 12);
        session.press("q");
        kill_process(pid, Signal::CONT).expect("it is there");
        assert_eq!(session.end().code, Some(0));
    }
}

#[test]
fn several_are_deleted_after_a_list_of_them_and_nothing_else() {
    let tree = grown();
    let Some(mut session) = Session::begin((90, 24), &[], path(tree.path())) else { return };
    // The marked row alone, and a no.
    session.press_for("d", "Delete this for good?");
    session.press_for("n", "nothing was done");
    assert_eq!(left(tree.path()), [true; 3]);
    // The directory and the last one.
    session.press_for(" ", "1 chosen");
    session.press_for("G", "3 of 3");
    session.press_for(" ", "2 chosen");
    session.press_for("d", "Delete this for good?");
    session.wait("3 files and links");
    session.wait("large");
    session.press_for("y", "4 entries deleted");
    assert_eq!(left(tree.path()), [true, false, false]);
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

/// A program with few handles handles entries of more directories than it may have open.
#[test]
fn entries_of_many_directories_are_deleted_with_few_handles() {
    const DIRECTORIES: usize = 60;
    let tree = tempfile::tempdir().expect("a directory for the test");
    for number in 0..DIRECTORIES {
        let inner = tree.path().join(number.to_string());
        fs::create_dir(&inner).expect("a directory");
        for name in ["one", "two"] {
            fs::write(inner.join(name), "").expect("a file");
        }
    }
    let session = Session::begin_early((90, 24), &[], "ulimit -n 40;", path(tree.path()));
    let Some(mut session) = session else { return };
    session.wait("by size");
    // Into each directory, where all is chosen, and out again to the next.
    session.press(&"l*hj".repeat(DIRECTORIES));
    session.wait("120 chosen");
    session.press_for("d", "Delete this for good?");
    session.wait("120 files and links");
    session.press_for("y", "120 entries deleted");
    let left = fs::read_dir(tree.path()).expect("ours").count();
    assert_eq!((left, tree.path().join("7/one").exists()), (DIRECTORIES, false));
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

/// A user who types `dy` at once has not seen the list of entries.
#[test]
fn a_yes_that_was_typed_before_the_question_was_shown_is_none() {
    let tree = grown();
    let Some(mut session) = Session::begin((90, 24), &[], path(tree.path())) else { return };
    session.press_for("dy", "y was typed too early");
    assert_eq!(left(tree.path()), [true; 3]);
    session.press_for("y", "3 entries deleted");
    assert_eq!(left(tree.path()), [true, false, true]);
    // Any other key is heard: the question is answered by a no, and the next one is asked.
    session.press_for("dndy", "y was typed too early");
    session.press_for("n", "nothing was done");
    assert_eq!(left(tree.path()), [true, false, true]);
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

/// A terminal sends both at once if they come while the program is at work, as it sends a key with
/// Alt.
#[test]
fn a_key_right_behind_an_escape_is_heard_and_so_is_the_escape() {
    let tree = grown();
    let Some(mut session) = Session::begin((90, 30), &[], path(tree.path())) else { return };
    session.press_for("?", "to the trash, likewise");
    session.press_for("\x1bG", "3 of 3");
    // A control character is not its letter: no question.
    session.press_for("\x04\x19g", "1 of 3");
    // Escape asks whether to end.
    session.press("\x1by");
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn files_that_could_not_be_compared_are_told_of_at_the_end() {
    let tree = grown();
    for name in ["twin-1", "twin-2", "twin-3"] {
        fs::write(tree.path().join(name), vec![5; 70_000]).expect("a file");
    }
    let Some(mut session) = Session::begin((90, 24), &[], path(tree.path())) else { return };
    fs::remove_file(tree.path().join("twin-2")).expect("ours");
    session.press_for("\x1b[Z", "1 file is not compared");
    session.press("q");
    let ended = session.end();
    assert_eq!(ended.code, Some(1), "{:?}", ended.shown);
    let said = ended.shown.rsplit("\x1b[?1049l").next().expect("the end");
    assert!(said.contains("twin-2: "), "{said:?}");
}

#[test]
fn a_shell_begins_in_the_directory_and_a_pager_shows_the_file() {
    let tree = grown();
    let place = tempfile::tempdir().expect("a directory for the test");
    let at = place.path().display();
    rig::write_program(&place.path().join("shell"), "pwd > newcomer; echo It is seen; exit 3");
    rig::write_program(&place.path().join("less"), &format!("echo \"$*\" > '{at}/seen'"));
    let own = format!("SHELL='{at}/shell' PAGER='{at}/no-such -R' PATH='{at}':$PATH");
    let session = Session::begin_early((90, 24), &[], &own, path(tree.path()));
    let Some(mut session) = session else { return };
    session.wait("by size");
    session.press_for("l", "1 of 2");
    session.press_for("b", "newcomer");
    let shown = String::from_utf8_lossy(&session.shown).into_owned();
    assert!(shown.contains("It is seen") && shown.contains("`exit` returns"), "{shown:?}");
    let begun = fs::read_to_string(tree.path().join("b/newcomer")).expect("a note");
    assert_eq!(Path::new(begun.trim()), tree.path().join("b").canonicalize().expect("it is there"));
    // What PAGER names is not there.
    session.press_for("v", "shown by less");
    let seen = fs::read_to_string(place.path().join("seen")).expect("a note");
    assert_eq!(Path::new(seen.trim()), tree.path().join("b/large"));
    session.press_for("hv", "only files can be viewed");
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn a_browser_that_only_reads_deletes_moves_and_runs_nothing() {
    let tree = grown();
    let session = Session::begin((90, 24), &["--read-only"], path(tree.path()));
    let Some(mut session) = session else { return };
    for key in ["d", "x", "u", "b"] {
        session.press_for(key, "--read-only: nothing is deleted");
        session.press_for("j", "by size");
    }
    session.press("q");
    assert_eq!(session.end().code, Some(0));
    assert_eq!(left(tree.path()), [true; 3]);
}

#[test]
fn ctrl_z_suspends_it_and_it_draws_itself_when_it_goes_on() {
    let tree = grown();
    // A shell that has jobs: it has the program go on as soon as it was suspended.
    let session = Session::begin_early((90, 24), &[], "set -m;", path(tree.path()));
    let Some(mut session) = session else { return };
    session.wait("by size");
    session.press("\x1a");
    session.wait_until("it goes on", |session| {
        let shown = String::from_utf8_lossy(&session.shown).into_owned();
        shown.matches("\x1b[?1049h").count() == 2
    });
    session.wait("by size");
    assert!(session.place.path().join("stopped").exists());
    session.press_for("G", "3 of 3");
    // Something wrote over it.
    session.screen.process(b"\x1b[2Jnoise");
    session.press_for("\x0c", "3 of 3");
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn what_is_chosen_is_printed_at_the_end_while_the_browser_is_on_the_terminal() {
    let tree = grown();
    fs::write(tree.path().join("new\nline"), "").expect("a file");
    let place = tempfile::tempdir().expect("a directory for the test");
    let list = place.path().join("list");
    let words = format!("--print-chosen --print0 > '{}'", list.display());
    let Some(mut session) = Session::begin((90, 24), &[&words], path(tree.path())) else { return };
    session.press_for("G ", "1 chosen");
    session.press_for("g ", "2 chosen");
    // What lies in it goes with it.
    session.press_for("gl ", "3 chosen");
    session.press("q");
    assert_eq!(session.end().code, Some(0));
    let root = tree.path().display();
    let printed = fs::read_to_string(&list).expect("a list");
    assert_eq!(printed, format!("{root}/b\0{root}/new\nline\0"));
    // An end that nobody asked for chooses nothing.
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let session = Session::begin((90, 24), &[&words], path(tree.path()));
        let Some(mut session) = session else { return };
        session.press_for("G ", "1 chosen");
        kill_process(session.pid(), signal).expect("it runs");
        let ended = session.end();
        assert_eq!((ended.code, fs::read(&list).expect("a list")), (Some(1), Vec::new()));
        assert!(ended.shown.contains("interrupted: the selection is not printed"), "{signal:?}");
    }
    // Before the walk has ended, what was chosen is printed, and it is said.
    let mut session = Session::begin_early((90, 24), &["-x --threads 1", &words], "", "/");
    let session = session.as_mut().expect("there is a terminal");
    session.wait("1 of");
    session.press_for(" ", "1 chosen");
    session.press("q");
    let code = session.finish();
    let printed = fs::read_to_string(&list).expect("a list");
    assert!(printed.starts_with('/') && printed.ends_with('\0'), "{printed:?}");
    let said = String::from_utf8_lossy(&session.shown).contains("ended before everything was read");
    // It may have been over by then.
    assert!(if said { code == Some(1) } else { matches!(code, Some(0 | 1)) }, "{code:?}");
    // On the terminal, no control character of a name.
    let session = Session::begin((90, 24), &["--print-chosen"], path(tree.path()));
    let Some(mut session) = session else { return };
    session.press_for("G ", "1 chosen");
    session.press("q");
    let shown = session.end().shown;
    assert!(shown.ends_with(&format!("{root}/new\\nline\r\n")), "{shown:?}");
}

#[test]
fn all_of_the_tree_is_searched_and_what_is_found_is_gone_through_and_deleted() {
    let tree = grown();
    fs::create_dir(tree.path().join("b/Larger")).expect("a directory");
    let Some(mut session) = Session::begin((90, 24), &[], path(tree.path())) else { return };
    session.press_for("flar\r", "found: lar");
    session.wait("1 of 2");
    session.wait("b/large");
    session.wait("b/Larger/");
    // By apparent size, with the times of their last change.
    session.press_for("a", "apparent sizes");
    session.press_for("T", " 20");
    session.press_for("d", "Delete this for good?");
    session.press_for("y", "1 entry deleted");
    session.press_for("g", "1 of 1");
    assert!(!tree.path().join("b/large").exists() && tree.path().join("b/Larger").exists());
    // Into the directory that it lies in, and back to the tree.
    session.press_for("l", "by apparent");
    session.wait("small");
    session.press_for("f[ac]\r", "found: [ac]");
    session.wait("1 of 2");
    session.press_for("h", "small");
    session.press_for("fnone\r", "no such name: none");
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn a_binary_export_is_gone_through_at_once_and_read_whole_for_its_reports() {
    let (tree, place) = (grown(), tempfile::tempdir().expect("a directory for the test"));
    let export = place.path().join("export");
    let export = export.to_str().expect("plain");
    let written = Command::new(POACH)
        .args(["scan", "--no-config", "--format", "ncdu-binary", "-o", export])
        .arg(tree.path())
        .status();
    assert!(written.expect("it starts").success());
    let words = ["--import", export];
    let Some(mut session) = Session::begin((90, 24), &words, "") else { return };
    session.press_for("G", "3 of 3");
    session.press_for("gl", "small");
    session.press_for("d", "this is a document");
    session.press_for("\t", "entries a second");
    session.press_for("\x1b", "small");
    session.press_for("flar\r", "found: lar");
    session.press("q");
    assert_eq!(session.end().code, Some(0));
    // A block that was changed, and neither the root's nor the last.
    let mut bytes = fs::read(export).expect("an export");
    bytes[20] ^= 1;
    fs::write(export, bytes).expect("a file");
    let out = Command::new(POACH).args(["scan", "--no-config", "-i"]).args(words).output();
    let out = out.expect("it starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(1) && said.contains("damaged: "), "{said}");
}

#[test]
fn a_document_may_come_through_a_pipe() {
    let place = tempfile::tempdir().expect("a directory for the test");
    let pipe = place.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    // Ended from outside if it waits for the pipe to be written a second time.
    let browser = Command::new("timeout")
        .args(["120", POACH, "scan", "--no-config", "-i", "--import"])
        .arg(&pipe)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    fs::write(&pipe, "[1,2,{},[{\"name\":\"/r\"}]]").expect("it is read");
    let out = browser.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("it needs a terminal"), "{:?}: {said}", out.status);
}

#[test]
fn what_goes_to_the_trash_comes_back() {
    let tree = grown();
    let data = tree.path().join("data");
    fs::create_dir(&data).expect("a directory");
    let environment = format!("XDG_DATA_HOME={}", data.display());
    let shown = tree.path().join("b");
    let Some(mut session) = Session::begin_early((90, 24), &[], &environment, path(&shown)) else {
        return;
    };
    session.wait("by size");
    session.press_for("x", "Move this to the trash?");
    session.press_for("y", "1 entry moved to the trash");
    let trash = data.join("Trash");
    assert!(!shown.join("large").exists() && trash.join("files/large").exists());
    let info = fs::read_to_string(trash.join("info/large.trashinfo")).expect("a note");
    let path = shown.join("large");
    assert!(info.contains(&format!("Path={}\n", path.display())), "{info}");
    session.press_for("u", "1 brought back");
    assert!(path.exists() && !trash.join("info/large.trashinfo").exists());
    // It is in the list again.
    session.wait("large");
    session.press_for("u", "nothing to undo");
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn a_directory_is_looked_at_again_and_the_rest_is_not_walked() {
    let tree = grown();
    let Some(mut session) = Session::begin((90, 24), &[], path(tree.path())) else { return };
    fs::write(tree.path().join("b/newcomer"), vec![1; 900_000]).expect("a file");
    fs::write(tree.path().join("elsewhere"), vec![1; 900_000]).expect("a file");
    session.press_for("l", "1 of 2");
    session.press_for("h", "1 of 3");
    session.press("r");
    session.wait("1.2");
    session.press_for("l", "newcomer");
    session.press_for("h", "1 of 3");
    // All of it is another matter.
    session.press_for("R", "elsewhere");
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn a_path_is_copied_by_the_terminal_and_opened_by_the_desktop() {
    let tree = grown();
    let programs = tempfile::tempdir().expect("a directory for the test");
    let (opener, note) = (programs.path().join("xdg-open"), programs.path().join("opened"));
    rig::write_program(
        &opener,
        &format!("printf %s \"$1\" > '{0}.part'; mv '{0}.part' '{0}'", note.display()),
    );
    let environment = format!("PATH={}:$PATH", programs.path().display());
    let Some(mut session) = Session::begin_early((90, 24), &[], &environment, path(tree.path()))
    else {
        return;
    };
    session.wait("by size");
    session.press_for("y", "copied");
    assert!(String::from_utf8_lossy(&session.shown).contains("\x1b]52;c;"));
    session.press_for("o", "opened");
    let began = Instant::now();
    while !note.exists() && began.elapsed() < LONG {
        thread::yield_now();
    }
    assert_eq!(PathBuf::from(fs::read_to_string(&note).expect("a note")), tree.path().join("b"));
    session.press("q");
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn a_signal_and_ctrl_c_restore_the_terminal_during_the_scan_and_after() {
    let tree = grown();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let Some(mut session) = Session::begin((90, 24), &[], path(tree.path())) else { return };
        let pid = session.pid();
        kill_process(pid, signal).expect("it runs");
        let ended = session.end();
        assert_eq!(ended.code, Some(0), "{signal:?}: {:?}", ended.shown);
        // A walk of everything is not waited for, and may be over all the same.
        let Some(early) = Session::begin_early((90, 24), &["-x"], "", "/") else { return };
        session = early;
        session.wait("help");
        kill_process(session.pid(), signal).expect("it runs");
        let ended = session.end();
        assert!(matches!(ended.code, Some(0 | 1)), "{signal:?}: {:?}", ended.shown);
    }
    let Some(mut session) = Session::begin((90, 24), &[], path(tree.path())) else { return };
    session.press("\x03");
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn ctrl_c_while_links_are_followed_opens_no_browser_with_a_part_of_them() {
    // It would say that it needs a terminal.
    let mut scan = rig::program(POACH);
    scan.args(["scan", "--no-config", "-i", "-L", "/"]).stdin(Stdio::null());
    let scan = scan.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    rig::interrupt(&scan);
    let out = scan.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("interrupted: not every link was followed"), "{said}");
}

#[test]
fn a_browser_whose_terminal_is_gone_ends() {
    let tree = grown();
    // With the signal that says so, and without.
    for environment in ["", "trap '' HUP;"] {
        let Some(mut session) = Session::begin_early((90, 24), &[], environment, path(tree.path()))
        else {
            return;
        };
        session.wait("by size");
        let pid = session.pid();
        session.script.kill().expect("it runs");
        session.script.wait().expect("it ends");
        let began = Instant::now();
        while rig::runs(pid) {
            assert!(began.elapsed() < LONG, "{environment:?}: it goes on without its terminal");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_scan_is_gone_through_while_it_runs() {
    // Escape ends it with what it has, if it has not ended by itself.
    let Some(mut session) = Session::begin_early((90, 24), &["-x", "--threads", "1"], "", "/")
    else {
        return;
    };
    session.wait("scanning: ");
    session.press("\x1b");
    session.wait("by size");
    session.press("q");
    let ended = session.end();
    assert!(matches!(ended.code, Some(0 | 1)), "{:?}", ended.shown);
}

#[test]
fn ctrl_c_leaves_no_line_of_progress() {
    // By one thread, of everything: it takes longer than the line of progress waits to be shown, or
    // else there is none to leave.
    let words = "-x --threads 1 --top 5";
    let Some(mut session) = Session::scan((100, 40), words, "", "/") else { return };
    session.wait(" entries");
    // If it has ended already, nobody takes it.
    let _ = session.keys.write_all(b"\x03");
    assert!(matches!(session.finish(), Some(0 | 1)));
    let shown = session.screen.screen().contents();
    assert!(shown.contains("apparent"), "{shown}");
    // The line of progress has a spinner; the report has its rate in parentheses.
    let stale = |line: &&str| line.contains("/s") && !line.contains('(');
    assert_eq!(shown.lines().find(stale), None, "{shown}");
}

/// No two blocks are equal.
fn eight_mebibytes() -> Vec<u8> {
    (0..8_u32 << 20).map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Deletions and refreshes move shared blocks to another file: everything is scanned again.
#[test]
fn blocks_that_files_share_count_once_in_the_browser_and_after_a_deletion_too() {
    let place = tempfile::tempdir().expect("a directory for the test");
    for kind in ["btrfs", "xfs"] {
        let Some(mounted) = rig::Mounted::new(kind, place.path()) else { continue };
        let root = mounted.0.join("tree");
        fs::create_dir_all(root.join("d")).expect("a directory");
        let content = eight_mebibytes();
        fs::write(root.join("a"), &content).expect("a file");
        let copy = |from: &str, to: &str| {
            let paths = [root.join(from), root.join(to)];
            let copied = Command::new("cp").arg("--reflink=always").args(paths).status();
            assert!(copied.is_ok_and(|it| it.success()));
        };
        copy("a", "d/b");
        rustix::fs::sync();
        let path = root.display().to_string();
        let Some(mut session) = Session::begin((100, 24), &["--shared"], &path) else { return };
        let row = |session: &Session, size: &str, name: &str| {
            let contents = session.screen.screen().contents();
            contents.lines().any(|line| line.contains(size) && line.trim_end().ends_with(name))
        };
        session.wait("8.00 MiB shared");
        assert!(row(&session, "8.00 MiB", " a") && !row(&session, "8.00 MiB", " d/"));
        // The other file has them once the first is gone.
        session.press_for("d", "8.00 MiB of it stay");
        session.press("y");
        session.wait_until("d has them", |it| row(it, "8.00 MiB", " d/") && !row(it, "MiB", " a"));
        // A file that comes is found by a look at its directory alone.
        copy("d/b", "d/c");
        rustix::fs::sync();
        session.press("r");
        session.wait("8.00 MiB shared");
        assert!(row(&session, "8.00 MiB", " d/"));
        session.press("q");
        assert_eq!(session.end().code, Some(0));
    }
}

#[test]
fn what_other_files_share_is_said_to_stay_before_a_file_is_deleted() {
    let place = tempfile::tempdir().expect("a directory for the test");
    for kind in ["btrfs", "xfs"] {
        let Some(mounted) = rig::Mounted::new(kind, place.path()) else { continue };
        let root = mounted.0.join("tree");
        fs::create_dir_all(root.join("d")).expect("a directory");
        let content = eight_mebibytes();
        fs::write(root.join("d/a"), &content).expect("a file");
        fs::write(root.join("d/own"), &content[..2 << 20]).expect("a file");
        let paths = [root.join("d/a"), root.join("b")];
        let copied = Command::new("cp").arg("--reflink=always").args(paths).status();
        assert!(copied.is_ok_and(|it| it.success()));
        rustix::fs::sync();
        let path = root.display().to_string();
        let Some(mut session) = Session::begin((100, 24), &[], &path) else { return };
        session.press_for("d", "10.0 MiB on disk");
        session.wait("8.00 MiB of it stay: other files or snapshots share them");
        session.press_for("n", "nothing");
        // What is moved to the trash frees nothing at all.
        session.press_for("x", "10.0 MiB on disk");
        assert!(!session.screen.screen().contents().contains("of it stay"));
        session.press_for("n", "nothing");
        session.press("q");
        assert_eq!(session.end().code, Some(0));
    }
}
