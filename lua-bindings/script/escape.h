/* escape.h: values that leave a graph while it is traced: a Lua number or boolean that was made of
 * a tensor is fixed in the graph, whatever the tensor is in a later call. */
#ifndef TIDE_LUA_SCRIPT_ESCAPE_H
#define TIDE_LUA_SCRIPT_ESCAPE_H

#include "lua-bindings/state/state.h"

typedef enum tide_escape {
    TIDE_ESCAPE_ELEMENTS, /* item, tolist, <: noted whoever reads them */
    TIDE_ESCAPE_SIZES     /* shape, size, #: noted where the script's own line reads them */
} tide_escape;

/* From here on notes go into the table at a stack index; nil: nowhere. */
void tide_set_notes(lua_State *L, int index);
/* Add {what, place} to the table of notes at a stack index, once. */
void tide_add_note(lua_State *L, int notes, const char *what, const char *source, int line);

/* For tide_escapes. */
void tide_note_escape(lua_State *L, int index, const char *what, tide_escape kind);

/* The running function is about to read something of the tensor at a stack index. May allocate. */
static inline void tide_escapes(lua_State *L, int index, const char *what, tide_escape kind) {
    if (TD_UNLIKELY(td_modes_current.dispatcher != NULL))
        tide_note_escape(L, index, what, kind);
}

#endif
