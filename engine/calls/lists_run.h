/* lists_run.h: runs one plan over lists, told to an observer as one call of its operator. */
#ifndef TD_CALLS_LISTS_RUN_H
#define TD_CALLS_LISTS_RUN_H

#include "engine/core/device.h"
#include "engine/core/tensor.h"

typedef struct td_lists_run {
    const char *name; /* static, or kept for ever */
    td_device device;
    int n; /* results */
    td_tensor **results;
    td_status (*run)(td_device device, void *plan);
    void *plan;
} td_lists_run;

/* Run it, between the events of an operator and of its kernel where anybody listens. */
td_status td_lists_run_observed(const td_lists_run *r) TD_MUST_CHECK;

#endif
