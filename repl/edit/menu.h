/* menu.h: the list of what may stand at the cursor, of which one may be chosen. Knows no buffer. */
#ifndef TIDE_EDIT_MENU_H
#define TIDE_EDIT_MENU_H

#include "repl/edit/bytes.h"
#include "repl/edit/host.h"

/* Zeroed it is closed. */
typedef struct menu {
    edit_choices choices;
    int chosen;    /* -1: none */
    int top;       /* the first that is shown */
    bytes written; /* what the user wrote in the place that a choice takes */
    size_t end;    /* where that place ends by now */
} menu;

bool menu_is_open(const menu *m);
/* Opens it over the choices, which it takes over. False: memory is out. */
bool menu_open(menu *m, edit_choices *choices, const char *code);
void menu_close(menu *m);
/* Chooses the next one, or the n-th from there; beyond the ends lies none, and then the other end.
 */
void menu_move(menu *m, int by);
/* What now belongs in the place: the choice, or what the user wrote; borrowed. */
const char *menu_text(const menu *m, size_t *len);
/* Length of what all choices begin with. */
size_t menu_common(const edit_choices *c);
/* Scrolls so that the chosen one is among the `rows` shown. */
void menu_scroll(menu *m, int rows);

void edit_choices_clear(edit_choices *c);

#endif
