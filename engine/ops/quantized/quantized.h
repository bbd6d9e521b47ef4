/* quantized.h: quantized tensors as operators see them: made of floats or of integers, and what
 * operators of other families do where an argument is quantized (td_op.forms). */
#ifndef TD_OPS_QUANTIZED_QUANTIZED_H
#define TD_OPS_QUANTIZED_QUANTIZED_H

#include "engine/ops/op.h"
#include "engine/ops/plan/quantized_pack.h"
#include "engine/ops/quantized/quantized_tensor.h"

/* EVALUE unless a scale is a float32 above 0 that is not denormal, and a zero point an integer of
 * the dtype. */
td_status td_check_scale(double scale) TD_MUST_CHECK;
td_status td_check_zero_point(int64_t zero_point, td_dtype ints) TD_MUST_CHECK;

/* A scale (a float: float32) or a zero point (an integer: int32) as a tensor of one element on a
 * device, new. */
td_status td_quantization_number(td_device device, td_value number, td_tensor **out) TD_MUST_CHECK;

/* The integers (new) that x, floating, becomes with these parameters, or with those of `like`. */
td_status td_quantize_ints(td_tensor *x, double scale, int64_t zero_point, td_dtype ints,
                           td_tensor **out) TD_MUST_CHECK;
td_status td_quantize_ints_as(td_tensor *x, const td_tensor *like, td_tensor **out) TD_MUST_CHECK;

/* Are the parameters of two quantized tensors the same, and the dtypes? */
bool td_quantized_agree(const td_tensor *a, const td_tensor *b);

/* ---- products with packed weights ---- */

/* EDTYPE or ESHAPE unless a bias (NULL: none) has one float32 for each of so many features. */
td_status td_quantized_check_bias(const td_tensor *bias, int64_t columns) TD_MUST_CHECK;
/* What is known of packed weights that x is to be multiplied by. EDEVICE where they lie on
 * different devices. */
td_status td_quantized_check_packed(const td_tensor *x, const td_tensor *packed,
                                    td_qweight *weight) TD_MUST_CHECK;

/* ---- for td_op.forms ---- */

/* Where a row has no form: views, and what is written as a formula. All else is refused, with the
 * dtypes of the tensors. */
td_status td_quantized_otherwise(td_call *call);
/* Operators that put elements elsewhere and leave them as they are. */
td_status td_quantized_move(td_call *call);
/* Operators that only call others. */
td_status td_quantized_composite(td_call *call);
td_status td_quantized_clone(td_call *call); /* clone, contiguous */
td_status td_quantized_to(td_call *call);
td_status td_quantized_copy(td_call *call);
td_status td_quantized_cat(td_call *call);
td_status td_quantized_equal(td_call *call);
/* Operators whose results are means of elements, or other sums with weights: worked out on floats
 * and rounded; the parameters stay. */
td_status td_quantized_average(td_call *call);
td_status td_quantized_relu(td_call *call);
/* Functions of single elements, worked out on the floats and rounded: the parameters stay, or are
 * PyTorch's for results between 0 and 1, or -1 and 1. */
td_status td_quantized_pointwise(td_call *call);
td_status td_quantized_clamp(td_call *call); /* relu6, hardtanh, clamp */
td_status td_quantized_unit(td_call *call);
td_status td_quantized_signed_unit(td_call *call);

#endif
