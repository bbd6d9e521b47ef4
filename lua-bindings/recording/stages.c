/* stages.c: where the time goes while a batch is made: stages within one another ("read", "decode",
 * "transform", "collate"), whose times on the clock and on the processor are added up, each without
 * those inside it. Each is also a range of a recording.
 *
 * All of it is the Lua state's, in the object that ends a stage when it is closed. A stage is
 * entered by `local _ <close> = tide._stage_enter(name, file)`; its name is cut to NAME bytes.
 */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include "profiler/recorder.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STAGES = 16, DEEPEST = 16, NAME = 24, FILE_NAME = 256 };

typedef struct stage {
    char name[NAME];
    double clock, processor; /* seconds */
} stage;

typedef struct entered {
    int stage;
    tide_range range;
} entered;

typedef struct stages {
    bool counting;
    int n, depth; /* depth counts those beyond DEEPEST too, which are not measured */
    int base;     /* depth where counting began */
    stage stages[STAGES];
    entered within[DEEPEST];
    double clock, processor; /* when the innermost began, or was come back to */
    char file[FILE_NAME];
} stages;

static const char guard_name[] = "tide.stage", first_name[] = "get";

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Pushes the state's stages. */
static stages *push_stages(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, guard_name);
    return lua_touserdata(L, -1);
}

static int innermost(const stages *now) {
    int depth = now->depth < DEEPEST ? now->depth : DEEPEST;
    return depth > now->base ? now->within[depth - 1].stage : 0;
}

/* What passed since the last call belongs to the innermost stage. */
static void count(stages *now) {
    if (!now->counting)
        return;
    double clock = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_THREAD_CPUTIME_ID);
    stage *s = &now->stages[innermost(now)];
    s->clock += clock - now->clock;
    s->processor += processor - now->processor;
    now->clock = clock;
    now->processor = processor;
}

/* The last place is for all names that come when the others are taken. */
static int find(stages *now, const char *name) {
    int k = 0;
    while (k < now->n && strncmp(now->stages[k].name, name, NAME - 1) != 0)
        k++;
    if (k == STAGES)
        return STAGES - 1;
    if (k == now->n) {
        now->stages[k] = (stage){{0}, 0, 0};
        snprintf(now->stages[k].name, NAME, "%s", k < STAGES - 1 ? name : "other");
        now->n++;
    }
    return k;
}

/* (name [, file [, name in recordings]]): the stage lasts until what is returned is closed. */
static int enter(lua_State *L) {
    const char *name = luaL_checkstring(L, 1), *file = luaL_optstring(L, 2, NULL),
               *shown = luaL_optstring(L, 3, name);
    stages *now = push_stages(L);
    count(now);
    if (file)
        snprintf(now->file, sizeof now->file, "%s", file);
    if (now->depth++ < DEEPEST)
        now->within[now->depth - 1] =
            (entered){find(now, name), tide_range_begin(TIDE_EVENT_DATA, shown)};
    return 1;
}

static int leave(lua_State *L) {
    stages *now = push_stages(L);
    count(now);
    if (now->depth > 0 && now->depth-- <= DEEPEST)
        tide_range_end(now->within[now->depth].range);
    return 0;
}

/* (): counting begins; false where it had begun already. */
static int begin(lua_State *L) {
    stages *now = push_stages(L);
    bool first = !now->counting;
    if (first) {
        now->n = 0;
        now->base = now->depth;
        now->counting = true;
        (void)find(now, first_name);
        now->clock = seconds(CLOCK_MONOTONIC);
        now->processor = seconds(CLOCK_THREAD_CPUTIME_ID);
    }
    lua_pushboolean(L, first);
    return 1;
}

/* (): the times since then, as a text for _stages_add. */
static int end(lua_State *L) {
    stages *now = push_stages(L);
    count(now);
    now->counting = false;
    lua_pushlstring(L, (const char *)now->stages, (size_t)now->n * sizeof(stage));
    now->depth = now->base;
    now->n = now->base = 0;
    return 1;
}

static void add_to(lua_State *L, int index, const char *field, double value) {
    lua_getfield(L, index, field);
    lua_pushnumber(L, lua_tonumber(L, -1) + value);
    lua_setfield(L, index, field);
    lua_pop(L, 1);
}

/* (totals, text): adds to totals[name].clock and .processor. */
static int add(lua_State *L) {
    size_t len;
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *text = luaL_checklstring(L, 2, &len);
    for (size_t at = 0; at + sizeof(stage) <= len; at += sizeof(stage)) {
        stage s;
        memcpy(&s, text + at, sizeof s);
        s.name[NAME - 1] = 0;
        if (lua_getfield(L, 1, s.name) != LUA_TTABLE) {
            lua_pop(L, 1);
            lua_newtable(L);
            lua_pushvalue(L, -1);
            lua_setfield(L, 1, s.name);
        }
        int entry = lua_gettop(L);
        add_to(L, entry, "clock", s.clock);
        add_to(L, entry, "processor", s.processor);
        lua_pop(L, 1);
    }
    return 0;
}

/* (): another sample begins, of no file yet. */
static int next_sample(lua_State *L) {
    stages *now = push_stages(L);
    now->file[0] = 0;
    return 0;
}

/* (): the innermost stage, nil where none was entered, and the file that was named last. */
static int where(lua_State *L) {
    const stages *now = push_stages(L);
    if (now->depth > now->base)
        lua_pushstring(L, now->stages[innermost(now)].name);
    else
        lua_pushnil(L);
    lua_pushstring(L, now->file[0] ? now->file : NULL);
    return 2;
}

/* (): seconds on the clock, and that the processor worked for this thread. */
static int clocks(lua_State *L) {
    lua_pushnumber(L, seconds(CLOCK_MONOTONIC));
    lua_pushnumber(L, seconds(CLOCK_THREAD_CPUTIME_ID));
    return 2;
}

void tide_open_stages(lua_State *L) {
    static const luaL_Reg functions[] = {{"_stage_enter", enter},
                                         {"_stages_begin", begin},
                                         {"_stages_end", end},
                                         {"_stages_add", add},
                                         {"_stage_sample", next_sample},
                                         {"_stage_where", where},
                                         {"_clocks", clocks},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
    *(stages *)lua_newuserdatauv(L, sizeof(stages), 0) = (stages){0};
    luaL_newmetatable(L, guard_name);
    lua_pushcfunction(L, leave);
    lua_setfield(L, -2, "__close");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, guard_name);
}
