/* note.h: what a pass says of its work: how many rewrites, and a line about each. */
#ifndef TD_SCRIPT_PASSES_NOTE_H
#define TD_SCRIPT_PASSES_NOTE_H

#include "engine/script/ir.h"

typedef struct td_pass_note {
    int changes;     /* rewrites */
    int64_t peak[2]; /* bytes that the graph holds at most, before and after; -1: not worked out */
    bool explain;    /* are lines kept? */
    char *text;      /* them, one behind the other; NULL: none */
    size_t used, size;
} td_pass_note;

/* One rewrite more, and a line about it, with the node's place and the value that it makes where it
 * has these (NULL: of no node). A line for which memory is missing is left out. */
void td_pass_say(td_pass_note *note, const td_ir_node *node, const char *format, ...)
    TD_PRINTF(3, 4);
void td_pass_note_clear(td_pass_note *note);

#endif
