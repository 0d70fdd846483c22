/* What is not meant: each is a code, or the end of the process with a message. `bad_input NAME` runs one that ends it. */
#include <poach.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static poach_pool *pool;

static void empty(poach_worker *worker, void *context)
{
    (void)worker;
    (void)context;
}

static void pops_what_is_not_there(poach_worker *worker, void *context)
{
    (void)context;
    poach_fork_pop(worker);
}

static void body_of_none(poach_slot *task, poach_worker *worker)
{
    (void)task;
    (void)worker;
}

static const poach_task none = {poach_run_stolen, body_of_none};

static void leaves_a_fork(poach_worker *worker, void *context)
{
    (void)context;
    poach_fork_begin(worker);
    poach_fork_push(worker, &none);
}

static void uses_the_outer_worker(poach_worker *worker, void *context)
{
    if (context) {
        poach_join((poach_worker *)context, empty, NULL, empty, NULL);
    } else {
        poach_join(worker, uses_the_outer_worker, worker, empty, NULL);
    }
}

static jmp_buf back;

static void jumps(poach_worker *worker, void *context)
{
    (void)worker;
    (void)context;
    longjmp(back, 1);
}

/* Past its own fork, back into the same body; `context`: which then returns, and does not fork again. */
static jmp_buf inside;

static void jumps_inside(poach_worker *worker, void *context)
{
    (void)worker;
    (void)context;
    longjmp(inside, 1);
}

static void jumps_past_a_fork(poach_worker *worker, void *context)
{
    if (setjmp(inside) == 0) {
        poach_join(worker, jumps_inside, NULL, empty, NULL);
    } else if (context == NULL) {
        poach_join(worker, empty, NULL, empty, NULL);
    }
}

static void ends_its_thread(poach_worker *worker, void *context)
{
    (void)worker;
    (void)context;
    pthread_exit(NULL);
}

static int dies(const char *name)
{
    if (!strcmp(name, "pop")) {
        return (int)poach_run(pool, pops_what_is_not_there, NULL);
    } else if (!strcmp(name, "left")) {
        return (int)poach_run(pool, leaves_a_fork, NULL);
    } else if (!strcmp(name, "outer")) {
        return (int)poach_run(pool, uses_the_outer_worker, NULL);
    } else if (!strcmp(name, "longjmp")) {
        if (setjmp(back) == 0) {
            return (int)poach_run(pool, jumps, NULL);
        }
        return (int)poach_run(pool, empty, NULL);
    } else if (!strcmp(name, "longjmp, then fork")) {
        return (int)poach_run(pool, jumps_past_a_fork, NULL);
    } else if (!strcmp(name, "longjmp, then return")) {
        return (int)poach_run(pool, jumps_past_a_fork, &pool);
    } else if (!strcmp(name, "exit")) {
        return (int)poach_run(pool, ends_its_thread, NULL);
    }
    return 2;
}

static void must_die(const char *program, const char *name)
{
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(freopen("/dev/null", "w", stderr) != NULL);
        execl(program, program, name, (char *)NULL);
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (!(WIFSIGNALED(status) && WTERMSIG(status) == 6)) {
        fprintf(stderr, "%s: did not abort: status %x\n", name, (unsigned)status);
        exit(1);
    }
}

/* A thread uses the pool, and once more when the data of its own are destroyed: what the library knows of the thread may be gone by then. */
static pthread_key_t key;
static int used_at_the_end;

static void at_the_end(void *unused)
{
    (void)unused;
    used_at_the_end += poach_run(pool, empty, NULL) == POACH_OK;
    used_at_the_end += poach_run(NULL, empty, NULL) == POACH_NULL && poach_last_error() != NULL;
}

static void *ends(void *context)
{
    int *worked = (int *)context;
    CHECK(pthread_setspecific(key, context) == 0);
    *worked = poach_run(pool, empty, NULL) == POACH_OK;
    return NULL;
}

