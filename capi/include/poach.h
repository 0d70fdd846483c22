/* Poach for C. Written by cbindgen from capi/src: change it there, then `cargo run -p poach-capi --example header`. */

#ifndef POACH_H
#define POACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__GNUC__)
#define POACH_NORETURN __attribute__((noreturn))
#else
#error "Poach's header needs gcc or clang: forks use their __atomic functions"
#endif


/*
 Chase and Lev's deque: every task can be stolen at once; a fence at each pop.
 */
#define POACH_CHASE_LEV 0

/*
 The same, whose thieves pay the fence: for owners that pop often and are robbed seldom.
 */
#define POACH_CHASE_LEV_ASYMMETRIC 1

/*
 Cilk-5's deque: a lock for thieves.
 */
#define POACH_THE 2

/*
 Lace's deque: no fence, and a thief that finds nothing leaves a request, which the owner's next
 push or pop answers.
 */
#define POACH_SPLIT 3

/*
 Bytes of a slot that a task, and then its result, may use. They are aligned to 16.
 */
#define POACH_PAYLOAD 48

/*
 A task stack begins at a multiple of this.
 */
#define POACH_STACK_ALIGN 134217728

/*
 In a slot's task word while a task stands there.
 */
#define POACH_PRESENT 1

/*
 What a worker does while a fork of its own runs elsewhere.
 */
#define POACH_WAIT_RANDOM 0

/*
 It takes forks of the thief and of those that the thief waits for.
 */
#define POACH_WAIT_TRANSITIVE 1

/*
 It takes forks of the thief.
 */
#define POACH_WAIT_LEAPFROG 2

/*
 It takes nothing.
 */
#define POACH_WAIT_SLEEP 3

/*
 What a call came to. Zero is success.
 */
typedef enum {
    /*
     All is done.
     */
    POACH_OK = 0,
    /*
     A pointer is NULL that must not be.
     */
    POACH_NULL = 1,
    /*
     A value is out of range.
     */
    POACH_INVALID = 2,
    /*
     The pool has ended, or the task pool is closed and empty.
     */
    POACH_CLOSED = 3,
    /*
     Somebody uses it: the pool has calls under way.
     */
    POACH_BUSY = 4,
    /*
     The system has no memory, or no thread, for it.
     */
    POACH_NO_MEMORY = 5,
    /*
     The process was forked from the one in which the pool was made.
     */
    POACH_FORKED = 6,
    /*
     A call panicked: a defect of this library, or a full task stack.
     */
    POACH_PANICKED = 7,
    /*
     The task was cancelled before it began.
     */
    POACH_CANCELLED = 8,
    /*
     There is no task.
     */
    POACH_EMPTY = 9,
    /*
     The pool is full.
     */
    POACH_FULL = 10,
    /*
     Another thread was in the way: try again.
     */
    POACH_RETRY = 11,
    /*
     The time is up.
     */
    POACH_TIMEOUT = 12,
    /*
     The calling thread is no worker.
     */
    POACH_NO_WORKER = 13,
} poach_status;

/*
 Gets tasks: one thread's at a time.
 */
typedef struct poach_consumer poach_consumer;

/*
 The owner's end of a deque: one thread's at a time.
 */
typedef struct poach_deque poach_deque;

/*
 A spawned task's result, to be. Given up by `poach_handle_join` or `poach_handle_free`.
 */
typedef struct poach_handle poach_handle;

/*
 A thread pool.
 */
typedef struct poach_pool poach_pool;

/*
 Puts tasks: one thread's at a time.
 */
typedef struct poach_producer poach_producer;

/*
 A group of tasks. It is there until `poach_scope_run` returns.
 */
typedef struct poach_scope poach_scope;

/*
 A pool of tasks: pointers, which any producer puts and any consumer gets.
 */
typedef struct poach_task_pool poach_task_pool;

/*
 A thief's end of a deque: any thread's, even of several at once.
 */
typedef struct poach_thief poach_thief;

/*
 A slot of a worker's stack of forks. Written by the functions of `poach/fork.h` alone, but for
 the payload.
 */
