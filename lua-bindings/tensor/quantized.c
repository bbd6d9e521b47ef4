/* quantized.c: methods of quantized tensors that are no operators: their parameters. Axes count
 * from 1. */
#include "engine/ops/quantized/quantized_tensor.h"

#include "lua-bindings/call/function.h"
#include "lua-bindings/tensor/tensor.h"

/* The parts of the quantized tensor that the running method is called with, which has parameters by
 * channel or has not. */
static const td_quantized *read_parts(lua_State *L, tide_frame *f, bool by_channel) {
    tide_read_call(L, f);
    tide_load_tensors(L, f);
    const td_tensor *x = f->args[0].tensor;
    const td_quantized *q = td_quantized_of(x);
    if (!q)
        tide_error(L, "%s: x is %s: a quantized tensor expected", f->name, td_tensor_dtype_name(x));
    if (by_channel != (q->scales != NULL))
        tide_error(L, "%s: x is %s, whose %s", f->name, td_quantized_scheme(q),
                   by_channel ? "parameters are q_scale and q_zero_point"
                              : "parameters are q_per_channel_scales, q_per_channel_zero_points "
                                "and q_per_channel_axis");
    return q;
}

static int q_scale(lua_State *L) {
    tide_frame f;
    lua_pushnumber(L, read_parts(L, &f, false)->scale);
    return 1;
}

static int q_zero_point(lua_State *L) {
    tide_frame f;
    lua_pushinteger(L, read_parts(L, &f, false)->zero_point);
    return 1;
}

static int push_parameters(lua_State *L, td_tensor *parameters) {
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, clone, TD_T(parameters)));
    return 1;
}

/* A new handle may run a finalizer, but the parts are held by the tensor, which lies on the stack,
 * and do not change. */
static int q_per_channel_scales(lua_State *L) {
    tide_frame f;
    return push_parameters(L, read_parts(L, &f, true)->scales);
}

static int q_per_channel_zero_points(lua_State *L) {
    tide_frame f;
    return push_parameters(L, read_parts(L, &f, true)->zero_points);
}

static int q_per_channel_axis(lua_State *L) {
    tide_frame f;
    lua_pushinteger(L, read_parts(L, &f, true)->axis + 1);
    return 1;
}

static int qscheme(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    const td_quantized *q = td_quantized_of(f.args[0].tensor);
    if (!q)
        return tide_error(L, "qscheme: x is %s: a quantized tensor expected",
                          td_tensor_dtype_name(f.args[0].tensor));
    lua_pushstring(L, td_quantized_scheme(q));
    return 1;
}

static const tide_function methods[] = {
    {"q_scale(Tensor x) -> number", "The scale of a tensor quantized as a whole.", q_scale},
    {"q_zero_point(Tensor x) -> int", "The integer that stands for 0 in it.", q_zero_point},
    {"q_per_channel_scales(Tensor x) -> Tensor",
     "The scales of a tensor quantized by channel, in float64.", q_per_channel_scales},
    {"q_per_channel_zero_points(Tensor x) -> Tensor",
     "The zero points of a tensor quantized by channel, in int64.", q_per_channel_zero_points},
    {"q_per_channel_axis(Tensor x) -> int",
     "The dim along which a tensor is quantized by channel; it counts from 1.", q_per_channel_axis},
    {"qscheme(Tensor x) -> str", "\"per_tensor_affine\" or \"per_channel_affine\".", qscheme},
    {NULL, NULL, NULL},
};

void tide_declare_quantized(lua_State *L) {
    tide_declare(L, methods);
}
