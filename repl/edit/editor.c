/* editor.c: see editor.h. The table of keys, and the way of a key to its action. */
#include "repl/edit/editor.h"

#include "repl/edit/actions.h"

#include <stdlib.h>
#include <string.h>

static edit_outcome suspend(editor *e, const key *k) {
    (void)e;
    (void)k;
    return EDIT_SUSPENDED;
}

static edit_outcome clear_screen(editor *e, const key *k) {
    (void)e;
    (void)k;
    return EDIT_CLEARED;
}

static edit_outcome quote_next(editor *e, const key *k) {
    (void)k;
    e->quoted = true;
    return EDIT_ON;
}

static edit_outcome do_nothing(editor *e, const key *k) {
    (void)e;
    (void)k;
    return EDIT_ON;
}

typedef struct binding {
    uint32_t code;
    edit_action action;
} binding;

static const binding bindings[] = {
    {KEY_LEFT, edit_left},
    {KEY_CONTROL('B'), edit_left},
    {KEY_RIGHT, edit_right},
    {KEY_CONTROL('F'), edit_right},
    {KEY_LEFT | KEY_CTRL, edit_word_left},
    {KEY_LEFT | KEY_ALT, edit_word_left},
    {'b' | KEY_ALT, edit_word_left},
    {KEY_RIGHT | KEY_CTRL, edit_word_right},
    {KEY_RIGHT | KEY_ALT, edit_word_right},
    {'f' | KEY_ALT, edit_word_right},
    {KEY_HOME, edit_line_start},
    {KEY_CONTROL('A'), edit_line_start},
    {KEY_END, edit_line_end},
    {KEY_CONTROL('E'), edit_line_end},
    {KEY_HOME | KEY_CTRL, edit_text_start},
    {KEY_END | KEY_CTRL, edit_text_end},
    {KEY_UP, edit_up},
    {KEY_CONTROL('P'), edit_up},
    {KEY_DOWN, edit_down},
    {KEY_CONTROL('N'), edit_down},
    {KEY_UP | KEY_ALT, edit_older},
    {KEY_UP | KEY_CTRL, edit_older},
    {KEY_PAGE_UP, edit_older},
    {'p' | KEY_ALT, edit_older},
    {KEY_DOWN | KEY_ALT, edit_newer},
    {KEY_DOWN | KEY_CTRL, edit_newer},
    {KEY_PAGE_DOWN, edit_newer},
    {'n' | KEY_ALT, edit_newer},
    {'<' | KEY_ALT, edit_oldest},
    {'>' | KEY_ALT, edit_newest},
    {KEY_CONTROL('R'), edit_search_older},
    {KEY_CONTROL('S'), edit_search_newer},
    {'\n', edit_enter},
    {'\r', edit_enter},
    {'\n' | KEY_ALT, edit_open_line},
    {'\r' | KEY_ALT, edit_open_line},
    {'\r' | KEY_SHIFT, edit_open_line},
    {'\r' | KEY_CTRL, edit_open_line},
    {KEY_CONTROL('O'), edit_open_line},
    {'\t', edit_tab},
    {KEY_BACK_TAB, edit_dedent},
    {KEY_DELETE, edit_delete},
    {KEY_CONTROL('D'), edit_delete_or_end},
    {0x7F, edit_backspace},
    {KEY_CONTROL('H'), edit_backspace},
    {0x7F | KEY_SHIFT, edit_backspace},
    {KEY_CONTROL('K'), edit_kill_line},
    {KEY_CONTROL('U'), edit_kill_to_start},
    {'d' | KEY_ALT, edit_kill_word},
    {KEY_DELETE | KEY_CTRL, edit_kill_word},
    {KEY_DELETE | KEY_ALT, edit_kill_word},
    {0x7F | KEY_ALT, edit_kill_word_before},
    {0x7F | KEY_CTRL, edit_kill_word_before},
    {KEY_CONTROL('H') | KEY_ALT, edit_kill_word_before},
    {KEY_CONTROL('W'), edit_kill_blank_word},
    {KEY_CONTROL('Y'), edit_yank},
    {'y' | KEY_ALT, edit_yank_pop},
    {KEY_CONTROL('T'), edit_transpose},
    {'u' | KEY_ALT, edit_upcase},
    {'l' | KEY_ALT, edit_downcase},
    {'c' | KEY_ALT, edit_capitalize},
    {KEY_CONTROL('_'), edit_undo},
    {'z' | KEY_ALT, edit_undo},
    {'_' | KEY_ALT, edit_redo},
    {'/' | KEY_ALT, edit_redo},
    {KEY_CONTROL('V'), quote_next},
    {KEY_CONTROL('L'), clear_screen},
    {KEY_CONTROL('Z'), suspend},
    {KEY_ESCAPE, do_nothing},
    {KEY_CONTROL('G'), do_nothing},
};

