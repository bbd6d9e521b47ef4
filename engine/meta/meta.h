/* meta.h: the device "meta", whose tensors have dtype, shape and strides but no elements.
 *
 * Operators run on it as on any device: their rules say what their results are, and its functions
 * do nothing. What has to read an element fails with EDEVICE.
 *
 * Besides the first it has a stand-in for each other device (core/device.h): a tensor on that for
 * "cuda:0" says what a call on "cuda:0" would make (calls/infer.h), bears that device's name, and
 * mixes with tensors on that stand-in alone.
 */
#ifndef TD_META_META_H
#define TD_META_META_H

#include "engine/core/backend.h"

extern const td_backend td_meta_backend;

#endif
