/* status.h: how engine functions say that they failed.
 *
 * A function that can fail returns a td_status (or NULL for constructors) and leaves one line in a
 * thread-local message. The engine never prints, exits or jumps. The message is set once, where the
 * error arises; td_error_prefix adds the operator's name on the way up.
 */
#ifndef TD_CORE_STATUS_H
#define TD_CORE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_STATUS_TABLE(X)                                                                         \
    X(OK, "ok")                                                                                    \
    X(ETYPE, "wrong type of argument")                                                             \
    X(ESHAPE, "shapes don't fit")                                                                  \
    X(EDTYPE, "dtype not supported here")                                                          \
    X(EDEVICE, "device not supported here")                                                        \
    X(EINDEX, "index out of range")                                                                \
    X(EVALUE, "value not allowed")                                                                 \
    X(EAUTOGRAD, "autograd refuses")                                                               \
    X(ENOMEM, "out of memory")                                                                     \
    X(EINTR, "interrupted")                                                                        \
    X(ESCRIPT, "a function of the script failed")                                                  \
    X(EIO, "input or output failed")                                                               \
    X(EINTERNAL, "internal error")

typedef enum td_status {
#define TD_STATUS_ENUM(name, text) TD_##name,
    TD_STATUS_TABLE(TD_STATUS_ENUM)
#undef TD_STATUS_ENUM
} td_status;

#define TD_MUST_CHECK   __attribute__((warn_unused_result))
#define TD_PRINTF(f, a) __attribute__((format(printf, f, a)))
/* State of a thread that is read in every call, also from a module that was loaded late: no call to
 * find it. */
#define TD_THREAD_STATE _Thread_local __attribute__((tls_model("initial-exec")))
#define TD_LIKELY(x)    __builtin_expect(!!(x), 1)
#define TD_UNLIKELY(x)  __builtin_expect(!!(x), 0)

/* Set this thread's error to a formatted line and return `code`. */
td_status td_fail(td_status code, const char *format, ...) TD_PRINTF(2, 3);

/* The code and message of this thread's last failure; borrowed until the next one. */
td_status td_error_code(void);
const char *td_error_message(void);

/* Put "prefix: " before the message unless a prefix stands there already. */
void td_error_prefix(const char *prefix);
/* The same in place of a prefix that stands there: of operators within one another the outermost,
 * which the user called, is named. */
void td_error_rename(const char *prefix);

/* Text of a code (static). */
const char *td_status_text(td_status code);

/* Leave for the label `done` when an expression of type td_status fails. The enclosing function
 * declares `td_status status = TD_OK;` and releases what it owns after `done:`. */
#define TD_TRY(expression)                                                                         \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (TD_UNLIKELY(status != TD_OK))                                                          \
            goto done;                                                                             \
    } while (0)

#endif
