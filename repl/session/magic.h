/* magic.h: the lines that are magics: found in the text, and run through the session's table.
 *
 * A magic is a `magic` of its own, declared beside the function that runs it; the session's table
 * (tide_session.magics) says which there are. */
#ifndef TIDE_SESSION_MAGIC_H
#define TIDE_SESSION_MAGIC_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct magic_call {
    const char *name; /* of the magic, in the input */
    size_t name_len;
    const char *args; /* rest of its line */
    size_t args_len;
    const char *body; /* following lines, for %% */
    size_t body_len;
    int line; /* of the input, in which the magic stands, from 1 */
    bool cell;
    bool shown; /* its value is the input's, which is shown */
} magic_call;

typedef struct magic {
    const char *name, *doc; /* doc: the line that explains it */
    /* Runs a call on an empty stack or above what must stay; leaves its values on the stack and
     * returns their number. Raises Lua errors. */
    int (*run)(lua_State *L, const magic_call *call, const char *chunkname);
} magic;

extern const magic magic_lsmagic;

/* Is the whole input one magic? */
bool magic_parse(const char *code, size_t len, magic_call *call);
/* Is the input "?name", "name?", with one question mark or two? The name may hold wildcards. */
bool magic_parse_question(const char *code, size_t len, size_t *start, size_t *end, int *detail);
/* Pushes code in which the lines that are magics became calls of MAGIC_CALL; false: there are none.
 */
bool magic_push_rewritten(lua_State *L, const char *code, size_t len);
/* Pushes code in which they became comments, or nil where all of it is a magic or a question. */
void magic_push_script(lua_State *L, const char *code, size_t len);
/* Runs the magic of that name, as its `run` does; raises an error where there is none. */
int magic_run(lua_State *L, const magic_call *call, const char *chunkname);
/* (name, arguments): what rewritten lines call, under the name SCOPE_MAGIC. */
int magic_call_line(lua_State *L);

/* Cuts blanks and newlines off both ends of a text. */
void magic_trim(const char **text, size_t *len);

#endif
