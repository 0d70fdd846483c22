/*
 * What both of Lace's faces share: lace/lace.h, of versions 1.4 to 1.6, and lace2/lace.h, of version 2. A program includes one of these.
 */
#ifndef POACH_LACE_TASKS_H
#define POACH_LACE_TASKS_H

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __cplusplus
#include <atomic>
#ifndef _Atomic
#define _Atomic(T) std::atomic<T>
#endif
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;
#else
#include <stdatomic.h>
#endif

#include <poach.h>

#ifdef __clang__
/* The macros of tasks without parameters leave their variable arguments out, as Lace's do, where the program uses them: so for the rest of the file. */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A task that was spawned, in its slot. It is read and written as a poach_slot, too. */
typedef struct __attribute__((may_alias)) Task {
    void *f;
    uint64_t status;
    char d[POACH_PAYLOAD];
} Task;

POACH_ASSERT(sizeof(Task) == sizeof(poach_slot), "a task is a slot");

#ifndef LINE_SIZE
#define LINE_SIZE 64
#endif
#ifndef likely
#define likely(x) __builtin_expect((x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect((x), 0)
#endif

/* How many frames are under way. */
typedef struct {
    _Atomic(uintptr_t) t;
} lace_newframe_t;
extern lace_newframe_t poach_lace_frames;

/* What Lace's headers have for other compilers, too. */
#define LACE_LIKELY(x) __builtin_expect(!!(x), 1)
#define LACE_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LACE_UNUSED __attribute__((unused))
#define LACE_NOINLINE __attribute__((noinline))
#define LACE_NORETURN __attribute__((noreturn))
#define LACE_ALIGN(bytes) __attribute__((aligned(bytes)))
#define LACE_TLS __thread

/* What has one spelling in both. */
#define lace_stop() poach_lace_stop()
#define lace_is_running() (poach_lace_workers() != 0)
#define lace_set_verbosity(level) ((void)(level))
#define lace_get_pu_count() poach_lace_pu_count()
#define lace_is_worker() (poach_current_index() >= 0)
#define lace_rng(worker) ((void)(worker), poach_lace_random())
#define lace_barrier() poach_lace_barrier()
#define lace_sleep_us(microseconds) poach_lace_sleep(microseconds)
#define lace_gethrtime() poach_lace_time()
/* Scratch memory: of the calling thread, whichever worker is named. */
#define lace_set_scratch_size(bytes) poach_lace_set_scratch_size(bytes)
/* The system commits pages as they are used. */
#define lace_set_scratch_band(bytes) ((void)(bytes))
#define lace_scratch_alloc(worker, bytes) ((void)(worker), poach_lace_scratch_alloc(bytes))
#define lace_scratch_mark(worker) ((void)(worker), poach_lace_scratch_mark())
#define lace_scratch_reset(worker, mark) ((void)(worker), poach_lace_scratch_reset(mark))
/* The counters are always on. */
#define lace_count_reset() poach_lace_count_reset()
#define lace_count_report() lace_count_report_file(stdout)

POACH_INLINE unsigned int lace_not_negative_(long long workers)
{
    if (workers < 0 || workers > 1024) {
        fprintf(stderr, "lace_start: %lld workers, of 1,024 at most; 0 is one for each processor\n", workers);
        abort();
    }
    return (unsigned int)workers;
}

/* So many bytes, or as many as there cannot be. */
POACH_INLINE size_t lace_scratch_bytes_(size_t size, size_t count)
{
    return count > SIZE_MAX / size ? SIZE_MAX : size * count;
}

POACH_INLINE int lace_frames_under_way_(void)
{
    return __atomic_load_n((uintptr_t *)(void *)&poach_lace_frames, __ATOMIC_RELAXED) != 0;
}

static inline __attribute__((unused)) void lace_count_report_file(FILE *file)
{
    /* The counters go on meanwhile, so that the text may be longer than it was when it was asked for its length. */
    size_t length = poach_lace_report(NULL, 0) + 4096;
    char *text = (char *)malloc(length);
    if (text != NULL) {
        text[0] = 0;
        poach_lace_report(text, length);
        fprintf(file, "%s\n", text);
    }
    free(text);
}

/* A task's descriptor, and whether what it needs is on the heap. */
typedef struct {
    poach_task task;
    size_t on_heap;
} lace_type_;

#ifdef __cplusplus
#define LACE_ALIGNOF_(type) alignof(type)
#else
#define LACE_ALIGNOF_(type) _Alignof(type)
#endif

/* Bytes that a payload is aligned to, and whether data of a type does not fit a slot: too large, or to be aligned to more. It is on the heap then. */
enum { LACE_PAYLOAD_ALIGN_ = 16 };
#define LACE_ON_HEAP_(type) (sizeof(type) > POACH_PAYLOAD || LACE_ALIGNOF_(type) > LACE_PAYLOAD_ALIGN_)

/* Where a task's arguments go, and its result: the slot, or memory that the slot points to. */
POACH_INLINE void *lace_begin_(Task *head, size_t size, size_t alignment)
{
    void *payload = poach_fork_begin((poach_worker *)head);
    if (size > POACH_PAYLOAD || alignment > LACE_PAYLOAD_ALIGN_) {
        void *memory = alignment > LACE_PAYLOAD_ALIGN_ ? aligned_alloc(alignment, size) : malloc(size);
        if (memory == NULL) {
            fprintf(stderr, "SPAWN: no memory for a task of %zu bytes\n", size);
            abort();
        }
        *(void **)payload = memory;
        return memory;
    }
    return payload;
}

POACH_INLINE void lace_push_(Task *head, const lace_type_ *type)
{
    if (POACH_UNLIKELY(poach_fork_push((poach_worker *)head, &type->task) == NULL)) {
        poach_fork_overflow();
    }
}

POACH_INLINE void *lace_data_(Task *task, size_t on_heap)
{
    return on_heap ? *(void **)(void *)task->d : (void *)task->d;
}

POACH_INLINE void lace_free_(Task *task, size_t on_heap)
{
    if (on_heap) {
        free(*(void **)(void *)task->d);
    }
}

/* The descriptor of the task that stands, or stood last, in a slot; NULL: none has. */
POACH_INLINE const lace_type_ *lace_type_of_(const Task *task)
{
    uintptr_t word = __atomic_load_n(&((const poach_slot *)task)->task, __ATOMIC_RELAXED);
    return (const lace_type_ *)(word & ~(uintptr_t)POACH_PRESENT);
}

/* Where the result of a task is that a thief has run. */
POACH_INLINE void *lace_result_of_(Task *task)
{
    return lace_data_(task, lace_type_of_(task)->on_heap);
}

/* Pops the topmost task, whatever it is, and does not run it. */
POACH_INLINE void lace_drop_(Task *head)
{
    const lace_type_ *type = lace_type_of_(head);
    if (type == NULL) {
        poach_fork_misused((poach_worker *)head, 0);
    }
    /* There being no task that is marked ends the process. */
    poach_fork_pop((poach_worker *)head);
    lace_free_(head, type->on_heap);
}

#ifdef __cplusplus
}
#endif

#endif
