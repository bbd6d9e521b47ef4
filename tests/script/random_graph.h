/* random_graph.h: graphs made of operators of the table, with branches and loops. */
#ifndef TIDE_TESTS_SCRIPT_RANDOM_GRAPH_H
#define TIDE_TESTS_SCRIPT_RANDOM_GRAPH_H

#include "engine/script/ir.h"

/* The graph of a seed: always the same one. NULL: out of memory. */
td_ir_graph *random_graph(uint64_t seed);

#endif
