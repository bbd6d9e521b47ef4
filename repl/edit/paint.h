/* paint.h: which byte of an input is shown in which style: Lua's tokens by the session's lexer, and
 * the bracket, or the word of a block, at the cursor with its partner.
 */
#ifndef TIDE_EDIT_PAINT_H
#define TIDE_EDIT_PAINT_H

#include "repl/edit/bytes.h"

typedef enum style {
    STYLE_PLAIN,
    STYLE_PROMPT,
    STYLE_PROMPT_NEXT,
    STYLE_KEYWORD,
    STYLE_CONSTANT,
    STYLE_STRING,
    STYLE_NUMBER,
    STYLE_COMMENT,
    STYLE_CALL,
    STYLE_MAGIC,
    STYLE_MATCH, /* a bracket or a block's word at the cursor, and its partner */
    STYLE_ODD,   /* a bracket that has none; what is no Lua */
    STYLE_GHOST, /* what is suggested */
    STYLE_HINT,
    STYLE_CURRENT, /* the parameter of a hint that is being written */
    STYLE_CHOSEN,
    STYLE_FOUND,
    N_STYLES,
} style;

/* The terminal's sequence that begins a style, after a reset. */
extern const char *const style_sequences[N_STYLES];

/* Makes `styles` a style for each byte of code. The bracket under the cursor, or else the one
 * before it, is shown with its partner; where there is none, so is a word that begins or ends a
 * block. False: memory is out. */
bool paint(bytes *styles, const char *code, size_t len, size_t cursor);

#endif
