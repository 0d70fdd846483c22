/* An MPI that refuses, to be put before the real one: REFUSES is `threads`, or `window` and the rank that has none. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static const char *refuses(void)
{
    const char *what = getenv("REFUSES");
    return what ? what : "";
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (strcmp(refuses(), "threads") == 0)
        *provided = MPI_THREAD_FUNNELED;
    return code;
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window)
{
    int rank, code = PMPI_Win_allocate(size, unit, info, comm, base, window);
    PMPI_Comm_rank(comm, &rank);
    if (strncmp(refuses(), "window", 6) == 0 && rank == atoi(refuses() + 6))
        return MPI_ERR_NO_MEM;
    return code;
}
