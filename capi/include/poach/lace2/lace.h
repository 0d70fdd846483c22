/*
 * Lace's interface, of version 2, on Poach: a program that includes <lace.h>, <lace32.h> or <lace128.h> is compiled with the directory of this
 * file as its include path, and linked with -lpoach.
 *
 * Written from Lace's documentation; see capi/README.md for what is the same and what differs. TASK declares; the task itself is the
 * program's function NAME_CALL(lace_worker *, ..). A worker is a word, the head of its stack of forks, which SPAWN and SYNC move.
 */
#ifndef POACH_LACE2_H
#define POACH_LACE2_H

#include <poach/lace_tasks.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef Task lace_task;

/* A worker, for as long as a task runs. `outer` is this thread's before, `worker` its index. */
typedef struct lace_worker {
    lace_task *head;
    struct lace_worker *outer;
    unsigned int worker;
} lace_worker;

/* Starting. */
#define lace_start(workers, dqsize, stacksize)                                                  \
    (poach_lace_set_stacksize(stacksize), poach_lace_start(lace_not_negative_((long long)(workers)), (dqsize)))

/* Asking. */
#define lace_worker_count() poach_lace_workers()
#define lace_worker_id() ((int)poach_current_index())
#define lace_get_worker() ((lace_worker *)poach_lace_worker())
#define lace_get_head() (lace_get_worker()->head)

/* All workers. Each task can be stolen at any time: a thief asks its owner. */
#define lace_make_all_shared() ((void)0)
#define lace_steal_random(worker) ((void)(worker), poach_lace_steal())

POACH_INLINE int lace_check_yield(lace_worker *worker)
{
    (void)worker;
    if (LACE_UNLIKELY(lace_frames_under_way_())) {
        poach_lace_yield();
        return 1;
    }
    return 0;
}

/* Tasks that were spawned. */
POACH_INLINE int lace_is_stolen_task(lace_task *task)
{
    return __atomic_load_n(&task->status, __ATOMIC_RELAXED) != 0;
}

POACH_INLINE int lace_is_completed_task(lace_task *task)
{
    return (int)(__atomic_load_n(&task->status, __ATOMIC_ACQUIRE) & 1);
}

POACH_INLINE void *lace_task_result(lace_task *task)
{
    return lace_result_of_(task);
}

POACH_INLINE void lace_drop(lace_worker *worker)
{
    lace_drop_(--worker->head);
}

POACH_INLINE void lace_enter_(lace_worker *here, poach_worker *worker)
{
    here->head = (lace_task *)worker;
    here->worker = (unsigned int)poach_worker_index(worker);
    here->outer = (lace_worker *)poach_lace_set_worker(here);
}

POACH_INLINE void lace_leave_(lace_worker *here)
{
    poach_lace_set_worker(here->outer);
}

/*
 * TASK(type, NAME, type_1, name_1, ..): how many parameters there are, and whether the type is void, say which macro defines it. Only `void` alone is
 * followed by the parentheses of the macro that it makes.
 */
#define TASK(R, ...) LACE_APPLY_(LACE_PASTE_(LACE_TASK_, LACE_IS_VOID_(R)), R, LACE_HALF_(__VA_ARGS__), __VA_ARGS__)
#define LACE_APPLY_(macro, ...) macro(__VA_ARGS__)
#define LACE_PASTE_(a, b) LACE_PASTE__(a, b)
#define LACE_PASTE__(a, b) a##b
#define LACE_PICK_(p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, ...) p30
#define LACE_HALF_(...) LACE_PICK_(__VA_ARGS__, 14, x, 13, x, 12, x, 11, x, 10, x, 9, x, 8, x, 7, x, 6, x, 5, x, 4, x, 3, x, 2, x, 1, x, 0, x)
#define LACE_IS_VOID_(R) LACE_SECOND_(LACE_VOID_##R(), OF, x)
#define LACE_VOID_void() x, VOID
#define LACE_SECOND_(...) LACE_SECOND__(__VA_ARGS__)
#define LACE_SECOND__(a, b, ...) b
#define TASK_0(R, ...) TASK(R, __VA_ARGS__)
#define TASK_1(R, ...) TASK(R, __VA_ARGS__)
#define TASK_2(R, ...) TASK(R, __VA_ARGS__)
#define TASK_3(R, ...) TASK(R, __VA_ARGS__)
#define TASK_4(R, ...) TASK(R, __VA_ARGS__)
#define TASK_5(R, ...) TASK(R, __VA_ARGS__)
#define TASK_6(R, ...) TASK(R, __VA_ARGS__)
#define TASK_7(R, ...) TASK(R, __VA_ARGS__)
#define TASK_8(R, ...) TASK(R, __VA_ARGS__)
#define TASK_9(R, ...) TASK(R, __VA_ARGS__)
#define TASK_10(R, ...) TASK(R, __VA_ARGS__)
#define TASK_11(R, ...) TASK(R, __VA_ARGS__)
#define TASK_12(R, ...) TASK(R, __VA_ARGS__)
#define TASK_13(R, ...) TASK(R, __VA_ARGS__)
#define TASK_14(R, ...) TASK(R, __VA_ARGS__)
#define VOID_TASK_0(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_1(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_2(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_3(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_4(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_5(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_6(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_7(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_8(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_9(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_10(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_11(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_12(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_13(...) TASK(void, __VA_ARGS__)
#define VOID_TASK_14(...) TASK(void, __VA_ARGS__)

