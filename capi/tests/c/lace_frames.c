/*
 * NEWFRAME, TOGETHER and lace_barrier, by several callers at once and in each other: each worker takes part once in each frame, none waits for a
 * worker that waits for it, and no frame's barrier counts who has come to another's.
 */
#include <lace.h>

#include "check.h"

enum { MOST = 4 };

/* Who has come. */
struct seen {
    _Atomic(unsigned) by[MOST];
};

static void comes(struct seen *seen, int worker)
{
    CHECK(worker >= 0 && worker < MOST);
    seen->by[worker]++;
}

static void each_came(struct seen *seen, unsigned times)
{
    for (unsigned at = 0; at < lace_workers(); at++) {
        CHECK(seen->by[at] == times);
    }
}

TASK_1(long, fib, long, n)
{
    if (n < 2) return n;
    SPAWN(fib, n - 1);
    long a = CALL(fib, n - 2);
    return a + SYNC(fib);
}

VOID_TASK_1(mark, struct seen *, seen)
{
    comes(seen, LACE_WORKER_ID);
}

static void once(void)
{
    struct seen seen = {{0}};
    TOGETHER(mark, &seen);
    each_came(&seen, 1);
}

/* All meet, so many times: nobody goes on before all have come. */
VOID_TASK_2(meet, _Atomic(unsigned) *, arrived, unsigned, times)
{
    for (unsigned at = 1; at <= times; at++) {
        (*arrived)++;
        lace_barrier();
        CHECK(*arrived == at * lace_workers());
        lace_barrier();
    }
}

static void meet_once(unsigned times)
{
    _Atomic(unsigned) arrived = 0;
    TOGETHER(meet, &arrived, times);
    CHECK(arrived == times * lace_workers());
}

/* One worker begins frames while the others are at the end of this one. */
VOID_TASK_2(one_goes_on, struct seen *, seen, int, who)
{
    comes(seen, LACE_WORKER_ID);
    if (LACE_WORKER_ID == who) {
        for (int at = 0; at < 5; at++) {
            once();
            CHECK(NEWFRAME(fib, 12) == 144);
            meet_once(2);
        }
    }
}

/* Each begins frames, as many as its number. */
VOID_TASK_2(all_go_on, struct seen *, seen, int, depth)
{
    comes(seen, LACE_WORKER_ID);
    for (int at = 0; depth > 0 && at <= LACE_WORKER_ID; at++) {
        struct seen inner = {{0}};
        TOGETHER(all_go_on, &inner, depth - 1);
        each_came(&inner, 1);
        CHECK(NEWFRAME(fib, 8) == 21);
    }
}

/* One worker begins frames, which have barriers of their own, while the others wait in this one's. */
VOID_TASK_1(late, _Atomic(unsigned) *, arrived)
{
    for (unsigned at = 1; at <= 4; at++) {
        if (LACE_WORKER_ID == (int)(at % lace_workers())) {
            CHECK(NEWFRAME(fib, 10) == 55);
            meet_once(3);
            once();
        }
        (*arrived)++;
        lace_barrier();
        CHECK(*arrived == at * lace_workers());
        lace_barrier();
    }
}

/* Forks of one worker's are run by those that wait for the frame's end. */
VOID_TASK_1(one_forks, long *, result)
{
    if (LACE_WORKER_ID == 0) {
        *result = CALL(fib, 15);
    }
}

static void some(void)
{
    struct seen seen = {{0}};
    _Atomic(unsigned) arrived = 0;
    long result = 0;
    once();
    meet_once(3);
    TOGETHER(one_goes_on, &seen, (int)lace_workers() - 1);
    each_came(&seen, 1);
    TOGETHER(one_goes_on, &seen, 0);
    each_came(&seen, 2);
    TOGETHER(all_go_on, &seen, 1);
    each_came(&seen, 3);
    TOGETHER(late, &arrived);
    TOGETHER(one_forks, &result);
    CHECK(result == 610 && NEWFRAME(fib, 12) == 144);
}

/* Frames by tasks, some of which are stolen, and run at once. */
VOID_TASK_1(from_tasks, int, depth)
{
    if (depth == 0) {
        return;
    }
    SPAWN(from_tasks, depth - 1);
    SPAWN(from_tasks, depth - 1);
    once();
    meet_once(1);
    CHECK(NEWFRAME(fib, 6) == 8);
    SYNC(from_tasks);
    SYNC(from_tasks);
}

VOID_TASK_0(in_a_task)
{
    some();
}

static void *outside(void *unused)
{
    some();
    CHECK(RUN(fib, 12) == 144);
    RUN(in_a_task);
    return unused;
}

int main(void)
{
    /* What hangs ends. */
    alarm(1800);
    for (unsigned workers = 1; workers <= MOST; workers++) {
        lace_start(workers, 0);
        for (int at = 0; at < 3; at++) {
            some();
        }
        RUN(from_tasks, 3);
        NEWFRAME(from_tasks, 3);
        pthread_t threads[3];
        for (int at = 0; at < 3; at++) {
            CHECK(pthread_create(&threads[at], NULL, outside, NULL) == 0);
        }
        for (int at = 0; at < 3; at++) {
            CHECK(pthread_join(threads[at], NULL) == 0);
        }
        CHECK(!lace_frames_under_way_());
        lace_stop();
    }
    puts("lace_frames: passed");
    return 0;
}
