/* pointwise_job.h: a pointwise plan that is being run on the CPU. */
#ifndef TD_CPU_POINTWISE_POINTWISE_JOB_H
#define TD_CPU_POINTWISE_POINTWISE_JOB_H

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/chain.h"
#include "engine/cpu/pointwise/pointwise_walk.h"

/* A step in a call. */
typedef struct td_step_code {
    td_pointwise_fn loop; /* or, where that is NULL: */
    td_convert_fn convert;
    size_t size; /* of an element that it makes */
    bool joined; /* the next step does this one's work */
    uint8_t arity;
    uint16_t src[3];
} td_step_code;

/* A plan that is being run. */
typedef struct td_pointwise_job {
    const td_program *program;
    td_dtype compute;
    int nlists;
    td_walk *walks; /* NULL: laid out by who runs a list, so that they stay in its cache */
    const td_operand *operands, *shared;
    int nown;        /* operands that a list has of its own */
    td_operand *row; /* room for a list's, where some are shared */
    td_tensor *const *outs;
    bool *flat;      /* of each list where there are no walks */
    int64_t *starts; /* of each list's elements (or pieces) in the loop, and of the end */
    td_step_code *code;
    td_chain chain;
    unsigned char (*constants)[8];
    td_accumulator *partial; /* [piece][output] */
    unsigned char *heap;     /* workers' memory where their stacks are too small */
    size_t worker_bytes;
    int threads; /* for whom there is memory */
} td_pointwise_job;

/* What a worker needs: cells of all registers, operands of a list, a walk, and buffers: of loads,
 * outputs, steps, one more. */
typedef struct td_worker_memory {
    td_cell *cells;
    td_operand *row;
    td_walk walk;
    bool known; /* the cells of loads that don't move, from the block before */
    unsigned char *loads, *outs, *buffers, *raw, *chain;
} td_worker_memory;

/* Is it a dtype that is computed in float32? */
static inline bool td_is_narrow(td_dtype dtype) {
    return td_dtype_compute(dtype) != dtype;
}

/* The loop of a primitive over elements of a dtype; NULL: there is none. */
td_pointwise_fn td_pointwise_loop(int primitive, td_dtype dtype);
/* The loop that is cheaper than `pow` where the exponent, one element, is 3, 2, 1, 0.5, -0.5, -1
 * or -2. */
td_pointwise_fn td_cheaper_power(td_dtype dtype, const void *exponent, td_pointwise_fn pow);
/* Step s over n elements; bits of `scalars` say which sources are one element. */
void td_pointwise_step(const td_pointwise_job *job, int s, int64_t n, td_cell *dst,
                       const void *const *src, unsigned scalars);

/* One list by the program's machine code, where it has some and the list needs no laying out.
 * Otherwise *taken is false, and nothing was done. */
td_status td_pointwise_as_code(const td_program *program, td_dtype compute,
                               const td_operand *operands, td_tensor *const *outs,
                               bool *taken) TD_MUST_CHECK;

/* Elements [begin, end) of a list where they lie: a step or a chain that goes along all of them or
 * along rows. False: they have to be laid out in blocks, and nothing was done. */
bool td_pointwise_in_place(const td_pointwise_job *job, const td_walk *walk, int64_t begin,
                           int64_t end, td_worker_memory *memory);

#endif
