/*
 * Poach for C++17: pools, joins and scopes of lambdas, with exceptions.
 *
 * A join of lambdas is poach/fork.h's fork: a lambda that is trivially copyable stands in its slot, of another one the address. A result or an exception is
 * stored by a thief alone. An exception of a half travels to its join, once all halves have ended; an exception of a task travels to its scope, once all have
 * ended (the first one).
 */
#ifndef POACH_HPP
#define POACH_HPP

#include <poach.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Whether a payload has room for it.
template <class T> inline constexpr bool fits = sizeof(T) <= POACH_PAYLOAD && alignof(T) <= 16;

/// What a call comes to: a result, or the exception that it throws.
template <class R> class outcome {
public:
    template <class F> outcome(F &function, poach_worker *worker) noexcept : thrown_(false)
    {
        try {
            ::new (static_cast<void *>(&result_)) R(call(function, worker));
        } catch (...) {
            ::new (static_cast<void *>(&error_)) std::exception_ptr(std::current_exception());
            thrown_ = true;
        }
    }

    outcome(const outcome &) = delete;
    outcome &operator=(const outcome &) = delete;

    ~outcome()
    {
        if (thrown_) {
            error_.~exception_ptr();
        } else {
            result_.~R();
        }
    }

    R take()
    {
        if (thrown_) {
            std::rethrow_exception(error_);
        }
        return std::move(result_);
    }

private:
    bool thrown_;
    union {
        R result_;
        std::exception_ptr error_;
    };
};

/// A second half in its slot; B is what the join was given. A thief leaves the outcome there, or,
/// if it does not fit, in the frame of the join.
template <class B> struct half {
    using F = std::remove_reference_t<B>;
    using R = value<std::invoke_result_t<F &, poach_worker *>>;
    static constexpr bool in_slot = fits<outcome<R>>;
    /// A function that is the join's alone, and can be copied bit by bit, stands in the slot.
    static constexpr bool copied = !std::is_lvalue_reference_v<B> && sizeof(F) + sizeof(void *) <= POACH_PAYLOAD && alignof(F) <= 16 &&
                                   std::is_trivially_copyable_v<F> && std::is_move_constructible_v<F>;
    using stored = std::conditional_t<copied, F, F *>;

    struct near_outcome {
        stored function;
    };
    struct far_outcome {
        stored function;
        void *place;
    };
    using content = std::conditional_t<in_slot, near_outcome, far_outcome>;

    /// Room in the frame of the join.
    struct alignas(in_slot ? 1 : alignof(outcome<R>)) frame {
        unsigned char room[in_slot ? 1 : sizeof(outcome<R>)];
    };

    static void put(void *payload, F &function, [[maybe_unused]] frame &frame)
    {
        auto kept = [&]() -> stored {
            if constexpr (copied) {
                return std::move(function);
            } else {
                return &function;
            }
        };
        if constexpr (in_slot) {
            ::new (payload) content{kept()};
        } else {
            ::new (payload) content{kept(), frame.room};
        }
    }

    static F &function_of(stored &stored)
    {
        if constexpr (copied) {
            return stored;
        } else {
            return *stored;
        }
    }

    /// The function that was popped, moved out of the slot, to which its own forks are pushed.
    static stored taken(poach_worker *worker) { return std::move(static_cast<content *>(static_cast<void *>(worker->payload))->function); }

    static decltype(auto) run(poach_worker *worker)
    {
        stored kept = taken(worker);
        return call(function_of(kept), worker);
    }

    static void stolen(poach_slot *task, poach_worker *worker) noexcept
    {
        void *payload = task->payload;
        content kept = std::move(*static_cast<content *>(payload));
        void *place = payload;
        if constexpr (!in_slot) {
            place = kept.place;
        }
        ::new (place) outcome<R>(function_of(kept.function), worker);
    }

    /// What a thief has left.
    [[gnu::cold, gnu::noinline]] static R take(poach_worker *worker, [[maybe_unused]] frame &frame)
    {
        void *place = worker->payload;
        if constexpr (!in_slot) {
            place = frame.room;
        }
        struct end {
            outcome<R> &of;
            ~end() { of.~outcome(); }
        } end{*std::launder(static_cast<outcome<R> *>(place))};
        return end.of.take();
    }

    static constexpr poach_task task = {poach_run_stolen, stolen};

    /// The first half has thrown: this one ends before the exception goes on, and what it comes to
    /// is dropped.
    [[gnu::cold, gnu::noinline]] static void abandon(poach_worker *worker, frame &frame) noexcept
    {
        try {
            if (poach_fork_pop_of(worker, &task)) {
                run(worker);
            } else {
                take(worker, frame);
            }
        } catch (...) {
        }
    }

    /// Is dropped while the half is pushed only if the first one throws.
    struct pending {
        poach_worker *worker;
        half::frame &frame;

        ~pending()
        {
            if (worker != nullptr) {
                abandon(worker, frame);
            }
        }
    };
};

