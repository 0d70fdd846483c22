/* Scopes, spawns, broadcasts, loops, deques, task pools. */
#include <poach.h>

#include <pthread.h>

#include "check.h"

static size_t count;

static void add(void)
{
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
}

static size_t taken(void)
{
    return __atomic_exchange_n(&count, 0, __ATOMIC_RELAXED);
}

static void leaf(const poach_scope *scope, void *context)
{
    (void)scope;
    (void)context;
    add();
}

static void spawns(const poach_scope *scope, void *context)
{
    for (int at = 0; at < 100; at++) {
        OK(poach_scope_spawn(scope, context ? spawns : leaf, NULL));
    }
    add();
}

static void *doubles(void *context)
{
    return (void *)((size_t)context * 2);
}

static void each(size_t index, size_t threads, void *context)
{
    CHECK(index < threads && context == &count);
    add();
}

static void one(size_t index, void *context)
{
    ((unsigned char *)context)[index] += 1;
}

static void range(size_t begin, size_t end, void *context)
{
    CHECK(end - begin <= 7);
    for (size_t at = begin; at < end; at++) {
        one(at, context);
    }
}

static void all_once(unsigned char *seen, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        CHECK(seen[at] == 1);
    }
    memset(seen, 0, length);
}

static void deques(void)
{
    for (int kind = POACH_CHASE_LEV; kind <= POACH_SPLIT; kind++) {
        poach_deque *deque;
        poach_thief *thief, *second;
        void *task = NULL;
        OK(poach_deque_new(kind, &deque));
        OK(poach_deque_thief(deque, &thief));
        OK(poach_thief_clone(thief, &second));
        CHECK(poach_deque_pop(deque, &task) == POACH_EMPTY);
        CHECK(poach_thief_steal(thief, &task) == POACH_EMPTY);
        size_t sum = 0;
        for (size_t number = 1; number <= 100; number++) {
            OK(poach_deque_push(deque, (void *)number));
        }
        CHECK(poach_deque_len(deque) == 100);
        for (int at = 0; at < 100; at++) {
            poach_status status = at % 2 ? poach_deque_pop(deque, &task) : poach_thief_steal(at % 4 ? thief : second, &task);
            if (status == POACH_OK) {
                sum += (size_t)task;
            }
        }
        while (poach_deque_pop(deque, &task) == POACH_OK) {
            sum += (size_t)task;
        }
        CHECK(sum == 5050);
        OK(poach_deque_free(deque));
        OK(poach_thief_free(thief));
        OK(poach_thief_free(second));
    }
    poach_deque *deque;
    CHECK(poach_deque_new(17, &deque) == POACH_INVALID && deque == NULL);
}

static void *produce(void *context)
{
    poach_producer *producer;
    OK(poach_producer_new((poach_task_pool *)context, &producer));
    for (size_t number = 1; number <= 1000; number++) {
        OK(poach_producer_put(producer, (void *)number));
    }
    OK(poach_producer_free(producer));
    return NULL;
}

static void task_pools(void)
{
    poach_task_pool *pool;
    poach_consumer *consumer;
    OK(poach_task_pool_new(10, &pool));
    OK(poach_consumer_new(pool, &consumer));
    void *task;
    CHECK(poach_consumer_try_get(consumer, &task) == POACH_EMPTY);
    CHECK(poach_consumer_get_timeout(consumer, 1, &task) == POACH_TIMEOUT && poach_consumer_get_timeout(consumer, 0, &task) == POACH_TIMEOUT);
    pthread_t producers[2];
    for (int at = 0; at < 2; at++) {
        CHECK(pthread_create(&producers[at], NULL, produce, pool) == 0);
    }
    size_t sum = 0;
    for (int at = 0; at < 2000; at++) {
        OK(poach_consumer_get(consumer, &task));
        sum += (size_t)task;
    }
    for (int at = 0; at < 2; at++) {
        CHECK(pthread_join(producers[at], NULL) == 0);
    }
    CHECK(sum == 1001000);
    poach_producer *producer;
    OK(poach_producer_new(pool, &producer));
    for (size_t at = 0; at < 10; at++) {
        OK(poach_producer_try_put(producer, &task));
    }
    CHECK(poach_producer_try_put(producer, &task) == POACH_FULL);
    OK(poach_task_pool_close(pool));
    CHECK(poach_producer_put(producer, &task) == POACH_CLOSED);
    OK(poach_consumer_get_timeout(consumer, UINT64_MAX, &task));
    OK(poach_consumer_try_get(consumer, &task));
    for (size_t at = 2; at < 10; at++) {
        OK(poach_consumer_get(consumer, &task));
    }
    CHECK(poach_consumer_get(consumer, &task) == POACH_CLOSED && poach_consumer_try_get(consumer, &task) == POACH_CLOSED);
    CHECK(poach_consumer_get_timeout(consumer, UINT64_MAX, &task) == POACH_CLOSED);
    OK(poach_producer_free(producer));
    OK(poach_consumer_free(consumer));
    OK(poach_task_pool_free(pool));
}

int main(void)
{
    poach_pool_options options = {0};
    options.threads = 3;
    poach_pool *pool;
    OK(poach_pool_new(&options, &pool));
    size_t threads;
    OK(poach_pool_threads(pool, &threads));
    CHECK(threads == 3);

    OK(poach_scope_run(pool, spawns, NULL));
    CHECK(taken() == 101);
    OK(poach_scope_run(pool, spawns, pool));
    CHECK(taken() == 1 + 100 * 101);

    poach_handle *handle;
    void *result;
    OK(poach_spawn(pool, doubles, (void *)21, &handle));
    OK(poach_handle_join(handle, &result));
    CHECK((size_t)result == 42);
    OK(poach_spawn(pool, doubles, NULL, NULL));
    OK(poach_spawn(pool, doubles, NULL, &handle));
    int cancelled;
    OK(poach_handle_cancel(handle, &cancelled));
    poach_status joined = poach_handle_join(handle, NULL);
    CHECK(joined == (cancelled ? POACH_CANCELLED : POACH_OK));
    OK(poach_spawn(pool, doubles, NULL, &handle));
    CHECK(poach_handle_is_finished(handle) >= 0);
    OK(poach_handle_free(handle));

    OK(poach_broadcast(pool, each, &count));
    CHECK(taken() == 3);

    static unsigned char seen[1000];
    OK(poach_par_for(pool, 0, 1000, one, seen));
    all_once(seen, 1000);
    OK(poach_par_for_ranges(pool, 0, 1000, 7, range, seen));
    all_once(seen, 1000);
    OK(poach_par_for(pool, 5, 5, one, seen));
    OK(poach_check());
    CHECK(poach_yield(NULL) == POACH_NO_WORKER);

    deques();
    task_pools();
    OK(poach_pool_end(pool));
    puts("calls: passed");
    return 0;
}
