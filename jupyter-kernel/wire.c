/* wire.c: see wire.h. What arrives here was written by anyone who can reach the port: nothing is
 * decoded before its signature is known to be good, and nothing in it is believed after. */
#include "jupyter-kernel/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char delimiter[] = "<IDS|MSG>";

const char *tk_wire_problem(tk_wire_status status) {
    switch (status) {
    case TK_WIRE_OK:
        return "no problem";
    case TK_WIRE_NO_DELIMITER:
        return "no <IDS|MSG> delimiter";
    case TK_WIRE_TOO_SHORT:
        return "fewer than five frames after the delimiter";
    case TK_WIRE_TOO_BIG:
        return "too many frames or bytes";
    case TK_WIRE_BAD_SIGNATURE:
        return "wrong signature";
    case TK_WIRE_BAD_JSON:
        return "a header that is not a JSON object";
    case TK_WIRE_NO_MEMORY:
        return "too little memory to read it";
    case TK_WIRE_BAD_HEADER:
        return "a header without msg_id or msg_type";
    }
    return "unknown problem";
}

static json_t *read_part(tk_frame frame, char problem[TK_PROBLEM_SIZE]) {
    return tk_json_read_object(frame.data, frame.len, problem);
}

/* Reads what stands behind a header that was read. False: memory is out. */
static bool read_rest(const tk_frame *parts, tk_message *message) {
    char problem[TK_PROBLEM_SIZE];
    message->metadata = read_part(parts[2], problem);
    message->content = read_part(parts[3], message->problem);
    if (!message->metadata)
        message->metadata = json_object();
    if (!message->content)
        message->content = json_object();
    return message->metadata && message->content;
}

/* Reads header, metadata and content, in that order. */
static tk_wire_status read_parts(const tk_frame *parts, tk_message *message) {
    message->header = read_part(parts[0], message->problem);
    if (!message->header)
        return strcmp(message->problem, "out of memory") ? TK_WIRE_BAD_JSON : TK_WIRE_NO_MEMORY;
    message->type = json_string_value(json_object_get(message->header, "msg_type"));
    if (!message->type || !json_is_string(json_object_get(message->header, "msg_id")))
        return TK_WIRE_BAD_HEADER;
    return read_rest(parts, message) ? TK_WIRE_OK : TK_WIRE_NO_MEMORY;
}

tk_wire_status tk_wire_parse(tk_frame key, const tk_frame *frames, size_t n, tk_message *message) {
    *message = (tk_message){0};
    if (n > TK_MAX_FRAMES)
        return TK_WIRE_TOO_BIG;
    size_t total = 0, mark = n;
    for (size_t i = 0; i < n; i++) {
        if (frames[i].len > TK_MAX_MESSAGE - total)
            return TK_WIRE_TOO_BIG;
        total += frames[i].len;
        if (mark == n && frames[i].len == sizeof delimiter - 1 &&
            memcmp(frames[i].data, delimiter, sizeof delimiter - 1) == 0)
            mark = i;
    }
    if (mark == n)
        return TK_WIRE_NO_DELIMITER;
    if (n - mark < 6)
        return TK_WIRE_TOO_SHORT;
    const tk_frame *parts = frames + mark + 2;
    if (!tk_hmac_verify(key, parts, frames[mark + 1]))
        return TK_WIRE_BAD_SIGNATURE;

    *message = (tk_message){.identities = frames,
                            .n_identities = mark,
                            .buffers = parts + 4,
                            .n_buffers = n - mark - 6,
                            .signature = frames[mark + 1]};
    tk_wire_status status = read_parts(parts, message);
    if (status != TK_WIRE_OK)
        tk_message_clear(message);
    return status;
}

void tk_message_clear(tk_message *message) {
    json_decref(message->header);
    json_decref(message->metadata);
    json_decref(message->content);
    *message = (tk_message){0};
}

void tk_wire_date(char date[32]) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t len = strftime(date, 32, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(date + len, 32 - len, ".%06dZ", (int)(now.tv_nsec / 1000 % 1000000));
}

static json_t *new_header(tk_sender *sender, const char *type) {
    char id[64], date[32];
    snprintf(id, sizeof id, "%s_%lu", sender->session,
             atomic_fetch_add_explicit(&sender->messages, 1, memory_order_relaxed));
    tk_wire_date(date);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "msg_id", id, "session", sender->session,
                     "username", sender->username, "date", date, "msg_type", type, "version",
                     TK_PROTOCOL_VERSION);
}

bool tk_envelope_write(tk_sender *sender, const char *type, const char *parent, json_t *metadata,
                       json_t *content, tk_envelope *envelope) {
    json_t *header = new_header(sender, type);
    tk_frame frames[4];
    *envelope = (tk_envelope){0};
    envelope->parts[0] = header ? json_dumps(header, JSON_COMPACT) : NULL;
    envelope->parts[1] = strdup(parent ? parent : "{}");
    envelope->parts[2] = metadata ? json_dumps(metadata, JSON_COMPACT) : strdup("{}");
    envelope->parts[3] = content ? json_dumps(content, JSON_COMPACT) : NULL;
    json_decref(header);
    json_decref(metadata);
    json_decref(content);
    for (int i = 0; i < 4; i++) {
        if (!envelope->parts[i]) {
            tk_envelope_clear(envelope);
            return false;
        }
        envelope->lens[i] = strlen(envelope->parts[i]);
        frames[i] = (tk_frame){envelope->parts[i], envelope->lens[i]};
    }
    tk_hmac_sign(sender->key, frames, envelope->signature);
    return true;
}

void tk_envelope_clear(tk_envelope *envelope) {
    for (int i = 0; i < 4; i++)
        free(envelope->parts[i]);
    *envelope = (tk_envelope){0};
}
