/* values.c: one Lua value for one parameter of a schema: kinds, ranges, counting from 1, lists, and
 * what a message says of a value that does not fit. Which value goes to which parameter is args.c's
 * business. */
#include "lua-bindings/call/values.h"

#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

enum { EXPECTATION = 160 };

static char *range_text(const td_param *p, const char *what, char *text) {
    if (!p->ranged)
        snprintf(text, EXPECTATION, "%s", what);
    else if (p->high == INT64_MAX)
        snprintf(text, EXPECTATION, "%s from %lld on", what, (long long)p->low);
    else
        snprintf(text, EXPECTATION, "%s from %lld to %lld", what, (long long)p->low,
                 (long long)p->high);
    return text;
}

/* mean|sum|none as "mean", "sum" or "none"; "..." for those that find no room */
static const char *choices_text(const char *word, char *text) {
    size_t at = 0;
    text[0] = 0;
    while (*word) {
        int len = (int)strcspn(word, "|");
        bool last = !word[len], first = at == 0;
        if (at + (size_t)len + sizeof " or \"\", ..." > EXPECTATION) {
            snprintf(text + at, EXPECTATION - at, first ? "..." : ", ...");
            break;
        }
        at += (size_t)snprintf(text + at, EXPECTATION - at, "%s\"%.*s\"",
                               first  ? ""
                               : last ? " or "
                                      : ", ",
                               len, word);
        word += len + !last;
    }
    return text;
}

/* What may be a string too says which. */
static const char *with_words(const td_param *p, char *text) {
    char choices[EXPECTATION];
    size_t at = strlen(text);
    if (p->word)
        snprintf(text + at, EXPECTATION - at, ", or %s", choices_text(p->word, choices));
    return text;
}

static const char *expectation(const td_param *p, char *text) {
    static const char *const texts[] = {[TD_PARAM_TENSOR] = "a tensor",
                                        [TD_PARAM_TENSOR_OR_NUMBER] = "a tensor or a number",
                                        [TD_PARAM_BOOL] = "true or false",
                                        [TD_PARAM_DIM] = "a dim (an integer)",
                                        [TD_PARAM_DIMS] = "a dim or a list of dims",
                                        [TD_PARAM_INDEX] = "an index (an integer)",
                                        [TD_PARAM_DTYPE] = "a dtype such as tide.float32",
                                        [TD_PARAM_DEVICE] = "a device such as \"cpu\"",
                                        [TD_PARAM_STRING] = "a string",
                                        [TD_PARAM_GENERATOR] = "a tide.Generator",
                                        [TD_PARAM_ANY] = "a value",
                                        [TD_PARAM_TABLE] = "a table",
                                        [TD_PARAM_LIST] = "a list",
                                        [TD_PARAM_DATA] =
                                            "a number, a table of numbers or a tensor",
                                        [TD_PARAM_FUNCTION] = "a function"};
    const char *what;
    switch ((td_param_type)p->type) {
    case TD_PARAM_TENSORS:
        return p->alone ? "a tensor or a list of tensors" : "a list of tensors";
    case TD_PARAM_NUMBER:
    case TD_PARAM_FLOAT:
        return with_words(p, range_text(p, "a number", text));
    case TD_PARAM_INT:
        return range_text(p, "an integer", text);
    case TD_PARAM_INTS:
        what = p->length == 2 ? "one or two integers" : "an integer or a list of integers";
        return with_words(p, range_text(p, what, text));
    case TD_PARAM_NUMBERS:
        return "a number or a list of numbers";
    case TD_PARAM_STRING:
        return p->word ? choices_text(p->word, text) : texts[p->type];
    case TD_PARAM_OBJECT:
    case TD_PARAM_OBJECTS:
        snprintf(text, EXPECTATION, "a %s", p->word);
        return text;
    case TD_PARAM_TENSOR:
    case TD_PARAM_TENSOR_OR_NUMBER:
    case TD_PARAM_BOOL:
    case TD_PARAM_DIM:
    case TD_PARAM_DIMS:
    case TD_PARAM_INDEX:
    case TD_PARAM_DTYPE:
    case TD_PARAM_DEVICE:
    case TD_PARAM_GENERATOR:
    case TD_PARAM_ANY:
    case TD_PARAM_TABLE:
    case TD_PARAM_LIST:
    case TD_PARAM_DATA:
    case TD_PARAM_FUNCTION:
        break;
    }
    return texts[p->type];
}

