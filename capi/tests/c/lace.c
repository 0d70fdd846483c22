/* Each macro and function of lace.h. */
#include <lace.h>

#include "check.h"
#include "lace_shared.h"

TASK_1(long, fib, long, n)
{
    if (n < 2) return n;
    SPAWN(fib, n - 1);
    long a = CALL(fib, n - 2);
    return a + SYNC(fib);
}

static _Atomic(size_t) count;

static size_t taken(void)
{
    return atomic_exchange(&count, 0);
}

VOID_TASK_0(tick)
{
    count++;
}

TASK_0(int, five)
{
    return 5;
}

/* Declared, and defined below. */
TASK_DECL_2(int, add, int, int)
VOID_TASK_DECL_1(store, int *)
VOID_TASK_DECL_0(nobody)
TASK_DECL_0(int, six)
TASK_IMPL_2(int, add, int, a, int, b)
{
    return a + b;
}
VOID_TASK_IMPL_1(store, int *, to)
{
    *to = 9;
}
VOID_TASK_IMPL_0(nobody)
{
}
TASK_IMPL_0(int, six)
{
    return 6;
}

TASK_3(long, sum3, long, a, long, b, long, c) { return a + b + c; }
TASK_4(long, sum4, long, a, long, b, long, c, long, d) { return a + b + c + d; }
TASK_5(long, sum5, long, a, long, b, long, c, long, d, long, e) { return a + b + c + d + e; }
TASK_6(long, sum6, long, a, long, b, long, c, long, d, long, e, long, f) { return a + b + c + d + e + f; }
TASK_7(long, sum7, long, a, long, b, long, c, long, d, long, e, long, f, long, g) { return a + b + c + d + e + f + g; }
TASK_14(long, sum14, long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h, long, i, long, j, long, k, long, l, long, m, long, n)
{
    return a + b + c + d + e + f + g + h + i + j + k + l + m + n;
}
VOID_TASK_2(store2, long *, to, long, a) { *to = a; }
VOID_TASK_7(store7, long *, to, long, a, long, b, long, c, long, d, long, e, long, f) { *to = a + b + c + d + e + f; }

struct large {
    char bytes[200];
};
TASK_1(struct large, fill, int, with)
{
    struct large all;
    memset(all.bytes, with, sizeof all.bytes);
    return all;
}

/* Parameters and results that a slot's payload is not aligned to. */
TASK_2(struct line, shifted, struct line, from, int, by)
{
    CHECK((uintptr_t)&from % LINE_SIZE == 0);
    for (size_t at = 0; at < sizeof from.bytes; at++) from.bytes[at] = (char)(from.bytes[at] + by);
    return from;
}

TASK_1(struct half_line, as_it_is, struct half_line, what)
{
    CHECK((uintptr_t)&what % 32 == 0);
    return what;
}

LACE_TYPEDEF_CB(int, binary, int, int)
TASK_3(int, apply, binary, f, int, a, int, b)
{
    return WRAP(f, a, b);
}

