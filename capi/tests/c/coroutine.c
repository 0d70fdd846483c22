/*
 * A callback goes on, on another stack: that of a coroutine of the program's, which may be above its own or below. Calls of the library's from there, and
 * from where the coroutine is left, are as good as any.
 */
#include <poach.h>

#include <sys/mman.h>
#include <ucontext.h>

#include "check.h"

/* So large that valgrind, too, takes one for another stack and not for more of the same. */
enum { STACK = 4 << 20, THREADS_STACK = 8 << 20, PLACES = 8 };

/* Two sanitizers take a stack that they have not been told of for an error; they have functions to tell them, which are not what is asked for here. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED

#include "fib.h"

static poach_pool *pool;

struct coroutine {
    ucontext_t own, callers;
    poach_worker *worker;
    int turns;
};

/* The one that begins: makecontext's functions have no parameter of a pointer's size. */
static _Thread_local struct coroutine *beginning;

static void works(void)
{
    struct coroutine *this = beginning;
    for (int at = 0; at < 3; at++) {
        struct fib root = {15, 0};
        fib(this->worker, &root);
        CHECK(root.result == 610);
        OK(poach_check());
        OK(poach_run(pool, fib, &root));
        CHECK(root.result == 610);
        this->turns++;
        CHECK(swapcontext(&this->own, &this->callers) == 0);
    }
    for (;;) {
        CHECK(swapcontext(&this->own, &this->callers) == 0);
    }
}

static void changes_stacks(poach_worker *worker, void *context)
{
    struct coroutine this;
    this.worker = worker;
    this.turns = 0;
    CHECK(getcontext(&this.own) == 0);
    this.own.uc_stack.ss_sp = context;
    this.own.uc_stack.ss_size = STACK;
    this.own.uc_link = NULL;
    makecontext(&this.own, works, 0);
    beginning = &this;
    for (int at = 0; at < 3; at++) {
        CHECK(swapcontext(&this.callers, &this.own) == 0);
        OK(poach_check());
        struct fib root = {10, 0};
        fib(worker, &root);
        CHECK(root.result == 55);
    }
    CHECK(this.turns == 3);
    beginning = NULL;
}

static void *stack(void)
{
    void *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

int main(void)
{
    /* The system maps downwards: so the first stacks are above those of the pool's threads, the others below. */
    void *stacks[PLACES];
    for (int at = 0; at < PLACES / 2; at++) {
        stacks[at] = stack();
    }
    poach_pool_options options = {0};
    options.threads = 2;
    options.stack_size = THREADS_STACK;
    OK(poach_pool_new(&options, &pool));
    for (int at = PLACES / 2; at < PLACES; at++) {
        stacks[at] = stack();
    }
    for (int at = 0; at < PLACES; at++) {
        OK(poach_install(pool, changes_stacks, stacks[at]));
        OK(poach_run(pool, changes_stacks, stacks[at]));
        CHECK(munmap(stacks[at], STACK) == 0);
    }
    OK(poach_pool_end(pool));
    puts("coroutine: passed");
    return 0;
}

#else

int main(void)
{
    puts("coroutine: left out under this sanitizer");
    return 0;
}

#endif
