/* csv_columns.c: typed columns; see csv_columns.h. Rows are cut into cells some thousand at a time,
 * and then each column takes its own. A column whose type turns out to be wider is converted in
 * place where its numbers tell what the text was, and otherwise read again at the end. */
#include "lua-bindings/modules/csv_columns.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "lua-bindings/modules/csv_number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOCK = 4096,
    BATCH = 32,
    FIRST_SLOTS = 64,
    NUMBER_BITS = 40,
    SHOWN = 40,
    NUMBER_ROOM = 128
};

/* One pass over rows. */
typedef struct pass {
    tide_csv_reader *reader;
    const tide_csv_rules *rules;
    tide_csv_column *columns;
    int64_t ncolumns;
    bool keep;
    tide_csv_cell *cells; /* of the block: row by row */
    int64_t *lines;       /* of its rows */
} pass;

static td_status fail_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory");
}

/* ---- missing values ---- */

void tide_csv_set_missing(tide_csv_rules *rules, const tide_csv_text *words, int n) {
    rules->missing = words;
    rules->nmissing = n;
    memset(rules->lengths, 0, sizeof rules->lengths);
    for (int k = 0; k < n; k++)
        if (words[k].len)
            rules->lengths[(unsigned char)words[k].at[0]] |=
                (uint64_t)1 << (words[k].len < 63 ? words[k].len : 63);
}

bool tide_csv_is_missing(const tide_csv_rules *rules, const char *at, size_t len) {
    if (len == 0)
        return true;
    if (!(rules->lengths[(unsigned char)*at] >> (len < 63 ? len : 63) & 1))
        return false;
    for (int k = 0; k < rules->nmissing; k++)
        if (rules->missing[k].len == len && !memcmp(rules->missing[k].at, at, len))
            return true;
    return false;
}

/* ---- distinct texts ---- */

__extension__ typedef unsigned __int128 wide;