/* Each parameter by a macro, and all of them where a comma comes first, or none. */
#define LACE_FIELD_(T, A) T A;
#define LACE_PARAMETER_(T, A) , T A
#define LACE_STORE_(T, A) lace_to_->A = A;
#define LACE_HAND_ON_(T, A) , lace_from_.A
#define LACE_NAME_(T, A) , A
#define LACE_EACH_0(M, ...)
#define LACE_EACH_1(M, T, A) M(T, A)
#define LACE_EACH_2(M, T, A, ...) M(T, A) LACE_EACH_1(M, __VA_ARGS__)
#define LACE_EACH_3(M, T, A, ...) M(T, A) LACE_EACH_2(M, __VA_ARGS__)
#define LACE_EACH_4(M, T, A, ...) M(T, A) LACE_EACH_3(M, __VA_ARGS__)
#define LACE_EACH_5(M, T, A, ...) M(T, A) LACE_EACH_4(M, __VA_ARGS__)
#define LACE_EACH_6(M, T, A, ...) M(T, A) LACE_EACH_5(M, __VA_ARGS__)
#define LACE_EACH_7(M, T, A, ...) M(T, A) LACE_EACH_6(M, __VA_ARGS__)
#define LACE_EACH_8(M, T, A, ...) M(T, A) LACE_EACH_7(M, __VA_ARGS__)
#define LACE_EACH_9(M, T, A, ...) M(T, A) LACE_EACH_8(M, __VA_ARGS__)
#define LACE_EACH_10(M, T, A, ...) M(T, A) LACE_EACH_9(M, __VA_ARGS__)
#define LACE_EACH_11(M, T, A, ...) M(T, A) LACE_EACH_10(M, __VA_ARGS__)
#define LACE_EACH_12(M, T, A, ...) M(T, A) LACE_EACH_11(M, __VA_ARGS__)
#define LACE_EACH_13(M, T, A, ...) M(T, A) LACE_EACH_12(M, __VA_ARGS__)
#define LACE_EACH_14(M, T, A, ...) M(T, A) LACE_EACH_13(M, __VA_ARGS__)
#define LACE_ALONE_0(...) void
/* A struct has a field, in ISO C. */
#define LACE_NONE_0 char none;
#define LACE_NONE_1
#define LACE_NONE_2
#define LACE_NONE_3
#define LACE_NONE_4
#define LACE_NONE_5
#define LACE_NONE_6
#define LACE_NONE_7
#define LACE_NONE_8
#define LACE_NONE_9
#define LACE_NONE_10
#define LACE_NONE_11
#define LACE_NONE_12
#define LACE_NONE_13
#define LACE_NONE_14
#define LACE_ALONE_1(T, A) T A
#define LACE_ALONE_2(T, A, ...) T A LACE_EACH_1(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_3(T, A, ...) T A LACE_EACH_2(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_4(T, A, ...) T A LACE_EACH_3(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_5(T, A, ...) T A LACE_EACH_4(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_6(T, A, ...) T A LACE_EACH_5(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_7(T, A, ...) T A LACE_EACH_6(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_8(T, A, ...) T A LACE_EACH_7(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_9(T, A, ...) T A LACE_EACH_8(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_10(T, A, ...) T A LACE_EACH_9(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_11(T, A, ...) T A LACE_EACH_10(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_12(T, A, ...) T A LACE_EACH_11(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_13(T, A, ...) T A LACE_EACH_12(LACE_PARAMETER_, __VA_ARGS__)
#define LACE_ALONE_14(T, A, ...) T A LACE_EACH_13(LACE_PARAMETER_, __VA_ARGS__)

