/* ask.c: what a program asks of its front end: a line from the person, the text of the next input,
 * all of its output.
 *
 * Without a front end that reads lines a line comes from the process's own standard input; where
 * that is a terminal, a password is not shown while it is typed. */
#include "repl/session/ask.h"
#include "repl/session/output.h"
#include "repl/session/state.h"

#include "lua-bindings/call/function.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* ---- tide.input ---- */

/* Reads a line as it is typed, or, for a password, without showing it. */
static char *read_own_line(bool password, size_t *len) {
    struct termios shown;
    bool hide = password && tcgetattr(STDIN_FILENO, &shown) == 0;
    if (hide) {
        struct termios hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        hidden.c_lflag |= ECHONL;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    }
    char *line = NULL;
    size_t size = 0;
    ssize_t n = getline(&line, &size, stdin);
    if (hide)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
    if (n < 0) {
        clearerr(stdin);
        free(line);
        return NULL;
    }
    *len = (size_t)n - (line[n - 1] == '\n');
    return line;
}

static char *ask(tide_session *s, const char *prompt, bool password, size_t *len) {
    if (s->frontend.read_line)
        return s->frontend.read_line(s->frontend.ctx, prompt, password, len);
    output_write(s, TIDE_STDOUT, prompt, strlen(prompt));
    fflush(stdout);
    return read_own_line(password, len);
}

static int tide_input(lua_State *L) {
    tide_session *s = session_of(L);
    tide_frame frame;
    tide_read_call(L, &frame);
    size_t len = 0;
    free(s->answer); /* of a call that ran out of memory */
    s->answer = ask(s, frame.args[0].string, frame.args[1].b, &len);
    if (s->answer)
        lua_pushlstring(L, s->answer, len);
    else
        lua_pushnil(L);
    free(s->answer);
    s->answer = NULL;
    return 1;
}

/* ---- tide.set_next_input ---- */

static int tide_set_next_input(lua_State *L) {
    tide_session *s = session_of(L);
    tide_frame frame;
    tide_read_call(L, &frame);
    if (!s->frontend.next_input)
        return luaL_error(L, "set_next_input: this front end has no next input that can be set");
    const char *text = frame.args[0].string;
    size_t len = strlen(text);
    if (frame.at[0] && lua_type(L, frame.at[0]) == LUA_TSTRING)
        text = lua_tolstring(L, frame.at[0], &len);
    s->frontend.next_input(s->frontend.ctx, text, len, frame.args[1].b);
    return 0;
}

void ask_install(lua_State *L) {
    static const tide_function functions[] = {
        {"input(str prompt=\"\", *, bool password=false) -> any",
         "Ask the person for a line, and give it without its newline, or nil where the input has "
         "ended. A password is not shown while it is typed.",
         tide_input},
        {"set_next_input(str text, *, bool replace=false)",
         "Put a text into the next input: of the prompt, or the notebook's next cell; with "
         "replace, in place of this one's.",
         tide_set_next_input},
        {0}};
    tide_declare(L, functions);
}

/* ---- %flood ---- */

static bool is_word(const magic_call *call, const char *word) {
    return call->args_len == strlen(word) && memcmp(call->args, word, call->args_len) == 0;
}

static int run_flood(lua_State *L, const magic_call *call, const char *chunkname) {
    tide_session *s = session_of(L);
    (void)chunkname;
    bool on = is_word(call, "on");
    if (call->cell || !(on || is_word(call, "off"))) {
        lua_pushlstring(L, call->args, call->args_len);
        return luaL_error(L, "%%flood: expected on or off, got '%s'", lua_tostring(L, -1));
    }
    if (s->frontend.limit_output)
        s->frontend.limit_output(s->frontend.ctx, on);
    return 0;
}

const magic magic_flood = {"flood",
                           "%flood off: show all that cells print, however much; %flood on: leave "
                           "out the middle of a flood "
                           "again, which is how a notebook begins",
                           run_flood};
