/* changes.c: the keys that change the text. What goes wrong for want of memory leaves it as it was,
 * and the next key may do better.
 */
#include "repl/edit/actions.h"
#include "repl/edit/glyph.h"

#include "repl/session/lex.h"

#include <string.h>

static void replace(editor *e, size_t start, size_t end, const char *text, size_t n) {
    bool done = buffer_replace(&e->buf, start, end, text, n);
    (void)done;
}

static void insert(editor *e, const char *text, size_t n) {
    replace(e, e->buf.cursor, e->buf.cursor, text, n);
}

/* ---- indentation ---- */

static void insert_blanks(editor *e, size_t n) {
    enum { DEEPEST = 64 * EDIT_INDENT }; /* the lexer counts no further */
    char blanks[DEEPEST];
    memset(blanks, ' ', sizeof blanks);
    insert(e, blanks, n < DEEPEST ? n : DEEPEST);
}

/* What a line behind the n bytes of text begins with. A cell's magic has lines of its own kind, and
 * in a string each blank counts. */
static size_t indent_behind(editor *e, size_t n) {
    const char *text = e->buf.text.at;
    if (n == 0 || (n >= 2 && text[0] == '%' && text[1] == '%'))
        return 0;
    if (e->blocks.at >= e->buf.same || e->blocks.at > n) /* its last token may go on */
        e->blocks = (lex_blocks){0};
    lex_token last;
    int open = lex_blocks_read(&e->blocks, text, n, &last);
    e->buf.same = e->buf.text.len;
    bool in_string = last.kind == LEX_STRING && last.unfinished;
    return in_string ? 0 : (size_t)EDIT_INDENT * (size_t)open;
}

/* Takes n blanks off the front of a line; the cursor stays with its letter. */
static void take_off(editor *e, size_t start, size_t n) {
    size_t cursor = e->buf.cursor;
    replace(e, start, start + n, "", 0);
    e->buf.cursor = cursor >= start + n ? cursor - n : cursor > start ? start : cursor;
}

edit_outcome edit_dedent(editor *e, const key *k) {
    (void)k;
    size_t start = buffer_line_start(&e->buf, e->buf.cursor);
    size_t blank = buffer_indent_end(&e->buf, start) - start;
    take_off(e, start, blank < EDIT_INDENT ? blank : EDIT_INDENT);
    return EDIT_ON;
}