/* "sum: argument 2 (dim)", "sum: option keepdim": what a message is about. */
static const char *place_text(const tide_frame *f, int param, char *text) {
    const td_param *p = &f->op->params[param];
    if (p->option)
        snprintf(text, EXPECTATION, "%s: option %s", f->name, p->name);
    else
        snprintf(text, EXPECTATION, "%s: argument %d (%s)", f->name, param + 1, p->name);
    return text;
}

/* A tensor as the frame wants it. */
static td_tensor *to_operand(lua_State *L, const tide_frame *f, int index) {
    return f->defers ? tide_to_shape(L, index) : tide_to_tensor(L, index);
}

/* Is it what split, chunk and their like give? How many tensors it has, or 0. */
static lua_Integer count_tensors(lua_State *L, int index) {
    if (!lua_istable(L, index) || !lua_rawlen(L, index))
        return 0;
    bool is = lua_rawgeti(L, index, 1) == LUA_TUSERDATA && tide_to_shape(L, -1);
    lua_pop(L, 1);
    return is ? (lua_Integer)lua_rawlen(L, index) : 0;
}

const char *tide_class_hint(lua_State *L, const char *word, int index) {
    if (strcmp(word, "Module") != 0)
        return "";
    if (lua_isfunction(L, index))
        return ": take its module, such as nn.ReLU(), or call it in a forward of your own "
               "(?nn.Module)";
    index = lua_absindex(L, index);
    if (!lua_istable(L, index))
        return "";
    lua_pushliteral(L, "is_module_class");
    lua_rawget(L, index);
    bool class = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return class ? ": call the class, which makes a module" : "";
}

/* Of an object of another kind, in a list (`element` counts from 1) or by itself (0). */
static int fail_object(lua_State *L, const tide_frame *f, int param, int index, int element) {
    const char *word = f->op->params[param].word;
    char place[EXPECTATION], given[80];
    lua_pushstring(L, place_text(f, param, place));
    if (element)
        lua_pushfstring(L, "%s: element %d", lua_tostring(L, -1), element);
    return tide_error(L, "%s: expected a %s, got %s%s", lua_tostring(L, -1), word,
                      tide_describe(L, index, given, sizeof given),
                      tide_class_hint(L, word, index));
}

static int fail_type(lua_State *L, const tide_frame *f, int param, int index) {
    char place[EXPECTATION], expected[EXPECTATION], given[80];
    td_param_type type = (td_param_type)f->op->params[param].type;
    if (type == TD_PARAM_OBJECT)
        return fail_object(L, f, param, index, 0);
    if (type == TD_PARAM_TENSORS && lua_isuserdata(L, index) && tide_to_shape(L, index))
        return tide_error(L, "%s: expected %s, got a tensor: put it in a table, {a, b}",
                          place_text(f, param, place),
                          expectation(&f->op->params[param], expected));
    lua_Integer n =
        type == TD_PARAM_TENSOR || type == TD_PARAM_TENSOR_OR_NUMBER ? count_tensors(L, index) : 0;
    if (n)
        return tide_error(L,
                          "%s: expected %s, got a list of %d tensors: local a, b = "
                          "table.unpack(list)",
                          place_text(f, param, place), expectation(&f->op->params[param], expected),
                          (int)n);
    return tide_error(L, "%s: expected %s, got %s", place_text(f, param, place),
                      expectation(&f->op->params[param], expected),
                      tide_describe(L, index, given, sizeof given));
}

int tide_fail_missing(lua_State *L, const tide_frame *f, int param) {
    char place[EXPECTATION], expected[EXPECTATION];
    return tide_error(L, "%s: expected %s, got nothing", place_text(f, param, place),
                      expectation(&f->op->params[param], expected));
}

/* ---- tables ---- */

static int fail_key(lua_State *L, const char *what, lua_Integer n) {
    char text[80];
    bool hole = lua_isinteger(L, -2) && lua_tointeger(L, -2) > n;
    return tide_error(
        L, "%s: a table holds a list (1 to %I here) and options by name, got the key %s%s", what,
        (LUAI_UACINT)n, tide_describe(L, -2, text, sizeof text),
        hole ? ": the list has a hole" : "");
}

