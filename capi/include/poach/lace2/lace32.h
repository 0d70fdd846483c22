/* Lace's header for tasks of 32 bytes: Poach's lace.h has room for parameters of any size. */
#include "lace.h"
