//! Threads with a seccomp filter that refuses `membarrier(2)`, and child processes for tests.

use std::process::Output;

use super::own_process::this_test;

/// What the filter does when the thread calls `membarrier(2)`.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "not every test uses both")]
pub(crate) enum Answer {
    /// The call returns `EPERM`.
    Refused,
    /// The thread gets a `SIGSYS`, in whose handler it can be held.
    Trap,
}

/// Puts the calling thread, and the threads that it starts, under the filter for ever.
pub(crate) fn filter(answer: Answer) {
    const fn statement(code: u32, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
    }
    const NUMBER: u32 = 0;
    let action = match answer {
        Answer::Refused => libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        Answer::Trap => libc::SECCOMP_RET_TRAP,
    };
    let is_membarrier = libc::sock_filter {
        jf: 1,
        ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_membarrier as u32)
    };
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, NUMBER),
        is_membarrier,
        statement(libc::BPF_RET | libc::BPF_K, action),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: takes numbers, and changes only the privileges that this thread may gain by `execve`.
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: `program` is a filter of as many statements as it says, and lives through the call.
    let done =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Runs the test `name` of the file that calls this in a process of its own, with `case` in its
/// environment as [`case`] reads it.
#[track_caller]
pub(crate) fn run_alone(name: &str, case: &str) -> Output {
    let output = this_test(name).env(CASE, case).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("running 1 test"), "there is no test {name}: {said}");
    output
}

pub(crate) fn case() -> Option<String> {
    std::env::var(CASE).ok()
}

const CASE: &str = "POACH_TEST_CASE";

#[allow(dead_code, reason = "not every test uses it")]
pub(crate) fn assert_aborted(output: &Output) {
    use std::os::unix::process::ExitStatusExt;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{}\n{said}", output.status);
    assert!(said.contains("after the process had been registered for it"), "{said}");
}