bool tide_scan_keys(lua_State *L, int table, lua_Integer n, const char *what) {
    lua_Integer elements = 0;
    bool named = false;
    luaL_checkstack(L, 4, NULL);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (TD_LIKELY(lua_isinteger(L, -2))) {
            tide_poll(L, elements + 1);
            if ((lua_Unsigned)lua_tointeger(L, -2) - 1 >= (lua_Unsigned)n)
                fail_key(L, what, n);
            elements++;
        } else if (lua_type(L, -2) == LUA_TSTRING) {
            named = true;
        } else {
            fail_key(L, what, n);
        }
    }
    if (elements != n)
        tide_error(L, "%s: the list has a hole: %I of its %I elements are nil", what,
                   (LUAI_UACINT)(n - elements), (LUAI_UACINT)n);
    return named;
}

lua_Integer tide_list_length(lua_State *L, int index, const char *what) {
    index = lua_absindex(L, index);
    lua_Integer n = (lua_Integer)lua_rawlen(L, index);
    if (tide_scan_keys(L, index, n, what)) {
        char given[80];
        if (luaL_getmetafield(L, index, "is_module_class") != LUA_TNIL)
            tide_error(L, "%s: expected a list, got %s: model:parameters() is one", what,
                       tide_describe(L, index, given, sizeof given));
        tide_error(L, "%s: a list has no options: they go into the table that comes last", what);
    }
    return n;
}

/* The length of a list that is an argument; the last table was looked through already. */
static lua_Integer list_length(lua_State *L, const tide_frame *f, int param, int index) {
    char place[EXPECTATION];
    if (index == f->list)
        return (lua_Integer)lua_rawlen(L, index);
    return tide_list_length(L, index, place_text(f, param, place));
}

/* ---- integers ---- */

/* From counting from 1 to counting from 0; negative counts from the end either way. */
static int64_t count_from_zero(lua_State *L, const tide_frame *f, int64_t i, const char *what) {
    if (i == 0)
        tide_error(L, "%s: %s 0: %s count from 1 (PyTorch's %s=0 is 1)", f->name, what,
                   strcmp(what, "dim") ? "indices" : "dims", what);
    return i > 0 ? i - 1 : i;
}

static void store_int(lua_State *L, tide_frame *f, int64_t i) {
    if (f->nints == TIDE_FRAME_INTS)
        tide_error(L, "%s: more than %d integers in lists", f->name, TIDE_FRAME_INTS);
    f->ints[f->nints++] = i;
}

/* A 0-dim tensor of an integer stands for it; reading it waits for its device. */
static bool is_integer_tensor(lua_State *L, int index, int64_t *i) {
    td_tensor *x = lua_isuserdata(L, index) ? tide_to_tensor(L, index) : NULL;
    if (!x || x->ndim || !td_dtype_is_int((td_dtype)x->dtype))
        return false;
    TIDE_CHECK(L, td_tensor_item_int(x, i));
    return true;
}

/* The integer at a stack index, as it is written. */
static int64_t to_integer(lua_State *L, const tide_frame *f, int param, int index) {
    const td_param *p = &f->op->params[param];
    char place[EXPECTATION], given[80];
    int ok = 0;
    int64_t i = lua_type(L, index) == LUA_TNUMBER ? lua_tointegerx(L, index, &ok) : 0;
    if (!ok && lua_isuserdata(L, index))
        ok = is_integer_tensor(L, index, &i);
    if (!ok && lua_type(L, index) == LUA_TNUMBER)
        tide_error(L, "%s: %s has no integer representation", place_text(f, param, place),
                   tide_describe(L, index, given, sizeof given));
    if (!ok || (p->ranged && (i < p->low || i > p->high)))
        fail_type(L, f, param, index);
    return i;
}