/// Both halves, where the stack is full: one after the other. What was to be pushed is still in the
/// slot, which the first half overwrites.
template <class A, class B> [[gnu::cold, gnu::noinline]] auto not_forked(poach_worker *worker, A a, typename half<B>::stored b)
{
    auto first = call(a, worker);
    return std::pair<decltype(first), typename half<B>::R>(std::move(first), call(half<B>::function_of(b), worker));
}

/// A join. A is the first half's type or a reference to it, B what the join was given.
template <class A, class B> [[gnu::always_inline]] inline auto fork(poach_worker *worker, A &a, B &&b)
{
    using half = detail::half<B>;
    using RA = value<std::invoke_result_t<A &, poach_worker *>>;
    typename half::frame frame;
    half::put(poach_fork_begin(worker), b, frame);
    if (POACH_UNLIKELY(poach_fork_push(worker, &half::task) == nullptr)) {
        return not_forked<A, B>(worker, a, half::taken(worker));
    }
    typename half::pending pending{worker, frame};
    RA first = call(a, worker + 1);
    pending.worker = nullptr;
    if (POACH_LIKELY(poach_fork_pop_of(worker, &half::task))) {
        return std::pair<RA, typename half::R>(std::move(first), half::run(worker));
    }
    return std::pair<RA, typename half::R>(std::move(first), half::take(worker, frame));
}

/// Whether it is handed to a function in registers.
template <class T> inline constexpr bool is_small = !std::is_reference_v<T> && sizeof(T) <= 2 * sizeof(void *) && std::is_trivially_copyable_v<T>;

/// A join as a function of its own, so that the compiler inlines a small recursive program into it,
/// and a leaf costs no call.
template <class A, class B> [[gnu::noinline]] auto outlined(poach_worker *worker, A a, B b)
{
    return fork(worker, a, std::move(b));
}

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

/// Runs `a` and `b`, perhaps in parallel, each with the worker that it is given; a pair of what
/// they return: an empty struct for void, a `std::reference_wrapper` for a reference.
template <class A, class B> auto join(poach_worker *worker, A &&a, B &&b)
{
    if constexpr (detail::is_small<A> && detail::is_small<B>) {
        return detail::outlined<A, B>(worker, std::move(a), std::move(b));
    } else {
        return detail::fork<A &, B>(worker, a, std::forward<B>(b));
    }
}

/// The same of more than two; a tuple of what they return.
template <class A, class B, class C, class... More> auto join(poach_worker *worker, A &&a, B &&b, C &&c, More &&...more)
{
    auto rest = [&](poach_worker *above) { return poach::join(above, std::forward<B>(b), std::forward<C>(c), std::forward<More>(more)...); };
    auto [first, others] = detail::fork<A &, decltype(rest)>(worker, a, std::move(rest));
    return std::tuple_cat(std::make_tuple(std::move(first)), std::move(others));
}

