/* optim.c: a step of an optimizer over the parameters of a group that are alike: those with a plain
 * gradient and a whole state that were stepped equally often. They are gathered anew each time,
 * since parameters, gradients and states are the script's to change. First steps and sparse
 * gradients are none of this file's (lua/optim.lua). */
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"

#include "engine/autograd/autograd.h"

#include <string.h>

enum { MOST_STATES = 4, MOST_NUMBERS = 24 };

/* Where the arguments of _optim_step stand, and behind them the text "step": what is gathered is
 * borrowed, so nothing may allocate in Lua meanwhile. */
enum { CALL = 1, TEXT, NUMBERS, PARAMS, STATES, NAMES, STEP, CARRIES, CARRIED, CARRY, STEP_NAME };

typedef enum fate { HAS_NO_GRADIENT, TAKEN, LEFT, ODD } fate;

typedef struct gathering {
    const td_op *op;
    int nnumbers;
    double numbers[MOST_NUMBERS];
    int nstates;         /* tensors in a parameter's state */
    lua_Integer nparams; /* of the group */
    int n;               /* taken */
    bool keeps;          /* each has a table of state */
    td_tensor **lists[2 + MOST_STATES];
    char *fates;
} gathering;

/* The field of the table at the top whose name stands at `name` takes its place. */
static int get_field(lua_State *L, int name) {
    lua_pushvalue(L, name);
    return lua_rawget(L, -2);
}

/* Is the number at the top the one at `index`? 0 and -0, and NaNs, are what their bits say. */
static bool is_same_number(lua_State *L, int index) {
    double a = lua_tonumber(L, -1), b = lua_tonumber(L, index);
    return lua_type(L, -1) == LUA_TNUMBER && !memcmp(&a, &b, sizeof a);
}

/* The table of state at the top: is it that of a parameter that this step takes? */
static fate look_at_state(lua_State *L, gathering *g, int top) {
    if (!lua_isnil(L, STEP)) {
        get_field(L, STEP_NAME);
        if (!lua_isinteger(L, -1))
            return ODD;
        bool same = lua_tointeger(L, -1) == lua_tointeger(L, STEP);
        if (!lua_isnil(L, CARRIES)) {
            lua_settop(L, top);
            get_field(L, CARRIES);
            same &= is_same_number(L, CARRIED);
        }
        if (!same)
            return LEFT;
    }
    for (int j = 0; j < g->nstates; j++) {
        lua_rawgeti(L, NAMES, j + 1);
        lua_rawget(L, top);
        td_tensor *x = tide_to_tensor(L, -1);
        if (!x)
            return ODD;
        g->lists[2 + j][g->n] = x;
    }
    return TAKEN;
}

/* Parameter k (from 0) with its gradient and state as the next of the lists, if it is for them. */
static fate look_at(lua_State *L, gathering *g, lua_Integer k) {
    lua_rawgeti(L, PARAMS, k + 1);
    td_tensor *p = tide_to_tensor(L, -1), *grad = p ? td_get_grad(p) : NULL;
    if (!grad)
        return p ? HAS_NO_GRADIENT : ODD;
    if (grad->layout != TD_STRIDED)
        return ODD;
    g->lists[0][g->n] = p;
    g->lists[1][g->n] = grad;
    if (!g->keeps)
        return TAKEN;
    return lua_rawget(L, STATES) == LUA_TTABLE ? look_at_state(L, g, lua_gettop(L)) : ODD;
}

/* False where a parameter is none of this file's. Allocates nothing in Lua. */
static bool gather(lua_State *L, gathering *g) {
    int top = lua_gettop(L);
    g->n = 0;
    for (lua_Integer k = 0; k < g->nparams; k++) {
        fate found = look_at(L, g, k);
        lua_settop(L, top);
        if (found == ODD)
            return false;
        g->fates[k] = (char)found;
        g->n += found == TAKEN;
    }
    return true;
}

/* The call's numbers, and room for its lists in a userdata that is pushed. */
static void read_arguments(lua_State *L, gathering *g) {
    static const char *name = "step";
    for (int k = NUMBERS; k <= NAMES; k++)
        luaL_checktype(L, k, LUA_TTABLE);
    luaL_checktype(L, TEXT, LUA_TSTRING);
    if (!tide_is_operator_function(lua_tocfunction(L, CALL)))
        luaL_argerror(L, CALL, name);
    lua_settop(L, CARRY);
    lua_getupvalue(L, CALL, TIDE_UP_FIRST);
    g->op = lua_touserdata(L, -1);
    g->nnumbers = (int)lua_rawlen(L, NUMBERS);
    g->nstates = (int)lua_rawlen(L, NAMES);
    luaL_argcheck(L, g->op->result_type == TD_RESULT_NOTHING && g->op->nparams == 4 + MOST_STATES,
                  CALL, name);
    luaL_argcheck(L, g->nnumbers <= MOST_NUMBERS, NUMBERS, name);
    luaL_argcheck(L, g->nstates <= MOST_STATES, NAMES, name);
    for (int k = 0; k < g->nnumbers; k++) {
        lua_rawgeti(L, NUMBERS, k + 1);
        g->numbers[k] = lua_tonumber(L, -1);
        lua_settop(L, CARRY);
    }
    lua_pushstring(L, name);
    g->nparams = (lua_Integer)lua_rawlen(L, PARAMS);
    g->keeps = g->nstates > 0 || !lua_isnil(L, STEP);
    size_t n = (size_t)g->nparams, nlists = 2 + (size_t)g->nstates;
    td_tensor **room = lua_newuserdatauv(L, nlists * n * sizeof *room + n + 1, 0);
    for (size_t k = 0; k < nlists; k++)
        g->lists[k] = room + k * n;
    g->fates = (char *)(room + nlists * n);
}

