//! What several tests of the program do to it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

/// Sends the program a Ctrl-C as soon as it catches one.
pub(crate) fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    wait_for_handler(pid.as_raw_nonzero().get());
    kill_process(pid, Signal::INT).expect("it runs");
}

/// Waits until the program catches the signal, as the kernel lists it.
fn wait_for_handler(pid: i32) {
    loop {
        let status = fs::File::open(format!("/proc/{pid}/status")).expect("it runs");
        let caught = BufReader::new(status)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok())
            .expect("a mask of caught signals");
        if caught & 1 << (2 - 1) != 0 {
            return;
        }
        std::thread::yield_now();
    }
}
