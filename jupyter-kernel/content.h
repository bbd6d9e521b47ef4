/* content.h: JSON out of what the session gives, and fields out of what a front end sent.
 *
 * Pure functions. Every `json_t *` returned is new; NULL when memory is out, which all functions
 * that take a content accept (the message is then lost with a line in the log). */
#ifndef TIDE_KERNEL_CONTENT_H
#define TIDE_KERNEL_CONTENT_H

#include "repl/session/session.h"

#include <jansson.h>

/* A string; bytes that are not UTF-8 become U+FFFD. NULL text is an empty one. */
json_t *tk_json_text(const char *text, size_t len);
json_t *tk_json_string(const char *text);

/* A MIME bundle as an object; entries of JSON types as the JSON they hold. */
json_t *tk_json_bundle(const tide_bundle *bundle);

/* What front ends are told beside it, by type; an empty object when there is nothing. */
json_t *tk_json_metadata(const tide_bundle *bundle);

/* {status: "error", ename, evalue, traceback} of a result that is an error. */
json_t *tk_json_error(const tide_result *result);

/* The same for a request that cannot be served: ename "BadRequest", one line. */
json_t *tk_json_bad_request(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fields of a request's content, with what they are when missing or of another type. A string is
 * borrowed. */
const char *tk_field_string(const json_t *content, const char *name, size_t *len);
bool tk_field_bool(const json_t *content, const char *name, bool otherwise);
long tk_field_integer(const json_t *content, const char *name, long otherwise);

#endif
