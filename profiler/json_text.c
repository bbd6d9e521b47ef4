/* json_text.c: see json_text.h. */
#include "profiler/json_text.h"

#include <stddef.h>

/* Bytes of the character that begins here; 0 where none does. */
static size_t utf8_length(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80)
        return 1;
    size_t n = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
    unsigned low = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;  /* no longer than needed */
    unsigned high = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF; /* no surrogates */
    if (u[0] < 0xC2 || u[0] > 0xF4 || u[1] < low || u[1] > high)
        return 0;
    for (size_t k = 2; k < n; k++)
        if ((u[k] & 0xC0) != 0x80)
            return 0;
    return n;
}

void tide_json_write(FILE *f, const char *s) {
    fputc('"', f);
    for (size_t n; *s; s += n) {
        unsigned char c = (unsigned char)*s;
        n = utf8_length(s);
        if (n == 0) {
            fputs("\\ufffd", f);
            n = 1;
        } else if (c == '"' || c == '\\') {
            fprintf(f, "\\%c", c);
        } else if (c < 0x20 || c == '<') {
            fprintf(f, "\\u%04x", c);
        } else {
            fwrite(s, 1, n, f);
        }
    }
    fputc('"', f);
}
