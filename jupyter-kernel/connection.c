/* connection.c: see connection.h. */
#include "jupyter-kernel/connection.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

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

static bool read_port(reader *r, const char *name, int *port) {
    char field[32];
    snprintf(field, sizeof field, "%s_port", name);
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

static bool read_key(reader *r, tk_connection *c) {
    if (!(c->key = read_string(r, "key")))
        return false;
    c->key_len = strlen(c->key);
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

/* A field that is there as a key in Z85. */
static bool read_curve_key(reader *r, const char *field, char **key) {
    unsigned char bytes[32];
    if (!(*key = read_string(r, field)))
        return false;
    if (strlen(*key) == TK_CURVE_KEY_LEN && zmq_z85_decode(bytes, *key))
        return true;
    snprintf(r->error, r->size, "%s: field \"%s\" is not a Curve key of %d characters in Z85",
             r->path, field, TK_CURVE_KEY_LEN);
    return false;
}

/* The Curve keys, of which there are two or none. A kernel that can't keep what the file promises
 * does not start: nobody would notice that it speaks in plain text. */
static bool read_curve(reader *r, tk_connection *c) {
    char matching[TK_CURVE_KEY_LEN + 1];
    if (!json_object_get(r->root, "curve_publickey") &&
        !json_object_get(r->root, "curve_secretkey"))
        return true;
    if (!read_curve_key(r, "curve_publickey", &c->curve_public) ||
        !read_curve_key(r, "curve_secretkey", &c->curve_secret))
        return false;
    if (!zmq_has("curve"))
        snprintf(r->error, r->size, "%s: has Curve keys, and this ZeroMQ knows no Curve", r->path);
    else if (zmq_curve_public(matching, c->curve_secret) != 0 ||
             strcmp(matching, c->curve_public) != 0)
        snprintf(r->error, r->size,
                 "%s: field \"curve_publickey\" does not belong to \"curve_secretkey\"", r->path);
    else
        return true;
    return false;
}

static bool read_ports(reader *r, tk_connection *c) {
    if (json_object_get(r->root, "registration_port"))
        return read_port(r, "registration", &c->registration_port);
    for (int i = 0; i < TK_CHANNELS; i++)
        if (!read_port(r, tk_channel_name((tk_channel)i), &c->ports[i]))
            return false;
    return true;
}

static bool read_fields(reader *r, tk_connection *c) {
    if (!(c->transport = read_string(r, "transport")) || !(c->ip = read_string(r, "ip")) ||
        !read_ports(r, c) || !read_key(r, c) || !read_curve(r, c))
        return false;
    bool ipc = strcmp(c->transport, "ipc") == 0;
    if (strcmp(c->transport, "tcp") == 0 || (ipc && c->registration_port == 0))
        return true;
    if (ipc)
        snprintf(r->error, r->size,
                 "%s: over \"ipc\" no free port can be chosen, only over \"tcp\"", r->path);
    else
        snprintf(r->error, r->size, "%s: field \"transport\" is \"%s\", not \"tcp\" or \"ipc\"",
                 r->path, c->transport);
    return false;
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
    free(connection->curve_public);
    if (connection->curve_secret)
        explicit_bzero(connection->curve_secret, strlen(connection->curve_secret));
    free(connection->curve_secret);
    *connection = (tk_connection){0};
}

static char *address_of(const tk_connection *connection, int port) {
    char *address;
    const char *format = "tcp://%s:%d";
    if (strcmp(connection->transport, "ipc") == 0)
        format = "ipc://%s-%d";
    else if (strchr(connection->ip, ':'))
        format = "tcp://[%s]:%d"; /* IPv6 */
    int len = asprintf(&address, format, connection->ip, port);
    return len < 0 ? NULL : address;
}

char *tk_connection_address(const tk_connection *connection, tk_channel channel) {
    return address_of(connection, connection->ports[channel]);
}

char *tk_connection_registration(const tk_connection *connection) {
    return address_of(connection, connection->registration_port);
}
