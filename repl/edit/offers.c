/* offers.c: the tabulator and the menu: what may stand at the cursor, offered and put in. */
#include "repl/edit/actions.h"

#include <string.h>

enum { PAGE = 8 };

/* Asks what may stand at the cursor; true when there is something. */
static bool ask(editor *e, edit_choices *out) {
    const buffer *b = &e->buf;
    *out = (edit_choices){.start = b->cursor, .end = b->cursor};
    if (e->host.complete)
        e->host.complete(e->host.ctx, b->text.at, b->text.len, b->cursor, out);
    if (out->n > 0 && out->start <= out->end && out->end <= b->text.len)
        return true;
    edit_choices_clear(out);
    return false;
}

/* Puts what is chosen, or again what was written, in its place. */
static void put(editor *e) {
    menu *m = &e->menu;
    size_t len;
    const char *text = menu_text(m, &len);
    if (buffer_replace(&e->buf, m->choices.start, m->end, text, len))
        m->end = m->choices.start + len;
}

static bool is_in_indent(const editor *e) {
    return buffer_indent_end(&e->buf, e->buf.cursor) >= e->buf.cursor;
}

/* One choice is put in; several as far as they agree, and then they are listed. */
edit_outcome edit_tab(editor *e, const key *k) {
    (void)k;
    edit_choices c;
    if (is_in_indent(e)) {
        edit_indent_step(e);
        return EDIT_ON;
    }
    if (!ask(e, &c))
        return EDIT_ON;
    size_t common = menu_common(&c);
    if (common >= c.end - c.start &&
        buffer_replace(&e->buf, c.start, c.end, c.items[0].text, common))
        c.end = c.start + common;
    if (c.n == 1 || !menu_open(&e->menu, &c, e->buf.text.at))
        edit_choices_clear(&c);
    return EDIT_ON;
}

static void move(editor *e, int by) {
    buffer_begin_step(&e->buf);
    menu_move(&e->menu, by);
    put(e);
}

bool edit_menu_key(editor *e, const key *k) {
    menu *m = &e->menu;
    bool chosen = m->chosen >= 0;
    switch (k->code) {
    case '\t':
    case KEY_DOWN:
    case KEY_CONTROL('N'):
        move(e, 1);
        return true;
    case KEY_BACK_TAB:
    case KEY_UP:
    case KEY_CONTROL('P'):
        move(e, -1);
        return true;
    case KEY_PAGE_DOWN:
        move(e, PAGE);
        return true;
    case KEY_PAGE_UP:
        move(e, -PAGE);
        return true;
    case KEY_ESCAPE:
    case KEY_CONTROL('G'):
        m->chosen = -1;
        if (chosen)
            put(e);
        menu_close(m);
        return true;
    case '\r':
    case '\n':
        if (chosen)
            menu_close(m);
        return chosen; /* nothing is chosen: the key means what it always does */
    default:
        return false;
    }
}

void edit_menu_renew(editor *e) {
    edit_choices c;
    if (!ask(e, &c) || c.start == c.end) {
        edit_choices_clear(&c);
        menu_close(&e->menu);
        return;
    }
    if (!menu_open(&e->menu, &c, e->buf.text.at))
        menu_close(&e->menu);
}
