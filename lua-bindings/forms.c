/* forms.c: ways of calling operators that a schema can't say: one number where two may stand, a
 * list of two lists, several results where there is one. They bring the arguments into the schema's
 * form, or the result into the one asked for. */
#include "lua-bindings/forms.h"

#include "lua-bindings/args.h"

#include <string.h>

/* Is the option of this name true in the table that comes last? */
static bool asks_for(lua_State *L, const char *name) {
    if (!lua_istable(L, -1))
        return false;
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    bool asked = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return asked;
}

/* Column d of the places at a stack index, as a new handle; of a tensor without dims the first
 * place as often as there are rows. */
static void push_column(lua_State *L, int places, int d) {
    tide_handle *handle = tide_push_handle(L);
    td_tensor *x = tide_check_tensor(L, places, "nonzero");
    if (x->sizes[1] > 0)
        TIDE_CHECK(L, TD_APPLY(&handle->tensor, select, TD_T(x), TD_I(1), TD_I(d)));
    else
        TIDE_CHECK(L, TD_APPLY(&handle->tensor, ones, TD_INTS(1, (int64_t[]){x->sizes[0]}),
                               TD_DTYPE(TD_I64), TD_DEVICE(td_tensor_device(x))));
}

/* nonzero(x, {as_tuple = true}): a list of the places along each dim. */
static int call_nonzero(lua_State *L) {
    bool apart = asks_for(L, "as_tuple");
    int n = tide_call_operator(L);
    if (!apart)
        return n;
    int places = lua_gettop(L);
    int dims = (int)tide_check_tensor(L, places, "nonzero")->sizes[1];
    lua_createtable(L, dims ? dims : 1, 0);
    for (int d = 0; d < (dims ? dims : 1); d++) {
        push_column(L, places, d);
        lua_rawseti(L, -2, d + 1);
    }
    return 1;
}

/* where(condition): nonzero(condition, {as_tuple = true}). */
static int call_where(lua_State *L) {
    if (lua_gettop(L) != 1 || !lua_isuserdata(L, 1))
        return tide_call_operator(L);
    lua_pushlightuserdata(L, (void *)TD_OP(nonzero));
    tide_push_function(L, call_nonzero, 1);
    lua_insert(L, 1);
    lua_createtable(L, 0, 1);
    lua_pushboolean(L, true);
    lua_setfield(L, -2, "as_tuple");
    lua_call(L, 2, 1);
    return 1;
}

/* randint(high, size): from 0 on. */
static int call_randint(lua_State *L) {
    if (lua_istable(L, 2)) {
        lua_pushinteger(L, 0);
        lua_insert(L, 1);
    }
    return tide_call_operator(L);
}

/* tensordot(a, b, {{1, 2}, {2, 1}}): the dims of both. */
static int call_tensordot(lua_State *L) {
    if (lua_istable(L, 3) && lua_rawlen(L, 3) == 2) {
        lua_rawgeti(L, 3, 1);
        lua_rawgeti(L, 3, 2);
        if (lua_istable(L, -1) && lua_istable(L, -2)) {
            lua_insert(L, 4);
            lua_replace(L, 3);
        } else {
            lua_pop(L, 2);
        }
    }
    return tide_call_operator(L);
}

static const struct {
    const char *name;
    lua_CFunction call;
} forms[] = {{"nonzero", call_nonzero},
             {"where", call_where},
             {"randint", call_randint},
             {"tensordot", call_tensordot}};

lua_CFunction tide_form_of(const td_op *op) {
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (!strcmp(op->name, forms[k].name))
            return forms[k].call;
    return NULL;
}

bool tide_is_form(lua_CFunction call) {
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (forms[k].call == call)
            return true;
    return false;
}
