//! A process beside each rank, that tells which rank was killed.
//!
//! A launcher ends all ranks as soon as one of them is killed, within milliseconds, so no survivor
//! has the time to say which rank was killed; and MPICH's launcher names a process alone. A rank
//! that is stopped while MPI begins, or in an operation of all ranks, blocks the others, so they
//! cannot say so either. The supervisor, which is no rank, says both. It is the process that the
//! launcher has started; it starts the rank itself as its child, and waits.
//!
//! ```text
//! launcher --- supervisor ======= rank          ===: a socket, in the place of the rank's standard input
//!          \-- supervisor ======= rank
//! ```
//!
//! A supervisor knows its child's end, and the signal that was its cause, from the system. The
//! program says so and ends by a signal, whereupon the launcher ends the others. (MPICH's does
//! nothing about an exit code while MPI has not begun in that rank.) The child sends a byte a
//! second, by a thread that does nothing else. If no byte comes for [`SILENT`] of the supervisor's
//! own seconds, the child is stopped, and the supervisor kills it. (A supervisor that was stopped
//! itself has counted none.) If the supervisor is gone the socket is closed, and the rank ends.
//!
//! MPI sees nothing of it: what a launcher gives to its process (variables, descriptors,
//! processors, limits) is inherited, as it is by a rank that is started from a script.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{ExitStatusExt as _, parent_id};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use super::launcher;

/// How often a rank tells its supervisor that it runs.
const PULSE: Duration = Duration::from_secs(1);

/// The number of pulses that may be missing. The ranks themselves wait for less long, so where they
/// can tell, they do.
const SILENT: u32 = 8;

/// What a process is: see [`supervise`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A rank, or a program that no launcher has started: it goes on.
    Rank,
    /// The supervisor of a rank, which has ended: there is nothing left to do but to say so.
    Supervisor(Ended),
}

/// How a rank has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What its supervisor is to end with, if the rank is not lost. If it is: by a signal, as
    /// [`std::process::abort`] does.
    pub code: u8,
    /// Whether it did not end by itself.
    pub lost: Option<Lost>,
}

/// A rank that did not end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its number; unknown under a launcher that does not tell.
    pub rank: Option<usize>,
    /// Its process.
    pub process: u32,
    /// The signal that ended it; none if it was found not to run.
    pub signal: Option<i32>,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            Some(rank) => write!(f, "rank {rank} is lost: "),
            None => f.write_str("a rank is lost: "),
        }?;
        match self.signal {
            Some(signal) => {
                write!(f, "its process {} was ended by {}", self.process, name(signal))
            }
            None => write!(f, "its process {} has not run for {SILENT} s", self.process),
        }?;
        f.write_str("; its tasks and what they had found are lost with it")
    }
}

