/* hmac.c: see hmac.h. */
#include "jupyter-kernel/hmac.h"

#include <sodium.h>

_Static_assert(TK_SIGNATURE_LEN == 2 * crypto_auth_hmacsha256_BYTES, "two digits a byte");

void tk_hmac_sign(tk_frame key, const tk_frame frames[4], char signature[TK_SIGNATURE_LEN + 1]) {
    signature[0] = '\0';
    if (key.len == 0)
        return;
    crypto_auth_hmacsha256_state state;
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_init(&state, key.data, key.len);
    for (int i = 0; i < 4; i++)
        crypto_auth_hmacsha256_update(&state, frames[i].data, frames[i].len);
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_bin2hex(signature, TK_SIGNATURE_LEN + 1, mac, sizeof mac);
    sodium_memzero(&state, sizeof state);
}

bool tk_hmac_verify(tk_frame key, const tk_frame frames[4], tk_frame signature) {
    if (key.len == 0)
        return true;
    if (signature.len != TK_SIGNATURE_LEN)
        return false;
    char expected[TK_SIGNATURE_LEN + 1];
    tk_hmac_sign(key, frames, expected);
    return sodium_memcmp(expected, signature.data, TK_SIGNATURE_LEN) == 0;
}
