/* frame.h: what a part of a terminal's screen shows: rows of cells with a style, and a cursor. */
#ifndef TIDE_EDIT_FRAME_H
#define TIDE_EDIT_FRAME_H

#include "repl/edit/paint.h"

#include <stdint.h>

/* A column: the text of what stands in it. The right half of a wide one has width 0. */
typedef struct cell {
    uint32_t at; /* in the frame's text */
    uint8_t len, width, style;
} cell;

/* Zeroed it is empty; frame_begin gives it its size. */
typedef struct frame {
    int width, rows, room; /* columns; rows in use; rows that there is memory for */
    int row, col;          /* the cursor */
    cell *cells;
    int *used; /* columns of each row */
    bytes text;
    bool color; /* without it all is plain */
} frame;

/* An empty frame of no rows. */
void frame_begin(frame *f, int width, bool color);
/* Puts a group of code points into a row, behind what the row holds; rows come into being so.
 * False: memory is out. */
bool frame_put(frame *f, int row, const char *text, size_t len, int width, style s);
/* Makes row `row` one that is there, be it empty. */
bool frame_touch(frame *f, int row);
/* Are the cells in this row and column the same in both? */
bool frame_same(const frame *a, const frame *b, int row, int col);
const cell *frame_cell(const frame *f, int row, int col); /* borrowed */
void frame_clear(frame *f);

#endif
