// Joins and scopes of lambdas, and exceptions of each of their parts.
#include <poach.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

// A plain callback of C's that throws, on the caller's thread or on one of the pool's: the end of the process with a message.
static void escapes(poach_worker *, void *)
{
    throw std::string("out of a C callback");
}

static int dies(const std::string &where)
{
    poach::pool pool(2);
    try {
        if (where == "run") {
            return static_cast<int>(poach_run(pool.get(), escapes, nullptr));
        }
        return static_cast<int>(poach_install(pool.get(), escapes, nullptr));
    } catch (...) {
        return 2;
    }
}

static void must_die(char *program, const char *where)
{
    std::fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(std::freopen("/dev/null", "w", stderr) != nullptr);
        execl(program, program, where, static_cast<char *>(nullptr));
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == 6);
}

static long fib(poach_worker *worker, long n)
{
    if (n < 2) {
        return n;
    }
    auto [a, b] = poach::join(worker, [=](poach_worker *w) { return fib(w, n - 1); }, [=](poach_worker *w) { return fib(w, n - 2); });
    return a + b;
}

static long counted(poach_worker *worker, long n, long bad, std::atomic<long> &ended)
{
    if (n == 0) {
        return 1;
    }
    struct count {
        std::atomic<long> &ended;
        ~count() { ended++; }
    } count{ended};
    if (n == bad) {
        throw std::string("bad");
    }
    auto [a, b] = poach::join(
        worker, [&](poach_worker *w) { return counted(w, n - 1, bad, ended); }, [&](poach_worker *w) { return counted(w, n - 1, 0, ended); });
    return a + b;
}

template <class E, class F> static bool throws(F f)
{
    try {
        f();
    } catch (const E &) {
        return true;
    }
    return false;
}

// What a program sees alive of what it makes.
struct counted_value {
    explicit counted_value(int value) : number(value) { alive++; }
    counted_value() : counted_value(0) {}
    counted_value(const counted_value &other) : counted_value(other.number) {}
    counted_value(counted_value &&other) noexcept : counted_value(other.number) {}
    counted_value &operator=(const counted_value &) = default;
    ~counted_value() { alive--; }

    int number;
    static std::atomic<int> alive;
};

std::atomic<int> counted_value::alive{0};

static long skynet(poach_worker *worker, long first, long leaves)
{
    if (leaves == 1) {
        return first;
    }
    std::array<long, 10> children{};
    for (std::size_t at = 0; at < 10; at++) {
        children[at] = first + static_cast<long>(at) * (leaves / 10);
    }
    long sum = 0;
    for (long part : poach::join_all(worker, children, [=](poach_worker *w, long child) { return skynet(w, child, leaves / 10); })) {
        sum += part;
    }
    return sum;
}

static long skynet_of_scopes(poach_worker *worker, long first, long leaves)
{
    if (leaves == 1) {
        return first;
    }
    std::array<long, 10> sums{};
    poach::scope(worker, [&](poach::forks &tasks) {
        for (std::size_t at = 0; at < 10; at++) {
            long child = first + static_cast<long>(at) * (leaves / 10);
            tasks.spawn([&sum = sums[at], child, leaves](poach_worker *w) { sum = skynet_of_scopes(w, child, leaves / 10); });
        }
        CHECK(poach_worker_index(tasks.worker()) == poach_current_index());
    });
    long sum = 0;
    for (long part : sums) {
        sum += part;
    }
    return sum;
}

// Waits, for a while, until others have begun so many tasks; its joins meet the requests of thieves.
static void until_begun(poach_worker *worker, const std::atomic<int> &begun, int count)
{
    for (int patience = 0; begun < count && patience < 20000; patience++) {
        poach::join(worker, [](poach_worker *) {}, [](poach_worker *) {});
        usleep(100);
    }
}

template <class R> static void stolen_result(const poach::pool &pool, R (*make)(int), bool bad)
{
    for (int tries = 0; tries < 50; tries++) {
        std::atomic<int> begun{0};
        bool threw = false;
        try {
            auto both = pool.run([&](poach_worker *w) {
                return poach::join(
                    w, [&](poach_worker *above) { until_begun(above, begun, 1); },
                    [&](poach_worker *) {
                        begun++;
                        return make(bad ? -1 : 3);
                    });
            });
            CHECK(both.second == make(3));
        } catch (int thrown) {
            threw = thrown == -1;
        }
        CHECK(threw == bad);
    }
}

