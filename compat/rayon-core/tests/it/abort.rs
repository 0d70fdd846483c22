//! The panic of a detached task without a handler, and one of the handler, end the process.

#![forbid(unsafe_code)]

use std::env;
use std::panic::panic_any;
use std::sync::mpsc;

use rayon_core::ThreadPoolBuilder;

use crate::own_process::this_test;

/// Runs this test again in a process of its own, with `role` to play; true in that process.
#[track_caller]
fn in_child(role: &str, test: &str) -> bool {
    if env::var("ROLE").is_ok_and(|mine| mine == role) {
        return true;
    }
    let child = this_test(test).env("ROLE", role).output().unwrap();
    assert!(!child.status.success(), "{child:?}");
    assert!(!String::from_utf8_lossy(&child.stdout).contains("still there"), "{child:?}");
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(said.ends_with("Rayon: detected unexpected panic; aborting\n"), "{said}");
    false
}

/// Waits for ever, since the process is to end before.
fn wait() {
    let (_send, receive) = mpsc::channel::<()>();
    _ = receive.recv();
    println!("still there");
}

#[test]
fn a_detached_panic_without_a_handler_ends_the_process() {
    if in_child("none", "a_detached_panic_without_a_handler_ends_the_process") {
        rayon_core::spawn(|| panic_any("nobody waits"));
        wait();
    }
}

#[test]
fn a_handler_that_panics_ends_the_process() {
    if in_child("handler", "a_handler_that_panics_ends_the_process") {
        let pool = ThreadPoolBuilder::new().panic_handler(|_| panic_any("again")).build().unwrap();
        pool.spawn(|| panic_any("once"));
        wait();
    }
}
