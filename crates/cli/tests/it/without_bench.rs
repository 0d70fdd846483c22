//! `poach bench` of a program that has no suites.

use std::process::Command;

/// Whatever is asked of it, one sentence says what to build.
#[test]
fn says_how_to_build_the_suites() {
    for arguments in [&[][..], &["--help"], &["fork-join", "--quick", "--rounds", "2"]] {
        let poach = env!("CARGO_BIN_EXE_poach");
        let output = Command::new(poach).arg("bench").args(arguments).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains("--features bench"), "{arguments:?}: {said}");
    }
}
