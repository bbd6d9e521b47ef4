/* chain.h: programs of simple steps, run so that a value stays in registers from one step to the
 * next.
 *
 * A loop for each step reads and writes a block in the first-level cache every time, and waits for
 * the divider or for memory while nothing else is to be done. A chain takes a tile of a few vectors
 * through all steps and then the next one; the processor works on several at once. Results have the
 * same bits: each step is the same formula (primitives.def). Programs that Tide's own operators
 * have were compiled with it (pointwise/fused.def): their loops take the chain's place.
 */
#ifndef TD_CPU_POINTWISE_CHAIN_H
#define TD_CPU_POINTWISE_CHAIN_H

#include "engine/cpu/code/code.h"
#include "engine/cpu/pointwise/fused_kernels.h"

/* A register in a block: elements, or a single one for all. */
typedef struct td_cell {
    unsigned char *p;
    int64_t next; /* td_chain_run_rows: bytes to the row behind */
    bool scalar;
    _Alignas(8) unsigned char value[8];
} td_cell;

/* Loads and outputs of a program that are 16-bit floats in memory, all of one dtype. */
typedef struct td_narrow {
    uint64_t registers; /* bit per register */
    td_dtype dtype;
    bool all; /* what is no single number is one of them */
} td_narrow;

typedef struct td_chain {
    td_chain_fn run;        /* NULL: the program is none */
    td_fused_fn fused;      /* does the same in one loop; NULL: there is none for it */
    const td_code *machine; /* the same, made while the process runs; `run` may be NULL then */
    int ncode;
    td_chain_op *code;
    size_t itemsize;
    td_narrow narrow;
    uint64_t widened; /* while it is made: what of it stands in its register's tile */
    int registers;    /* of the program; behind their places are those of what is narrow */
} td_chain;

/* Does it take a block through all of its steps? */
static inline bool td_chain_runs(const td_chain *chain) {
    return chain->run || chain->machine;
}

/* Is a program one for chains where its steps are computed in this dtype? */
bool td_chain_takes(const td_program *program, td_dtype compute);

/* Its loop in one piece, where that was compiled; NULL: it was not. `numbers`: bit per load that is
 * a single number. */
td_fused_fn td_chain_fused(const td_program *program, td_dtype compute, uint64_t numbers,
                           td_narrow narrow);

/* Operations that a chain has room for. */
size_t td_chain_most(const td_program *program);

/* Make a program's chain for one dtype in chain->code. `numbers`: bit per load that is a single
 * number in every list; `rows`: others may be one in a row or in a list; `elements`: of all lists.
 * `fetched`: bit per load whose elements come from memory rather than from a
 * cache. `narrow`: whose elements are 16-bit floats, where `compute` is float32. */
void td_chain_make(td_chain *chain, const td_program *program, td_dtype compute, uint64_t numbers,
                   bool rows, int64_t elements, uint64_t fetched, td_narrow narrow);

/* Bytes that running needs, a multiple of 64. */
size_t td_chain_bytes(const td_program *program);

/* What runs on one thread keep: td_chain_bytes of memory at a multiple of 64, made ready once. */
void td_chain_begin(const td_program *program, unsigned char *memory);

/* n elements of a block. `cells` of loads, constants and outputs say where they lie, narrow ones as
 * they are in memory; `moving`: bit per load whose cell may be another than in the run before,
 * where not all are (then all bits). */
void td_chain_run(const td_chain *chain, const td_program *program, int64_t n, const td_cell *cells,
                  uint64_t moving, unsigned char *memory);

/* `rows` rows of n elements, of which `cells` say where the first lies and where the next one does;
 * `each`: bit per load that `next` may move. Cells of loads and outputs end behind the last row. */
void td_chain_run_rows(const td_chain *chain, const td_program *program, int64_t rows, int64_t n,
                       td_cell *cells, uint64_t moving, uint64_t each, unsigned char *memory);

#endif
