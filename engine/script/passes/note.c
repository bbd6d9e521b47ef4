/* note.c: lines about what passes did. */
#include "engine/script/passes/note.h"

#include "engine/core/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add_text(td_pass_note *note, const char *text) {
    size_t n = strlen(text);
    if (note->used + n + 1 > note->size) {
        size_t size = 2 * (note->used + n) + 128;
        char *larger = td_realloc(note->text, size);
        if (!larger)
            return;
        note->text = larger;
        note->size = size;
    }
    memcpy(note->text + note->used, text, n + 1);
    note->used += n;
}

void td_pass_say(td_pass_note *note, const td_ir_node *node, const char *format, ...) {
    char what[256], line[512];
    note->changes++;
    if (!note->explain)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    char place[160] = "", value[96] = "";
    if (node && node->place.file)
        snprintf(place, sizeof place, "%.120s:%d: ", node->place.file, node->place.line);
    if (node && node->noutputs)
        snprintf(value, sizeof value, "%%%.80s: ", node->outputs[0]->name);
    snprintf(line, sizeof line, "%s%s%s\n", place, value, what);
    add_text(note, line);
}

void td_pass_note_clear(td_pass_note *note) {
    td_free(note->text);
    *note = (td_pass_note){.peak = {-1, -1}};
}
