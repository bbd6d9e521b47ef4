/* connection.h: the file a kernel is started with. Opens no sockets.
 *
 * It is a connection file, which says where to bind, or a registration file, which says where to
 * tell the launcher what we bound (handshake.h). Both hold the key. */
#ifndef TIDE_KERNEL_CONNECTION_H
#define TIDE_KERNEL_CONNECTION_H

#include "jupyter-kernel/hmac.h"

typedef enum tk_channel {
    TK_SHELL,
    TK_IOPUB,
    TK_STDIN,
    TK_CONTROL,
    TK_HEARTBEAT,
    TK_CHANNELS
} tk_channel;

#define TK_CURVE_KEY_LEN 40 /* of Z85 */

/* "shell", "iopub", "stdin", "control", "hb": the field of the file is this and "_port". */
const char *tk_channel_name(tk_channel channel);

typedef struct tk_connection {
    char *transport;        /* "tcp" or "ipc" */
    char *ip;               /* address, or for ipc the beginning of the sockets' paths */
    int ports[TK_CHANNELS]; /* 0: any free one, which takes its place when it is bound */
    int registration_port;  /* the launcher's; 0: this is a connection file */
    char *key;              /* empty: messages are not signed */
    size_t key_len;
    char *curve_public, *curve_secret; /* Z85; NULL: sockets are not encrypted */
} tk_connection;

/* Reads a connection or registration file. False, with one line in `error` that names the file and
 * the field, when it cannot be read, is not JSON, lacks a field or has one that cannot be. */
bool tk_connection_read(const char *path, tk_connection *connection, char *error, size_t size);
void tk_connection_clear(tk_connection *connection);

/* The address of a channel as ZeroMQ writes it, in a malloc'ed string; NULL when memory is out. */
char *tk_connection_address(const tk_connection *connection, tk_channel channel);
char *tk_connection_registration(const tk_connection *connection); /* of the launcher */

#endif
