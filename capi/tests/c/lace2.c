/* Each macro and function of Lace 2's lace.h. */
#include <lace.h>

#include "check.h"
#include "lace_shared.h"

TASK(long, fib, long, n)
long fib_CALL(lace_worker *lw, long n)
{
    if (n < 2) return n;
    fib_SPAWN(lw, n - 1);
    long a = fib_CALL(lw, n - 2);
    return a + fib_SYNC(lw);
}

static _Atomic(size_t) count;

static size_t taken(void)
{
    return atomic_exchange(&count, 0);
}

TASK(void, tick)
void tick_CALL(lace_worker *lw)
{
    (void)lw;
    count++;
}

TASK(int, five)
int five_CALL(lace_worker *lw)
{
    (void)lw;
    return 5;
}

/* By their older names, with results that are pointers. */
TASK_2(int, add, int, a, int, b)
int add_CALL(lace_worker *lw, int a, int b)
{
    (void)lw;
    return a + b;
}
VOID_TASK_1(store, int *, to)
void store_CALL(lace_worker *lw, int *to)
{
    (void)lw;
    *to = 9;
}
TASK(void *, same, void *, what)
void *same_CALL(lace_worker *lw, void *what)
{
    (void)lw;
    return what;
}

TASK(long, sum14, long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h, long, i, long, j, long, k, long, l, long, m, long, n)
long sum14_CALL(lace_worker *lw, long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m, long n)
{
    (void)lw;
    return a + b + c + d + e + f + g + h + i + j + k + l + m + n;
}

TASK(void, store7, long *, to, long, a, long, b, long, c, long, d, long, e, long, f)
void store7_CALL(lace_worker *lw, long *to, long a, long b, long c, long d, long e, long f)
{
    (void)lw;
    *to = a + b + c + d + e + f;
}

struct large {
    char bytes[200];
};
TASK(struct large, fill, int, with)
struct large fill_CALL(lace_worker *lw, int with)
{
    struct large all;
    (void)lw;
    memset(all.bytes, with, sizeof all.bytes);
    return all;
}

/* Parameters and results that a slot's payload is not aligned to. */
TASK(struct line, shifted, struct line, from, int, by)
struct line shifted_CALL(lace_worker *lw, struct line from, int by)
{
    (void)lw;
    CHECK((uintptr_t)&from % LINE_SIZE == 0);
    for (size_t at = 0; at < sizeof from.bytes; at++) from.bytes[at] = (char)(from.bytes[at] + by);
    return from;
}

TASK(struct half_line, as_it_is, struct half_line, what)
struct half_line as_it_is_CALL(lace_worker *lw, struct half_line what)
{
    (void)lw;
    CHECK((uintptr_t)&what % 32 == 0);
    return what;
}

