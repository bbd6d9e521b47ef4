/* remember.h: what a session remembers of its inputs for the person: In[n], Out[n], _ and __. */
#ifndef TIDE_SESSION_REMEMBER_H
#define TIDE_SESSION_REMEMBER_H

#include <lua.h>
#include <stddef.h>

/* Out[n] is kept for so many inputs, since values hold memory. */
#define REMEMBER_VALUES 100

/* In[number] = code. The tables are made with the first input. May raise (memory). */
void remember_input(lua_State *L, int number, const char *code, size_t len);
/* Out[number] = _ = the value on top, __ what _ was. Pops it. */
void remember_value(lua_State *L, int number);

/* (): the session's own tables of inputs and of values, whatever In and Out are now. */
int remember_tables(lua_State *L);

#endif
