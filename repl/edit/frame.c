/* frame.c: see frame.h. */
#include "repl/edit/frame.h"

#include <stdlib.h>
#include <string.h>

void frame_begin(frame *f, int width, bool color) {
    if (width != f->width) { /* the cells lie row by row */
        free(f->cells);
        free(f->used);
        f->cells = NULL;
        f->used = NULL;
        f->room = 0;
    }
    f->width = width;
    f->rows = f->row = f->col = 0;
    f->text.len = 0;
    f->color = color;
}

static bool make_room(frame *f, int rows) {
    if (rows <= f->room)
        return true;
    int room = rows + f->room;
    cell *cells = realloc(f->cells, (size_t)room * (size_t)f->width * sizeof *cells);
    if (!cells)
        return false;
    f->cells = cells;
    int *used = realloc(f->used, (size_t)room * sizeof *used);
    if (!used)
        return false;
    f->used = used;
    f->room = room;
    return true;
}

bool frame_touch(frame *f, int row) {
    if (!make_room(f, row + 1))
        return false;
    while (f->rows <= row)
        f->used[f->rows++] = 0;
    return true;
}

static cell *cell_at(const frame *f, int row, int col) {
    return &f->cells[(size_t)row * (size_t)f->width + (size_t)col];
}

const cell *frame_cell(const frame *f, int row, int col) {
    return cell_at(f, row, col);
}

bool frame_put(frame *f, int row, const char *text, size_t len, int width, style s) {
    if (!frame_touch(f, row) || f->used[row] + width > f->width)
        return false;
    uint32_t at = (uint32_t)f->text.len;
    len = len < UINT8_MAX ? len : UINT8_MAX;
    if (!bytes_add(&f->text, text, len))
        return false;
    uint8_t shown = (uint8_t)(f->color ? s : STYLE_PLAIN);
    for (int i = 0; i < width; i++)
        *cell_at(f, row, f->used[row]++) =
            i == 0 ? (cell){at, (uint8_t)len, (uint8_t)width, shown} : (cell){at, 0, 0, shown};
    return true;
}

bool frame_same(const frame *a, const frame *b, int row, int col) {
    const cell *x = cell_at(a, row, col), *y = cell_at(b, row, col);
    return x->len == y->len && x->width == y->width && x->style == y->style &&
           memcmp(a->text.at + x->at, b->text.at + y->at, x->len) == 0;
}

void frame_clear(frame *f) {
    free(f->cells);
    free(f->used);
    bytes_clear(&f->text);
    *f = (frame){0};
}
