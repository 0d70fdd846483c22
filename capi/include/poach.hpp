/*
 * Poach for C++17: pools, joins and scopes of lambdas, with exceptions.
 *
 * A join of lambdas is poach/fork.h's fork: it is inlined, and a lambda that captures by reference is one pointer in its slot. An exception of a half
 * travels to its join, once both halves have ended; an exception of a task travels to its scope, once all have ended (the first one).
 */
#ifndef POACH_HPP
#define POACH_HPP

#include <poach.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace poach {

/// A call that failed: its code, and what the library says.
class error : public std::runtime_error {
public:
    explicit error(poach_status status) : std::runtime_error(text(status)), status_(status) {}

    poach_status status() const noexcept { return status_; }

private:
    static std::string text(poach_status status)
    {
        const char *said = poach_last_error();
        return *said ? said : poach_strerror(status);
    }

    poach_status status_;
};

namespace detail {

inline void check(poach_status status)
{
    if (status != POACH_OK) {
        throw error(status);
    }
}

struct nothing {};

/// As what a result is kept: a reference is one of `std::reference_wrapper`.
template <class R>
using value = std::conditional_t<
    std::is_void_v<R>, nothing,
    std::conditional_t<std::is_lvalue_reference_v<R>, std::reference_wrapper<std::remove_reference_t<R>>, std::remove_cv_t<std::remove_reference_t<R>>>>;

/// What a function returns; `nothing` for void.
template <class F, class... A> value<std::invoke_result_t<F, A...>> call(F &f, A &&...arguments)
{
    if constexpr (std::is_void_v<std::invoke_result_t<F, A...>>) {
        f(std::forward<A>(arguments)...);
        return {};
    } else {
        return f(std::forward<A>(arguments)...);
    }
}

/// A second half: where its function is, and where it leaves what it came to, if it is stolen.
template <class F, class R> struct half {
    F *function;
    std::optional<R> *result;
    std::exception_ptr *thrown;
};

template <class F, class R> void run_half(poach_slot *task, poach_worker *worker) noexcept
{
    auto half = *static_cast<detail::half<F, R> *>(static_cast<void *>(task->payload));
    try {
        half.result->emplace(call(*half.function, worker));
    } catch (...) {
        *half.thrown = std::current_exception();
    }
}

template <class F, class R> inline constexpr poach_task half_task = {poach_run_stolen, run_half<F, R>};

/// A function that is run on a worker of the library's choice.
template <class F> struct entry {
    F *function;
    std::exception_ptr thrown;

    static void body(poach_worker *worker, void *context) noexcept
    {
        auto *self = static_cast<entry *>(context);
        try {
            (*self->function)(worker);
        } catch (...) {
            self->thrown = std::current_exception();
        }
    }
};

} // namespace detail

/// Runs `a` and `b`, perhaps in parallel, each with the worker that it is given; a pair of what they return: an empty struct for void, a
/// `std::reference_wrapper` for a reference.
template <class A, class B> auto join(poach_worker *worker, A &&a, B &&b)
{
    using RA = detail::value<std::invoke_result_t<A &, poach_worker *>>;
    using RB = detail::value<std::invoke_result_t<B &, poach_worker *>>;
    using F = std::remove_reference_t<B>;
    std::optional<RB> stolen;
    std::exception_ptr thrown;
    auto *half = static_cast<detail::half<F, RB> *>(poach_fork_begin(worker));
    static_assert(sizeof *half <= POACH_PAYLOAD, "three pointers fit");
    *half = {&b, &stolen, &thrown};
    poach_worker *above = poach_fork_push(worker, &detail::half_task<F, RB>);
    if (POACH_UNLIKELY(above == nullptr)) {
        RA first = detail::call(a, worker);
        return std::pair<RA, RB>(std::move(first), detail::call(b, worker));
    }
    try {
        RA first = detail::call(a, above);
        if (POACH_LIKELY(poach_fork_pop(worker))) {
            above = nullptr;
            return std::pair<RA, RB>(std::move(first), detail::call(b, worker));
        }
        above = nullptr;
        if (thrown) {
            std::rethrow_exception(thrown);
        }
        return std::pair<RA, RB>(std::move(first), std::move(*stolen));
    } catch (...) {
        // The first half has thrown, if the second is still there: it ends before the exception goes on.
        if (above != nullptr && poach_fork_pop(worker)) {
            try {
                detail::call(b, worker);
            } catch (...) {
            }
        }
        throw;
    }
}

