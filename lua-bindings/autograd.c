/* autograd.c: x:backward() and tide.autograd's C part. */
#include "lua-bindings/modules.h"
#include "lua-bindings/tensor.h"

#include <string.h>

typedef struct backward_options {
    td_backward_options engine;
    bool allow_unused;
    int gradients; /* stack index of grad_outputs; 0: none */
} backward_options;

static bool check_flag(lua_State *L, const char *fname, const char *name) {
    if (!lua_isboolean(L, -1))
        tide_error(L, "%s: option %s: expected true or false", fname, name);
    return lua_toboolean(L, -1);
}

static void read_options(lua_State *L, int index, const char *fname, bool grad_form,
                         backward_options *o) {
    static const char *const names[] = {"retain_graph", "create_graph", "gradient", "grad_outputs",
                                        "allow_unused"};
    if (lua_isnoneornil(L, index))
        return;
    luaL_checktype(L, index, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        if (!strcmp(name, "retain_graph")) {
            o->engine.retain_graph = check_flag(L, fname, name);
        } else if (!strcmp(name, "create_graph")) {
            o->engine.create_graph = check_flag(L, fname, name);
        } else if (!strcmp(name, "allow_unused") && grad_form) {
            o->allow_unused = check_flag(L, fname, name);
        } else if (!strcmp(name, grad_form ? "grad_outputs" : "gradient")) {
            lua_pushvalue(L, -1);
            lua_insert(L, index + 1); /* below the key: stays */
            o->gradients = index + 1;
        } else {
            const char *near = tide_nearest(name, names, 5);
            tide_error(L, near ? "%s: no option '%s': did you mean '%s'?" : "%s: no option '%s'",
                       fname, name, near);
        }
        lua_pop(L, 1);
    }
}

/* x:backward([gradient] [, {retain_graph, create_graph}]) */
int tide_backward(lua_State *L) {
    backward_options o = {0};
    td_tensor *x = tide_check_tensor(L, 1, "backward");
    int options = lua_istable(L, 2) ? 2 : 3;
    td_tensor *gradient =
        options == 3 && !lua_isnoneornil(L, 2) ? tide_check_tensor(L, 2, "backward") : NULL;
    lua_settop(L, options);
    read_options(L, options, "backward", false, &o);
    if (o.gradients)
        gradient = tide_check_tensor(L, o.gradients, "backward");
    TIDE_CHECK(L, td_backward(1, &x, gradient ? &gradient : NULL, o.engine));
    return 0;
}

/* Tensors of a list, or one tensor: borrowed pointers in a userdata on the stack. */
static td_tensor **read_tensors(lua_State *L, int index, const char *what, bool holes, int *n) {
    bool single = lua_isuserdata(L, index);
    if (!single && !lua_istable(L, index))
        tide_error(L, "grad: %s: a tensor or a list of tensors expected", what);
    *n = single ? 1 : (int)lua_rawlen(L, index);
    td_tensor **list = lua_newuserdatauv(L, sizeof *list * (size_t)(*n ? *n : 1), 0);
    for (int k = 0; k < *n; k++) {
        if (single)
            lua_pushvalue(L, index);
        else
            lua_rawgeti(L, index, k + 1);
        list[k] = lua_isuserdata(L, -1) ? tide_to_tensor(L, -1) : NULL;
        if (!list[k] && !(holes && !lua_toboolean(L, -1)))
            tide_error(L, "grad: %s: element %d is no tensor", what, k + 1);
        lua_pop(L, 1);
    }
    return list;
}

/* autograd.grad(outputs, inputs [, options]): a list, one gradient per input. */
static int autograd_grad(lua_State *L) {
    backward_options o = {0};
    int n, ninputs, ngradients = 0;
    lua_settop(L, 3);
    read_options(L, 3, "grad", true, &o);
    td_tensor **outputs = read_tensors(L, 1, "outputs", false, &n), **gradients = NULL;
    td_tensor **inputs = read_tensors(L, 2, "inputs", false, &ninputs);
    if (o.gradients) {
        gradients = read_tensors(L, o.gradients, "grad_outputs", true, &ngradients);
        if (ngradients != n)
            return tide_error(L, "grad: %d grad_outputs for %d outputs", ngradients, n);
    }
    td_tensor **results =
        lua_newuserdatauv(L, sizeof *results * (size_t)(ninputs ? ninputs : 1), 0);
    tide_handle **handles =
        lua_newuserdatauv(L, sizeof *handles * (size_t)(ninputs ? ninputs : 1), 0);
    lua_createtable(L, ninputs, 0);
    for (int k = 0; k < ninputs; k++) {
        handles[k] = tide_push_handle(L);
        lua_rawseti(L, -2, k + 1);
    }
    TIDE_CHECK(L, td_autograd_grad(n, outputs, gradients, ninputs, inputs, o.engine, o.allow_unused,
                                   results));
    for (int k = 0; k < ninputs; k++)
        handles[k]->tensor = results[k];
    for (int k = 0; k < ninputs; k++)
        if (!results[k]) { /* unused: no gradient */
            lua_pushboolean(L, 0);
            lua_rawseti(L, -2, k + 1);
        }
    return 1;
}

/* autograd.backward(tensors [, gradients [, options]]) */
static int autograd_backward(lua_State *L) {
    backward_options o = {0};
    int n, ngradients = 0;
    td_tensor **gradients = NULL;
    lua_settop(L, 3);
    read_options(L, 3, "backward", false, &o);
    td_tensor **outputs = read_tensors(L, 1, "tensors", false, &n);
    if (!lua_isnil(L, 2)) {
        gradients = read_tensors(L, 2, "gradients", true, &ngradients);
        if (ngradients != n)
            return tide_error(L, "backward: %d gradients for %d tensors", ngradients, n);
    }
    TIDE_CHECK(L, td_backward(n, outputs, gradients, o.engine));
    return 0;
}

void tide_open_autograd(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"grad", autograd_grad},
        {"backward", autograd_backward},
        {NULL, NULL},
    };
    lua_createtable(L, 0, 2);
    tide_set_functions(L, functions);
    lua_setfield(L, -2, "_autograd");
}
