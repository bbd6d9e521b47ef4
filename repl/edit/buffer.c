/* buffer.c: see buffer.h. */
#include "repl/edit/buffer.h"
#include "repl/edit/glyph.h"

#include <stdlib.h>
#include <string.h>

struct change {
    size_t at, cursor; /* where, and where the cursor was before */
    bytes removed, inserted;
    long step;
};

/* ---- changes ---- */

static void change_clear(change *c) {
    bytes_clear(&c->removed);
    bytes_clear(&c->inserted);
}

/* What was undone can't be made again when something else is done. */
static void forget_undone(buffer *b) {
    while (b->n_changes > b->done)
        change_clear(&b->changes[--b->n_changes]);
}

static bool make_room(buffer *b) {
    if (b->n_changes < b->room_changes)
        return true;
    size_t room = b->room_changes * 2 + 16;
    change *grown = realloc(b->changes, room * sizeof *grown);
    if (!grown)
        return false;
    b->changes = grown;
    b->room_changes = room;
    return true;
}

/* What is typed goes on in the change before. */
static bool extend_change(buffer *b, size_t start, size_t end, const char *text, size_t n) {
    change *last = b->n_changes > 0 ? &b->changes[b->n_changes - 1] : NULL;
    return last && last->step == b->step && start == end && start == b->cursor &&
           last->at + last->inserted.len == start && bytes_add(&last->inserted, text, n);
}

static bool note_change(buffer *b, size_t start, size_t end, const char *text, size_t n) {
    forget_undone(b);
    if (extend_change(b, start, end, text, n))
        return true;
    change c = {.at = start, .cursor = b->cursor, .step = b->step};
    if (!make_room(b) || !bytes_add(&c.removed, b->text.at + start, end - start) ||
        !bytes_add(&c.inserted, text, n)) {
        change_clear(&c);
        return false;
    }
    b->changes[b->n_changes++] = c;
    b->done = b->n_changes;
    return true;
}

/* A mark may lie upon what stands before the cursor now; ASCII is none. */
static void settle_cursor(buffer *b) {
    if (b->cursor == b->text.len || (unsigned char)b->text.at[b->cursor] < 0x80)
        return;
    size_t at = buffer_line_start(b, b->cursor);
    while (at < b->cursor)
        at = glyph_next(b->text.at, b->text.len, at);
    b->cursor = at;
}

static void touch(buffer *b, size_t at) {
    b->same = at < b->same ? at : b->same;
}

static void apply(buffer *b, size_t at, size_t removed, const bytes *inserted, size_t cursor) {
    if (!bytes_insert(&b->text, at + removed, inserted->at, inserted->len))
        return;
    bytes_remove(&b->text, at, removed);
    touch(b, at);
    b->cursor = cursor;
}

bool buffer_replace(buffer *b, size_t start, size_t end, const char *text, size_t n) {
    if (start == end && n == 0)
        return true;
    if (!note_change(b, start, end, text, n))
        return false;
    if (!bytes_insert(&b->text, end, text, n)) {
        change *last = &b->changes[b->n_changes - 1];
        last->inserted.len -= n;
        if (last->inserted.len == 0)
            change_clear(&b->changes[--b->n_changes]);
        b->done = b->n_changes;
        return false;
    }
    bytes_remove(&b->text, start, end - start);
    touch(b, start);
    b->cursor = start + n;
    settle_cursor(b);
    return true;
}

bool buffer_insert(buffer *b, const char *text, size_t n) {
    return buffer_replace(b, b->cursor, b->cursor, text, n);
}

void buffer_begin_step(buffer *b) {
    b->step++;
}

bool buffer_undo(buffer *b) {
    if (b->done == 0)
        return false;
    long step = b->changes[b->done - 1].step;
    while (b->done > 0 && b->changes[b->done - 1].step == step) {
        const change *c = &b->changes[--b->done];
        apply(b, c->at, c->inserted.len, &c->removed, c->cursor);
    }
    b->step++;
    return true;
}

bool buffer_redo(buffer *b) {
    if (b->done == b->n_changes)
        return false;
    long step = b->changes[b->done].step;
    while (b->done < b->n_changes && b->changes[b->done].step == step) {
        const change *c = &b->changes[b->done++];
        apply(b, c->at, c->removed.len, &c->inserted, c->at + c->inserted.len);
        settle_cursor(b);
    }
    b->step++;
    return true;
}

void buffer_reset(buffer *b) {
    b->done = 0;
    forget_undone(b);
    b->text.len = b->cursor = b->same = 0;
}

void buffer_clear(buffer *b) {
    buffer_reset(b);
    bytes_clear(&b->text);
    free(b->changes);
    *b = (buffer){0};
}

/* ---- places ---- */

size_t buffer_next(const buffer *b, size_t at) {
    return at < b->text.len ? glyph_next(b->text.at, b->text.len, at) : at;
}

size_t buffer_before(const buffer *b, size_t at) {
    return at > 0 ? glyph_before(b->text.at, at) : 0;
}

size_t buffer_line_start(const buffer *b, size_t at) {
    while (at > 0 && b->text.at[at - 1] != '\n')
        at--;
    return at;
}

size_t buffer_line_end(const buffer *b, size_t at) {
    const char *newline = at < b->text.len ? memchr(b->text.at + at, '\n', b->text.len - at) : NULL;
    return newline ? (size_t)(newline - b->text.at) : b->text.len;
}

static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_blank_byte(char c) {
    return c == ' ' || c == '\t' || c == '\n';
}

size_t buffer_word_end(const buffer *b, size_t at) {
    while (at < b->text.len && !is_word_byte(b->text.at[at]))
        at++;
    while (at < b->text.len && is_word_byte(b->text.at[at]))
        at++;
    return at;
}

size_t buffer_word_start(const buffer *b, size_t at) {
    while (at > 0 && !is_word_byte(b->text.at[at - 1]))
        at--;
    while (at > 0 && is_word_byte(b->text.at[at - 1]))
        at--;
    return at;
}

size_t buffer_blank_start(const buffer *b, size_t at) {
    while (at > 0 && is_blank_byte(b->text.at[at - 1]))
        at--;
    while (at > 0 && !is_blank_byte(b->text.at[at - 1]))
        at--;
    return at;
}

size_t buffer_indent_end(const buffer *b, size_t at) {
    at = buffer_line_start(b, at);
    while (at < b->text.len && (b->text.at[at] == ' ' || b->text.at[at] == '\t'))
        at++;
    return at;
}

size_t buffer_at_column(const buffer *b, size_t at, size_t columns) {
    size_t end = buffer_line_end(b, at);
    at = buffer_line_start(b, at);
    while (at < end) {
        size_t next = buffer_next(b, at), wide = glyph_columns(b->text.at + at, next - at);
        if (wide > columns)
            break;
        columns -= wide;
        at = next;
    }
    return at;
}
