/* aliases.c: the other names that operators have, all in one place. An alias is not an operator: it
 * has no row, no node and no event of its own; functions, methods, in-place forms and help know it.
 */
#include "engine/ops/op.h"

TD_ALIAS(absolute, abs);
TD_ALIAS(arccos, acos);
TD_ALIAS(arccosh, acosh);
TD_ALIAS(arcsin, asin);
TD_ALIAS(arcsinh, asinh);
TD_ALIAS(arctan, atan);
TD_ALIAS(arctan2, atan2);
TD_ALIAS(arctanh, atanh);
TD_ALIAS(clip, clamp);
TD_ALIAS(concat, cat);
TD_ALIAS(concatenate, cat);
TD_ALIAS(divide, div);
TD_ALIAS(fix, trunc);
TD_ALIAS(ger, outer);
TD_ALIAS(greater, gt);
TD_ALIAS(greater_equal, ge);
TD_ALIAS(less, lt);
TD_ALIAS(less_equal, le);
TD_ALIAS(moveaxis, movedim);
TD_ALIAS(multiply, mul);
TD_ALIAS(negative, neg);
TD_ALIAS(not_equal, ne);
TD_ALIAS(sgn, sign);
TD_ALIAS(subtract, sub);
TD_ALIAS(swapaxes, transpose);
TD_ALIAS(swapdims, transpose);
TD_ALIAS(true_divide, div);
