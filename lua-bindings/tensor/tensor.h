/* tensor.h: functions of the tensor class that its files share. */
#ifndef TIDE_LUA_TENSOR_TENSOR_H
#define TIDE_LUA_TENSOR_TENSOR_H

#include "lua-bindings/state/state.h"

/* Push the text that print shows: values as PyTorch's, then dtype, shape, device; a bare number for
 * a 0-dim tensor. Reads only the elements shown. */
void tide_push_tensor_text(lua_State *L, td_tensor *x);

/* One element as a Lua value: boolean, integer or float. */
void tide_push_element(lua_State *L, td_dtype dtype, const void *p);

/* Push a size or stride list: a table that prints as "(2, 3)". */
void tide_push_sizes(lua_State *L, int ndim, const int64_t *sizes);

int tide_backward(lua_State *L);

/* Set the methods of quantized tensors alone in the table at the top. */
void tide_declare_quantized(lua_State *L);

#endif
