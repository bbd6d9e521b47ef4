/* keys.c: see keys.h. */
#include "repl/edit/keys.h"
#include "repl/edit/glyph.h"

#include <string.h>

enum { ESCAPE = 0x1B, LONGEST = 32 };

static const char paste_end[] = "\x1b[201~";

/* Within a paste nothing is a key but its end. Line ends become \n; the end mark is looked for
 * where the paste ends by now. */
static bool feed_paste(keys *k, char byte) {
    size_t n = sizeof paste_end - 1;
    bytes *p = &k->paste;
    if (!bytes_add(p, &byte, 1))
        return false;
    if (p->len >= n && memcmp(p->at + p->len - n, paste_end, n) == 0) {
        p->len -= n;
        k->pasting = false;
        k->pasted = true;
    }
    return true;
}

/* Runs of newlines, and is each of even length? */
static size_t count_runs(const bytes *b, bool *even) {
    size_t runs = 0, length = 0;
    *even = true;
    for (size_t i = 0; i <= b->len; i++) {
        if (i < b->len && b->at[i] == '\n') {
            length++;
            continue;
        }
        runs += length > 0;
        *even = *even && length % 2 == 0;
        length = 0;
    }
    return runs;
}

/* A terminal that takes \r for \n makes two of \r\n: where no line end stands by itself, and there
 * are several, each pair was one. */
static void halve_line_ends(bytes *b) {
    bool even;
    size_t n = 0;
    if (count_runs(b, &even) < 2 || !even)
        return;
    for (size_t i = 0; i < b->len; i++) {
        b->at[n++] = b->at[i];
        i += b->at[i] == '\n';
    }
    b->len = n;
}

static void mend_line_ends(bytes *b) {
    size_t n = 0;
    bool after_return = false;
    for (size_t i = 0; i < b->len; i++) {
        bool is_return = b->at[i] == '\r';
        if (b->at[i] != '\n' || !after_return)
            b->at[n++] = is_return ? '\n' : b->at[i];
        after_return = is_return;
    }
    b->len = n;
}

bool keys_feed(keys *k, char byte) {
    if (k->pasting && k->waiting.len == 0)
        return feed_paste(k, byte);
    return bytes_add(&k->waiting, &byte, 1);
}

/* The modifiers of xterm's parameter: 1 more than the sum of shift 1, alt 2, control 4. */
static uint32_t modifiers(int parameter) {
    int bits = parameter > 1 ? parameter - 1 : 0;
    return (bits & 1 ? KEY_SHIFT : 0) | (bits & 2 ? KEY_ALT : 0) | (bits & 4 ? KEY_CTRL : 0);
}

/* ESC [ N ~ */
static uint32_t numbered_key(int number) {
    static const uint32_t codes[] = {0,           KEY_HOME,      KEY_INSERT, KEY_DELETE, KEY_END,
                                     KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HOME,   KEY_END};
    return number > 0 && number < (int)(sizeof codes / sizeof *codes) ? codes[number] : KEY_UNKNOWN;
}

/* ESC [ A, ESC O A and their kin. */
static uint32_t lettered_key(char letter) {
    static const char letters[] = "ABCDHFZ";
    static const uint32_t codes[] = {KEY_UP,   KEY_DOWN, KEY_RIGHT,   KEY_LEFT,
                                     KEY_HOME, KEY_END,  KEY_BACK_TAB};
    const char *found = letter ? strchr(letters, letter) : NULL;
    return found ? codes[found - letters] : KEY_UNKNOWN;
}

/* A key that was sent as a number (CSI CODE;MODIFIERS u): control and a letter is the control
 * character. */
static uint32_t coded_key(int code, uint32_t mods) {
    bool letter = (code >= '@' && code <= '_') || (code >= 'a' && code <= 'z');
    if ((mods & KEY_CTRL) && letter)
        return KEY_CONTROL(code) | (mods & KEY_ALT);
    if (code >= KEY_UP)
        return KEY_UNKNOWN;
    return code == ESCAPE ? KEY_ESCAPE : (uint32_t)code | mods;
}

