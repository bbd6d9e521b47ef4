/* source.h: the names that inputs bear as chunks, and the text behind the name of a chunk. */
#ifndef TIDE_SESSION_SOURCE_H
#define TIDE_SESSION_SOURCE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* Chunk name of what came by standard input. */
#define SOURCE_STDIN "=stdin"

/* Writes the chunk name of an input by its number: "=In[3]"; 0: it has none. */
void source_name(int number, char *name, size_t size);
/* Pushes the text behind "=In[3]", "=stdin" or "@file.lua", or returns false. May raise (memory).
 */
bool source_push(lua_State *L, const char *chunkname);
/* Lets tide._source find the same. */
void source_install(lua_State *L);
/* Pushes a line, indented, and below it a caret under its byte `at`, if that is within it or at its
 * end; of a long line what is around the caret. */
void source_push_line(lua_State *L, const char *line, size_t len, size_t at);

#endif
