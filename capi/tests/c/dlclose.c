/* The shared library stays where it is when it is closed: threads of its pools may run its code. */
#include <poach.h>

#include <dlfcn.h>

#include "check.h"

typedef poach_status (*new_pool)(const poach_pool_options *, poach_pool **);
typedef poach_status (*run_body)(const poach_pool *, poach_body, void *);
typedef poach_status (*end_pool)(poach_pool *);

static void ticks(poach_worker *worker, void *context)
{
    (void)worker;
    *(int *)context += 1;
}

/* A pointer to a function, which C does not make of dlsym's. */
static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    CHECK(found != NULL);
    memcpy(function, &found, sizeof found);
}

int main(void)
{
    poach_pool *pool;
    int count = 0;
    for (int times = 0; times < 3; times++) {
        void *library = dlopen("libpoach.so.0", RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        new_pool make;
        run_body run;
        end_pool end;
        find(library, "poach_pool_new", &make);
        find(library, "poach_install", &run);
        find(library, "poach_pool_end", &end);
        OK(make(NULL, &pool));
        OK(run(pool, ticks, &count));
        CHECK(dlclose(library) == 0);
        /* Its threads are there, and so is its code. */
        OK(run(pool, ticks, &count));
        if (times > 0) {
            OK(end(pool));
        }
    }
    CHECK(count == 6);
    puts("dlclose: passed");
    return 0;
}
