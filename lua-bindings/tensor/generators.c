/* generators.c: tide.Generator, and the default generator's seed and state. A state is a uint8
 * tensor: the seed and the next free counter, bytes as the machine has them. */
#include "engine/core/random.h"
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"

#include <string.h>
#include <sys/random.h>

/* NULL where the function is not a generator's method: the default generator. */
static td_generator *read_generator(lua_State *L, tide_frame *f) {
    tide_read_call(L, f);
    bool method = f->op->nparams && f->args[0].kind == TD_KIND_GENERATOR;
    return method ? f->args[0].generator : NULL;
}

static int new_generator(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_generator *g = lua_newuserdatauv(L, sizeof *g, 0);
    *g = (td_generator){.seed = td_is_nil(f.args[0]) ? td_initial_seed() : (uint64_t)f.args[0].i};
    luaL_setmetatable(L, "tide.Generator");
    return 1;
}

static int manual_seed(lua_State *L) {
    tide_frame f;
    td_generator *g = read_generator(L, &f);
    td_generator_set(g, (td_generator){.seed = (uint64_t)f.args[g ? 1 : 0].i});
    lua_settop(L, 1);
    return g ? 1 : 0;
}

static int initial_seed(lua_State *L) {
    tide_frame f;
    lua_pushinteger(L, (lua_Integer)td_generator_get(read_generator(L, &f)).seed);
    return 1;
}

/* A seed that nobody knows beforehand. */
static int seed(lua_State *L) {
    tide_frame f;
    td_generator state = {.seed = 0}, *g = read_generator(L, &f);
    if (getrandom(&state.seed, sizeof state.seed, 0) != (ssize_t)sizeof state.seed)
        return tide_error(L, "seed: the system has no random numbers to give");
    state.seed >>= 1; /* an integer that Lua shows without a sign */
    td_generator_set(g, state);
    lua_pushinteger(L, (lua_Integer)state.seed);
    return 1;
}

static int get_state(lua_State *L) {
    tide_frame f;
    td_generator state = td_generator_get(read_generator(L, &f));
    const int64_t size = sizeof state;
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &handle->tensor));
    memcpy(handle->tensor->data, &state, sizeof state);
    return 1;
}

static int set_state(lua_State *L) {
    tide_frame f;
    td_generator state, *g = read_generator(L, &f);
    tide_load_tensors(L, &f);
    const td_tensor *x = f.args[g ? 1 : 0].tensor;
    if (x->dtype != TD_U8 || x->layout != TD_STRIDED || x->numel != (int64_t)sizeof state ||
        !x->contiguous || td_tensor_device(x).type != TD_CPU)
        return tide_error(L,
                          "%s: a state is a uint8 tensor of %d elements on the CPU, as %s gives it",
                          f.name, (int)sizeof state, g ? "get_state" : "get_rng_state");
    memcpy(&state, x->data, sizeof state);
    td_generator_set(g, state);
    lua_settop(L, 1);
    return g ? 1 : 0;
}

static void make_metatable(lua_State *L) {
    static const tide_function methods[] = {
        {"manual_seed(generator g, int seed) -> Generator", "Start the generator anew.",
         manual_seed},
        {"initial_seed(generator g) -> int", "The generator's seed.", initial_seed},
        {"seed(generator g) -> int", "Start the generator anew from a seed of the system's.", seed},
        {"get_state(generator g) -> Tensor", "What the generator has come to.", get_state},
        {"set_state(generator g, Tensor state) -> Generator", "Go on from what get_state gave.",
         set_state},
        {NULL, NULL, NULL}};
    luaL_newmetatable(L, "tide.Generator");
    lua_newtable(L);
    tide_declare(L, methods);
    lua_pushliteral(L, "cpu");
    lua_setfield(L, -2, "device");
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "tide.Generator");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

void tide_open_generators(lua_State *L) {
    static const tide_function functions[] = {
        {"manual_seed(int seed)",
         "Start the default random generator anew (math.random has its own: math.randomseed).",
         manual_seed},
        {"initial_seed() -> int", "The default generator's seed.", initial_seed},
        {"seed() -> int", "Start the default generator anew from a seed of the system's.", seed},
        {"get_rng_state() -> Tensor", "What the default generator has come to.", get_state},
        {"set_rng_state(Tensor state)", "Go on from what get_rng_state gave.", set_state},
        {"Generator(int? seed=nil) -> Generator",
         "Random numbers of one's own: tide.rand(3, {generator = g}); g:manual_seed(seed).",
         new_generator},
        {NULL, NULL, NULL}};
    tide_declare(L, functions);
    make_metatable(L);
}
