/* test_lua_memory.c: Lua's allocator fails at the n-th request: while the module is loaded, and in
 * calls that return lists. What follows works, and no tensor is lost. */
#include "lua-bindings/tide_lua.h"

#include "engine/td.h"
#include "tests/check.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>

typedef struct budget {
    int64_t asked, fails; /* requests since it was set; which one fails, and the next with it */
} budget;

static void *limited(void *ud, void *block, size_t old_size, size_t new_size) {
    budget *b = ud;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    if (!block && b->fails) { /* Lua collects and asks once more */
        b->asked++;
        if (b->asked == b->fails || b->asked == b->fails + 1)
            return NULL;
    }
    return realloc(block, new_size);
}

static lua_State *plain_state(budget *b) {
    lua_State *L = lua_newstate(limited, b);
    if (!L)
        return NULL;
    luaL_openlibs(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_tide);
    lua_setfield(L, -2, "tide");
    lua_pop(L, 1);
    return L;
}

/* Runs a chunk that is compiled already (on the top), with a failure; its message or NULL. */
static const char *run_failing(lua_State *L, budget *b, int64_t n) {
    b->asked = 0;
    b->fails = n;
    int failed = lua_pcall(L, 0, 0, 0);
    b->fails = 0;
    return failed ? lua_tostring(L, -1) : NULL;
}

static void say(lua_State *L, int64_t n) {
    fprintf(stderr, "request %lld: %s\n", (long long)n, lua_tostring(L, -1));
}

TEST(a_require_that_ran_out_of_memory_can_be_made_again) {
    int64_t failures = 0;
    for (int64_t n = 1; n < 100000; n += 1 + n / 20) {
        budget b = {0};
        lua_State *L = plain_state(&b);
        REQUIRE(L && luaL_loadstring(L, "tide = require 'tide'") == LUA_OK);
        const char *message = run_failing(L, &b, n);
        if (message) {
            CHECK_CONTAINS(message, "memory");
            failures++;
        }
        if (!CHECK(luaL_dostring(L, "tide = require 'tide'"
                                    "assert(tide.ones(3):sum():item() == 3)"
                                    "assert(#tide.ones(4):split(2) == 2)") == LUA_OK))
            say(L, n);
        bool ended = b.fails == 0 && b.asked < n;
        lua_close(L);
        if (ended)
            break;
    }
    CHECK(failures > 20);
}

TEST(lists_that_run_out_of_memory_lose_no_tensor) {
    budget b = {0};
    lua_State *L = plain_state(&b);
    REQUIRE(L && luaL_dostring(L, "tide = require 'tide'; x = tide.ones(1000, 40)") == LUA_OK);
    int64_t failures = 0;
    for (int64_t n = 1; n < 400; n++) {
        lua_gc(L, LUA_GCCOLLECT);
        int64_t before = td_memory_allocated(TD_DEVICE_CPU);
        REQUIRE(luaL_loadstring(L, "local l = (x + 1):split(100)") == LUA_OK);
        const char *message = run_failing(L, &b, n);
        lua_settop(L, 0);
        lua_gc(L, LUA_GCCOLLECT);
        lua_gc(L, LUA_GCCOLLECT);
        CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), before);
        failures += message != NULL;
        if (!message && b.asked < n)
            break;
    }
    CHECK(failures > 3);
    lua_close(L);
}

TEST(checkpoints_that_run_out_of_memory_lose_no_tensor) {
    budget b = {0};
    lua_State *L = plain_state(&b);
    REQUIRE(L && luaL_dostring(L, "tide = require 'tide'; path = os.tmpname()\n"
                                  "x = {a = tide.ones(1000, 40), b = {1, 0.5, 'x', true}}\n"
                                  "tide.save(x, path)  tide.load(path)") == LUA_OK);
    int64_t failures = 0;
    for (int64_t n = 1; n < 1000; n++) {
        lua_gc(L, LUA_GCCOLLECT);
        int64_t before = td_memory_allocated(TD_DEVICE_CPU);
        REQUIRE(luaL_loadstring(L, "tide.save(x, path)  tide.load(path, {map = true})\n"
                                   "tide.load(path, {map = false})") == LUA_OK);
        const char *message = run_failing(L, &b, n);
        lua_settop(L, 0);
        lua_gc(L, LUA_GCCOLLECT);
        lua_gc(L, LUA_GCCOLLECT);
        CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), before);
        if (luaL_dostring(L, "local y = tide.load(path)\n"
                             "assert(y.a:sum():item() == 40000 and y.b[2] == 0.5)") != LUA_OK) {
            say(L, n);
            CHECK(false);
        }
        lua_settop(L, 0);
        failures += message != NULL;
        if (!message && b.asked < n)
            break;
    }
    CHECK(failures > 20);
    CHECK(luaL_dostring(L, "os.remove(path)") == LUA_OK);
    lua_close(L);
}

int main(void) {
    RUN(a_require_that_ran_out_of_memory_can_be_made_again);
    RUN(lists_that_run_out_of_memory_lose_no_tensor);
    RUN(checkpoints_that_run_out_of_memory_lose_no_tensor);
    return check_finish();
}
