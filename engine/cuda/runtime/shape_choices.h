/* shape_choices.h: a cache of what a library chose for a shape: a hash table by the shape's bytes.
 * A network's shapes stay beside one another: of a set of several, the one that was asked for least
 * recently is replaced. Its user locks it. */
#ifndef TD_CUDA_RUNTIME_SHAPE_CHOICES_H
#define TD_CUDA_RUNTIME_SHAPE_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TD_CUDA_WAY_SETS = 512, TD_CUDA_WAYS_OF_SET = 8, TD_CUDA_SHAPE_BYTES = 160 };

typedef struct td_cuda_ways {
    size_t shape_bytes; /* at most TD_CUDA_SHAPE_BYTES */
    uint64_t asked;     /* how often a shape was */
    struct td_cuda_kept {
        uint64_t asked; /* when, of its table's; 0: no shape is there */
        unsigned char shape[TD_CUDA_SHAPE_BYTES];
        void *way;
    } kept[TD_CUDA_WAY_SETS][TD_CUDA_WAYS_OF_SET];
} td_cuda_ways;

/* Was a way for the shape chosen? */
bool td_cuda_ways_known(const td_cuda_ways *ways, const void *shape);
/* Where a shape's way stands. *known: it was chosen (NULL: none could be); else the place is the
 * shape's from now on, and holds the way of another, or NULL, to be let go of and replaced. */
void **td_cuda_ways_place(td_cuda_ways *ways, const void *shape, bool *known);

#endif
