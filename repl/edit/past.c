/* past.c: see past.h. */
#include "repl/edit/past.h"

#include <stdlib.h>
#include <string.h>

static bool same(const bytes *a, const char *text, size_t n) {
    return a->len == n && (n == 0 || memcmp(a->at, text, n) == 0);
}

static bool begins(const bytes *a, const char *text, size_t n) {
    return a->len >= n && (n == 0 || memcmp(a->at, text, n) == 0);
}

/* Room for one more, in both lists, with a place for the draft of what is being written. */
static bool make_room(past *p) {
    if (p->n + 2 <= p->room)
        return true;
    size_t room = p->room * 2 + 64;
    bytes *items = realloc(p->items, room * sizeof *items);
    if (!items)
        return false;
    p->items = items;
    bytes *drafts = realloc(p->drafts, room * sizeof *drafts);
    if (!drafts)
        return false;
    p->drafts = drafts;
    memset(drafts + p->room, 0, (room - p->room) * sizeof *drafts);
    p->room = room;
    return true;
}

bool past_add(past *p, const char *text, size_t n) {
    if (n == 0 || (p->n > 0 && same(&p->items[p->n - 1], text, n)))
        return true;
    bytes item = {0};
    if (!make_room(p) || !bytes_add(&item, text, n))
        return false;
    bool newest = p->at == p->n;
    p->items[p->n] = item;
    p->drafts[p->n + 1] = p->drafts[p->n];
    p->drafts[p->n++] = (bytes){0};
    p->at += newest;
    return true;
}

/* What stands at a place; NULL: nothing, which place n alone may be. */
static const bytes *shown(const past *p, size_t place) {
    if (place < p->room && p->drafts[place].at)
        return &p->drafts[place];
    return place < p->n ? &p->items[place] : NULL;
}

const bytes *past_go(past *p, size_t place, const bytes *text) {
    static const bytes none;
    const bytes *before = shown(p, p->at);
    bool changed = !same(before ? before : &none, text->at, text->len);
    if (changed && !(make_room(p) && bytes_set(&p->drafts[p->at], text->at, text->len)))
        return text;
    p->at = place;
    const bytes *found = shown(p, place);
    return found ? found : &none;
}

size_t past_find_prefix(const past *p, size_t from, bool back, const char *prefix, size_t n,
                        const bytes *text) {
    while (back ? from > 0 : from < p->n) {
        from = back ? from - 1 : from + 1;
        const bytes *item = shown(p, from);
        if (from == p->n || (begins(item, prefix, n) && !same(item, text->at, text->len)))
            return from;
    }
    return p->n + 1;
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool has_capitals(const bytes *b) {
    for (size_t i = 0; i < b->len; i++)
        if (lower(b->at[i]) != b->at[i])
            return true;
    return false;
}

bool past_holds(const bytes *text, const bytes *query, size_t *at) {
    bool exact = has_capitals(query);
    for (size_t i = 0; i + query->len <= text->len; i++) {
        size_t k = 0;
        while (k < query->len && (exact ? text->at[i + k] : lower(text->at[i + k])) == query->at[k])
            k++;
        if (k == query->len) {
            *at = i;
            return true;
        }
    }
    return false;
}

const bytes *past_suggest(const past *p, const char *text, size_t n) {
    for (size_t i = p->n; n > 0 && i-- > 0;)
        if (p->items[i].len > n && begins(&p->items[i], text, n))
            return &p->items[i];
    return NULL;
}

void past_reset(past *p) {
    for (size_t i = 0; i < p->room; i++)
        bytes_clear(&p->drafts[i]);
    p->at = p->n;
}

void past_clear(past *p) {
    past_reset(p);
    for (size_t i = 0; i < p->n; i++)
        bytes_clear(&p->items[i]);
    free(p->items);
    free(p->drafts);
    *p = (past){0};
}
