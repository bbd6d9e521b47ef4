/* convert_kernels.h: conversion of contiguous runs between dtypes. */
#ifndef TD_CPU_POINTWISE_CONVERT_KERNELS_H
#define TD_CPU_POINTWISE_CONVERT_KERNELS_H

#include "engine/core/dtype.h"

/* n elements, both sides contiguous, not overlapping. */
typedef void (*td_convert_fn)(int64_t n, void *dst, const void *src);

typedef struct td_convert_kernels {
    td_convert_fn convert[TD_DTYPE_COUNT][TD_DTYPE_COUNT]; /* [to][from] */
    /* float32 to what a 16-bit float holds and back; dst may be src; NULL for other dtypes */
    td_convert_fn round[TD_DTYPE_COUNT];
} td_convert_kernels;

#endif
