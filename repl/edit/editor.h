/* editor.h: an input while it is written: text, history, menu, search, and what each key does to
 * them. It reads no bytes and draws nothing: keys come from keys.h, view.h shows it.
 *
 * The fields are for the files of this folder: editor.c gives keys to actions, which lie by what
 * they are about in moves.c, changes.c, recall.c and offers.c.
 */
#ifndef TIDE_EDIT_EDITOR_H
#define TIDE_EDIT_EDITOR_H

#include "repl/edit/buffer.h"
#include "repl/edit/host.h"
#include "repl/edit/keys.h"
#include "repl/edit/menu.h"
#include "repl/edit/past.h"
#include "repl/edit/ring.h"
#include "repl/session/lex.h"

enum { EDIT_INDENT = 4 };

/* What a key came to. */
typedef enum edit_outcome {
    EDIT_ON,        /* it is still being written */
    EDIT_ACCEPTED,  /* the input is whole */
    EDIT_ENDED,     /* no more input, Ctrl-D; what is unfinished stands in the buffer */
    EDIT_SUSPENDED, /* Ctrl-Z */
    EDIT_CLEARED,   /* Ctrl-L: the screen begins anew */
} edit_outcome;

/* What the key before did, where that matters to the next. */
typedef enum edit_deed {
    DID_OTHER,
    DID_TYPE,       /* a letter */
    DID_TYPE_BLANK, /* a blank */
    DID_NEWLINE,    /* opened an indented line */
    DID_KILL,
    DID_YANK,
    DID_VERTICAL, /* moved to another line */
    DID_RECALL,   /* went through the history */
} edit_deed;

/* The search through the history. Its matches are places of the past, the newest first. */
typedef struct edit_search {
    bool on;
    bytes query;
    size_t *matches;
    int n, room, chosen;
} edit_search;

typedef struct editor {
    buffer buf;
    ring kills;
    past past;
    menu menu;
    edit_search search;
    edit_host host;
    edit_deed did, before;
    size_t column;     /* DID_VERTICAL: where the move began */
    bytes prefix;      /* DID_RECALL: what the inputs it stops at begin with */
    lex_blocks blocks; /* of the front of the text, up to where it was read last */
    size_t yanked;     /* DID_YANK: where the text that was put in begins */
    bool dedented;     /* the line was moved left because of what it begins with */
    bool quoted;       /* the next key is put in as it is */
    bool more;         /* more keys have come already: set by who reads them */
    bool suggests;     /* grey suggestions can be shown */
    size_t top;        /* the first row that view.c shows of a text taller than the window */
} editor;

typedef edit_outcome (*edit_action)(editor *e, const key *k);

/* Zeroed but for the host an editor is ready. Takes a key; `paste` is the text of KEY_PASTE. */
edit_outcome editor_key(editor *e, const key *k, const bytes *paste);

/* An empty text for the next input; history and kill ring stay. */
void editor_reset(editor *e);
void editor_clear(editor *e);

/* What is suggested behind the cursor; NULL: nothing. Borrowed until the next key. */
const char *editor_suggestion(const editor *e, size_t *len);

/* The match that the search shows, and where the query lies in it; NULL: none. Borrowed. */
const bytes *editor_found(const editor *e, size_t *at);

#endif
