/* channels.c: see channels.h. */
#include "jupyter-kernel/channels.h"
#include "jupyter-kernel/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

/* What a message costs besides its content: header, parent, ZeroMQ's own. */
#define MESSAGE_BYTES 1024

static const int socket_types[TK_CHANNELS] = {ZMQ_ROUTER, ZMQ_XPUB, ZMQ_ROUTER, ZMQ_ROUTER,
                                              ZMQ_ROUTER};

/* Of the process, since ZeroMQ's threads give back what it counts. */
static atomic_size_t pending;

static bool set_options(void *socket, tk_channel channel) {
    int one = 1, linger = 1000, unbounded = 0;
    int64_t largest = (int64_t)TK_MAX_MESSAGE;
    bool ok = zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) == 0 &&
              zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest) == 0 &&
              zmq_setsockopt(socket, ZMQ_IPV6, &one, sizeof one) == 0;
    /* A front end that reconnects under its old identity takes it over. */
    if (ok && socket_types[channel] == ZMQ_ROUTER)
        ok = zmq_setsockopt(socket, ZMQ_ROUTER_HANDOVER, &one, sizeof one) == 0;
    /* Bounded in bytes instead; every subscriber is heard, also one that asks what another did. */
    if (ok && channel == TK_IOPUB)
        ok = zmq_setsockopt(socket, ZMQ_SNDHWM, &unbounded, sizeof unbounded) == 0 &&
             zmq_setsockopt(socket, ZMQ_XPUB_VERBOSE, &one, sizeof one) == 0;
    return ok;
}

/* A front end proves nothing but that it knows our public key: whoever reads the connection file
 * does. */
static bool set_curve(void *socket, const tk_connection *connection) {
    int one = 1;
    return !connection->curve_secret ||
           (zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &one, sizeof one) == 0 &&
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, connection->curve_secret,
                           TK_CURVE_KEY_LEN + 1) == 0);
}

/* The port that was taken where any would do. */
static bool take_port(void *socket, int *port) {
    char address[256];
    size_t len = sizeof address;
    if (*port != 0)
        return true;
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, address, &len) != 0)
        return false;
    const char *colon = strrchr(address, ':');
    *port = colon ? (int)strtol(colon + 1, NULL, 10) : 0;
    return *port > 0;
}

static bool open_channel(tk_channels *channels, tk_connection *connection, tk_channel channel,
                         char *error, size_t size) {
    char *address = tk_connection_address(connection, channel);
    void *socket = address ? zmq_socket(channels->context, socket_types[channel]) : NULL;
    channels->sockets[channel] = socket;
    bool ok = socket && set_options(socket, channel) && set_curve(socket, connection) &&
              zmq_bind(socket, address) == 0 && take_port(socket, &connection->ports[channel]);
    if (!ok)
        snprintf(error, size, "cannot open the %s channel at %s: %s", tk_channel_name(channel),
                 address ? address : "its address",
                 address ? zmq_strerror(errno) : "out of memory");
    free(address);
    return ok;
}

bool tk_channels_open(tk_channels *channels, tk_connection *connection, char *error, size_t size) {
    *channels = (tk_channels){.context = zmq_ctx_new()};
    if (!channels->context) {
        snprintf(error, size, "cannot start ZeroMQ: %s", zmq_strerror(errno));
        return false;
    }
    for (int i = 0; i < TK_CHANNELS; i++) {
        if (!open_channel(channels, connection, (tk_channel)i, error, size)) {
            tk_channels_close(channels);
            return false;
        }
    }
    return true;
}

void tk_channels_close(tk_channels *channels) {
    for (int i = 0; i < TK_CHANNELS; i++)
        if (channels->sockets[i])
            zmq_close(channels->sockets[i]);
    while (channels->context && zmq_ctx_term(channels->context) != 0 && errno == EINTR)
        ;
    *channels = (tk_channels){0};
}

static bool parcel_add(tk_parcel *parcel, zmq_msg_t *message) {
    if (parcel->n == parcel->capacity) {
        size_t capacity = parcel->capacity ? 2 * parcel->capacity : 8;
        tk_frame *frames = realloc(parcel->frames, capacity * sizeof *frames);
        if (!frames)
            return false;
        parcel->frames = frames;
        parcel->capacity = capacity;
    }
    size_t len = zmq_msg_size(message);
    if (!tk_buffer_add(&parcel->bytes, zmq_msg_data(message), len))
        return false;
    parcel->frames[parcel->n++].len = len;
    return true;
}

/* Reads the frames of one message; *dropped says that it was too large to keep. False: none. */
static bool receive_frames(tk_parcel *parcel, void *socket, bool *dropped) {
    size_t total = 0;
    bool more = true;
    *dropped = false;
    for (size_t count = 0; more; count++) {
        zmq_msg_t message;
        int rc;
        zmq_msg_init(&message);
        while ((rc = zmq_msg_recv(&message, socket, ZMQ_DONTWAIT)) < 0 && errno == EINTR)
            ;
        more = rc >= 0 && zmq_msg_more(&message);
        if (rc >= 0) {
            total += zmq_msg_size(&message);
            if (count >= TK_MAX_FRAMES || total > TK_MAX_MESSAGE)
                *dropped = true;
            *dropped = *dropped || !parcel_add(parcel, &message);
        }
        zmq_msg_close(&message);
        if (rc < 0) /* a message arrives whole or not at all: this was the first frame */
            return false;
    }
    return true;
}

