/*
 * Lace's interface, of versions 1.4 to 1.6, on Poach: a program that includes <lace.h> or <lace14.h> is compiled with the directory of this
 * file as its include path, and linked with -lpoach.
 *
 * Written from Lace's documentation; see capi/README.md for what is the same and what differs. A task is a function whose hidden parameter
 * is the head of its worker's stack of forks, as in Lace. SPAWN and SYNC are the forks of poach/fork.h.
 */
#ifndef POACH_LACE_H
#define POACH_LACE_H

#include <poach/lace_tasks.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What there is to say of a worker beside the head of its stack, which is all that tasks hand on. */
typedef struct WorkerP {
    /* Its index. */
    unsigned int worker;
} WorkerP;

#define lace_newframe poach_lace_frames

/* Starting and stopping. */
#define lace_start(workers, dqsize) poach_lace_start(lace_not_negative_((long long)(workers)), (dqsize))
/* Poach's workers sleep when there is nothing to do: there is nothing to suspend. */
#define lace_suspend() ((void)0)
#define lace_resume() ((void)0)
#define lace_set_stacksize(bytes) poach_lace_set_stacksize(bytes)
#define lace_get_stacksize() poach_lace_get_stacksize()

/* Asking. */
#define lace_workers() poach_lace_workers()
#define lace_worker_id() ((int)poach_current_index())
#define lace_get_head(worker) ((void)(worker), (Task *)poach_lace_head())
#define LACE_WORKER_ID ((int)poach_worker_index((poach_worker *)__lace_dq_head))
#define LACE_WORKER_PU (-1)
#define LACE_TRNG poach_lace_random()

/* The calling thread's, until it asks again; NULL if it is no worker. */
static inline LACE_UNUSED WorkerP *lace_get_worker(void)
{
    static LACE_TLS WorkerP own;
    ptrdiff_t index = poach_current_index();
    if (index < 0) {
        return NULL;
    }
    own.worker = (unsigned int)index;
    return &own;
}

/* All workers. */
#define lace_yield(worker, head) poach_lace_yield()
#define YIELD_NEWFRAME() do { if (unlikely(lace_frames_under_way_())) poach_lace_yield(); } while (0)
#define lace_steal_random() poach_lace_steal()
#define STEAL_RANDOM() poach_lace_steal()

/* Tasks. */
#define LACE_TYPEDEF_CB(type, name, ...) typedef type (*name)(Task *, ##__VA_ARGS__);
/*
 * TASK(f) is the task as a function, as up to Lace 1.5; TASK(type, name, ..) defines one, as from 1.6 on, with VOID_TASK_n where the type is void.
 */
#define TASK(...) LACE_APPLY_(LACE_PASTE_(LACE_TASK_OF_, LACE_PICK_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, ONE, x)), __VA_ARGS__)
#define LACE_TASK_OF_ONE(f) (f##_CALL)
#define LACE_TASK_OF_MANY(R, ...) LACE_APPLY__(LACE_PASTE_(LACE_PASTE_(LACE_DEFINE_, LACE_IS_VOID_(R)), LACE_HALF_(__VA_ARGS__)), R, __VA_ARGS__)
#define LACE_APPLY_(macro, ...) macro(__VA_ARGS__)
#define LACE_APPLY__(macro, ...) macro(__VA_ARGS__)
#define LACE_PASTE_(a, b) LACE_PASTE__(a, b)
#define LACE_PASTE__(a, b) a##b
#define LACE_PICK_(p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31, ...) p31
#define LACE_HALF_(...) LACE_PICK_(x, __VA_ARGS__, 14, x, 13, x, 12, x, 11, x, 10, x, 9, x, 8, x, 7, x, 6, x, 5, x, 4, x, 3, x, 2, x, 1, x, 0, x)
/* Only `void` alone is followed by the parentheses of the macro that it makes. */
#define LACE_IS_VOID_(R) LACE_SECOND_(LACE_VOID_##R(), N, x)
#define LACE_VOID_void() x, V
#define LACE_SECOND_(...) LACE_SECOND__(__VA_ARGS__)
#define LACE_SECOND__(a, b, ...) b
#define LACE_DEFINE_N0(R, NAME, ...) TASK_0(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V0(R, NAME, ...) VOID_TASK_0(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N1(R, NAME, ...) TASK_1(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V1(R, NAME, ...) VOID_TASK_1(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N2(R, NAME, ...) TASK_2(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V2(R, NAME, ...) VOID_TASK_2(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N3(R, NAME, ...) TASK_3(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V3(R, NAME, ...) VOID_TASK_3(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N4(R, NAME, ...) TASK_4(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V4(R, NAME, ...) VOID_TASK_4(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N5(R, NAME, ...) TASK_5(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V5(R, NAME, ...) VOID_TASK_5(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N6(R, NAME, ...) TASK_6(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V6(R, NAME, ...) VOID_TASK_6(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N7(R, NAME, ...) TASK_7(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V7(R, NAME, ...) VOID_TASK_7(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N8(R, NAME, ...) TASK_8(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V8(R, NAME, ...) VOID_TASK_8(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N9(R, NAME, ...) TASK_9(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V9(R, NAME, ...) VOID_TASK_9(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N10(R, NAME, ...) TASK_10(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V10(R, NAME, ...) VOID_TASK_10(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N11(R, NAME, ...) TASK_11(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V11(R, NAME, ...) VOID_TASK_11(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N12(R, NAME, ...) TASK_12(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V12(R, NAME, ...) VOID_TASK_12(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N13(R, NAME, ...) TASK_13(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V13(R, NAME, ...) VOID_TASK_13(NAME, ##__VA_ARGS__)
#define LACE_DEFINE_N14(R, NAME, ...) TASK_14(R, NAME, ##__VA_ARGS__)
#define LACE_DEFINE_V14(R, NAME, ...) VOID_TASK_14(NAME, ##__VA_ARGS__)
#define WRAP(f, ...) (f(__lace_dq_head, ##__VA_ARGS__))
#define SPAWN(f, ...) (f##_SPAWN(__lace_dq_head, ##__VA_ARGS__), __lace_dq_head++)
#define SYNC(f) (__lace_dq_head--, f##_SYNC(__lace_dq_head))
#define DROP() (__lace_dq_head--, lace_drop_(__lace_dq_head))
#define CALL(f, ...) (f##_CALL(__lace_dq_head, ##__VA_ARGS__))
#define RUN(f, ...) (f##_RUN(__VA_ARGS__))
#define RUNEX(f, ...) (f##_NEWFRAME(__VA_ARGS__))
#define NEWFRAME(f, ...) (f##_NEWFRAME(__VA_ARGS__))
#define TOGETHER(f, ...) (f##_TOGETHER(__VA_ARGS__))
#define LACE_VARS Task *__lace_dq_head __attribute__((unused)) = (Task *)poach_lace_head();
#define LACE_ME LACE_VARS
#define __lace_worker __lace_dq_head