/* An element of an int[] or dim[] at a stack index. */
static void read_element(lua_State *L, tide_frame *f, int param, int index) {
    if (f->op->params[param].holes && lua_isboolean(L, index) && !lua_toboolean(L, index)) {
        store_int(L, f, TD_LEFT_OUT);
        return;
    }
    int64_t i = to_integer(L, f, param, index);
    bool dim = f->op->params[param].type == TD_PARAM_DIMS;
    store_int(L, f, dim ? count_from_zero(L, f, i, "dim") : i);
}

static void read_int_table(lua_State *L, tide_frame *f, int param, int index) {
    lua_Integer n = list_length(L, f, param, index);
    for (lua_Integer k = 1; k <= n; k++) {
        lua_rawgeti(L, index, k);
        read_element(L, f, param, -1);
        lua_pop(L, 1);
    }
}

/* int[] and dim[]: a table, one number, or (`last` > index) the rest of the positional arguments.
 */
static td_value read_ints(lua_State *L, tide_frame *f, int param, int index, int last) {
    const td_param *p = &f->op->params[param];
    int start = f->nints;
    char place[EXPECTATION];
    if (p->alone && last == index && lua_type(L, index) != LUA_TTABLE)
        return TD_I(to_integer(L, f, param, index));
    if (lua_type(L, index) == LUA_TTABLE && last > index)
        tide_error(L, "%s: a list, and nothing after it but options, or numbers, got %d arguments",
                   place_text(f, param, place), last);
    if (lua_type(L, index) == LUA_TTABLE)
        read_int_table(L, f, param, index);
    else
        for (int at = index; at <= last; at++)
            read_element(L, f, param, at);
    int n = f->nints - start;
    if (p->length && n == 1)
        for (; n < p->length; n++)
            store_int(L, f, f->ints[start]);
    if (p->length && n != p->length)
        tide_error(L, "%s: %d integers expected, got %d", place_text(f, param, place), p->length,
                   n);
    return TD_INTS(n, f->ints + start);
}

static td_value read_integer(lua_State *L, tide_frame *f, int param, int index) {
    int type = f->op->params[param].type;
    int64_t i = to_integer(L, f, param, index);
    return TD_I(type == TD_PARAM_INT     ? i
                : type == TD_PARAM_INDEX ? count_from_zero(L, f, i, "index")
                                         : count_from_zero(L, f, i, "dim"));
}

/* ---- tensors ---- */

td_tensor *tide_hold_tensor(lua_State *L, int index, const char *fname) {
    index = lua_absindex(L, index);
    tide_handle *handle = tide_push_handle(L);
    handle->tensor = td_retain(tide_check_tensor(L, index, fname));
    return handle->tensor;
}

td_tensor *tide_hold_elements(lua_State *L, int index, const char *fname) {
    index = lua_absindex(L, index);
    tide_handle *handle = tide_push_handle(L);
    if (td_tensor_alias(tide_check_tensor(L, index, fname), &handle->tensor))
        tide_error(L, "%s: %s", fname, td_error_message());
    if (TD_UNLIKELY(handle->tensor->layout != TD_STRIDED))
        tide_error(L, "%s: not for %s tensors: take x:%s() first", fname,
                   td_layout_of(handle->tensor)->noun, td_layout_of(handle->tensor)->convert);
    return handle->tensor;
}

td_tensor *tide_from_one_based(lua_State *L, int index, const char *fname) {
    index = lua_absindex(L, index);
    tide_handle *handle = tide_push_handle(L);
    if (TD_APPLY(&handle->tensor, from_one_based, TD_T(tide_check_tensor(L, index, fname))))
        tide_error(L, "%s: %s", fname, td_error_message());
    return handle->tensor;
}

/* Element k of the list at `table`, borrowed from its handle; NULL for false where entries may be
 * missing. */
static td_tensor *list_element(lua_State *L, const tide_frame *f, int param, int table,
                               lua_Integer k) {
    lua_rawgeti(L, table, k);
    td_tensor *x = lua_isuserdata(L, -1) ? to_operand(L, f, -1) : NULL;
    if (!x && !(f->op->params[param].holes && lua_isboolean(L, -1) && !lua_toboolean(L, -1))) {
        char place[EXPECTATION], given[80];
        tide_error(L, "%s: element %d: expected a tensor, got %s", place_text(f, param, place),
                   (int)k, tide_describe(L, -1, given, sizeof given));
    }
    lua_pop(L, 1);
    return x;
}

