use std::fs;
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::path::MAIN_SEPARATOR;

use super::*;

/// A link to a directory beside the one that it lies in.
#[cfg(unix)]
fn link(name: &str, at: &Path) {
    symlink(Path::new("..").join(name), at).expect("a link");
}

/// A junction, which every user may make. Wine 8 makes none: there it is a file.
#[cfg(windows)]
fn link(name: &str, at: &Path) {
    let within = at.parent().expect("it lies in a directory");
    let mut shell = std::process::Command::new("cmd");
    shell.args(["/c", "mklink", "/j"]).arg(at).arg(within.join("..").join(name));
    let _ = shell.output();
    if at.symlink_metadata().is_err() {
        fs::write(at, "content").expect("a file");
    }
}

fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    fs::create_dir_all(tree.path().join("goes/inner/most")).expect("directories");
    fs::create_dir(tree.path().join("stays")).expect("a directory");
    for name in ["goes/a", "goes/inner/b", "stays/c"] {
        fs::write(tree.path().join(name), "content").expect("a file");
    }
    link("../stays", &tree.path().join("goes/inner/link"));
    tree
}

fn target(root: &Path, names: &[&str]) -> Target {
    let names = names.iter().map(|name| name.as_bytes().to_vec());
    let own = root.as_os_str().as_encoded_bytes().to_vec();
    Target { root: root.to_owned(), names: std::iter::once(own).chain(names).collect(), twin: None }
}

fn planned(targets: &[Target]) -> io::Result<Plan> {
    Plan::new(Act::Delete, targets, &Control::new())
}

fn plan(root: &Path, names: &[&str]) -> io::Result<Plan> {
    planned(&[target(root, names)])
}

/// What it came to, and how many entries are gone.
fn carry_out(plan: Plan) -> (Outcome, u64) {
    let gone = AtomicU64::new(0);
    let outcome = plan.carry_out(&Control::new(), &gone);
    (outcome, gone.into_inner())
}

fn lines_of(plan: &Plan) -> Vec<String> {
    let mut lines = Lines::default();
    plan.tell(&mut lines);
    let all: Vec<String> = lines.from(0).map(str::to_owned).collect();
    assert_eq!((lines.len(), lines.from(1).count()), (all.len(), all.len() - 1));
    all
}

#[test]
fn what_was_listed_goes_and_no_link_is_followed() {
    let tree = grown();
    let plan_of_all = plan(tree.path(), &["goes"]).expect("a plan");
    assert_eq!((plan_of_all.files, plan_of_all.directories), (3, 3));
    let lines = lines_of(&plan_of_all);
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_start()).collect();
    let root = format!("{}{MAIN_SEPARATOR}goes/", tree.path().display());
    assert_eq!(lines, [&root, "a", "inner/", "b", "link", "most/"]);
    let (outcome, gone) = carry_out(plan_of_all);
    assert!(outcome.error.is_none() && gone == 6, "{outcome:?}");
    assert_eq!((outcome.went.len(), outcome.partly.len()), (1, 0));
    assert!(!tree.path().join("goes").exists() && tree.path().join("stays/c").exists());

    let tree = grown();
    let (_, gone) = carry_out(plan(tree.path(), &["goes", "inner", "link"]).expect("a plan"));
    assert_eq!((gone, tree.path().join("stays/c").exists()), (1, true));
    // Not through a link, either.
    assert!(plan(tree.path(), &["goes", "inner", "link", "c"]).is_err());
}

