//! `poach check` by its contract: verdicts, exit codes, counterexamples, and what it says of what
//! cannot be explored.

use std::fs;
use std::process::Command;

use serde_json::Value;

#[cfg(target_os = "linux")]
use crate::rig;

fn poach(arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_poach")).arg("check").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn document(arguments: &[&str]) -> (i32, Value) {
    let (code, out, said) = poach(&[arguments, &["--json"]].concat());
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("no document: {out}{said}")))
}

#[test]
fn at_the_bound_it_is_clean_and_one_below_it_is_not() {
    let (code, found) = document(&["ff-cl", "--store-buffer", "2"]);
    assert_eq!((code, &found["verdict"], &found["delta"]), (0, &"clean".into(), &2.into()));
    assert_eq!(found["complete"], true);
    let (code, found) = document(&["ff-cl", "--store-buffer", "2", "--delta", "1"]);
    assert_eq!((code, &found["verdict"]), (1, &"violation".into()));
    assert!(found["runs"][0]["why"].as_str().unwrap().contains("taken twice"), "{found}");
}

#[test]
fn a_counterexample_is_drawn_and_can_be_had_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("race.svg");
    let svg = path.to_str().unwrap();
    for scene in ["drain", "brief"] {
        let queue = ["unfenced", "--scene", scene];
        let (code, out, said) = poach(&[&queue[..], &["--svg", svg]].concat());
        assert_eq!((code, said.as_str()), (1, ""), "{out}");
        for column in ["owner", "thief 1", "memory", "taken twice"] {
            assert!(out.contains(column), "{out}");
        }
        let drawn = fs::read_to_string(&path).unwrap();
        assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"), "{drawn}");
        let choices = out.lines().find_map(|line| line.trim().strip_prefix("choices: ")).unwrap();
        let (code, again) = document(&[&queue[..], &["--replay", choices]].concat());
        assert_eq!((code, &again["verdict"]), (1, &"violation".into()), "{again}");
        assert_eq!(again["runs"][0]["choices"], choices);
    }
}

/// The words of a queue have names by the order in which the queue makes them: a new word would
/// move them all.
#[test]
fn the_words_of_a_counterexample_are_those_of_the_source() {
    let (_, out, _) = poach(&["chase-lev", "--policy", "unfenced", "--tasks", "2"]);
    assert!(out.contains("tail := 1") && out.contains("cas head: 1 -> 2"), "{out}");
    let (_, out, _) = poach(&["ff-cl", "--store-buffer", "2", "--delta", "1"]);
    assert!(out.contains("tail := 1") && out.contains("cas head: 1 -> 2"), "{out}");
    // The store between two pops is the client's own.
    assert!(out.contains("client1 := "), "{out}");
    for queue in ["the", "thep"] {
        let (code, out, _) = poach(&[queue, "--policy", "unfenced", "--tasks", "2"]);
        let thief = match queue {
            "the" => "swap head: 0 -> 1",
            _ => "swap head: index 0, beat 0 -> index 1, beat 1",
        };
        assert!(code == 1 && out.contains("tail := 1") && out.contains(thief), "{queue}: {out}");
    }
}

