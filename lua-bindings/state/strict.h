/* strict.h: errors for names that the tide table and its modules do not have. */
#ifndef TIDE_LUA_STATE_STRICT_H
#define TIDE_LUA_STATE_STRICT_H

#include <lua.h>
#include <stdbool.h>

/* The module tide.NAME at idx, and the modules in it, refuse to be read or set by names that they
 * have not. Functions, tables and userdata may be added. */
void tide_seal_module(lua_State *L, int idx, const char *name);
/* Sets __newindex of the tide table's metatable, which is on top. */
void tide_set_newindex(lua_State *L);
/* Is it a name of Tide's own affairs, which may be asked for and be nil? Of names that begin with
 * an underscore those of PyTorch's lists of operators are not. */
bool tide_is_private(const char *name);
/* Raises for the name at index 2 that the table at index 1 has not; n more names that it might be
 * (at most 1024). */
int tide_fail_name(lua_State *L, const char *module, const char *const *more, int n);

/* What is said of names of PyTorch's (lua/help/pytorch.lua): of those that Tide calls otherwise; of
 * those that it has not; of any other one in a room of PyTorch's of which it has but some; of an
 * option. */
typedef enum tide_pytorch_words {
    TIDE_PYTORCH_NAMED,
    TIDE_PYTORCH_ABSENT,
    TIDE_PYTORCH_ELSEWHERE,
    TIDE_PYTORCH_OPTION
} tide_pytorch_words;

/* Pushes that of a path such as "utils.benchmark" or "Tensor.numpy"; false, and nothing pushed,
 * where there is nothing to say. */
bool tide_push_pytorch(lua_State *L, const char *path, tide_pytorch_words words);

#endif
