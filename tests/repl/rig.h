/* rig.h: an editor with a screen and a small terminal behind it, for tests. A header of one file,
 * of which a test may use a part.
 */
#ifndef TIDE_TESTS_RIG_H
#define TIDE_TESTS_RIG_H

#include "repl/edit/keys.h"
#include "repl/edit/screen.h"
#include "repl/edit/view.h"
#include "tests/check.h"
#include "tests/repl/vt.h"

typedef struct rig {
    editor e;
    view v;
    screen s;
    frame next;
    bytes out;
    vt *t;
    long start; /* the frame's first row, counted with those that have left */
} rig;

CHECK_HELPER void rig_draw(rig *r) {
    view_frame(&r->v, &r->e, &r->next);
    screen_draw(&r->s, &r->next, &r->out);
    vt_write(r->t, r->out.at, r->out.len);
    r->out.len = 0;
}

CHECK_HELPER bool never_whole(void *ctx, const char *code, size_t len) {
    (void)ctx;
    (void)code;
    (void)len;
    return false;
}

CHECK_HELPER void rig_open(rig *r, int columns, int height) {
    *r = (rig){
        .v = {.prompt = "tide> ", .next_prompt = "....> ", .width = columns, .height = height},
        .t = vt_new(columns, height)};
    r->e.menu.chosen = -1;
    r->e.host.is_whole = never_whole;
}

CHECK_HELPER void rig_close(rig *r) {
    editor_clear(&r->e);
    screen_clear(&r->s);
    frame_clear(&r->next);
    bytes_clear(&r->out);
    free(r->t);
}

/* Sends bytes as a terminal would, with a drawing behind each key. */
CHECK_HELPER edit_outcome rig_send(rig *r, const char *sent) {
    keys k = {0};
    key one;
    edit_outcome outcome = EDIT_ON;
    for (; *sent; sent++)
        for (bool fed = keys_feed(&k, *sent); fed && keys_next(&k, &one, !sent[1]);) {
            outcome = editor_key(&r->e, &one, &k.paste);
            rig_draw(r);
        }
    keys_clear(&k);
    return outcome;
}

CHECK_HELPER const char *rig_text(rig *r) {
    static char copy[4096];
    size_t most = sizeof copy - 1, n = r->e.buf.text.len < most ? r->e.buf.text.len : most;
    if (n > 0)
        memcpy(copy, r->e.buf.text.at, n);
    copy[n] = '\0';
    return copy;
}

CHECK_HELPER const char *rig_row(rig *r, int row) {
    static char copy[4][1024];
    static int turn;
    turn = (turn + 1) % 4;
    vt_row(r->t, row, copy[turn], sizeof copy[turn]);
    return copy[turn];
}

static __attribute__((unused)) uint64_t state;

CHECK_HELPER unsigned draw_number(unsigned below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state * UINT64_C(2685821657736338717)) >> 33) % below;
}

CHECK_HELPER key text_key(const char *bytes_of, size_t n) {
    glyph g = glyph_read(bytes_of, n);
    key k = {.code = g.bad ? KEY_BYTE : g.code, .len = n};
    memcpy(k.text, bytes_of, n);
    return k;
}

#endif