namespace detail {

/// Children whose forks are pushed one after the other, and popped in the reverse order.
template <class T, class F> struct children {
    using R = value<std::invoke_result_t<F &, poach_worker *, T &>>;
    static_assert(std::is_default_constructible_v<R> && !std::is_same_v<R, bool>,
                  "results are assigned to an array's elements, and those of `bool` may share a byte: return another type");

    F *function;
    T *first;
    R *results;

    /// How many are pushed at a time: their slots are a page.
    static constexpr std::size_t flat = 64;

    /// In the slot of a child, until a thief leaves the exception there, or an empty one.
    struct place {
        children *of;
        T *child;
    };

    static void stolen(poach_slot *task, poach_worker *worker) noexcept
    {
        void *payload = task->payload;
        place at = *static_cast<place *>(payload);
        std::exception_ptr thrown;
        try {
            at.of->results[at.child - at.of->first] = call(*at.of->function, worker, *at.child);
        } catch (...) {
            thrown = std::current_exception();
        }
        ::new (payload) std::exception_ptr(std::move(thrown));
    }

    static constexpr poach_task task = {poach_run_stolen, stolen};

    /// The exception of a child that a thief has called, if there is one.
    static std::exception_ptr thrown_at(poach_worker *worker)
    {
        auto *there = std::launder(static_cast<std::exception_ptr *>(static_cast<void *>(worker->payload)));
        std::exception_ptr thrown = std::move(*there);
        there->~exception_ptr();
        return thrown;
    }

    [[gnu::cold, gnu::noinline]] static void rethrow(poach_worker *worker)
    {
        if (std::exception_ptr thrown = thrown_at(worker)) {
            std::rethrow_exception(thrown);
        }
    }

    /// Calls a child of which nobody wants to know what it throws.
    void call_quietly(poach_worker *worker, T &child) noexcept
    {
        try {
            call(*function, worker, child);
        } catch (...) {
        }
    }

    /// A child has thrown: those behind it, which were pushed from `bottom` on, are called, too,
    /// and what they throw is dropped.
    [[gnu::cold, gnu::noinline]] void abandon(poach_worker *bottom, poach_worker *head, T *child) noexcept
    {
        while (head != bottom) {
            head--;
            child++;
            if (poach_fork_pop_of(head, &task)) {
                call_quietly(head, *child);
            } else {
                thrown_at(head);
            }
        }
    }

    /// Is dropped before all have been called only if one throws.
    struct pending {
        children &of;
        poach_worker *bottom, *head;
        T *child;
        bool ended;

        ~pending()
        {
            if (!ended) {
                of.abandon(bottom, head, child);
            }
        }
    };

    /// The stack was full before the children up to `last` were pushed: they are called without
    /// forks, but for the last.
    [[gnu::cold, gnu::noinline]] void without_forks(poach_worker *bottom, poach_worker *head, T *last)
    {
        for (T *child = first; child != last; child++) {
            try {
                results[child - first] = call(*function, head, *child);
            } catch (...) {
                while (child++ != last) {
                    call_quietly(head, *child);
                }
                abandon(bottom, head, last);
                throw;
            }
        }
    }

    [[gnu::noinline]] void all(poach_worker *worker, std::size_t count)
    {
        if (POACH_UNLIKELY(count > flat)) {
            halved(worker, count);
            return;
        }
        if (count == 0) {
            return;
        }
        poach_worker *head = worker;
        T *child = first + (count - 1);
        for (; child != first; child--, head++) {
            ::new (poach_fork_begin(head)) place{this, child};
            if (POACH_UNLIKELY(poach_fork_push(head, &task) == nullptr)) {
                without_forks(worker, head, child);
                break;
            }
        }
        R *result = results + (child - first);
        pending rest{*this, worker, head, child, false};
        for (;;) {
            *result = call(*function, rest.head, *rest.child);
            do {
                if (rest.head == worker) {
                    rest.ended = true;
                    return;
                }
                rest.head--;
                rest.child++;
                result++;
            } while (POACH_UNLIKELY(!is_own(rest.head)));
        }
    }

    [[gnu::noinline]] void halved(poach_worker *worker, std::size_t count)
    {
        std::size_t half = count / 2;
        children second{function, first + half, results + half};
        join(
            worker, [this, half](poach_worker *w) { all(w, half); }, [&second, rest = count - half](poach_worker *w) { second.all(w, rest); });
    }

    /// Whether the next child is this worker's to call. If a thief has called it, the result is
    /// there.
    [[gnu::always_inline]] static bool is_own(poach_worker *head)
    {
        if (POACH_LIKELY(poach_fork_pop_of(head, &task))) {
            return true;
        }
        rethrow(head);
        return false;
    }
};

/// Room for what so many children return.
template <class R, class T, std::size_t N> std::array<R, N> results(const std::array<T, N> &)
{
    std::array<R, N> results;
    return results;
}

template <class R, class Children> std::vector<R> results(const Children &children)
{
    return std::vector<R>(std::size(children));
}

} // namespace detail

