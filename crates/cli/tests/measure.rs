//! `poach measure` by its contract: what it says of bad input, and its documents.

use std::fs;

use assert_cmd::Command;

fn poach(arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::cargo_bin("poach").unwrap().arg("measure").args(arguments).output().unwrap();
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
    for (content, expected) in
        [("hello\n", "no profile"), ("poach-profile 1\nprocessor AuthenticAMD 26 2\n", "damaged")]
    {
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
fn an_out_that_is_a_file_is_refused_before_measuring() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (code, out, said) = poach(&["all", "--out", file.path().to_str().unwrap()]);
    assert!(code != 0 && out.is_empty() && !said.is_empty(), "{code} {said}");
}

#[test]
fn senseless_numbers_are_usage() {
    for arguments in
        [&["litmus", "--runs", "0"][..], &["capacity", "--times", "none"], &["nothing"]]
    {
        assert_eq!(poach(arguments).0, 2, "{arguments:?}");
    }
}
