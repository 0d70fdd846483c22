/*
 * Lace 2's tasks of each number of parameters, by each macro that declares one, spawned, synced, called, dropped, run, and run in a frame and together.
 * The sum weighs each parameter, so that two which change places are seen.
 */
#include <lace.h>

#include "check.h"

#define NAMED_1 long, a
#define NAMED_2 long, a, long, b
#define NAMED_3 long, a, long, b, long, c
#define NAMED_4 long, a, long, b, long, c, long, d
#define NAMED_5 long, a, long, b, long, c, long, d, long, e
#define NAMED_6 long, a, long, b, long, c, long, d, long, e, long, f
#define NAMED_7 long, a, long, b, long, c, long, d, long, e, long, f, long, g
#define NAMED_8 long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h
#define NAMED_9 long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h, long, i
#define NAMED_10 long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h, long, i, long, j
#define NAMED_11 long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h, long, i, long, j, long, k
#define NAMED_12 long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h, long, i, long, j, long, k, long, l
#define NAMED_13 long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h, long, i, long, j, long, k, long, l, long, m
#define NAMED_14 long, a, long, b, long, c, long, d, long, e, long, f, long, g, long, h, long, i, long, j, long, k, long, l, long, m, long, n
#define VALUES_1 1
#define VALUES_2 1, 2
#define VALUES_3 1, 2, 3
#define VALUES_4 1, 2, 3, 4
#define VALUES_5 1, 2, 3, 4, 5
#define VALUES_6 1, 2, 3, 4, 5, 6
#define VALUES_7 1, 2, 3, 4, 5, 6, 7
#define VALUES_8 1, 2, 3, 4, 5, 6, 7, 8
#define VALUES_9 1, 2, 3, 4, 5, 6, 7, 8, 9
#define VALUES_10 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
#define VALUES_11 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
#define VALUES_12 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
#define VALUES_13 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
#define VALUES_14 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
#define SUM_1 (a)
#define SUM_2 (a + 2 * b)
#define SUM_3 (a + 2 * b + 3 * c)
#define SUM_4 (a + 2 * b + 3 * c + 4 * d)
#define SUM_5 (a + 2 * b + 3 * c + 4 * d + 5 * e)
#define SUM_6 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f)
#define SUM_7 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g)
#define SUM_8 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h)
#define SUM_9 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i)
#define SUM_10 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j)
#define SUM_11 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k)
#define SUM_12 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l)
#define SUM_13 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m)
#define SUM_14 (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n)
#define PARAMETERS_1 long a
#define PARAMETERS_2 long a, long b
#define PARAMETERS_3 long a, long b, long c
#define PARAMETERS_4 long a, long b, long c, long d
#define PARAMETERS_5 long a, long b, long c, long d, long e
#define PARAMETERS_6 long a, long b, long c, long d, long e, long f
#define PARAMETERS_7 long a, long b, long c, long d, long e, long f, long g
#define PARAMETERS_8 long a, long b, long c, long d, long e, long f, long g, long h
#define PARAMETERS_9 long a, long b, long c, long d, long e, long f, long g, long h, long i
#define PARAMETERS_10 long a, long b, long c, long d, long e, long f, long g, long h, long i, long j
#define PARAMETERS_11 long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k
#define PARAMETERS_12 long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l
#define PARAMETERS_13 long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m
#define PARAMETERS_14 long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m, long n

static _Atomic(long) sum;

static long taken(void)
{
    return atomic_exchange(&sum, 0);
}

#define APPLY(macro, ...) macro(__VA_ARGS__)

