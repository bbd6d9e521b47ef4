/* recall.c: the keys that bring back inputs of before: one by one, those that begin as what is
 * written does, and those that hold what is searched for.
 */
#include "repl/edit/actions.h"
#include "repl/edit/glyph.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_MATCHES = 2000 };

/* Shows the input at a place, with the cursor at its end: keys up go through its lines, and from
 * the first one further back. */
static void show(editor *e, size_t place) {
    buffer *b = &e->buf;
    const bytes *text = past_go(&e->past, place, &b->text);
    if (text == &b->text || !buffer_replace(b, 0, b->text.len, text->at, text->len))
        return;
    b->cursor = b->text.len;
    e->top = 0;
}

/* A run of such keys looks for what was written before the cursor when it began, unless an input of
 * before is shown already. */
void edit_recall(editor *e, bool back) {
    past *p = &e->past;
    e->did = DID_RECALL;
    if (e->before != DID_RECALL &&
        !bytes_set(&e->prefix, e->buf.text.at, p->at == p->n ? e->buf.cursor : 0))
        return;
    size_t place = past_find_prefix(p, p->at, back, e->prefix.at, e->prefix.len, &e->buf.text);
    if (place <= p->n)
        show(e, place);
}

edit_outcome edit_older(editor *e, const key *k) {
    (void)k;
    if (e->past.at > 0)
        show(e, e->past.at - 1);
    return EDIT_ON;
}

edit_outcome edit_newer(editor *e, const key *k) {
    (void)k;
    if (e->past.at < e->past.n)
        show(e, e->past.at + 1);
    return EDIT_ON;
}

edit_outcome edit_oldest(editor *e, const key *k) {
    (void)k;
    if (e->past.n > 0)
        show(e, 0);
    return EDIT_ON;
}

edit_outcome edit_newest(editor *e, const key *k) {
    (void)k;
    show(e, e->past.n);
    return EDIT_ON;
}

/* ---- the search ---- */

static bool add_match(edit_search *s, size_t place) {
    if (s->n == s->room) {
        int room = s->room * 2 + 32;
        size_t *grown = realloc(s->matches, (size_t)room * sizeof *grown);
        if (!grown)
            return false;
        s->matches = grown;
        s->room = room;
    }
    s->matches[s->n++] = place;
    return true;
}

static bool is_listed(const editor *e, const bytes *text) {
    for (int i = 0; i < e->search.n; i++) {
        const bytes *other = &e->past.items[e->search.matches[i]];
        if (other->len == text->len && memcmp(other->at, text->at, text->len) == 0)
            return true;
    }
    return false;
}

static void find_matches(editor *e) {
    edit_search *s = &e->search;
    size_t at;
    s->n = s->chosen = 0;
    for (size_t i = e->past.n; s->query.len > 0 && i-- > 0 && s->n < MOST_MATCHES;) {
        const bytes *item = &e->past.items[i];
        if (past_holds(item, &s->query, &at) && !is_listed(e, item) && !add_match(s, i))
            return;
    }
}

const bytes *editor_found(const editor *e, size_t *at) {
    const edit_search *s = &e->search;
    if (!s->on || s->n == 0)
        return NULL;
    const bytes *text = &e->past.items[s->matches[s->chosen]];
    return past_holds(text, &s->query, at) ? text : NULL;
}

void edit_search_stop(editor *e) {
    e->search.on = false;
    e->search.n = e->search.chosen = 0;
    e->search.query.len = 0;
}

/* The match becomes the text, with the cursor where the query lies in it. */
static void take_match(editor *e) {
    size_t at, place = e->search.n > 0 ? e->search.matches[e->search.chosen] : 0;
    const bytes *found = editor_found(e, &at);
    edit_search_stop(e);
    if (!found)
        return;
    buffer_begin_step(&e->buf);
    show(e, place);
    e->buf.cursor = buffer_next(&e->buf, buffer_before(&e->buf, at));
    if (at == 0)
        e->buf.cursor = 0;
}

static edit_outcome search(editor *e, int by) {
    edit_search *s = &e->search;
    if (!s->on) {
        s->on = true;
        s->query.len = 0;
        find_matches(e);
    } else if (s->chosen + by >= 0 && s->chosen + by < s->n) {
        s->chosen += by;
    }
    return EDIT_ON;
}

edit_outcome edit_search_older(editor *e, const key *k) {
    (void)k;
    return search(e, 1);
}

edit_outcome edit_search_newer(editor *e, const key *k) {
    (void)k;
    return search(e, -1);
}

static void change_query(editor *e, const char *text, size_t n) {
    const char *newline = n ? memchr(text, '\n', n) : NULL;
    if (bytes_add(&e->search.query, text, newline ? (size_t)(newline - text) : n))
        find_matches(e);
}

static void shorten_query(editor *e) {
    bytes *query = &e->search.query;
    query->len = query->len > 0 ? glyph_before(query->at, query->len) : 0;
    find_matches(e);
}

bool edit_search_key(editor *e, const key *k, const bytes *paste) {
    switch (k->code) {
    case KEY_CONTROL('G'):
        edit_search_stop(e);
        return true;
    case KEY_UP:
    case KEY_CONTROL('P'):
    case KEY_CONTROL('R'):
        search(e, 1);
        return true;
    case KEY_DOWN:
    case KEY_CONTROL('N'):
    case KEY_CONTROL('S'):
        search(e, -1);
        return true;
    case 0x7F:
    case KEY_CONTROL('H'):
        shorten_query(e);
        return true;
    case KEY_CONTROL('U'):
        e->search.query.len = 0;
        find_matches(e);
        return true;
    case KEY_PASTE:
        change_query(e, paste->at, paste->len);
        return true;
    case KEY_CONTROL('L'):
        return false;
    case KEY_ESCAPE:
    case '\t':
        take_match(e);
        return true;
    default:
        break;
    }
    bool text = k->len > 0 && k->code >= ' ' && k->code < KEY_UP;
    if (text || k->code == KEY_BYTE)
        change_query(e, k->text, k->len);
    else
        take_match(e);
    return text || k->code == KEY_BYTE;
}
