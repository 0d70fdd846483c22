//! Whether an MPI launcher has started this program: the one place of the library that reads the environment.

/// Variables of which a launcher sets one at least: Open MPI's, those of PMI and `PMIx`, which are MPICH's, Slurm and others.
const VARIABLES: [&str; 6] =
    ["OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALRANKID", "PALS_RANKID"];

/// Whether there is a launcher. A program without one would be a world of one rank, which is hardly what its user wants.
pub(crate) fn started() -> bool {
    VARIABLES.iter().any(|name| std::env::var_os(name).is_some())
}