/* Tasks of N parameters, by their numbered names and by the macro that counts, and one that does with them all that can be done. */
#define ARITY(N, EXPECTED, TASK_N, VOID_TASK_N)                                                                   \
    APPLY(TASK_N, long, gives_##N, NAMED_##N)                                                                     \
    APPLY(VOID_TASK_N, adds_##N, NAMED_##N)                                                                       \
    APPLY(TASK, long, counted_##N, NAMED_##N)                                                                     \
    APPLY(TASK, void, counts_##N, NAMED_##N)                                                                      \
    long gives_##N##_CALL(lace_worker *lw, PARAMETERS_##N) { return (void)lw, SUM_##N; }                          \
    void adds_##N##_CALL(lace_worker *lw, PARAMETERS_##N) { (void)lw, sum += SUM_##N; }                           \
    long counted_##N##_CALL(lace_worker *lw, PARAMETERS_##N) { return (void)lw, SUM_##N; }                        \
    void counts_##N##_CALL(lace_worker *lw, PARAMETERS_##N) { (void)lw, sum += SUM_##N; }                         \
    TASK(void, all_##N, int, times)                                                                               \
    void all_##N##_CALL(lace_worker *lw, int times)                                                               \
    {                                                                                                             \
        for (int at = 0; at < times; at++) {                                                                      \
            taken();                                                                                              \
            gives_##N##_SPAWN(lw, VALUES_##N);                                                                    \
            adds_##N##_SPAWN(lw, VALUES_##N);                                                                     \
            counted_##N##_SPAWN(lw, VALUES_##N);                                                                  \
            counts_##N##_SPAWN(lw, VALUES_##N);                                                                   \
            gives_##N##_SPAWN(lw, VALUES_##N);                                                                    \
            counted_##N##_SPAWN(lw, VALUES_##N);                                                                  \
            CHECK(gives_##N##_CALL(lw, VALUES_##N) == EXPECTED && counted_##N(VALUES_##N) == EXPECTED);           \
            counted_##N##_DROP(lw);                                                                               \
            lace_drop(lw);                                                                                        \
            counts_##N##_SYNC(lw);                                                                                \
            CHECK(counted_##N##_SYNC(lw) == EXPECTED);                                                            \
            adds_##N##_SYNC(lw);                                                                                  \
            CHECK(gives_##N##_SYNC(lw) == EXPECTED);                                                              \
            adds_##N##_CALL(lw, VALUES_##N);                                                                      \
            counts_##N(VALUES_##N);                                                                               \
            CHECK(taken() == 4L * (EXPECTED));                                                                    \
        }                                                                                                         \
        CHECK(gives_##N##_NEWFRAME(VALUES_##N) == EXPECTED);                                                      \
        adds_##N##_TOGETHER(VALUES_##N);                                                                          \
        CHECK(taken() == (EXPECTED) * (long)lace_worker_count());                                                 \
    }                                                                                                             \
    static void from_outside_##N(void)                                                                            \
    {                                                                                                             \
        all_##N(30);                                                                                              \
        CHECK(gives_##N(VALUES_##N) == EXPECTED && counted_##N##_NEWFRAME(VALUES_##N) == EXPECTED);               \
        adds_##N(VALUES_##N);                                                                                     \
        counts_##N##_NEWFRAME(VALUES_##N);                                                                        \
        CHECK(taken() == 2L * (EXPECTED));                                                                        \
        counts_##N##_TOGETHER(VALUES_##N);                                                                        \
        CHECK(taken() == (EXPECTED) * (long)lace_worker_count());                                                 \
        gives_##N##_TOGETHER(VALUES_##N);                                                                         \
    }

ARITY(1, 1, TASK_1, VOID_TASK_1)
ARITY(2, 5, TASK_2, VOID_TASK_2)
ARITY(3, 14, TASK_3, VOID_TASK_3)
ARITY(4, 30, TASK_4, VOID_TASK_4)
ARITY(5, 55, TASK_5, VOID_TASK_5)
ARITY(6, 91, TASK_6, VOID_TASK_6)
ARITY(7, 140, TASK_7, VOID_TASK_7)
ARITY(8, 204, TASK_8, VOID_TASK_8)
ARITY(9, 285, TASK_9, VOID_TASK_9)
ARITY(10, 385, TASK_10, VOID_TASK_10)
ARITY(11, 506, TASK_11, VOID_TASK_11)
ARITY(12, 650, TASK_12, VOID_TASK_12)
ARITY(13, 819, TASK_13, VOID_TASK_13)
ARITY(14, 1015, TASK_14, VOID_TASK_14)

/* None. */
TASK_0(long, gives_0)
VOID_TASK_0(adds_0)
long gives_0_CALL(lace_worker *lw) { return (void)lw, 5; }
void adds_0_CALL(lace_worker *lw) { (void)lw, sum += 5; }
TASK(void, all_0)
void all_0_CALL(lace_worker *lw)
{
    taken();
    gives_0_SPAWN(lw);
    adds_0_SPAWN(lw);
    adds_0_SPAWN(lw);
    adds_0_SYNC(lw);
    adds_0_SYNC(lw);
    CHECK(gives_0_SYNC(lw) == 5 && gives_0() == 5 && gives_0_CALL(lw) == 5);
    CHECK(taken() == 10);
}

int main(void)
{
    for (unsigned workers = 1; workers <= 3; workers++) {
        lace_start(workers, 0, 0);
        all_0();
        CHECK(gives_0() == 5 && gives_0_NEWFRAME() == 5);
        adds_0_TOGETHER();
        CHECK(taken() == 5L * (long)workers);
        from_outside_1();
        from_outside_2();
        from_outside_3();
        from_outside_4();
        from_outside_5();
        from_outside_6();
        from_outside_7();
        from_outside_8();
        from_outside_9();
        from_outside_10();
        from_outside_11();
        from_outside_12();
        from_outside_13();
        from_outside_14();
        lace_stop();
    }
    puts("lace2_arities: passed");
    return 0;
}