/// Calls `f` with a worker and each of the children (of a `std::array`, a `std::vector`, or what
/// else has `data` and `size`), perhaps in parallel; what it returns, in order, once all calls have
/// ended: an array of an array, else a vector. The exception of the first child that throws is
/// thrown then.
template <class Children, class F> auto join_all(poach_worker *worker, Children &&children, F &&f)
{
    using run = detail::children<std::remove_pointer_t<decltype(std::data(children))>, std::remove_reference_t<F>>;
    auto results = detail::results<typename run::R>(children);
    run{&f, std::data(children), results.data()}.all(worker, std::size(children));
    return results;
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

/// Calls `f` with each number from `begin` to before `end`, in parallel, and returns when all calls
/// have returned. The first exception is thrown then; the numbers whose calls have not begun by the
/// time it is thrown are left out.
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

/// The tasks of one function, each a fork: no task is allocated, unless it is larger than 40 bytes
/// or its move may throw.
class forks {
public:
    forks(const forks &) = delete;
    forks &operator=(const forks &) = delete;

    /// Forks a task: this worker calls it at the end of the scope, or a thief before, with nothing
    /// or with the worker that it has then.
    template <class F> void spawn(F &&f)
    {
        using T = std::decay_t<F>;
        if constexpr (is_kept<T>) {
            push<T>(std::forward<F>(f));
        } else {
            auto boxed = std::make_unique<T>(std::forward<F>(f));
            push<unboxed<T>>(unboxed<T>{std::move(boxed)});
        }
    }

    /// The worker for joins in the function itself, until it spawns the next task.
    poach_worker *worker() const noexcept { return head_; }

private:
    template <class F> static constexpr bool is_kept = sizeof(F) + sizeof(void *) <= POACH_PAYLOAD && alignof(F) <= alignof(void *) &&
                                                       std::is_nothrow_move_constructible_v<F>;

    template <class F> struct unboxed {
        std::unique_ptr<F> function;

        void operator()(poach_worker *worker) { call(*function, worker); }
    };

    template <class F> struct task {
        detail::failure *of;
        F function;

        /// The same for the owner and for a thief: nothing is left in the slot.
        static void body(poach_slot *slot, poach_worker *worker) noexcept
        {
            auto *there = std::launder(static_cast<task *>(static_cast<void *>(slot->payload)));
            task own = std::move(*there);
            there->~task();
            try {
                call(own.function, worker);
            } catch (...) {
                own.of->keep();
            }
        }

        static constexpr poach_task descriptor = {poach_run_stolen, body};
    };

    template <class F> static void call(F &function, poach_worker *worker)
    {
        if constexpr (std::is_invocable_v<F &, poach_worker *>) {
            function(worker);
        } else {
            function();
        }
    }

    template <class T, class F> void push(F &&f)
    {
        ::new (poach_fork_begin(head_)) task<T>{&failure_, std::forward<F>(f)};
        poach_worker *above = poach_fork_push(head_, &task<T>::descriptor);
        if (POACH_UNLIKELY(above == nullptr)) {
            // A full stack makes it a call.
            task<T>::body(head_, head_);
            return;
        }
        head_ = above;
    }

    forks(poach_worker *worker, detail::failure &failure) : base_(worker), head_(worker), failure_(failure) {}

    /// Calls what nobody has stolen, the last task first, and waits for the others.
    ~forks()
    {
        while (head_ != base_) {
            head_--;
            auto word = __atomic_load_n(&head_->task, __ATOMIC_RELAXED);
            if (POACH_LIKELY(poach_fork_pop(head_))) {
                reinterpret_cast<const poach_task *>(word - POACH_PRESENT)->body(head_, head_);
            }
        }
    }

    poach_worker *base_, *head_;
    detail::failure &failure_;

    template <class F> friend void scope(poach_worker *, F &&);
};

/// Calls `f` with `forks`, and returns when it and all tasks have ended. It is the cheapest scope:
/// a task costs a fork. A task forks with the worker that it is given, or opens a scope of its own.
template <class F> void scope(poach_worker *worker, F &&f)
{
    detail::failure failure;
    {
        forks tasks(worker, failure);
        try {
            f(tasks);
        } catch (...) {
            failure.keep();
        }
    }
    failure.rethrow();
}

} // namespace poach

#endif
