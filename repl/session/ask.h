/* ask.h: what a program asks of its front end: a line from the person, the text of the next input.
 */
#ifndef TIDE_SESSION_ASK_H
#define TIDE_SESSION_ASK_H

#include "repl/session/magic.h"

extern const magic magic_flood;

/* tide.input and tide.set_next_input; the tide table is on top. May raise (memory). */
void ask_install(lua_State *L);

#endif
