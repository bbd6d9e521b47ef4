/* cudnn.h: cuDNN's convolutions as a table of calls, in a module of its own beside libtide_cuda.so,
 * so that machines without the library run our own kernels. Answers of calls: 0, or the library's
 * status. */
#ifndef TD_CUDA_LOADED_LIBRARIES_CUDNN_H
#define TD_CUDA_LOADED_LIBRARIES_CUDNN_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#define TD_LATE_CUDNN "td_late_cudnn_calls"

enum {
    TD_DNN_SPATIAL = 3,
    TD_DNN_ALIGNMENT = 16 /* bytes, of all addresses of a call */
};

/* A convolution of x (n, c, in) and w (o, c / groups, kernel) to y (n, o, out), or a gradient; all
 * three lie without gaps, channels last or row-major. Where there are two spatial dims the first
 * place of each list is not looked at. Compared by its bytes. */
typedef struct td_dnn_shape {
    int32_t direction, dtype, device; /* td_conv_direction, td_dtype */
    int32_t spatial, channels_last, groups;
    int32_t is_tf32;     /* float32 factors may be rounded to TF32 */
    int32_t is_fixed;    /* the order of sums must follow from the shape */
    int32_t is_measured; /* the plan was timed, not guessed */
    int32_t n, c, o;
    int32_t in[TD_DNN_SPATIAL], kernel[TD_DNN_SPATIAL], out[TD_DNN_SPATIAL];
    int32_t stride[TD_DNN_SPATIAL], padding[TD_DNN_SPATIAL], dilation[TD_DNN_SPATIAL];
} td_dnn_shape;

/* The library's plans for a shape, the first of which is the one to run; in memory of the caller's.
 */
typedef struct td_dnn_way td_dnn_way;

typedef struct td_dnn_call {
    const void *a, *b; /* as td_convolution_plan has them */
    void *out, *workspace;
    cudaStream_t stream;
} td_dnn_call;

typedef struct td_late_cudnn {
    size_t (*version)(void);
    int (*start)(void **handle); /* of the current device */
    size_t way_bytes;
    /* Finds a plan that needs no more than `most` bytes of workspace, and for a shape that is
     * measured several, in the order of the library's guess. `way` is clear at first; what fails
     * leaves it so. */
    int (*choose)(void *handle, const td_dnn_shape *shape, size_t most, td_dnn_way *way);
    int (*count)(const td_dnn_way *way);        /* of its plans */
    size_t (*workspace)(const td_dnn_way *way); /* bytes that the first plan needs */
    size_t (*room)(const td_dnn_way *way);      /* bytes that the hungriest one needs */
    int (*run)(void *handle, const td_dnn_way *way, int plan, const td_dnn_call *call);
    void (*keep)(td_dnn_way *way, int plan); /* as the first, and no other */
    void (*drop)(td_dnn_way *way);           /* what it holds */
} td_late_cudnn;

#endif