static edit_action find_action(uint32_t code) {
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++)
        if (bindings[i].code == code)
            return bindings[i].action;
    return do_nothing;
}

static bool is_text(const key *k) {
    return k->len > 0 &&
           (k->code == KEY_BYTE || (k->code >= ' ' && k->code < KEY_UP && k->code != 0x7F));
}

/* A key that is put in whatever it means otherwise. */
static edit_outcome put_in(editor *e, const key *k) {
    e->quoted = false;
    buffer_begin_step(&e->buf);
    key plain = *k;
    if (plain.len == 0 && plain.code == KEY_ESCAPE)
        plain = (key){.text = "\x1b", .len = 1};
    bool kept = buffer_insert(&e->buf, plain.text, plain.len);
    (void)kept;
    return EDIT_ON;
}

static edit_outcome run_action(editor *e, const key *k, const bytes *paste) {
    if (k->code == KEY_PASTE)
        return edit_paste(e, paste);
    if (is_text(k))
        return edit_type(e, k);
    buffer_begin_step(&e->buf);
    return find_action(k->code)(e, k);
}

edit_outcome editor_key(editor *e, const key *k, const bytes *paste) {
    e->before = e->did;
    e->did = DID_OTHER;
    if (e->quoted && k->code != KEY_PASTE)
        return put_in(e, k);
    if (e->search.on && edit_search_key(e, k, paste))
        return EDIT_ON;
    if (menu_is_open(&e->menu) && edit_menu_key(e, k))
        return EDIT_ON;
    bool renew = menu_is_open(&e->menu) && e->menu.chosen < 0 &&
                 (is_text(k) || find_action(k->code) == edit_backspace);
    if (!renew)
        menu_close(&e->menu);
    edit_outcome outcome = run_action(e, k, paste);
    if (renew)
        edit_menu_renew(e);
    return outcome;
}

void editor_reset(editor *e) {
    buffer_reset(&e->buf);
    past_reset(&e->past);
    menu_close(&e->menu);
    edit_search_stop(e);
    e->did = e->before = DID_OTHER;
    e->dedented = e->quoted = false;
    e->top = 0;
}

void editor_clear(editor *e) {
    buffer_clear(&e->buf);
    ring_clear(&e->kills);
    past_clear(&e->past);
    menu_close(&e->menu);
    bytes_clear(&e->search.query);
    free(e->search.matches);
    bytes_clear(&e->prefix);
    *e = (editor){0};
}

const char *editor_suggestion(const editor *e, size_t *len) {
    const bytes *text = &e->buf.text;
    if (!e->suggests || e->search.on || menu_is_open(&e->menu) || e->buf.cursor < text->len ||
        e->past.at != e->past.n)
        return NULL;
    const bytes *found = past_suggest(&e->past, text->at, text->len);
    if (!found)
        return NULL;
    *len = found->len - text->len;
    return found->at + text->len;
}
