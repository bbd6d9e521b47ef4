/* keys.h: what a terminal sends, byte by byte, as keys: text, control keys, escape sequences of
 * xterm's, the VT's and kitty's forms, bracketed pastes. Knows no meaning of any key.
 */
#ifndef TIDE_EDIT_KEYS_H
#define TIDE_EDIT_KEYS_H

#include "repl/edit/bytes.h"

#include <stdint.h>

/* A key's code: a code point, a control character as it is, or one of these; with modifiers. */
enum {
    KEY_UP = 0x110000,
    KEY_DOWN,
    KEY_RIGHT,
    KEY_LEFT,
    KEY_HOME,
    KEY_END,
    KEY_INSERT,
    KEY_DELETE,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_BACK_TAB,
    KEY_ESCAPE,
    KEY_BYTE,    /* a byte that is no UTF-8 */
    KEY_PASTE,   /* a whole paste, in `paste` of the reader */
    KEY_UNKNOWN, /* a sequence that means nothing here */

    KEY_ALT = 1 << 24,
    KEY_CTRL = 1 << 25,
    KEY_SHIFT = 1 << 26,
};
#define KEY_CONTROL(letter) ((uint32_t)(letter)&0x1F)

typedef struct key {
    uint32_t code;
    char text[4]; /* the bytes to insert, for code points and KEY_BYTE */
    size_t len;
} key;

/* A reader of keys. Zeroed it is ready. */
typedef struct keys {
    bytes waiting; /* not understood yet */
    bytes paste;   /* of the last KEY_PASTE, or of the one under way; lines end in \n */
    bool pasting;  /* one is under way */
    bool pasted;   /* one is whole and has not been handed out */
} keys;

/* Takes a byte in; the keys that it made are taken out before the next. False: memory is out, and
 * the byte is lost. */
bool keys_feed(keys *k, char byte);

/* The next key that is whole. `final`: nothing follows for now, so what waits is taken as it is (a
 * lone escape is the key of that name); but a paste goes on. */
bool keys_next(keys *k, key *out, bool final);

/* Does something wait that more bytes could make whole? */
bool keys_wait(const keys *k);

/* Forgets what waits. */
void keys_drop(keys *k);
void keys_clear(keys *k);

#endif
