/* index.c: indexing in all its forms: numbers, ranges, strings, masks, index tensors, lists of
 * these.
 *
 * A key is read element by element; each element that is no tensor makes a view at once (select,
 * slice, unsqueeze), tensors are gathered and applied last by `index` or `index_write_`. The
 * intermediate views lie on the Lua stack, so that an error on the way loses nothing.
 */
#include "lua-bindings/tensor/index.h"

#include "engine/core/number.h"
#include "engine/ops/index/index.h"
#include "engine/script/trace.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/call/values.h"
#include "lua-bindings/tensor/tensor.h"

#include <string.h>

typedef struct cursor {
    lua_State *L;
    td_tensor *x; /* what is left after the elements so far; a handle on the stack keeps it. Of a
                     call that is put off a stand-in */
    int at;       /* stack index of that handle; 0: it is the tensor indexed, */
    int held;     /* the stack index of whose handle this is */
    int dim;      /* where the next element applies */
    int left;     /* elements still to come that take a dim (for "...") */
    int given;    /* elements that take a dim, in all */
    int total;    /* dims of the tensor indexed */
    td_tensor *list[TD_MAX_DIMS]; /* index tensors by entry; NULL: all of that dim */
    int nlist;
    uint16_t from_one; /* bits of those that count as scripts do */
    bool advanced;
    size_t text_len; /* of the string that is being read */
} cursor;

/* The engine names the operator behind an index, which the user did not call. */
static int fail(lua_State *L) {
    const char *message = td_error_message(), *colon = strstr(message, ": ");
    bool named = colon && colon - message < 20 && !memchr(message, ' ', (size_t)(colon - message));
    return tide_error(L, "%s", named ? colon + 2 : message);
}

/* ---- the steps ---- */

#define STEP(c, name, ...)                                                                         \
    do {                                                                                           \
        tide_handle *handle_ = tide_push_handle((c)->L);                                           \
        (c)->x = tide_check_shape((c)->L, (c)->at ? (c)->at : (c)->held, "index");                 \
        const td_value args_[] = {__VA_ARGS__};                                                    \
        if (TD_UNLIKELY(tide_op_apply((c)->L, TD_OP(name), handle_,                                \
                                      (int)(sizeof args_ / sizeof *args_), args_)))                \
            fail((c)->L);                                                                          \
        (c)->at = lua_gettop((c)->L);                                                              \
        (c)->x = tide_check_shape((c)->L, (c)->at, "index");                                       \
    } while (0)

static void need_dim(cursor *c) {
    if (c->dim >= c->x->ndim)
        tide_error(c->L, "index: too many indices (%d) for a tensor of %d dims", c->given,
                   c->total);
}

static void pass_dim(cursor *c) {
    if (c->nlist < TD_MAX_DIMS)
        c->list[c->nlist++] = NULL;
    c->dim++;
    c->left--;
}

static void step_number(cursor *c, lua_Integer i) {
    need_dim(c);
    if (i == 0)
        tide_error(c->L, "index 0: indices count from 1 (PyTorch's 0 is 1)");
    STEP(c, select, TD_T(c->x), TD_I(c->dim), TD_I(i > 0 ? i - 1 : i));
    c->left--;
}

typedef struct range {
    bool has_first, has_last;
    lua_Integer first, last, step;
} range;

static void step_range(cursor *c, range r) {
    need_dim(c);
    int64_t size = c->x->sizes[c->dim];
    if ((r.has_first && r.first == 0) || (r.has_last && r.last == 0))
        tide_error(c->L,
                   "index: a range counts from 1: 0 is not in it (negative counts from the end)");
    if (r.step < 1)
        tide_error(c->L,
                   "index: the step of a range must be at least 1, got %I; x:flip(dim) reverses",
                   (LUAI_UACINT)r.step);
    int64_t start = !r.has_first ? 0 : r.first > 0 ? r.first - 1 : r.first + size;
    int64_t stop = !r.has_last ? size : r.last > 0 ? r.last : r.last + size + 1;
    start = start < 0 ? 0 : start > size ? size : start;
    stop = stop < start ? start : stop > size ? size : stop;
    if (start != 0 || stop != size || r.step != 1)
        STEP(c, slice, TD_T(c->x), TD_I(c->dim), TD_I(start), TD_I(stop), TD_I(r.step));
    pass_dim(c);
}

static void step_new_axis(cursor *c) {
    STEP(c, unsqueeze, TD_T(c->x), TD_I(c->dim));
    c->left++;
    pass_dim(c);
}

static void step_ellipsis(cursor *c) {
    for (int skip = c->x->ndim - c->dim - c->left; skip > 0; skip--) {
        pass_dim(c);
        c->left++;
    }
}

