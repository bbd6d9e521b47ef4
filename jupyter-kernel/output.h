/* output.h: the iopub channel: streams batched, other messages in order among them.
 *
 * Text is collected and leaves as one stream message when the stream changes, when there is much of
 * it, before any other message, or 50 ms after its first byte, by a thread that only does this. One
 * lock guards the collected text and the socket, so a printing cell neither waits for a thread nor
 * wakes one for each line. Of a flood of text the middle is left out (flood.h).
 *
 * A front end that does not read makes what it was sent wait (channels.h). Where much waits a
 * printing cell is slowed down; where that does not help output is lost, and status messages are
 * not.
 *
 * Whoever subscribes is welcomed (iopub_welcome), so that a front end knows from when on it misses
 * nothing. Safe from every thread. Knows nothing of cells or of Lua. */
#ifndef TIDE_KERNEL_OUTPUT_H
#define TIDE_KERNEL_OUTPUT_H

#include "jupyter-kernel/wire.h"

typedef struct tk_output tk_output;

/* Where text comes from. Each source is a sequence of bytes of its own, which may be cut within a
 * character. */
typedef enum tk_source {
    TK_PRINTED_OUT, /* the session's stdout and stderr */
    TK_PRINTED_ERR,
    TK_CAUGHT_OUT, /* descriptors 1 and 2 */
    TK_CAUGHT_ERR,
    TK_SOURCES
} tk_source;

/* Starts the iopub channel on a bound XPUB socket (borrowed, used by nobody else from now on).
 * `sender` is borrowed. NULL when memory or threads are out. */
tk_output *tk_output_new(void *socket, tk_sender *sender);

/* Sends what is collected and ends the thread. NULL is allowed. */
void tk_output_free(tk_output *output);

/* Text from now on belongs to the request with this header (JSON text, copied; NULL: to none). */
void tk_output_parent(tk_output *output, const char *parent);

/* Whether the middle of a flood of text is left out; it is from the beginning on. */
void tk_output_limit(tk_output *output, bool on);

/* Adds text to a stream. Broken UTF-8 is mended; an unfinished character waits for its end. */
void tk_output_write(tk_output *output, tk_source source, const char *bytes, size_t len);

/* Sends what is collected; `whole` also says that the cell has ended: unfinished characters will
 * not be finished, and the end of a flood is shown. */
void tk_output_flush(tk_output *output, bool whole);

/* Sends a message after all text written before it. `content` is stolen (NULL: memory was out, and
 * the message is lost with a line in the log), `parent` is a header's JSON text or NULL. */
void tk_output_publish(tk_output *output, const char *type, const char *parent, json_t *content);

/* The same with metadata (stolen; NULL: none) and bytes behind the message. */
void tk_output_publish_buffers(tk_output *output, const char *type, const char *parent,
                               json_t *metadata, json_t *content, const tk_frame *buffers,
                               size_t n);

/* From now on output goes into the widget of that comm (gather.h), as its state: some at a time,
 * and all of it at the end. `outputs` are those that it has (stolen; NULL: none). Widgets may be
 * within others. */
void tk_output_gather(tk_output *output, const char *comm, json_t *outputs);

/* Ends that of the innermost one. Gives its outputs as JSON text, malloc'ed; NULL: there is none.
 */
char *tk_output_gathered(tk_output *output);

/* Ends all of them: what runs next is none of theirs. */
void tk_output_gather_none(tk_output *output);

/* Welcomes who has subscribed; messages that are sent do it too. To be called when the descriptor
 * becomes readable, which says that there may be one; -1: there is no descriptor. */
void tk_output_welcome(tk_output *output);
int tk_output_descriptor(tk_output *output);

#endif
