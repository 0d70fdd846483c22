//! The process-wide barrier, if the kernel answers two threads differently.
// Miri and the feature `portable` have no such barrier.
#![cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]

use std::thread;

use poach_memory::membarrier::{self, Unavailable};

use crate::filtered::{Answer, assert_aborted, case, filter, run_alone};

/// A thread whose filter refuses the call is held there until another was granted it.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_refusal_does_not_replace_an_answer() {
    use core::sync::atomic::{AtomicBool, Ordering};

    static HELD: AtomicBool = AtomicBool::new(false);
    static GRANTED: AtomicBool = AtomicBool::new(false);

    extern "C" fn hold(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
        HELD.store(true, Ordering::SeqCst);
        while !GRANTED.load(Ordering::SeqCst) {
            core::hint::spin_loop();
        }
        // SAFETY: the kernel gives a handler made with `SA_SIGINFO` a `ucontext_t`, which is the
        // handler's to change.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        context.uc_mcontext.gregs[libc::REG_RAX as usize] = i64::from(-libc::EPERM);
    }

    // If the kernel has no barrier, both threads are told so.
    let Some(case) = case() else {
        let case = if membarrier::register().is_ok() { "granted" } else { "refused" };
        let output = run_alone("a_refusal_does_not_replace_an_answer", case);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    };
    let answer = if case == "granted" { Ok(()) } else { Err(Unavailable::Refused) };
    // SAFETY: zeroes are a `sigaction` without flags and with an empty mask.
    let mut action = unsafe { core::mem::zeroed::<libc::sigaction>() };
    action.sa_sigaction = hold as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: `action` is whole, and its handler does nothing that a handler may not.
    let set = unsafe { libc::sigaction(libc::SIGSYS, &raw const action, core::ptr::null_mut()) };
    assert_eq!(set, 0);
    let refused = thread::spawn(|| {
        filter(Answer::Trap);
        membarrier::register()
    });
    while !HELD.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    let granted = membarrier::register();
    GRANTED.store(true, Ordering::SeqCst);
    let refused = refused.join().unwrap();
    assert_eq!([granted, refused, membarrier::register()], [answer; 3]);
}

/// The converse: once the process was refused, no thread is granted the barrier.
#[test]
fn a_grant_does_not_replace_a_refusal() {
    if case().is_none() {
        let output = run_alone("a_grant_does_not_replace_a_refusal", "one of two");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let refused = thread::spawn(|| {
        filter(Answer::Refused);
        membarrier::register()
    });
    assert_eq!(refused.join().unwrap(), Err(Unavailable::Refused));
    assert_eq!(membarrier::register(), Err(Unavailable::Refused));
    membarrier::barrier();
}

/// `barrier` aborts if it fails after it was granted. One never granted stays a full fence.
#[test]
fn a_barrier_that_fails_later_aborts() {
    if case().is_none() {
        let output = run_alone("a_barrier_that_fails_later_aborts", "alone");
        match membarrier::register() {
            Ok(()) => assert_aborted(&output),
            Err(_) => assert!(output.status.success(), "{}", output.status),
        }
        return;
    }
    let _ = membarrier::register();
    membarrier::barrier();
    filter(Answer::Refused);
    let _ = std::panic::catch_unwind(membarrier::barrier);
    println!("the program went on");
}

/// The kernel still grants a barrier that is switched off. A barrier that fails in one thread still
/// succeeds in the others.
#[test]
fn a_barrier_may_succeed_where_no_filter_is() {
    if case().is_none() {
        let output = run_alone("a_barrier_may_succeed_where_no_filter_is", "alone");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    if membarrier::register().is_err() {
        return;
    }
    let refused = || {
        filter(Answer::Refused);
        assert!(membarrier::may_succeed() && !membarrier::try_barrier());
        assert!(!membarrier::may_succeed());
    };
    thread::spawn(refused).join().unwrap();
    assert_eq!(membarrier::register(), Err(Unavailable::Lost));
    membarrier::switch_off();
    assert!(membarrier::may_succeed() && membarrier::try_barrier());
    thread::spawn(refused).join().unwrap();
}

/// The same after the program has switched the barrier off.
#[test]
fn a_barrier_that_is_switched_off_may_succeed_until_a_filter_comes() {
    if case().is_none() {
        let test = "a_barrier_that_is_switched_off_may_succeed_until_a_filter_comes";
        let output = run_alone(test, "alone");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    if membarrier::register().is_err() {
        return;
    }
    membarrier::switch_off();
    assert_eq!(membarrier::register(), Err(Unavailable::SwitchedOff));
    assert!(membarrier::may_succeed() && membarrier::try_barrier());
    filter(Answer::Refused);
    assert!(membarrier::may_succeed() && !membarrier::try_barrier());
    assert!(!membarrier::may_succeed());
}

/// A forked child keeps its parent's answer.
#[test]
fn a_registration_is_inherited_by_a_fork() {
    if membarrier::register().is_err() {
        return;
    }
    // SAFETY: the child makes a system call and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        membarrier::barrier();
        // SAFETY: ends the child.
        unsafe { libc::_exit(7) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just made, and writes its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
}
