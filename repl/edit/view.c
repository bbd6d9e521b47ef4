/* view.c: see view.h. Text is laid out by a pen that walks over rows; only those within the window
 * are put into the frame, so that a huge text costs a walk and no memory.
 */
#include "repl/edit/view.h"

#include "repl/edit/glyph.h"

#include <stdlib.h>
#include <string.h>

enum { TAB = 4, MENU_ROWS = 8, MATCH_ROWS = 6, GROUP_BYTES = 64, HINT_LIMIT = 1 << 14 };

typedef struct pen {
    frame *f; /* NULL: it only measures */
    int width;
    size_t row, top, rows; /* where it is; the window */
    int col, tab;          /* `tab`: columns since the line began */
} pen;

/* ---- the pen ---- */

static void put(pen *p, const char *text, size_t len, int width, style s) {
    if (p->col + width > p->width) {
        p->row++;
        p->col = 0;
    }
    if (p->f && p->row >= p->top && p->row - p->top < p->rows)
        frame_put(p->f, (int)(p->row - p->top), text, len, width, s);
    p->col += width;
    p->tab += width;
}

static void put_text(pen *p, const char *text, style s) {
    size_t len = strlen(text);
    for (size_t at = 0, next; at < len; at = next) {
        next = glyph_next(text, len, at);
        put(p, text + at, next - at, (int)glyph_columns(text + at, next - at), s);
    }
}

static void begin_line(pen *p, const char *prompt, style s) {
    p->row++;
    p->col = 0;
    put_text(p, prompt, s);
    p->tab = 0;
}

/* The pen's place as the cursor's: a full row has none behind its last column. */
static void settle(pen *p) {
    if (p->col >= p->width) {
        p->row++;
        p->col = 0;
    }
    if (p->f && p->row >= p->top && p->row - p->top < p->rows)
        frame_touch(p->f, (int)(p->row - p->top));
}

/* A group of code points that a terminal can be sent: marks that it can't show are left out, and a
 * mark that lies upon nothing lies upon a blank. */
static void put_group(pen *p, const char *text, size_t len, style s) {
    char shown[GROUP_BYTES + 8];
    size_t n = 0;
    glyph first = glyph_read(text, len);
    int width = first.bad || !glyph_is_plain(first.code) ? 1 : glyph_width(first.code);
    bool odd = first.bad || (!glyph_is_plain(first.code) && glyph_width(first.code) > 0);
    if (odd) {
        memcpy(shown, "\xEF\xBF\xBD", n = 3);
    } else if (width == 0 || !glyph_is_plain(first.code)) {
        shown[n++] = ' ';
        width = 1;
    }
    for (size_t at = odd ? first.len : 0; at < len;) {
        glyph g = glyph_read(text + at, len - at);
        if (glyph_is_plain(g.code) && n + g.len <= GROUP_BYTES) {
            memcpy(shown + n, text + at, g.len);
            n += g.len;
        }
        at += g.len;
    }
    put(p, shown, n, width, odd ? STYLE_ODD : s);
}

/* Whatever stands at `at`, but for line ends. */
static void put_any(pen *p, const char *text, size_t len, style s) {
    unsigned char c = (unsigned char)text[0];
    if (c == '\t') {
        for (int n = TAB - p->tab % TAB; n > 0; n--)
            put(p, " ", 1, 1, s);
    } else if (c < ' ' || c == 0x7F) {
        char name = (char)(c ^ 0x40);
        put(p, "^", 1, 1, STYLE_ODD);
        put(p, &name, 1, 1, STYLE_ODD);
    } else if (len == 1 && c < 0x80) {
        put(p, text, 1, 1, s);
    } else {
        put_group(p, text, len, s);
    }
}

/* ---- the text ---- */

/* What is shown as the input, and where in it the cursor is. */
typedef struct shown_text {
    const bytes *text;
    size_t cursor;
    const bytes *styles;
    const char *ghost;
    size_t ghost_len;
} shown_text;

