/* screen.c: see screen.h.
 *
 * A terminal that has just written into its last column may or may not be in the next row already:
 * there a carriage return follows, which takes all of them to the beginning of the same row.
 */
#include "repl/edit/screen.h"

static void move_rows(screen *s, int row, bytes *out) {
    int there = row < s->made ? row : s->made - 1;
    if (there > s->row)
        bytes_add_format(out, "\x1b[%dB", there - s->row);
    else if (there < s->row)
        bytes_add_format(out, "\x1b[%dA", s->row - there);
    s->row = there;
    for (; s->row < row; s->row++, s->made++) { /* which scrolls where it has to */
        bytes_add_text(out, "\r\n");
        s->col = 0;
    }
}

static void move_to(screen *s, int row, int col, bytes *out) {
    move_rows(s, row, out);
    if (col == 0 && s->col != 0)
        bytes_add_text(out, "\r");
    else if (col > s->col)
        bytes_add_format(out, "\x1b[%dC", col - s->col);
    else if (col < s->col)
        bytes_add_format(out, "\x1b[%dD", s->col - col);
    s->col = col;
}

/* The first column of a row in which the frames differ; -1: none. It is no right half of a wide
 * group, since those differ where they begin. */
static int first_difference(const frame *was, const frame *next, int row) {
    int old = row < was->rows ? was->used[row] : 0, new = next->used[row], col = 0;
    int both = old < new ? old : new;
    while (col < both && frame_same(was, next, row, col))
        col++;
    return col == old && col == new ? -1 : col;
}

/* Writes the cells of a row from a column on. */
static void write_cells(const frame *f, int row, int col, bytes *out) {
    int now = STYLE_PLAIN;
    for (; col < f->used[row]; col++) {
        const cell *c = frame_cell(f, row, col);
        if (c->style != now) {
            bytes_add_text(out, now == STYLE_PLAIN ? "" : "\x1b[m");
            bytes_add_text(out, style_sequences[c->style]);
            now = c->style;
        }
        bytes_add(out, f->text.at + c->at, c->len);
    }
    bytes_add_text(out, now == STYLE_PLAIN ? "" : "\x1b[m");
}

static void draw_row(screen *s, const frame *next, int row, bytes *out) {
    const frame *was = &s->shown;
    int col = first_difference(was, next, row);
    if (col < 0)
        return;
    move_to(s, row, col, out);
    write_cells(next, row, col, out);
    s->col = next->used[row];
    if (row < was->rows && was->used[row] > next->used[row])
        bytes_add_text(out, "\x1b[K");
    if (s->col == next->width) {
        bytes_add_text(out, "\r");
        s->col = 0;
    }
}

void screen_draw(screen *s, frame *next, bytes *out) {
    if (s->made == 0)
        s->made = 1;
    for (int row = 0; row < next->rows; row++)
        draw_row(s, next, row, out);
    if (s->shown.rows > next->rows) {
        move_to(s, next->rows, 0, out);
        bytes_add_text(out, "\x1b[J");
    }
    move_to(s, next->row, next->col, out);
    frame swap = s->shown;
    s->shown = *next;
    *next = swap;
}

void screen_forget(screen *s) {
    s->shown.rows = s->row = s->col = s->made = 0;
}

void screen_erase(screen *s, bytes *out) {
    if (s->made == 0)
        return;
    move_to(s, 0, 0, out);
    bytes_add_text(out, "\x1b[J");
    screen_forget(s);
}

void screen_narrow(screen *s, int width, bytes *out) {
    if (s->made == 0)
        return;
    int above = s->col / width;
    for (int row = 0; row < s->row; row++) {
        int used = row < s->shown.rows ? s->shown.used[row] : 0;
        above += used > width ? (used + width - 1) / width : 1;
    }
    if (above > 0)
        bytes_add_format(out, "\x1b[%dA", above);
    bytes_add_text(out, "\r\x1b[J");
    screen_forget(s);
}

void screen_leave(screen *s, bytes *out) {
    if (s->made == 0)
        return;
    move_rows(s, s->shown.rows > 0 ? s->shown.rows - 1 : 0, out);
    bytes_add_text(out, "\r\n");
    screen_forget(s);
}

void screen_clear(screen *s) {
    frame_clear(&s->shown);
}
