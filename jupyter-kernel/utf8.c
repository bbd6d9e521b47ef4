/* utf8.c: see utf8.h. Well-formed sequences are those of the Unicode Standard, table 3-7. */
#include "jupyter-kernel/utf8.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD";

static bool is_continuation(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

size_t tk_utf8_offset(const char *text, size_t len, size_t point) {
    size_t i = 0;
    while (i < len && point > 0) {
        i++;
        while (i < len && is_continuation(text[i]))
            i++;
        point--;
    }
    return i;
}

size_t tk_utf8_points(const char *text, size_t len, size_t offset) {
    size_t points = 0;
    for (size_t i = 0; i < len && i < offset; i++)
        points += !is_continuation(text[i]);
    return points;
}

/* Length that a sequence beginning with `lead` has, 0 for a byte that begins none; [low, high] is
 * what its second byte may be. */
static unsigned sequence_length(unsigned char lead, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xBF;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF) {
        if (lead == 0xE0)
            *low = 0xA0; /* overlong below */
        if (lead == 0xED)
            *high = 0x9F; /* surrogates above */
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        if (lead == 0xF0)
            *low = 0x90;
        if (lead == 0xF4)
            *high = 0x8F; /* beyond U+10FFFF above */
        return 4;
    }
    return 0;
}

/* Bytes at the start of `bytes` that are whole characters. At the first that is none, *broken is
 * the length of the broken sequence there, or 0 when it is merely unfinished. */
static size_t valid_prefix(const unsigned char *bytes, size_t len, size_t *broken) {
    size_t i = 0;
    *broken = 0;
    while (i < len) {
        unsigned char low, high;
        unsigned length = sequence_length(bytes[i], &low, &high);
        if (length == 0) {
            *broken = 1;
            return i;
        }
        unsigned have = 1;
        while (have < length && i + have < len && bytes[i + have] >= low &&
               bytes[i + have] <= high) {
            have++;
            low = 0x80;
            high = 0xBF;
        }
        if (have < length) {
            *broken = i + have < len ? have : 0;
            return i;
        }
        i += length;
    }
    return len;
}

bool tk_utf8_repair(tk_utf8_rest *rest, const char *bytes, size_t len, tk_buffer *out) {
    /* Complete what was held back, byte by byte: at most three more are needed. */
    while (rest->n > 0 && len > 0) {
        size_t broken;
        rest->bytes[rest->n++] = (unsigned char)*bytes;
        size_t whole = valid_prefix(rest->bytes, rest->n, &broken);
        if (whole == rest->n) {
            if (!tk_buffer_add(out, rest->bytes, rest->n))
                return false;
            rest->n = 0;
        } else if (broken) {
            /* The new byte ended the broken sequence and is looked at again. */
            if (!tk_buffer_add(out, replacement, 3))
                return false;
            rest->n = 0;
            continue;
        }
        bytes++;
        len--;
    }
    while (len > 0) {
        size_t broken;
        size_t whole = valid_prefix((const unsigned char *)bytes, len, &broken);
        if (!tk_buffer_add(out, bytes, whole))
            return false;
        bytes += whole;
        len -= whole;
        if (len == 0)
            break;
        if (broken == 0) {
            memcpy(rest->bytes, bytes, len);
            rest->n = (unsigned)len;
            break;
        }
        if (!tk_buffer_add(out, replacement, 3))
            return false;
        bytes += broken;
        len -= broken;
    }
    return true;
}

bool tk_utf8_finish(tk_utf8_rest *rest, tk_buffer *out) {
    if (rest->n == 0)
        return true;
    rest->n = 0;
    return tk_buffer_add(out, replacement, 3);
}
