/* call_forms.h: operators that are called in more ways than their schemas say. */
#ifndef TIDE_LUA_CALL_CALL_FORMS_H
#define TIDE_LUA_CALL_CALL_FORMS_H

#include "engine/ops/op.h"

#include <lua.h>

/* The function that is bound to such an operator; NULL: the usual one. */
lua_CFunction tide_form_of(const td_op *op);
/* Is it one of them? */
bool tide_is_form(lua_CFunction call);

#endif