/* An integer without dims is a number, so that what it names is a view, which is written through.
 * It stays a tensor on a device, which is not waited for, and while a trace follows it, whose graph
 * would hold the number. */
static bool is_number(const td_tensor *index) {
    return index->ndim == 0 && td_dtype_is_int((td_dtype)index->dtype) &&
           td_tensor_device(index).type == TD_CPU &&
           !(td_modes_current.dispatcher && td_trace_follows(index));
}

static void step_tensor(cursor *c, int at) {
    td_tensor *index = tide_hold_tensor(c->L, at, "index");
    if (is_number(index)) {
        int64_t i;
        TIDE_CHECK(c->L, td_tensor_item_int(index, &i));
        step_number(c, i);
        return;
    }
    bool mask = index->dtype == TD_BOOL;
    int takes = mask ? index->ndim : 1;
    if (c->dim + takes > c->x->ndim)
        tide_error(c->L, "index: too many indices (%d) for a tensor of %d dims", c->given,
                   c->total);
    if (!mask && td_dtype_is_float((td_dtype)index->dtype))
        tide_error(c->L,
                   "index: an index tensor holds integers or bool, got %s (x:long() converts)",
                   td_dtype_name((td_dtype)index->dtype));
    bool from_one = !mask && td_tensor_device(index).type == TD_CPU;
    if (!mask && !from_one)
        index = tide_from_one_based(c->L, at, "index");
    if (c->nlist < TD_MAX_DIMS) {
        c->from_one |= (uint16_t)(from_one << c->nlist);
        c->list[c->nlist++] = index;
    }
    c->dim += takes;
    c->left -= takes;
    c->advanced = true;
}

/* ---- strings ---- */

static int fail_text(cursor *c, const char *text, const char *at) {
    char quoted[TIDE_QUOTED];
    return tide_error(c->L,
                      "index %s: a number, a range such as 1:3, nil or ... expected at position %I",
                      tide_quote(text, c->text_len, quoted), (LUAI_UACINT)(at - text) + 1);
}

static const char *skip_space(const char *s) {
    while (td_is_space(*s))
        s++;
    return s;
}

/* Behind a word that stands for a new axis; NULL: there is none. */
static const char *skip_new_axis(const char *at) {
    static const char *const words[] = {"nil", "None", "newaxis"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        const char *end = at + strlen(words[k]);
        if (!strncmp(at, words[k], strlen(words[k])) && !td_is_word(*end))
            return end;
    }
    return NULL;
}

static const char *read_number(const char *at, bool *has, lua_Integer *value) {
    const char *end;
    at = skip_space(at);
    *value = td_number_read_int(at, &end);
    *has = end != at;
    return skip_space(end);
}

static const char *read_element(cursor *c, const char *text, const char *at) {
    range r = {.step = 1};
    bool has_step = false;
    at = skip_space(at);
    if (!strncmp(at, "...", 3)) {
        step_ellipsis(c);
        return skip_space(at + 3);
    }
    const char *from = at, *behind = skip_new_axis(at);
    if (behind) {
        step_new_axis(c);
        return skip_space(behind);
    }
    at = read_number(at, &r.has_first, &r.first);
    if (*at != ':') {
        if (!r.has_first)
            fail_text(c, text, from);
        step_number(c, r.first);
        return at;
    }
    at = read_number(at + 1, &r.has_last, &r.last);
    if (*at == ':') {
        lua_Integer step;
        at = read_number(at + 1, &has_step, &step);
        if (has_step)
            r.step = step;
    }
    step_range(c, r);
    return at;
}

/* Elements of a string that take a dim of their own. */
static int count_text(const char *text) {
    int n = 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        at = skip_space(at);
        n += strncmp(at, "...", 3) && !skip_new_axis(at);
    }
    return n;
}

static void read_text(cursor *c, const char *text, size_t len) {
    const char *at = text;
    c->text_len = len;
    for (;;) {
        luaL_checkstack(c->L, 8, "index");
        at = read_element(c, text, at);
        if (at == text + len)
            return;
        if (*at != ',')
            fail_text(c, text, at);
        at++;
    }
}

bool tide_is_index_text(const char *text) {
    text = skip_space(text);
    return *text == ':' || *text == '-' || *text == '.' || td_is_digit(*text) ||
           skip_new_axis(text);
}

/* ---- tables ---- */

static lua_Integer range_bound(cursor *c, int table, int k) {
    int ok;
    lua_rawgeti(c->L, table, k);
    lua_Integer i = lua_tointegerx(c->L, -1, &ok);
    if (!ok)
        tide_error(c->L, "index: a range {first, last, step} holds integers");
    lua_pop(c->L, 1);
    return i;
}