static void busy(poach_worker *worker, void *context)
{
    (void)worker;
    (void)context;
    CHECK(poach_pool_end(pool) == POACH_BUSY);
}

static void one(size_t index, void *context)
{
    (void)index;
    (void)context;
}

static void some(size_t begin, size_t end, void *context)
{
    (void)begin;
    (void)end;
    (void)context;
}

static void each(size_t index, size_t threads, void *context)
{
    (void)index;
    (void)threads;
    (void)context;
}

static void *nothing(void *context)
{
    return context;
}

static int word;

static void *waits_for_word(void *context)
{
    while (!__atomic_load_n(&word, __ATOMIC_RELAXED)) {
        sched_yield();
    }
    return context;
}

static void spawns_null(const poach_scope *scope, void *context)
{
    (void)context;
    CHECK(poach_scope_spawn(scope, NULL, NULL) == POACH_NULL);
}

/* NULL in the place of each handle, of each function and of each result. */
static void nulls(void)
{
    size_t number;
    poach_stats stats;
    poach_handle *handle;
    void *task;
    CHECK(poach_pool_threads(NULL, &number) == POACH_NULL && poach_pool_stats(NULL, &stats) == POACH_NULL);
    CHECK(poach_broadcast(NULL, each, NULL) == POACH_NULL && poach_broadcast(pool, NULL, NULL) == POACH_NULL);
    CHECK(poach_par_for(NULL, 0, 9, one, NULL) == POACH_NULL && poach_par_for_ranges(NULL, 0, 9, 1, some, NULL) == POACH_NULL);
    CHECK(poach_par_for_ranges(pool, 0, 9, 0, some, NULL) == POACH_INVALID);
    OK(poach_par_for(pool, 9, 0, one, NULL));
    CHECK(poach_scope_run(NULL, spawns_null, NULL) == POACH_NULL);
    OK(poach_scope_run(pool, spawns_null, NULL));
    handle = (poach_handle *)&handle;
    CHECK(poach_spawn(NULL, nothing, NULL, NULL) == POACH_NULL && poach_spawn(NULL, nothing, NULL, &handle) == POACH_NULL && handle == NULL);
    OK(poach_spawn(pool, nothing, NULL, NULL));
    OK(poach_spawn(pool, nothing, NULL, &handle));
    OK(poach_handle_cancel(handle, NULL));
    poach_status joined = poach_handle_join(handle, NULL);
    CHECK(joined == POACH_OK || joined == POACH_CANCELLED);
    CHECK(poach_yield(NULL) == POACH_NO_WORKER);
    OK(poach_check());

    poach_deque *deque = NULL;
    poach_thief *thief, *second = (poach_thief *)&second;
    CHECK(poach_deque_new(-1, &deque) == POACH_INVALID && poach_deque_new(4, &deque) == POACH_INVALID && deque == NULL);
    OK(poach_deque_new(POACH_SPLIT, &deque));
    CHECK(poach_deque_pop(deque, NULL) == POACH_NULL && poach_deque_len(NULL) == 0 && poach_deque_thief(deque, NULL) == POACH_NULL);
    thief = (poach_thief *)&thief;
    CHECK(poach_deque_thief(NULL, &thief) == POACH_NULL && thief == NULL);
    OK(poach_deque_thief(deque, &thief));
    CHECK(poach_thief_steal(thief, NULL) == POACH_NULL && poach_thief_clone(thief, NULL) == POACH_NULL);
    CHECK(poach_thief_clone(NULL, &second) == POACH_NULL && second == NULL && poach_thief_steal(thief, &task) == POACH_EMPTY);
    OK(poach_thief_free(thief));
    OK(poach_deque_free(deque));

    poach_task_pool *tasks;
    poach_producer *producer;
    poach_consumer *consumer;
    producer = (poach_producer *)&producer;
    consumer = (poach_consumer *)&consumer;
    CHECK(poach_producer_new(NULL, &producer) == POACH_NULL && poach_consumer_new(NULL, &consumer) == POACH_NULL);
    CHECK(producer == NULL && consumer == NULL);
    OK(poach_task_pool_new(0, &tasks));
    CHECK(poach_producer_new(tasks, NULL) == POACH_NULL && poach_consumer_new(tasks, NULL) == POACH_NULL);
    OK(poach_consumer_new(tasks, &consumer));
    CHECK(poach_producer_try_put(NULL, NULL) == POACH_NULL && poach_consumer_try_get(NULL, &task) == POACH_NULL);
    CHECK(poach_consumer_get(consumer, NULL) == POACH_NULL && poach_consumer_try_get(consumer, NULL) == POACH_NULL);
    CHECK(poach_consumer_get_timeout(NULL, 1, &task) == POACH_NULL && poach_consumer_get_timeout(consumer, 1, NULL) == POACH_NULL);
    CHECK(poach_producer_free(NULL) == POACH_NULL && poach_consumer_free(NULL) == POACH_NULL && poach_task_pool_free(NULL) == POACH_NULL);
    OK(poach_consumer_free(consumer));
    OK(poach_task_pool_free(tasks));
}

