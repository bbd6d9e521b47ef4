/* bytes.h: what the targets share: the bytes they are given as texts and files, a Lua state, and
 * what must hold of what comes out. */
#ifndef TIDE_TESTS_BYTES_H
#define TIDE_TESTS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every target defines: reads any bytes, returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with a message where a property doesn't hold: the fuzzer keeps the input. */
#define HOLDS(condition) ((condition) ? (void)0 : bytes_broken(__FILE__, __LINE__, #condition))
_Noreturn void bytes_broken(const char *file, int line, const char *what);

/* A malloc'ed copy with a NUL behind it. Its size is exact, so that reading on is seen. */
char *bytes_text(const uint8_t *data, size_t size);

/* The path of a file in memory that holds these bytes until the next call. */
const char *bytes_file(const uint8_t *data, size_t size);

/* Takes the first byte off: a choice; 0 when there is none. */
uint8_t bytes_choice(const uint8_t **data, size_t *size);

/* Calls the function that `code` returns, in a state of tide's own, with a string and a number. An
 * error that leaves it is broken: the code catches those that may be. Each target has one code. */
void bytes_call_lua(const char *code, const uint8_t *data, size_t size, int choice);

/* tide.load of a file of these bytes, mapped where `choice` is even: refused in one line that names
 * the call, or a value that can be used, and above 250 saved as well. A target that calls this
 * calls no other Lua. */
void bytes_load(const uint8_t *data, size_t size, int choice);

/* A session that is made once. */
struct tide_session *bytes_session(void);

/* Is this UTF-8, as JSON takes it? */
bool bytes_is_utf8(const char *text, size_t len);

#endif