bool tk_parcel_receive(tk_parcel *parcel, void *socket) {
    bool dropped;
    *parcel = (tk_parcel){0};
    while (receive_frames(parcel, socket, &dropped)) {
        if (!dropped) {
            size_t offset = 0;
            for (size_t i = 0; i < parcel->n; i++) {
                parcel->frames[i].data = parcel->bytes.data ? parcel->bytes.data + offset : "";
                offset += parcel->frames[i].len;
            }
            return true;
        }
        tk_log("dropped a message: %s", tk_wire_problem(TK_WIRE_TOO_BIG));
        tk_parcel_clear(parcel);
    }
    tk_parcel_clear(parcel);
    return false;
}

void tk_parcel_clear(tk_parcel *parcel) {
    free(parcel->frames);
    tk_buffer_clear(&parcel->bytes);
    *parcel = (tk_parcel){0};
}

static bool send_frame(void *socket, const void *data, size_t len, bool last) {
    int rc;
    while ((rc = zmq_send(socket, data, len, ZMQ_DONTWAIT | (last ? 0 : ZMQ_SNDMORE))) < 0 &&
           errno == EINTR)
        ;
    return rc >= 0;
}

void tk_channels_echo(void *socket, const tk_parcel *parcel) {
    bool ok = true;
    for (size_t i = 0; ok && i < parcel->n; i++)
        ok = send_frame(socket, parcel->frames[i].data, parcel->frames[i].len, i + 1 == parcel->n);
}

size_t tk_channels_pending(void) {
    return atomic_load_explicit(&pending, memory_order_relaxed);
}

/* Called by one of ZeroMQ's threads when no peer needs a content any more. */
static void release(void *data, void *hint) {
    atomic_fetch_sub_explicit(&pending, (size_t)(uintptr_t)hint, memory_order_relaxed);
    free(data);
}

/* Sends the content of a message and takes it. */
static bool send_content(void *socket, char **data, size_t len, bool last) {
    size_t cost = len + MESSAGE_BYTES;
    zmq_msg_t message;
    int rc;
    if (zmq_msg_init_data(&message, *data, len, release, (void *)(uintptr_t)cost) != 0)
        return false;
    *data = NULL;
    atomic_fetch_add_explicit(&pending, cost, memory_order_relaxed);
    while ((rc = zmq_msg_send(&message, socket, ZMQ_DONTWAIT | (last ? 0 : ZMQ_SNDMORE))) < 0 &&
           errno == EINTR)
        ;
    if (rc < 0)
        zmq_msg_close(&message);
    return rc >= 0;
}

void tk_channels_send(void *socket, const tk_frame *identities, size_t n, tk_envelope *envelope) {
    bool ok = true;
    if (tk_channels_pending() > 2 * TK_PENDING_BYTES) {
        tk_log("lost a message: front ends do not read what they were sent");
        return;
    }
    for (size_t i = 0; ok && i < n; i++)
        ok = send_frame(socket, identities[i].data, identities[i].len, false);
    ok = ok && send_frame(socket, "<IDS|MSG>", 9, false);
    ok = ok && send_frame(socket, envelope->signature, strlen(envelope->signature), false);
    for (int i = 0; ok && i < 3; i++)
        ok = send_frame(socket, envelope->parts[i], envelope->lens[i], false);
    size_t n_buffers = envelope->n_buffers;
    ok = ok && send_content(socket, &envelope->parts[3], envelope->lens[3], n_buffers == 0);
    for (size_t i = 0; ok && i < n_buffers; i++)
        ok = send_frame(socket, envelope->buffers[i].data, envelope->buffers[i].len,
                        i + 1 == n_buffers);
    if (!ok)
        tk_log("could not send a message: %s", zmq_strerror(errno));
}

bool tk_channels_subscription(void *socket, char *topic, size_t size, size_t *len) {
    bool found = false;
    zmq_msg_t message;
    while (!found) {
        zmq_msg_init(&message);
        bool got = zmq_msg_recv(&message, socket, ZMQ_DONTWAIT) >= 0;
        const char *bytes = zmq_msg_data(&message);
        found = got && zmq_msg_size(&message) > 0 && bytes[0] == 1; /* 0: it leaves */
        if (found) {
            *len = zmq_msg_size(&message) - 1;
            *len = *len < size ? *len : size;
            memcpy(topic, bytes + 1, *len);
        }
        zmq_msg_close(&message);
        if (!got)
            break;
    }
    return found;
}

int tk_channels_descriptor(void *socket) {
    int fd = -1;
    size_t len = sizeof fd;
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &len) == 0 ? fd : -1;
}
