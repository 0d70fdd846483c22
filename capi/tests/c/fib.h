/* A number of Fibonacci by joins: its argument and result stand with the caller. */
#ifndef FIB_H
#define FIB_H

#include <poach.h>

struct fib {
    long n;
    long result;
};

static void fib(poach_worker *worker, void *context)
{
    struct fib *this = (struct fib *)context;
    if (this->n < 2) {
        this->result = this->n;
        return;
    }
    struct fib a = {this->n - 1, 0}, b = {this->n - 2, 0};
    poach_join(worker, fib, &a, fib, &b);
    this->result = a.result + b.result;
}

#endif