/// A thread pool; it ends with the object.
class pool {
public:
    explicit pool(int threads = 0)
    {
        poach_pool_options options{};
        options.threads = threads;
        detail::check(poach_pool_new(&options, &pool_));
    }

    explicit pool(const poach_pool_options &options) { detail::check(poach_pool_new(&options, &pool_)); }

    pool(pool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;
    pool &operator=(pool &&) = delete;

    ~pool()
    {
        if (pool_) {
            poach_pool_end(pool_);
        }
    }

    poach_pool *get() const noexcept { return pool_; }

    /// Calls `f` with a worker, on this thread: what it returns.
    template <class F> auto run(F &&f) const { return enter(poach_run, f); }

    /// The same, on one of the pool's own threads.
    template <class F> auto install(F &&f) const { return enter(poach_install, f); }

    /// The same, while all workers leave what they do and take part.
    template <class F> auto interrupt(F &&f) const { return enter(poach_interrupt, f); }

private:
    template <class Enter, class F> auto enter(Enter how, F &f) const
    {
        using R = std::invoke_result_t<F &, poach_worker *>;
        std::optional<detail::value<R>> result;
        auto body = [&](poach_worker *worker) { result.emplace(detail::call(f, worker)); };
        detail::entry<decltype(body)> entry{&body, nullptr};
        detail::check(how(pool_, entry.body, &entry));
        if (entry.thrown) {
            std::rethrow_exception(entry.thrown);
        }
        if constexpr (!std::is_void_v<R>) {
            return std::move(*result);
        }
    }

    poach_pool *pool_ = nullptr;
};

namespace detail {

/// The first exception of several tasks.
struct failure {
    std::atomic<bool> failed{false};
    std::exception_ptr thrown;

    void keep() noexcept
    {
        if (!failed.exchange(true)) {
            thrown = std::current_exception();
        }
    }

    /// When all tasks have ended.
    void rethrow() const
    {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    }
};

} // namespace detail

/// Calls `f` with each number from `begin` to before `end`, in parallel, and returns when all calls have returned. The first exception is thrown then; the
/// numbers whose calls have not begun by the time it is thrown are left out.
template <class F> void par_for(const pool &pool, std::size_t begin, std::size_t end, F &&f)
{
    struct loop {
        F &f;
        detail::failure failure;

        static void body(std::size_t index, void *context) noexcept
        {
            auto *self = static_cast<loop *>(context);
            if (self->failure.failed.load(std::memory_order_relaxed)) {
                return;
            }
            try {
                self->f(index);
            } catch (...) {
                self->failure.keep();
            }
        }
    } loop{f, {}};
    detail::check(poach_par_for(pool.get(), begin, end, loop::body, &loop));
    loop.failure.rethrow();
}

/// A group of tasks, for as long as `poach::scope` runs.
class group {
public:
    /// Spawns a task: any worker calls it, once, with nothing or with the group.
    template <class F> void spawn(F &&f) const
    {
        using T = task<std::decay_t<F>>;
        auto *boxed = new T{std::forward<F>(f), state_};
        poach_status status = poach_scope_spawn(scope_, T::body, boxed);
        if (status != POACH_OK) {
            delete boxed;
            throw error(status);
        }
    }

private:
    template <class F> struct task {
        F function;
        detail::failure *of;

        static void body(const poach_scope *scope, void *context) noexcept
        {
            auto *self = static_cast<task *>(context);
            detail::failure *of = self->of;
            try {
                if constexpr (std::is_invocable_v<F &, group>) {
                    self->function(group(scope, of));
                } else {
                    self->function();
                }
            } catch (...) {
                of->keep();
            }
            delete self;
        }
    };

    group(const poach_scope *scope, detail::failure *of) : scope_(scope), state_(of) {}

    const poach_scope *scope_;
    detail::failure *state_;

    template <class F> friend void scope(const pool &, F &&);
};

/// Calls `f` with a group, and returns when it and all tasks of the group have ended.
template <class F> void scope(const pool &pool, F &&f)
{
    detail::failure failure;
    struct body {
        F &f;
        detail::failure &of;

        static void call(const poach_scope *scope, void *context) noexcept
        {
            auto *self = static_cast<body *>(context);
            try {
                self->f(group(scope, &self->of));
            } catch (...) {
                self->of.keep();
            }
        }
    } run{f, failure};
    detail::check(poach_scope_run(pool.get(), body::call, &run));
    failure.rethrow();
}

} // namespace poach

#endif
