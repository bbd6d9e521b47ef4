/* menu.c: see menu.h. */
#include "repl/edit/menu.h"

#include "repl/edit/glyph.h"

#include <stdlib.h>
#include <string.h>

void edit_choices_clear(edit_choices *c) {
    for (int i = 0; i < c->n; i++) {
        free(c->items[i].text);
        free(c->items[i].kind);
        free(c->items[i].note);
    }
    free(c->items);
    *c = (edit_choices){0};
}

bool menu_is_open(const menu *m) {
    return m->choices.n > 0;
}

bool menu_open(menu *m, edit_choices *choices, const char *code) {
    menu_close(m);
    if (!bytes_set(&m->written, code + choices->start, choices->end - choices->start)) {
        edit_choices_clear(choices);
        return false;
    }
    m->choices = *choices;
    m->end = choices->end;
    *choices = (edit_choices){0};
    m->chosen = -1;
    return true;
}

void menu_close(menu *m) {
    edit_choices_clear(&m->choices);
    bytes_clear(&m->written);
    *m = (menu){.chosen = -1};
}

void menu_move(menu *m, int by) {
    int n = m->choices.n, to = m->chosen + by;
    bool single = by == 1 || by == -1;
    if (!single) /* by pages: stops at the ends */
        m->chosen = to < 0 ? 0 : to >= n ? n - 1 : to;
    else
        m->chosen = to < -1 ? n - 1 : to >= n ? -1 : to;
}

const char *menu_text(const menu *m, size_t *len) {
    const char *text = m->chosen < 0 ? m->written.at : m->choices.items[m->chosen].text;
    *len = m->chosen < 0 ? m->written.len : strlen(text);
    return text;
}

size_t menu_common(const edit_choices *c) {
    if (c->n == 0)
        return 0;
    const char *first = c->items[0].text;
    size_t n = strlen(first);
    for (int i = 1; i < c->n; i++) {
        size_t same = 0;
        while (same < n && first[same] == c->items[i].text[same])
            same++;
        n = same;
    }
    size_t whole = 0; /* no code point is parted */
    while (whole < n) {
        size_t next = whole + glyph_read(first + whole, strlen(first + whole)).len;
        if (next > n)
            break;
        whole = next;
    }
    return whole;
}

void menu_scroll(menu *m, int rows) {
    if (m->chosen >= 0 && m->chosen < m->top)
        m->top = m->chosen;
    if (m->chosen >= m->top + rows)
        m->top = m->chosen - rows + 1;
    if (m->chosen < 0 || m->top > m->choices.n - rows)
        m->top = m->chosen < 0 ? 0 : m->choices.n > rows ? m->choices.n - rows : 0;
}
