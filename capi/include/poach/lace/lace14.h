/* Lace's header for tasks of up to 14 parameters: Poach's lace.h has them all. */
#include "lace.h"
