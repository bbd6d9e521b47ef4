/* gradient_sizes.h: one joint graph (gradient_record.h) for inputs of all sizes.
 *
 * The graph is recorded for inputs of three sizes. Where the recordings differ in nothing but sizes
 * and in whole numbers that follow from them, the first becomes a graph for all: in its types the
 * sizes that vary are not known, and the numbers that vary are further inputs of it, behind the
 * gradients that come in. That a new size gives this graph, too, is not inferred but seen: the
 * calls are recorded for it once, which computes nothing, and compared. */
#ifndef TD_SCRIPT_GRADIENT_SIZES_H
#define TD_SCRIPT_GRADIENT_SIZES_H

#include "engine/script/gradient/gradient_record.h"

enum {
    TD_SIZES_MOST = 6,  /* sizes that vary apart from one another */
    TD_SIZES_POINTS = 3 /* recordings that are compared */
};

/* The sizes that vary among inputs: those that are equal wherever they were seen are one. */
typedef struct td_varying {
    int n; /* how many */
    int64_t seen[TD_SIZES_MOST][TD_SIZES_POINTS];
    int ninputs;
    bool *varies;                /* by input: does some size of it? */
    int8_t (*dims)[TD_MAX_DIMS]; /* by input and dim: which of the sizes it is; -1: it is fixed */
} td_varying;

/* What varies between inputs of the same kinds; their numbers are equal. ETYPE: nothing does, or
 * too much, or otherwise than in sizes of 2 and more of tensors that lie row by row. */
td_status td_varying_new(int ninputs, const td_value *first, const td_value *second,
                         td_varying **out) TD_MUST_CHECK;
void td_varying_free(td_varying *v); /* NULL is fine */
/* Of the k-th input of a call: is it like the first one but for what varies, of which sizes[] has
 * the sizes then (0: not seen yet)? */
bool td_varying_takes(const td_varying *v, int k, const td_tensor *x, const td_tensor *first,
                      int64_t *sizes);
/* Stand-ins for inputs like the first ones, with these sizes; numbers as they are. Owned by the
 * caller: their tensors are. */
td_status td_varying_inputs(const td_varying *v, const td_value *first, const int64_t *sizes,
                            td_value *out) TD_MUST_CHECK;

/* ---- joint graphs ---- */

/* One for all sizes. */
typedef struct td_sized td_sized;

/* Of recordings for the sizes seen[0], seen[1], ..., which it takes over. EVALUE says where they
 * differ. */
td_status td_sized_new(const td_varying *v, td_joint *joints, td_sized **out) TD_MUST_CHECK;
void td_sized_free(td_sized *s); /* NULL is fine */
td_joint *td_sized_joint(td_sized *s);
/* Its inputs that are numbers, td_joint.nnumbers, for these sizes. `room` has td_sized_room
 * entries, which lists are in. False: one of them is no whole number then. */
int td_sized_room(const td_sized *s);
bool td_sized_numbers(const td_sized *s, const int64_t *sizes, int64_t *room, td_value *out);
/* Was it seen that these sizes give this graph? */
bool td_sized_knows(td_sized *s, const int64_t *sizes);
/* Or that they don't? */
bool td_sized_refuses(td_sized *s, const int64_t *sizes);
/* Look, at a recording for these sizes, NULL: there is none, and remember: EVALUE says where it
 * differs. */
td_status td_sized_learn(td_sized *s, const int64_t *sizes, const td_joint *joint) TD_MUST_CHECK;

#endif
