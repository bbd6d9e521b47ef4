/* wire.h: Jupyter messages as frames of bytes, and back. Pure functions: no sockets, no state but
 * the sender's counter.
 *
 * A message on the wire is: identities..., "<IDS|MSG>", signature, header, parent header, metadata,
 * content, buffers... (Jupyter messaging protocol 5.5, "The Wire Protocol"). */
#ifndef TIDE_KERNEL_WIRE_H
#define TIDE_KERNEL_WIRE_H

#include "jupyter-kernel/hmac.h"
#include "jupyter-kernel/lenient.h"

#include <jansson.h>
#include <stdatomic.h>

#define TK_PROTOCOL_VERSION "5.5"
#define TK_MAX_FRAMES       1024
#define TK_MAX_MESSAGE      ((size_t)256 << 20) /* bytes in all frames together */

/* One message that came in. The JSON objects are owned, strings are borrowed from them, frames from
 * what was parsed. */
typedef struct tk_message {
    const tk_frame *identities;
    size_t n_identities;
    const tk_frame *buffers;
    size_t n_buffers;
    json_t *header, *metadata, *content; /* objects */
    const char *type;                    /* header.msg_type */
    tk_frame signature;                  /* borrowed as the frames are */
    char problem[TK_PROBLEM_SIZE];       /* why the content can't be read, which is then empty */
} tk_message;

typedef enum tk_wire_status {
    TK_WIRE_OK,
    TK_WIRE_NO_DELIMITER,
    TK_WIRE_TOO_SHORT,
    TK_WIRE_TOO_BIG,
    TK_WIRE_BAD_SIGNATURE,
    TK_WIRE_BAD_JSON,
    TK_WIRE_NO_MEMORY,
    TK_WIRE_BAD_HEADER
} tk_wire_status;

/* What a status means, in words for a log line. */
const char *tk_wire_problem(tk_wire_status status);

/* Reads a message out of `n` frames. The signature is checked before any of it is decoded, and the
 * header before the rest: a message that has one can be answered. Metadata that can't be read are
 * empty, content that can't be read is too and `problem` says why; the parent header is of no use.
 * On anything but TK_WIRE_OK *message is all zero. */
tk_wire_status tk_wire_parse(tk_frame key, const tk_frame *frames, size_t n, tk_message *message);

/* Lets the message's JSON go; afterwards it is all zero. */
void tk_message_clear(tk_message *message);

/* Who signs what goes out. Several threads may write messages in one sender's name. */
typedef struct tk_sender {
    tk_frame key;          /* borrowed */
    char session[33];      /* 32 hexadecimal digits */
    const char *username;  /* borrowed, valid UTF-8 */
    atomic_ulong messages; /* numbers their ids */
} tk_sender;

/* One message to go out: everything after the identities, owned. */
typedef struct tk_envelope {
    char signature[TK_SIGNATURE_LEN + 1];
    char *parts[4]; /* header, parent header, metadata, content: JSON text */
    size_t lens[4];
    const tk_frame *buffers; /* borrowed; none when it is written */
    size_t n_buffers;
} tk_envelope;

/* Writes a message. `parent` is the JSON text of the parent's header, borrowed, NULL for none.
 * `metadata` (NULL: empty) and `content` are stolen. False when memory is out or `content` is NULL
 * or holds a number JSON cannot carry; *envelope is then all zero. */
bool tk_envelope_write(tk_sender *sender, const char *type, const char *parent, json_t *metadata,
                       json_t *content, tk_envelope *envelope) __attribute__((warn_unused_result));
void tk_envelope_clear(tk_envelope *envelope);

/* The time now as ISO 8601 in UTC with microseconds, as headers carry it. */
void tk_wire_date(char date[32]);

#endif