/* Spawns `n` of everything: with other workers about, some are stolen. */
VOID_TASK_1(all_of, int, n)
{
    for (int at = 0; at < n; at++) {
        long seven = 0, two = 0;
        int nine = 0;
        SPAWN(sum7, 1, 2, 3, 4, 5, 6, 7);
        SPAWN(sum14, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
        SPAWN(store7, &seven, 1, 2, 3, 4, 5, 6);
        Task *filled = SPAWN(fill, at);
        struct line line = {{0}};
        struct half_line half = {{1}};
        Task *task = SPAWN(shifted, line, at % 100);
        CHECK((uintptr_t)TASK_RESULT(task) % LINE_SIZE == 0);
        task = SPAWN(as_it_is, half);
        CHECK((uintptr_t)TASK_RESULT(task) % 32 == 0);
        SPAWN(store2, &two, at);
        SPAWN(store, &nine);
        SPAWN(five);
        SPAWN(tick);
        CHECK(CALL(fib, 8) == 21);
        SYNC(tick);
        CHECK(SYNC(five) == 5);
        SYNC(store);
        SYNC(store2);
        CHECK(SYNC(as_it_is).bytes[0] == 1);
        CHECK(SYNC(shifted).bytes[LINE_SIZE - 1] == at % 100);
        CHECK(!TASK_IS_COMPLETED(filled) || ((struct large *)(void *)TASK_RESULT(filled))->bytes[199] == (char)at);
        struct large all = SYNC(fill);
        SYNC(store7);
        CHECK(SYNC(sum14) == 105);
        CHECK(SYNC(sum7) == 28);
        CHECK(nine == 9 && two == at && seven == 21 && all.bytes[0] == (char)at && all.bytes[199] == (char)at);
    }
}

TASK_1(size_t, drops, size_t, n)
{
    struct line line = {{0}};
    taken();
    for (size_t at = 0; at < n; at++) {
        SPAWN(shifted, line, 1);
        SPAWN(tick);
        SPAWN(sum14, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
    }
    for (size_t at = 0; at < n; at++) {
        DROP();
        DROP();
        DROP();
    }
    return taken();
}

/* Functions of the program's, in a task, that have not been given its worker. */
static int helper(void)
{
    LACE_ME;
    SPAWN(six);
    return SYNC(six);
}

static int another_helper(void)
{
    LACE_VARS
    SPAWN(five);
    return SYNC(five);
}

VOID_TASK_0(looks)
{
    CHECK(lace_is_worker() && LACE_WORKER_ID >= 0 && LACE_WORKER_ID < (int)lace_workers());
    CHECK(lace_get_head(lace_get_worker()) == __lace_dq_head);
    CHECK(lace_get_worker()->worker == (unsigned)LACE_WORKER_ID && lace_worker_id() == LACE_WORKER_ID);
    uint64_t random = LACE_TRNG;
    CHECK(random != LACE_TRNG && lace_rng(__lace_worker) != lace_rng(__lace_worker));
    CHECK(LACE_WORKER_PU >= -1);
    uses_what_is_for_compilers();
    Task *task = SPAWN(add, 1, 2);
    CHECK(!TASK_IS_COMPLETED(task) || *(int *)TASK_RESULT(task) == 3);
    if (lace_workers() == 1) {
        CHECK(!TASK_IS_STOLEN(task));
    }
    YIELD_NEWFRAME();
    lace_yield(lace_get_worker(), __lace_dq_head);
    STEAL_RANDOM();
    lace_steal_random();
    CHECK(SYNC(add) == 3);
    CHECK(helper() == 6 && another_helper() == 5);
}

/* By Lace 1.6's macro, which defines. */
TASK(int, double_of, int, n)
{
    return CALL(add, n, n);
}

TASK(void, both, int *, to, int, n)
{
    SPAWN(double_of, n);
    SPAWN(double_of, n + 1);
    *to = SYNC(double_of);
    *to += SYNC(double_of);
}

TASK(void *, nowhere)
{
    return NULL;
}

static _Atomic(unsigned) arrived;

VOID_TASK_1(meets, unsigned, times)
{
    for (unsigned at = 1; at <= times; at++) {
        arrived++;
        lace_barrier();
        CHECK(arrived == at * lace_workers());
        lace_barrier();
    }
}

TASK_0(int, is_in_a_frame)
{
    return atomic_load_explicit(&lace_newframe.t, memory_order_relaxed) != 0;
}

VOID_TASK_1(frames, int, depth)
{
    if (depth == 0) {
        CALL(tick);
        return;
    }
    /* There is one while its task runs. */
    SPAWN(frames, depth - 1);
    CHECK(NEWFRAME(is_in_a_frame));
    CHECK(NEWFRAME(fib, 8) == 21);
    TOGETHER(tick);
    SYNC(frames);
}

static void *outside(void *unused)
{
    for (long at = 0; at < 200; at++) {
        CHECK(RUN(add, (int)at, 1) == at + 1);
        CHECK(RUN(fib, 10) == 55);
        RUN(tick);
    }
    return unused;
}

/* Each task resets what it has taken, whoever runs it. */
TASK_1(long, scratches, long, depth)
{
    void *mark = LACE_SCRATCH_MARK();
    uint32_t *mine = LACE_SCRATCH_ARRAY(uint32_t, 25 + (size_t)depth);
    CHECK((uintptr_t)mine % 16 == 0);
    for (long at = 0; at < 25 + depth; at++) mine[at] = (uint32_t)depth;
    long below = 0;
    if (depth > 0) {
        SPAWN(scratches, depth - 1);
        below += CALL(scratches, depth - 1);
        below += SYNC(scratches);
    }
    for (long at = 0; at < 25 + depth; at++) CHECK(mine[at] == (uint32_t)depth);
    char *next = (char *)LACE_SCRATCH_ALLOC(1);
    CHECK(next >= (char *)(mine + 25 + depth));
    LACE_SCRATCH_RESET(mark);
    CHECK(lace_scratch_mark(lace_get_worker()) == mark || mark == NULL);
    CHECK(lace_scratch_alloc(lace_get_worker(), 1) == (void *)mine);
    lace_scratch_reset(lace_get_worker(), mark);
    return below + 1;
}

static void with(unsigned workers)
{
    lace_start(workers, 0);
    CHECK(lace_workers() == (workers ? workers : lace_get_pu_count()) && !lace_is_worker());
    CHECK(RUN(fib, 22) == 17711 && RUNEX(fib, 15) == 610 && NEWFRAME(fib, 15) == 610);
    CHECK(RUN(sum3, 1, 2, 3) == 6 && RUN(sum4, 1, 2, 3, 4) == 10 && RUN(sum5, 1, 2, 3, 4, 5) == 15 && RUN(sum6, 1, 2, 3, 4, 5, 6) == 21);
    CHECK(RUN(apply, TASK(add), 4, 5) == 9 && RUN(five) == 5 && RUN(six) == 6);
    RUN(nobody);
    int sum;
    RUN(both, &sum, 10);
    CHECK(sum == 42 && RUN(nowhere) == NULL && lace_is_running() && lace_get_worker() == NULL);
    RUN(all_of, 300);
    CHECK(RUN(drops, 1000) <= 1000);
    RUN(looks);
    taken();
    TOGETHER(tick);
    CHECK(taken() == lace_workers());
    arrived = 0;
    TOGETHER(meets, 50);
    CHECK(RUN(scratches, 10) == 2047);
    RUN(frames, 5);
    CHECK(taken() == 1 + 5 * lace_workers());
    lace_suspend();
    lace_resume();

    /* Several calls of RUN from outside at once: none is lost. */
    pthread_t threads[4];
    for (int at = 0; at < 4; at++) {
        CHECK(pthread_create(&threads[at], NULL, outside, NULL) == 0);
    }
    for (int at = 0; at < 4; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
    }
    CHECK(taken() == 800);

    lace_count_reset();
    RUN(fib, 5);
    reports();
    lace_stop();
    CHECK(lace_workers() == 0);
}

int main(void)
{
    lace_set_verbosity(0);
    lace_set_stacksize(16 << 20);
    lace_set_scratch_size(1 << 20);
    lace_set_scratch_band(1 << 16);
    CHECK(lace_get_stacksize() == 16 << 20);
    uint64_t before = lace_gethrtime();
    lace_sleep_us(2000);
    CHECK(lace_gethrtime() > before);
    for (unsigned workers = 0; workers <= 4; workers++) {
        with(workers);
    }
    puts("lace: passed");
    return 0;
}
