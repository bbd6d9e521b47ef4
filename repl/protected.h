/* protected.h: a function of C called by texts, so that nothing that allocates stands outside. */
#ifndef TIDE_PROTECTED_H
#define TIDE_PROTECTED_H

#include <lua.h>

/* Calls body with n texts (NULL: nil) as its arguments, for one result, which is pushed; returns
 * NULL. Or returns the message of what it raised, which is pushed instead. Nothing is raised. */
const char *protected_call(lua_State *L, lua_CFunction body, int n, const char *const *texts);

#endif
