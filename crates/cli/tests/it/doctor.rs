//! `poach doctor` by its contract.

use std::process::Command;

fn doctor(arguments: &[&str], threads: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poach"));
    let output =
        command.arg("doctor").args(arguments).env("POACH_THREADS", threads).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_pool_that_is_refused_is_amiss_and_the_program_ends_with_one() {
    for value in ["0", "many", "-1"] {
        let (code, page, said) = doctor(&[], value);
        assert_eq!((code, said.as_str()), (1, ""));
        let pool = page.lines().find(|line| line.contains("  pool  ")).unwrap();
        assert!(pool.starts_with(" warn") && pool.contains(value), "{page}");
    }
    let (_, page, _) = doctor(&[], "3");
    assert!(page.contains("3 workers"), "{page}");
}

#[test]
fn a_document_has_every_finding_of_the_page() {
    // Two runs may differ in what they measure, so each is compared with what it says itself.
    let (code, page, _) = doctor(&[], "2");
    assert_eq!(code, i32::from(page.lines().any(|line| line.starts_with(" warn"))), "{page}");
    let (code, document, _) = doctor(&["--json"], "2");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let amiss = findings.iter().any(|finding| finding["state"] == "warn");
    assert_eq!(code, i32::from(amiss), "{document}");
    assert_eq!(findings.len() * 2, page.lines().count());
    for finding in findings {
        assert!(page.contains(finding["what"].as_str().unwrap()), "{page}");
    }
}

#[test]
fn what_it_does_not_take_is_refused() {
    let (code, page, said) = doctor(&["--yaml"], "2");
    assert_eq!((code, page.as_str()), (2, ""));
    assert!(said.contains("--yaml"), "{said}");
}
