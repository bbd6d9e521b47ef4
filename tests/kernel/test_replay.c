/* test_replay.c: signatures are new once, and the set that knows them is bounded. */
#include "jupyter-kernel/replay.h"
#include "tests/check.h"

#include <sodium.h>

/* Is the n-th signature new? */
static bool is_new(tk_replays *replays, unsigned n) {
    char text[16], signature[TK_SIGNATURE_LEN + 1];
    int len = snprintf(text, sizeof text, "%u", n);
    tk_frame frames[4] = {{text, (size_t)len}, {"", 0}, {"", 0}, {"", 0}};
    tk_hmac_sign((tk_frame){"key", 3}, frames, signature);
    return tk_replays_add(replays, (tk_frame){signature, TK_SIGNATURE_LEN});
}

TEST(a_signature_is_new_once) {
    tk_replays *replays = tk_replays_new();
    REQUIRE(replays != NULL);
    for (unsigned i = 0; i < 5000; i++)
        CHECK(is_new(replays, i));
    for (unsigned i = 0; i < 5000; i++)
        CHECK(!is_new(replays, i));
    tk_replays_free(replays);
}

TEST(the_latest_are_known_however_many_came) {
    tk_replays *replays = tk_replays_new();
    REQUIRE(replays != NULL);
    for (unsigned i = 0; i < 200000; i++)
        CHECK(is_new(replays, i));
    for (unsigned i = 199000; i < 200000; i++)
        CHECK(!is_new(replays, i));
    CHECK(is_new(replays, 0)); /* forgotten long since */
    tk_replays_free(replays);
}

TEST(what_is_not_signed_is_always_new) {
    tk_replays *replays = tk_replays_new();
    REQUIRE(replays != NULL);
    CHECK(tk_replays_add(replays, (tk_frame){"", 0}) && tk_replays_add(replays, (tk_frame){"", 0}));
    tk_replays_free(replays);
}

int main(void) {
    if (sodium_init() < 0)
        return 1;
    RUN(a_signature_is_new_once);
    RUN(the_latest_are_known_however_many_came);
    RUN(what_is_not_signed_is_always_new);
    return check_finish();
}
