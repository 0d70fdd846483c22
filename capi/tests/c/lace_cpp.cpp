// Lace's macros in a program of C++.
#include "lace_arities.c"
