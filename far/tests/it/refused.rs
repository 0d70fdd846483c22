//! An MPI that does not give what a job needs: each rank ends, with a sentence. It is the real one
//! with a library before it, `refuses.c`.

#![forbid(unsafe_code)]

use std::process::Command;

use crate::launch::{Ran, launcher, program, wait};

/// A job of two ranks with an MPI that refuses something.
fn refused(what: &str, arguments: &[&str]) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("refuses.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/refuses.c");
    let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let mut compile = Command::new(compiler);
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    assert!(compile.status().unwrap().success(), "{compile:?}");
    let mut command = launcher();
    command.args(["-n", "2", "env", &format!("LD_PRELOAD={}", library.display())]);
    command.arg(format!("REFUSES={what}")).arg(program()).args(arguments);
    wait(command)
}

#[test]
fn an_mpi_without_threads_is_told_with_what_it_grants() {
    let ran = refused("threads", &["uts", "T1"]);
    assert!(!ran.output.status.success());
    let message = "this MPI grants the threads level Funneled, and MPI_THREAD_SERIALIZED is needed";
    assert!(ran.stderr().contains(message), "{}", ran.stderr());
    assert!(!ran.stdout().contains(" nodes"), "{}", ran.stdout());
}

/// The other MPI's launcher, if it is installed.
#[test]
fn ranks_that_find_themselves_alone_under_another_mpis_launcher_say_so() {
    let own = launcher().get_program().to_string_lossy().into_owned();
    let other = [("mpiexec.mpich", "mpiexec.openmpi"), ("mpiexec.openmpi", "mpiexec.mpich")]
        .into_iter()
        .find_map(|(one, other)| own.contains(one).then_some(other))
        .filter(|other| Command::new(other).arg("--version").output().is_ok());
    let Some(other) = other else {
        eprintln!("there is one MPI here, or its launcher's name does not tell which: left out");
        return;
    };
    let mut command = Command::new(other);
    for (name, value) in launcher().get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.args(["-n", "2", program(), "uts", "T1"]);
    let ran = wait(command);
    assert!(!ran.output.status.success());
    let message = "poach-far: the launcher has started 2 ranks, and MPI finds this one alone";
    assert!(ran.stderr().contains(message), "{}", ran.stderr());
    assert!(!ran.stdout().contains(" nodes"), "{}", ran.stdout());
}

#[test]
fn a_window_that_one_rank_cannot_have_is_told_by_all() {
    for rank in ["0", "1"] {
        let what = format!("window{rank}");
        let ran = refused(&what, &["uts", "T1", "--steal", "window"]);
        assert!(!ran.output.status.success());
        let message = format!("poach-far: rank {rank}: MPI cannot make a window of");
        assert!(ran.stderr().contains(&message), "{what}: {}", ran.stderr());
        assert!(ran.stderr().contains("choose Stealing::Messages"), "{}", ran.stderr());
        assert!(!ran.stdout().contains(" nodes"), "{}", ran.stdout());
    }
    // The library is in nobody's way otherwise.
    let ran = refused("nothing", &["uts", "T1", "--steal", "window", "--json"]);
    assert_eq!(ran.document()["nodes"], 4_130_071);
}