template <class R> static R made(int number)
{
    if (number < 0) {
        throw number;
    }
    if constexpr (std::is_same_v<R, std::string>) {
        return std::string(100, static_cast<char>('a' + number));
    } else {
        R result{};
        result[0] = number;
        return result;
    }
}

static void many_children(const poach::pool &pool)
{
    CHECK(pool.run([](poach_worker *w) { return skynet(w, 0, 10000); }) == 49995000);
    CHECK(pool.run([](poach_worker *w) { return skynet_of_scopes(w, 0, 10000); }) == 49995000);
    // Any number, in order; children and results that own memory.
    for (int count : {0, 1, 2, 63, 64, 65, 300}) {
        std::vector<std::string> names;
        for (int at = 0; at < count; at++) {
            names.push_back(std::to_string(at) + " is longer than what a string holds itself");
        }
        auto same = pool.run([&](poach_worker *w) { return poach::join_all(w, names, [](poach_worker *, std::string &name) { return name; }); });
        CHECK(same == names);
        pool.run([&](poach_worker *w) { poach::join_all(w, names, [](poach_worker *, std::string &name) { name.clear(); }); });
        for (const auto &name : names) {
            CHECK(name.empty());
        }
        // The exception of the first that throws, once all have been called.
        for (int bad = 0; bad < count; bad += 1 + count / 5) {
            std::atomic<int> called{0};
            std::vector<int> numbers(static_cast<std::size_t>(count));
            for (int at = 0; at < count; at++) {
                numbers[static_cast<std::size_t>(at)] = at;
            }
            int thrown = -1;
            try {
                pool.run([&](poach_worker *w) {
                    poach::join_all(w, numbers, [&](poach_worker *, int number) {
                        called++;
                        if (number >= bad) {
                            throw number;
                        }
                        return counted_value(number);
                    });
                });
            } catch (int number) {
                thrown = number;
            }
            CHECK(thrown == bad && called == count && counted_value::alive == 0);
        }
    }
    // Three and more halves.
    pool.run([](poach_worker *w) {
        auto [a, b, c, d] = poach::join(
            w, [](poach_worker *) { return 1; }, [](poach_worker *) { return std::string("two"); }, [](poach_worker *) {},
            [](poach_worker *above) { return fib(above, 10); });
        (void)c;
        CHECK(a == 1 && b == "two" && d == 55);
    });
    // Tasks of any size, what cannot be copied, and exceptions, of which the first arrives.
    std::atomic<int> sum{0};
    pool.run([&](poach_worker *w) {
        poach::scope(w, [&](poach::forks &tasks) {
            for (int at = 0; at < 100; at++) {
                std::array<int, 20> large{at};
                tasks.spawn([&sum, large] { sum += large[0]; });
                tasks.spawn([&sum, owner = std::make_unique<int>(at)] { sum += *owner; });
                tasks.spawn([&sum, value = counted_value(at)](poach_worker *) { sum += value.number; });
            }
        });
        CHECK(sum == 3 * 4950 && counted_value::alive == 0);
        CHECK(throws<int>([&] {
            poach::scope(w, [&](poach::forks &tasks) {
                for (int at = 0; at < 100; at++) {
                    tasks.spawn([&sum, value = counted_value(at)] {
                        sum++;
                        if (value.number == 50) {
                            throw 50;
                        }
                    });
                }
            });
        }));
        CHECK(sum == 3 * 4950 + 100 && counted_value::alive == 0);
        CHECK(throws<std::string>([&] {
            poach::scope(w, [&](poach::forks &tasks) {
                tasks.spawn([&] { sum++; });
                throw std::string("body");
            });
        }));
        CHECK(sum == 3 * 4950 + 101);
    });
}

// All that finds a full stack is called without a fork.
static void full_stack()
{
    poach_pool_options options{};
    options.threads = 2;
    options.task_stack = 50;
    poach::pool pool(options);
    for (int bad = -1; bad < 300; bad += 7) {
        std::atomic<int> called{0};
        std::vector<int> numbers(40);
        for (std::size_t at = 0; at < 40; at++) {
            numbers[at] = static_cast<int>(at);
        }
        int thrown = -1;
        try {
            pool.run([&](poach_worker *w) {
                auto each = [&](poach_worker *, int number) {
                    called++;
                    if (bad >= 0 && number >= bad) {
                        throw number;
                    }
                };
                poach::join_all(w, std::array<int, 2>{0, 0}, [&](poach_worker *v, int) {
                    poach::scope(v, [&](poach::forks &tasks) {
                        for (int at = 0; at < 30; at++) {
                            tasks.spawn([&called] { called++; });
                        }
                        poach::join_all(tasks.worker(), numbers, each);
                        poach::join(tasks.worker(), [&](poach_worker *) { called++; }, [&](poach_worker *) { called++; });
                    });
                });
            });
        } catch (int number) {
            thrown = number;
        }
        bool throws = bad >= 0 && bad < 40;
        CHECK(thrown == (throws ? bad : -1));
        CHECK(called == (throws ? 2 * 70 : 2 * 72));
    }
}