static void load_list(lua_State *L, tide_frame *f, int param) {
    int index = f->at[param];
    td_tensor **list = (td_tensor **)f->args[param].tensors;
    if (lua_isuserdata(L, index))
        list[0] = to_operand(L, f, index);
    else
        for (int k = 0; k < f->args[param].n; k++)
            list[k] = list_element(L, f, param, index, k + 1);
}

/* The arguments from `index` to `last` as a list, which stands for them from here on. */
static int gather_rest(lua_State *L, tide_frame *f, int param, int index, int last) {
    luaL_checkstack(L, 4, f->name);
    lua_createtable(L, last - index + 1, 0);
    for (int k = index; k <= last; k++) {
        lua_pushvalue(L, k);
        lua_rawseti(L, -2, k - index + 1);
    }
    return f->at[param] = lua_gettop(L);
}

/* Do kernels read what scripts count from 1 as it is? */
static bool reads_from_one(const td_op *op, const td_tensor *index) {
    return op->flags & TD_OP_ANY_BASE && td_device_real(td_tensor_device(index)).type == TD_CPU &&
           index->layout == TD_STRIDED;
}

/* The list with its indices counting from 0, but for those of *from_one; masks stay as they are. */
static int rebase_list(lua_State *L, tide_frame *f, int param, int index, uint16_t *from_one) {
    lua_Integer n = list_length(L, f, param, index);
    lua_createtable(L, (int)n, 0);
    int list = lua_gettop(L);
    for (lua_Integer k = 1; k <= n; k++) {
        td_tensor *x = list_element(L, f, param, index, k);
        bool counts = x && td_dtype_is_int((td_dtype)x->dtype);
        lua_rawgeti(L, index, k);
        if (counts && k <= TD_MAX_DIMS && reads_from_one(f->op, x))
            *from_one |= (uint16_t)(1 << (k - 1));
        else if (counts)
            tide_from_one_based(L, -1, f->name);
        lua_rawseti(L, list, k);
        lua_settop(L, list);
    }
    return f->at[param] = list;
}

static td_value read_tensors(lua_State *L, tide_frame *f, int param, int index, int last) {
    const td_param *p = &f->op->params[param];
    bool alone = p->alone && lua_isuserdata(L, index) && to_operand(L, f, index);
    uint16_t from_one = 0;
    if (p->rest && lua_isuserdata(L, index))
        index = gather_rest(L, f, param, index, last);
    else if (p->rest && last > index)
        fail_type(L, f, param, index);
    if (p->base && lua_type(L, index) == LUA_TTABLE)
        index = rebase_list(L, f, param, index, &from_one);
    if (!alone && lua_type(L, index) != LUA_TTABLE)
        fail_type(L, f, param, index);
    if (!alone && luaL_getmetafield(L, index, "__tensors") != LUA_TNIL) { /* names with them */
        lua_pushvalue(L, index);
        lua_call(L, 1, 1);
        index = f->at[param] = lua_gettop(L);
    }
    lua_Integer n = alone ? 1 : list_length(L, f, param, index);
    td_tensor **list = lua_newuserdatauv(L, (size_t)(n ? n : 1) * sizeof *list, 0);
    f->args[param] = TD_TENSORS((int32_t)n, list);
    f->args[param].from_one = from_one;
    load_list(L, f, param); /* again when all is read: here for the types */
    return f->args[param];
}

void tide_load_tensors(lua_State *L, tide_frame *f) {
    tide_enter_engine(TIDE_STATE(L));
    for (int k = 0; k < f->nout; k++) /* first: they may settle what stand-ins stand for */
        f->out[k] = tide_to_tensor(L, f->out_at + k);
    for (int k = 0; k < f->nbeside; k++)
        f->out[f->nout + k] = tide_to_tensor(L, f->beside_at);
    for (int k = 0; k < f->op->nparams; k++) {
        if (!f->at[k])
            continue;
        if (f->args[k].kind == TD_KIND_TENSOR)
            f->args[k].tensor = to_operand(L, f, f->at[k]);
        else if (f->args[k].kind == TD_KIND_TENSORS)
            load_list(L, f, k);
    }
}

