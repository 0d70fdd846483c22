//! Helpers of several tests of the program.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The mask of signals that a process has under `name` in what the kernel lists of it; bit 0 is
/// signal 1.
fn signals(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(name)).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("hexadecimal")
}

const INTERRUPT: u64 = 1 << (2 - 1);

const HANGUP: u64 = 1;

/// The program, with the default action for Ctrl-C and for a terminal that goes away. A shell
/// without job control makes background programs ignore Ctrl-C, and `nohup` makes them ignore the
/// hang-up. These tests inherit that, and so would each program that they start.
pub(crate) fn program(path: &str) -> Command {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if status.is_empty() || signals(&status, "SigIgn:") & (INTERRUPT | HANGUP) == 0 {
        return Command::new(path);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,HUP", path]);
    command
}

/// Sends the program a Ctrl-C as soon as it catches one.
pub(crate) fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    wait_for_handler(pid.as_raw_nonzero().get());
    kill_process(pid, Signal::INT).expect("it runs");
}

/// Waits until a program that writes to this pipe can write no more: half a second long nothing has
/// come to what is there.
pub(crate) fn wait_until_full(pipe: impl AsFd) {
    /// A pipe holds twice as much, in pages that short writes may leave half empty.
    const MUCH: u64 = 1 << 15;
    let mut before = 0;
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = rustix::io::ioctl_fionread(&pipe).expect("a pipe");
        if now == before && now > MUCH {
            return;
        }
        before = now;
    }
}

/// Waits until the program catches Ctrl-C, as the kernel lists it. Returns which signals it ignores
/// then; bit 0 is signal 1.
pub(crate) fn wait_for_handler(pid: i32) -> u64 {
    loop {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        // The shell that starts it may catch Ctrl-C itself, before it has ignored what it is to
        // ignore.
        let begun = status.starts_with("Name:\tpoach\n");
        if begun && signals(&status, "SigCgt:") & INTERRUPT != 0 {
            return signals(&status, "SigIgn:");
        }
        assert!(!status.contains("State:\tZ"), "the program ended before it caught Ctrl-C");
        std::thread::yield_now();
    }
}

/// Whether a program that a test needs is installed. If not the test says so, and is left out, but
/// where `cargo xtask documents` has set `POACH_NOTHING_LEFT_OUT`.
pub(crate) fn has(program: &str, version: &str) -> bool {
    use std::process::Stdio;
    let mut asked = Command::new(program);
    let asked = asked.arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let has = asked.is_ok();
    assert!(has || std::env::var_os("POACH_NOTHING_LEFT_OUT").is_none(), "{program} is not here");
    if !has {
        // Not by a macro, whose output the harness keeps to itself.
        let stderr = &mut std::io::stderr();
        let _ = writeln!(
            stderr,
            "left out: {program} is not installed; `cargo xtask documents` installs it"
        );
    }
    has
}

/// Whether the process is there, and not merely waits for somebody to ask how it ended.
pub(crate) fn runs(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

/// Writes a program into a directory.
pub(crate) fn write_program(at: &Path, text: &str) {
    fs::write(at, format!("#!/bin/sh\n{text}\n")).expect("a program");
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).expect("ours");
}

/// An image of a file system that is mounted, as long as this lives.
pub(crate) struct Mounted(pub(crate) PathBuf);

impl Mounted {
    /// Makes one, if this is root and the system can. If not, says why.
    pub(crate) fn new(kind: &str, within: &Path) -> Option<Mounted> {
        let (image, point) = (within.join(format!("{kind}.img")), within.join(kind));
        fs::create_dir(&point).expect("a directory");
        fs::File::create(&image).and_then(|file| file.set_len(400 << 20)).expect("a sparse file");
        let run = |command: &mut Command| {
            command.output().is_ok_and(|output| output.status.success()).then_some(())
        };
        let made = run(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image));
        let mounted = made
            .and_then(|()| run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&point)));
        if mounted.is_none() {
            let _ = writeln!(std::io::stderr(), "left out: no {kind} can be made and mounted here");
        }
        mounted.map(|()| Mounted(point))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
