/* lenient.h: JSON objects out of what front ends send, also where it holds what C cannot.
 *
 * JSON's numbers have no bounds and its texts may hold half a surrogate pair, and front ends
 * written in languages that can hold such things send them: in a notebook's metadata, in pasted
 * code. The parser refuses them, which is no reason to leave a request without an answer. Knows
 * nothing of messages. */
#ifndef TIDE_KERNEL_LENIENT_H
#define TIDE_KERNEL_LENIENT_H

#include "jupyter-kernel/buffer.h"

#include <jansson.h>

#define TK_PROBLEM_SIZE 256

/* A JSON object (new) out of a text. Where the parser refuses the text, it is tried again with
 *
 *     integers beyond 64 bits       as reals
 *     reals beyond a double         as the largest of their sign
 *     NaN, Infinity and -Infinity   as null
 *     half a surrogate pair         as U+FFFD
 *     NUL in a key                  as U+FFFD
 *
 * NULL with one line in `problem` when it is no JSON object even so, or memory is out. */
json_t *tk_json_read_object(const char *text, size_t len, char problem[TK_PROBLEM_SIZE]);

#endif