/* Classes and indices as they count from 0. */
static td_tensor *from_one(lua_State *L, const tide_frame *f, int param, int index) {
    if (f->op->params[param].base != TD_BASE_CLASS)
        return tide_from_one_based(L, index, f->name);
    tide_handle *handle = tide_push_handle(L);
    td_status status = TD_APPLY(&handle->tensor, from_one_based, TD_T(tide_to_tensor(L, index)));
    if (status == TD_EINDEX)
        tide_error(L, "%s: %s", f->name, TD_CLASS_ZERO);
    TIDE_CHECK(L, status);
    return handle->tensor;
}

static td_value read_tensor(lua_State *L, tide_frame *f, int param, int index) {
    const td_param *p = &f->op->params[param];
    td_tensor *x = lua_type(L, index) == LUA_TUSERDATA ? to_operand(L, f, index) : NULL;
    if (!x)
        fail_type(L, f, param, index);
    if (TD_LIKELY(p->base == TD_BASE_NONE || td_dtype_is_float((td_dtype)x->dtype)))
        return TD_T(x);
    td_value v = TD_T(x);
    if (reads_from_one(f->op, x)) {
        v.from_one = 1;
    } else {
        v = TD_T(from_one(L, f, param, index));
        f->at[param] = lua_gettop(L);
        if (f->nout) {
            f->beside_at = index;
            f->nbeside = 1;
        }
    }
    return v;
}

/* ---- other kinds ---- */

/* A 0-dim tensor stands for its number. */
static bool number_of_tensor(lua_State *L, const td_param *p, int index, td_value *v) {
    td_tensor *x = lua_isuserdata(L, index) ? tide_to_tensor(L, index) : NULL;
    if (!x || x->ndim || x->dtype == TD_BOOL)
        return false;
    *v = p->type != TD_PARAM_FLOAT && td_dtype_is_int((td_dtype)x->dtype) ? TD_I(0) : TD_F(0);
    TIDE_CHECK(L, v->kind == TD_KIND_INT ? td_tensor_item_int(x, &v->i) : td_tensor_item(x, &v->f));
    return true;
}

static td_value read_number(lua_State *L, tide_frame *f, int param, int index) {
    const td_param *p = &f->op->params[param];
    double v = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : 0;
    td_value number;
    bool given = number_of_tensor(L, p, index, &number);
    if (given)
        v = td_arg_double(number);
    if ((lua_type(L, index) != LUA_TNUMBER && !given) ||
        (p->ranged && ((p->low != INT64_MIN && !(v >= (double)p->low)) ||
                       (p->high != INT64_MAX && !(v <= (double)p->high)))))
        fail_type(L, f, param, index);
    if (given)
        return number;
    return lua_isinteger(L, index) && p->type != TD_PARAM_FLOAT ? TD_I(lua_tointeger(L, index))
                                                                : TD_F(v);
}

/* number[]: a table or one number. */
static td_value read_numbers(lua_State *L, tide_frame *f, int param, int index) {
    char place[EXPECTATION];
    bool list = lua_type(L, index) == LUA_TTABLE;
    lua_Integer n = list ? list_length(L, f, param, index) : 1;
    if (n > TIDE_FRAME_FLOATS)
        tide_error(L, "%s: at most %d numbers, got %d", place_text(f, param, place),
                   TIDE_FRAME_FLOATS, (int)(n < INT32_MAX ? n : INT32_MAX));
    for (lua_Integer k = 0; k < n; k++) {
        if (list)
            lua_rawgeti(L, index, k + 1);
        else
            lua_pushvalue(L, index);
        f->floats[k] = td_arg_double(read_number(L, f, param, lua_gettop(L)));
        lua_pop(L, 1);
    }
    return TD_FLOATS((int32_t)n, f->floats);
}

/* The engine's strings end at their first NUL: one that has more behind it is none of them. */
static const char *read_text(lua_State *L, tide_frame *f, int param, int index) {
    char place[EXPECTATION], given[80];
    if (lua_type(L, index) != LUA_TSTRING)
        fail_type(L, f, param, index);
    const char *text = lua_tostring(L, index);
    if (strlen(text) != lua_rawlen(L, index))
        tide_error(L, "%s: %s holds a NUL byte", place_text(f, param, place),
                   tide_describe(L, index, given, sizeof given));
    return text;
}

