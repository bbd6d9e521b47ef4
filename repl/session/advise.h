/* advise.h: warnings about code that runs, but hardly as it was meant. */
#ifndef TIDE_SESSION_ADVISE_H
#define TIDE_SESSION_ADVISE_H

#include <lua.h>
#include <stddef.h>

/* Warns, once of each kind, of a tensor that is a condition or is compared with a number, of guards
 * that nothing holds, and of results and devices that are read as PyTorch's. Errors of its own are
 * none of the input's. */
void advise_input(lua_State *L, const char *code, size_t len);
/* The same of a script that is about to run, whatever of it can be told before: once a line. */
void advise_script(lua_State *L, const char *chunkname, const char *code, size_t len);
/* From now on an input that reads a global which is not there is told of one that is near. May
 * raise (memory). */
void advise_globals(lua_State *L);

#endif
