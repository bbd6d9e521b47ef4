/* test_edit_model.c: 100,000 random keys on the line editor and on a model that is as plain as can
 * be, which must have the same text; and what the editor writes, through a small terminal that
 * changes its size now and then, which must show what a plain rendering of that text does.
 *
 * usage: test_edit_model [SEED [KEYS]]
 */
#include "repl/session/lex.h"
#include "tests/repl/rig.h"

enum { MOST = 4096, UNDOS = 4096 };

/* ---- the model: strings, and copies of them ---- */

typedef struct text {
    char at[MOST];
    size_t len, cursor;
} text;

typedef struct model {
    text now;
    text *before; /* UNDOS of them: the text before each step */
    text *after;  /* and behind it */
    int done, n;  /* steps that hold; and with those undone */
    bool fresh;   /* the next change begins a step */
    char kills[16][MOST];
    int n_kills, shown; /* the newest comes first */
    char *past[64];
    char *drafts[65];
    size_t n_past, place;
    char prefix[MOST];
    size_t column, yanked;
    edit_deed did;
    bool dedented;
} model;

/* All places where a cursor may stand, found from the beginning. */
static size_t group_end(const text *t, size_t at) {
    return at < t->len ? glyph_next(t->at, t->len, at) : at;
}

static size_t group_start(const text *t, size_t at) {
    size_t start = 0;
    for (size_t i = 0; i < at; i = group_end(t, i))
        start = i;
    return start;
}