typedef struct {
    /*
     The address of the task's `poach_task`, and `POACH_PRESENT`.
     */
    size_t task;
    /*
     Zero; of a stolen task more, and odd once it is done.
     */
    uint64_t status;
    /*
     What the task needs; then its result.
     */
    uint8_t payload[POACH_PAYLOAD];
} poach_slot;

/*
 A worker of a pool, as a value: the address of the first free slot of its stack. A callback's
 parameter; `poach_fork_push` gives the worker above the pushed task. It belongs to its thread,
 and to the innermost fork.
 */
typedef poach_slot poach_worker;

/*
 What is run as a worker.
 */
typedef void (*poach_body)(poach_worker *worker, void *context);

/*
 How a pool is made. Set all to zero first: zero is each field's default.
 */
typedef struct {
    /*
     Workers; 0: one for each processor, or as many as `POACH_THREADS` says.
     */
    int threads;
    /*
     Of `POACH_WAIT_..`.
     */
    int waiting;
    /*
     Threads that take the places of those that block.
     */
    int spares;
    /*
     Not 0: `poach_run` and the like hand their body to the pool's own threads.
     */
    int callers_do_not_work;
    /*
     Bytes of a thread's call stack.
     */
    size_t stack_size;
    /*
     Forks that may be pending on one worker.
     */
    size_t task_stack;
} poach_pool_options;

/*
 What the workers of a pool have done since it was made.
 */
typedef struct {
    /*
     Spawned tasks that were run.
     */
    uint64_t tasks;
    /*
     Forks and tasks that were stolen.
     */
    uint64_t steals;
    /*
     Of them, while waiting for a stolen fork.
     */
    uint64_t leaps;
    /*
     How often owners shared forks.
     */
    uint64_t grows;
    /*
     How often owners took shared ones back.
     */
    uint64_t shrinks;
    /*
     How often a worker fell asleep.
     */
    uint64_t sleeps;
} poach_stats;

/*
 The body of a scope, and a task that may spawn others into it.
 */
typedef void (*poach_scope_body)(const poach_scope *scope, void *context);

/*
 A task: what it returns is its result.
 */
typedef void *(*poach_function)(void *context);

/*
 The first words of a worker's stack: where the stack's limits are at the time.
 */
typedef struct {
    /*
     A push at this slot or above it is more than a few stores.
     */
    size_t limit;
    /*
     A pop below this slot is more than a store and a load.
     */
    size_t floor;
} poach_stack;

/*
 What a task is: one constant object each, which lasts as long as the program's code.
 */
typedef struct {
    /*
     `poach_run_stolen`, always.
     */
    void (*run)(poach_slot *task, poach_worker *worker);
    /*
     Runs the task in `task`, as a worker of the thief's, and leaves the result in the slot's
     payload.
     */
    void (*body)(poach_slot *task, poach_worker *worker);
} poach_task;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes a deque, in `*deque`, of a kind: `POACH_CHASE_LEV` and the like.
 */
poach_status poach_deque_new(int kind, poach_deque **deque);

/*
 Adds a task: any pointer, NULL too. The owner's thread.
 */
poach_status poach_deque_push(const poach_deque *deque, void *task);

/*
 Takes the task that was added last, in `*task`. The owner's thread.

 POACH_EMPTY: there is none.
 */
poach_status poach_deque_pop(const poach_deque *deque, void **task);

/*
 The number of tasks, which a thief may have changed by now; 0 for NULL.
 */
size_t poach_deque_len(const poach_deque *deque);

/*
 Makes a thief's end, in `*thief`. The owner's thread.
 */
poach_status poach_deque_thief(const poach_deque *deque, poach_thief **thief);

/*
 Frees the owner's end. What is in the deque is left to the thieves, if there are any.
 */
poach_status poach_deque_free(poach_deque *deque);

/*
 Takes the oldest task, in `*task`. Any thread.

 POACH_EMPTY: none was seen; POACH_RETRY: another thread was in the way.
 */
poach_status poach_thief_steal(const poach_thief *from, void **task);

/*
 Makes one more thief's end of the same deque. Any thread.
 */
poach_status poach_thief_clone(const poach_thief *from, poach_thief **another);

/*
 Frees a thief's end.
 */
