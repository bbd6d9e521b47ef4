/* modules.h: the parts that make up the `tide` table; each pushes or fills a table. */
#ifndef TIDE_LUA_MODULES_MODULES_H
#define TIDE_LUA_MODULES_MODULES_H

#include "engine/ops/op.h"

#include <lua.h>

/* Fill the tide table at the top of the stack. */
void tide_open_operators(lua_State *L);
void tide_set_operator(lua_State *L, const td_op *op); /* one of them */
void tide_open_library(lua_State *L);
void tide_open_dtypes(lua_State *L);
void tide_open_dtype_functions(lua_State *L);
void tide_open_creation(lua_State *L);
int tide_new_tensor(lua_State *L); /* the method x:new_tensor */
/* The numbers, or the tensor, at a stack index are replaced by a new tensor of them. */
void tide_make_tensor_at(lua_State *L, int index, td_value dtype);
void tide_open_modes(lua_State *L);
void tide_open_autograd(lua_State *L);
/* Fill the table at the top, of tide.autograd's C functions. */
void tide_open_autograd_modes(lua_State *L);
void tide_open_graph(lua_State *L);
void tide_open_custom(lua_State *L);
void tide_open_docs(lua_State *L);
void tide_open_system(lua_State *L);
void tide_open_sizes(lua_State *L);
void tide_open_printing(lua_State *L);
void tide_open_generators(lua_State *L);
void tide_open_csv_file(lua_State *L);
void tide_open_csv(lua_State *L);
void tide_open_csv_table(lua_State *L);
void tide_open_csv_write(lua_State *L);
void tide_open_bytes(lua_State *L);
void tide_open_texts(lua_State *L);
void tide_open_arrow(lua_State *L);
void tide_open_stream(lua_State *L);
void tide_open_npy(lua_State *L);
void tide_open_samples(lua_State *L);
void tide_open_npz(lua_State *L);
void tide_open_file(lua_State *L);
void tide_open_gguf(lua_State *L);
void tide_open_checkpoint(lua_State *L);
void tide_open_foreach(lua_State *L);
void tide_open_optim(lua_State *L);
void tide_open_profiler(lua_State *L);
void tide_open_stages(lua_State *L);
void tide_open_doctor(lua_State *L);
void tide_open_images(lua_State *L);
void tide_open_transforms(lua_State *L);
/* Of Lua's library, not of the table: collections and files that are read are recorded. */
void tide_open_watched(lua_State *L);
void tide_open_cuda(lua_State *L);
void tide_open_script_functions(lua_State *L);
struct tide_states;
void tide_open_workers(lua_State *L, const struct tide_states *states);

/* Fill the tensor metatable; `tide` is at the top of the stack and stays there. */
void tide_open_tensor(lua_State *L);
/* A method of an operator that a library has brought; `tide` is at that index. */
void tide_add_method(lua_State *L, int tide, const td_op *op);
#endif
