//! `poach measure` by its contract: what it says of bad input, and its documents.

use std::fs;
use std::process::Command;

fn poach(arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_poach")).arg("measure").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn profiles_that_cannot_be_used_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.txt");
    let path = path.to_str().unwrap();
    let (code, out, said) = poach(&["soak", "--profile", path]);
    assert_eq!((code, out.as_str()), (2, ""), "{said}");
    for (content, expected) in [
        (&b"hello\n"[..], "no profile"),
        (b"\xff\xfe\x00", "no profile"),
        (b"poach-profile 1\nprocessor AuthenticAMD 26 2\n", "damaged"),
    ] {
        fs::write(path, content).unwrap();
        let (code, out, said) = poach(&["soak", "--profile", path]);
        assert_eq!((code, out.as_str()), (2, ""), "{said}");
        assert!(said.contains("--profile") && said.contains(expected), "{said}");
    }
    let processor = poach_memory::delta::Processor {
        maker: poach_memory::delta::Maker::Intel,
        family: 0x7e,
        model: 0xee,
    };
    let foreign = poach_memory::Profile::new(processor, 32, 33).unwrap();
    fs::write(path, foreign.to_string()).unwrap();
    let (code, _, said) = poach(&["soak", "--profile", path]);
    assert!(code == 2 && said.contains("family 0x7e model 0xee"), "{said}");
}

#[test]
fn files_that_are_no_programs_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("text");
    fs::write(&path, "hello\n").unwrap();
    for path in [path.to_str().unwrap(), "/nowhere/at/all", directory.path().to_str().unwrap()] {
        let (code, out, said) = poach(&["stores", path]);
        assert_eq!((code, out.as_str()), (2, ""), "{said}");
        assert!(said.contains(path), "{said}");
    }
}

#[test]
fn functions_that_are_not_in_a_program_are_refused_with_those_that_are_near() {
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let (code, out, said) = poach(&["stores", program, "--queue", "Queue::no_such_function"]);
    assert_eq!((code, out.as_str()), (2, ""), "{said}");
    assert!(said.contains("no function in it is named Queue::no_such_function"), "{said}");
    let (code, _, said) = poach(&["stores", program, "--queue", ""]);
    assert!(code == 2 && said.contains("--queue: the name of a function is missing"), "{said}");
    let (code, _, said) = poach(&["stores", program, "--queue", "nowhere::poach"]);
    let near = said.split("there are ").nth(1).unwrap_or_default();
    assert!(code == 2 && near.contains("it::measure::poach"), "{said}");
}

/// This program itself: it calls `poach`, which is a function like another.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_program_of_many_functions_is_analysed() {
    let program = std::env::current_exe().unwrap();
    let arguments = ["stores", program.to_str().unwrap(), "--queue", "it::measure::poach"];
    let (code, out, said) = poach(&arguments);
    assert_eq!(code, 0, "{said}");
    assert!(out.starts_with("it::measure::poach: ") && out.contains("x >= "), "{out}");
    let (code, out, said) = poach(&[&arguments[..], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &document["schema"]), (0, &1.into()), "{said}");
    let stores = &document["stores"];
    // A loop over arguments calls it again and again, with stores between.
    assert!(stores["calls"].as_u64().unwrap() > 3, "{stores}");
    assert!(stores["likely"]["stores"].as_u64().unwrap() > 0, "{stores}");
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn an_out_that_cannot_be_written_is_refused_before_measuring() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("below");
    let taken = tempfile::tempdir().unwrap();
    fs::create_dir(taken.path().join("measure.json")).unwrap();
    // Nobody, not even root, makes files in /proc.
    for out in [file.path(), &below, taken.path(), "/proc".as_ref(), "/proc/nowhere".as_ref()] {
        let (code, printed, said) = poach(&["all", "--out", out.to_str().unwrap()]);
        assert_eq!((code, printed.as_str()), (2, ""), "{out:?}: {said}");
        assert!(said.contains("--out") && said.contains(out.to_str().unwrap()), "{said}");
    }
    assert_eq!(fs::read_dir(taken.path()).unwrap().count(), 1);
}

/// Binds this thread, and so the programs that it starts, to one processor.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn on_one_processor() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let all = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor)).unwrap());
    sched_setaffinity(None, &one).unwrap();
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn one_processor_is_too_few_and_nothing_is_made() {
    on_one_processor();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("a/b");
    let profile = directory.path().join("profile.txt");
    if let Some(here) = poach_memory::delta::Processor::here() {
        let profiled = poach_memory::Profile::new(here, 64, 73).unwrap();
        fs::write(&profile, profiled.to_string()).unwrap();
        let (code, printed, said) = poach(&["soak", "--profile", profile.to_str().unwrap()]);
        assert_eq!((code, printed.as_str()), (1, ""), "{said}");
        assert!(said.contains("one processor only"), "{said}");
        fs::remove_file(&profile).unwrap();
    }
    for arguments in [&["all", "--out", out.to_str().unwrap()][..], &["litmus"]] {
        let (code, printed, said) = poach(arguments);
        assert_eq!((code, printed.as_str()), (1, ""), "{said}");
        assert!(said.contains("one processor only"), "{said}");
    }
    let (code, _, said) = poach(&["capacity", "--busy"]);
    assert!(code == 2 && said.contains("--busy"), "{said}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "something was left behind");
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn journals_of_other_kinds_are_refused_and_kept() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "my notes\n").unwrap();
    let (code, out, said) = poach(&["litmus", "--journal", path.to_str().unwrap()]);
    // A processor that is not in the table has no points to choose.
    let here = poach_memory::delta::Processor::here();
    let known = here.and_then(poach_memory::delta::Processor::documented).is_some();
    assert_eq!((code, out.as_str()), (if known { 2 } else { 1 }, ""), "{said}");
    assert!(!known || said.contains("--journal"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "my notes\n");
}

#[test]
fn senseless_numbers_are_usage() {
    for arguments in
        [&["litmus", "--runs", "0"][..], &["capacity", "--times", "none"], &["nothing"]]
    {
        assert_eq!(poach(arguments).0, 2, "{arguments:?}");
    }
    for (point, expected) in
        [("1", "STORES:DELTA"), ("1:0", "1 to 511"), ("1:2:two", "lines, words or one")]
    {
        let (code, _, said) = poach(&["litmus", "--point", point]);
        assert!(code == 2 && said.contains(expected), "{point}: {said}");
    }
}
