// Joins and scopes of lambdas, and exceptions of each of their parts.
#include <poach.hpp>

#include <memory>
#include <string>

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
    CHECK(throws<poach::error>([] { poach::pool pool(-1); }));
    std::puts("lambdas: passed");
    return 0;
}