/* The sequence ESC [ PARAMETERS FINAL, of n bytes. */
static uint32_t csi_key(const char *text, size_t n) {
    int numbers[3] = {0}, count = 0;
    for (size_t i = 2; i + 1 < n; i++) {
        if (text[i] == ';')
            count++;
        else if (text[i] >= '0' && text[i] <= '9' && count < 3 && numbers[count] < 0x110000)
            numbers[count] = 10 * numbers[count] + (text[i] - '0');
    }
    char final = text[n - 1];
    if (final == '~' && numbers[0] == 27) /* xterm's modifyOtherKeys: 27;MODIFIERS;CODE */
        return coded_key(numbers[2], modifiers(numbers[1]));
    if (final == 'u')
        return coded_key(numbers[0], modifiers(numbers[1]));
    uint32_t code = final == '~' ? numbered_key(numbers[0]) : lettered_key(final);
    return code == KEY_UNKNOWN ? code : code | modifiers(numbers[1]);
}

/* Length of the control sequence that waits, 0: it goes on. */
static size_t csi_length(const bytes *w) {
    for (size_t i = 2; i < w->len; i++)
        if ((unsigned char)w->at[i] >= 0x40 || (unsigned char)w->at[i] < 0x20 || i >= LONGEST)
            return i + 1;
    return 0;
}

/* One code point, control character or bad byte of what waits from `at` on; its length, 0: it goes
 * on. */
static size_t text_key(const bytes *w, size_t at, key *out, bool final) {
    glyph g = glyph_read(w->at + at, w->len - at);
    if (g.bad && !final && glyph_is_begun(w->at + at, w->len - at))
        return 0;
    *out = (key){.code = g.bad ? KEY_BYTE : g.code, .len = g.len};
    memcpy(out->text, w->at + at, g.len);
    return g.len;
}

/* A key behind ESC: a sequence, or a key with Alt. Its length, 0: it goes on. */
static size_t escape_key(const bytes *w, key *out, bool final) {
    *out = (key){.code = KEY_ESCAPE};
    if (w->len == 1)
        return final;
    char second = w->at[1];
    if (second == '[' && w->len > 2 && w->at[2] == '[') { /* the Linux console's function keys */
        out->code = KEY_UNKNOWN;
        return w->len >= 4 ? 4 : final ? w->len : 0;
    }
    if (second == '[' && (w->len > 2 || !final)) {
        size_t n = csi_length(w);
        out->code = n ? csi_key(w->at, n) : KEY_UNKNOWN;
        return n ? n : final ? w->len : 0;
    }
    if (second == 'O' && (w->len > 2 || !final)) {
        out->code = w->len > 2 ? lettered_key(w->at[2]) : KEY_UNKNOWN;
        return w->len > 2 ? 3 : 0;
    }
    if (second == ESCAPE) /* escape twice, or Alt with a sequence: the second speaks for itself */
        return 1;
    size_t n = text_key(w, 1, out, final);
    out->code |= KEY_ALT;
    return n ? n + 1 : 0;
}

bool keys_next(keys *k, key *out, bool final) {
    static const char begin[] = "\x1b[200~";
    bytes *w = &k->waiting;
    if (k->pasted) {
        k->pasted = false;
        mend_line_ends(&k->paste);
        halve_line_ends(&k->paste);
        *out = (key){.code = KEY_PASTE};
        return true;
    }
    if (w->len == 0)
        return false;
    bool escape = w->at[0] == ESCAPE;
    size_t n = escape ? escape_key(w, out, final) : text_key(w, 0, out, final);
    if (n == 0)
        return false;
    if (n == sizeof begin - 1 && memcmp(w->at, begin, n) == 0) {
        k->pasting = true;
        k->paste.len = 0;
    }
    bytes_remove(w, 0, n);
    return k->pasting ? keys_next(k, out, final) : true;
}

bool keys_wait(const keys *k) {
    return k->waiting.len > 0;
}

void keys_drop(keys *k) {
    k->waiting.len = k->paste.len = 0;
    k->pasting = k->pasted = false;
}

void keys_clear(keys *k) {
    bytes_clear(&k->waiting);
    bytes_clear(&k->paste);
}
