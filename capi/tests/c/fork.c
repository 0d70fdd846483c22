/* Forks: poach_join in all places, on one worker and on more, and a full stack. */
#include <poach.h>

#include "check.h"
#include "fib.h"

/* The same by a fork's steps: the task and its result stand in the slot. */
static long fib_in_steps(poach_worker *worker, long n);

static void stolen_fib(poach_slot *task, poach_worker *worker)
{
    long n;
    memcpy(&n, task->payload, sizeof n);
    n = fib_in_steps(worker, n);
    memcpy(task->payload, &n, sizeof n);
}

static const poach_task fib_task = {poach_run_stolen, stolen_fib};

static long fib_in_steps(poach_worker *worker, long n)
{
    if (n < 2) {
        return n;
    }
    long other = n - 2;
    memcpy(poach_fork_begin(worker), &other, sizeof other);
    poach_worker *above = poach_fork_push(worker, &fib_task);
    CHECK(above == worker + 1);
    long result = fib_in_steps(above, n - 1);
    /* Both pops do the same here. */
    int own = n % 2 ? poach_fork_pop(worker) : poach_fork_pop_of(worker, &fib_task);
    if (own) {
        return result + fib_in_steps(worker, other);
    }
    memcpy(&other, worker->payload, sizeof other);
    return result + other;
}

static void steps(poach_worker *worker, void *context)
{
    *(long *)context = fib_in_steps(worker, 22);
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
        long result = 0;
        OK(poach_run(pool, steps, &result));
        CHECK(result == 17711);
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
