/* moves.c: the keys that move the cursor. */
#include "repl/edit/actions.h"
#include "repl/edit/glyph.h"

/* Puts in the first n bytes of what is suggested. */
static void take_suggestion(editor *e, const char *text, size_t n) {
    bytes copy = {0};
    if (bytes_add(&copy, text, n) && buffer_insert(&e->buf, copy.at, copy.len))
        e->did = DID_OTHER;
    bytes_clear(&copy);
}

edit_outcome edit_left(editor *e, const key *k) {
    (void)k;
    e->buf.cursor = buffer_before(&e->buf, e->buf.cursor);
    return EDIT_ON;
}

edit_outcome edit_right(editor *e, const key *k) {
    (void)k;
    size_t len;
    const char *text = editor_suggestion(e, &len);
    if (text)
        take_suggestion(e, text, len);
    else
        e->buf.cursor = buffer_next(&e->buf, e->buf.cursor);
    return EDIT_ON;
}

edit_outcome edit_word_left(editor *e, const key *k) {
    (void)k;
    e->buf.cursor = buffer_word_start(&e->buf, e->buf.cursor);
    return EDIT_ON;
}

edit_outcome edit_word_right(editor *e, const key *k) {
    (void)k;
    size_t len;
    const char *text = editor_suggestion(e, &len);
    if (text) {
        buffer rest = {.text = {(char *)text, len, len}};
        take_suggestion(e, text, buffer_word_end(&rest, 0));
    } else {
        e->buf.cursor = buffer_word_end(&e->buf, e->buf.cursor);
    }
    return EDIT_ON;
}

/* The first letter of the line, and from there its first column. */
edit_outcome edit_line_start(editor *e, const key *k) {
    (void)k;
    size_t text = buffer_indent_end(&e->buf, e->buf.cursor);
    e->buf.cursor = e->buf.cursor == text ? buffer_line_start(&e->buf, text) : text;
    return EDIT_ON;
}

edit_outcome edit_line_end(editor *e, const key *k) {
    size_t len;
    if (editor_suggestion(e, &len))
        return edit_right(e, k);
    e->buf.cursor = buffer_line_end(&e->buf, e->buf.cursor);
    return EDIT_ON;
}

edit_outcome edit_text_start(editor *e, const key *k) {
    (void)k;
    e->buf.cursor = 0;
    return EDIT_ON;
}

edit_outcome edit_text_end(editor *e, const key *k) {
    (void)k;
    e->buf.cursor = e->buf.text.len;
    return EDIT_ON;
}

/* To the line that `at` lies in, to the column where the run of such moves began. */
static void move_to_line(editor *e, size_t at) {
    buffer *b = &e->buf;
    size_t start = buffer_line_start(b, b->cursor);
    if (e->before != DID_VERTICAL)
        e->column = glyph_columns(b->text.at + start, b->cursor - start);
    e->did = DID_VERTICAL;
    b->cursor = buffer_at_column(b, at, e->column);
}

edit_outcome edit_up(editor *e, const key *k) {
    (void)k;
    size_t start = buffer_line_start(&e->buf, e->buf.cursor);
    if (start > 0)
        move_to_line(e, start - 1);
    else
        edit_recall(e, true);
    return EDIT_ON;
}

edit_outcome edit_down(editor *e, const key *k) {
    (void)k;
    size_t end = buffer_line_end(&e->buf, e->buf.cursor);
    if (end < e->buf.text.len)
        move_to_line(e, end + 1);
    else
        edit_recall(e, false);
    return EDIT_ON;
}