/* Spawns `n` of everything: with other workers about, some are stolen. */
TASK(void, all_of, int, n)
void all_of_CALL(lace_worker *lw, int n)
{
    for (int at = 0; at < n; at++) {
        long seven = 0;
        int nine = 0;
        lace_task *before = lw->head;
        same_SPAWN(lw, &seven);
        sum14_SPAWN(lw, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
        store7_SPAWN(lw, &seven, 1, 2, 3, 4, 5, 6);
        lace_task *filled = fill_SPAWN(lw, at);
        struct line line = {{0}};
        struct half_line half = {{1}};
        CHECK((uintptr_t)lace_task_result(shifted_SPAWN(lw, line, at % 100)) % LINE_SIZE == 0);
        CHECK((uintptr_t)lace_task_result(as_it_is_SPAWN(lw, half)) % 32 == 0);
        store_SPAWN(lw, &nine);
        five_SPAWN(lw);
        tick_SPAWN(lw);
        CHECK(lw->head == before + 9 && lace_get_head() == lw->head);
        CHECK(fib_CALL(lw, 8) == 21);
        tick_SYNC(lw);
        CHECK(five_SYNC(lw) == 5);
        store_SYNC(lw);
        CHECK(as_it_is_SYNC(lw).bytes[0] == 1);
        CHECK(shifted_SYNC(lw).bytes[LINE_SIZE - 1] == at % 100);
        CHECK(!lace_is_completed_task(filled) || ((struct large *)lace_task_result(filled))->bytes[199] == (char)at);
        struct large all = fill_SYNC(lw);
        store7_SYNC(lw);
        CHECK(sum14_SYNC(lw) == 105);
        CHECK(same_SYNC(lw) == &seven);
        CHECK(lw->head == before);
        CHECK(nine == 9 && seven == 21 && all.bytes[0] == (char)at && all.bytes[199] == (char)at);
    }
}

TASK(size_t, drops, size_t, n)
size_t drops_CALL(lace_worker *lw, size_t n)
{
    taken();
    for (size_t at = 0; at < n; at++) {
        tick_SPAWN(lw);
        sum14_SPAWN(lw, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
    }
    for (size_t at = 0; at < n; at++) {
        lace_drop(lw);
        tick_DROP(lw);
    }
    return taken();
}

TASK(void, looks)
void looks_CALL(lace_worker *lw)
{
    CHECK(lace_is_worker() && lace_get_worker() == lw);
    CHECK(lace_worker_id() >= 0 && lace_worker_id() < (int)lace_worker_count() && lw->worker == (unsigned)lace_worker_id());
    uses_what_is_for_compilers();
    uint64_t random = lace_rng(lw);
    CHECK(random != lace_rng(lw));
    lace_task *task = add_SPAWN(lw, 1, 2);
    lace_make_all_shared();
    CHECK(!lace_is_completed_task(task) || *(int *)lace_task_result(task) == 3);
    if (lace_worker_count() == 1) {
        CHECK(!lace_is_stolen_task(task));
    }
    lace_check_yield(lw);
    lace_steal_random(lw);
    CHECK(add_SYNC(lw) == 3);
    /* A function that was not given the worker: it runs the task where it is. */
    CHECK(fib(10) == 55 && five() == 5 && lace_get_worker() == lw);
    tick();
}

/* A result that was stolen is there before it is synced. */
TASK(void, waits)
void waits_CALL(lace_worker *lw)
{
    lace_task *small = add_SPAWN(lw, 20, 3);
    lace_task *large = fill_SPAWN(lw, 7);
    while (!lace_is_completed_task(small) || !lace_is_completed_task(large)) {
        lace_steal_random(lw);
        lace_sleep_us(10);
    }
    CHECK(lace_is_stolen_task(small) && lace_is_stolen_task(large));
    CHECK(*(int *)lace_task_result(small) == 23);
    CHECK(((struct large *)lace_task_result(large))->bytes[199] == 7);
    CHECK(fill_SYNC(lw).bytes[0] == 7 && add_SYNC(lw) == 23);
}

/* Each task resets what it has taken, whoever runs it. */
TASK(size_t, scratches, size_t, depth)
size_t scratches_CALL(lace_worker *lw, size_t depth)
{
    void *mark = lace_scratch_mark(lw);
    size_t length = 100 + depth * 37;
    unsigned char *mine = (unsigned char *)lace_scratch_alloc(lw, length);
    CHECK((uintptr_t)mine % 16 == 0);
    memset(mine, (int)depth, length);
    size_t below = 0;
    if (depth > 0) {
        scratches_SPAWN(lw, depth - 1);
        below += scratches_CALL(lw, depth - 1);
        below += scratches_SYNC(lw);
    }
    for (size_t at = 0; at < length; at++) {
        CHECK(mine[at] == (unsigned char)depth);
    }
    CHECK(lace_scratch_alloc(lw, 0) == mine + (length + 15) / 16 * 16);
    lace_scratch_reset(lw, mark);
    CHECK(lace_scratch_alloc(lw, 1) == mine);
    lace_scratch_reset(lw, mark);
    return below + 1;
}

static _Atomic(unsigned) arrived;

TASK(void, meets, unsigned, times)
void meets_CALL(lace_worker *lw, unsigned times)
{
    CHECK(lace_get_worker() == lw);
    for (unsigned at = 1; at <= times; at++) {
        arrived++;
        lace_barrier();
        CHECK(arrived == at * lace_worker_count());
        lace_barrier();
    }
}

TASK(void, frames, int, depth)
void frames_CALL(lace_worker *lw, int depth)
{
    if (depth == 0) {
        tick_CALL(lw);
        return;
    }
    frames_SPAWN(lw, depth - 1);
    CHECK(fib_NEWFRAME(8) == 21);
    tick_TOGETHER();
    CHECK(lace_get_worker() == lw);
    frames_SYNC(lw);
}

static void *outside(void *unused)
{
    for (long at = 0; at < 200; at++) {
        CHECK(add((int)at, 1) == at + 1);
        CHECK(fib(10) == 55);
        tick();
    }
    CHECK(lace_get_worker() == NULL);
    return unused;
}

static void with(unsigned workers)
{
    CHECK(!lace_is_running());
    lace_start(workers, 0, 16 << 20);
    CHECK(lace_is_running() && !lace_is_worker() && lace_get_worker() == NULL && lace_worker_id() == -1);
    CHECK(lace_worker_count() == (workers ? workers : lace_get_pu_count()));
    CHECK(fib(22) == 17711 && fib_NEWFRAME(15) == 610 && add(4, 5) == 9 && five() == 5);
    all_of(300);
    CHECK(drops(1000) <= 1000);
    looks();
    if (workers > 1) {
        waits();
    }
    CHECK(scratches(10) == (1 << 11) - 1);
    taken();
    tick_TOGETHER();
    CHECK(taken() == lace_worker_count());
    arrived = 0;
    meets_TOGETHER(50);
    frames(5);
    CHECK(taken() == 1 + 5 * lace_worker_count());

    /* Several calls from outside at once: none is lost. */
    pthread_t threads[4];
    for (int at = 0; at < 4; at++) {
        CHECK(pthread_create(&threads[at], NULL, outside, NULL) == 0);
    }
    for (int at = 0; at < 4; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
    }
    CHECK(taken() == 800);

    lace_count_reset();
    fib(5);
    reports();
    lace_stop();
    CHECK(!lace_is_running() && lace_worker_count() == 0);
}

int main(void)
{
    lace_set_verbosity(0);
    lace_set_scratch_size(64 << 20);
    lace_set_scratch_band(1 << 20);
    uint64_t before = lace_gethrtime();
    for (unsigned workers = 0; workers <= 4; workers++) {
        with(workers);
    }
    CHECK(lace_gethrtime() > before);
    puts("lace2: passed");
    return 0;
}
