/* all_reduce.h: reductions over all ranks of a small group, as messages from rank to rank. */
#ifndef TD_DISTRIBUTED_LOADED_ALL_REDUCE_H
#define TD_DISTRIBUTED_LOADED_ALL_REDUCE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranks that a group has at most for these: each sends to each. */
enum { TD_EXCHANGE_RANKS = 16 };

/* What is reduced, and where. All ranks of `comm` begin their reductions in the same order. */
typedef struct td_exchange_of {
    MPI_Comm comm; /* on which nothing else sends these tags */
    int tag;       /* this one and the next are taken */
    MPI_Datatype type;
    size_t size; /* bytes of an element */
    MPI_Op op;
    const void *send; /* may be recv */
    void *recv;
    int64_t count;
} td_exchange_of;

typedef struct td_exchange td_exchange;

/* New in *out, or NULL; MPI's code (MPI_ERR_NO_MEM: out of memory). */
int td_exchange_start(const td_exchange_of *of, td_exchange **out);
/* MPI's code. *moved: something of it has arrived since the last call. *done: all has; then it may
 * be freed, and not before. */
int td_exchange_test(td_exchange *x, bool *moved, bool *done);
void td_exchange_free(td_exchange *x);

#endif
