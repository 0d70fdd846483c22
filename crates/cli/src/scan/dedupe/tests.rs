//! Events between the plan and the act.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use poach_scan::duplicates::{Copy, Group};
use poach_scan::report::Measure;
use poach_scan::{Control, Options, scan};

use super::plan::Plan;
use super::{Became, How, Keep};

/// Three equal files in directories of their own.
fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for name in ["a", "b", "c"] {
        fs::create_dir(tree.path().join(name)).expect("a directory");
        fs::write(tree.path().join(name).join("file"), "content").expect("a file");
    }
    tree
}

/// The outcomes of the second and third file if something happens after the plan, and whether the
/// run was interrupted.
fn after(
    tree: &Path,
    how: How,
    happens: impl FnOnce(&Path),
    mut each: impl FnMut(&Control),
) -> (Vec<Became>, bool) {
    let control = Control::new();
    let found = scan(&[tree.to_owned()], &Options::default(), &control).expect("threads");
    let copy = |name: &str| {
        let path = tree.join(name).join("file").into_os_string().into_encoded_bytes();
        Copy { path, disk_bytes: 4096, shared_bytes: 0 }
    };
    let group = Group::new(7, ["a", "b", "c"].map(copy).to_vec(), Measure::Disk);
    let plan = Plan::new(&found, &[group], std::iter::empty(), how, Keep::First);
    happens(tree);
    let mut became = Vec::new();
    let interrupted = plan.carry_out(&control, &mut |outcome| {
        became.extend(outcome.became.clone());
        each(&control);
        Ok(())
    });
    (became, interrupted.expect("it can be told"))
}

fn left(became: &Became) -> &str {
    match became {
        Became::Left(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_was_changed_since_is_left_even_if_its_time_is_set_back() {
    for how in [How::Link, How::Delete] {
        let tree = grown();
        let (became, _) = after(
            tree.path(),
            how,
            |tree| {
                let path = tree.join("b/file");
                let before = path.metadata().expect("ours").modified().expect("a time");
                fs::write(&path, "CONTENT").expect("ours");
                let file = fs::File::options().write(true).open(&path).expect("ours");
                file.set_modified(before).expect("ours");
            },
            |_| (),
        );
        assert!(left(&became[0]).contains("has changed since it was listed"), "{became:?}");
        assert_eq!(became[1], Became::Done);
        assert_eq!(fs::read(tree.path().join("b/file")).expect("it is there"), b"CONTENT");
    }
}

#[test]
fn what_took_the_place_of_a_file_or_a_directory_is_left() {
    type Happens = fn(&Path);
    let replaced: [(Happens, &str); 4] = [
        // An equal file, which is not the one that was seen.
        (
            |tree| {
                fs::rename(tree.join("b/file"), tree.join("aside")).expect("ours");
                fs::write(tree.join("b/file"), "content").expect("a file");
            },
            "has changed since it was listed",
        ),
        (
            |tree| {
                fs::rename(tree.join("b/file"), tree.join("aside")).expect("ours");
                symlink("../aside", tree.join("b/file")).expect("a link");
            },
            "",
        ),
        (
            |tree| {
                fs::rename(tree.join("b"), tree.join("aside")).expect("ours");
                symlink("aside", tree.join("b")).expect("a link");
            },
            "",
        ),
        (|tree| fs::remove_file(tree.join("b/file")).expect("ours"), "No such file"),
    ];
    for how in [How::Link, How::Delete, How::Reflink] {
        for (happens, why) in replaced {
            let tree = grown();
            let (became, _) = after(tree.path(), how, happens, |_| ());
            assert!(left(&became[0]).contains(why), "{became:?}");
            let aside = tree.path().join("aside");
            assert!(!aside.is_dir() || aside.join("file").exists());
        }
    }
}

#[test]
fn nothing_goes_once_the_one_that_stays_is_gone_or_another() {
    type Happens = fn(&Path);
    let happens: [Happens; 3] = [
        |tree| fs::remove_file(tree.join("a/file")).expect("ours"),
        |tree| fs::write(tree.join("a/file"), "CONTENT").expect("ours"),
        |tree| {
            fs::rename(tree.join("a/file"), tree.join("aside")).expect("ours");
            fs::write(tree.join("a/file"), "content").expect("a file");
        },
    ];
    for how in [How::Link, How::Delete] {
        for happens in happens {
            let tree = grown();
            let (became, _) = after(tree.path(), how, happens, |_| ());
            assert!(became.iter().all(|it| left(it).contains("the kept file cannot be opened")));
            for name in ["b/file", "c/file"] {
                let meta = tree.path().join(name).metadata().expect("it is there");
                assert_eq!(meta.nlink(), 1);
            }
        }
    }
}

#[test]
fn one_that_stays_and_is_changed_midway_keeps_the_rest() {
    let tree = grown();
    let stays = tree.path().join("a/file");
    let (became, _) = after(
        tree.path(),
        How::Delete,
        |_| (),
        |_| {
            fs::write(&stays, "CONTENT").expect("ours");
        },
    );
    assert_eq!(became[0], Became::Done);
    assert!(left(&became[1]).contains("no longer equals"), "{became:?}");
    assert!(!tree.path().join("b/file").exists() && tree.path().join("c/file").exists());
}

#[test]
fn it_ends_after_the_pair_in_hand() {
    let tree = grown();
    let (became, interrupted) = after(tree.path(), How::Link, |_| (), Control::stop);
    assert_eq!((became, interrupted), (vec![Became::Done], true));
    let names = |name: &str| tree.path().join(name).metadata().expect("it is there").nlink();
    assert_eq!((names("b/file"), names("c/file")), (2, 1));
}
