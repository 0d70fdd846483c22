/* Forks: poach_join in all places, on one worker and on more, and a full stack. */
#include <poach.h>

#include "check.h"

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

static void nothing(poach_worker *worker, void *context)
{
    (void)worker;
    (void)context;
}

/* As deep as `*context` says, each level a fork that is pending. */
static void deep(poach_worker *worker, void *context)
{
    long *left = (long *)context;
    if (*left > 0) {
        *left -= 1;
        poach_join(worker, deep, context, nothing, NULL);
    }
}

static void who(poach_worker *worker, void *context)
{
    *(int *)context = poach_current_worker() == worker && poach_worker_index(worker) == poach_current_index();
}

int main(void)
{
    for (int threads = 1; threads <= 4; threads++) {
        poach_pool_options options = {0};
        options.threads = threads;
        options.task_stack = 1000;
        poach_pool *pool = NULL;
        OK(poach_pool_new(&options, &pool));
        struct fib root = {22, 0};
        OK(poach_run(pool, fib, &root));
        CHECK(root.result == 17711);
        root.result = 0;
        OK(poach_install(pool, fib, &root));
        CHECK(root.result == 17711);
        root.result = 0;
        OK(poach_interrupt(pool, fib, &root));
        CHECK(root.result == 17711);
        /* More than the stack holds: from there on without forks. */
        long left = 5000;
        OK(poach_install(pool, deep, &left));
        CHECK(left == 0);
        int same = 0;
        OK(poach_run(pool, who, &same));
        CHECK(same);
        CHECK(poach_current_worker() == NULL && poach_current_index() == -1);
        poach_stats stats;
        OK(poach_pool_stats(pool, &stats));
        CHECK(stats.tasks > 0);
        OK(poach_pool_end(pool));
    }
    puts("fork: passed");
    return 0;
}