/* What has changed in the states besides tensors: both fields are there already. */
static void note_step(lua_State *L, const gathering *g) {
    int top = lua_gettop(L);
    for (lua_Integer k = 0; k < g->nparams; k++) {
        if (g->fates[k] != TAKEN)
            continue;
        lua_rawgeti(L, PARAMS, k + 1);
        if (lua_rawget(L, STATES) == LUA_TTABLE) {
            lua_pushvalue(L, STEP_NAME);
            lua_pushinteger(L, lua_tointeger(L, STEP) + 1);
            lua_rawset(L, -3);
        }
        if (!lua_isnil(L, CARRIES) && lua_istable(L, -1)) {
            lua_pushvalue(L, CARRIES);
            lua_pushvalue(L, CARRY);
            lua_rawset(L, -3);
        }
        lua_settop(L, top);
    }
}

/* Push a list of the parameters that were left; nil when none was. */
static int push_left(lua_State *L, const gathering *g) {
    lua_Integer n = 0;
    lua_pushnil(L);
    for (lua_Integer k = 0; k < g->nparams; k++) {
        if (g->fates[k] != LEFT)
            continue;
        if (n == 0) {
            lua_newtable(L);
            lua_replace(L, -2);
        }
        lua_rawgeti(L, PARAMS, k + 1);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

static td_status run(const gathering *g, const char *text) {
    td_value args[TD_MAX_PARAMS] = {TD_STRING(text)};
    for (int k = 0; k < 2 + MOST_STATES; k++)
        args[1 + k] = k < 2 + g->nstates ? TD_TENSORS(g->n, g->lists[k]) : TD_NIL;
    args[3 + MOST_STATES] = TD_FLOATS(g->nnumbers, g->numbers);
    td_call call = {.op = g->op, .args = args};
    return g->n > 0 ? td_op_call(&call) : TD_OK;
}

/* _optim_step(call, text, numbers, params, states, names, step, carries, carried, carry): by the
 * operator behind `call`, step those of `params` that have a gradient and were stepped `step` times
 * (nil: nobody counts) with `carried` in the field `carries` (nil: there is none), and note `carry`
 * there. Returns true and those that were left; false, having done nothing, where some are none of
 * this file's. */
static int step_alike(lua_State *L) {
    gathering g;
    luaL_checkstack(L, 16, "step");
    read_arguments(L, &g);
    const char *text = lua_tostring(L, TEXT);
    bool ours = gather(L, &g);
    td_status status = ours ? run(&g, text) : TD_OK;
    if (TD_UNLIKELY(status == TD_ENOMEM)) {
        tide_free_memory(L, TIDE_STATE(L));
        ours = gather(L, &g);
        status = ours ? run(&g, text) : TD_OK;
    }
    if (TD_UNLIKELY(status))
        return tide_fail_operator(L, g.op, g.op->name);
    if (ours && !lua_isnil(L, STEP))
        note_step(L, &g);
    lua_pushboolean(L, ours);
    return ours ? 1 + push_left(L, &g) : 1;
}

/* Of the parameter at the top, for next_step. */
static int push_step(lua_State *L) {
    bool known = lua_rawget(L, 2) == LUA_TTABLE;
    if (known) {
        get_field(L, 4);
        known = lua_isinteger(L, -1);
    }
    if (!known) {
        lua_pushboolean(L, false);
        return 1;
    }
    if (lua_isnil(L, 3))
        return 1;
    lua_insert(L, -2);
    get_field(L, 3);
    lua_remove(L, -2);
    return 2;
}

/* _optim_next(params, states, carries): how often the first parameter that has a gradient was
 * stepped, and the number that it carries; false where its state can't say; nothing where no
 * parameter has a gradient. */
static int next_step(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 3);
    lua_pushliteral(L, "step");
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    for (lua_Integer k = 1; k <= n; k++) {
        lua_rawgeti(L, 1, k);
        td_tensor *p = tide_to_tensor(L, -1);
        if (p && td_get_grad(p))
            return push_step(L);
        lua_settop(L, 4);
    }
    return 0;
}

void tide_open_optim(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_optim_step", step_alike}, {"_optim_next", next_step}, {NULL, NULL}};
    tide_set_functions(L, functions);
}