fn name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// Makes this process the supervisor of a rank, if a launcher has started it: to be called first of
/// all in `main`, of all ranks.
///
/// The rank is a child, which runs this program from its beginning, and gets [`Role::Rank`]. Its
/// standard input is taken. `orphaned` is called there, on a thread of its own, if the supervisor
/// is gone: it has to end the process.
///
/// ```no_run
/// use poach_far::{Role, supervise};
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     match supervise(|| std::process::exit(1)) {
///         Ok(Role::Rank) => {}
///         Ok(Role::Supervisor(ended)) => {
///             if let Some(lost) = ended.lost {
///                 eprintln!("{lost}");
///                 // By a signal: every launcher then ends the others, even before MPI begins.
///                 std::process::abort();
///             }
///             return ExitCode::from(ended.code);
///         }
///         Err(error) => eprintln!("nobody will tell if this rank is killed: {error}"),
///     }
///     // `World::init` and all the rest.
///     ExitCode::SUCCESS
/// }
/// ```
///
/// # Errors
///
/// If the child cannot be started. The program can be the rank itself then.
pub fn supervise(orphaned: impl FnOnce() + Send + 'static) -> std::io::Result<Role> {
    if !launcher::started() {
        return Ok(Role::Rank);
    }
    if let Some(socket) = of_supervisor()? {
        thread::Builder::new().name("pulse".to_owned()).spawn(move || {
            beat(socket);
            orphaned();
        })?;
        return Ok(Role::Rank);
    }
    let (own, theirs) = UnixStream::pair()?;
    own.set_read_timeout(Some(PULSE))?;
    let theirs = File::from(OwnedFd::from(theirs));
    let mut command = launcher::again(theirs.metadata()?.ino())?;
    let child = command.stdin(theirs).spawn()?;
    // It holds the child's end of the socket, too.
    drop(command);
    Ok(Role::Supervisor(watch(own, child)))
}

/// The socket to this process's supervisor, which may have ended since it started this process;
/// none if this is no rank.
fn of_supervisor() -> std::io::Result<Option<UnixStream>> {
    let Some((supervisor, number)) = launcher::supervisor() else { return Ok(None) };
    let input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    if input.metadata()?.ino() != number {
        return Ok(None);
    }
    let mut socket = UnixStream::from(OwnedFd::from(input));
    socket.set_read_timeout(Some(PULSE))?;
    // A program that a rank starts has the variable, too, perhaps the socket, and another parent. A
    // rank whose supervisor is gone has another parent as well; there the socket was closed
    // before that. Nothing is ever sent to a rank.
    let is_rank = supervisor == parent_id() || matches!(socket.read(&mut [0]), Ok(0));
    Ok(is_rank.then_some(socket))
}

/// Tells the supervisor that this process runs, until there is none.
fn beat(mut socket: UnixStream) {
    let mut nothing = [0];
    while socket.write_all(&[1]).is_ok() {
        match socket.read(&mut nothing) {
            Err(error) if is_late(&error) => {}
            _ => return,
        }
    }
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Waits for the rank's end.
fn watch(mut socket: UnixStream, mut child: Child) -> Ended {
    let mut silent = 0;
    let mut beats = [0; 64];
    let status = loop {
        match socket.read(&mut beats) {
            // The child is ending, and so near to it that it can be waited for.
            Ok(0) => break child.wait(),
            Ok(_) => silent = 0,
            Err(error) if is_late(&error) => {
                // Ended, while a program that it has started keeps the socket open.
                if let Ok(Some(status)) = child.try_wait() {
                    break Ok(status);
                }
                silent += 1;
                if silent == SILENT {
                    let _ = child.kill();
                    let _ = child.wait();
                    let lost = Lost { rank: launcher::rank(), process: child.id(), signal: None };
                    return Ended { code: 1, lost: Some(lost) };
                }
            }
            Err(_) => break child.wait(),
        }
    };
    status.map_or(Ended { code: 1, lost: None }, |status| ended(status, child.id()))
}

fn ended(status: ExitStatus, process: u32) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended { code: u8::try_from(code).unwrap_or(1), lost: None },
        (None, signal) => {
            let code = signal.map_or(1, |signal| 128u8.saturating_add(signal as u8));
            Ended { code, lost: Some(Lost { rank: launcher::rank(), process, signal }) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A program in the place of a rank, with its end of the socket as its standard input.
    fn watched(script: &str, pulse: Duration) -> Ended {
        let (own, theirs) = UnixStream::pair().unwrap();
        own.set_read_timeout(Some(pulse)).unwrap();
        let mut command = Command::new("sh");
        let child = command.args(["-c", script]).stdin(OwnedFd::from(theirs)).spawn().unwrap();
        drop(command);
        watch(own, child)
    }

    #[test]
    fn an_end_is_told_as_the_system_knows_it() {
        assert_eq!(watched("exit 0", PULSE), Ended { code: 0, lost: None });
        assert_eq!(watched("exit 7", PULSE), Ended { code: 7, lost: None });
        let Ended { code: 137, lost: Some(lost) } = watched("kill -KILL $$", PULSE) else {
            panic!("it is lost")
        };
        assert_eq!(lost.signal, Some(9));
        let text = Lost { rank: Some(3), ..lost }.to_string();
        assert!(text.starts_with("rank 3 is lost: its process "), "{text}");
        assert!(text.contains(" was ended by signal 9 (SIGKILL); its tasks"), "{text}");
    }

    #[test]
    fn a_process_that_is_stopped_is_found_and_ended() {
        let Ended { code: 1, lost: Some(lost) } =
            watched("kill -STOP $$", Duration::from_millis(50))
        else {
            panic!("it is lost")
        };
        assert_eq!(lost.signal, None);
        assert!(lost.to_string().contains("has not run for 8 s"), "{lost}");
    }

    #[test]
    fn an_end_is_seen_while_somebody_else_holds_the_socket() {
        // The program in the background inherits it, and outlives its parent.
        let ended = watched("exec 3<&0; sleep 2 <&3 & exit 5", PULSE);
        assert_eq!(ended, Ended { code: 5, lost: None });
    }

    #[test]
    fn a_rank_without_its_supervisor_is_told_so() {
        let (own, theirs) = UnixStream::pair().unwrap();
        theirs.set_read_timeout(Some(PULSE)).unwrap();
        let rank = thread::spawn(move || beat(theirs));
        let mut first = [0];
        (&own).read_exact(&mut first).unwrap();
        drop(own);
        rank.join().unwrap();
    }
}
