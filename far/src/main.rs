//! The program `poach-far`: what one starts under `mpirun` or `srun`.
//!
//! | exit code | means |
//! |---|---|
//! | 0 | all well |
//! | 1 | ran, but something is amiss: an unreadable entry, a wrong count, a lost rank |
//! | 2 | the arguments make no sense, or MPI was not started; a sentence on stderr says which |

#[path = "program/mod.rs"]
mod program;

fn main() -> std::process::ExitCode {
    program::main()
}
