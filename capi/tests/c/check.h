/* What the tests of this directory share. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                     \
    do {                                                                                                \
        if (!(what)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #what, poach_last_error()); \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)

#define OK(call) CHECK((call) == POACH_OK)

#endif