static void read_range_table(cursor *c, int table) {
    range r = {.step = 1};
    lua_Integer n = tide_list_length(c->L, table, "index: a range {first, last, step}");
    if (n > 3)
        tide_error(c->L,
                   "index: a range is {first, last, step}, got %d numbers (an index tensor "
                   "picks single rows)",
                   (int)n);
    if (n >= 1) {
        r.has_first = r.has_last = true;
        r.first = r.last = range_bound(c, table, 1);
    }
    if (n >= 2)
        r.last = range_bound(c, table, 2);
    if (n == 3)
        r.step = range_bound(c, table, 3);
    step_range(c, r);
}

static const char new_axis = 0;

void tide_push_newaxis(lua_State *L) {
    lua_pushlightuserdata(L, (void *)&new_axis);
}

static bool is_new_axis(lua_State *L, int at) {
    return lua_islightuserdata(L, at) && lua_touserdata(L, at) == &new_axis;
}

/* Dims that an element takes; 0 for a new axis and "...". */
static int element_dims(lua_State *L, int at) {
    if (lua_type(L, at) == LUA_TSTRING)
        return count_text(lua_tostring(L, at));
    if (is_new_axis(L, at))
        return 0;
    td_tensor *x = lua_isuserdata(L, at) ? tide_to_shape(L, at) : NULL;
    return x && x->dtype == TD_BOOL ? x->ndim : 1;
}

static void read_table_element(cursor *c, int at) {
    lua_State *L = c->L;
    int ok;
    char text[80];
    switch (lua_type(L, at)) {
    case LUA_TNUMBER: {
        lua_Integer i = lua_tointegerx(L, at, &ok);
        if (!ok)
            tide_error(L, "index: %s has no integer representation",
                       tide_describe(L, at, text, sizeof text));
        step_number(c, i);
        return;
    }
    case LUA_TTABLE:
        read_range_table(c, at);
        return;
    case LUA_TSTRING:
        read_text(c, lua_tostring(L, at), lua_rawlen(L, at));
        return;
    default:
        break;
    }
    if (is_new_axis(L, at)) {
        step_new_axis(c);
        return;
    }
    if (!lua_isuserdata(L, at) || !tide_to_shape(L, at))
        tide_error(L,
                   "index: a number, a range {first, last}, a string, a mask or an index tensor "
                   "expected, got %s",
                   tide_describe(L, at, text, sizeof text));
    step_tensor(c, at);
}

static void check_holes(lua_State *L, int table) {
    int n = (int)lua_rawlen(L, table);
    for (int k = 1; k <= n; k++) {
        if (lua_rawgeti(L, table, k) == LUA_TNIL)
            tide_error(L,
                       "index: the list has a hole, its element %d is nil: a new axis is "
                       "tide.newaxis, or nil in a string, x[\":, nil, :\"]",
                       k);
        lua_pop(L, 1);
    }
}

static void read_table(cursor *c, int table) {
    lua_State *L = c->L;
    check_holes(L, table);
    int n = (int)tide_list_length(L, table, "index");
    for (int k = 1; k <= n; k++) {
        lua_rawgeti(L, table, k);
        c->given += element_dims(L, -1);
        lua_pop(L, 1);
    }
    c->left = c->given;
    for (int k = 1; k <= n; k++) {
        luaL_checkstack(L, 8, "index");
        lua_rawgeti(L, table, k);
        read_table_element(c, lua_gettop(L));
    }
}

/* ---- keys ---- */

static void read_key(cursor *c, lua_State *L) {
    luaL_checkstack(L, 8, "index");
    *c = (cursor){.L = L, .x = tide_check_shape(L, 1, "index"), .held = 1};
    if (((const tide_handle *)lua_touserdata(L, 1))->tensor) {
        c->x = tide_hold_tensor(L, 1, "index");
        c->held = lua_gettop(L);
    }
    c->total = c->x->ndim;
    if (lua_type(L, 2) == LUA_TTABLE) {
        read_table(c, 2);
    } else {
        c->given = c->left = element_dims(L, 2);
        read_table_element(c, 2);
    }
}

/* Is it ipairs' iterator that asks? It stops at the first nil, where others get an error. */
static bool asked_by_ipairs(lua_State *L) {
    lua_Debug ar;
    if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "f", &ar))
        return false;
    lua_CFunction caller = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return caller && caller == TIDE_STATE(L)->ipairs_iterator;
}