static void put_ghost(pen *p, const shown_text *t) {
    const char *newline = t->ghost_len ? memchr(t->ghost, '\n', t->ghost_len) : NULL;
    size_t len = newline ? (size_t)(newline - t->ghost) : t->ghost_len;
    for (size_t at = 0, next; at < len; at = next) {
        next = glyph_next(t->ghost, len, at);
        put_any(p, t->ghost + at, next - at, STYLE_GHOST);
    }
    if (newline)
        put_text(p, " …", STYLE_GHOST);
}

/* Writes prompts and text; returns the row of the cursor, whose column is given out. */
static size_t put_input(const view *v, pen *p, const shown_text *t, int *column) {
    const char *text = t->text->at;
    size_t len = t->text->len, cursor_row = 0;
    put_text(p, v->prompt, STYLE_PROMPT);
    p->tab = 0;
    for (size_t at = 0, next;; at = next) {
        if (at == t->cursor) {
            pen here = *p;
            settle(&here);
            cursor_row = here.row;
            *column = here.col;
        }
        if (at == len)
            break;
        next = glyph_next(text, len, at);
        if (text[at] == '\n')
            begin_line(p, v->next_prompt, STYLE_PROMPT_NEXT);
        else
            put_any(p, text + at, next - at, (style)t->styles->at[at]);
    }
    put_ghost(p, t);
    put_text(p, v->mark ? v->mark : "", STYLE_PLAIN);
    return cursor_row;
}

/* The rows of the window: as far as the cursor needs it, another than before. */
static size_t choose_top(size_t top, size_t row, size_t rows, size_t total) {
    if (row < top)
        top = row;
    if (row >= top + rows)
        top = row - rows + 1;
    return top + rows > total ? (total > rows ? total - rows : 0) : top;
}

/* Lays the input into at most `rows` rows of the frame; the cursor goes with it. */
static void show_input(const view *v, editor *e, frame *f, const shown_text *t, size_t rows) {
    pen measure = {.width = v->width};
    int column = 0;
    size_t row = put_input(v, &measure, t, &column);
    size_t total = measure.row + 1;
    total = row + 1 > total ? row + 1 : total;
    e->top = v->done ? 0 : choose_top(e->top, row, rows, total);
    pen p = {.f = f, .width = v->width, .top = e->top, .rows = v->done ? total : rows};
    put_input(v, &p, t, &column);
    f->row = (int)(row - e->top);
    f->col = column;
}

/* ---- what stands below ---- */

/* Writes text into the frame's row, cut where the width ends; controls become blanks. */
static void put_cut(frame *f, int row, const char *text, style s) {
    size_t len = strlen(text);
    bool cut = frame_touch(f, row) && f->used[row] + (int)glyph_columns(text, len) > f->width;
    for (size_t at = 0, next; at < len; at = next) {
        next = glyph_next(text, len, at);
        pen p = {.f = f,
                 .width = f->width,
                 .row = (size_t)row,
                 .rows = (size_t)row + 1,
                 .col = f->used[row]};
        int width = (int)glyph_columns(text + at, next - at);
        if (f->used[row] + width > f->width - cut) {
            put_text(&p, "…", s);
            return;
        }
        if ((unsigned char)text[at] < ' ')
            put(&p, " ", 1, 1, s);
        else
            put_any(&p, text + at, next - at, s);
    }
}

/* A signature, in which STX and ETX stand around the parameter that is being written. */
static void put_signature(frame *f, int row, char *text) {
    char *first = strchr(text, '\x02'), *last = first ? strchr(first, '\x03') : NULL;
    if (!last) {
        put_cut(f, row, text, STYLE_HINT);
        return;
    }
    *first = *last = '\0';
    put_cut(f, row, text, STYLE_HINT);
    put_cut(f, row, first + 1, STYLE_CURRENT);
    put_cut(f, row, last + 1, STYLE_HINT);
}

static void pad_to(frame *f, int row, int column, style s) {
    while (frame_touch(f, row) && f->used[row] < column && f->used[row] < f->width)
        if (!frame_put(f, row, " ", 1, 1, s))
            return;
}

/* The note of a choice is asked for when it is shown first. */
static const char *note_of(editor *e, edit_choice *c) {
    const buffer *b = &e->buf;
    size_t start = e->menu.choices.start;
    if (!c->note && e->host.note && b->text.len < HINT_LIMIT) {
        bytes code = {0};
        if (bytes_add(&code, b->text.at, start) && bytes_add_text(&code, c->text))
            c->note = e->host.note(e->host.ctx, code.at, code.len, code.len);
        bytes_clear(&code);
    }
    if (!c->note)
        c->note = calloc(1, 1);
    return c->note ? c->note : "";
}

