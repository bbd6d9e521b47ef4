/* embedded.h: Lua modules and texts that a binary carries (cmake/embed.cmake): how they are found,
 * the environment that they run in, and how they are loaded, for the bindings' own and a front
 * end's. */
#ifndef TIDE_MODULES_EMBEDDED_H
#define TIDE_MODULES_EMBEDDED_H

#include "cmake/embedded.h"

#include <lua.h>

/* Where the registry has the function by which a front end tells the text of its own chunks. */
#define TIDE_SOURCE_KEY "tide.source"

/* The bindings' own: lua-bindings/lua. */
extern const tide_embedded tide_embedded_tide_lua[];

/* The file of that name, or NULL. */
const tide_embedded *tide_embedded_find(const tide_embedded *files, const char *name);

/* Copies the fields of the table on top into the one at `to` (no negative index); pops it. */
void tide_copy_fields(lua_State *L, int to);

/* Pushes an environment for modules: the globals as they are now, with copies of Lua's libraries,
 * since a script may take their names, or what is in them, for something else later. What scripts
 * call their own is in its _G. Modules write string.find(s, p), not s:find(p): methods of strings
 * are found in the script's table. */
void tide_push_environment(lua_State *L);

/* Pushes a module's chunk, which is called "=PREFIX.NAME", with the environment that lies under a
 * light key in the registry. */
void tide_push_chunk(lua_State *L, const tide_embedded *file, const char *prefix,
                     const void *environment);

#endif
