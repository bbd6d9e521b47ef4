/* library.h: what the played libraries share: elements by type, ranges that must lie on a device.
 */
#ifndef TIDE_PLAYED_LIBRARY_H
#define TIDE_PLAYED_LIBRARY_H

#include "include/cuda_bf16.h"
#include "include/cuda_fp16.h"
#include "include/cuda_runtime_api.h"
#include "include/library_types.h"

#include <functional>

namespace td_played {

size_t size_of(cudaDataType type);
double load(cudaDataType type, const void *p, size_t at);
/* Rounds to the type; integers wrap around. */
void store(cudaDataType type, void *p, size_t at, double value);

/* To the ten bits that tensor cores read of a float. */
double to_tf32(double x);

/* A library has chosen a kernel (td_played_choices). */
void count_choice();

/* Ends the process unless [p, p + bytes) lies in one block of device or pinned memory. */
void check_range(const char *call, const char *what, const void *p, size_t bytes);
/* Ends the process unless p is aligned to an element. */
void check_aligned(const char *call, const char *what, const void *p, size_t bytes);
/* Is a stream's handle valid? */
bool is_stream(cudaStream_t handle);

} // namespace td_played

#endif
