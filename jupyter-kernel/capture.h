/* capture.h: descriptors 1 and 2 caught, so that C code and child processes write to the cell too.
 *
 * Both become pipes that a thread reads into the output (output.h). Order with what the session
 * prints is kept by tk_capture_drain, called before each print: what was written to the descriptors
 * until then is ahead of it. One capture in a process. Knows nothing of messages. */
#ifndef TIDE_KERNEL_CAPTURE_H
#define TIDE_KERNEL_CAPTURE_H

#include "jupyter-kernel/output.h"

typedef struct tk_capture tk_capture;

/* Redirects descriptors 1 and 2, and 0 to /dev/null; the log (log.h) keeps the old 2. NULL with a
 * line in the log when that cannot be done; the descriptors are then as they were. */
tk_capture *tk_capture_start(tk_output *output);

/* Moves what the descriptors got so far into the output. Safe from every thread. */
void tk_capture_drain(tk_capture *capture);

/* Drains, ends the thread and gives the descriptors back. NULL is allowed. */
void tk_capture_stop(tk_capture *capture);

#endif