/* Does the word or bracket close a block? */
static bool closes_block(const char *word, size_t len) {
    static const char *const words[] = {"end", "else", "elseif", "until", "}", ")", "]"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == len && memcmp(words[i], word, len) == 0)
            return true;
    return false;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A line that begins with what closes a block stands a step further left than the line before made
 * it; where that word goes on (`endless`), it moves back. */
static void fit_indent(editor *e) {
    enum { LONGEST = 16 };
    const buffer *b = &e->buf;
    size_t at = b->cursor, word = at;
    while (word > 0 && at - word < LONGEST && is_letter(b->text.at[word - 1]))
        word--;
    if (word == at && at > 0)
        word--;
    size_t start = word;
    while (start > 0 && b->text.at[start - 1] == ' ')
        start--;
    if (start > 0 && b->text.at[start - 1] != '\n')
        return;
    size_t given = word - start, due = start > 0 ? indent_behind(e, start - 1) : 0;
    bool closes = closes_block(b->text.at + word, at - word);
    if (closes && !e->dedented && due >= EDIT_INDENT && given == due) {
        take_off(e, start, EDIT_INDENT);
        e->dedented = true;
    } else if (!closes && e->dedented && given + EDIT_INDENT == due && at - word > 1) {
        e->buf.cursor = start;
        insert_blanks(e, EDIT_INDENT);
        e->buf.cursor = at + EDIT_INDENT;
        e->dedented = false;
    }
}

/* ---- what is put in ---- */

/* Text that comes in a burst and brings its own indentation, as a terminal without bracketed paste
 * sends it: ours is taken back. */
static bool give_way(editor *e) {
    size_t start = buffer_line_start(&e->buf, e->buf.cursor);
    if (!e->more || e->before != DID_NEWLINE)
        return false;
    replace(e, start, e->buf.cursor, "", 0);
    return true;
}

void edit_indent_step(editor *e) {
    size_t column = e->buf.cursor - buffer_line_start(&e->buf, e->buf.cursor);
    if (e->more && (give_way(e) || e->before == DID_TYPE_BLANK)) {
        insert(e, "\t", 1);
        e->did = DID_TYPE_BLANK;
    } else {
        insert_blanks(e, EDIT_INDENT - column % EDIT_INDENT);
    }
}

edit_outcome edit_type(editor *e, const key *k) {
    bool blank = k->code == ' ';
    bool goes_on = e->before == DID_TYPE || (blank && e->before == DID_TYPE_BLANK);
    if (!goes_on) {
        buffer_begin_step(&e->buf);
        e->dedented = e->dedented && e->before == DID_TYPE_BLANK;
    }
    if (blank)
        give_way(e);
    insert(e, k->text, k->len);
    e->did = blank ? DID_TYPE_BLANK : DID_TYPE;
    if (!blank)
        fit_indent(e);
    return EDIT_ON;
}

edit_outcome edit_paste(editor *e, const bytes *text) {
    buffer_begin_step(&e->buf);
    insert(e, text->at, text->len);
    return EDIT_ON;
}

/* Is what is written an input to run? A line that is blank behind the last one counts as such. */
static bool is_whole(const editor *e) {
    const bytes *text = &e->buf.text;
    if (!e->host.is_whole || text->len == 0)
        return true;
    if (text->at[text->len - 1] != '\n')
        return e->host.is_whole(e->host.ctx, text->at, text->len);
    bytes code = {0};
    bool whole = bytes_add(&code, text->at, text->len) && bytes_add(&code, "\n", 1) &&
                 e->host.is_whole(e->host.ctx, code.at, code.len);
    bytes_clear(&code);
    return whole;
}

edit_outcome edit_open_line(editor *e, const key *k) {
    (void)k;
    buffer *b = &e->buf;
    size_t start = buffer_line_start(b, b->cursor), indent = indent_behind(e, b->cursor);
    bool blank = buffer_indent_end(b, start) >= b->cursor;
    if (blank && start < b->cursor) /* nothing but our own blanks stand there */
        replace(e, start, b->cursor, "\n", 1);
    else
        insert(e, "\n", 1);
    insert_blanks(e, indent);
    e->did = DID_NEWLINE;
    e->dedented = false;
    return EDIT_ON;
}

edit_outcome edit_enter(editor *e, const key *k) {
    if (is_whole(e))
        return EDIT_ACCEPTED;
    return edit_open_line(e, k);
}

/* ---- what is taken away ---- */

edit_outcome edit_delete(editor *e, const key *k) {
    (void)k;
    replace(e, e->buf.cursor, buffer_next(&e->buf, e->buf.cursor), "", 0);
    return EDIT_ON;
}

/* The end of input also where nothing but our blanks stand on the last line. */
edit_outcome edit_delete_or_end(editor *e, const key *k) {
    const buffer *b = &e->buf;
    size_t start = buffer_line_start(b, b->cursor);
    bool blank = buffer_indent_end(b, start) == b->text.len;
    if (b->text.len == 0 || (start > 0 && blank))
        return EDIT_ENDED;
    return edit_delete(e, k);
}

/* Within the blanks that a line begins with, a step of them. */
edit_outcome edit_backspace(editor *e, const key *k) {
    (void)k;
    const buffer *b = &e->buf;
    size_t at = b->cursor, start = buffer_line_start(b, at), from = buffer_before(b, at);
    size_t column = at - start;
    bool blank = column > 0;
    for (size_t i = start; i < at; i++)
        blank = blank && b->text.at[i] == ' ';
    if (blank)
        from = start + (column - 1) / EDIT_INDENT * EDIT_INDENT;
    replace(e, from, at, "", 0);
    return EDIT_ON;
}

static edit_outcome kill(editor *e, size_t start, size_t end) {
    bool forward = start == e->buf.cursor;
    ring_join join = e->before != DID_KILL ? RING_NEW : forward ? RING_APPEND : RING_PREPEND;
    if (start < end) {
        ring_add(&e->kills, e->buf.text.at + start, end - start, join);
        replace(e, start, end, "", 0);
        e->did = DID_KILL;
    }
    return EDIT_ON;
}

edit_outcome edit_kill_line(editor *e, const key *k) {
    (void)k;
    size_t at = e->buf.cursor, end = buffer_line_end(&e->buf, at);
    return kill(e, at, end == at ? buffer_next(&e->buf, at) : end);
}

edit_outcome edit_kill_to_start(editor *e, const key *k) {
    (void)k;
    size_t at = e->buf.cursor, start = buffer_line_start(&e->buf, at);
    return kill(e, start == at ? buffer_before(&e->buf, at) : start, at);
}

edit_outcome edit_kill_word(editor *e, const key *k) {
    (void)k;
    return kill(e, e->buf.cursor, buffer_word_end(&e->buf, e->buf.cursor));
}

edit_outcome edit_kill_word_before(editor *e, const key *k) {
    (void)k;
    return kill(e, buffer_word_start(&e->buf, e->buf.cursor), e->buf.cursor);
}

edit_outcome edit_kill_blank_word(editor *e, const key *k) {
    (void)k;
    return kill(e, buffer_blank_start(&e->buf, e->buf.cursor), e->buf.cursor);
}

edit_outcome edit_yank(editor *e, const key *k) {
    (void)k;
    const bytes *text = ring_newest(&e->kills);
    if (text) {
        e->yanked = e->buf.cursor;
        insert(e, text->at, text->len);
        e->did = DID_YANK;
    }
    return EDIT_ON;
}

edit_outcome edit_yank_pop(editor *e, const key *k) {
    (void)k;
    const bytes *text = e->before == DID_YANK ? ring_older(&e->kills) : NULL;
    if (text) {
        replace(e, e->yanked, e->buf.cursor, text->at, text->len);
        e->did = DID_YANK;
    }
    return EDIT_ON;
}

/* ---- what is turned ---- */

/* The group before the cursor changes places with the one under it, or at the end of a line with
 * the one before. */
edit_outcome edit_transpose(editor *e, const key *k) {
    (void)k;
    const buffer *b = &e->buf;
    size_t at = b->cursor;
    if (at == buffer_line_end(b, at))
        at = buffer_before(b, at);
    size_t first = buffer_before(b, at), end = buffer_next(b, at);
    if (at == buffer_line_start(b, at) || end == at)
        return EDIT_ON;
    bytes turned = {0};
    if (bytes_add(&turned, b->text.at + at, end - at) &&
        bytes_add(&turned, b->text.at + first, at - first))
        replace(e, first, end, turned.at, turned.len);
    bytes_clear(&turned);
    return EDIT_ON;
}

static char upper(char c) {
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The letters of the word at the cursor, the first one by `first`; only ASCII has both cases here,
 * as in Lua's names. */
static edit_outcome turn_case(editor *e, char (*first)(char), char (*others)(char)) {
    size_t at = e->buf.cursor, end = buffer_word_end(&e->buf, at);
    bytes word = {0};
    bool begun = false;
    if (!bytes_add(&word, e->buf.text.at + at, end - at))
        return EDIT_ON;
    for (size_t i = 0; i < word.len; i++) {
        word.at[i] = begun ? others(word.at[i]) : first(word.at[i]);
        begun = begun || is_letter(word.at[i]);
    }
    replace(e, at, end, word.at, word.len);
    bytes_clear(&word);
    return EDIT_ON;
}

edit_outcome edit_upcase(editor *e, const key *k) {
    (void)k;
    return turn_case(e, upper, upper);
}

edit_outcome edit_downcase(editor *e, const key *k) {
    (void)k;
    return turn_case(e, lower, lower);
}

edit_outcome edit_capitalize(editor *e, const key *k) {
    (void)k;
    return turn_case(e, upper, lower);
}

edit_outcome edit_undo(editor *e, const key *k) {
    (void)k;
    buffer_undo(&e->buf);
    return EDIT_ON;
}

edit_outcome edit_redo(editor *e, const key *k) {
    (void)k;
    buffer_redo(&e->buf);
    return EDIT_ON;
}
