/* vt.h: a small terminal for tests: takes what a program writes and knows what stands where.
 *
 * It breaks rows that have become too long when it gets narrower, as most do, and waits at the end
 * of a row for the next letter before it goes to the next. A header of one file.
 */
#ifndef TIDE_TESTS_VT_H
#define TIDE_TESTS_VT_H

#include "repl/edit/glyph.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VT_CELL = 72, VT_ROWS = 384, VT_COLUMNS = 100 };

/* What stands in a column; empty: nothing, or the right half of what is before it. */
typedef struct vt_cell {
    char text[VT_CELL];
    bool right_half;
} vt_cell;

typedef struct vt {
    int columns, rows;
    vt_cell cells[VT_ROWS][VT_COLUMNS];
    int row, col;
    bool waits;    /* behind the last column */
    long scrolled; /* rows that have left at the top */
    char escape[64];
    size_t escape_len;
    char point[4]; /* of a code point that is not whole yet */
    size_t point_len;
    int unknown; /* sequences that it does not know */
} vt;

static inline vt *vt_new(int columns, int rows) {
    vt *t = calloc(1, sizeof *t);
    t->columns = columns;
    t->rows = rows;
    return t;
}

static inline void vt_scroll(vt *t) {
    memmove(t->cells[0], t->cells[1], sizeof t->cells[0] * (size_t)(t->rows - 1));
    memset(t->cells[t->rows - 1], 0, sizeof t->cells[0]);
    t->scrolled++;
}

static inline void vt_down(vt *t) {
    if (t->row < t->rows - 1)
        t->row++;
    else
        vt_scroll(t);
}

static inline void vt_blank(vt *t, int row, int from) {
    for (int col = from; col < t->columns; col++)
        t->cells[row][col] = (vt_cell){0};
}

/* Half of a wide letter does not stay. */
static inline void vt_part(vt *t, int col) {
    vt_cell *row = t->cells[t->row];
    if (row[col].right_half && col > 0)
        row[col - 1] = (vt_cell){.text = " "};
    if (col + 1 < t->columns && row[col + 1].right_half)
        row[col + 1] = (vt_cell){.text = " "};
    row[col] = (vt_cell){0};
}

static inline void vt_put(vt *t, const char *text, size_t len) {
    glyph g = glyph_read(text, len);
    int width = glyph_width(g.code);
    if (width == 0) {
        int col = t->waits ? t->col : t->col - 1;
        if (col >= 0 && t->cells[t->row][col].right_half)
            col--;
        if (col >= 0 && strlen(t->cells[t->row][col].text) + len < VT_CELL)
            memcpy(t->cells[t->row][col].text + strlen(t->cells[t->row][col].text), text, len);
        return;
    }
    if (t->waits || t->col + width > t->columns) {
        t->col = 0;
        vt_down(t);
    }
    t->waits = false;
    for (int i = 0; i < width; i++)
        vt_part(t, t->col + i);
    memcpy(t->cells[t->row][t->col].text, text, len);
    if (width == 2)
        t->cells[t->row][t->col + 1].right_half = true;
    t->waits = t->col + width == t->columns;
    t->col += t->waits ? width - 1 : width;
}

static inline int vt_clamp(int at, int most) {
    return at < 0 ? 0 : at > most ? most : at;
}

static inline void vt_erase_below(vt *t) {
    vt_blank(t, t->row, t->col);
    for (int row = t->row + 1; row < t->rows; row++)
        vt_blank(t, row, 0);
}

static inline void vt_sequence(vt *t) {
    char final = t->escape[t->escape_len - 1];
    t->escape[t->escape_len] = '\0';
    int n = (int)strtol(t->escape + 2, NULL, 10), one = n > 0 ? n : 1;
    if (final == 'm' || t->escape[2] == '?')
        return;
    switch (final) {
    case 'A':
        t->row = vt_clamp(t->row - one, t->rows - 1);
        break;
    case 'B':
        t->row = vt_clamp(t->row + one, t->rows - 1);
        break;
    case 'C':
        t->col = vt_clamp(t->col + one, t->columns - 1);
        break;
    case 'D':
        t->col = vt_clamp(t->col - one, t->columns - 1);
        break;
    case 'H':
        t->row = t->col = 0;
        break;
    case 'J':
        if (n == 2)
            for (int row = 0; row < t->rows; row++)
                vt_blank(t, row, 0);
        else if (n == 0)
            vt_erase_below(t);
        break;
    case 'K':
        vt_blank(t, t->row, t->col);
        break;
    default:
        t->unknown++;
        break;
    }
    t->waits = false;
}

static inline void vt_byte(vt *t, char byte) {
    if (t->escape_len > 0) {
        t->escape[t->escape_len++] = byte;
        if (t->escape_len > 2 && byte >= '@') {
            vt_sequence(t);
            t->escape_len = 0;
        } else if (t->escape_len == sizeof t->escape - 1 || (t->escape_len == 2 && byte != '[')) {
            t->unknown++;
            t->escape_len = 0;
        }
        return;
    }
    if ((unsigned char)byte >= ' ' && byte != 0x7F) {
        t->point[t->point_len++] = byte;
        if (glyph_is_begun(t->point, t->point_len))
            return;
        vt_put(t, t->point, t->point_len);
        t->point_len = 0;
    } else if (byte == '\x1b') {
        t->escape[t->escape_len++] = byte;
    } else if (byte == '\r') {
        t->col = 0;
        t->waits = false;
    } else if (byte == '\n') {
        vt_down(t);
        t->waits = false;
    } else {
        t->unknown++;
    }
}

static inline void vt_write(vt *t, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        vt_byte(t, text[i]);
}

/* A row's text, blanks at its end left out. */
static inline void vt_row(const vt *t, int row, char *out, size_t size) {
    size_t n = 0, end = 0;
    for (int col = 0; col < t->columns; col++) {
        const vt_cell *c = &t->cells[row][col];
        const char *text = c->text[0] ? c->text : c->right_half ? "" : " ";
        size_t len = strlen(text);
        if (len >= size - n)
            break;
        memcpy(out + n, text, len);
        n += len;
        if (strcmp(text, " ") != 0 && text[0])
            end = n;
    }
    out[end] = '\0';
}

static inline int vt_used(const vt *t, int row) {
    int used = 0;
    for (int col = 0; col < t->columns; col++)
        if (t->cells[row][col].text[0] || t->cells[row][col].right_half)
            used = col + 1;
    return used;
}

/* Another size: rows that are too long are broken, and what does not fit leaves at the top. */
static inline void vt_resize(vt *t, int columns, int rows) {
    vt *old = malloc(sizeof *old);
    *old = *t;
    memset(t->cells, 0, sizeof t->cells);
    t->columns = columns;
    t->rows = VT_ROWS;
    t->row = t->col = 0;
    int cursor_row = 0;
    for (int row = 0; row <= old->row || (row < old->rows && vt_used(old, row)); row++) {
        int used = vt_used(old, row), parts = used > columns ? (used + columns - 1) / columns : 1;
        if (row == old->row) {
            cursor_row = t->row + old->col / columns;
            t->col = old->col % columns;
        }
        for (int col = 0; col < used; col++)
            t->cells[t->row + col / columns][col % columns] = old->cells[row][col];
        t->row += parts;
    }
    t->row = cursor_row;
    t->waits = false;
    for (; t->row >= rows; t->row--)
        vt_scroll(t);
    memset(t->cells[rows], 0, sizeof t->cells[0] * (size_t)(VT_ROWS - rows));
    t->rows = rows;
    free(old);
}

#endif
