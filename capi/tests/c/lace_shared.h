/* What both of Lace's faces have and is no matter of tasks. Included after <lace.h>. */
#ifndef LACE_SHARED_H
#define LACE_SHARED_H

#include "check.h"

static LACE_TLS int own_to_the_thread;
static LACE_UNUSED int not_used;

struct line {
    LACE_ALIGN(LINE_SIZE) char bytes[LINE_SIZE];
};

/* Small enough for a slot, whose payload is aligned to 16. */
struct half_line {
    LACE_ALIGN(32) char bytes[32];
};

static LACE_NOINLINE int is_likely(int what)
{
    return LACE_LIKELY(what) && !LACE_UNLIKELY(!what) && likely(what) && !unlikely(!what);
}

static LACE_NORETURN void gives_up(void)
{
    exit(3);
}

static void uses_what_is_for_compilers(void)
{
    own_to_the_thread++;
    if (!is_likely(own_to_the_thread > 0) || sizeof(struct line) != LINE_SIZE) {
        gives_up();
    }
}

/* The counters, as a table: it has a line for all, and is written to a file as it is printed. */
static void reports(void)
{
    FILE *report = tmpfile();
    CHECK(report != NULL);
    lace_count_report_file(report);
    rewind(report);
    char line[256];
    int lines = 0, all = 0;
    while (fgets(line, sizeof line, report) != NULL) {
        lines++;
        all += strstr(line, "all ") != NULL;
    }
    CHECK(lines >= 3 && all == 1);
    fclose(report);
    lace_count_report();
}

#endif
