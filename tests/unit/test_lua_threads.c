/* test_lua_threads.c: tensors in Lua states: several at once, on several threads, closed with
 * tensors alive, made by others, out of memory in the middle of things. */
#include "engine/td.h"
#include "lua-bindings/state/state.h"
#include "lua-bindings/tide_lua.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>

static int64_t allocated(void) {
    return td_memory_allocated(TD_DEVICE_CPU);
}

static bool run(lua_State *L, const char *code) {
    bool ok = luaL_dostring(L, code) == LUA_OK;
    if (!ok)
        check_fail(__FILE__, __LINE__, "%s", lua_tostring(L, -1));
    lua_settop(L, 0);
    return ok;
}

TEST(closing_a_state_lets_go_of_its_tensors) {
    int64_t before = allocated();
    lua_State *L = tide_lua_new();
    REQUIRE(L != NULL);
    run(L, "local tide = require 'tide' kept = tide.ones(100000, {requires_grad = true})\n"
           "graph = (kept * 2):sum() co = coroutine.wrap(function(x) local y = x + 1 "
           "coroutine.yield(y) end) co(kept)");
    CHECK(allocated() > before);
    tide_lua_close(L);
    CHECK_INT(allocated(), before);
}

TEST(states_do_not_see_one_another) {
    int64_t before = allocated();
    lua_State *states[3];
    for (int k = 0; k < 3; k++) {
        states[k] = tide_lua_new();
        run(states[k], "tide = require 'tide' x = tide.ones(1000)");
    }
    for (int round = 0; round < 20; round++)
        for (int k = 0; k < 3; k++)
            run(states[k], "for i = 1, 200 do x = x + 1 end collectgarbage()");
    run(states[0], "assert(x[1]:item() == 4001)");
    tide_lua_close(states[1]);
    run(states[2], "assert(x[1000]:item() == 4001)");
    tide_lua_close(states[0]);
    tide_lua_close(states[2]);
    CHECK_INT(allocated(), before);
}

TEST(a_state_made_by_others_works_and_closes) {
    int64_t before = allocated();
    lua_State *L = luaL_newstate();
    REQUIRE(L != NULL);
    luaL_openlibs(L);
    luaL_requiref(L, "tide", luaopen_tide, 1);
    lua_settop(L, 0);
    run(L, "x = tide.ones(10000) for i = 1, 500 do x = x + 1 end assert(x[1]:item() == 501)");
    run(L, "assert(require('tide.nn') == tide.nn)");
    lua_close(L);
    CHECK_INT(allocated(), before);
}

/* ---- hooks and functions of several states ---- */

static td_tensor *handed;

/* Takes the tensor given to it out of the state, or brings it into one. */
static int hand(lua_State *L) {
    if (!lua_isnone(L, 1)) {
        handed = td_retain(tide_to_tensor(L, 1));
        return 0;
    }
    tide_push_handle(L)->tensor = td_retain(handed);
    return 1;
}

static lua_State *new_state(void) {
    lua_State *L = tide_lua_new();
    if (!L || !run(L, "tide = require 'tide'"))
        return NULL;
    tide_push_function(L, hand, 0);
    lua_setglobal(L, "hand");
    return L;
}

TEST(hooks_and_functions_may_outlive_their_state) {
    int64_t before = allocated();
    lua_State *L = new_state(), *other = new_state();
    REQUIRE(L && other);
    run(L, "local x = tide.ones(100, {requires_grad = true}) x:register_hook(function(g) return g "
           "end)\n"
           "local F = tide.autograd.Function {forward = function(ctx, v) ctx:save_for_backward(v) "
           "return v * 2 end, backward = function(ctx, g) return g end}\n"
           "y = tide.autograd.graph.saved_tensors_hooks(function(v) return v end, "
           "function(v) return v end, function() return F(x):exp():sum() end) hand(y)");
    run(other, "y = hand() local ok, message = pcall(y.backward, y, {retain_graph = true}) "
               "assert(not ok and message:find('another Lua state'), message)");
    tide_lua_close(L);
    run(other, "local ok, message = pcall(y.backward, y, {retain_graph = true}) "
               "assert(not ok and message:find('a Lua state that is closed'), message)");
    td_release(handed);
    tide_lua_close(other);
    CHECK_INT(allocated(), before);
}

static void *release_handed(void *unused) {
    (void)unused;
    td_release(handed);
    return NULL;
}

TEST(a_graph_with_hooks_may_die_on_another_thread) {
    int64_t before = allocated();
    lua_State *L = new_state();
    pthread_t thread;
    REQUIRE(L != NULL);
    for (int round = 0; round < 50; round++) {
        run(L, "local x = tide.ones(100, {requires_grad = true}) local y = x * 2 "
               "y:register_hook(function(g) return g end) hand(y)");
        run(L, "collectgarbage() collectgarbage()");
        REQUIRE(pthread_create(&thread, NULL, release_handed, NULL) == 0);
        run(L, "for i = 1, 20 do local x = tide.ones(1, {requires_grad = true}) * 2 "
               "local h = x:register_hook(print) h:remove() end");
        pthread_join(thread, NULL);
    }
    tide_lua_close(L);
    CHECK_INT(allocated(), before);
}

/* An allocator that gives out when told to. */
typedef struct budget {
    long left; /* allocations; below zero: no limit */
} budget;