static td_value read_device(lua_State *L, tide_frame *f, int param, int index) {
    td_device device;
    if (td_device_parse(read_text(L, f, param, index), &device))
        tide_error(L, "%s: %s", f->name, td_error_message());
    return TD_DEVICE(device);
}

static bool is_choice(const char *word, const char *text) {
    size_t len = strlen(text);
    for (; *word; word += strcspn(word, "|"), word += *word == '|')
        if (strcspn(word, "|") == len && !strncmp(word, text, len))
            return true;
    return false;
}

static td_value read_string(lua_State *L, tide_frame *f, int param, int index) {
    const char *word = f->op->params[param].word;
    const char *dtype = word ? tide_to_quantized(L, index) : NULL;
    const char *text = dtype ? dtype : read_text(L, f, param, index);
    if (word && !is_choice(word, text))
        fail_type(L, f, param, index);
    return TD_STRING(text);
}

/* Is the value's metatable that of the class WORD in the registry, or does it inherit from it
 * through __index? Userdata have their metatables there, under the name of the type. */
static bool is_object(lua_State *L, int index, const char *word) {
    int top = lua_gettop(L);
    bool found = false;
    luaL_checkstack(L, 6, NULL);
    if (!lua_getmetatable(L, index))
        return false;
    lua_pushfstring(L, lua_isuserdata(L, index) ? "tide.%s" : TIDE_CLASS_KEY, word);
    lua_rawget(L, LUA_REGISTRYINDEX);
    for (int depth = 0; depth < 64 && !found; depth++) { /* metatable, class */
        found = lua_rawequal(L, -1, -2);
        if (found || !lua_getmetatable(L, -2))
            break;
        lua_pushliteral(L, "__index");
        if (lua_rawget(L, -2) != LUA_TTABLE)
            break;
        lua_replace(L, -4); /* the parent */
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    return found;
}

/* NAME[]: a list, or the rest of the positional arguments, which becomes one. */
static void read_objects(lua_State *L, tide_frame *f, int param, int index, int last) {
    const char *word = f->op->params[param].word;
    if (lua_type(L, index) != LUA_TTABLE || last > index || is_object(L, index, word) ||
        *tide_class_hint(L, word, index)) {
        lua_createtable(L, last - index + 1, 0);
        for (int k = index; k <= last; k++) {
            lua_pushvalue(L, k);
            lua_rawseti(L, -2, k - index + 1);
        }
        index = lua_gettop(L);
    }
    lua_Integer n = list_length(L, f, param, index);
    for (lua_Integer k = 1; k <= n; k++) {
        lua_rawgeti(L, index, k);
        if (!is_object(L, lua_gettop(L), word))
            fail_object(L, f, param, lua_gettop(L), (int)k);
        lua_pop(L, 1);
    }
    f->at[param] = index;
}

static bool is_callable(lua_State *L, int index) {
    if (lua_isfunction(L, index))
        return true;
    bool callable = luaL_getmetafield(L, index, "__call") != LUA_TNIL;
    if (callable)
        lua_pop(L, 1);
    return callable;
}

/* Kinds that engine and operators know nothing of: the value stays where it is. */
static td_value read_lua_value(lua_State *L, tide_frame *f, int param, int index, int last) {
    const td_param *p = &f->op->params[param];
    int type = lua_type(L, index);
    bool ok = true;
    if (p->type == TD_PARAM_TABLE || p->type == TD_PARAM_LIST)
        ok = type == LUA_TTABLE;
    else if (p->type == TD_PARAM_DATA)
        ok = type == LUA_TTABLE || type == LUA_TNUMBER || type == LUA_TBOOLEAN ||
             (type == LUA_TUSERDATA && to_operand(L, f, index));
    else if (p->type == TD_PARAM_FUNCTION)
        ok = is_callable(L, index);
    else if (p->type == TD_PARAM_OBJECT)
        ok = is_object(L, index, p->word);
    if (ok && p->type == TD_PARAM_LIST)
        list_length(L, f, param, index);
    else if (p->type == TD_PARAM_OBJECTS)
        read_objects(L, f, param, index, last);
    if (!ok)
        fail_type(L, f, param, index);
    return TD_NIL;
}

/* ---- one argument ---- */

/* Does it promote its operands by their categories, of which bool is one? */
static bool has_categories(const td_op *op) {
    return op->pointwise || (!op->run && !op->kernel);
}

td_value tide_read_value(lua_State *L, tide_frame *f, int param, int index, int last) {
    const td_param *p = &f->op->params[param];
    int type = lua_type(L, index);
    switch ((td_param_type)p->type) {
    case TD_PARAM_TENSOR:
        return read_tensor(L, f, param, index);
    case TD_PARAM_TENSOR_OR_NUMBER:
        if (type == LUA_TBOOLEAN)
            return has_categories(f->op) ? TD_B(lua_toboolean(L, index))
                                         : TD_I(lua_toboolean(L, index));
        return type == LUA_TNUMBER ? read_number(L, f, param, index)
                                   : read_tensor(L, f, param, index);
    case TD_PARAM_NUMBER:
        if (type == LUA_TBOOLEAN && (p->truth || f->op->pointwise))
            return TD_B(lua_toboolean(L, index));
        return p->word && type == LUA_TSTRING ? read_string(L, f, param, index)
                                              : read_number(L, f, param, index);
    case TD_PARAM_FLOAT:
        return read_number(L, f, param, index);
    case TD_PARAM_INT:
    case TD_PARAM_DIM:
    case TD_PARAM_INDEX:
        return read_integer(L, f, param, index);
    case TD_PARAM_INTS:
        if (p->word && type == LUA_TSTRING)
            return read_string(L, f, param, index);
        /* fall through */
    case TD_PARAM_DIMS:
        return read_ints(L, f, param, index, last);
    case TD_PARAM_NUMBERS:
        return read_numbers(L, f, param, index);
    case TD_PARAM_TENSORS:
        return read_tensors(L, f, param, index, last);
    case TD_PARAM_BOOL:
        if (type != LUA_TBOOLEAN)
            break;
        return TD_B(lua_toboolean(L, index));
    case TD_PARAM_DTYPE: {
        td_dtype d = tide_to_dtype(L, index);
        if (d == TD_DTYPE_NONE)
            break;
        return TD_DTYPE(d);
    }
    case TD_PARAM_DEVICE:
        return read_device(L, f, param, index);
    case TD_PARAM_STRING:
        return read_string(L, f, param, index);
    case TD_PARAM_GENERATOR: {
        td_generator *g = luaL_testudata(L, index, "tide.Generator");
        if (!g)
            break;
        return (td_value){.kind = TD_KIND_GENERATOR, .generator = g};
    }
    case TD_PARAM_ANY:
    case TD_PARAM_TABLE:
    case TD_PARAM_LIST:
    case TD_PARAM_DATA:
    case TD_PARAM_FUNCTION:
    case TD_PARAM_OBJECT:
    case TD_PARAM_OBJECTS:
        return read_lua_value(L, f, param, index, last);
    }
    fail_type(L, f, param, index);
    return TD_NIL;
}

void tide_check_holds(lua_State *L, const char *what, td_dtype dtype, int index) {
    char text[80];
    if (lua_type(L, index) != LUA_TNUMBER ||
        (lua_isinteger(L, index) ? td_dtype_holds_int(dtype, lua_tointeger(L, index))
                                 : td_dtype_holds(dtype, lua_tonumber(L, index))))
        return;
    tide_error(L, "%s: %s can't hold %s", what, td_dtype_name(dtype),
               tide_describe(L, index, text, sizeof text));
}

const char *tide_kind_name(td_kind kind) {
    static const char *const names[] = {
        [TD_KIND_NIL] = "nil",
        [TD_KIND_TENSOR] = "tensor",
        [TD_KIND_INT] = "int",
        [TD_KIND_FLOAT] = "float",
        [TD_KIND_BOOL] = "bool",
        [TD_KIND_INTS] = "ints",
        [TD_KIND_TENSORS] = "tensors",
        [TD_KIND_DTYPE] = "dtype",
        [TD_KIND_DEVICE] = "device",
        [TD_KIND_STRING] = "string",
        [TD_KIND_GENERATOR] = "generator",
        [TD_KIND_FLOATS] = "floats",
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "object";
}