/* Scratch memory, in a task; `worker` of the functions' spelling is what lace_get_worker() has, or __lace_worker. */
#define LACE_SCRATCH_ALLOC(bytes) lace_scratch_alloc(__lace_worker, bytes)
#define LACE_SCRATCH_ARRAY(type, count) ((type *)lace_scratch_alloc(__lace_worker, lace_scratch_bytes_(sizeof(type), (count))))
#define LACE_SCRATCH_MARK() lace_scratch_mark(__lace_worker)
#define LACE_SCRATCH_RESET(mark) lace_scratch_reset(__lace_worker, mark)

#define TASK_IS_STOLEN(task) (__atomic_load_n(&(task)->status, __ATOMIC_RELAXED) != 0)
#define TASK_IS_COMPLETED(task) (__atomic_load_n(&(task)->status, __ATOMIC_ACQUIRE) & 1)
#define TASK_RESULT(task) ((char *)lace_result_of_(task))

/*
 * What TASK_DECL_n declares, and TASK_IMPL_n defines. CALL is the task itself; BODY what a thief calls; ENTER what RUN and NEWFRAME call on a worker, EACH
 * what TOGETHER calls on each.
 */
#define LACE_DECL_(R, NAME, N, ...)                                                                                            \
    typedef struct { LACE_FIELDS_##N##_(__VA_ARGS__) } NAME##_ARGUMENTS;                                                       \
    typedef union { NAME##_ARGUMENTS arguments; R result; } NAME##_DATA;                                                       \
    R NAME##_CALL(Task * LACE_PARAMETERS_##N##_(__VA_ARGS__));                                                                 \
    void NAME##_BODY(poach_slot *, poach_worker *);                                                                            \
    void NAME##_ENTER(poach_worker *, void *);                                                                                 \
    void NAME##_EACH(poach_worker *, void *);                                                                                  \
    extern const lace_type_ NAME##_TYPE;                                                                                       \
    POACH_INLINE void NAME##_SPAWN(Task *head LACE_PARAMETERS_##N##_(__VA_ARGS__))                                             \
    {                                                                                                                          \
        NAME##_ARGUMENTS *to = (NAME##_ARGUMENTS *)lace_begin_(head, sizeof(NAME##_DATA), LACE_ALIGNOF_(NAME##_DATA));         \
        LACE_STORE_##N##_                                                                                                      \
        lace_push_(head, &NAME##_TYPE);                                                                                        \
    }                                                                                                                          \
    POACH_INLINE R NAME##_SYNC(Task *head)                                                                                     \
    {                                                                                                                          \
        if (POACH_LIKELY(poach_fork_pop_of((poach_worker *)head, &NAME##_TYPE.task))) {                                        \
            NAME##_ARGUMENTS from = ((NAME##_DATA *)lace_data_(head, LACE_ON_HEAP_(NAME##_DATA)))->arguments;                  \
            lace_free_(head, LACE_ON_HEAP_(NAME##_DATA));                                                                      \
            (void)from;                                                                                                        \
            return NAME##_CALL(head LACE_LOAD_##N##_);                                                                         \
        }                                                                                                                      \
        R result = ((NAME##_DATA *)lace_data_(head, LACE_ON_HEAP_(NAME##_DATA)))->result;                                      \
        lace_free_(head, LACE_ON_HEAP_(NAME##_DATA));                                                                          \
        return result;                                                                                                         \
    }                                                                                                                          \
    static inline __attribute__((unused)) R NAME##_RUN(LACE_ALONE_##N##_(__VA_ARGS__))                                         \
    {                                                                                                                          \
        NAME##_DATA data;                                                                                                      \
        NAME##_ARGUMENTS *to = &data.arguments;                                                                                \
        LACE_STORE_##N##_                                                                                                      \
        poach_lace_run(NAME##_ENTER, &data);                                                                                   \
        return data.result;                                                                                                    \
    }                                                                                                                          \
    static inline __attribute__((unused)) R NAME##_NEWFRAME(LACE_ALONE_##N##_(__VA_ARGS__))                                    \
    {                                                                                                                          \
        NAME##_DATA data;                                                                                                      \
        NAME##_ARGUMENTS *to = &data.arguments;                                                                                \
        LACE_STORE_##N##_                                                                                                      \
        poach_lace_newframe(NAME##_ENTER, &data);                                                                              \
        return data.result;                                                                                                    \
    }                                                                                                                          \
    static inline __attribute__((unused)) void NAME##_TOGETHER(LACE_ALONE_##N##_(__VA_ARGS__))                                 \
    {                                                                                                                          \
        NAME##_DATA data;                                                                                                      \
        NAME##_ARGUMENTS *to = &data.arguments;                                                                                \
        LACE_STORE_##N##_                                                                                                      \
        poach_lace_together(NAME##_EACH, &data);                                                                               \
    }

#define LACE_IMPL_(R, NAME, N, ...)                                                                                            \
    const lace_type_ NAME##_TYPE = {{poach_run_stolen, NAME##_BODY}, LACE_ON_HEAP_(NAME##_DATA)};                              \
    void NAME##_BODY(poach_slot *task, poach_worker *worker)                                                                   \
    {                                                                                                                          \
        NAME##_DATA *data = (NAME##_DATA *)lace_data_((Task *)task, LACE_ON_HEAP_(NAME##_DATA));                               \
        NAME##_ARGUMENTS from = data->arguments;                                                                               \
        (void)from;                                                                                                            \
        data->result = NAME##_CALL((Task *)worker LACE_LOAD_##N##_);                                                           \
    }                                                                                                                          \
    void NAME##_ENTER(poach_worker *worker, void *context)                                                                     \
    {                                                                                                                          \
        NAME##_DATA *data = (NAME##_DATA *)context;                                                                            \
        NAME##_ARGUMENTS from = data->arguments;                                                                               \
        (void)from;                                                                                                            \
        data->result = NAME##_CALL((Task *)worker LACE_LOAD_##N##_);                                                           \
    }                                                                                                                          \
    void NAME##_EACH(poach_worker *worker, void *context)                                                                      \
    {                                                                                                                          \
        NAME##_ARGUMENTS from = ((NAME##_DATA *)context)->arguments;                                                           \
        (void)from;                                                                                                            \
        (void)NAME##_CALL((Task *)worker LACE_LOAD_##N##_);                                                                    \
    }                                                                                                                          \
    static inline __attribute__((always_inline)) R NAME##_WORK(Task *__lace_dq_head LACE_NAMED_##N##_(__VA_ARGS__));           \
    R NAME##_CALL(Task *__lace_dq_head LACE_NAMED_##N##_(__VA_ARGS__))                                                         \
    {                                                                                                                          \
        return NAME##_WORK(__lace_dq_head LACE_HAND_ON_##N##_(__VA_ARGS__));                                                   \
    }                                                                                                                          \
    static inline __attribute__((always_inline)) R NAME##_WORK(Task *__lace_dq_head __attribute__((unused)) LACE_NAMED_##N##_(__VA_ARGS__))

#define LACE_VOID_DECL_(NAME, N, ...)                                                                                          \
    typedef struct { LACE_FIELDS_##N##_(__VA_ARGS__) } NAME##_ARGUMENTS;                                                       \
    typedef union { NAME##_ARGUMENTS arguments; } NAME##_DATA;                                                                 \
    void NAME##_CALL(Task * LACE_PARAMETERS_##N##_(__VA_ARGS__));                                                              \
    void NAME##_BODY(poach_slot *, poach_worker *);                                                                            \
    void NAME##_ENTER(poach_worker *, void *);                                                                                 \
    void NAME##_EACH(poach_worker *, void *);                                                                                  \
    extern const lace_type_ NAME##_TYPE;                                                                                       \
    POACH_INLINE void NAME##_SPAWN(Task *head LACE_PARAMETERS_##N##_(__VA_ARGS__))                                             \
    {                                                                                                                          \
        NAME##_ARGUMENTS *to = (NAME##_ARGUMENTS *)lace_begin_(head, sizeof(NAME##_DATA), LACE_ALIGNOF_(NAME##_DATA));         \
        LACE_STORE_##N##_                                                                                                      \
        lace_push_(head, &NAME##_TYPE);                                                                                        \
    }                                                                                                                          \
    POACH_INLINE void NAME##_SYNC(Task *head)                                                                                  \
    {                                                                                                                          \
        if (POACH_LIKELY(poach_fork_pop_of((poach_worker *)head, &NAME##_TYPE.task))) {                                        \
            NAME##_ARGUMENTS from = ((NAME##_DATA *)lace_data_(head, LACE_ON_HEAP_(NAME##_DATA)))->arguments;                  \
            lace_free_(head, LACE_ON_HEAP_(NAME##_DATA));                                                                      \
            (void)from;                                                                                                        \
            NAME##_CALL(head LACE_LOAD_##N##_);                                                                                \
        } else {                                                                                                               \
            lace_free_(head, LACE_ON_HEAP_(NAME##_DATA));                                                                      \
        }                                                                                                                      \
    }                                                                                                                          \
    static inline __attribute__((unused)) void NAME##_RUN(LACE_ALONE_##N##_(__VA_ARGS__))                                      \
    {                                                                                                                          \
        NAME##_DATA data;                                                                                                      \
        NAME##_ARGUMENTS *to = &data.arguments;                                                                                \
        LACE_STORE_##N##_                                                                                                      \
        poach_lace_run(NAME##_ENTER, &data);                                                                                   \
    }                                                                                                                          \
    static inline __attribute__((unused)) void NAME##_NEWFRAME(LACE_ALONE_##N##_(__VA_ARGS__))                                 \
    {                                                                                                                          \
        NAME##_DATA data;                                                                                                      \
        NAME##_ARGUMENTS *to = &data.arguments;                                                                                \
        LACE_STORE_##N##_                                                                                                      \
        poach_lace_newframe(NAME##_ENTER, &data);                                                                              \
    }                                                                                                                          \
    static inline __attribute__((unused)) void NAME##_TOGETHER(LACE_ALONE_##N##_(__VA_ARGS__))                                 \
    {                                                                                                                          \
        NAME##_DATA data;                                                                                                      \
        NAME##_ARGUMENTS *to = &data.arguments;                                                                                \
        LACE_STORE_##N##_                                                                                                      \
        poach_lace_together(NAME##_EACH, &data);                                                                               \
    }

#define LACE_VOID_IMPL_(NAME, N, ...)                                                                                          \
    const lace_type_ NAME##_TYPE = {{poach_run_stolen, NAME##_BODY}, LACE_ON_HEAP_(NAME##_DATA)};                              \
    void NAME##_BODY(poach_slot *task, poach_worker *worker)                                                                   \
    {                                                                                                                          \
        NAME##_DATA *data = (NAME##_DATA *)lace_data_((Task *)task, LACE_ON_HEAP_(NAME##_DATA));                               \
        NAME##_ARGUMENTS from = data->arguments;                                                                               \
        (void)from;                                                                                                            \
        NAME##_CALL((Task *)worker LACE_LOAD_##N##_);                                                                          \
    }                                                                                                                          \
    void NAME##_ENTER(poach_worker *worker, void *context)                                                                     \
    {                                                                                                                          \
        NAME##_DATA *data = (NAME##_DATA *)context;                                                                            \
        NAME##_ARGUMENTS from = data->arguments;                                                                               \
        (void)from;                                                                                                            \
        NAME##_CALL((Task *)worker LACE_LOAD_##N##_);                                                                          \
    }                                                                                                                          \
    void NAME##_EACH(poach_worker *worker, void *context)                                                                      \
    {                                                                                                                          \
        NAME##_ARGUMENTS from = ((NAME##_DATA *)context)->arguments;                                                           \
        (void)from;                                                                                                            \
        NAME##_CALL((Task *)worker LACE_LOAD_##N##_);                                                                          \
    }                                                                                                                          \
    static inline __attribute__((always_inline)) void NAME##_WORK(Task *__lace_dq_head LACE_NAMED_##N##_(__VA_ARGS__));        \
    void NAME##_CALL(Task *__lace_dq_head LACE_NAMED_##N##_(__VA_ARGS__))                                                      \
    {                                                                                                                          \
        NAME##_WORK(__lace_dq_head LACE_HAND_ON_##N##_(__VA_ARGS__));                                                          \
    }                                                                                                                          \
    static inline __attribute__((always_inline)) void NAME##_WORK(Task *__lace_dq_head __attribute__((unused)) LACE_NAMED_##N##_(__VA_ARGS__))

/* For each number of parameters: their fields, their lists, and what copies them. */
#define LACE_FIELDS_0_() char none;
#define LACE_PARAMETERS_0_()
#define LACE_ALONE_0_() void
#define LACE_NAMED_0_()
#define LACE_HAND_ON_0_()
#define LACE_STORE_0_ to->none = 0;
#define LACE_LOAD_0_
#define TASK_DECL_0(R, NAME) LACE_DECL_(R, NAME, 0, )
#define TASK_IMPL_0(R, NAME) LACE_IMPL_(R, NAME, 0, )
#define TASK_0(R, NAME) TASK_DECL_0(R, NAME) TASK_IMPL_0(R, NAME)
#define VOID_TASK_DECL_0(NAME) LACE_VOID_DECL_(NAME, 0, )
#define VOID_TASK_IMPL_0(NAME) LACE_VOID_IMPL_(NAME, 0, )
#define VOID_TASK_0(NAME) VOID_TASK_DECL_0(NAME) VOID_TASK_IMPL_0(NAME)

#define LACE_FIELDS_1_(T1) T1 a1;
#define LACE_PARAMETERS_1_(T1) , T1 a1
#define LACE_ALONE_1_(T1) T1 a1
#define LACE_NAMED_1_(T1, A1) , T1 A1
#define LACE_HAND_ON_1_(T1, A1) , A1
#define LACE_STORE_1_ to->a1 = a1;
#define LACE_LOAD_1_ , from.a1
#define TASK_DECL_1(R, NAME, T1) LACE_DECL_(R, NAME, 1, T1)
#define TASK_IMPL_1(R, NAME, T1, A1) LACE_IMPL_(R, NAME, 1, T1, A1)
#define TASK_1(R, NAME, T1, A1) TASK_DECL_1(R, NAME, T1) TASK_IMPL_1(R, NAME, T1, A1)
#define VOID_TASK_DECL_1(NAME, T1) LACE_VOID_DECL_(NAME, 1, T1)
#define VOID_TASK_IMPL_1(NAME, T1, A1) LACE_VOID_IMPL_(NAME, 1, T1, A1)
#define VOID_TASK_1(NAME, T1, A1) VOID_TASK_DECL_1(NAME, T1) VOID_TASK_IMPL_1(NAME, T1, A1)

#define LACE_FIELDS_2_(T1, T2) T1 a1; T2 a2;
#define LACE_PARAMETERS_2_(T1, T2) , T1 a1, T2 a2
#define LACE_ALONE_2_(T1, T2) T1 a1, T2 a2
#define LACE_NAMED_2_(T1, A1, T2, A2) , T1 A1, T2 A2
#define LACE_HAND_ON_2_(T1, A1, T2, A2) , A1, A2
#define LACE_STORE_2_ to->a1 = a1; to->a2 = a2;
#define LACE_LOAD_2_ , from.a1, from.a2
#define TASK_DECL_2(R, NAME, T1, T2) LACE_DECL_(R, NAME, 2, T1, T2)
#define TASK_IMPL_2(R, NAME, T1, A1, T2, A2) LACE_IMPL_(R, NAME, 2, T1, A1, T2, A2)
#define TASK_2(R, NAME, T1, A1, T2, A2) TASK_DECL_2(R, NAME, T1, T2) TASK_IMPL_2(R, NAME, T1, A1, T2, A2)
#define VOID_TASK_DECL_2(NAME, T1, T2) LACE_VOID_DECL_(NAME, 2, T1, T2)
#define VOID_TASK_IMPL_2(NAME, T1, A1, T2, A2) LACE_VOID_IMPL_(NAME, 2, T1, A1, T2, A2)
#define VOID_TASK_2(NAME, T1, A1, T2, A2) VOID_TASK_DECL_2(NAME, T1, T2) VOID_TASK_IMPL_2(NAME, T1, A1, T2, A2)

#define LACE_FIELDS_3_(T1, T2, T3) T1 a1; T2 a2; T3 a3;
#define LACE_PARAMETERS_3_(T1, T2, T3) , T1 a1, T2 a2, T3 a3
#define LACE_ALONE_3_(T1, T2, T3) T1 a1, T2 a2, T3 a3
#define LACE_NAMED_3_(T1, A1, T2, A2, T3, A3) , T1 A1, T2 A2, T3 A3
#define LACE_HAND_ON_3_(T1, A1, T2, A2, T3, A3) , A1, A2, A3
#define LACE_STORE_3_ to->a1 = a1; to->a2 = a2; to->a3 = a3;
#define LACE_LOAD_3_ , from.a1, from.a2, from.a3
#define TASK_DECL_3(R, NAME, T1, T2, T3) LACE_DECL_(R, NAME, 3, T1, T2, T3)
#define TASK_IMPL_3(R, NAME, T1, A1, T2, A2, T3, A3) LACE_IMPL_(R, NAME, 3, T1, A1, T2, A2, T3, A3)
#define TASK_3(R, NAME, T1, A1, T2, A2, T3, A3) TASK_DECL_3(R, NAME, T1, T2, T3) TASK_IMPL_3(R, NAME, T1, A1, T2, A2, T3, A3)
#define VOID_TASK_DECL_3(NAME, T1, T2, T3) LACE_VOID_DECL_(NAME, 3, T1, T2, T3)
#define VOID_TASK_IMPL_3(NAME, T1, A1, T2, A2, T3, A3) LACE_VOID_IMPL_(NAME, 3, T1, A1, T2, A2, T3, A3)
#define VOID_TASK_3(NAME, T1, A1, T2, A2, T3, A3) VOID_TASK_DECL_3(NAME, T1, T2, T3) VOID_TASK_IMPL_3(NAME, T1, A1, T2, A2, T3, A3)

#define LACE_FIELDS_4_(T1, T2, T3, T4) T1 a1; T2 a2; T3 a3; T4 a4;
#define LACE_PARAMETERS_4_(T1, T2, T3, T4) , T1 a1, T2 a2, T3 a3, T4 a4
#define LACE_ALONE_4_(T1, T2, T3, T4) T1 a1, T2 a2, T3 a3, T4 a4
#define LACE_NAMED_4_(T1, A1, T2, A2, T3, A3, T4, A4) , T1 A1, T2 A2, T3 A3, T4 A4
#define LACE_HAND_ON_4_(T1, A1, T2, A2, T3, A3, T4, A4) , A1, A2, A3, A4
#define LACE_STORE_4_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4;
#define LACE_LOAD_4_ , from.a1, from.a2, from.a3, from.a4
#define TASK_DECL_4(R, NAME, T1, T2, T3, T4) LACE_DECL_(R, NAME, 4, T1, T2, T3, T4)
#define TASK_IMPL_4(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4) LACE_IMPL_(R, NAME, 4, T1, A1, T2, A2, T3, A3, T4, A4)
#define TASK_4(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4) TASK_DECL_4(R, NAME, T1, T2, T3, T4) TASK_IMPL_4(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4)
#define VOID_TASK_DECL_4(NAME, T1, T2, T3, T4) LACE_VOID_DECL_(NAME, 4, T1, T2, T3, T4)
#define VOID_TASK_IMPL_4(NAME, T1, A1, T2, A2, T3, A3, T4, A4) LACE_VOID_IMPL_(NAME, 4, T1, A1, T2, A2, T3, A3, T4, A4)
#define VOID_TASK_4(NAME, T1, A1, T2, A2, T3, A3, T4, A4) VOID_TASK_DECL_4(NAME, T1, T2, T3, T4) VOID_TASK_IMPL_4(NAME, T1, A1, T2, A2, T3, A3, T4, A4)

#define LACE_FIELDS_5_(T1, T2, T3, T4, T5) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5;
#define LACE_PARAMETERS_5_(T1, T2, T3, T4, T5) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5
#define LACE_ALONE_5_(T1, T2, T3, T4, T5) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5
#define LACE_NAMED_5_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5
#define LACE_HAND_ON_5_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5) , A1, A2, A3, A4, A5
#define LACE_STORE_5_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5;
#define LACE_LOAD_5_ , from.a1, from.a2, from.a3, from.a4, from.a5
#define TASK_DECL_5(R, NAME, T1, T2, T3, T4, T5) LACE_DECL_(R, NAME, 5, T1, T2, T3, T4, T5)
#define TASK_IMPL_5(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5) LACE_IMPL_(R, NAME, 5, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5)
#define TASK_5(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5) TASK_DECL_5(R, NAME, T1, T2, T3, T4, T5) TASK_IMPL_5(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5)
#define VOID_TASK_DECL_5(NAME, T1, T2, T3, T4, T5) LACE_VOID_DECL_(NAME, 5, T1, T2, T3, T4, T5)
#define VOID_TASK_IMPL_5(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5) LACE_VOID_IMPL_(NAME, 5, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5)
#define VOID_TASK_5(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5) VOID_TASK_DECL_5(NAME, T1, T2, T3, T4, T5) VOID_TASK_IMPL_5(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5)

#define LACE_FIELDS_6_(T1, T2, T3, T4, T5, T6) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6;
#define LACE_PARAMETERS_6_(T1, T2, T3, T4, T5, T6) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6
#define LACE_ALONE_6_(T1, T2, T3, T4, T5, T6) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6
#define LACE_NAMED_6_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6
#define LACE_HAND_ON_6_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6) , A1, A2, A3, A4, A5, A6
#define LACE_STORE_6_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6;
#define LACE_LOAD_6_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6
#define TASK_DECL_6(R, NAME, T1, T2, T3, T4, T5, T6) LACE_DECL_(R, NAME, 6, T1, T2, T3, T4, T5, T6)
#define TASK_IMPL_6(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6) LACE_IMPL_(R, NAME, 6, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6)
#define TASK_6(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6) TASK_DECL_6(R, NAME, T1, T2, T3, T4, T5, T6) TASK_IMPL_6(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6)
#define VOID_TASK_DECL_6(NAME, T1, T2, T3, T4, T5, T6) LACE_VOID_DECL_(NAME, 6, T1, T2, T3, T4, T5, T6)
#define VOID_TASK_IMPL_6(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6) LACE_VOID_IMPL_(NAME, 6, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6)
#define VOID_TASK_6(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6) VOID_TASK_DECL_6(NAME, T1, T2, T3, T4, T5, T6) VOID_TASK_IMPL_6(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6)

#define LACE_FIELDS_7_(T1, T2, T3, T4, T5, T6, T7) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6; T7 a7;
#define LACE_PARAMETERS_7_(T1, T2, T3, T4, T5, T6, T7) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7
#define LACE_ALONE_7_(T1, T2, T3, T4, T5, T6, T7) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7
#define LACE_NAMED_7_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6, T7 A7
#define LACE_HAND_ON_7_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7) , A1, A2, A3, A4, A5, A6, A7
#define LACE_STORE_7_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6; to->a7 = a7;
#define LACE_LOAD_7_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6, from.a7
#define TASK_DECL_7(R, NAME, T1, T2, T3, T4, T5, T6, T7) LACE_DECL_(R, NAME, 7, T1, T2, T3, T4, T5, T6, T7)
#define TASK_IMPL_7(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7) LACE_IMPL_(R, NAME, 7, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7)
#define TASK_7(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7) TASK_DECL_7(R, NAME, T1, T2, T3, T4, T5, T6, T7) TASK_IMPL_7(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7)
#define VOID_TASK_DECL_7(NAME, T1, T2, T3, T4, T5, T6, T7) LACE_VOID_DECL_(NAME, 7, T1, T2, T3, T4, T5, T6, T7)
#define VOID_TASK_IMPL_7(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7) LACE_VOID_IMPL_(NAME, 7, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7)
#define VOID_TASK_7(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7) VOID_TASK_DECL_7(NAME, T1, T2, T3, T4, T5, T6, T7) VOID_TASK_IMPL_7(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7)

#define LACE_FIELDS_8_(T1, T2, T3, T4, T5, T6, T7, T8) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6; T7 a7; T8 a8;
#define LACE_PARAMETERS_8_(T1, T2, T3, T4, T5, T6, T7, T8) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8
#define LACE_ALONE_8_(T1, T2, T3, T4, T5, T6, T7, T8) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8
#define LACE_NAMED_8_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6, T7 A7, T8 A8
#define LACE_HAND_ON_8_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8) , A1, A2, A3, A4, A5, A6, A7, A8
#define LACE_STORE_8_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6; to->a7 = a7; to->a8 = a8;
#define LACE_LOAD_8_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6, from.a7, from.a8
#define TASK_DECL_8(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8) LACE_DECL_(R, NAME, 8, T1, T2, T3, T4, T5, T6, T7, T8)
#define TASK_IMPL_8(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8) LACE_IMPL_(R, NAME, 8, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8)
#define TASK_8(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8) TASK_DECL_8(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8) TASK_IMPL_8(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8)
#define VOID_TASK_DECL_8(NAME, T1, T2, T3, T4, T5, T6, T7, T8) LACE_VOID_DECL_(NAME, 8, T1, T2, T3, T4, T5, T6, T7, T8)
#define VOID_TASK_IMPL_8(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8) LACE_VOID_IMPL_(NAME, 8, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8)
#define VOID_TASK_8(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8) VOID_TASK_DECL_8(NAME, T1, T2, T3, T4, T5, T6, T7, T8) VOID_TASK_IMPL_8(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8)

#define LACE_FIELDS_9_(T1, T2, T3, T4, T5, T6, T7, T8, T9) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6; T7 a7; T8 a8; T9 a9;
#define LACE_PARAMETERS_9_(T1, T2, T3, T4, T5, T6, T7, T8, T9) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9
#define LACE_ALONE_9_(T1, T2, T3, T4, T5, T6, T7, T8, T9) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9
#define LACE_NAMED_9_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6, T7 A7, T8 A8, T9 A9
#define LACE_HAND_ON_9_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9) , A1, A2, A3, A4, A5, A6, A7, A8, A9
#define LACE_STORE_9_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6; to->a7 = a7; to->a8 = a8; to->a9 = a9;
#define LACE_LOAD_9_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6, from.a7, from.a8, from.a9
#define TASK_DECL_9(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9) LACE_DECL_(R, NAME, 9, T1, T2, T3, T4, T5, T6, T7, T8, T9)
#define TASK_IMPL_9(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9) LACE_IMPL_(R, NAME, 9, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9)
#define TASK_9(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9) TASK_DECL_9(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9) TASK_IMPL_9(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9)
#define VOID_TASK_DECL_9(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9) LACE_VOID_DECL_(NAME, 9, T1, T2, T3, T4, T5, T6, T7, T8, T9)
#define VOID_TASK_IMPL_9(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9) LACE_VOID_IMPL_(NAME, 9, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9)
#define VOID_TASK_9(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9) VOID_TASK_DECL_9(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9) VOID_TASK_IMPL_9(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9)

#define LACE_FIELDS_10_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6; T7 a7; T8 a8; T9 a9; T10 a10;
#define LACE_PARAMETERS_10_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10
#define LACE_ALONE_10_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10
#define LACE_NAMED_10_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6, T7 A7, T8 A8, T9 A9, T10 A10
#define LACE_HAND_ON_10_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10) , A1, A2, A3, A4, A5, A6, A7, A8, A9, A10
#define LACE_STORE_10_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6; to->a7 = a7; to->a8 = a8; to->a9 = a9; to->a10 = a10;
#define LACE_LOAD_10_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6, from.a7, from.a8, from.a9, from.a10
#define TASK_DECL_10(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10) LACE_DECL_(R, NAME, 10, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10)
#define TASK_IMPL_10(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10) LACE_IMPL_(R, NAME, 10, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10)
#define TASK_10(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10) TASK_DECL_10(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10) TASK_IMPL_10(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10)
#define VOID_TASK_DECL_10(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10) LACE_VOID_DECL_(NAME, 10, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10)
#define VOID_TASK_IMPL_10(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10) LACE_VOID_IMPL_(NAME, 10, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10)
#define VOID_TASK_10(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10) VOID_TASK_DECL_10(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10) VOID_TASK_IMPL_10(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10)

#define LACE_FIELDS_11_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6; T7 a7; T8 a8; T9 a9; T10 a10; T11 a11;
#define LACE_PARAMETERS_11_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10, T11 a11
#define LACE_ALONE_11_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10, T11 a11
#define LACE_NAMED_11_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6, T7 A7, T8 A8, T9 A9, T10 A10, T11 A11
#define LACE_HAND_ON_11_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11) , A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11
#define LACE_STORE_11_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6; to->a7 = a7; to->a8 = a8; to->a9 = a9; to->a10 = a10; to->a11 = a11;
#define LACE_LOAD_11_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6, from.a7, from.a8, from.a9, from.a10, from.a11
#define TASK_DECL_11(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11) LACE_DECL_(R, NAME, 11, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11)
#define TASK_IMPL_11(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11) LACE_IMPL_(R, NAME, 11, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11)
#define TASK_11(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11) TASK_DECL_11(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11) TASK_IMPL_11(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11)
#define VOID_TASK_DECL_11(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11) LACE_VOID_DECL_(NAME, 11, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11)
#define VOID_TASK_IMPL_11(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11) LACE_VOID_IMPL_(NAME, 11, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11)
#define VOID_TASK_11(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11) VOID_TASK_DECL_11(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11) VOID_TASK_IMPL_11(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11)

#define LACE_FIELDS_12_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6; T7 a7; T8 a8; T9 a9; T10 a10; T11 a11; T12 a12;
#define LACE_PARAMETERS_12_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10, T11 a11, T12 a12
#define LACE_ALONE_12_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10, T11 a11, T12 a12
#define LACE_NAMED_12_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6, T7 A7, T8 A8, T9 A9, T10 A10, T11 A11, T12 A12
#define LACE_HAND_ON_12_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12) , A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12
#define LACE_STORE_12_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6; to->a7 = a7; to->a8 = a8; to->a9 = a9; to->a10 = a10; to->a11 = a11; to->a12 = a12;
#define LACE_LOAD_12_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6, from.a7, from.a8, from.a9, from.a10, from.a11, from.a12
#define TASK_DECL_12(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12) LACE_DECL_(R, NAME, 12, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12)
#define TASK_IMPL_12(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12) LACE_IMPL_(R, NAME, 12, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12)
#define TASK_12(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12) TASK_DECL_12(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12) TASK_IMPL_12(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12)
#define VOID_TASK_DECL_12(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12) LACE_VOID_DECL_(NAME, 12, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12)
#define VOID_TASK_IMPL_12(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12) LACE_VOID_IMPL_(NAME, 12, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12)
#define VOID_TASK_12(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12) VOID_TASK_DECL_12(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12) VOID_TASK_IMPL_12(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12)

#define LACE_FIELDS_13_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6; T7 a7; T8 a8; T9 a9; T10 a10; T11 a11; T12 a12; T13 a13;
#define LACE_PARAMETERS_13_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10, T11 a11, T12 a12, T13 a13
#define LACE_ALONE_13_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10, T11 a11, T12 a12, T13 a13
#define LACE_NAMED_13_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6, T7 A7, T8 A8, T9 A9, T10 A10, T11 A11, T12 A12, T13 A13
#define LACE_HAND_ON_13_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13) , A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13
#define LACE_STORE_13_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6; to->a7 = a7; to->a8 = a8; to->a9 = a9; to->a10 = a10; to->a11 = a11; to->a12 = a12; to->a13 = a13;
#define LACE_LOAD_13_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6, from.a7, from.a8, from.a9, from.a10, from.a11, from.a12, from.a13
#define TASK_DECL_13(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13) LACE_DECL_(R, NAME, 13, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13)
#define TASK_IMPL_13(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13) LACE_IMPL_(R, NAME, 13, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13)
#define TASK_13(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13) TASK_DECL_13(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13) TASK_IMPL_13(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13)
#define VOID_TASK_DECL_13(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13) LACE_VOID_DECL_(NAME, 13, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13)
#define VOID_TASK_IMPL_13(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13) LACE_VOID_IMPL_(NAME, 13, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13)
#define VOID_TASK_13(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13) VOID_TASK_DECL_13(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13) VOID_TASK_IMPL_13(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13)

#define LACE_FIELDS_14_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14) T1 a1; T2 a2; T3 a3; T4 a4; T5 a5; T6 a6; T7 a7; T8 a8; T9 a9; T10 a10; T11 a11; T12 a12; T13 a13; T14 a14;
#define LACE_PARAMETERS_14_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14) , T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10, T11 a11, T12 a12, T13 a13, T14 a14
#define LACE_ALONE_14_(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14) T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6, T7 a7, T8 a8, T9 a9, T10 a10, T11 a11, T12 a12, T13 a13, T14 a14
#define LACE_NAMED_14_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14) , T1 A1, T2 A2, T3 A3, T4 A4, T5 A5, T6 A6, T7 A7, T8 A8, T9 A9, T10 A10, T11 A11, T12 A12, T13 A13, T14 A14
#define LACE_HAND_ON_14_(T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14) , A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14
#define LACE_STORE_14_ to->a1 = a1; to->a2 = a2; to->a3 = a3; to->a4 = a4; to->a5 = a5; to->a6 = a6; to->a7 = a7; to->a8 = a8; to->a9 = a9; to->a10 = a10; to->a11 = a11; to->a12 = a12; to->a13 = a13; to->a14 = a14;
#define LACE_LOAD_14_ , from.a1, from.a2, from.a3, from.a4, from.a5, from.a6, from.a7, from.a8, from.a9, from.a10, from.a11, from.a12, from.a13, from.a14
#define TASK_DECL_14(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14) LACE_DECL_(R, NAME, 14, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14)
#define TASK_IMPL_14(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14) LACE_IMPL_(R, NAME, 14, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14)
#define TASK_14(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14) TASK_DECL_14(R, NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14) TASK_IMPL_14(R, NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14)
#define VOID_TASK_DECL_14(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14) LACE_VOID_DECL_(NAME, 14, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14)
#define VOID_TASK_IMPL_14(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14) LACE_VOID_IMPL_(NAME, 14, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14)
#define VOID_TASK_14(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14) VOID_TASK_DECL_14(NAME, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14) VOID_TASK_IMPL_14(NAME, T1, A1, T2, A2, T3, A3, T4, A4, T5, A5, T6, A6, T7, A7, T8, A8, T9, A9, T10, A10, T11, A11, T12, A12, T13, A13, T14, A14)

#ifdef __cplusplus
}
#endif

#endif