#[test]
fn what_cannot_be_explored_is_refused_with_a_suggestion() {
    for arguments in [
        &["the", "--tasks", "12", "--thieves", "4", "--steals", "4"][..],
        &["ff-cl", "--store-buffer", "90"],
        &["split", "--tasks", "40", "--thieves", "3"],
    ] {
        let (code, out, said) = poach(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {said}");
        for part in ["executions", "--preemptions", "--random", "--seconds"] {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn arguments_without_sense_are_named() {
    for (arguments, names) in [
        (&["nothing"][..], "nothing"),
        (&["split", "--policy", "full"], "--policy"),
        (&["the", "--delta", "2"], "--delta"),
        (&["ff-the", "--delta", "0"], "--delta"),
        (&["the", "--tasks", "61"], "--tasks"),
        (&["the", "--tasks", "2", "--scene", "brief"], "--tasks"),
        (&["the", "--thieves", "8"], "--thieves"),
        (&["injector", "--thieves", "7"], "--thieves"),
        (&["injector", "--scene", "drain"], "--random"),
        (&["injector", "--steals", "2"], "pushes with one steal"),
        (&["injector", "--memory", "c11"], "--seconds 60"),
        (&["all", "--quick", "--full"], "--full"),
        (&["the", "--thieves", "2", "--steals", "100"], "steals"),
        (&["the", "--store-buffer", "1000"], "--store-buffer"),
        (&["ff-cl", "--stores-between", "1000"], "--stores-between"),
        (&["the", "--replay", "what?"], "--replay"),
        (&["the", "--seed", "1"], "--random"),
    ] {
        let (code, out, said) = poach(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {said}");
        assert!(said.contains(names), "{arguments:?}: {said}");
    }
}

#[test]
fn a_choice_string_of_another_model_does_not_fit() {
    let (code, found) = document(&["split", "--replay", "c1"]);
    assert_eq!((code, &found["verdict"]), (1, &"violation".into()), "{found}");
    assert!(found["runs"][0]["why"].as_str().unwrap().contains("does not fit"), "{found}");
}

#[test]
fn random_executions_can_be_had_again_by_their_seed() {
    let run = || document(&["unfenced", "--scene", "drain", "--random", "2000", "--seed", "7"]);
    let (first, second) = (run(), run());
    assert_eq!(first.1["runs"][0]["choices"], second.1["runs"][0]["choices"]);
    assert_eq!((first.0, &first.1["verdict"]), (1, &"violation".into()));
    let (code, found) = document(&["chase-lev", "--scene", "drain", "--random", "200"]);
    assert_eq!((code, &found["verdict"]), (0, &"incomplete".into()));
    assert!(found["runs"][0]["why"].as_str().unwrap().contains("seed"), "{found}");
}

#[test]
fn the_quick_matrix_is_as_expected() {
    let (code, found) = document(&["all", "--quick"]);
    let rows = found["rows"].as_array().unwrap();
    let bad: Vec<_> = rows.iter().filter(|row| row["ok"] != true).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!((code, &found["verdict"], &found["complete"]), (0, &"clean".into(), &true.into()));
    for queue in ["chase-lev", "ff-cl", "thep", "split", "idempotent-fifo", "salsa", "injector"] {
        assert!(rows.iter().any(|row| row["algorithm"] == queue), "{queue}");
    }
    assert_eq!(found["laws"].as_array().unwrap().len(), 5);
}

/// The scene that ends is the default; the others are refused (above) unless they have a bound.
#[test]
fn the_injector_has_a_scene_of_its_own() {
    let (code, found) = document(&["injector", "--random", "100", "--seed", "1"]);
    assert_eq!((code, &found["runs"][0]["scene"]), (0, &"pushes".into()));
    let (code, found) =
        document(&["injector", "--scene", "drain", "--random", "100", "--seed", "1"]);
    assert_eq!((code, &found["verdict"]), (0, &"incomplete".into()));
}

#[test]
fn the_laws_and_the_litmus_tests_are_as_the_papers_say() {
    let (code, laws) = document(&["laws"]);
    let fates: Vec<_> = laws["laws"].as_array().unwrap().iter().map(|law| &law["found"]).collect();
    let takes = "takes the task";
    assert_eq!(fates, [takes, takes, "gets an abort", "gets an abort", "never returns"]);
    assert_eq!(code, 0);
    let (code, tests) = document(&["litmus"]);
    assert_eq!((code, &tests["verdict"]), (0, &"clean".into()));
}

#[test]
fn a_litmus_file_has_herds_answer_and_this_machines_bound() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let columns = "{ }\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EAX,[x] ;\n";
    let asks = write("asks.litmus", &format!("X86 SB\n{columns}exists (0:EAX=0 /\\ 1:EAX=0)\n"));
    let (code, out, said) = poach(&[&asks]);
    assert_eq!((code, said.as_str()), (0, ""), "{out}");
    for line in ["Test SB Allowed\nStates 4\n", "\nOk\n", "SB Sometimes 1 3\nMachine x86-TSO"] {
        assert!(out.contains(line), "{out}");
    }
    let (code, found) = document(&[&asks, "--store-buffer", "0"]);
    assert_eq!((code, &found["verdict"]), (0, &"clean".into()), "{found}");
    assert_eq!((&found["litmus"]["ok"], &found["store_buffer"]), (&false.into(), &0.into()));
    let forbids =
        write("forbids.litmus", &format!("X86 SB\n{columns}~exists (0:EAX=0 /\\ 1:EAX=0)\n"));
    let (code, found) = document(&[&forbids, "--store-buffer", "unbounded"]);
    assert_eq!((code, &found["verdict"]), (1, &"violation".into()), "{found}");
    assert_eq!(document(&[&forbids, "--store-buffer", "0"]).0, 0);
    let broken = write("broken.litmus", "X86 SB\n{ }\nP0 ;\nMOVNTI [x],EAX ;\nexists (x=1)\n");
    let (code, out, said) = poach(&[&broken]);
    assert_eq!((code, out.as_str()), (2, ""), "{said}");
    assert!(said.contains("broken.litmus:4:1: the instruction MOVNTI is not modelled"), "{said}");
    for (arguments, code, names) in [
        (&["missing.litmus"][..], 1, "missing.litmus"),
        (&[&asks, "--delta", "1"], 2, "--delta"),
        (&[&asks, "--store-buffer", "1000"], 2, "--store-buffer"),
        (&[&asks, "--store-buffer", "many"], 2, "--store-buffer"),
        (&["the", "--store-buffer", "unbounded"], 2, "--store-buffer"),
    ] {
        let (found, out, said) = poach(arguments);
        assert_eq!((found, out.as_str()), (code, ""), "{arguments:?}: {said}");
        assert!(said.contains(names), "{arguments:?}: {said}");
    }
}

#[cfg(target_os = "linux")]
mod interrupted {
    use super::{Value, rig};
    use std::process::Stdio;

    /// Runs until the program catches Ctrl-C, sends it one, and returns its exit code and its
    /// document.
    fn interrupt(arguments: &[&str]) -> (Option<i32>, Value) {
        let child = rig::program(env!("CARGO_BIN_EXE_poach"))
            .args([&["check", "--json"], arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        rig::interrupt(&child);
        let output = child.wait_with_output().expect("it ends");
        let found = serde_json::from_slice(&output.stdout).expect("one document all the same");
        (output.status.code(), found)
    }

    #[test]
    fn one_search_reports_what_it_covered() {
        // More executions than anybody could wait for.
        let arguments =
            ["the", "--tasks", "20", "--thieves", "4", "--steals", "5", "--seconds", "3600"];
        let (code, found) = interrupt(&arguments);
        assert_eq!((code, &found["verdict"]), (Some(1), &"incomplete".into()), "{found}");
        assert_eq!(found["runs"][0]["why"], "stopped");
        assert_eq!(found["complete"], false);
    }

    #[test]
    fn the_matrix_reports_the_rows_that_ended() {
        let (code, found) = interrupt(&["all"]);
        assert_eq!((code, &found["verdict"]), (Some(1), &"incomplete".into()), "{found}");
        assert!(found["rows"].as_array().unwrap().iter().all(|row| row["ok"] == true), "{found}");
    }
}

#[test]
fn the_time_is_for_all_rows_and_all_tests() {
    for subject in [&["all", "--quick"][..], &["litmus"]] {
        let (code, found) = document(&[subject, &["--seconds", "0"]].concat());
        assert_eq!((code, &found["verdict"]), (1, &"incomplete".into()), "{found}");
        assert_eq!(found["complete"], false);
    }
    let (code, _, said) = poach(&["laws", "--seconds", "1"]);
    assert!(code == 2 && said.contains("--seconds is not for laws"), "{said}");
}
