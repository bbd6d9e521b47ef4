/* connection.c: see connection.h. */
#include "jupyter-kernel/connection.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tk_channel_name(tk_channel channel) {
    static const char *const names[TK_CHANNELS] = {"shell", "iopub", "stdin", "control", "hb"};
    return names[channel];
}

typedef struct reader {
    const char *path;
    json_t *root;
    char *error;
    size_t size;
} reader;

/* A string field as a new string; NULL with the error written when it is missing or is none. */
static char *read_string(reader *r, const char *field) {
    json_t *value = json_object_get(r->root, field);
    if (!json_is_string(value)) {
        snprintf(r->error, r->size,
                 value ? "%s: field \"%s\" is not a string" : "%s: lacks field \"%s\"", r->path,
                 field);
        return NULL;
    }
    char *copy = strdup(json_string_value(value));
    if (!copy)
        snprintf(r->error, r->size, "%s: out of memory", r->path);
    return copy;
}

static bool read_port(reader *r, tk_channel channel, int *port) {
    char field[16];
    snprintf(field, sizeof field, "%s_port", tk_channel_name(channel));
    json_t *value = json_object_get(r->root, field);
    json_int_t number = json_integer_value(value);
    if (!value)
        snprintf(r->error, r->size, "%s: lacks field \"%s\"", r->path, field);
    else if (!json_is_integer(value) || number < 1 || number > 65535)
        snprintf(r->error, r->size, "%s: field \"%s\" is not a port from 1 to 65535", r->path,
                 field);
    else {
        *port = (int)number;
        return true;
    }
    return false;
}

static bool read_fields(reader *r, tk_connection *c) {
    if (!(c->transport = read_string(r, "transport")) || !(c->ip = read_string(r, "ip")))
        return false;
    for (int i = 0; i < TK_CHANNELS; i++)
        if (!read_port(r, (tk_channel)i, &c->ports[i]))
            return false;
    if (!(c->key = read_string(r, "key")))
        return false;
    c->key_len = strlen(c->key);
    if (strcmp(c->transport, "tcp") != 0 && strcmp(c->transport, "ipc") != 0) {
        snprintf(r->error, r->size, "%s: field \"transport\" is \"%s\", not \"tcp\" or \"ipc\"",
                 r->path, c->transport);
        return false;
    }
    if (c->key_len == 0)
        return true;
    char *scheme = read_string(r, "signature_scheme");
    bool known = scheme && strcmp(scheme, "hmac-sha256") == 0;
    if (scheme && !known)
        snprintf(r->error, r->size,
                 "%s: field \"signature_scheme\" is \"%s\", and only \"hmac-sha256\" is known",
                 r->path, scheme);
    free(scheme);
    return known;
}

/* What the file says may stand in the message. */
static void keep_one_line(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = ' ';
}

/* The parser calls it bad JSON when there is no memory for what it read. */
static bool refused_memory;

static void *take_memory(size_t n) {
    void *block = malloc(n);
    refused_memory |= !block;
    return block;
}

bool tk_connection_read(const char *path, tk_connection *connection, char *error, size_t size) {
    *connection = (tk_connection){0};
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(error, size, "%s: %s", path, strerror(errno));
        return false;
    }
    json_error_t problem;
    refused_memory = false;
    json_set_alloc_funcs(take_memory, free);
    reader r = {path, json_loadf(file, 0, &problem), error, size};
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    bool ok = false;
    if (failed)
        snprintf(error, size, "%s: %s", path, strerror(failed));
    else if (!r.root && refused_memory)
        snprintf(error, size, "%s: out of memory", path);
    else if (!r.root)
        snprintf(error, size, "%s: not JSON: line %d, column %d: %s", path, problem.line,
                 problem.column, problem.text);
    else if (!json_is_object(r.root))
        snprintf(error, size, "%s: not a JSON object", path);
    else
        ok = read_fields(&r, connection);
    json_decref(r.root);
    if (!ok) {
        tk_connection_clear(connection);
        keep_one_line(error);
    }
    return ok;
}

void tk_connection_clear(tk_connection *connection) {
    free(connection->transport);
    free(connection->ip);
    free(connection->key);
    *connection = (tk_connection){0};
}

char *tk_connection_address(const tk_connection *connection, tk_channel channel) {
    char *address;
    const char *format = "tcp://%s:%d";
    if (strcmp(connection->transport, "ipc") == 0)
        format = "ipc://%s-%d";
    else if (strchr(connection->ip, ':'))
        format = "tcp://[%s]:%d"; /* IPv6 */
    int len = asprintf(&address, format, connection->ip, connection->ports[channel]);
    return len < 0 ? NULL : address;
}
