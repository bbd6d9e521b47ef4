/* names.c: what collectives and reductions are called. */
#include "engine/distributed/transport.h"

const char *const td_collective_names[TD_COLLECTIVES] = {
#define NAME(ENUM, text) text,
    TD_COLLECTIVE_TABLE(NAME)};

const char *const td_across_names[TD_ACROSS_OPS] = {TD_ACROSS_TABLE(NAME)
#undef NAME
};
