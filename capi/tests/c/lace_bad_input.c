/* What is not meant of Lace's macros: the end of the process with a message. `lace_bad_input NAME` runs one. And what is: fork. */
#include <lace.h>

#include <sys/wait.h>

#include "check.h"

VOID_TASK_0(nothing)
{
}

TASK_1(int, same, int, n)
{
    return n;
}

VOID_TASK_0(syncs)
{
    SYNC(nothing);
}

VOID_TASK_0(drops)
{
    DROP();
}

VOID_TASK_0(syncs_another)
{
    SPAWN(nothing);
    SYNC(same);
}

VOID_TASK_0(leaves)
{
    SPAWN(nothing);
}

VOID_TASK_0(stops)
{
    lace_stop();
}

VOID_TASK_0(overflows)
{
    for (;;) {
        SPAWN(nothing);
    }
}

static int dies(const char *name)
{
    if (!strcmp(name, "before start")) {
        RUN(nothing);
    } else if (!strcmp(name, "negative")) {
        lace_start(-1, 0);
    } else if (!strcmp(name, "outside")) {
        LACE_ME;
        SPAWN(nothing);
    }
    lace_start(2, 1000);
    if (!strcmp(name, "sync")) {
        RUN(syncs);
    } else if (!strcmp(name, "another")) {
        RUN(syncs_another);
    } else if (!strcmp(name, "drop")) {
        RUN(drops);
    } else if (!strcmp(name, "left")) {
        RUN(leaves);
    } else if (!strcmp(name, "stop")) {
        RUN(stops);
    } else if (!strcmp(name, "overflow")) {
        RUN(overflows);
    } else if (!strcmp(name, "twice")) {
        lace_start(1, 0);
    } else if (!strcmp(name, "stopped")) {
        lace_stop();
        RUN(nothing);
    } else if (!strcmp(name, "NULL")) {
        poach_lace_run(NULL, NULL);
    }
    return 2;
}

static int status_of(pid_t child)
{
    int status;
    CHECK(child >= 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void must_die(const char *program, const char *name)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CHECK(freopen("/dev/null", "w", stderr) != NULL);
        execl(program, program, name, (char *)NULL);
        _exit(3);
    }
    int status = status_of(child);
    if (!(WIFSIGNALED(status) && WTERMSIG(status) == 6)) {
        fprintf(stderr, "%s: did not abort: status %x\n", name, (unsigned)status);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    if (count > 1) {
        return dies(arguments[1]);
    }
    const char *deaths[] = {"before start", "negative", "outside", "sync", "another", "drop", "left", "stop", "overflow", "twice", "stopped", "NULL"};
    for (size_t at = 0; at < sizeof deaths / sizeof *deaths; at++) {
        must_die(arguments[0], deaths[at]);
    }

    /* A child has none of the parent's workers, and may start its own; the parent keeps its own. */
    lace_start(2, 0);
    CHECK(RUN(same, 5) == 5);
    /* Both workers have begun: a thread that begins may hold the lock of clang's AddressSanitizer, for ever in the child. */
    TOGETHER(nothing);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int right = !lace_is_running();
        lace_start(2, 0);
        right = right && RUN(same, 6) == 6;
        lace_stop();
        leave_child(right);
    }
    CHECK(was_right(child));
    CHECK(RUN(same, 7) == 7);
    lace_stop();
    puts("lace_bad_input: passed");
    return 0;
}
