// Lace 2's in a program of C++.
#include "lace2_arities.c"
