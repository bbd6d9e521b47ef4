/* test_wire.c: signatures, the wire format both ways, and the parser on frames nobody meant. */
#include "jupyter-kernel/wire.h"
#include "tests/check.h"

#include <sodium.h>
#include <stdlib.h>

static tk_frame text_frame(const char *text) {
    return (tk_frame){text, strlen(text)};
}

static const char header[] =
    "{\"msg_id\":\"m1\",\"msg_type\":\"execute_request\",\"session\":\"s\"}";

/* Nine frames of a good message: two identities, one buffer. `signature` gets its signature. */
static void good_frames(tk_frame key, tk_frame frames[9], char signature[TK_SIGNATURE_LEN + 1]) {
    const char *texts[9] = {"client", "route", "<IDS|MSG>",        "",   header,
                            "{}",     "{}",    "{\"code\":\"é\"}", "raw"};
    for (int i = 0; i < 9; i++)
        frames[i] = text_frame(texts[i]);
    tk_hmac_sign(key, frames + 4, signature);
    frames[3] = text_frame(signature);
}

/* RFC 4231, test case 2, cut into four frames: the signature is of their concatenation. */
TEST(hmac_signs_the_concatenation_of_the_frames) {
    tk_frame frames[4] = {text_frame("what do ya"), text_frame(" want "), text_frame(""),
                          text_frame("for nothing?")};
    char signature[TK_SIGNATURE_LEN + 1];
    tk_hmac_sign(text_frame("Jefe"), frames, signature);
    CHECK_STR(signature, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(tk_hmac_verify(text_frame("Jefe"), frames, text_frame(signature)));
}

/* RFC 4231, test case 6: a key longer than a block of the hash. */
TEST(hmac_takes_keys_longer_than_a_block) {
    char key[131], signature[TK_SIGNATURE_LEN + 1];
    memset(key, 0xaa, sizeof key);
    tk_frame frames[4] = {text_frame("Test Using Larger Than Block-Size Key - Hash Key First"),
                          text_frame(""), text_frame(""), text_frame("")};
    tk_hmac_sign((tk_frame){key, sizeof key}, frames, signature);
    CHECK_STR(signature, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(hmac_rejects_every_other_signature) {
    tk_frame frames[4] = {text_frame("a"), text_frame("b"), text_frame("c"), text_frame("d")};
    char signature[TK_SIGNATURE_LEN + 1];
    tk_hmac_sign(text_frame("key"), frames, signature);
    for (size_t i = 0; i < TK_SIGNATURE_LEN; i++) {
        char wrong[TK_SIGNATURE_LEN + 1];
        memcpy(wrong, signature, sizeof wrong);
        wrong[i] = wrong[i] == '0' ? '1' : '0';
        CHECK(!tk_hmac_verify(text_frame("key"), frames, text_frame(wrong)));
    }
    CHECK(!tk_hmac_verify(text_frame("key"), frames, text_frame("")));
    CHECK(!tk_hmac_verify(text_frame("key"), frames, (tk_frame){signature, 63}));
    CHECK(!tk_hmac_verify(text_frame("other"), frames, text_frame(signature)));
}

TEST(empty_key_means_unsigned) {
    tk_frame frames[4] = {text_frame("a"), text_frame("b"), text_frame("c"), text_frame("d")};
    char signature[TK_SIGNATURE_LEN + 1];
    tk_hmac_sign(text_frame(""), frames, signature);
    CHECK_STR(signature, "");
    CHECK(tk_hmac_verify(text_frame(""), frames, text_frame("anything")));
}

TEST(parse_reads_identities_json_and_buffers) {
    tk_frame frames[9];
    char signature[TK_SIGNATURE_LEN + 1];
    tk_message message;
    good_frames(text_frame("key"), frames, signature);
    CHECK_INT(tk_wire_parse(text_frame("key"), frames, 9, &message), TK_WIRE_OK);
    CHECK_STR(message.type, "execute_request");
    CHECK_INT(message.n_identities, 2);
    CHECK(message.identities == frames);
    CHECK_INT(message.n_buffers, 1);
    CHECK(message.buffers == frames + 8);
    CHECK_STR(json_string_value(json_object_get(message.content, "code")), "é");
    tk_message_clear(&message);
    CHECK(message.content == NULL);
}

TEST(parse_accepts_no_identities_and_no_buffers) {
    tk_frame frames[9];
    char signature[TK_SIGNATURE_LEN + 1];
    tk_message message;
    good_frames(text_frame("key"), frames, signature);
    CHECK_INT(tk_wire_parse(text_frame("key"), frames + 2, 6, &message), TK_WIRE_OK);
    CHECK_INT(message.n_identities, 0);
    CHECK_INT(message.n_buffers, 0);
    tk_message_clear(&message);
}

TEST(parse_rejects_a_changed_byte_in_each_signed_frame) {
    for (int i = 4; i < 8; i++) {
        tk_frame frames[9];
        char signature[TK_SIGNATURE_LEN + 1], changed[128];
        tk_message message;
        good_frames(text_frame("key"), frames, signature);
        memcpy(changed, frames[i].data, frames[i].len);
        changed[frames[i].len - 1] ^= 1;
        frames[i].data = changed;
        CHECK_INT(tk_wire_parse(text_frame("key"), frames, 9, &message), TK_WIRE_BAD_SIGNATURE);
        CHECK(message.header == NULL);
    }
}

TEST(parse_rejects_too_few_frames) {
    tk_frame frames[9];
    char signature[TK_SIGNATURE_LEN + 1];
    tk_message message;
    good_frames(text_frame("key"), frames, signature);
    CHECK_INT(tk_wire_parse(text_frame("key"), frames, 0, &message), TK_WIRE_NO_DELIMITER);
    for (size_t n = 1; n < 3; n++)
        CHECK_INT(tk_wire_parse(text_frame("key"), frames, n, &message), TK_WIRE_NO_DELIMITER);
    for (size_t n = 3; n < 8; n++)
        CHECK_INT(tk_wire_parse(text_frame("key"), frames, n, &message), TK_WIRE_TOO_SHORT);
}

TEST(parse_rejects_too_many_frames_and_bytes) {
    static tk_frame frames[TK_MAX_FRAMES + 1];
    tk_message message;
    for (size_t i = 0; i < TK_MAX_FRAMES + 1; i++)
        frames[i] = text_frame("<IDS|MSG>");
    CHECK_INT(tk_wire_parse(text_frame(""), frames, TK_MAX_FRAMES + 1, &message), TK_WIRE_TOO_BIG);
    frames[1].len = TK_MAX_MESSAGE; /* never looked into */
    CHECK_INT(tk_wire_parse(text_frame(""), frames, 2, &message), TK_WIRE_TOO_BIG);
}

/* What an unsigned message with these four parts is read as. */
static tk_wire_status parse_parts(const char *h, const char *p, const char *m, const char *c) {
    tk_frame frames[6] = {text_frame("<IDS|MSG>"), text_frame(""), text_frame(h),
                          text_frame(p),           text_frame(m),  text_frame(c)};
    tk_message message;
    tk_wire_status status = tk_wire_parse(text_frame(""), frames, 6, &message);
    tk_message_clear(&message);
    return status;
}

/* Only the header need be read: who sent it can then be told about the rest. */
TEST(parse_rejects_headers_that_are_no_objects) {
    const char *bad[] = {
        "", "[]", "1", "null", "{", "{}x", "\"a\"", "{\"a\":\"\xff\"}", "{\"a\":\"\xc3"};
    CHECK_INT(parse_parts(header, "{}", "{}", "{}"), TK_WIRE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(parse_parts(bad[i], "{}", "{}", "{}"), TK_WIRE_BAD_JSON);
        CHECK_INT(parse_parts(header, bad[i], "{}", "{}"), TK_WIRE_OK);
        CHECK_INT(parse_parts(header, "{}", bad[i], "{}"), TK_WIRE_OK);
        CHECK_INT(parse_parts(header, "{}", "{}", bad[i]), TK_WIRE_OK);
    }
}

TEST(content_that_cannot_be_read_is_empty_with_a_reason) {
    tk_frame frames[6] = {text_frame("<IDS|MSG>"), text_frame(""),   text_frame(header),
                          text_frame("{}"),        text_frame("{}"), text_frame("{\"code\"")};
    tk_message message;
    CHECK_INT(tk_wire_parse(text_frame(""), frames, 6, &message), TK_WIRE_OK);
    CHECK(json_object_size(message.content) == 0 && message.problem[0]);
    tk_message_clear(&message);
    frames[4] = text_frame("[]");
    frames[5] = text_frame("{\"code\": \"1\"}");
    CHECK_INT(tk_wire_parse(text_frame(""), frames, 6, &message), TK_WIRE_OK);
    CHECK(json_object_size(message.metadata) == 0 && !message.problem[0]);
    CHECK(json_object_size(message.content) == 1);
    tk_message_clear(&message);
}

TEST(parse_rejects_headers_without_type_or_id) {
    CHECK_INT(parse_parts("{}", "{}", "{}", "{}"), TK_WIRE_BAD_HEADER);
    CHECK_INT(parse_parts("{\"msg_id\":\"1\"}", "{}", "{}", "{}"), TK_WIRE_BAD_HEADER);
    CHECK_INT(parse_parts("{\"msg_type\":\"x\"}", "{}", "{}", "{}"), TK_WIRE_BAD_HEADER);
    CHECK_INT(parse_parts("{\"msg_id\":1,\"msg_type\":\"x\"}", "{}", "{}", "{}"),
              TK_WIRE_BAD_HEADER);
    CHECK_INT(parse_parts("{\"msg_id\":\"1\",\"msg_type\":[]}", "{}", "{}", "{}"),
              TK_WIRE_BAD_HEADER);
}

TEST(parse_survives_deep_nesting) {
    enum { DEPTH = 1000000 };
    char *deep = malloc(DEPTH + 7);
    REQUIRE(deep != NULL);
    memcpy(deep, "{\"a\":", 5);
    memset(deep + 5, '[', DEPTH);
    memcpy(deep + 5 + DEPTH, "]", 2);
    CHECK_INT(parse_parts(header, "{}", "{}", deep), TK_WIRE_OK);
    CHECK_INT(parse_parts(deep, "{}", "{}", "{}"), TK_WIRE_BAD_JSON);
    free(deep);
}

TEST(written_envelopes_are_parsed_back) {
    tk_sender sender = {.key = {"key", 3}, .session = "0123456789abcdef", .username = "ada"};
    tk_envelope envelope;
    tk_message message;
    REQUIRE(tk_envelope_write(&sender, "stream", header, NULL, json_pack("{s:s}", "text", "a\nb"),
                              &envelope));
    tk_frame frames[6] = {{"<IDS|MSG>", 9}, {envelope.signature, strlen(envelope.signature)}};
    for (int i = 0; i < 4; i++)
        frames[2 + i] = (tk_frame){envelope.parts[i], envelope.lens[i]};
    CHECK_INT(tk_wire_parse(text_frame("key"), frames, 6, &message), TK_WIRE_OK);
    CHECK_STR(message.type, "stream");
    CHECK_STR(json_string_value(json_object_get(message.header, "username")), "ada");
    CHECK_STR(json_string_value(json_object_get(message.header, "version")), "5.5");
    CHECK_STR(json_string_value(json_object_get(message.content, "text")), "a\nb");
    CHECK_STR(envelope.parts[1], header);
    tk_message_clear(&message);

    char *first = envelope.parts[0];
    envelope.parts[0] = NULL;
    tk_envelope_clear(&envelope);
    REQUIRE(tk_envelope_write(&sender, "stream", NULL, NULL, json_object(), &envelope));
    CHECK(strcmp(first, envelope.parts[0]) != 0); /* ids differ */
    CHECK_STR(envelope.parts[1], "{}");
    free(first);
    tk_envelope_clear(&envelope);
}

TEST(no_envelope_without_content) {
    tk_sender sender = {.username = "ada"};
    tk_envelope envelope;
    CHECK(!tk_envelope_write(&sender, "stream", NULL, NULL, NULL, &envelope));
    CHECK(envelope.parts[0] == NULL);
}

/* Random frames, and good ones with random bytes changed: nothing may crash, leak or be accepted
 * unless it is a message. The seed is fixed, so a failure repeats. */
TEST(parse_survives_random_frames) {
    unsigned seed = 1;
    int accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char bytes[12][96], signature[TK_SIGNATURE_LEN + 1];
        tk_frame frames[12];
        tk_message message;
        size_t n = 9;
        bool is_signed = round % 2;
        tk_frame key = text_frame(is_signed ? "key" : "");
        good_frames(key, frames, signature);
        if (round % 5 == 0)
            n = (size_t)rand_r(&seed) % 12;
        for (size_t i = 0; i < n; i++) {
            size_t len = round % 5 == 0 ? (size_t)rand_r(&seed) % 96 : frames[i].len;
            for (size_t j = 0; round % 5 == 0 && j < len; j++)
                bytes[i][j] = (char)rand_r(&seed);
            if (round % 5)
                memcpy(bytes[i], frames[i].data, len);
            frames[i] = (tk_frame){bytes[i], len};
        }
        for (int change = round % 4; change > 0 && n > 0; change--) {
            size_t i = (size_t)rand_r(&seed) % n;
            if (frames[i].len > 0)
                bytes[i][(size_t)rand_r(&seed) % frames[i].len] = (char)rand_r(&seed);
        }
        if (tk_wire_parse(key, frames, n, &message) == TK_WIRE_OK) {
            accepted++;
            CHECK(message.type && json_is_object(message.header) &&
                  json_is_object(message.content));
            CHECK(message.n_identities + 6 + message.n_buffers == n);
        }
        tk_message_clear(&message);
    }
    CHECK(accepted > 1000 && accepted < 19000);
}

TEST(every_problem_has_words) {
    for (int status = TK_WIRE_OK; status <= TK_WIRE_BAD_HEADER; status++)
        CHECK(strcmp(tk_wire_problem((tk_wire_status)status), "unknown problem") != 0);
}

int main(void) {
    if (sodium_init() < 0)
        return 1;
    RUN(hmac_signs_the_concatenation_of_the_frames);
    RUN(hmac_takes_keys_longer_than_a_block);
    RUN(hmac_rejects_every_other_signature);
    RUN(empty_key_means_unsigned);
    RUN(parse_reads_identities_json_and_buffers);
    RUN(parse_accepts_no_identities_and_no_buffers);
    RUN(parse_rejects_a_changed_byte_in_each_signed_frame);
    RUN(parse_rejects_too_few_frames);
    RUN(parse_rejects_too_many_frames_and_bytes);
    RUN(parse_rejects_headers_that_are_no_objects);
    RUN(content_that_cannot_be_read_is_empty_with_a_reason);
    RUN(parse_rejects_headers_without_type_or_id);
    RUN(parse_survives_deep_nesting);
    RUN(written_envelopes_are_parsed_back);
    RUN(no_envelope_without_content);
    RUN(parse_survives_random_frames);
    RUN(every_problem_has_words);
    return check_finish();
}
