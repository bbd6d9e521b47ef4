/* fuzz_wire.c: Jupyter messages of any frames, unsigned and signed; what is read can be written
 * again.
 *
 * The first byte says what is signed; a frame is a byte or two of length and so many bytes. */
#include "tests/torture/fuzz/bytes.h"

#include "jupyter-kernel/content.h"
#include "jupyter-kernel/wire.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES = 24 };

static size_t cut(const uint8_t *data, size_t size, tk_frame frames[FRAMES]) {
    size_t n = 0;
    while (size > 0 && n < FRAMES) {
        size_t len = bytes_choice(&data, &size);
        if (len > 200)
            len = len << 4 | bytes_choice(&data, &size);
        len = len < size ? len : size;
        frames[n++] = (tk_frame){(const char *)data, len};
        data += len;
        size -= len;
    }
    return n;
}

static void check_message(tk_sender *sender, const tk_message *m) {
    tk_envelope envelope;
    size_t len;
    HOLDS(m->type && m->header && m->metadata && m->content);
    HOLDS(!m->problem[0] || json_object_size(m->content) == 0);
    (void)tk_field_string(m->content, "code", &len);
    (void)tk_field_integer(m->content, "cursor_pos", 0);
    (void)tk_field_bool(m->content, "silent", false);
    char *parent = json_dumps(m->header, JSON_COMPACT);
    HOLDS(parent);
    HOLDS(tk_envelope_write(sender, m->type, parent, json_incref(m->metadata),
                            json_incref(m->content), &envelope));
    tk_frame frames[] = {{"<IDS|MSG>", 9},
                         {envelope.signature, strlen(envelope.signature)},
                         {envelope.parts[0], envelope.lens[0]},
                         {envelope.parts[1], envelope.lens[1]},
                         {envelope.parts[2], envelope.lens[2]},
                         {envelope.parts[3], envelope.lens[3]}};
    tk_message again;
    HOLDS(tk_wire_parse(sender->key, frames, 6, &again) == TK_WIRE_OK);
    HOLDS(json_equal(again.content, m->content) && json_equal(again.metadata, m->metadata));
    tk_message_clear(&again);
    tk_envelope_clear(&envelope);
    free(parent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static tk_sender sender = {.session = "0123456789abcdef0123456789abcdef", .username = "u"};
    tk_frame frames[FRAMES];
    char signature[TK_SIGNATURE_LEN + 1];
    int choice = bytes_choice(&data, &size);
    size_t n = cut(data, size, frames), mark = 0;
    sender.key = choice & 1 ? (tk_frame){"key", 3} : (tk_frame){"", 0};
    while (mark < n && !(frames[mark].len == 9 && !memcmp(frames[mark].data, "<IDS|MSG>", 9)))
        mark++;
    if (choice & 2 && n >= mark + 6) {
        tk_hmac_sign(sender.key, frames + mark + 2, signature);
        frames[mark + 1] = (tk_frame){signature, strlen(signature)};
    }
    tk_message message;
    tk_wire_status status = tk_wire_parse(sender.key, frames, n, &message);
    HOLDS(tk_wire_problem(status));
    if (status == TK_WIRE_OK)
        check_message(&sender, &message);
    tk_message_clear(&message);
    return 0;
}
