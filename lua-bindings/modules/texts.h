/* texts.h: a list of texts as two tensors, as Arrow has it: their bytes one behind the other, and
 * where each begins. A million of them are two blocks of memory, which workers share, and become
 * Lua's strings when they are asked for. */
#ifndef TIDE_LUA_MODULES_TEXTS_H
#define TIDE_LUA_MODULES_TEXTS_H

#include "lua-bindings/state/state.h"

/* Views of tensors that the stack keeps: n texts, offsets[k] to offsets[k + 1]. */
typedef struct tide_texts {
    const char *bytes;
    const int64_t *offsets;
    int64_t n;
} tide_texts;

/* Those of the tensors at two stack indices, every offset checked against the bytes; pushes what
 * keeps the tensors. */
tide_texts tide_check_texts(lua_State *L, int bytes, int offsets);

/* Push the tensors of n texts of so many bytes in all, which are to be filled. */
void tide_push_texts(lua_State *L, int64_t n, int64_t size, char **bytes, int64_t **offsets);

#endif