static void codes(void)
{
    poach_pool *other = (poach_pool *)&pool;
    poach_pool_options options = {0};
    CHECK(poach_pool_new(NULL, NULL) == POACH_NULL);
    options.threads = -1;
    CHECK(poach_pool_new(&options, &other) == POACH_INVALID && other == NULL);
    CHECK(strstr(poach_last_error(), "-1") != NULL);
    options.threads = 100000;
    CHECK(poach_pool_new(&options, &other) == POACH_INVALID);
    options.threads = 1;
    options.waiting = 9;
    CHECK(poach_pool_new(&options, &other) == POACH_INVALID);
    options.waiting = 0;
    options.spares = -3;
    CHECK(poach_pool_new(&options, &other) == POACH_INVALID);
    options.spares = 0;
    options.task_stack = SIZE_MAX;
    CHECK(poach_pool_new(&options, &other) != POACH_OK && other == NULL && *poach_last_error() != 0);
    options.task_stack = 0;
    options.stack_size = SIZE_MAX;
    CHECK(poach_pool_new(&options, &other) != POACH_OK && other == NULL && *poach_last_error() != 0);

    CHECK(poach_run(NULL, empty, NULL) == POACH_NULL && poach_run(pool, NULL, NULL) == POACH_NULL);
    CHECK(poach_install(NULL, empty, NULL) == POACH_NULL && poach_install(pool, NULL, NULL) == POACH_NULL);
    CHECK(poach_interrupt(NULL, empty, NULL) == POACH_NULL && poach_interrupt(pool, NULL, NULL) == POACH_NULL);
    CHECK(poach_broadcast(NULL, NULL, NULL) == POACH_NULL && poach_par_for(pool, 0, 9, NULL, NULL) == POACH_NULL);
    CHECK(poach_par_for_ranges(pool, 0, 9, 1, NULL, NULL) == POACH_NULL);
    CHECK(poach_scope_run(pool, NULL, NULL) == POACH_NULL && poach_scope_spawn(NULL, NULL, NULL) == POACH_NULL);
    CHECK(poach_spawn(pool, NULL, NULL, NULL) == POACH_NULL && poach_handle_join(NULL, NULL) == POACH_NULL);
    CHECK(poach_handle_cancel(NULL, NULL) == POACH_NULL && poach_handle_free(NULL) == POACH_NULL);
    CHECK(poach_handle_is_finished(NULL) == -1);
    CHECK(poach_pool_threads(pool, NULL) == POACH_NULL && poach_pool_stats(pool, NULL) == POACH_NULL);
    CHECK(poach_pool_end(NULL) == POACH_NULL && poach_pool_end(poach_pool_global()) == POACH_INVALID);
    CHECK(poach_deque_new(0, NULL) == POACH_NULL && poach_deque_push(NULL, NULL) == POACH_NULL);
    CHECK(poach_deque_pop(NULL, NULL) == POACH_NULL && poach_deque_free(NULL) == POACH_NULL);
    CHECK(poach_thief_steal(NULL, NULL) == POACH_NULL && poach_thief_free(NULL) == POACH_NULL);
    CHECK(poach_task_pool_new(0, NULL) == POACH_NULL && poach_task_pool_close(NULL) == POACH_NULL);
    CHECK(poach_producer_put(NULL, NULL) == POACH_NULL && poach_consumer_get(NULL, NULL) == POACH_NULL);
    CHECK(poach_worker_index(NULL) == -1 && poach_current_worker() == NULL && poach_current_index() == -1);
    CHECK(strcmp(poach_strerror(POACH_BUSY), poach_strerror(99)) != 0);

    OK(poach_run(pool, busy, NULL));
    nulls();
}

