/* channels.h: the kernel's five sockets: bound, read frame by frame, written to.
 *
 * A ZeroMQ socket belongs to one thread at a time: shell and stdin to the main thread, control and
 * heartbeat to the control thread, iopub to whoever holds the output's lock (output.h). Knows
 * nothing of what messages mean.
 *
 * What a peer does not read waits here, and how much that is nobody but us knows: ZeroMQ counts
 * messages, whatever their size. So the bytes of contents are counted from send to release. */
#ifndef TIDE_KERNEL_CHANNELS_H
#define TIDE_KERNEL_CHANNELS_H

#include "jupyter-kernel/buffer.h"
#include "jupyter-kernel/connection.h"
#include "jupyter-kernel/wire.h"

typedef struct tk_channels {
    void *context;
    void *sockets[TK_CHANNELS]; /* by tk_channel */
} tk_channels;

/* Opens and binds all sockets, encrypted where the connection has Curve keys; a port that is 0
 * becomes the free one that was taken. False with one line in `error`, nothing left open. */
bool tk_channels_open(tk_channels *channels, tk_connection *connection, char *error, size_t size);

/* Closes all sockets; what was sent is given a second to leave. */
void tk_channels_close(tk_channels *channels);

/* The frames of one message as they came, copied off the socket. All zero: none. */
typedef struct tk_parcel {
    tk_frame *frames;
    size_t n, capacity;
    tk_buffer bytes; /* what the frames point into */
} tk_parcel;

/* Receives one message without waiting. False when there is none; a message with too many frames or
 * bytes is taken off the socket, logged and dropped, and the next one tried. */
bool tk_parcel_receive(tk_parcel *parcel, void *socket);
void tk_parcel_clear(tk_parcel *parcel);

/* Sends back what came, as the heartbeat does. */
void tk_channels_echo(void *socket, const tk_parcel *parcel);

/* Sends identities, delimiter and envelope as one message, and takes the envelope's content. Never
 * waits: a peer that is gone or does not keep up loses it, and so do all where more than twice
 * TK_PENDING_BYTES wait. */
void tk_channels_send(void *socket, const tk_frame *identities, size_t n, tk_envelope *envelope);

/* Bytes that were sent and that some peer has not taken yet. */
size_t tk_channels_pending(void);
#define TK_PENDING_BYTES ((size_t)64 << 20) /* beyond it output is lost rather than kept */

/* Takes what a subscriber of iopub asks for off the socket: its topic, at most `size` bytes of it.
 * False: nobody asks. */
bool tk_channels_subscription(void *socket, char *topic, size_t size, size_t *len);

/* A descriptor that becomes readable when there may be a subscription. */
int tk_channels_descriptor(void *socket);

#endif
