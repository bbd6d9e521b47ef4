/* call_forms.c: ways of calling operators that a schema can't say: one number where two may stand,
 * a list of two lists, several results where there is one. They bring the arguments into the
 * schema's form, or the result into the one asked for. */
#include "lua-bindings/call/call_forms.h"

#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"

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
    if (apart && asks_for(L, "out"))
        tide_error(L, "nonzero: as_tuple gives a list: it takes no out");
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

/* Options dims = {{1, 2}, {2, 1}} go where the arguments stand; the table that holds them stays. */
static void unpack_dims(lua_State *L) {
    int options = lua_gettop(L);
    if (options != 3 || !lua_istable(L, 3) || lua_rawlen(L, 3))
        return;
    lua_getfield(L, 3, "dims");
    if (lua_istable(L, -1)) {
        lua_newtable(L);
        for (lua_pushnil(L); lua_next(L, 3);) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -4);
        }
        lua_pushnil(L);
        lua_setfield(L, -2, "dims");
        lua_remove(L, 3); /* a, b, dims, the other options */
    } else {
        lua_pop(L, 1);
    }
}

/* tensordot(a, b, {{1, 2}, {2, 1}}): the dims of both. */
static int call_tensordot(lua_State *L) {
    unpack_dims(L);
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

/* tensor_split(x, indices): places in a tensor of one dim. */
static int call_tensor_split(lua_State *L) {
    td_tensor *x = lua_isuserdata(L, 2) ? tide_to_tensor(L, 2) : NULL;
    if (!x || x->ndim != 1 || !td_dtype_is_int((td_dtype)x->dtype))
        return tide_call_operator(L);
    if (x->numel > TIDE_FRAME_INTS)
        return tide_error(L, "tensor_split: more than %d places", TIDE_FRAME_INTS);
    td_tensor *places = tide_hold_elements(L, 2, "tensor_split");
    lua_createtable(L, (int)places->numel, 0);
    for (int64_t k = 0; k < places->numel; k++) {
        td_tensor *place = NULL;
        int64_t i = 0;
        td_status status = TD_APPLY(&place, select, TD_T(places), TD_I(0), TD_I(k));
        if (status == TD_OK)
            status = td_tensor_item_int(place, &i);
        td_release(place);
        TIDE_CHECK(L, status);
        lua_pushinteger(L, i);
        lua_rawseti(L, -2, k + 1);
    }
    lua_replace(L, 2);
    lua_pop(L, 1);
    return tide_call_operator(L);
}

/* atleast_1d(a, b) and atleast_1d({a, b}): a list. */
static int call_atleast(lua_State *L) {
    int n = lua_gettop(L);
    bool list = n == 1 && lua_istable(L, 1);
    if (!list && n < 2)
        return tide_call_operator(L);
    if (list)
        n = (int)tide_list_length(L, 1, "atleast");
    lua_pushvalue(L, lua_upvalueindex(TIDE_UP_FIRST));
    tide_push_function(L, tide_call_operator, 1);
    int fn = lua_gettop(L);
    lua_createtable(L, n, 0);
    for (int k = 1; k <= n; k++) {
        lua_pushvalue(L, fn);
        if (list)
            lua_rawgeti(L, 1, k);
        else
            lua_pushvalue(L, k);
        lua_call(L, 1, 1);
        lua_rawseti(L, -2, k);
    }
    return 1;
}

/* Takes the name of a memory format at a stack index into the table of options that comes last. */
static void move_format(lua_State *L, int index) {
    int last = lua_gettop(L);
    lua_newtable(L);
    if (last > index && lua_istable(L, last)) {
        for (lua_pushnil(L); lua_next(L, last);) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, last + 1);
        }
        lua_remove(L, last);
    }
    lua_pushvalue(L, index);
    lua_setfield(L, -2, "memory_format");
    lua_remove(L, index);
}

/* Is a name that is no dtype's one of a memory format? Raises for one that is near to it. */
static bool is_format(lua_State *L, int index) {
    static const char *const names[] = {"channels_last",     "channels_last_3d", "contiguous",
                                        "contiguous_format", "preserve",         "preserve_format"};
    enum { N = sizeof names / sizeof *names };
    const char *name = lua_tostring(L, index);
    for (int k = 0; k < N; k++)
        if (!strcmp(name, names[k]))
            return k < 2 || !strchr(name, '_');
    const char *near = strlen(name) > 5 ? tide_nearest(name, names, N) : NULL;
    if (near)
        tide_error(L, "to: '%s' is no memory format: did you mean \"%s\"?", name, near);
    return false;
}

