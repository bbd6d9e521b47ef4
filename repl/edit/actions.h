/* actions.h: what keys can do; editor.c says which key does which. */
#ifndef TIDE_EDIT_ACTIONS_H
#define TIDE_EDIT_ACTIONS_H

#include "repl/edit/editor.h"

/* moves.c */
edit_outcome edit_left(editor *e, const key *k);
edit_outcome edit_right(editor *e, const key *k); /* at the end: takes the suggestion */
edit_outcome edit_word_left(editor *e, const key *k);
edit_outcome edit_word_right(editor *e, const key *k); /* at the end: a word of it */
edit_outcome edit_line_start(editor *e, const key *k);
edit_outcome edit_line_end(editor *e, const key *k);
edit_outcome edit_text_start(editor *e, const key *k);
edit_outcome edit_text_end(editor *e, const key *k);
edit_outcome edit_up(editor *e, const key *k); /* in the first line: to the history */
edit_outcome edit_down(editor *e, const key *k);

/* changes.c */
edit_outcome edit_type(editor *e, const key *k);
edit_outcome edit_paste(editor *e, const bytes *text);
edit_outcome edit_enter(editor *e, const key *k);
edit_outcome edit_open_line(editor *e, const key *k);
edit_outcome edit_delete(editor *e, const key *k);
edit_outcome edit_delete_or_end(editor *e, const key *k);
edit_outcome edit_backspace(editor *e, const key *k);
edit_outcome edit_kill_line(editor *e, const key *k);
edit_outcome edit_kill_to_start(editor *e, const key *k);
edit_outcome edit_kill_word(editor *e, const key *k);
edit_outcome edit_kill_word_before(editor *e, const key *k);
edit_outcome edit_kill_blank_word(editor *e, const key *k);
edit_outcome edit_yank(editor *e, const key *k);
edit_outcome edit_yank_pop(editor *e, const key *k);
edit_outcome edit_transpose(editor *e, const key *k);
edit_outcome edit_upcase(editor *e, const key *k);
edit_outcome edit_downcase(editor *e, const key *k);
edit_outcome edit_capitalize(editor *e, const key *k);
edit_outcome edit_undo(editor *e, const key *k);
edit_outcome edit_redo(editor *e, const key *k);
edit_outcome edit_dedent(editor *e, const key *k);
/* Blanks up to the next step of indentation. */
void edit_indent_step(editor *e);

/* recall.c */
void edit_recall(editor *e, bool back); /* what the up and down keys find in the history */
edit_outcome edit_older(editor *e, const key *k);
edit_outcome edit_newer(editor *e, const key *k);
edit_outcome edit_oldest(editor *e, const key *k);
edit_outcome edit_newest(editor *e, const key *k);
edit_outcome edit_search_older(editor *e, const key *k);
edit_outcome edit_search_newer(editor *e, const key *k);
/* A key while the search is on: true when it was the search's own. */
bool edit_search_key(editor *e, const key *k, const bytes *paste);
void edit_search_stop(editor *e);

/* offers.c */
edit_outcome edit_tab(editor *e, const key *k);
/* A key while the menu is open: true when it was the menu's own. */
bool edit_menu_key(editor *e, const key *k);
/* After a key was typed with the menu open: what may stand there now. */
void edit_menu_renew(editor *e);

#endif