static int widest(const menu *m, int from, int to, bool kind) {
    int wide = 0;
    for (int i = from; i < to && i < m->choices.n; i++) {
        const char *text = kind ? m->choices.items[i].kind : m->choices.items[i].text;
        int width = (int)glyph_columns(text, strlen(text));
        wide = width > wide ? width : wide;
    }
    return wide;
}

static void show_choice(editor *e, frame *f, int row, int i, int name_width, int kind_width) {
    edit_choice *c = &e->menu.choices.items[i];
    bool chosen = i == e->menu.chosen;
    style s = chosen ? STYLE_CHOSEN : STYLE_PLAIN;
    put_cut(f, row, chosen ? "> " : "  ", s);
    put_cut(f, row, c->text, s);
    if (2 + name_width + 2 + kind_width > f->width)
        return;
    pad_to(f, row, 2 + name_width + 2, STYLE_PLAIN);
    put_cut(f, row, c->kind, STYLE_HINT);
    const char *note = note_of(e, c);
    if (!note[0] || f->used[row] + 12 > f->width)
        return;
    pad_to(f, row, 2 + name_width + 2 + kind_width + 2, STYLE_PLAIN);
    put_cut(f, row, note, STYLE_HINT);
}

/* The last row: which part of a long list is shown, and the signature of what is chosen. */
static void show_foot(editor *e, frame *f, int row, int shown, bool counted) {
    menu *m = &e->menu;
    int last = m->top + shown < m->choices.n ? m->top + shown : m->choices.n;
    bytes line = {0};
    put_cut(f, row, "  ", STYLE_HINT);
    if (counted && bytes_add_format(&line, "%d-%d of %d  ", m->top + 1, last, m->choices.n) &&
        bytes_add(&line, "", 1))
        put_cut(f, row, line.at, STYLE_HINT);
    bytes_clear(&line);
    const buffer *b = &e->buf;
    if (m->chosen < 0 || !e->host.signature || b->text.len > HINT_LIMIT)
        return;
    if (bytes_add(&line, b->text.at, m->end) && bytes_add(&line, "(", 1)) {
        char *hint = e->host.signature(e->host.ctx, line.at, line.len, line.len);
        if (hint)
            put_signature(f, row, hint);
        free(hint);
    }
    bytes_clear(&line);
}

/* Choices side by side, names alone, where they are more than there are rows: column by column. */
static void show_columns(editor *e, frame *f, int lines, int columns, int wide) {
    menu *m = &e->menu;
    int first = f->rows;
    for (int i = 0; i < lines * columns && m->top + i < m->choices.n; i++) {
        int row = first + i % lines, at = m->top + i;
        style s = at == m->chosen ? STYLE_CHOSEN : STYLE_PLAIN;
        pad_to(f, row, i / lines * wide, STYLE_PLAIN);
        put_cut(f, row, at == m->chosen ? "> " : "  ", s);
        put_cut(f, row, m->choices.items[at].text, s);
    }
}

static void show_menu(editor *e, frame *f, int rows) {
    menu *m = &e->menu;
    int lines = rows > 1 ? rows - 1 : rows, first = f->rows, columns = 1, wide = 0;
    if (m->choices.n > lines) {
        wide = widest(m, 0, m->choices.n, false) + 4;
        columns = f->width / wide > 1 ? f->width / wide : 1;
        int needed = (m->choices.n + columns - 1) / columns;
        lines = needed < lines ? needed : lines;
    }
    int shown = lines * columns;
    bool counted = m->choices.n > shown;
    menu_scroll(m, shown);
    if (columns > 1) {
        show_columns(e, f, lines, columns, wide);
    } else {
        int name_width = widest(m, m->top, m->top + shown, false);
        int kind_width = widest(m, m->top, m->top + shown, true);
        name_width = name_width < f->width / 2 ? name_width : f->width / 2;
        for (int i = 0; i < shown && m->top + i < m->choices.n; i++)
            show_choice(e, f, first + i, m->top + i, name_width, kind_width);
    }
    if (rows > 1 && (counted || m->chosen >= 0))
        show_foot(e, f, f->rows, shown, counted);
}