/* x:to("cuda"), x:to("cuda", dtype), x:to("channels_last") and x:to(other): a device, a memory
 * format or a tensor may stand where the dtype does. */
static int call_to(lua_State *L) {
    for (int k = lua_gettop(L); k > 1; k--)
        if (lua_type(L, k) == LUA_TSTRING && tide_to_dtype(L, k) == TD_DTYPE_NONE &&
            is_format(L, k))
            move_format(L, k);
    td_tensor *other = lua_isuserdata(L, 2) ? tide_to_shape(L, 2) : NULL;
    if (other) {
        tide_push_dtype_of(L, other);
        lua_replace(L, 2);
        lua_pushstring(L, td_device_name(td_device_real(td_tensor_device(other))));
        lua_insert(L, 3);
    } else if (lua_type(L, 2) == LUA_TSTRING && tide_to_dtype(L, 2) == TD_DTYPE_NONE) {
        if (lua_gettop(L) > 2 && tide_to_dtype(L, 3) != TD_DTYPE_NONE)
            lua_pushvalue(L, 3);
        else
            lua_pushnil(L);
        lua_insert(L, 2);
        if (!lua_isnil(L, 2))
            lua_remove(L, 4);
    }
    return tide_call_operator(L);
}

/* max(a, b) and min(a, b) of two tensors are other operators. */
static int call_extreme(lua_State *L) {
    const td_op *bound = lua_touserdata(L, lua_upvalueindex(TIDE_UP_FIRST)), *op = bound;
    if (lua_isuserdata(L, 2) && tide_to_shape(L, 2))
        op = !strcmp(op->name, "max") ? TD_OP(maximum) : TD_OP(minimum);
    return tide_call_as(L, op, bound->name);
}

/* polygamma(n, x) as PyTorch has it, x:polygamma(n) as a method. */
static int call_polygamma(lua_State *L) {
    if (lua_gettop(L) >= 2 && lua_isuserdata(L, 2) && lua_type(L, 1) == LUA_TNUMBER) {
        lua_pushvalue(L, 1);
        lua_remove(L, 1);
        lua_insert(L, 2);
    }
    return tide_call_operator(L);
}

/* Is the first argument a list of numbers, and are options all that follows? */
static bool is_size_alone(lua_State *L) {
    int n = lua_gettop(L);
    bool options = n == 1 || (n == 2 && lua_istable(L, 2) && lua_rawlen(L, 2) == 0);
    if (!options || !lua_istable(L, 1))
        return false;
    lua_rawgeti(L, 1, 1);
    bool number = lua_type(L, -1) == LUA_TNUMBER;
    lua_pop(L, 1);
    return number;
}

/* Insert zeros of a shape without elements at a stack index. */
static void insert_zeros(lua_State *L, int index, int ndim, const int64_t *sizes, td_value dtype) {
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, zeros, TD_INTS(ndim, sizes), dtype));
    lua_insert(L, index);
}

/* sparse_coo_tensor({2, 3}): without places. */
static int call_without_places(lua_State *L) {
    const int64_t none[2] = {(int64_t)lua_rawlen(L, 1), 0};
    insert_zeros(L, 1, 2, none, TD_DTYPE(TD_I64));
    insert_zeros(L, 2, 1, none + 1, TD_NIL);
    return tide_call_operator(L);
}

/* sparse_coo_tensor({{1, 2}, {2, 1}}, {0.5, 2}): the parts may be lists. */
static int call_sparse_coo_tensor(lua_State *L) {
    if (is_size_alone(L))
        return call_without_places(L);
    if (lua_gettop(L) >= 2 && lua_istable(L, 1)) {
        tide_make_tensor_at(L, 1, TD_NIL);
        if (tide_check_tensor(L, 1, "sparse_coo_tensor")->numel == 0) /* of no dtype that counts */
            tide_make_tensor_at(L, 1, TD_DTYPE(TD_I64));
    }
    if (lua_gettop(L) >= 2 && lua_istable(L, 2))
        tide_make_tensor_at(L, 2, TD_NIL);
    return tide_call_operator(L);
}

static const struct {
    const char *name;
    lua_CFunction call;
} forms[] = {{"to", call_to},
             {"max", call_extreme},
             {"min", call_extreme},
             {"polygamma", call_polygamma},
             {"nonzero", call_nonzero},
             {"where", call_where},
             {"randint", call_randint},
             {"tensor_split", call_tensor_split},
             {"atleast_1d", call_atleast},
             {"atleast_2d", call_atleast},
             {"atleast_3d", call_atleast},
             {"tensordot", call_tensordot},
             {"sparse_coo_tensor", call_sparse_coo_tensor}};

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