static void *limited(void *ud, void *block, size_t old_size, size_t new_size) {
    budget *b = ud;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    if (b->left == 0 && (!block || new_size > old_size))
        return NULL;
    if (b->left > 0)
        b->left--;
    return realloc(block, new_size);
}

static int open_and_work(lua_State *L) {
    luaL_openlibs(L);
    luaL_requiref(L, "tide", luaopen_tide, 1);
    if (luaL_loadstring(L, "local x = tide.ones(50, 50)\n"
                           "local a, b = x:max(1)\n"
                           "local parts = x:split(7)\n"
                           "local y = tide.cat(parts) + x[{{1, 50}, 1}]\n"
                           "y:tolist()\n"
                           "local w = tide.ones(50, {requires_grad = true})\n"
                           "local F = tide.autograd.Function {forward = function(c, v)\n"
                           "c:save_for_backward(v) return v * 2 end,\n"
                           "backward = function(c, g) return g * c.saved_tensors[1] end}\n"
                           "local z = tide.utils.checkpoint(function(v) return F(v):sin() end, w)\n"
                           "z:register_hook(function(g) return g * z end)\n"
                           "z:sum():backward()\n"
                           "return tostring(y)"))
        return lua_error(L);
    lua_call(L, 0, 0);
    return 0;
}

TEST(running_out_of_lua_memory_loses_nothing) {
    int64_t before = allocated();
    int failures = 0;
    for (long left = 200;; left += left < 4000 ? 97 : 397) {
        budget b = {.left = -1};
        lua_State *L = lua_newstate(limited, &b);
        REQUIRE(L != NULL);
        lua_pushcfunction(L, open_and_work);
        b.left = left;
        int status = lua_pcall(L, 0, 0, 0);
        b.left = -1;
        failures += status != LUA_OK;
        lua_close(L);
        CHECK_INT(allocated(), before);
        if (status == LUA_OK || left > 100000)
            break;
    }
    CHECK(failures > 3);
}

static void *one_thread(void *ctx) {
    lua_State *L = tide_lua_new();
    (void)ctx;
    if (!L ||
        luaL_dostring(L, "tide = require 'tide' local x = tide.ones(100, {requires_grad = true})\n"
                         "for i = 1, 300 do local y = (x * i):sum() y:backward() end\n"
                         "assert(x.grad[1]:item() == 45150)"))
        check_fail(__FILE__, __LINE__, "%s", L ? lua_tostring(L, -1) : "no state");
    if (L)
        tide_lua_close(L);
    return NULL;
}

TEST(states_on_threads_of_their_own) {
    int64_t before = allocated();
    pthread_t threads[3];
    for (int k = 0; k < 3; k++)
        pthread_create(&threads[k], NULL, one_thread, NULL);
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    CHECK_INT(allocated(), before);
}

/* A state sees its own work, whatever the others on its thread do. */
TEST(states_record_at_the_same_time) {
    lua_State *states[2];
    for (int k = 0; k < 2; k++) {
        states[k] = tide_lua_new();
        REQUIRE(states[k] != NULL);
        run(states[k], "tide = require 'tide' x = tide.ones(3, {requires_grad = true})\n"
                       "p = tide.profiler.profile()\n"
                       "assert(not pcall(tide.profiler.profile))");
    }
    for (int round = 0; round < 5; round++) {
        run(states[0],
            "local r <close> = tide.profiler.record('one') y = x * 2 y:sum():backward()");
        run(states[1],
            "local r <close> = tide.profiler.record('two') z = tide.ones(2) z[1] = 3 y = x / 2");
    }
    run(states[0], "p:stop() names = {} for _, e in ipairs(p:events()) do\n"
                   "names[e.name] = (names[e.name] or 0) + 1 end\n"
                   "assert(names.one == 5 and not names.two and not names.div and names.sum)");
    run(states[1], "p:stop() names = {} for _, e in ipairs(p:events()) do\n"
                   "names[e.name] = (names[e.name] or 0) + 1 end\n"
                   "assert(names.two == 5 and names.div == 10 and not names.one and not names.mul "
                   "and not names.sum)");
    for (int k = 0; k < 2; k++)
        tide_lua_close(states[k]);
}

static void *record_on_thread(void *state) {
    run(state, "local p = tide.profiler.profile(function() for i = 1, 20 do x = x + 1 end end)\n"
               "n = #p");
    return NULL;
}

TEST(states_on_threads_of_their_own_record_at_the_same_time) {
    lua_State *states[3];
    pthread_t threads[3];
    for (int k = 0; k < 3; k++) {
        states[k] = tide_lua_new();
        REQUIRE(states[k] != NULL);
        run(states[k], "tide = require 'tide' x = tide.ones(3)");
        pthread_create(&threads[k], NULL, record_on_thread, states[k]);
    }
    for (int k = 0; k < 3; k++) {
        pthread_join(threads[k], NULL);
        run(states[k], "assert(n == 40, n)"); /* an operator and its kernel each */
        tide_lua_close(states[k]);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(closing_a_state_lets_go_of_its_tensors);
    RUN(states_do_not_see_one_another);
    RUN(a_state_made_by_others_works_and_closes);
    RUN(hooks_and_functions_may_outlive_their_state);
    RUN(a_graph_with_hooks_may_die_on_another_thread);
    RUN(running_out_of_lua_memory_loses_nothing);
    RUN(states_on_threads_of_their_own);
    RUN(states_record_at_the_same_time);
    RUN(states_on_threads_of_their_own_record_at_the_same_time);
    return check_finish();
}
