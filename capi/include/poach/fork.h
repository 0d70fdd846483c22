/*
 * Forks, inline: what a fork costs where nobody steals and nobody is hungry.
 *
 * A worker is the address of the first free slot of its stack, passed by value. A fork
 *
 *     void *payload = poach_fork_begin(worker);          // is the slot free?
 *     ... write what the task needs to payload, of POACH_PAYLOAD bytes ...
 *     poach_worker *above = poach_fork_push(worker, &task);
 *     ... the first half, which is given `above` ...
 *     if (poach_fork_pop(worker)) { the task is not stolen: run it here }
 *     else { its result stands in worker->payload }
 *
 * is two loads, three stores and three comparisons on top of its halves: no fence, no locked instruction, no call. What is rare is in
 * the library: a thief that asks, a stolen task, a full stack. crates/deque/src/papers/split/stack says why that is correct; each step here
 * names the one there (push_below_limit, pop_above_floor).
 */
#ifndef POACH_FORK_H
#define POACH_FORK_H

#ifdef __cplusplus
#define POACH_ASSERT(what, message) static_assert(what, message)
extern "C" {
#else
#define POACH_ASSERT(what, message) _Static_assert(what, message)
#endif

#define POACH_LIKELY(what) __builtin_expect(!!(what), 1)
#define POACH_UNLIKELY(what) __builtin_expect(!!(what), 0)
/* In C++ they are inline functions of the program's, so that inline functions and templates of several files may call them (one definition). */
#ifdef __cplusplus
#define POACH_INLINE inline __attribute__((always_inline))
#else
#define POACH_INLINE static inline __attribute__((always_inline, unused))
#endif

/* What the library was built with: its own side is checked in capi/src/fork.rs. */
POACH_ASSERT(sizeof(void *) == 8, "forks are for 64-bit machines");
POACH_ASSERT(sizeof(poach_slot) == 64, "a slot has 64 bytes");
POACH_ASSERT(offsetof(poach_slot, task) == 0, "the task word comes first");
POACH_ASSERT(offsetof(poach_slot, status) == 8, "then the status");
POACH_ASSERT(offsetof(poach_slot, payload) == 16, "then the payload");
POACH_ASSERT(offsetof(poach_stack, limit) == 0, "the limit comes first");
POACH_ASSERT(offsetof(poach_stack, floor) == 8, "then the floor");
POACH_ASSERT(sizeof(poach_task) == 16, "a task is two functions");

/* Keeps the compiler from knowing this value: else it would save it across the first half, in a register that each call in between must
 * save, where to work it out again is one instruction. */
#define POACH_FORGET_(value) __asm__ volatile("" : "+r"(value))

/* The stack of a slot. */
POACH_INLINE const poach_stack *poach_stack_of_(const poach_slot *slot)
{
    uintptr_t address = (uintptr_t)slot;
    POACH_FORGET_(address);
    return (const poach_stack *)(address & ~(uintptr_t)(POACH_STACK_ALIGN - 1));
}

#if defined(__x86_64__)
/* ThreadSanitizer is to see each access. */
#if defined(__SANITIZE_THREAD__)
#define POACH_FLAGS_ 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define POACH_FLAGS_ 0
#endif
#endif
#ifndef POACH_FLAGS_
#define POACH_FLAGS_ 1
#endif
#else
#define POACH_FLAGS_ 0
#endif

/*
 * The calls of what is rare. An ordinary call would make the compiler keep what is alive there in registers that the function has to save, or give
 * it a frame, on the fast path too. On x86-64 with ELF the library has entries that save all registers but rax, the vectors and those of the x87. The call
 * steps over the red zone. Elsewhere it is an ordinary call.
 */
#if defined(__x86_64__) && defined(__ELF__)
#define POACH_VECTORS_ "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define POACH_X87_ "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"
#if defined(__AVX512F__)
#define POACH_MORE_VECTORS_ , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define POACH_MORE_VECTORS_
#endif
/* The library does not use them, but a task that runs meanwhile may. */
#if defined(__APX_F__)
#define POACH_MORE_REGISTERS_ , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"
#else
#define POACH_MORE_REGISTERS_
#endif
/* By the address in the global offset table, and not by the linkage table: its code writes to r11 when it looks the function up for the first time. */
#define POACH_RARE_(function, worker, result)                                                                                \
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tcall *" function "@GOTPCREL(%%rip)\n\tleaq 128(%%rsp), %%rsp"              \
                     : "=a"(result)                                                                                          \
                     : "0"(worker)                                                                                           \
                     : "memory", "cc", POACH_X87_, POACH_VECTORS_ POACH_MORE_VECTORS_ POACH_MORE_REGISTERS_)
#endif

POACH_INLINE poach_worker *poach_at_limit_(poach_worker *worker)
{
#ifdef POACH_RARE_
    poach_worker *above;
    POACH_RARE_("poach_fork_at_limit_saving", worker, above);
    return above;
#else
    return poach_fork_at_limit(worker);
#endif
}

POACH_INLINE int poach_at_floor_(poach_worker *worker)
{
#ifdef POACH_RARE_
    uintptr_t own;
    POACH_RARE_("poach_fork_at_floor_saving", worker, own);
    return (int)own;
#else
    return poach_fork_at_floor(worker);
#endif
}

/*
 * The four steps that touch shared words. Relaxed, all: the task word is the owner's, and limit and floor are the owner's values or a request. On
 * x86-64 each is one instruction and a branch, which compilers do not make of __atomic functions.
 */
POACH_INLINE int poach_is_occupied_(const poach_worker *worker)
{
#if POACH_FLAGS_
    int occupied;
    __asm__ volatile("testb %[present], %[task]" : "=@ccnz"(occupied) : [task] "m"(worker->task), [present] "i"(POACH_PRESENT));
    return occupied;
#else
    return (__atomic_load_n(&worker->task, __ATOMIC_RELAXED) & POACH_PRESENT) != 0;
#endif
}

/* Takes the mark off: 1 if there was one. */
POACH_INLINE int poach_unmark_(poach_worker *worker)
{
#if POACH_FLAGS_
    int marked;
    __asm__ volatile("btrq $0, %[task]" : "=@ccc"(marked), [task] "+m"(worker->task));
    return marked;
#else
    uintptr_t task = __atomic_load_n(&worker->task, __ATOMIC_RELAXED);
    __atomic_store_n(&worker->task, task & ~(uintptr_t)POACH_PRESENT, __ATOMIC_RELAXED);
    return (int)(task & POACH_PRESENT);
#endif
}

/* Whether the worker's slot has this task, marked. */
POACH_INLINE int poach_has_(const poach_worker *worker, uintptr_t marked)
{
#if POACH_FLAGS_
    int has;
    __asm__ volatile("cmpq %[marked], %[task]" : "=@cce"(has) : [task] "m"(worker->task), [marked] "r"(marked));
    return has;
#else
    return __atomic_load_n(&worker->task, __ATOMIC_RELAXED) == marked;
#endif
}

/* Takes the mark off this task, by a store that does not wait for what was there. The address stays: a thief that has the slot reads it. */
POACH_INLINE void poach_unmark_this_(poach_worker *worker, uintptr_t marked)
{
#if POACH_FLAGS_
    /* Out of the register that the comparison needed: a second one across the first half would have to be saved. */
    uintptr_t task;
    __asm__ volatile("leaq %c[mark](%[marked]), %[task]" : [task] "=r"(task) : [marked] "r"(marked), [mark] "i"(-POACH_PRESENT));
#else
    uintptr_t task = marked - POACH_PRESENT;
#endif
    __atomic_store_n(&worker->task, task, __ATOMIC_RELAXED);
}

POACH_INLINE int poach_is_below_limit_(const poach_worker *worker)
{
    const poach_stack *stack = poach_stack_of_(worker);
#if POACH_FLAGS_
    int below;
    __asm__ volatile("cmpq %[limit], %[worker]" : "=@ccb"(below) : [worker] "r"(worker), [limit] "m"(stack->limit));
    return below;
#else
    return (uintptr_t)worker < __atomic_load_n(&stack->limit, __ATOMIC_RELAXED);
#endif
}

POACH_INLINE int poach_is_above_floor_(const poach_worker *worker)
{
    const poach_stack *stack = poach_stack_of_(worker);
#if POACH_FLAGS_
    int above;
    __asm__ volatile("cmpq %[floor], %[worker]" : "=@ccae"(above) : [worker] "r"(worker), [floor] "m"(stack->floor));
    return above;
#else
    return (uintptr_t)worker >= __atomic_load_n(&stack->floor, __ATOMIC_RELAXED);
#endif
}

/* The payload of the worker's first free slot. A worker that is not the innermost fork's ends the process with a message. */
POACH_INLINE void *poach_fork_begin(poach_worker *worker)
{
    if (POACH_UNLIKELY(poach_is_occupied_(worker))) {
        poach_fork_misused(worker, 1);
    }
    return worker->payload;
}

/* Pushes the task whose payload was just written; gives the worker above it. NULL: the stack is full, and the slot is free again. */
POACH_INLINE poach_worker *poach_fork_push(poach_worker *worker, const poach_task *task)
{
    /* Release: pairs with the acquire of a thief that exposes private tasks, which hands the payload on. */
    __atomic_store_n(&worker->task, (uintptr_t)task + POACH_PRESENT, __ATOMIC_RELEASE);
    /* U2: the compiler keeps the store before the load; the processor does where a thief asks it to (membarrier). */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (POACH_UNLIKELY(!poach_is_below_limit_(worker))) {
        return poach_at_limit_(worker);
    }
    return worker + 1;
}

/* Pops the task that was pushed at this worker: 1 if it is the caller's to run, 0 if a thief has run it, and its result stands in the
 * payload. No task there ends the process with a message. */
POACH_INLINE int poach_fork_pop(poach_worker *worker)
{
    if (POACH_UNLIKELY(!poach_unmark_(worker))) {
        poach_fork_misused(worker, 0);
    }
    /* O2, as U2. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (POACH_LIKELY(poach_is_above_floor_(worker))) {
        return 1;
    }
    return poach_at_floor_(worker);
}

/* The same where the caller knows which task it is. Another one there ends the process with a message, too. */
POACH_INLINE int poach_fork_pop_of(poach_worker *worker, const poach_task *task)
{
    uintptr_t marked = (uintptr_t)task + POACH_PRESENT;
    if (POACH_UNLIKELY(!poach_has_(worker, marked))) {
        poach_fork_misused(worker, 0);
    }
    poach_unmark_this_(worker, marked);
    /* O2, as U2. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (POACH_LIKELY(poach_is_above_floor_(worker))) {
        return 1;
    }
    return poach_at_floor_(worker);
}

/* A half of a join, as a task. */
struct poach_half_ {
    poach_body body;
    void *context;
};

POACH_INLINE void poach_half_body_(poach_slot *task, poach_worker *worker)
{
    struct poach_half_ half = *(struct poach_half_ *)(void *)task->payload;
    half.body(worker, half.context);
}

/* Runs both, `a` here and `b` perhaps on another worker meanwhile; returns when both have ended. Where `a` and `b` are known to the
 * compiler they are inlined. A full stack makes it a plain call of both. */
POACH_INLINE void poach_join(poach_worker *worker, poach_body a, void *a_context, poach_body b, void *b_context)
{
    static const poach_task task = {poach_run_stolen, poach_half_body_};
    struct poach_half_ *half = (struct poach_half_ *)poach_fork_begin(worker);
    half->body = b;
    half->context = b_context;
    poach_worker *above = poach_fork_push(worker, &task);
    if (POACH_UNLIKELY(!above)) {
        a(worker, a_context);
        b(worker, b_context);
        return;
    }
    a(above, a_context);
    if (POACH_LIKELY(poach_fork_pop_of(worker, &task))) {
        b(worker, b_context);
    }
}

#ifdef __cplusplus
}
#endif

#endif