static size_t line_start(const text *t, size_t at) {
    while (at > 0 && t->at[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const text *t, size_t at) {
    while (at < t->len && t->at[at] != '\n')
        at++;
    return at;
}

static void model_replace(model *m, size_t start, size_t end, const char *with, size_t n) {
    text *t = &m->now;
    if (start == end && n == 0)
        return;
    if (m->fresh) {
        m->before[m->done++] = *t;
        m->n = m->done;
        m->fresh = false;
    }
    char tail[MOST];
    size_t rest = t->len - end;
    memcpy(tail, t->at + end, rest);
    memcpy(t->at + start, with, n);
    memcpy(t->at + start + n, tail, rest);
    t->len = start + n + rest;
    t->cursor = 0;
    while (t->cursor < start + n)
        t->cursor = group_end(t, t->cursor);
    m->after[m->done - 1] = *t;
}

static void model_insert(model *m, const char *with, size_t n) {
    model_replace(m, m->now.cursor, m->now.cursor, with, n);
}

static bool is_word(char c) {
    return (c && strchr("_0123456789", c)) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

static size_t word_right(const text *t, size_t at) {
    while (at < t->len && !is_word(t->at[at]))
        at++;
    while (at < t->len && is_word(t->at[at]))
        at++;
    return at;
}

static size_t word_left(const text *t, size_t at) {
    while (at > 0 && !is_word(t->at[at - 1]))
        at--;
    while (at > 0 && is_word(t->at[at - 1]))
        at--;
    return at;
}

static size_t blank_left(const text *t, size_t at) {
    while (at > 0 && strchr(" \t\n", t->at[at - 1]))
        at--;
    while (at > 0 && !strchr(" \t\n", t->at[at - 1]))
        at--;
    return at;
}

static void model_spaces(model *m, size_t n) {
    char blanks[4 * 64];
    memset(blanks, ' ', sizeof blanks);
    model_insert(m, blanks, n);
}

static size_t indent_of(const model *m, size_t len) {
    lex_token last = lex_last(m->now.at, len);
    bool is_cell = len >= 2 && memcmp(m->now.at, "%%", 2) == 0;
    bool in_string = last.kind == LEX_STRING && last.unfinished;
    return is_cell || in_string ? 0 : 4 * (size_t)lex_open_blocks(m->now.at, len);
}

/* The line up to the cursor is blanks and one word or bracket: does it close a block? */
static void model_fit(model *m) {
    static const char *const words[] = {"end", "else", "elseif", "until", "}", ")", "]"};
    text *t = &m->now;
    size_t start = line_start(t, t->cursor), at = t->cursor, blanks = 0;
    while (start + blanks < at && t->at[start + blanks] == ' ')
        blanks++;
    const char *word = t->at + start + blanks;
    size_t len = at - start - blanks;
    bool name = len > 0 && len <= 16, closes = false;
    for (size_t i = 0; i < len; i++)
        name = name && is_word(word[i]) && (unsigned char)word[i] < 0x80;
    if (!name && len != 1)
        return;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        closes = closes || (strlen(words[i]) == len && memcmp(words[i], word, len) == 0);
    size_t due = start > 0 ? indent_of(m, start - 1) : 0;
    if (closes && !m->dedented && due >= 4 && blanks == due) {
        model_replace(m, start, start + 4, "", 0);
        t->cursor = at - 4;
        m->dedented = true;
    } else if (!closes && m->dedented && blanks + 4 == due && len > 1) {
        model_replace(m, start, start, "    ", 4);
        t->cursor = at + 4;
        m->dedented = false;
    }
}

static void model_type(model *m, edit_deed before, const key *k) {
    bool blank = k->code == ' ';
    if (before != DID_TYPE && !(blank && before == DID_TYPE_BLANK)) {
        m->fresh = true;
        m->dedented = m->dedented && before == DID_TYPE_BLANK;
    }
    model_insert(m, k->text, k->len);
    m->did = blank ? DID_TYPE_BLANK : DID_TYPE;
    if (!blank)
        model_fit(m);
}

static void model_newline(model *m) {
    text *t = &m->now;
    size_t start = line_start(t, t->cursor), indent = indent_of(m, t->cursor), blanks = start;
    while (blanks < t->cursor && (t->at[blanks] == ' ' || t->at[blanks] == '\t'))
        blanks++;
    model_replace(m, blanks == t->cursor ? start : t->cursor, t->cursor, "\n", 1);
    model_spaces(m, indent);
    m->did = DID_NEWLINE;
    m->dedented = false;
}

static void model_kill(model *m, edit_deed before, size_t start, size_t end) {
    if (start >= end)
        return;
    bool forward = start == m->now.cursor;
    char piece[MOST], *top = m->kills[0];
    size_t n = end - start;
    memcpy(piece, m->now.at + start, n);
    if (before != DID_KILL) {
        memmove(m->kills[1], m->kills[0], sizeof m->kills[0] * 15);
        m->n_kills += m->n_kills < 16;
        top[0] = '\0';
    }
    size_t old = strlen(top);
    memmove(top + (forward ? 0 : n), top, old + 1);
    memcpy(top + (forward ? old : 0), piece, n);
    top[old + n] = '\0';
    m->shown = 0;
    model_replace(m, start, end, "", 0);
    m->did = DID_KILL;
}

static void model_yank(model *m, int which) {
    if (m->n_kills == 0)
        return;
    size_t from = which < 0 ? m->now.cursor : m->yanked;
    m->shown = which < 0 ? 0 : which % m->n_kills;
    m->yanked = from;
    model_replace(m, from, m->now.cursor, m->kills[m->shown], strlen(m->kills[m->shown]));
    m->did = DID_YANK;
}

static size_t columns(const text *t, size_t start, size_t end) {
    return glyph_columns(t->at + start, end - start);
}

static void model_vertical(model *m, edit_deed before, size_t into) {
    text *t = &m->now;
    size_t start = line_start(t, t->cursor);
    if (before != DID_VERTICAL)
        m->column = columns(t, start, t->cursor);
    start = line_start(t, into);
    t->cursor = start;
    while (t->cursor < line_end(t, start) &&
           columns(t, start, group_end(t, t->cursor)) <= m->column)
        t->cursor = group_end(t, t->cursor);
    m->did = DID_VERTICAL;
}

static const char *past_at(const model *m, size_t place) {
    return m->drafts[place] ? m->drafts[place] : place < m->n_past ? m->past[place] : "";
}

static void model_show(model *m, size_t place) {
    text *t = &m->now;
    t->at[t->len] = '\0';
    if (strcmp(past_at(m, m->place), t->at) != 0) {
        free(m->drafts[m->place]);
        m->drafts[m->place] = strdup(t->at);
    }
    m->place = place;
    char copy[MOST];
    snprintf(copy, sizeof copy, "%s", past_at(m, place));
    model_replace(m, 0, t->len, copy, strlen(copy));
    t->cursor = t->len;
}

static void model_recall(model *m, edit_deed before, bool back) {
    text *t = &m->now;
    m->did = DID_RECALL;
    t->at[t->len] = '\0';
    if (before != DID_RECALL)
        snprintf(m->prefix, sizeof m->prefix, "%.*s", (int)(m->place == m->n_past ? t->cursor : 0),
                 t->at);
    for (size_t i = m->place; back ? i > 0 : i < m->n_past;) {
        i = back ? i - 1 : i + 1;
        const char *item = past_at(m, i);
        if (i == m->n_past ||
            (strncmp(item, m->prefix, strlen(m->prefix)) == 0 && strcmp(item, t->at) != 0)) {
            model_show(m, i);
            return;
        }
    }
}

static void model_transpose(model *m) {
    text *t = &m->now;
    size_t at = t->cursor;
    if (at == line_end(t, at))
        at = group_start(t, at);
    size_t first = group_start(t, at), end = group_end(t, at);
    if (at == line_start(t, at) || end == at)
        return;
    char turned[MOST];
    memcpy(turned, t->at + at, end - at);
    memcpy(turned + (end - at), t->at + first, at - first);
    model_replace(m, first, end, turned, end - first);
}

static void model_backspace(model *m) {
    text *t = &m->now;
    size_t start = line_start(t, t->cursor), from = group_start(t, t->cursor), blanks = start;
    while (blanks < t->cursor && t->at[blanks] == ' ')
        blanks++;
    if (blanks == t->cursor && blanks > start)
        from = start + (blanks - start - 1) / 4 * 4;
    model_replace(m, t->cursor > 0 ? from : 0, t->cursor, "", 0);
}

/* What a key does to the model. False: the model does not know it. */
static void model_key(model *m, const key *k) {
    text *t = &m->now;
    edit_deed before = m->did;
    size_t at = t->cursor;
    m->did = DID_OTHER;
    if (k->len > 0 &&
        (k->code == KEY_BYTE || (k->code >= ' ' && k->code < KEY_UP && k->code != 0x7F))) {
        model_type(m, before, k);
        return;
    }
    m->fresh = true;
    switch (k->code) {
    case KEY_LEFT:
        t->cursor = group_start(t, at);
        break;
    case KEY_RIGHT:
        t->cursor = group_end(t, at);
        break;
    case KEY_LEFT | KEY_CTRL:
        t->cursor = word_left(t, at);
        break;
    case KEY_RIGHT | KEY_CTRL:
        t->cursor = word_right(t, at);
        break;
    case KEY_END:
        t->cursor = line_end(t, at);
        break;
    case KEY_UP:
        if (line_start(t, at) > 0)
            model_vertical(m, before, line_start(t, at) - 1);
        else
            model_recall(m, before, true);
        break;
    case KEY_DOWN:
        if (line_end(t, at) < t->len)
            model_vertical(m, before, line_end(t, at) + 1);
        else
            model_recall(m, before, false);
        break;
    case '\n':
        if (t->len > 0) /* an empty input is a whole one */
            model_newline(m);
        break;
    case 0x7F:
        model_backspace(m);
        break;
    case KEY_DELETE:
        model_replace(m, at, group_end(t, at), "", 0);
        break;
    case KEY_CONTROL('K'):
        model_kill(m, before, at, line_end(t, at) == at ? group_end(t, at) : line_end(t, at));
        break;
    case KEY_CONTROL('U'):
        model_kill(m, before, line_start(t, at) == at ? group_start(t, at) : line_start(t, at), at);
        break;
    case KEY_CONTROL('W'):
        model_kill(m, before, blank_left(t, at), at);
        break;
    case 'd' | KEY_ALT:
        model_kill(m, before, at, word_right(t, at));
        break;
    case 0x7F | KEY_ALT:
        model_kill(m, before, word_left(t, at), at);
        break;
    case KEY_CONTROL('Y'):
        model_yank(m, -1);
        break;
    case 'y' | KEY_ALT:
        if (before == DID_YANK)
            model_yank(m, m->shown + 1);
        break;
    case KEY_CONTROL('T'):
        model_transpose(m);
        break;
    case KEY_CONTROL('_'):
        if (m->done > 0)
            *t = m->before[--m->done];
        break;
    case '_' | KEY_ALT:
        if (m->done < m->n)
            *t = m->after[m->done++];
        break;
    default:
        break;
    }
}

/* ---- what a plain rendering shows ---- */

typedef struct rows {
    char at[1024][256];
    int n, row, col; /* and the cursor */
} rows;

static void render_put(rows *r, int *col, int width, const char *what, int wide) {
    if (*col + wide > width) {
        r->n++;
        *col = 0;
    }
    size_t n = strlen(r->at[r->n - 1]);
    snprintf(r->at[r->n - 1] + n, sizeof r->at[0] - n, "%s", what);
    *col += wide;
}

static void render_prompt(rows *r, int *col, int width, const char *prompt) {
    for (; *prompt; prompt++)
        render_put(r, col, width, (char[]){*prompt, '\0'}, 1);
}

static void render_group(rows *r, int *col, int width, const char *at, size_t len) {
    char shown[256] = "";
    glyph g = glyph_read(at, len);
    if ((unsigned char)at[0] < ' ') {
        render_put(r, col, width, "^", 1);
        render_put(r, col, width, (char[]){(char)(at[0] + '@'), '\0'}, 1);
        return;
    }
    if (g.bad)
        snprintf(shown, sizeof shown, "\xEF\xBF\xBD%.*s", (int)(len - 1), at + 1);
    else
        snprintf(shown, sizeof shown, "%s%.*s", glyph_width(g.code) ? "" : " ", (int)len, at);
    render_put(r, col, width, shown, g.bad || glyph_width(g.code) < 2 ? 1 : 2);
}

static void render(const text *t, int width, rows *r) {
    int col = 0;
    memset(r, 0, sizeof *r);
    r->n = 1;
    render_prompt(r, &col, width, "tide> ");
    for (size_t at = 0;; at = group_end(t, at)) {
        if (at == t->cursor) {
            r->row = r->n - 1 + (col == width);
            r->col = col == width ? 0 : col;
        }
        if (at == t->len)
            break;
        if (t->at[at] == '\n') {
            r->n++;
            col = 0;
            render_prompt(r, &col, width, "....> ");
        } else {
            render_group(r, &col, width, t->at + at, group_end(t, at) - at);
        }
    }
    r->n = r->row + 1 > r->n ? r->row + 1 : r->n;
    for (int i = 0; i < r->n; i++) /* a terminal's row ends with what is no blank */
        for (size_t n = strlen(r->at[i]); n > 0 && r->at[i][n - 1] == ' '; n--)
            r->at[i][n - 1] = '\0';
}

/* ---- random keys ---- */

static key random_key(void) {
    static const uint32_t codes[] = {KEY_LEFT,
                                     KEY_LEFT,
                                     KEY_RIGHT,
                                     KEY_RIGHT,
                                     KEY_UP,
                                     KEY_UP,
                                     KEY_DOWN,
                                     KEY_DOWN,
                                     KEY_LEFT | KEY_CTRL,
                                     KEY_RIGHT | KEY_CTRL,
                                     KEY_END,
                                     '\n',
                                     '\n',
                                     0x7F,
                                     0x7F,
                                     0x7F,
                                     KEY_DELETE,
                                     KEY_CONTROL('K'),
                                     KEY_CONTROL('U'),
                                     KEY_CONTROL('W'),
                                     'd' | KEY_ALT,
                                     0x7F | KEY_ALT,
                                     KEY_CONTROL('Y'),
                                     KEY_CONTROL('Y'),
                                     'y' | KEY_ALT,
                                     'y' | KEY_ALT,
                                     KEY_CONTROL('T'),
                                     KEY_CONTROL('_'),
                                     KEY_CONTROL('_'),
                                     KEY_CONTROL('_'),
                                     '_' | KEY_ALT,
                                     '_' | KEY_ALT};
    static const char *const odd[] = {"ä",    "€",    "日",   "本", "🌙", "\xCC\x81", "\xE2\x83\x97",
                                      "\xC3", "\xFF", "\x80", "ö"};
    static const char plain[] = "abcxyz01_ .()[]{}=+\"'-%,    ";
    unsigned kind = draw_number(10);
    if (kind < 4)
        return (key){.code = codes[draw_number(sizeof codes / sizeof *codes)]};
    if (kind == 4) {
        const char *one = odd[draw_number(sizeof odd / sizeof *odd)];
        return text_key(one, strlen(one));
    }
    return text_key(&plain[draw_number(sizeof plain - 1)], 1);
}

/* Now and then a whole word, letter by letter: those that open and close blocks. */
static key next_key(void) {
    static const char *const words[] = {"end",   "do ",     "else",   "function() ", "until",
                                        "then ", "repeat ", "elseif", "endless"};
    static const char *word = "";
    if (!*word && draw_number(12) == 0)
        word = words[draw_number(sizeof words / sizeof *words)];
    return *word ? text_key(word++, 1) : random_key();
}

static void show_difference(long n, const key *k, const rig *r, const model *m) {
    fprintf(stderr, "key %ld (code %x): editor %zu \"%.*s\"\nmodel %zu \"%.*s\"\n", n,
            (unsigned)k->code, r->e.buf.cursor, (int)r->e.buf.text.len,
            r->e.buf.text.at ? r->e.buf.text.at : "", m->now.cursor, (int)m->now.len, m->now.at);
}

static bool same_text(const rig *r, const model *m) {
    const buffer *b = &r->e.buf;
    return b->cursor == m->now.cursor && b->text.len == m->now.len &&
           (b->text.len == 0 || memcmp(b->text.at, m->now.at, b->text.len) == 0);
}

/* Does the terminal show the window of the rendering, and above it what stood there? */
static bool same_screen(rig *r, const model *m, rows *want) {
    render(&m->now, r->v.width, want);
    int top = (int)r->e.top, shown = want->n - top < r->v.height ? want->n - top : r->v.height;
    long first = r->start - r->t->scrolled;
    bool same = top <= want->row && want->row < top + shown &&
                (want->n > r->v.height || top == 0) && r->t->unknown == 0 &&
                r->t->row == first + want->row - top && r->t->col == want->col;
    for (int i = 0; same && i < r->t->rows; i++) {
        long row = i - first;
        const char *wanted = row < 0 ? "ab" : row < shown ? want->at[top + row] : "";
        same = strcmp(rig_row(r, i), wanted) == 0;
    }
    return same;
}

static void show_screens(rig *r, const rows *want) {
    fprintf(stderr, "want cursor %d, %d (top %zu, start %ld, scrolled %ld):\n", want->row,
            want->col, r->e.top, r->start, r->t->scrolled);
    for (int i = 0; i < want->n; i++)
        fprintf(stderr, "  |%s|\n", want->at[i]);
    fprintf(stderr, "terminal's %d, %d, unknown %d:\n", r->t->row, r->t->col, r->t->unknown);
    for (int i = 0; i < r->t->rows; i++)
        fprintf(stderr, "  |%s|\n", rig_row(r, i));
}

/* The frame begins at the bottom or in the middle, below rows that must stay. */
static void start_anew(rig *r, model *m) {
    int columns = 2 + (int)draw_number(56), height = 1 + (int)draw_number(12);
    editor_reset(&r->e);
    m->now = (text){0};
    m->done = m->n = 0;
    m->did = DID_OTHER;
    m->dedented = false;
    m->place = m->n_past;
    for (size_t i = 0; i <= m->n_past; i++) {
        free(m->drafts[i]);
        m->drafts[i] = NULL;
    }
    screen_forget(&r->s);
    r->v.width = columns;
    r->v.height = height;
    free(r->t);
    r->t = vt_new(columns, height);
    for (unsigned n = draw_number(30); n > 0; n--)
        vt_write(r->t, "ab\r\n", 4);
    r->start = r->t->scrolled + r->t->row;
}

/* The window gets another size while an input is written. */
static void resize(rig *r) {
    int columns = 2 + (int)draw_number(56), height = 1 + (int)draw_number(12);
    vt_resize(r->t, columns, height);
    r->v.width = columns;
    r->v.height = height;
    screen_narrow(&r->s, columns, &r->out);
    vt_write(r->t, r->out.at, r->out.len);
    r->out.len = 0;
    r->start = r->t->scrolled + r->t->row;
}

static uint64_t seed = 1;
static long keys_wanted = 100000;

static void fill_past(rig *r, model *m) {
    static const char *const inputs[] = {
        "x = 1",    "for i = 1, 2 do\n    print(i)\nend", "xyz", "x = 1", "äb日 = {\n}", "y", "abc",
        "x.y = (1)"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        CHECK(past_add(&r->e.past, inputs[i], strlen(inputs[i])));
        m->past[m->n_past++] = (char *)inputs[i];
    }
    m->place = m->n_past;
}

TEST(random_keys_do_to_the_editor_what_they_do_to_a_plain_model) {
    rig r;
    rig_open(&r, 40, 10);
    model *m = calloc(1, sizeof *m);
    rows *want = calloc(1, sizeof *want);
    m->before = malloc(UNDOS * sizeof *m->before);
    m->after = malloc(UNDOS * sizeof *m->after);
    REQUIRE(m->before && m->after && want);
    fill_past(&r, m);
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    bool same = true;
    for (long i = 0; same && i < keys_wanted; i++) {
        if (i == 0 || m->now.len > 300 || m->done > UNDOS - 8)
            start_anew(&r, m);
        else if (draw_number(150) == 0)
            resize(&r);
        key k = next_key();
        editor_key(&r.e, &k, NULL);
        model_key(m, &k);
        same = same_text(&r, m);
        if (!same)
            show_difference(i, &k, &r, m);
        if (!same || draw_number(3) == 0) /* several keys may come between two drawings */
            continue;
        rig_draw(&r);
        same = same_screen(&r, m, want);
        if (!same)
            show_screens(&r, want);
    }
    CHECK(same);
    for (size_t i = 0; i <= m->n_past; i++)
        free(m->drafts[i]);
    free(m->before);
    free(m->after);
    free(m);
    free(want);
    rig_close(&r);
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : seed;
    keys_wanted = argc > 2 ? strtol(argv[2], NULL, 10) : keys_wanted;
    RUN(random_keys_do_to_the_editor_what_they_do_to_a_plain_model);
    return check_finish();
}
