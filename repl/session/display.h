/* display.h: values as text and as bundles. */
#ifndef TIDE_SESSION_DISPLAY_H
#define TIDE_SESSION_DISPLAY_H

#include "repl/session/session.h"

#include <lua.h>

/* Pushes the text of the value at idx. Raises only what must pass (interrupts, memory). */
void display_push_plain(lua_State *L, int idx);
/* The bundle of n values from stack index `first` on. Raises as display_push_plain does. */
void display_bundle(lua_State *L, int first, int n, tide_bundle *bundle);
/* (value [, {id = "name", update = true}]): shows a value as an input's value is shown. With
 * `update` the display of that id is replaced (where the front end can). */
int display_show(lua_State *L);
/* (type, text): shows a text as one of that MIME type, and as itself where only text is shown. */
int display_show_text(lua_State *L);
/* tide.display and its kin; the tide table is on top. */
void display_install(lua_State *L);

#endif
