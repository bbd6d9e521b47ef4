/* hmac.h: signatures of messages: HMAC-SHA256 (RFC 2104) in lower-case hexadecimal.
 *
 * Knows frames of bytes and a key, nothing of what is in them. */
#ifndef TIDE_KERNEL_HMAC_H
#define TIDE_KERNEL_HMAC_H

#include <stdbool.h>
#include <stddef.h>

#define TK_SIGNATURE_LEN 64

/* Bytes of one frame, borrowed. */
typedef struct tk_frame {
    const void *data;
    size_t len;
} tk_frame;

/* Signs the concatenation of four frames (header, parent, metadata, content). `signature` gets 64
 * digits and a NUL, or is empty when the key is: messages are then not signed. */
void tk_hmac_sign(tk_frame key, const tk_frame frames[4], char signature[TK_SIGNATURE_LEN + 1]);

/* Whether `signature` is that of the four frames, compared in constant time. With an empty key
 * every signature is good. */
bool tk_hmac_verify(tk_frame key, const tk_frame frames[4], tk_frame signature);

#endif