/* x[i]: the call that loops make. */
static int read_one(lua_State *L, lua_Integer i) {
    tide_handle *handle = tide_push_handle(L);
    td_tensor *x = tide_check_shape(L, 1, "index");
    if (x->ndim == 0)
        return tide_error(L, "index: too many indices (1) for a tensor of 0 dims");
    if (i == 0)
        return tide_error(L, "index 0: indices count from 1 (PyTorch's 0 is 1)");
    if (TD_UNLIKELY(i == x->sizes[0] + 1 && asked_by_ipairs(L)))
        return 0;
    const td_value args[] = {TD_T(x), TD_I(0), TD_I(i > 0 ? i - 1 : i)};
    if (TD_UNLIKELY(tide_op_apply(L, TD_OP(select), handle, 3, args)))
        return fail(L);
    return 1;
}

static td_value indices(const cursor *c) {
    td_value v = TD_TENSORS(c->nlist, (td_tensor *const *)c->list);
    v.from_one = c->from_one;
    return v;
}

int tide_index_read(lua_State *L) {
    cursor c;
    if (TD_LIKELY(lua_isinteger(L, 2)))
        return read_one(L, lua_tointeger(L, 2));
    read_key(&c, L);
    if (c.advanced) {
        STEP(&c, advanced_index, TD_T(c.x), indices(&c));
        tide_check_pressure(L, TIDE_STATE(L), c.x);
    } else if (!c.at) { /* x[{}], x[":"]: a view all the same */
        STEP(&c, slice, TD_T(c.x), TD_I(0), TD_NIL, TD_NIL, TD_I(1));
    }
    lua_pushvalue(L, c.at);
    return 1;
}

/* The value of an assignment as a tensor: itself, or a 0-dim one of a number (pushed). */
static td_tensor *value_tensor(lua_State *L, const td_tensor *like) {
    char text[80];
    if (lua_isuserdata(L, 3) && tide_to_tensor(L, 3))
        return tide_hold_tensor(L, 3, "index");
    bool number = lua_type(L, 3) == LUA_TNUMBER, flag = lua_type(L, 3) == LUA_TBOOLEAN;
    if (!number && !flag)
        tide_error(L, "index: a tensor, a number or a list of numbers can be assigned, got %s",
                   tide_describe(L, 3, text, sizeof text));
    tide_handle *handle = tide_push_handle(L);
    td_dtype dtype = like->layout == TD_QUANTIZED ? TD_F32 : (td_dtype)like->dtype;
    tide_check_holds(L, "index", dtype, 3);
    if (number && !lua_isinteger(L, 3))
        TIDE_CHECK(L, td_tensor_scalar(dtype, lua_tonumber(L, 3), &handle->tensor));
    else
        TIDE_CHECK(L, td_tensor_scalar_int(dtype, flag ? lua_toboolean(L, 3) : lua_tointeger(L, 3),
                                           &handle->tensor));
    return handle->tensor;
}

/* Leading dims of size 1 that the place has not are no dims of the value. */
static td_tensor *without_leading(lua_State *L, td_tensor *value, int keep) {
    int n = 0;
    while (value->ndim - n > keep && value->sizes[n] == 1)
        n++;
    if (n == 0)
        return value;
    tide_handle *handle = tide_push_handle(L);
    value = tide_hold_tensor(L, 3, "index");
    if (TD_APPLY(&handle->tensor, view, TD_T(value), TD_INTS(value->ndim - n, value->sizes + n)))
        fail(L);
    return handle->tensor;
}

/* A list of numbers stands for the tensor of x's dtype that it makes, of float32 where x is
 * quantized and rounds what it is given. */
static void read_list(lua_State *L) {
    if (!lua_istable(L, 3) || lua_getmetatable(L, 3))
        return;
    lua_getfield(L, 1, "new_tensor");
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 3);
    lua_newtable(L);
    if (tide_check_tensor(L, 1, "index")->layout == TD_QUANTIZED) {
        lua_pushliteral(L, "float32");
        lua_setfield(L, -2, "dtype");
    }
    lua_call(L, 3, 1);
    lua_replace(L, 3);
}

int tide_index_write(lua_State *L) {
    cursor c;
    tide_settle(L, TIDE_STATE(L));
    read_list(L);
    read_key(&c, L);
    tide_settle(L, TIDE_STATE(L)); /* the steps, too */
    c.x = tide_check_tensor(L, c.at ? c.at : c.held, "index");
    luaL_checkstack(L, 8, "index");
    td_tensor *value = without_leading(L, value_tensor(L, c.x), c.advanced ? 0 : c.x->ndim);
    td_status status = c.advanced ? td_index_put(c.x, indices(&c), value, false)
                                  : TD_APPLY_INPLACE(copy_, TD_T(c.x), TD_T(value));
    return status ? fail(L) : 0;
}