poach_status poach_thief_free(poach_thief *thief);

/*
 What a thief calls: the first word of every `poach_task`.
 */
void poach_run_stolen(poach_slot *task, poach_worker *worker);

/*
 The rest of a push whose slot is not below the limit: the worker above, or NULL where the stack
 is full, and the slot is free again. For `poach_fork_push` alone.
 */
poach_worker *poach_fork_at_limit(poach_slot *slot);

/*
 The rest of a pop whose slot is below the floor: 1 if the task is the caller's to run, 0 if a
 thief has run it. For `poach_fork_pop` alone.
 */
int poach_fork_at_floor(poach_slot *slot);

/*
 Ends the process with a message: the functions of `poach/fork.h` found something other than they
 must. `pushing` is what they did.
 */
void poach_fork_misused(const poach_slot *slot, int pushing) POACH_NORETURN;

/*
 Ends the process with a message: a task was to be pushed where that cannot be refused, and the
 stack is full.
 */
void poach_fork_overflow(void) POACH_NORETURN;

/*
 The worker that the calling thread is; NULL if it is none. `poach_run` and the callbacks give it
 without asking.
 */
poach_worker *poach_current_worker(void);

/*
 The calling thread's index in its pool, from 0; -1 if it is no worker.
 */
ptrdiff_t poach_current_index(void);

/*
 The index of a worker in its pool, from 0. The worker is the calling thread's.
 */
ptrdiff_t poach_worker_index(const poach_worker *worker);

/*
 `lace_start`: starts `workers` workers (0: one for each processor), with `slots` slots each (0:
 100,000).
 */
void poach_lace_start(unsigned int workers, size_t slots);

/*
 `lace_stop`. What another thread's `RUN` has begun comes to its end, there.
 */
void poach_lace_stop(void);

/*
 `RUN`: runs a body on one of the workers, which the calling thread may be itself, and waits for
 it.
 */
void poach_lace_run(poach_body body, void *context);

/*
 `NEWFRAME`: as `RUN`, while all workers leave what they do and take part in this.
 */
void poach_lace_newframe(poach_body body, void *context);

/*
 `TOGETHER`: all workers interrupt their work and run the body, each once. They begin together and
 end together. A worker that has run the body works for the others, and takes part in their frames,
 until all have run it.
 */
void poach_lace_together(poach_body body, void *context);

/*
 `lace_barrier`: waits until all workers have come here, each in its call of the innermost
 `TOGETHER`'s task, which has a barrier of its own. It takes part in frames that begin meanwhile.
 */
void poach_lace_barrier(void);

/*
 `lace_workers`: how many there are; 0 before `lace_start`.
 */
unsigned int poach_lace_workers(void);

/*
 `lace_get_pu_count`: the processors that this process may use.
 */
unsigned int poach_lace_pu_count(void);

/*
 `lace_set_stacksize`: the call stack of the threads that the next `lace_start` makes, in bytes.
 */
void poach_lace_set_stacksize(size_t bytes);

/*
 `lace_get_stacksize`: what was set; 0: the default.
 */
size_t poach_lace_get_stacksize(void);

/*
 `YIELD_NEWFRAME`: takes part in a frame, if there is one.
 */
void poach_lace_yield(void);

/*
 `STEAL_RANDOM`: runs a task of somebody's, if there is one.
 */
void poach_lace_steal(void);

/*
 `LACE_TRNG`: a number from the thread's own series.
 */
uint64_t poach_lace_random(void);

/*
 `lace_count_reset`: the report counts from here.
 */
void poach_lace_count_reset(void);

/*
 `lace_count_report_file`: what the workers have done, as a table. Writes `length` bytes to
 `buffer` at most, the last of which is 0, and returns how many the whole has, without that 0: as
 `snprintf` does.
 */
size_t poach_lace_report(char *buffer, size_t length);

/*
 The worker of the calling thread, which must be one.
 */
poach_worker *poach_lace_head(void);

/*
 The calling thread's `lace_worker`; NULL outside of Lace's tasks.
 */
void *poach_lace_worker(void);

/*
 Makes this the calling thread's `lace_worker`, and returns the one before.
 */
void *poach_lace_set_worker(void *worker);

