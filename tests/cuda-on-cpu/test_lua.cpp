/* test_lua.cpp: counts and failures of the played device as Lua sees them. */
#include "check_cpp.h"

extern "C" {
#include <lauxlib.h>
#include <lualib.h>
int luaopen_played(lua_State *L);
}

static void nothing() {}

static lua_State *new_state() {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    luaL_requiref(L, "played", luaopen_played, 1);
    lua_pop(L, 1);
    return L;
}

static void run(lua_State *L, const char *code) {
    bool ok = luaL_dostring(L, code) == LUA_OK;
    CHECK_STR(ok ? "fine" : lua_tostring(L, -1), "fine");
}

TEST(lua_reads_counts_by_kernel) {
    lua_State *L = new_state();
    run(L, "played.reset() assert(played.counts().launches == 0)");
    for (int k = 0; k < 3; k++)
        td_played::launch("nothing", false, 1, 1, 0, 0, nothing);
    cudaDeviceSynchronize();
    run(L, "local c = played.counts() assert(c.launches == 3 and c.kernels.nothing == 3)");
    run(L, "assert(played.counts().synchronisations == 1) played.reset()");
    run(L, "assert(played.counts().kernels.nothing == nil)");
    lua_close(L);
}

TEST(lua_orders_failures) {
    lua_State *L = new_state();
    void *p;
    run(L, "played.fail(2)");
    CHECK_INT(cudaMalloc(&p, 64), cudaSuccess);
    cudaFree(p);
    CHECK_INT(cudaMalloc(&p, 64), cudaErrorMemoryAllocation);
    run(L, "played.fail_next('LaunchFailure')");
    td_played::launch("nothing", false, 1, 1, 0, 0, nothing);
    CHECK_INT(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    run(L, "assert(played.reset_device() == 'cudaSuccess')");
    run(L, "assert(not pcall(played.fail_next, 'cudaErrorOfNobody'))");
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    lua_close(L);
}

int main() {
    RUN(lua_reads_counts_by_kernel);
    RUN(lua_orders_failures);
    return check_finish();
}