int main(int count, char **arguments)
{
    if (count > 1) {
        return dies(arguments[1]);
    }
    must_die(arguments[0], "run");
    must_die(arguments[0], "install");
    for (int threads = 1; threads <= 3; threads++) {
        poach::pool pool(threads);
        CHECK(pool.run([](poach_worker *w) { return fib(w, 22); }) == 17711);
        CHECK(pool.install([](poach_worker *w) { return fib(w, 22); }) == 17711);
        CHECK(pool.interrupt([](poach_worker *w) { return fib(w, 22); }) == 17711);

        // Both halves end, whichever throws.
        for (int at = 0; at < 100; at++) {
            std::atomic<long> ended{0};
            CHECK(throws<std::string>([&] { pool.run([&](poach_worker *w) { return counted(w, 8, 4, ended); }); }));
            CHECK(ended.load() > 0);
            int halves = 0;
            auto second = [&](poach_worker *) {
                halves++;
                throw 5;
            };
            CHECK(throws<int>([&] { pool.run([&](poach_worker *w) { poach::join(w, [](poach_worker *) {}, second); }); }));
            auto first = [](poach_worker *) { throw std::string("first"); };
            CHECK(throws<std::string>([&] { pool.run([&](poach_worker *w) { poach::join(w, first, second); }); }));
            CHECK(halves == 2);
        }

        many_children(pool);
        if (threads > 1) {
            for (bool bad : {false, true}) {
                stolen_result(pool, made<std::array<long, 1>>, bad);
                stolen_result(pool, made<std::array<long, 5>>, bad);
                stolen_result(pool, made<std::array<long, 50>>, bad);
                stolen_result(pool, made<std::string>, bad);
            }
        }

        // What cannot be copied, and results that own memory.
        auto [text, none] = pool.run([](poach_worker *w) {
            auto owner = std::make_unique<int>(7);
            return poach::join(
                w, [](poach_worker *) { return std::string(100, 'x'); }, [owner = std::move(owner)](poach_worker *) { CHECK(*owner == 7); });
        });
        (void)none;
        CHECK(text.size() == 100);

        // References.
        int left = 1, right = 2;
        pool.run([&](poach_worker *w) {
            auto [a, b] = poach::join(w, [&](poach_worker *) -> int & { return left; }, [&](poach_worker *) -> const int & { return right; });
            CHECK(&a.get() == &left && &b.get() == &right);
        });
        pool.run([&](poach_worker *) -> int & { return left; }).get() = 3;
        CHECK(left == 3);

        // Each number once; and all calls that begin end, if one throws.
        std::atomic<long> total{0};
        poach::par_for(pool, 10, 1000, [&](std::size_t at) { total += static_cast<long>(at); });
        CHECK(total == 999 * 500 - 45);
        std::atomic<long> begun{0}, returned{0};
        CHECK(throws<int>([&] {
            poach::par_for(pool, 0, 1000, [&](std::size_t at) {
                begun++;
                if (at == 500) {
                    throw 7;
                }
                returned++;
            });
        }));
        CHECK(begun == returned + 1);

        std::atomic<int> sum{0};
        poach::scope(pool, [&](poach::group group) {
            for (int at = 0; at < 100; at++) {
                group.spawn([&, at] { sum += at; });
                group.spawn([&](poach::group inner) { inner.spawn([&] { sum++; }); });
            }
        });
        CHECK(sum == 4950 + 100);
        CHECK(throws<int>([&] {
            poach::scope(pool, [&](poach::group group) {
                for (int at = 0; at < 100; at++) {
                    group.spawn([&, at] {
                        sum++;
                        if (at == 50) {
                            throw 50;
                        }
                    });
                }
            });
        }));
        CHECK(sum == 4950 + 200);
        CHECK(throws<std::string>([&] { poach::scope(pool, [](poach::group) { throw std::string("body"); }); }));
    }
    full_stack();
    CHECK(throws<poach::error>([] { poach::pool pool(-1); }));
    std::puts("lambdas: passed");
    return 0;
}
