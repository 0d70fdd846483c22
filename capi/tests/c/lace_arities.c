/*
 * Tasks of each number of parameters, by each macro that defines or declares one, spawned, synced, called, dropped, run, and run in a frame and together.
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
#define TYPES_1 long
#define TYPES_2 long, long
#define TYPES_3 long, long, long
#define TYPES_4 long, long, long, long
#define TYPES_5 long, long, long, long, long
#define TYPES_6 long, long, long, long, long, long
#define TYPES_7 long, long, long, long, long, long, long
#define TYPES_8 long, long, long, long, long, long, long, long
#define TYPES_9 long, long, long, long, long, long, long, long, long
#define TYPES_10 long, long, long, long, long, long, long, long, long, long
#define TYPES_11 long, long, long, long, long, long, long, long, long, long, long
#define TYPES_12 long, long, long, long, long, long, long, long, long, long, long, long
#define TYPES_13 long, long, long, long, long, long, long, long, long, long, long, long, long
#define TYPES_14 long, long, long, long, long, long, long, long, long, long, long, long, long, long
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

static _Atomic(long) sum;

static long taken(void)
{
    return atomic_exchange(&sum, 0);
}

#define APPLY(macro, ...) macro(__VA_ARGS__)

/* Tasks of N parameters, and one that does with them all that can be done. */
#define ARITY(N, EXPECTED, TASK_N, VOID_TASK_N, TASK_DECL_N, TASK_IMPL_N, VOID_TASK_DECL_N, VOID_TASK_IMPL_N)     \
    APPLY(TASK_N, long, gives_##N, NAMED_##N) { return SUM_##N; }                                                \
    APPLY(VOID_TASK_N, adds_##N, NAMED_##N) { sum += SUM_##N; }                                                  \
    APPLY(TASK_DECL_N, long, gives_later_##N, TYPES_##N)                                                          \
    APPLY(VOID_TASK_DECL_N, adds_later_##N, TYPES_##N)                                                            \
    VOID_TASK_1(all_##N, int, times)                                                                              \
    {                                                                                                             \
        for (int at = 0; at < times; at++) {                                                                      \
            taken();                                                                                              \
            SPAWN(gives_##N, VALUES_##N);                                                                         \
            SPAWN(adds_##N, VALUES_##N);                                                                          \
            SPAWN(gives_later_##N, VALUES_##N);                                                                   \
            SPAWN(adds_later_##N, VALUES_##N);                                                                    \
            SPAWN(gives_##N, VALUES_##N);                                                                         \
            CHECK(CALL(gives_##N, VALUES_##N) == EXPECTED && CALL(gives_later_##N, VALUES_##N) == EXPECTED);      \
            DROP();                                                                                               \
            SYNC(adds_later_##N);                                                                                 \
            CHECK(SYNC(gives_later_##N) == EXPECTED);                                                             \
            SYNC(adds_##N);                                                                                       \
            CHECK(SYNC(gives_##N) == EXPECTED);                                                                   \
            CALL(adds_##N, VALUES_##N);                                                                           \
            CALL(adds_later_##N, VALUES_##N);                                                                     \
            CHECK(taken() == 4L * (EXPECTED));                                                                    \
        }                                                                                                         \
        CHECK(NEWFRAME(gives_##N, VALUES_##N) == EXPECTED);                                                       \
        TOGETHER(adds_##N, VALUES_##N);                                                                           \
        CHECK(taken() == (EXPECTED) * (long)lace_workers());                                                      \
    }                                                                                                             \
    APPLY(TASK_IMPL_N, long, gives_later_##N, NAMED_##N) { return SUM_##N; }                                     \
    APPLY(VOID_TASK_IMPL_N, adds_later_##N, NAMED_##N) { sum += SUM_##N; }                                       \
    static void from_outside_##N(void)                                                                            \
    {                                                                                                             \
        RUN(all_##N, 30);                                                                                         \
        CHECK(RUN(gives_##N, VALUES_##N) == EXPECTED && RUN(gives_later_##N, VALUES_##N) == EXPECTED);            \
        CHECK(RUNEX(gives_##N, VALUES_##N) == EXPECTED && NEWFRAME(gives_later_##N, VALUES_##N) == EXPECTED);     \
        RUN(adds_##N, VALUES_##N);                                                                                \
        RUN(adds_later_##N, VALUES_##N);                                                                          \
        NEWFRAME(adds_##N, VALUES_##N);                                                                           \
        CHECK(taken() == 3L * (EXPECTED));                                                                        \
        TOGETHER(adds_later_##N, VALUES_##N);                                                                     \
        CHECK(taken() == (EXPECTED) * (long)lace_workers());                                                      \
        TOGETHER(gives_##N, VALUES_##N);                                                                          \
    }

ARITY(1, 1, TASK_1, VOID_TASK_1, TASK_DECL_1, TASK_IMPL_1, VOID_TASK_DECL_1, VOID_TASK_IMPL_1)
ARITY(2, 5, TASK_2, VOID_TASK_2, TASK_DECL_2, TASK_IMPL_2, VOID_TASK_DECL_2, VOID_TASK_IMPL_2)
ARITY(3, 14, TASK_3, VOID_TASK_3, TASK_DECL_3, TASK_IMPL_3, VOID_TASK_DECL_3, VOID_TASK_IMPL_3)
ARITY(4, 30, TASK_4, VOID_TASK_4, TASK_DECL_4, TASK_IMPL_4, VOID_TASK_DECL_4, VOID_TASK_IMPL_4)
ARITY(5, 55, TASK_5, VOID_TASK_5, TASK_DECL_5, TASK_IMPL_5, VOID_TASK_DECL_5, VOID_TASK_IMPL_5)
ARITY(6, 91, TASK_6, VOID_TASK_6, TASK_DECL_6, TASK_IMPL_6, VOID_TASK_DECL_6, VOID_TASK_IMPL_6)
ARITY(7, 140, TASK_7, VOID_TASK_7, TASK_DECL_7, TASK_IMPL_7, VOID_TASK_DECL_7, VOID_TASK_IMPL_7)
ARITY(8, 204, TASK_8, VOID_TASK_8, TASK_DECL_8, TASK_IMPL_8, VOID_TASK_DECL_8, VOID_TASK_IMPL_8)
ARITY(9, 285, TASK_9, VOID_TASK_9, TASK_DECL_9, TASK_IMPL_9, VOID_TASK_DECL_9, VOID_TASK_IMPL_9)
ARITY(10, 385, TASK_10, VOID_TASK_10, TASK_DECL_10, TASK_IMPL_10, VOID_TASK_DECL_10, VOID_TASK_IMPL_10)
ARITY(11, 506, TASK_11, VOID_TASK_11, TASK_DECL_11, TASK_IMPL_11, VOID_TASK_DECL_11, VOID_TASK_IMPL_11)
ARITY(12, 650, TASK_12, VOID_TASK_12, TASK_DECL_12, TASK_IMPL_12, VOID_TASK_DECL_12, VOID_TASK_IMPL_12)
ARITY(13, 819, TASK_13, VOID_TASK_13, TASK_DECL_13, TASK_IMPL_13, VOID_TASK_DECL_13, VOID_TASK_IMPL_13)
ARITY(14, 1015, TASK_14, VOID_TASK_14, TASK_DECL_14, TASK_IMPL_14, VOID_TASK_DECL_14, VOID_TASK_IMPL_14)

/* None. */
TASK_0(long, gives_0) { return 5; }
VOID_TASK_0(adds_0) { sum += 5; }
TASK_DECL_0(long, gives_later_0)
VOID_TASK_DECL_0(adds_later_0)
VOID_TASK_0(all_0)
{
    taken();
    SPAWN(gives_0);
    SPAWN(adds_0);
    SPAWN(gives_later_0);
    SPAWN(adds_later_0);
    SPAWN(gives_0);
    DROP();
    SYNC(adds_later_0);
    CHECK(SYNC(gives_later_0) == 7);
    SYNC(adds_0);
    CHECK(SYNC(gives_0) == 5 && CALL(gives_0) == 5 && CALL(gives_later_0) == 7);
    CALL(adds_0);
    CALL(adds_later_0);
    CHECK(taken() == 24);
}
TASK_IMPL_0(long, gives_later_0) { return 7; }
VOID_TASK_IMPL_0(adds_later_0) { sum += 7; }

/* By the macro of Lace 1.6, which counts. */
TASK(long, counted_0) { return 5; }
TASK(void, counts_0) { sum += 5; }
APPLY(TASK, long, counted_1, NAMED_1) { return SUM_1; }
APPLY(TASK, void, counts_1, NAMED_1) { sum += SUM_1; }
APPLY(TASK, long, counted_2, NAMED_2) { return SUM_2; }
APPLY(TASK, void, counts_2, NAMED_2) { sum += SUM_2; }
APPLY(TASK, long, counted_3, NAMED_3) { return SUM_3; }
APPLY(TASK, void, counts_3, NAMED_3) { sum += SUM_3; }
APPLY(TASK, long, counted_4, NAMED_4) { return SUM_4; }
APPLY(TASK, void, counts_4, NAMED_4) { sum += SUM_4; }
APPLY(TASK, long, counted_5, NAMED_5) { return SUM_5; }
APPLY(TASK, void, counts_5, NAMED_5) { sum += SUM_5; }
APPLY(TASK, long, counted_6, NAMED_6) { return SUM_6; }
APPLY(TASK, void, counts_6, NAMED_6) { sum += SUM_6; }
APPLY(TASK, long, counted_7, NAMED_7) { return SUM_7; }
APPLY(TASK, void, counts_7, NAMED_7) { sum += SUM_7; }
APPLY(TASK, long, counted_8, NAMED_8) { return SUM_8; }
APPLY(TASK, void, counts_8, NAMED_8) { sum += SUM_8; }
APPLY(TASK, long, counted_9, NAMED_9) { return SUM_9; }
APPLY(TASK, void, counts_9, NAMED_9) { sum += SUM_9; }
APPLY(TASK, long, counted_10, NAMED_10) { return SUM_10; }
APPLY(TASK, void, counts_10, NAMED_10) { sum += SUM_10; }
APPLY(TASK, long, counted_11, NAMED_11) { return SUM_11; }
APPLY(TASK, void, counts_11, NAMED_11) { sum += SUM_11; }
APPLY(TASK, long, counted_12, NAMED_12) { return SUM_12; }
APPLY(TASK, void, counts_12, NAMED_12) { sum += SUM_12; }
APPLY(TASK, long, counted_13, NAMED_13) { return SUM_13; }
APPLY(TASK, void, counts_13, NAMED_13) { sum += SUM_13; }
APPLY(TASK, long, counted_14, NAMED_14) { return SUM_14; }
APPLY(TASK, void, counts_14, NAMED_14) { sum += SUM_14; }

VOID_TASK_0(counted)
{
    taken();
    SPAWN(counted_0);
    SPAWN(counts_0);
    SYNC(counts_0);
    CHECK(SYNC(counted_0) == 5);
    SPAWN(counted_1, VALUES_1);
    SPAWN(counts_1, VALUES_1);
    SYNC(counts_1);
    CHECK(SYNC(counted_1) == 1);
    SPAWN(counted_2, VALUES_2);
    SPAWN(counts_2, VALUES_2);
    SYNC(counts_2);
    CHECK(SYNC(counted_2) == 5);
    SPAWN(counted_3, VALUES_3);
    SPAWN(counts_3, VALUES_3);
    SYNC(counts_3);
    CHECK(SYNC(counted_3) == 14);
    SPAWN(counted_4, VALUES_4);
    SPAWN(counts_4, VALUES_4);
    SYNC(counts_4);
    CHECK(SYNC(counted_4) == 30);
    SPAWN(counted_5, VALUES_5);
    SPAWN(counts_5, VALUES_5);
    SYNC(counts_5);
    CHECK(SYNC(counted_5) == 55);
    SPAWN(counted_6, VALUES_6);
    SPAWN(counts_6, VALUES_6);
    SYNC(counts_6);
    CHECK(SYNC(counted_6) == 91);
    SPAWN(counted_7, VALUES_7);
    SPAWN(counts_7, VALUES_7);
    SYNC(counts_7);
    CHECK(SYNC(counted_7) == 140);
    SPAWN(counted_8, VALUES_8);
    SPAWN(counts_8, VALUES_8);
    SYNC(counts_8);
    CHECK(SYNC(counted_8) == 204);
    SPAWN(counted_9, VALUES_9);
    SPAWN(counts_9, VALUES_9);
    SYNC(counts_9);
    CHECK(SYNC(counted_9) == 285);
    SPAWN(counted_10, VALUES_10);
    SPAWN(counts_10, VALUES_10);
    SYNC(counts_10);
    CHECK(SYNC(counted_10) == 385);
    SPAWN(counted_11, VALUES_11);
    SPAWN(counts_11, VALUES_11);
    SYNC(counts_11);
    CHECK(SYNC(counted_11) == 506);
    SPAWN(counted_12, VALUES_12);
    SPAWN(counts_12, VALUES_12);
    SYNC(counts_12);
    CHECK(SYNC(counted_12) == 650);
    SPAWN(counted_13, VALUES_13);
    SPAWN(counts_13, VALUES_13);
    SYNC(counts_13);
    CHECK(SYNC(counted_13) == 819);
    SPAWN(counted_14, VALUES_14);
    SPAWN(counts_14, VALUES_14);
    SYNC(counts_14);
    CHECK(SYNC(counted_14) == 1015);
    CHECK(taken() == 4205);
}

int main(void)
{
    for (unsigned workers = 1; workers <= 3; workers++) {
        lace_start(workers, 0);
        RUN(all_0);
        CHECK(RUN(gives_0) == 5 && RUN(gives_later_0) == 7 && NEWFRAME(gives_0) == 5);
        TOGETHER(adds_0);
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
        RUN(counted);
        lace_stop();
    }
    puts("lace_arities: passed");
    return 0;
}