#[test]
fn several_go_in_their_order_until_one_is_not_what_it_was() {
    let tree = grown();
    let targets = [&["goes", "a"][..], &["goes", "inner"], &["stays", "c"]];
    let plan = planned(&targets.map(|names| target(tree.path(), names))).expect("a plan");
    assert_eq!((plan.files, plan.directories), (4, 2));
    fs::write(tree.path().join("goes/inner/new"), "").expect("a file");
    let (outcome, gone) = carry_out(plan);
    assert!(outcome.error.is_some(), "{outcome:?}");
    // What is in `inner` went, which stays for what is new in it.
    assert_eq!((gone, outcome.went.len()), (4, 1));
    assert_eq!(outcome.partly.iter().map(Vec::len).collect::<Vec<_>>(), [3]);
    assert!(tree.path().join("goes/inner/new").exists() && tree.path().join("stays/c").exists());
}

#[test]
fn what_has_changed_since_stays() {
    // Something was added.
    let tree = grown();
    let plan_of_all = plan(tree.path(), &["goes"]).expect("a plan");
    fs::write(tree.path().join("goes/inner/new"), "").expect("a file");
    assert!(carry_out(plan_of_all).0.error.is_some());
    assert!(tree.path().join("goes/inner/new").exists());

    // A directory became a link to another, and another directory.
    for replaced in [true, false] {
        let tree = grown();
        let plan_of_all = plan(tree.path(), &["goes"]).expect("a plan");
        let inner = tree.path().join("goes/inner");
        fs::rename(&inner, tree.path().join("aside")).expect("it is ours");
        if replaced {
            link("stays", &inner);
        } else {
            fs::rename(tree.path().join("stays"), &inner).expect("it is ours");
        }
        let (outcome, _) = carry_out(plan_of_all);
        assert!(outcome.error.is_some(), "{outcome:?}");
        let kept = if replaced { "stays/c" } else { "goes/inner/c" };
        assert!(tree.path().join(kept).exists() && tree.path().join("aside/b").exists());
    }

    // A directory is in another one of the same name, whether that was to go, too, or to stay.
    for (chosen, replaced, moved) in [
        (&["goes"][..], "goes/inner", "goes/inner/most"),
        (&["goes", "inner"], "goes", "goes/inner"),
    ] {
        let tree = grown();
        let plan = plan(tree.path(), chosen).expect("a plan");
        let (replaced, moved) = (tree.path().join(replaced), tree.path().join(moved));
        let aside = tree.path().join("aside");
        fs::rename(&replaced, &aside).expect("it is ours");
        fs::create_dir(&replaced).expect("a directory");
        let name = moved.file_name().expect("it has a name");
        fs::rename(aside.join(name), &moved).expect("it is ours");
        let (outcome, gone) = carry_out(plan);
        assert!(outcome.error.is_some() && gone == 0 && moved.exists(), "{gone}: {outcome:?}");
    }

    // A file became another one.
    let tree = grown();
    let plan_of_one = plan(tree.path(), &["goes", "a"]).expect("a plan");
    fs::rename(tree.path().join("stays/c"), tree.path().join("goes/a")).expect("it is ours");
    assert_eq!(carry_out(plan_of_one).1, 0);
    assert!(tree.path().join("goes/a").exists());

    // It was written to: its number is the same, as a new file's may be.
    let plan_of_one = plan(tree.path(), &["goes", "a"]).expect("a plan");
    fs::write(tree.path().join("goes/a"), "other content").expect("a file");
    assert_eq!(carry_out(plan_of_one).1, 0);
    assert!(tree.path().join("goes/a").exists());

    // As much was written to it, within the same second.
    let file = fs::File::options().write(true).open(tree.path().join("goes/a")).expect("ours");
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, 100);
    file.set_modified(time).expect("ours");
    let plan_of_one = plan(tree.path(), &["goes", "a"]).expect("a plan");
    file.set_modified(time + std::time::Duration::from_nanos(100)).expect("ours");
    assert_eq!(carry_out(plan_of_one).1, 0);
    file.set_modified(time).expect("ours");

    // It is longer, and its time was set back.
    let plan_of_one = plan(tree.path(), &["goes", "a"]).expect("a plan");
    file.set_len(99).expect("ours");
    file.set_modified(time).expect("ours");
    assert_eq!(carry_out(plan_of_one).1, 0);
    assert_eq!(carry_out(plan(tree.path(), &["goes", "a"]).expect("a plan")).1, 1);
}