int main(int count, char **arguments)
{
    OK(poach_pool_new(NULL, &pool));
    if (count > 1) {
        return dies(arguments[1]);
    }
    codes();
    const char *deaths[] = {"pop", "left", "outer", "longjmp", "longjmp, then fork", "longjmp, then return", "exit"};
    for (size_t at = 0; at < sizeof deaths / sizeof *deaths; at++) {
        must_die(arguments[0], deaths[at]);
    }

    /* A thread that uses the pool and ends. */
    pthread_t thread;
    int worked = 0;
    CHECK(pthread_key_create(&key, at_the_end) == 0);
    CHECK(pthread_create(&thread, NULL, ends, &worked) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(worked && used_at_the_end == 2);

    /* A child has no threads of the pool's, and may make one of its own. What was spawned is the parent's. */
    poach_handle *waits, *done;
    OK(poach_spawn(pool, nothing, &pool, &done));
    while (poach_handle_is_finished(done) != 1) {
        sched_yield();
    }
    OK(poach_spawn(pool, waits_for_word, NULL, &waits));
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        poach_pool *own;
        int right = poach_handle_cancel(waits, NULL) == POACH_FORKED && poach_handle_is_finished(done) == 0 &&
                    poach_handle_join(waits, NULL) == POACH_FORKED && poach_handle_join(done, NULL) == POACH_FORKED &&
                    poach_run(pool, empty, NULL) == POACH_FORKED && poach_pool_new(NULL, &own) == POACH_OK &&
                    poach_run(own, empty, NULL) == POACH_OK && poach_pool_end(own) == POACH_OK;
        leave_child(right);
    }
    CHECK(was_right(child));
    __atomic_store_n(&word, 1, __ATOMIC_RELAXED);
    OK(poach_handle_join(waits, NULL));
    OK(poach_handle_free(done));

    OK(poach_pool_end(pool));
    CHECK(poach_pool_end(pool) == POACH_CLOSED);
    CHECK(poach_run(pool, empty, NULL) == POACH_CLOSED);
    size_t threads;
    CHECK(poach_pool_threads(pool, &threads) == POACH_CLOSED);
    poach_stats stats;
    CHECK(poach_pool_stats(pool, &stats) == POACH_CLOSED && poach_install(pool, empty, NULL) == POACH_CLOSED);
    CHECK(poach_interrupt(pool, empty, NULL) == POACH_CLOSED && poach_broadcast(pool, each, NULL) == POACH_CLOSED);
    CHECK(poach_scope_run(pool, spawns_null, NULL) == POACH_CLOSED && poach_spawn(pool, nothing, NULL, NULL) == POACH_CLOSED);
    CHECK(poach_par_for(pool, 0, 9, one, NULL) == POACH_CLOSED && poach_par_for_ranges(pool, 0, 9, 1, some, NULL) == POACH_CLOSED);
    puts("bad_input: passed");
    return 0;
}
