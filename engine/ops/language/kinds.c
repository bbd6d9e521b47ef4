/* kinds.c: kinds of values: which ones parameters take and results have, in words, and whether two
 * values are the same. */
#include "engine/ops/language/draft.h"

#include "engine/ops/language/schema.h"

#include <stdio.h>
#include <string.h>

uint32_t td_param_kinds(const td_param *param) {
    static const uint16_t kinds[] = {
        [TD_PARAM_TENSOR] = TD_KINDS_TENSOR,
        [TD_PARAM_TENSORS] = TD_KINDS_TENSORS,
        [TD_PARAM_NUMBER] = TD_KINDS_NUMBER,
        [TD_PARAM_TENSOR_OR_NUMBER] = TD_KINDS_TENSOR | TD_KINDS_NUMBER,
        [TD_PARAM_INT] = TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_FLOAT] = TD_KINDS_NUMBER,
        [TD_PARAM_BOOL] = TD_KIND_BIT(TD_KIND_BOOL),
        [TD_PARAM_DIM] = TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_DIMS] = TD_KIND_BIT(TD_KIND_INTS) | TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_INDEX] = TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_INTS] = TD_KIND_BIT(TD_KIND_INTS) | TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_DTYPE] = TD_KIND_BIT(TD_KIND_DTYPE),
        [TD_PARAM_DEVICE] = TD_KIND_BIT(TD_KIND_DEVICE),
        [TD_PARAM_STRING] = TD_KIND_BIT(TD_KIND_STRING),
        [TD_PARAM_GENERATOR] = TD_KIND_BIT(TD_KIND_GENERATOR),
        [TD_PARAM_NUMBERS] = TD_KIND_BIT(TD_KIND_FLOATS),
    };
    bool words = param->word && td_param_has_words(param);
    return kinds[param->type] | (param->optional ? TD_KIND_BIT(TD_KIND_NIL) : 0) |
           (param->truth ? TD_KIND_BIT(TD_KIND_BOOL) : 0) |
           (words ? TD_KIND_BIT(TD_KIND_STRING) : 0);
}

const char *td_kinds_text(uint32_t kinds, char *buffer) {
    static const struct {
        uint32_t kinds;
        const char *text;
    } rows[] = {
        {TD_KINDS_TENSOR, "a tensor"},
        {TD_KINDS_NUMBER, "a number"},
        {TD_KIND_BIT(TD_KIND_BOOL), "a bool"},
        {TD_KIND_BIT(TD_KIND_INTS) | TD_KIND_BIT(TD_KIND_FLOATS), "a list of numbers"},
        {TD_KINDS_TENSORS, "a list of tensors"},
        {TD_KIND_BIT(TD_KIND_DTYPE), "a dtype"},
        {TD_KIND_BIT(TD_KIND_DEVICE), "a device"},
        {TD_KIND_BIT(TD_KIND_STRING), "a string"},
        {TD_KIND_BIT(TD_KIND_GENERATOR), "a generator"},
        {TD_KINDS_SEVERAL, "several results"},
        {TD_KIND_BIT(TD_KIND_NIL), "nil"},
    };
    size_t n = 0;
    buffer[0] = 0;
    for (size_t k = 0; k < sizeof rows / sizeof *rows && n < TD_KINDS_TEXT; k++)
        if (kinds & rows[k].kinds)
            n += (size_t)snprintf(buffer + n, TD_KINDS_TEXT - n, "%s%s", n ? " or " : "",
                                  rows[k].text);
    return n ? buffer : "an error";
}

uint32_t td_result_kinds(const td_op *op) {
    switch ((td_result_type)op->result_type) {
    case TD_RESULT_TENSOR:
        return op->nresults > 1 ? TD_KINDS_SEVERAL : TD_KINDS_TENSOR;
    case TD_RESULT_TENSORS:
        return TD_KINDS_TENSORS;
    case TD_RESULT_NUMBER:
        return TD_KINDS_NUMBER;
    case TD_RESULT_BOOL:
        return TD_KIND_BIT(TD_KIND_BOOL);
    case TD_RESULT_NOTHING:
        break;
    }
    return 0;
}

int td_op_find_param(const td_op *op, const char *name) {
    for (int k = 0; k < op->nparams; k++)
        if (td_is_name(op->params[k].name, name))
            return k;
    return -1;
}

int td_op_find_result(const td_op *op, const char *name) {
    for (int k = 0; k < op->nresults; k++)
        if (td_is_name(op->result_names[k] ? op->result_names[k] : "out", name))
            return k;
    return -1;
}

static bool same_ints(td_value a, td_value b) {
    return a.n == b.n && !memcmp(a.ints, b.ints, sizeof(int64_t) * (size_t)a.n);
}

bool td_value_equal(td_value a, td_value b) {
    if (a.kind != b.kind) {
        bool numbers =
            TD_KIND_BIT(a.kind) & TD_KINDS_NUMBER && TD_KIND_BIT(b.kind) & TD_KINDS_NUMBER;
        return numbers && td_arg_double(a) == td_arg_double(b);
    }
    switch ((td_kind)a.kind) {
    case TD_KIND_NIL:
        return true;
    case TD_KIND_INT:
        return a.i == b.i;
    case TD_KIND_FLOAT:
        return a.f == b.f;
    case TD_KIND_BOOL:
        return a.b == b.b;
    case TD_KIND_STRING:
        return !strcmp(a.string, b.string);
    case TD_KIND_DTYPE:
        return a.dtype == b.dtype;
    case TD_KIND_DEVICE:
        return td_device_same(a.device, b.device);
    case TD_KIND_INTS:
        return same_ints(a, b);
    case TD_KIND_FLOATS:
        return a.n == b.n && !memcmp(a.floats, b.floats, sizeof(double) * (size_t)a.n);
    case TD_KIND_TENSOR: /* whose elements no expression compares */
    case TD_KIND_TENSORS:
    case TD_KIND_GENERATOR:
        break;
    }
    return false;
}