#[test]
fn two_names_of_one_file_both_go() {
    let tree = grown();
    fs::hard_link(tree.path().join("goes/a"), tree.path().join("goes/z")).expect("a link");
    let (outcome, gone) = carry_out(plan(tree.path(), &["goes"]).expect("a plan"));
    assert!(outcome.error.is_none() && gone == 7, "{outcome:?}");
}

#[cfg(unix)]
#[test]
fn a_file_frees_its_bytes_with_the_last_of_its_names() {
    let tree = grown();
    let one = |name: &str| target(tree.path(), &["goes", name]);
    fs::write(tree.path().join("goes/a"), vec![1; 100_000]).expect("a file");
    // Some file systems give blocks once the content is written to the disk.
    fs::File::open(tree.path().join("goes/a")).and_then(|it| it.sync_all()).expect("ours");
    let alone = planned(&[one("a")]).expect("a plan").bytes;
    fs::hard_link(tree.path().join("goes/a"), tree.path().join("goes/other")).expect("a link");
    assert_eq!(planned(&[one("a")]).expect("a plan").bytes, 0);
    assert_eq!(planned(&[one("a"), one("other")]).expect("a plan").bytes, alone);
}

#[test]
fn a_given_path_is_not_deleted_nor_what_is_too_deep_and_a_stop_ends_it() {
    let tree = grown();
    assert!(plan(tree.path(), &[]).is_err());
    let control = Control::new();
    control.stop();
    let targets = [target(tree.path(), &["goes"])];
    assert!(Plan::new(Act::Delete, &targets, &control).is_err());
    let plan_of_all = planned(&targets).expect("a plan");
    assert!(plan_of_all.carry_out(&control, &AtomicU64::new(0)).error.is_some());
    assert!(tree.path().join("goes/inner/most").exists());

    let mut deep = tree.path().join("goes");
    for _ in 0..=DEEPEST {
        deep.push("d");
        fs::create_dir(&deep).expect("a directory");
    }
    let refused = planned(&targets).expect_err("too deep").to_string();
    assert!(refused.contains("levels"), "{refused}");
}

#[test]
fn however_much_goes_all_of_it_is_listed() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    // Wine takes ten times as long for each.
    let files = if cfg!(windows) { 50 } else { 500 };
    let mut deep = tree.path().join("goes");
    for level in 0..60 {
        fs::create_dir(&deep).expect("a directory");
        for number in 0..files {
            fs::write(deep.join(format!("{level}-{number}")), "").expect("a file");
        }
        deep.push("deep");
    }
    let plan = plan(tree.path(), &["goes"]).expect("a plan");
    let lines = lines_of(&plan);
    assert_eq!(lines.len() as u64, plan.files + plan.directories);
    assert_eq!(lines.len(), 60 * (files + 1));
    let last = format!("59-{}", files - 1);
    assert!(lines.iter().any(|line| line.trim_start() == last && line.len() < 60));
}