/* A task, whose descriptor is one object wherever it is declared: ENTER is what its thief, the function NAME and NEWFRAME call on a worker, EACH what TOGETHER calls on each. */
#define LACE_TASK_OF(R, N, ...) LACE_TASK_OF_(R, N, __VA_ARGS__)
#define LACE_TASK_OF_(R, N, NAME, ...)                                                                                \
typedef struct { LACE_EACH_##N(LACE_FIELD_, ##__VA_ARGS__) LACE_NONE_##N } NAME##_ARGUMENTS;                                   \
typedef union { NAME##_ARGUMENTS arguments; R result; } NAME##_DATA;                                                  \
R NAME##_CALL(lace_worker * LACE_EACH_##N(LACE_PARAMETER_, ##__VA_ARGS__));                                           \
static inline LACE_UNUSED void NAME##_ENTER(poach_worker *worker, void *context)                                      \
{                                                                                                                     \
    NAME##_DATA *data = (NAME##_DATA *)context;                                                                       \
    NAME##_ARGUMENTS lace_from_ = data->arguments;                                                                    \
    lace_worker here;                                                                                                 \
    lace_enter_(&here, worker);                                                                                       \
    (void)lace_from_;                                                                                                 \
    data->result = NAME##_CALL(&here LACE_EACH_##N(LACE_HAND_ON_, ##__VA_ARGS__));                                    \
    lace_leave_(&here);                                                                                               \
}                                                                                                                     \
static inline LACE_UNUSED void NAME##_EACH(poach_worker *worker, void *context)                                       \
{                                                                                                                     \
    NAME##_ARGUMENTS lace_from_ = ((NAME##_DATA *)context)->arguments;                                                \
    lace_worker here;                                                                                                 \
    lace_enter_(&here, worker);                                                                                       \
    (void)lace_from_;                                                                                                 \
    (void)NAME##_CALL(&here LACE_EACH_##N(LACE_HAND_ON_, ##__VA_ARGS__));                                             \
    lace_leave_(&here);                                                                                               \
}                                                                                                                     \
static inline LACE_UNUSED void NAME##_BODY(poach_slot *task, poach_worker *worker)                                    \
{                                                                                                                     \
    NAME##_ENTER(worker, lace_data_((lace_task *)task, LACE_ON_HEAP_(NAME##_DATA)));                                  \
}                                                                                                                     \
extern const lace_type_ NAME##_TYPE __attribute__((weak));                                                            \
const lace_type_ NAME##_TYPE = {{poach_run_stolen, NAME##_BODY}, LACE_ON_HEAP_(NAME##_DATA)};                         \
POACH_INLINE lace_task *NAME##_SPAWN(lace_worker *lace_worker_ LACE_EACH_##N(LACE_PARAMETER_, ##__VA_ARGS__))         \
{                                                                                                                     \
    lace_task *lace_head_ = lace_worker_->head;                                                                       \
    NAME##_ARGUMENTS *lace_to_ = (NAME##_ARGUMENTS *)lace_begin_(lace_head_, sizeof(NAME##_DATA), LACE_ALIGNOF_(NAME##_DATA)); \
    (void)lace_to_;                                                                                                   \
    LACE_EACH_##N(LACE_STORE_, ##__VA_ARGS__)                                                                         \
    lace_push_(lace_head_, &NAME##_TYPE);                                                                             \
    lace_worker_->head = lace_head_ + 1;                                                                              \
    return lace_head_;                                                                                                \
}                                                                                                                     \
POACH_INLINE R NAME##_SYNC(lace_worker *lace_worker_)                                                                 \
{                                                                                                                     \
    lace_task *lace_head_ = lace_worker_->head - 1;                                                                   \
    lace_worker_->head = lace_head_;                                                                                  \
    if (POACH_LIKELY(poach_fork_pop_of((poach_worker *)lace_head_, &NAME##_TYPE.task))) {                                                   \
        NAME##_ARGUMENTS lace_from_ = ((NAME##_DATA *)lace_data_(lace_head_, LACE_ON_HEAP_(NAME##_DATA)))->arguments; \
        lace_free_(lace_head_, LACE_ON_HEAP_(NAME##_DATA));                                                           \
        (void)lace_from_;                                                                                             \
        return NAME##_CALL(lace_worker_ LACE_EACH_##N(LACE_HAND_ON_, ##__VA_ARGS__));                                 \
    }                                                                                                                 \
    R lace_result_ = ((NAME##_DATA *)lace_data_(lace_head_, LACE_ON_HEAP_(NAME##_DATA)))->result;                     \
    lace_free_(lace_head_, LACE_ON_HEAP_(NAME##_DATA));                                                               \
    return lace_result_;                                                                                              \
}                                                                                                                     \
POACH_INLINE void NAME##_DROP(lace_worker *lace_worker_)                                                              \
{                                                                                                                     \
    lace_drop(lace_worker_);                                                                                          \
}                                                                                                                     \
static inline LACE_UNUSED R NAME(LACE_ALONE_##N(__VA_ARGS__))                                                         \
{                                                                                                                     \
    lace_worker *lace_here_ = lace_get_worker();                                                                      \
    if (lace_here_ != NULL) {                                                                                         \
        return NAME##_CALL(lace_here_ LACE_EACH_##N(LACE_NAME_, ##__VA_ARGS__));                                      \
    }                                                                                                                 \
    NAME##_DATA lace_data_here_;                                                                                      \
    NAME##_ARGUMENTS *lace_to_ = &lace_data_here_.arguments;                                                          \
    (void)lace_to_;                                                                                                   \
    LACE_EACH_##N(LACE_STORE_, ##__VA_ARGS__)                                                                         \
    poach_lace_run(NAME##_ENTER, &lace_data_here_);                                                                   \
    return lace_data_here_.result;                                                                                    \
}                                                                                                                     \
static inline LACE_UNUSED R NAME##_NEWFRAME(LACE_ALONE_##N(__VA_ARGS__))                                              \
{                                                                                                                     \
    NAME##_DATA lace_data_here_;                                                                                      \
    NAME##_ARGUMENTS *lace_to_ = &lace_data_here_.arguments;                                                          \
    (void)lace_to_;                                                                                                   \
    LACE_EACH_##N(LACE_STORE_, ##__VA_ARGS__)                                                                         \
    poach_lace_newframe(NAME##_ENTER, &lace_data_here_);                                                              \
    return lace_data_here_.result;                                                                                    \
}                                                                                                                     \
static inline LACE_UNUSED void NAME##_TOGETHER(LACE_ALONE_##N(__VA_ARGS__))                                           \
{                                                                                                                     \
    NAME##_DATA lace_data_here_;                                                                                      \
    NAME##_ARGUMENTS *lace_to_ = &lace_data_here_.arguments;                                                          \
    (void)lace_to_;                                                                                                   \
    LACE_EACH_##N(LACE_STORE_, ##__VA_ARGS__)                                                                         \
    poach_lace_together(NAME##_EACH, &lace_data_here_);                                                               \
}


/* The same where there is no result. */
#define LACE_TASK_VOID(R, N, ...) LACE_TASK_VOID_(R, N, __VA_ARGS__)
#define LACE_TASK_VOID_(R, N, NAME, ...)                                                                              \
typedef struct { LACE_EACH_##N(LACE_FIELD_, ##__VA_ARGS__) LACE_NONE_##N } NAME##_ARGUMENTS;                                   \
typedef union { NAME##_ARGUMENTS arguments; } NAME##_DATA;                                                            \
void NAME##_CALL(lace_worker * LACE_EACH_##N(LACE_PARAMETER_, ##__VA_ARGS__));                                        \
static inline LACE_UNUSED void NAME##_ENTER(poach_worker *worker, void *context)                                      \
{                                                                                                                     \
    NAME##_DATA *data = (NAME##_DATA *)context;                                                                       \
    NAME##_ARGUMENTS lace_from_ = data->arguments;                                                                    \
    lace_worker here;                                                                                                 \
    lace_enter_(&here, worker);                                                                                       \
    (void)lace_from_;                                                                                                 \
    NAME##_CALL(&here LACE_EACH_##N(LACE_HAND_ON_, ##__VA_ARGS__));                                                   \
    lace_leave_(&here);                                                                                               \
}                                                                                                                     \
static inline LACE_UNUSED void NAME##_EACH(poach_worker *worker, void *context)                                       \
{                                                                                                                     \
    NAME##_ARGUMENTS lace_from_ = ((NAME##_DATA *)context)->arguments;                                                \
    lace_worker here;                                                                                                 \
    lace_enter_(&here, worker);                                                                                       \
    (void)lace_from_;                                                                                                 \
    NAME##_CALL(&here LACE_EACH_##N(LACE_HAND_ON_, ##__VA_ARGS__));                                                   \
    lace_leave_(&here);                                                                                               \
}                                                                                                                     \
static inline LACE_UNUSED void NAME##_BODY(poach_slot *task, poach_worker *worker)                                    \
{                                                                                                                     \
    NAME##_ENTER(worker, lace_data_((lace_task *)task, LACE_ON_HEAP_(NAME##_DATA)));                                  \
}                                                                                                                     \
extern const lace_type_ NAME##_TYPE __attribute__((weak));                                                            \
const lace_type_ NAME##_TYPE = {{poach_run_stolen, NAME##_BODY}, LACE_ON_HEAP_(NAME##_DATA)};                         \
POACH_INLINE lace_task *NAME##_SPAWN(lace_worker *lace_worker_ LACE_EACH_##N(LACE_PARAMETER_, ##__VA_ARGS__))         \
{                                                                                                                     \
    lace_task *lace_head_ = lace_worker_->head;                                                                       \
    NAME##_ARGUMENTS *lace_to_ = (NAME##_ARGUMENTS *)lace_begin_(lace_head_, sizeof(NAME##_DATA), LACE_ALIGNOF_(NAME##_DATA)); \
    (void)lace_to_;                                                                                                   \
    LACE_EACH_##N(LACE_STORE_, ##__VA_ARGS__)                                                                         \
    lace_push_(lace_head_, &NAME##_TYPE);                                                                             \
    lace_worker_->head = lace_head_ + 1;                                                                              \
    return lace_head_;                                                                                                \
}                                                                                                                     \
POACH_INLINE void NAME##_SYNC(lace_worker *lace_worker_)                                                              \
{                                                                                                                     \
    lace_task *lace_head_ = lace_worker_->head - 1;                                                                   \
    lace_worker_->head = lace_head_;                                                                                  \
    if (POACH_LIKELY(poach_fork_pop_of((poach_worker *)lace_head_, &NAME##_TYPE.task))) {                                                   \
        NAME##_ARGUMENTS lace_from_ = ((NAME##_DATA *)lace_data_(lace_head_, LACE_ON_HEAP_(NAME##_DATA)))->arguments; \
        lace_free_(lace_head_, LACE_ON_HEAP_(NAME##_DATA));                                                           \
        (void)lace_from_;                                                                                             \
        NAME##_CALL(lace_worker_ LACE_EACH_##N(LACE_HAND_ON_, ##__VA_ARGS__));                                        \
        return;                                                                                                       \
    }                                                                                                                 \
    lace_free_(lace_head_, LACE_ON_HEAP_(NAME##_DATA));                                                               \
}                                                                                                                     \
POACH_INLINE void NAME##_DROP(lace_worker *lace_worker_)                                                              \
{                                                                                                                     \
    lace_drop(lace_worker_);                                                                                          \
}                                                                                                                     \
static inline LACE_UNUSED void NAME(LACE_ALONE_##N(__VA_ARGS__))                                                      \
{                                                                                                                     \
    lace_worker *lace_here_ = lace_get_worker();                                                                      \
    if (lace_here_ != NULL) {                                                                                         \
        NAME##_CALL(lace_here_ LACE_EACH_##N(LACE_NAME_, ##__VA_ARGS__));                                             \
        return;                                                                                                       \
    }                                                                                                                 \
    NAME##_DATA lace_data_here_;                                                                                      \
    NAME##_ARGUMENTS *lace_to_ = &lace_data_here_.arguments;                                                          \
    (void)lace_to_;                                                                                                   \
    LACE_EACH_##N(LACE_STORE_, ##__VA_ARGS__)                                                                         \
    poach_lace_run(NAME##_ENTER, &lace_data_here_);                                                                   \
}                                                                                                                     \
static inline LACE_UNUSED void NAME##_NEWFRAME(LACE_ALONE_##N(__VA_ARGS__))                                           \
{                                                                                                                     \
    NAME##_DATA lace_data_here_;                                                                                      \
    NAME##_ARGUMENTS *lace_to_ = &lace_data_here_.arguments;                                                          \
    (void)lace_to_;                                                                                                   \
    LACE_EACH_##N(LACE_STORE_, ##__VA_ARGS__)                                                                         \
    poach_lace_newframe(NAME##_ENTER, &lace_data_here_);                                                              \
}                                                                                                                     \
static inline LACE_UNUSED void NAME##_TOGETHER(LACE_ALONE_##N(__VA_ARGS__))                                           \
{                                                                                                                     \
    NAME##_DATA lace_data_here_;                                                                                      \
    NAME##_ARGUMENTS *lace_to_ = &lace_data_here_.arguments;                                                          \
    (void)lace_to_;                                                                                                   \
    LACE_EACH_##N(LACE_STORE_, ##__VA_ARGS__)                                                                         \
    poach_lace_together(NAME##_EACH, &lace_data_here_);                                                               \
}

#ifdef __cplusplus
}
#endif

#endif
