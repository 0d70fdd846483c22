/* What the tests of this directory share. */
#ifndef CHECK_H
#define CHECK_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                     \
    do {                                                                                                \
        if (!(what)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #what, poach_last_error()); \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)

#define OK(call) CHECK((call) == POACH_OK)

/*
 * The end of a child of `fork`: by SIGKILL, if all was right. At any other, valgrind looks for leaks, and what the stacks of the parent's threads
 * referred to is one in the child, which has none of these threads.
 */
static inline void leave_child(int right)
{
    if (right) {
        kill(getpid(), SIGKILL);
    }
    _exit(1);
}

/* Whether a child of `fork` has ended by `leave_child(1)`. */
static inline int was_right(pid_t child)
{
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

#endif