/*
 `lace_set_scratch_size`: for the workers of the next `lace_start`; 0: they have none.
 */
void poach_lace_set_scratch_size(size_t bytes);

/*
 `lace_scratch_alloc`: `bytes` bytes, aligned to 16, until the mark before is reset. Ends the
 process with a message if memory is exhausted.
 */
void *poach_lace_scratch_alloc(size_t bytes);

/*
 `lace_scratch_mark`: where the calling thread's scratch memory stands.
 */
void *poach_lace_scratch_mark(void);

/*
 `lace_scratch_reset`: what was allocated since the mark is free.
 */
void poach_lace_scratch_reset(void *mark);

/*
 `lace_sleep_us`: the calling thread sleeps for `microseconds`; not at all for less than 1.
 */
void poach_lace_sleep(int64_t microseconds);

/*
 `lace_gethrtime`: nanoseconds since this process, or the one that it was forked from, first used
 Lace.
 */
uint64_t poach_lace_time(void);

/*
 Calls `body` with each number from `begin` to before `end`, in parallel: no number twice, in no
 order. Returns when all have returned.

 The loop splits itself where a worker is idle, so short bodies are all right.
 */
poach_status poach_par_for(const poach_pool *pool,
                           size_t begin,
                           size_t end,
                           void (*body)(size_t index, void *context),
                           void *context);

/*
 As `poach_par_for`, with ranges: `body` is called with each piece of `begin` to before `end`, of
 `grain` numbers but for the last.

 POACH_INVALID: a grain of 0.
 */
poach_status poach_par_for_ranges(const poach_pool *pool,
                                  size_t begin,
                                  size_t end,
                                  size_t grain,
                                  void (*body)(size_t begin, size_t end, void *context),
                                  void *context);

/*
 Runs one other task on the calling worker, if there is one: `*ran`, which may be NULL, is 1
 then.

 POACH_NO_WORKER: the thread is none.
 */
poach_status poach_yield(int *ran);

/*
 Makes a pool, in `*pool`. `options` may be NULL: all defaults.

 POACH_INVALID: threads below 0, or more than 1,024, or another option out of range;
 POACH_NO_MEMORY: the system refuses threads or memory.
 */
poach_status poach_pool_new(const poach_pool_options *options, poach_pool **pool);

/*
 The global pool, made when it is first used. It has no end.
 */
poach_pool *poach_pool_global(void);

/*
 Ends a pool: its workers finish what was spawned and end. Waits for them, unless the caller is
 one of them. From here on every call with the pool is POACH_CLOSED.

 POACH_BUSY, and nothing is done, while another call with this pool is under way; POACH_CLOSED if
 it has ended; POACH_INVALID: the global pool.
 */
poach_status poach_pool_end(poach_pool *pool);

/*
 The number of a pool's workers, in `*threads`.
 */
poach_status poach_pool_threads(const poach_pool *pool, size_t *threads);

/*
 Runs `body` as a worker of the pool: on the calling thread, which is one more worker for as
 long, unless the pool is full of callers or was made otherwise. Returns when it has returned.
 */
poach_status poach_run(const poach_pool *pool, poach_body body, void *context);

/*
 As `poach_run`, always on one of the pool's own threads.
 */
poach_status poach_install(const poach_pool *pool, poach_body body, void *context);

/*
 Stops what all workers of the pool do, at their next cooperation point, runs `body` to its end
 with all of them, and resumes.

 A worker comes to a cooperation point where it waits for a stolen fork, between two tasks, and
 in `poach_check`. Forks and tasks of the body are shared by all workers; none of the suspended
 tasks runs meanwhile.
 */
poach_status poach_interrupt(const poach_pool *pool, poach_body body, void *context);

/*
 A point at which the calling thread, if it is a worker, can be interrupted.
 */
poach_status poach_check(void);

/*
 Runs `body` once on each of the pool's own threads, and waits for all. It is given the thread's
 index.
 */
poach_status poach_broadcast(const poach_pool *pool,
                             void (*body)(size_t index, size_t threads, void *context),
                             void *context);

/*
 What the workers of a pool have done, in `*stats`.
 */
