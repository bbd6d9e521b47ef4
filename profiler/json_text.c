/* json_text.c: see json_text.h. */
#include "profiler/json_text.h"

#include "engine/io/json.h"

#include <string.h>

void tide_json_write(FILE *f, const char *s) {
    fputc('"', f);
    for (size_t n; *s; s += n) {
        unsigned char c = (unsigned char)*s;
        n = td_utf8_length(s, s + strnlen(s, 4));
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
