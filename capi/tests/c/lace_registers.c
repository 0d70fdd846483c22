/*
 * What a compiler keeps in registers across a fork is there afterwards, also where the fork comes to the library, for the first time and later, and where
 * the worker runs other tasks meanwhile: integers, floating point, and the x87's.
 */
#include <lace.h>

#include "check.h"

VOID_TASK_0(nothing)
{
}

/* 2^depth, by long double: what is on the x87's stack when another task comes must not be in its way. */
TASK_2(long double, power, int, depth, long double, unit)
{
    if (depth == 0) return unit;
    SPAWN(power, depth - 1, unit);
    long double own = unit * 3.0L - unit;
    double other = (double)unit * 4.0;
    long double left = CALL(power, depth - 1, unit);
    long double right = SYNC(power);
    /* `own` and `other` are 2 and 4, if they have lasted. */
    return (left + right) * own * (long double)other / 8.0L;
}

/* More integers than there are registers that a function must save, all alive across each step. */
TASK_1(long, many, const long *, from)
{
    long a = from[0], b = from[1], c = from[2], d = from[3], e = from[4], f = from[5], g = from[6], h = from[7];
    for (int at = 0; at < 40; at++) {
        SPAWN(nothing);
        SPAWN(nothing);
        a += b, b ^= c, c += d, d ^= e, e += f, f ^= g, g += h, h ^= a;
        DROP();
        SYNC(nothing);
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

static long expected(const long *from)
{
    long a = from[0], b = from[1], c = from[2], d = from[3], e = from[4], f = from[5], g = from[6], h = from[7];
    for (int at = 0; at < 40; at++) {
        a += b, b ^= c, c += d, d ^= e, e += f, f ^= g, g += h, h ^= a;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

int main(void)
{
    static const long from[8] = {1, 2, 3, 5, 8, 13, 21, 34};
    for (unsigned workers = 1; workers <= 3; workers++) {
        lace_start(workers, 0);
        for (int times = 0; times < 200; times++) {
            CHECK(RUN(many, from) == expected(from));
        }
        for (int times = 0; times < 20; times++) {
            CHECK(RUN(power, 10, 1.0L) == 1024.0L);
        }
        lace_stop();
    }
    puts("lace_registers: passed");
    return 0;
}
