/* result.c: the structures a session hands out: filled piece by piece, released at once.
 *
 * When memory is out a piece is left out; what is there stays valid. Knows no Lua.
 */
#include "repl/session/result.h"

#include <stdlib.h>
#include <string.h>

char *copy_bytes(const char *bytes, size_t len) {
    char *copy = malloc(len + 1);
    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

char *copy_string(const char *text) {
    return copy_bytes(text, strlen(text));
}

char *copy_visible(const char *bytes, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += bytes[i] == '\0';
    char *copy = malloc(len + n + 1), *at = copy;
    for (size_t i = 0; copy && i < len; i++) {
        *at++ = bytes[i] ? bytes[i] : '\\';
        if (!bytes[i])
            *at++ = '0';
    }
    if (copy)
        *at = '\0';
    return copy;
}

void bundle_add(tide_bundle *bundle, const char *type, const char *data, size_t len) {
    tide_mime entry = {copy_string(type), copy_bytes(data, len), len};
    tide_mime *entries = realloc(bundle->entries, (size_t)(bundle->n + 1) * sizeof *entries);
    if (entries)
        bundle->entries = entries;
    if (!entries || !entry.type || !entry.data) {
        free(entry.type);
        free(entry.data);
        return;
    }
    entries[bundle->n++] = entry;
}

void tide_bundle_clear(tide_bundle *bundle) {
    for (int i = 0; i < bundle->n; i++) {
        free(bundle->entries[i].type);
        free(bundle->entries[i].data);
    }
    free(bundle->entries);
    free(bundle->metadata);
    *bundle = (tide_bundle){0};
}

static void add_line(tide_result *r, const char *text, size_t len) {
    char **lines = realloc(r->traceback, (size_t)(r->n_traceback + 1) * sizeof *lines);
    if (!lines)
        return;
    r->traceback = lines;
    char *line = copy_visible(text, len);
    if (line)
        lines[r->n_traceback++] = line;
}

void result_add_lines(tide_result *r, const char *text, size_t len) {
    const char *end = text + len;
    for (;;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        add_line(r, text, (size_t)((newline ? newline : end) - text));
        if (!newline)
            return;
        text = newline + 1;
    }
}

void tide_result_clear(tide_result *r) {
    tide_bundle_clear(&r->value);
    for (int i = 0; i < r->n_traceback; i++)
        free(r->traceback[i]);
    free(r->traceback);
    free(r->ename);
    free(r->evalue);
    free(r->pager);
    *r = (tide_result){0};
}

const char *tide_result_message(const tide_result *r) {
    return r->evalue ? r->evalue : "out of memory";
}

void tide_completions_clear(tide_completions *c) {
    for (int i = 0; i < c->n; i++) {
        free(c->matches[i]);
        free(c->types[i]);
    }
    free(c->matches);
    free(c->types);
    *c = (tide_completions){0};
}

void tide_history_list_clear(tide_history_list *list) {
    for (int i = 0; i < list->n; i++)
        free(list->entries[i].input), free(list->entries[i].output);
    free(list->entries);
    *list = (tide_history_list){0};
}
