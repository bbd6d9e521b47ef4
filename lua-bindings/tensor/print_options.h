/* print_options.h: how tensors print in a Lua state. */
#ifndef TIDE_LUA_TENSOR_PRINT_OPTIONS_H
#define TIDE_LUA_TENSOR_PRINT_OPTIONS_H

#include <lua.h>
#include <stdint.h>

typedef enum tide_notation {
    TIDE_NOTATION_FITTING,
    TIDE_NOTATION_PLAIN,
    TIDE_NOTATION_SCIENTIFIC
} tide_notation;

typedef struct tide_print_options {
    tide_notation notation;  /* of floats: what fits the elements, or always the same */
    int precision;           /* digits after the point */
    int64_t threshold, edge; /* beyond so many elements the edges alone, of so many */
    int line_width;          /* 0: as wide as what shows it */
    int terminal;            /* columns of what shows it; 0: unknown */
} tide_print_options;

/* Those of the state; borrowed, NULL before tide was opened. */
tide_print_options *tide_print_options_of(lua_State *L);

#endif
