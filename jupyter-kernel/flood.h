/* flood.h: how much of what a cell prints is shown: its first part, its last, and what was between.
 *
 * A front end keeps all it is shown, so a loop that prints without end freezes the browser and
 * fills the notebook's file. The first megabyte is shown as it comes. What comes behind it is held,
 * the last 64 KiB of it, and shown when it rests (no more than that came in a second) or the cell
 * ends; where some was left out a line says how much. Of what rests three more megabytes are shown,
 * so that the log of a long training goes on, and then only the end. Knows neither threads nor
 * messages. */
#ifndef TIDE_KERNEL_FLOOD_H
#define TIDE_KERNEL_FLOOD_H

#include "jupyter-kernel/buffer.h"

#define TK_FLOOD_HEAD  ((size_t)1 << 20)
#define TK_FLOOD_TAIL  ((size_t)64 << 10)
#define TK_FLOOD_LATER ((size_t)3 << 20)

/* What is held of one stream. */
typedef struct tk_held {
    char *ring; /* TK_FLOOD_TAIL bytes, NULL while nothing was ever held */
    size_t start, len;
    unsigned long long bytes, lines; /* left out */
} tk_held;

/* All zero: nothing was printed, and the limit holds. */
typedef struct tk_flood {
    bool off;           /* there is no limit */
    size_t shown;       /* of the first part */
    size_t later;       /* of what rested */
    bool running;       /* some was left out since the last look */
    tk_held streams[2]; /* standard output, standard error */
} tk_flood;

/* How many of these bytes of UTF-8 are to be shown now; the others are held. The cut is behind a
 * line where there is one near. */
size_t tk_flood_pass(tk_flood *flood, const char *text, size_t len);

/* Holds text; what falls out is left out. */
void tk_flood_hold(tk_flood *flood, int stream, const char *text, size_t len);

bool tk_flood_holds(const tk_flood *flood);

/* To be asked once a second: is what is held to be shown? */
bool tk_flood_rests(tk_flood *flood);

/* Moves what is held of a stream, and the line about what was left out before it, into `text`. */
void tk_flood_take(tk_flood *flood, int stream, tk_buffer *text);

/* The output was cleared or another cell begins: all as in the beginning, but for `off`. */
void tk_flood_reset(tk_flood *flood);

void tk_flood_clear(tk_flood *flood); /* and gives its memory back */

#endif
