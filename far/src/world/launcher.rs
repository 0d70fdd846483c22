//! Whether an MPI launcher has started this program, and as what: the one place of the library that
//! reads the environment.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Variables of which a launcher sets one at least: Open MPI's, those of PMI and `PMIx`, which are
/// MPICH's, Slurm and others.
const VARIABLES: [&str; 6] =
    ["OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALRANKID", "PALS_RANKID"];

/// Variables that tell the rank.
const RANKS: [&str; 5] =
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID"];

/// Variables that tell how many ranks there are.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Set for a supervised rank, to the process of its supervisor and the number (inode) of the rank's
/// end of their socket: `12:345`.
const SUPERVISOR: &str = "POACH_FAR_SUPERVISOR";

/// Whether there is a launcher. A program without one would be a world of one rank, which is hardly
/// what its user wants.
pub(crate) fn started() -> bool {
    VARIABLES.iter().any(|name| std::env::var_os(name).is_some())
}

/// The rank, as the launcher numbers it.
pub(crate) fn rank() -> Option<usize> {
    RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// How many ranks there are, as the launcher says; of two launchers, one of which has started the
/// other, the smaller number.
pub(crate) fn ranks() -> Option<usize> {
    SIZES.iter().filter_map(|name| std::env::var(name).ok()?.parse().ok()).min()
}

/// The supervisor's process and the socket's number, if this is a supervised rank, or a program
/// that a supervised rank has started.
pub(crate) fn supervisor() -> Option<(u32, u64)> {
    let set = std::env::var(SUPERVISOR).ok()?;
    let (process, socket) = set.split_once(':')?;
    Some((process.parse().ok()?, socket.parse().ok()?))
}

/// This very program once more, with its arguments, as a supervised rank with this socket.
pub(crate) fn again(socket: u64) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(SUPERVISOR, format!("{}:{socket}", std::process::id()));
    Ok(command)
}
