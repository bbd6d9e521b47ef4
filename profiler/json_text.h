/* json_text.h: a text as a string of JSON. */
#ifndef TIDE_PROFILER_JSON_TEXT_H
#define TIDE_PROFILER_JSON_TEXT_H

#include <stdio.h>

/* In quotes; what is not UTF-8 becomes U+FFFD, and '<' an escape, so that no page takes it for a
 * tag. */
void tide_json_write(FILE *file, const char *text);

#endif
