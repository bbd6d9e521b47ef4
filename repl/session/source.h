/* source.h: the names that inputs bear as chunks, and the text behind the name of a chunk. */
#ifndef TIDE_SESSION_SOURCE_H
#define TIDE_SESSION_SOURCE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes the chunk name of an input by its number: "=In[3]"; 0: it has none. */
void source_name(int number, char *name, size_t size);
/* Pushes the text behind "=In[3]" or "@file.lua", or returns false. May raise (memory). */
bool source_push(lua_State *L, const char *chunkname);

#endif