#[test]
fn a_copy_goes_only_if_it_equals_the_one_that_stays() {
    let tree = grown();
    let with_twin = |names: &[&str], twin: &[&str]| {
        let twin = target(tree.path(), twin);
        planned(&[Target { twin: Some((twin.root, twin.names)), ..target(tree.path(), names) }])
    };
    let plan = with_twin(&["goes", "a"], &["stays", "c"]).expect("a plan");
    let lines = lines_of(&plan);
    assert!(
        lines[0].contains(&format!("{MAIN_SEPARATOR}goes{MAIN_SEPARATOR}a  which equals "))
            && lines[0].contains(&format!("{MAIN_SEPARATOR}stays{MAIN_SEPARATOR}c")),
        "{lines:?}"
    );
    // Another name of the same file is no copy, and keeps its name.
    fs::hard_link(tree.path().join("goes/a"), tree.path().join("stays/a")).expect("a link");
    let (outcome, gone) = carry_out(with_twin(&["goes", "a"], &["stays", "a"]).expect("a plan"));
    let error = outcome.error.expect("it is one file").to_string();
    assert!(gone == 0 && error.contains("it is the same file as"), "{error}");
    fs::remove_file(tree.path().join("stays/a")).expect("ours");
    let plan = with_twin(&["goes", "a"], &["stays", "c"]).expect("a plan");
    // One byte differs, at the same length.
    fs::write(tree.path().join("stays/c"), "cOntent").expect("a file");
    let (outcome, gone) = carry_out(plan);
    let said = outcome.error.expect("they differ").to_string();
    assert!(gone == 0 && said.contains("does not equal"), "{said}");
    fs::write(tree.path().join("stays/c"), "content").expect("a file");
    // Another name of one file is no copy of it, and neither is a link to it.
    fs::hard_link(tree.path().join("goes/a"), tree.path().join("same")).expect("a link");
    assert_eq!(carry_out(with_twin(&["goes", "a"], &["same"]).expect("a plan")).1, 0);
    #[cfg(unix)]
    {
        symlink("stays/c", tree.path().join("link")).expect("a link");
        assert_eq!(carry_out(with_twin(&["goes", "a"], &["link"]).expect("a plan")).1, 0);
    }
    assert!(with_twin(&["goes", "a"], &["no", "such"]).is_err());
    assert_eq!(carry_out(with_twin(&["goes", "a"], &["stays", "c"]).expect("a plan")).1, 1);
    assert!(!tree.path().join("goes/a").exists() && tree.path().join("stays/c").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_replaced_does_not_go_to_the_trash() {
    let tree = grown();
    let targets = [target(tree.path(), &["goes", "a"])];
    let plan = Plan::new(Act::Trash, &targets, &Control::new()).expect("a plan");
    fs::rename(tree.path().join("stays/c"), tree.path().join("goes/a")).expect("ours");
    let (outcome, gone) = carry_out(plan);
    assert!(outcome.error.is_some() && outcome.trashed.is_empty() && gone == 0, "{outcome:?}");
    assert!(tree.path().join("goes/a").exists());
}

#[cfg(not(target_os = "linux"))]
#[test]
fn where_there_is_no_trash_it_is_said_before_anything_is_asked() {
    let tree = grown();
    let targets = [target(tree.path(), &["goes", "a"])];
    let said = Plan::new(Act::Trash, &targets, &Control::new()).expect_err("no trash").to_string();
    assert!(said.contains("no trash that poach can use"), "{said}");
}

#[cfg(windows)]
#[test]
fn what_another_program_has_to_itself_stays() {
    use std::os::windows::fs::OpenOptionsExt as _;
    let tree = grown();
    let plan_of_one = plan(tree.path(), &["goes", "a"]).expect("a plan");
    // Nobody else may open it.
    let held = fs::File::options().read(true).share_mode(0).open(tree.path().join("goes/a"));
    let held = held.expect("it is ours");
    let (outcome, gone) = carry_out(plan_of_one);
    assert!(outcome.error.is_some() && gone == 0, "{outcome:?}");
    drop(held);
    assert_eq!(carry_out(plan(tree.path(), &["goes", "a"]).expect("a plan")).1, 1);
    assert!(!tree.path().join("goes/a").exists());
}

/// A symbolic link of the system below Wine, which Wine follows wherever it is opened: it is
/// refused, and what it leads to stays. On Windows there is no such system, and the junction that
/// [`grown`] made is removed by other tests.
#[cfg(windows)]
#[test]
fn a_link_that_is_followed_all_the_same_is_refused() {
    let tree = grown();
    let inner = tree.path().join("goes/inner");
    let mut shell = std::process::Command::new("cmd");
    shell.args(["/c", "start", "/wait", "/d"]).arg(&inner);
    let _ = shell.args(["/unix", "/bin/ln", "-s", "../../stays", "below"]).output();
    if inner.join("below").symlink_metadata().is_err() {
        return;
    }
    for names in [&["goes"][..], &["goes", "inner", "below"]] {
        let said = plan(tree.path(), names).expect_err("a link").to_string();
        assert!(said.contains("below is a link"), "{said}");
    }
    assert!(tree.path().join("stays/c").exists());
    let mut shell = std::process::Command::new("cmd");
    shell.args(["/c", "start", "/wait", "/d"]).arg(&inner);
    let _ = shell.args(["/unix", "/bin/rm", "below"]).output();
    assert!(tree.path().join("stays/c").exists());
}

/// A mount, as long as this lives.
#[cfg(target_os = "linux")]
struct Mounted(PathBuf);

#[cfg(target_os = "linux")]
impl Mounted {
    /// Mounts something, if this is root and the system can. If not, says why.
    fn new(words: &[&str], at: &Path) -> Option<Mounted> {
        use std::io::Write as _;
        let mounted = std::process::Command::new("mount").args(words).arg(at).output();
        let mounted = mounted.is_ok_and(|it| it.status.success());
        if !mounted {
            let _ = writeln!(io::stderr(), "left out: nothing can be mounted here");
        }
        mounted.then(|| Mounted(at.to_owned()))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_mount_of_the_same_file_system_is_not_emptied() {
    let tree = grown();
    let stays = tree.path().join("stays");
    let at = tree.path().join("goes/inner/most");
    let Some(_mounted) = Mounted::new(&["--bind", stays.to_str().expect("plain")], &at) else {
        return;
    };
    for names in [&["goes"][..], &["goes", "inner", "most"]] {
        let said = plan(tree.path(), names).expect_err("a mount").to_string();
        assert!(said.contains("is mounted in it"), "{said}");
    }
    assert!(stays.join("c").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn one_file_that_two_mounts_show_is_no_copy_of_itself() {
    for (goes, stays) in [("upper", "merged"), ("merged", "upper")] {
        let tree = tempfile::tempdir().expect("a directory for the test");
        for name in ["lower", "upper", "work", "merged"] {
            fs::create_dir(tree.path().join(name)).expect("a directory");
        }
        let at = tree.path().display();
        let options = format!("lowerdir={at}/lower,upperdir={at}/upper,workdir={at}/work");
        let words = ["-t", "overlay", "overlay", "-o", &options];
        let Some(_mounted) = Mounted::new(&words, &tree.path().join("merged")) else { return };
        fs::write(tree.path().join("upper/f"), "content").expect("a file");
        let twin = target(tree.path(), &[stays, "f"]);
        let twin = Some((twin.root, twin.names));
        let copy = Target { twin, ..target(tree.path(), &[goes, "f"]) };
        let (outcome, gone) = carry_out(planned(&[copy]).expect("a plan"));
        let said = outcome.error.expect("it is one file").to_string();
        assert!(gone == 0 && said.contains("which stays"), "{said}");
        // The overlay may remember that the name was gone.
        let upper = tree.path().join("upper");
        assert_eq!(fs::read(upper.join("f")).expect("it is there"), b"content");
        assert_eq!(fs::read_dir(upper).expect("ours").count(), 1);
    }
}

#[cfg(unix)]
#[test]
fn a_file_whose_time_was_set_back_is_not_what_was_listed() {
    let tree = grown();
    let at = tree.path().join("goes/a");
    for (name, act) in [("a", Act::Delete), ("b", Act::Delete), ("a", Act::Trash)] {
        if act == Act::Trash && !trash::IS_THERE {
            continue;
        }
        // One name of two makes no difference.
        if name == "b" {
            fs::hard_link(&at, tree.path().join("goes/b")).expect("a link");
        }
        let targets = [target(tree.path(), &["goes", name])];
        let plan = Plan::new(act, &targets, &Control::new()).expect("a plan");
        let modified = at.metadata().and_then(|it| it.modified()).expect("ours");
        fs::write(&at, "CONTENT").expect("a file");
        let file = fs::File::options().write(true).open(&at).expect("ours");
        file.set_modified(modified).expect("ours");
        let (outcome, gone) = carry_out(plan);
        let said = outcome.error.expect("it was written to").to_string();
        assert!(gone == 0 && said.contains("has changed since it was listed"), "{said}");
        assert_eq!(fs::read(tree.path().join("goes").join(name)).expect("it stays"), b"CONTENT");
    }
    // What goes with the first of its names changes the others, and they go, too.
    fs::hard_link(&at, tree.path().join("goes/inner/c")).expect("a link");
    let names = [&["goes", "a"][..], &["goes", "b"], &["goes", "inner"]];
    let targets = names.map(|names| target(tree.path(), names));
    let plan = planned(&targets).expect("a plan");
    assert_eq!((plan.files, plan.bytes > 0), (5, true));
    let (outcome, gone) = carry_out(plan);
    assert!(outcome.error.is_none() && gone == 7, "{outcome:?}");
}

#[cfg(unix)]
#[test]
fn nothing_goes_before_what_stays_is_written_to_its_disk() {
    let tree = grown();
    fs::write(tree.path().join("goes/b"), "content").expect("a file");
    let copies = || {
        let stays = target(tree.path(), &["stays", "c"]);
        let copy = |name| Target {
            twin: Some((stays.root.clone(), stays.names.clone())),
            ..target(tree.path(), &["goes", name])
        };
        planned(&["a", "b"].map(copy)).expect("a plan")
    };
    let twin = |plan: &Plan| {
        let twins = plan.groups.iter().flat_map(|it| &it.chosen);
        let twins: Vec<_> = twins.filter_map(|it| it.twin.as_ref()).collect();
        assert!(twins.len() == 2 && Arc::ptr_eq(twins[0], twins[1]), "they have one to stay");
        Arc::clone(twins[0])
    };
    // What is open for its name alone cannot be written to a disk, and a disk tells of an error
    // once.
    let plan = copies();
    let stays = twin(&plan);
    #[cfg(target_os = "linux")]
    let file = {
        use rustix::fs::{Mode, OFlags, open};
        let file = open(tree.path().join("stays/c"), OFlags::PATH, Mode::empty());
        fs::File::from(file.expect("ours"))
    };
    #[cfg(not(target_os = "linux"))]
    let file = fs::File::open("/dev/null").expect("a device");
    let (_, identity) = {
        let (parent, within) = Parent::new(tree.path(), &stays.names[..2]).expect("ours");
        drop(parent);
        item::open_file(&within, &stays.name).expect("ours")
    };
    stays.sync(&file, identity).expect_err("it cannot be written");
    let (outcome, gone) = carry_out(plan);
    let said = outcome.error.expect("it was not written").to_string();
    assert!(gone == 0 && said.contains("could not be written to its disk"), "{said}");
    // What has changed since it was written is not written.
    let plan = copies();
    let stays = twin(&plan);
    stays
        .sync(&fs::File::open(tree.path().join("stays/c")).expect("ours"), identity)
        .expect("a disk");
    fs::write(tree.path().join("stays/c"), "content").expect("a file");
    let (outcome, gone) = carry_out(plan);
    let said = outcome.error.expect("it was written to").to_string();
    assert!(gone == 0 && said.contains("has changed"), "{said}");
    let plan = copies();
    let stays = twin(&plan);
    assert_eq!(carry_out(plan).1, 2);
    assert!(matches!(stays.synced.get(), Some(Ok(_))), "{stays:?}");
}
