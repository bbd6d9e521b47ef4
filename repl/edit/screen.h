/* screen.h: brings a terminal from one frame to the next with few bytes. It writes them into a
 * string and knows no file: the terminal is one that understands ECMA-48's moves and erasures.
 */
#ifndef TIDE_EDIT_SCREEN_H
#define TIDE_EDIT_SCREEN_H

#include "repl/edit/frame.h"

/* The frame lies where the cursor was when it was first drawn, in the first column. Zeroed, with
 * nothing shown, it is ready. */
typedef struct screen {
    frame shown;
    int row, col; /* where the terminal's cursor is, from the frame's first row on */
    int made;     /* rows that are there below it without scrolling; 0: nothing was drawn yet */
} screen;

/* Shows `next` in the place of what is shown; next's content is taken over. */
void screen_draw(screen *s, frame *next, bytes *out);
/* Takes away what is shown; the cursor stays where it began. */
void screen_erase(screen *s, bytes *out);
/* The terminal has another width now, and may have broken the rows that don't fit: takes them away.
 */
void screen_narrow(screen *s, int width, bytes *out);
/* Leaves what is shown, and goes to the line below it. */
void screen_leave(screen *s, bytes *out);
/* Somebody else wrote or erased: the cursor is in a first column, and nothing is shown. */
void screen_forget(screen *s);
void screen_clear(screen *s);

#endif
