/* gather.h: output on its way into a widget: as the notebook's format has it, to be that widget's
 * state.
 *
 * The other way, naming the request whose output a widget takes (its msg_id), makes a front end
 * send every piece back while the cell still runs; clients that execute notebooks (nbclient) may
 * then miss the cell's reply. Knows no sockets and no locks. */
#ifndef TIDE_KERNEL_GATHER_H
#define TIDE_KERNEL_GATHER_H

#include <jansson.h>
#include <stdbool.h>

typedef struct tk_gather {
    struct tk_gather *outer; /* of a widget whose output this one is within */
    char *comm;              /* the widget's */
    json_t *outputs, *ids;   /* what there is, and the display_id of each or null */
    bool clear_next;         /* before the next one */
    bool dirty;              /* the front end has not been told of all */
} tk_gather;

/* `outputs` are those that the widget has (stolen; NULL: none). NULL: memory is out. */
tk_gather *tk_gather_new(const char *comm, json_t *outputs, tk_gather *outer);
/* Gives the outer one. */
tk_gather *tk_gather_free(tk_gather *gather);

/* Takes a message of that type that belongs to output (content borrowed); false: it is none, or
 * others may have a share in it (update_display_data). */
bool tk_gather_add(tk_gather *gather, const char *type, json_t *content);

/* The content of a comm_msg that makes what there is the widget's state; NULL: memory is out. */
json_t *tk_gather_update(tk_gather *gather);

#endif
