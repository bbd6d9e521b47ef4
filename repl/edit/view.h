/* view.h: an editor as a terminal shows it: prompt, text, suggestion, menu, search and hint, as a
 * frame. It asks the host for the notes of the menu and for the hint; it sends nothing anywhere.
 */
#ifndef TIDE_EDIT_VIEW_H
#define TIDE_EDIT_VIEW_H

#include "repl/edit/editor.h"
#include "repl/edit/frame.h"

typedef struct view {
    const char *prompt, *next_prompt; /* before the first line, and before those that follow */
    int width, height;                /* of the terminal, at least 2 and 1 */
    bool color;
    bool done;        /* the input is finished: all of it, and nothing but it */
    const char *mark; /* what is shown behind the text (^C), or NULL */
} view;

/* Makes f the frame. Without memory it holds as much as there was room for. */
void view_frame(const view *v, editor *e, frame *f);

#endif