poach_status poach_pool_stats(const poach_pool *pool, poach_stats *stats);

/*
 Runs `body` with a scope, and returns when it and all tasks that were spawned into the scope
 have ended.

 On a thread that is no worker, `body` runs there, as in `poach_run`.
 */
poach_status poach_scope_run(const poach_pool *pool, poach_scope_body body, void *context);

/*
 Spawns a task into the scope: `task` is called with the scope and the context, once, by any
 worker.

 On any thread, while the scope is there.
 */
poach_status poach_scope_spawn(const poach_scope *scope, poach_scope_body task, void *context);

/*
 Starts `task` on one of the pool's own threads. `handle` may be NULL: then nobody asks for the
 result.
 */
poach_status poach_spawn(const poach_pool *pool, poach_function task, void *context, poach_handle **handle);

/*
 Waits for a task and frees its handle. `result` may be NULL. A worker that waits runs other
 tasks meanwhile.

 POACH_CANCELLED: it was cancelled, or its pool ended before it began. POACH_FORKED: it was
 spawned in the parent of this process, and is the parent's.
 */
poach_status poach_handle_join(poach_handle *handle, void **result);

/*
 Cancels a task, unless it has begun: `*cancelled`, which may be NULL, is 1 if it has not and
 never will. The handle is still there.

 POACH_FORKED: as for `poach_handle_join`.
 */
poach_status poach_handle_cancel(const poach_handle *handle, int *cancelled);

/*
 Whether a task has ended: 1 or 0; -1 for NULL; 0 in a child of the process in which it was
 spawned.
 */
int poach_handle_is_finished(const poach_handle *handle);

/*
 Frees a handle: the task goes on, and nobody asks for its result.
 */
poach_status poach_handle_free(poach_handle *handle);

/*
 What a status means, in English. Never NULL, for any number; not to be freed.
 */
const char *poach_strerror(int status);

/*
 What the last call that failed on this thread says about it: the empty string if none has. Valid
 until the next one fails here.
 */
const char *poach_last_error(void);

/*
 Makes a pool of tasks, in `*pool`. A capacity other than 0 limits the number of its tasks.
 It is open until `poach_task_pool_close`, or until the pool and all its producers, or the pool
 and all its consumers, are freed.
 */
poach_status poach_task_pool_new(size_t capacity, poach_task_pool **pool);

/*
 Closes a pool: nothing can be put any more, and consumers are told when all that was put is
 taken.
 */
poach_status poach_task_pool_close(const poach_task_pool *pool);

/*
 Frees a handle of the pool, which lasts until its producers and consumers are freed as well.
 */
poach_status poach_task_pool_free(poach_task_pool *pool);

/*
 Makes a producer, in `*producer`.
 */
poach_status poach_producer_new(const poach_task_pool *pool, poach_producer **producer);

/*
 Puts a task; waits while the pool is full. POACH_CLOSED: nobody will get it.
 */
poach_status poach_producer_put(poach_producer *producer, void *task);

/*
 Puts a task, unless the pool is full: POACH_FULL.
 */
poach_status poach_producer_try_put(poach_producer *producer, void *task);

/*
 Frees a producer.
 */
poach_status poach_producer_free(poach_producer *producer);

/*
 Makes a consumer, in `*consumer`.
 */
poach_status poach_consumer_new(const poach_task_pool *pool, poach_consumer **consumer);

/*
 Gets a task, in `*task`; waits until there is one. POACH_CLOSED: there will be none.
 */
poach_status poach_consumer_get(poach_consumer *consumer, void **task);

/*
 Gets a task if there is one, in `*task`. POACH_EMPTY: there is none; POACH_CLOSED: there will be
 none.
 */
poach_status poach_consumer_try_get(poach_consumer *consumer, void **task);

/*
 Gets a task, in `*task`; waits for at most `milliseconds`. POACH_TIMEOUT: there was no task;
 POACH_CLOSED: there will be no task.
 */
poach_status poach_consumer_get_timeout(poach_consumer *consumer, uint64_t milliseconds, void **task);

/*
 Frees a consumer.
 */
poach_status poach_consumer_free(poach_consumer *consumer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* POACH_H */

#include "poach/fork.h"