/* Both halves of a product, which every bit of the factors has a part in. */
static uint64_t fold(uint64_t a, uint64_t b) {
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Eight bytes at a time, by products as in wyhash (Wang Yi, public domain), with splitmix64's
 * numbers. */
static uint64_t hash_text(const char *at, size_t len) {
    uint64_t h = len ^ 0x9E3779B97F4A7C15u, eight;
    for (; len >= 8; at += 8, len -= 8) {
        memcpy(&eight, at, 8);
        h = fold(h ^ eight, 0xBF58476D1CE4E5B9u);
    }
    eight = 0;
    for (size_t k = 0; k < len; k++)
        eight |= (uint64_t)(unsigned char)at[k] << (8 * k);
    return fold(h ^ eight, 0x94D049BB133111EBu);
}

/* What a slot holds: a number, which has NUMBER_BITS, below bits of the hash that its place does
 * not say. */
static uint64_t slot_of(uint64_t hash, int64_t number) {
    return (hash >> NUMBER_BITS << NUMBER_BITS) | (uint64_t)number;
}

static td_status more_slots(tide_csv_column *c) {
    int64_t n = c->nslots ? 2 * c->nslots : FIRST_SLOTS;
    uint64_t *slots = td_calloc((size_t)n, sizeof *slots);
    if (!slots)
        return fail_memory();
    for (int64_t k = 0; k < c->ntexts; k++) {
        int64_t at = (int64_t)(c->texts[k].hash & (uint64_t)(n - 1));
        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = slot_of(c->texts[k].hash, k + 1);
    }
    td_free(c->slots);
    c->slots = slots;
    c->nslots = n;
    return TD_OK;
}

static td_status more_texts(tide_csv_column *c) {
    int64_t room = c->room ? 2 * c->room : FIRST_SLOTS / 2;
    tide_csv_text *texts = td_realloc(c->texts, (size_t)room * sizeof *texts);
    if (!texts)
        return fail_memory();
    c->texts = texts;
    c->room = room;
    return TD_OK;
}

/* A copy of a cell's text that lives as long as the column. */
static td_status own_text(tide_csv_column *c, const tide_csv_cell *cell, tide_csv_text *text) {
    char *block = td_malloc(sizeof c->own + cell->len);
    if (!block)
        return fail_memory();
    memcpy(block, &c->own, sizeof c->own);
    c->own = block;
    text->at = block + sizeof c->own;
    text->len = tide_csv_copy(cell, block + sizeof c->own);
    return TD_OK;
}

static td_status find_text(tide_csv_column *c, const tide_csv_text *text, int64_t *number) {
    const uint64_t numbers = ((uint64_t)1 << NUMBER_BITS) - 1;
    td_status status = TD_OK;
    int64_t at = (int64_t)(text->hash & (uint64_t)(c->nslots - 1));
    for (; c->slots[at]; at = (at + 1) & (c->nslots - 1)) {
        if ((c->slots[at] ^ text->hash) & ~numbers)
            continue;
        const tide_csv_text *known = &c->texts[(c->slots[at] & numbers) - 1];
        if (known->len == text->len && !memcmp(known->at, text->at, text->len)) {
            *number = (int64_t)(c->slots[at] & numbers);
            return TD_OK;
        }
    }
    if (c->ntexts == c->room)
        TD_TRY(more_texts(c));
    c->texts[c->ntexts++] = *text;
    c->slots[at] = slot_of(text->hash, c->ntexts);
    *number = c->ntexts;
done:
    return status;
}

/* ---- what a cell is ---- */

typedef enum content { GAP, TRUTH, WHOLE, NUMBER, TEXT } content;

typedef struct value {
    content is;
    bool wide;
    int64_t whole;
    double number;
} value;

static bool is_word(const tide_csv_cell *cell, const char *a, const char *b, const char *c) {
    size_t len = strlen(a);
    return cell->len == len &&
           (!memcmp(cell->at, a, len) || !memcmp(cell->at, b, len) || !memcmp(cell->at, c, len));
}

/* The digits of a number without what stands between them, where it stands between digits in front
 * of the fraction; the cell itself otherwise. */
static tide_csv_cell without_thousands(const tide_csv_rules *rules, const tide_csv_cell *cell,
                                       char digits[static NUMBER_ROOM + TIDE_CSV_BEHIND]) {
    size_t n = 0;
    bool fraction = false;
    if (cell->len >= NUMBER_ROOM || !memchr(cell->at, rules->thousands, cell->len))
        return *cell;
    for (size_t k = 0; k < cell->len; k++) {
        char letter = cell->at[k];
        fraction |= letter == rules->decimal;
        if (letter != rules->thousands)
            digits[n++] = letter;
        else if (fraction || n == 0 || digits[n - 1] < '0' || digits[n - 1] > '9' ||
                 k + 1 == cell->len || cell->at[k + 1] < '0' || cell->at[k + 1] > '9')
            return *cell;
    }
    memset(digits + n, 0, TIDE_CSV_BEHIND);
    return (tide_csv_cell){digits, n, cell->quoted, false};
}

static value look(const tide_csv_rules *rules, const tide_csv_cell *cell) {
    value v = {.is = TEXT};
    char digits[NUMBER_ROOM + TIDE_CSV_BEHIND];
    tide_csv_cell number = *cell;
    if (tide_csv_is_missing(rules, cell->at, cell->len)) {
        v.is = GAP;
        return v;
    }
    if (rules->thousands)
        number = without_thousands(rules, cell, digits);
    tide_csv_kind kind =
        tide_csv_read(number.at, number.at + number.len, rules->decimal, &v.whole, &v.number);
    v.wide = kind == TIDE_CSV_WIDE;
    if (kind != TIDE_CSV_TEXT) {
        v.is = kind == TIDE_CSV_INT ? WHOLE : NUMBER;
    } else if (is_word(cell, "true", "True", "TRUE") ||
               (is_word(cell, "false", "False", "FALSE"))) {
        v.is = TRUTH;
        v.whole = cell->len == 4;
    }
    return v;
}

/* ---- from one type to a wider one ---- */

/* Of the first `rows` values integers become floats. */
static void turn_to_floats(tide_csv_column *c, int64_t rows) {
    char *at = c->values ? c->values->data : NULL;
    for (int64_t k = 0; at && k < rows; k++, at += sizeof(double)) {
        int64_t whole;
        memcpy(&whole, at, sizeof whole);
        double number = (double)whole;
        memcpy(at, &number, sizeof number);
    }
    c->stale |= c->minus_zero;
    c->type = TIDE_CSV_FLOATS;
}

static void turn_to_texts(tide_csv_column *c, int64_t rows) {
    if (c->type == TIDE_CSV_UNKNOWN && !c->quoted_gap && c->values)
        memset(c->values->data, 0, (size_t)rows * sizeof(int64_t));
    else
        c->stale |= rows > 0;
    c->type = TIDE_CSV_TEXTS;
}

/* Let the column be of a type that takes the value as well as the `rows` before. */
static void widen(tide_csv_column *c, const value *v, int64_t rows) {
    bool empty = c->type == TIDE_CSV_UNKNOWN, ints = c->type == TIDE_CSV_INTS;
    if (empty && v->is == TRUTH)
        c->type = TIDE_CSV_BOOLS;
    else if (empty && v->is == WHOLE && rows == 0)
        c->type = TIDE_CSV_INTS;
    else if (empty && (v->is == WHOLE || v->is == NUMBER))
        c->type = TIDE_CSV_FLOATS;
    else if (ints && (v->is == NUMBER || v->is == GAP))
        turn_to_floats(c, rows);
    else
        turn_to_texts(c, rows);
}

static bool takes(const tide_csv_column *c, const value *v) {
    switch (c->type) {
    case TIDE_CSV_UNKNOWN:
        return v->is == GAP;
    case TIDE_CSV_BOOLS:
        return v->is == TRUTH || v->is == GAP ||
               (c->fixed && v->is == WHOLE && (v->whole == 0 || v->whole == 1));
    case TIDE_CSV_INTS:
        return v->is == WHOLE;
    case TIDE_CSV_FLOATS:
        return v->is == WHOLE || v->is == NUMBER || v->is == GAP;
    case TIDE_CSV_TEXTS:
    case TIDE_CSV_SKIPPED:
        return true;
    }
    return true;
}

/* A cell as a message shows it: its beginning, on one line. */
static td_status fail_cell(const tide_csv_column *c, const tide_csv_cell *cell, int64_t line,
                           int64_t number) {
    char text[SHOWN + 4];
    size_t n = cell->len < SHOWN ? cell->len : SHOWN;
    const char *what = c->type == TIDE_CSV_INTS    ? "no integer of int64"
                       : c->type == TIDE_CSV_BOOLS ? "neither true nor false"
                                                   : "no number";
    while (n < cell->len && n > 0 && ((unsigned char)cell->at[n] & 0xC0) == 0x80)
        n--;
    for (size_t k = 0; k < n; k++)
        text[k] = (unsigned char)cell->at[k] < ' ' || cell->at[k] == 127 ? '?' : cell->at[k];
    snprintf(text + n, 4, "%s", n < cell->len ? "..." : "");
    return td_fail(TD_EVALUE, "line %lld, column %lld: '%s' is %s, which option types says",
                   (long long)line, (long long)number, text, what);
}

/* ---- columns ---- */

static void store_number(tide_csv_column *c, int64_t row, const value *v) {
    bool whole = v->is == WHOLE && v->whole == 0;
    double number = v->is == GAP ? (double)NAN : v->is == TRUTH ? (double)v->whole : v->number;
    c->gaps |= v->is == GAP;
    c->wide |= v->wide;
    c->fraction |= v->is == NUMBER && !v->wide && isfinite(v->number);
    c->minus_zero |= whole && signbit(v->number);
    if (!c->values)
        return;
    if (c->type == TIDE_CSV_INTS)
        ((int64_t *)c->values->data)[row] = v->whole;
    else
        ((double *)c->values->data)[row] = number;
}

/* The numbers of n texts of a column of rows of `step` cells: first all hashes, while memory brings
 * what they ask for. */
static td_status put_texts(const pass *p, tide_csv_column *c, const tide_csv_cell *cells, int64_t n,
                           int64_t *numbers) {
    tide_csv_text texts[BATCH];
    td_status status = TD_OK;
    while (2 * (c->ntexts + n) > c->nslots)
        TD_TRY(more_slots(c));
    for (int64_t k = 0; k < n; k++) {
        const tide_csv_cell *cell = &cells[k * p->ncolumns];
        texts[k] = (tide_csv_text){cell->at, cell->len, 0};
        if (cell->doubled)
            TD_TRY(own_text(c, cell, &texts[k]));
        texts[k].hash = hash_text(texts[k].at, texts[k].len);
        __builtin_prefetch(&c->slots[texts[k].hash & (uint64_t)(c->nslots - 1)]);
    }
    for (int64_t k = 0; k < n; k++) {
        const tide_csv_cell *cell = &cells[k * p->ncolumns];
        numbers[k] = 0;
        if (cell->quoted || !tide_csv_is_missing(p->rules, cell->at, cell->len))
            TD_TRY(find_text(c, &texts[k], &numbers[k]));
        c->gaps |= numbers[k] == 0;
    }
done:
    return status;
}

/* A cell of a column that is not one of texts; it may be when this returns. */
static td_status put_cell(const pass *p, tide_csv_column *c, const tide_csv_cell *cell, int64_t row,
                          int64_t line) {
    value v = look(p->rules, cell);
    if (!takes(c, &v)) {
        if (c->fixed)
            return fail_cell(c, cell, line, c - p->columns + 1);
        widen(c, &v, row);
        if (c->type == TIDE_CSV_TEXTS)
            return TD_OK;
    }
    c->quoted_gap |= v.is == GAP && cell->quoted;
    store_number(c, row, &v);
    return TD_OK;
}

/* Of n cells of a column of numbers those in front that are nothing else: how many. */
static int64_t put_numbers(const pass *p, tide_csv_column *c, const tide_csv_cell *cells, int64_t n,
                           void *to) {
    bool ints = c->type == TIDE_CSV_INTS, large = c->wide, fraction = c->fraction;
    int64_t k = 0, whole;
    for (; k < n; k++, cells += p->ncolumns) {
        double number;
        if (tide_csv_is_missing(p->rules, cells->at, cells->len))
            break;
        tide_csv_kind kind =
            tide_csv_read(cells->at, cells->at + cells->len, p->rules->decimal, &whole, &number);
        if (kind == TIDE_CSV_TEXT ||
            (ints && (kind != TIDE_CSV_INT || (whole == 0 && signbit(number)))) ||
            !isfinite(number))
            break;
        large |= kind == TIDE_CSV_WIDE;
        fraction |= kind == TIDE_CSV_FLOAT;
        memcpy((char *)to + 8 * k, ints ? (void *)&whole : (void *)&number, 8);
    }
    c->wide = large;
    c->fraction = fraction;
    return k;
}

/* A column's cells of a block, which begins at `row`. */
static td_status put_cells(const pass *p, tide_csv_column *c, int64_t row, int64_t n) {
    const tide_csv_cell *cells = &p->cells[c - p->columns];
    td_status status = TD_OK;
    int64_t k = 0;
    for (; c->type != TIDE_CSV_TEXTS && k < n; k++) {
        bool numbers = c->type == TIDE_CSV_INTS || c->type == TIDE_CSV_FLOATS;
        if (numbers && c->values && !p->rules->thousands)
            k += put_numbers(p, c, &cells[k * p->ncolumns], n - k,
                             (int64_t *)c->values->data + row + k);
        if (k == n)
            break;
        TD_TRY(put_cell(p, c, &cells[k * p->ncolumns], row + k, p->lines[k]));
        k -= c->type == TIDE_CSV_TEXTS; /* it turned: the cell is still to be put */
    }
    for (; c->values && k < n; k += BATCH)
        TD_TRY(put_texts(p, c, &cells[k * p->ncolumns], n - k < BATCH ? n - k : BATCH,
                         (int64_t *)c->values->data + row + k));
done:
    return status;
}

/* The next rows of a block, at most n; *held: how many. */
static td_status read_block(pass *p, int64_t n, int64_t *held) {
    td_status status = td_interrupt_check();
    int64_t count = 1;
    *held = 0;
    while (status == TD_OK && *held < n && count) {
        status = tide_csv_next(p->reader, p->cells + *held * p->ncolumns, p->ncolumns, &count,
                               &p->lines[*held]);
        if (status == TD_OK && count && count != p->ncolumns)
            return td_fail(TD_EVALUE, "line %lld: %lld columns, the first row has %lld",
                           (long long)p->lines[*held], (long long)count, (long long)p->ncolumns);
        *held += count != 0;
    }
    return status;
}

/* All columns that are wanted, or those that are stale. */
static td_status read_pass(pass *p, int64_t most, bool again, int64_t *rows) {
    int64_t block = BLOCK / p->ncolumns, held = 1;
    td_status status = TD_OK;
    block = block > 0 ? block : 1;
    for (*rows = 0; held && (!p->keep || *rows < most); *rows += held) {
        TD_TRY(read_block(p, p->keep && most - *rows < block ? most - *rows : block, &held));
        for (int64_t k = 0; k < p->ncolumns; k++) {
            tide_csv_column *c = &p->columns[k];
            if (c->type == TIDE_CSV_SKIPPED || (again && !c->stale))
                continue;
            TD_TRY(put_cells(p, c, *rows, held));
        }
    }
done:
    return status;
}

/* Integers beyond int64 alone are no measurements: as floats they would lose their digits. What
 * stands in quotes and would else be missing is text where nothing says otherwise. */
static void settle(tide_csv_column *c) {
    bool digits = c->type == TIDE_CSV_FLOATS && c->wide && !c->fraction && !c->fixed;
    if (digits || (c->type == TIDE_CSV_UNKNOWN && c->quoted_gap)) {
        c->type = TIDE_CSV_TEXTS;
        c->stale = true;
    }
}

/* As many rows as there are, and true and false as such. */
static td_status finish(tide_csv_column *c, int64_t rows) {
    const int64_t step = 1;
    td_tensor *own = c->values, *bools = NULL;
    if (c->type != TIDE_CSV_BOOLS || c->gaps)
        return td_tensor_set_shape(own, 1, &rows, &step);
    td_status status = td_tensor_empty(TD_BOOL, TD_DEVICE_CPU, 1, &rows, &bools);
    if (status)
        return status;
    for (int64_t k = 0; k < rows; k++)
        ((uint8_t *)bools->data)[k] = ((double *)own->data)[k] != 0;
    td_release(own);
    c->values = bools;
    return TD_OK;
}

static int64_t count_letters(const char *at, const char *end, char letter) {
    int64_t n = 0;
    for (; (at = memchr(at, letter, (size_t)(end - at))); at++)
        n++;
    return n;
}

/* No more rows than so many can follow: each has an end and its delimiters. */
static int64_t rows_at_most(const tide_csv_reader *r, int64_t ncolumns, int64_t most) {
    enum { PIECE = 1 << 16 };
    int64_t rows = 1, fit = (r->end - r->at) / ncolumns + 1;
    most = fit < most ? fit : most;
    for (const char *at = r->at; at < r->end && rows < most; at += PIECE) {
        const char *end = r->end - at < PIECE ? r->end : at + PIECE;
        rows += count_letters(at, end, '\n') + count_letters(at, end, '\r');
    }
    return rows < most ? rows : most;
}

static td_status make_values(pass *p, int64_t rows) {
    td_status status = TD_OK;
    for (int64_t k = 0; status == TD_OK && k < p->ncolumns; k++) {
        tide_csv_column *c = &p->columns[k];
        bool whole = c->type == TIDE_CSV_INTS || c->type == TIDE_CSV_TEXTS;
        if (c->type != TIDE_CSV_SKIPPED)
            status = td_tensor_empty(whole ? TD_I64 : TD_F64, TD_DEVICE_CPU, 1, &rows, &c->values);
    }
    return status;
}

/* What a column has that is to be read once more is forgotten. */
static bool forget_stale(pass *p) {
    bool any = false;
    for (int64_t k = 0; k < p->ncolumns; k++) {
        tide_csv_column *c = &p->columns[k];
        settle(c);
        any |= c->stale;
        if (!c->stale)
            continue;
        td_tensor *values = td_retain(c->values);
        tide_csv_clear_column(c);
        c->values = values;
        c->stale = true;
    }
    return any;
}

static td_status set_dtypes(pass *p, int64_t rows) {
    td_status status = TD_OK;
    for (int64_t k = 0; status == TD_OK && k < p->ncolumns; k++) {
        tide_csv_column *c = &p->columns[k];
        c->stale = false;
        if (c->type == TIDE_CSV_SKIPPED)
            continue;
        c->values->dtype = c->type == TIDE_CSV_INTS || c->type == TIDE_CSV_TEXTS ? TD_I64 : TD_F64;
        status = finish(c, rows);
    }
    return status;
}

td_status tide_csv_read_columns(tide_csv_reader *r, const tide_csv_rules *rules,
                                tide_csv_column *columns, int64_t n, int64_t most, int64_t *rows) {
    pass p = {r, rules, columns, n, most > 0, NULL, NULL};
    tide_csv_reader first = *r, again = first;
    int64_t seen = 0, block = n < BLOCK ? BLOCK : n;
    td_status status = TD_OK;
    p.cells = td_malloc((size_t)block * sizeof *p.cells);
    p.lines = td_malloc(BLOCK * sizeof *p.lines);
    if (!p.cells || !p.lines)
        TD_TRY(fail_memory());
    if (p.keep) {
        most = rows_at_most(r, n, most);
        TD_TRY(make_values(&p, most));
    }
    TD_TRY(read_pass(&p, most, false, rows));
    if (p.keep && forget_stale(&p)) {
        p.reader = &again;
        TD_TRY(read_pass(&p, *rows, true, &seen));
        if (seen < *rows) /* a mapped file may be written meanwhile */
            TD_TRY(td_fail(TD_EVALUE, "line %lld: it was changed while it was read",
                           (long long)again.line));
    }
    if (p.keep)
        TD_TRY(set_dtypes(&p, *rows));
    else
        for (int64_t k = 0; k < n; k++)
            settle(&columns[k]);
done:
    td_free(p.cells);
    td_free(p.lines);
    return status;
}

void tide_csv_clear_column(tide_csv_column *c) {
    bool fixed = c->fixed;
    tide_csv_type type = c->type;
    for (char *block = c->own, *next; block; block = next) {
        memcpy(&next, block, sizeof next);
        td_free(block);
    }
    td_free(c->texts);
    td_free(c->slots);
    td_release(c->values);
    *c = (tide_csv_column){.type = type, .fixed = fixed};
}