/* The line of the search with the cursor, and below it other inputs that it finds. */
static void show_search(editor *e, frame *f, int rows) {
    edit_search *s = &e->search;
    int row = f->rows;
    bytes query = {0};
    if (bytes_add(&query, s->query.at, s->query.len) && bytes_add(&query, "", 1)) {
        put_cut(f, row, "search: ", STYLE_PROMPT_NEXT);
        put_cut(f, row, query.at, STYLE_PLAIN);
        f->row = row;
        f->col = f->used[row] < f->width ? f->used[row] : f->width - 1;
        if (s->n == 0 && s->query.len > 0)
            put_cut(f, row, "  (nothing)", STYLE_HINT);
    }
    bytes_clear(&query);
    int first = s->chosen >= rows - 1 ? s->chosen - rows + 2 : 0;
    for (int i = 0; i < rows - 1 && first + i < s->n; i++) {
        const bytes *item = &e->past.items[s->matches[first + i]];
        bool chosen = first + i == s->chosen;
        bytes line = {0};
        if (bytes_add(&line, item->at, item->len < 1024 ? item->len : 1024) &&
            bytes_add(&line, "", 1)) {
            put_cut(f, row + 1 + i, chosen ? "> " : "  ", chosen ? STYLE_CHOSEN : STYLE_HINT);
            put_cut(f, row + 1 + i, line.at, chosen ? STYLE_CHOSEN : STYLE_HINT);
        }
        bytes_clear(&line);
    }
}

static int menu_rows(const view *v, const editor *e) {
    const bytes *text = &e->buf.text;
    int left = v->height - 1; /* one below the choices */
    for (size_t i = 0; i <= text->len && left > MENU_ROWS; i++)
        left -= i == text->len || text->at[i] == '\n';
    int most = left > MENU_ROWS ? left : MENU_ROWS;
    return 1 + (e->menu.choices.n < most ? e->menu.choices.n : most);
}

/* How many rows below the text are wanted; a menu takes what the text's lines leave of the screen.
 */
static int rows_below(const view *v, const editor *e, const char *hint) {
    if (e->search.on)
        return 1 + (e->search.n < MATCH_ROWS ? e->search.n : MATCH_ROWS);
    if (menu_is_open(&e->menu))
        return menu_rows(v, e);
    return hint ? 1 : 0;
}

static char *find_hint(const view *v, editor *e) {
    const buffer *b = &e->buf;
    if (v->done || e->search.on || menu_is_open(&e->menu) || !e->host.signature ||
        b->text.len == 0 || b->text.len > HINT_LIMIT)
        return NULL;
    return e->host.signature(e->host.ctx, b->text.at, b->text.len, b->cursor);
}

void view_frame(const view *v, editor *e, frame *f) {
    frame_begin(f, v->width, v->color);
    bytes styles = {0};
    size_t found_at = 0;
    const bytes *found = v->done ? NULL : editor_found(e, &found_at);
    shown_text t = {.text = found ? found : &e->buf.text,
                    .cursor = found ? found_at : e->buf.cursor,
                    .styles = &styles};
    if (v->done)
        t.cursor = t.text->len;
    else
        t.ghost = editor_suggestion(e, &t.ghost_len);
    if (paint(&styles, t.text->at, t.text->len, v->done ? t.text->len + 1 : t.cursor)) {
        if (found)
            memset(styles.at + found_at, STYLE_FOUND, e->search.query.len);
        char *hint = find_hint(v, e);
        int below = v->done ? 0 : rows_below(v, e, hint);
        below = below < v->height ? below : v->height - 1;
        show_input(v, e, f, &t, (size_t)(v->height - below));
        if (below > 0 && e->search.on)
            show_search(e, f, below);
        else if (below > 0 && menu_is_open(&e->menu))
            show_menu(e, f, below);
        else if (below > 0 && hint)
            put_signature(f, f->rows, hint);
        free(hint);
    }
    bytes_clear(&styles);
}
