/* channel.c: the control channel's sockets over ZeroMQ: a module that is linked to it and to
 * nothing of Tide's. The hub has a ROUTER, processes a DEALER each; a monitor tells when
 * connections go. */
#include "engine/distributed/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { MOST_PEERS = 1 << 16 };

typedef struct peer {
    unsigned char name[16];
    size_t len;
    int fd; /* of its connection */
} peer;

typedef struct channel {
    void *context, *socket, *monitor;
    bool hub;
    peer *peers; /* of a hub, in the order of their first messages */
    uint32_t n, room;
} channel;

static void close_channel(void *of) {
    channel *c = of;
    int linger = 300;
    if (c->monitor) {
        zmq_socket_monitor(c->socket, NULL, 0);
        zmq_setsockopt(c->monitor, ZMQ_LINGER, &(int){0}, sizeof(int));
        zmq_close(c->monitor);
    }
    if (c->socket) {
        zmq_setsockopt(c->socket, ZMQ_LINGER, &linger, sizeof linger);
        zmq_close(c->socket);
    }
    if (c->context)
        zmq_ctx_term(c->context);
    free(c->peers);
    free(c);
}

static channel *fail(channel *c, char why[TD_WHY]) {
    snprintf(why, TD_WHY, "control channel: %s", zmq_strerror(zmq_errno()));
    if (c)
        close_channel(c);
    return NULL;
}

static channel *make(bool hub, char why[TD_WHY]) {
    channel *c = calloc(1, sizeof *c);
    if (!c) {
        snprintf(why, TD_WHY, "out of memory");
        return NULL;
    }
    c->hub = hub;
    c->context = zmq_ctx_new();
    c->socket = c->context ? zmq_socket(c->context, hub ? ZMQ_ROUTER : ZMQ_DEALER) : NULL;
    if (!c->socket || zmq_socket_monitor(c->socket, "inproc://watched", ZMQ_EVENT_DISCONNECTED))
        return fail(c, why);
    c->monitor = zmq_socket(c->context, ZMQ_PAIR);
    if (!c->monitor || zmq_connect(c->monitor, "inproc://watched"))
        return fail(c, why);
    return c;
}

static void *listen_for(bool local, int *port, char why[TD_WHY]) {
    char address[128];
    size_t len = sizeof address;
    channel *c = make(true, why);
    if (!c)
        return NULL;
    if (zmq_bind(c->socket, local ? "tcp://127.0.0.1:*" : "tcp://*:*") ||
        zmq_getsockopt(c->socket, ZMQ_LAST_ENDPOINT, address, &len))
        return fail(c, why);
    const char *colon = strrchr(address, ':');
    *port = colon ? (int)strtol(colon + 1, NULL, 10) : 0;
    return c;
}

static void *connect_to(const char *address, char why[TD_WHY]) {
    char endpoint[TD_ADDRESS + 16];
    channel *c = make(false, why);
    if (!c)
        return NULL;
    snprintf(endpoint, sizeof endpoint, "tcp://%s", address);
    return zmq_connect(c->socket, endpoint) ? fail(c, why) : c;
}

static bool send_to(void *of, uint32_t to, const void *bytes, size_t n) {
    channel *c = of;
    if (!c->hub)
        return zmq_send(c->socket, bytes, n, ZMQ_DONTWAIT) >= 0;
    if (to >= c->n ||
        zmq_send(c->socket, c->peers[to].name, c->peers[to].len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return false;
    return zmq_send(c->socket, bytes, n, ZMQ_DONTWAIT) >= 0;
}

/* The number of a peer by the name that the ROUTER gave it; a new one is added. */
static bool find_peer(channel *c, const void *name, size_t len, int fd, uint32_t *out) {
    for (uint32_t k = 0; k < c->n; k++) {
        if (c->peers[k].len == len && memcmp(c->peers[k].name, name, len) == 0) {
            *out = k;
            return true;
        }
    }
    if (len > sizeof c->peers->name || c->n == MOST_PEERS)
        return false;
    if (c->n == c->room) {
        uint32_t room = c->room ? 2 * c->room : 64;
        peer *grown = realloc(c->peers, room * sizeof *grown);
        if (!grown)
            return false;
        c->peers = grown;
        c->room = room;
    }
    peer *p = &c->peers[c->n];
    memcpy(p->name, name, len);
    p->len = len;
    p->fd = fd;
    *out = c->n++;
    return true;
}

/* The event of a lost connection: whose it was; false: nobody's that is known. */
static bool read_event(channel *c, uint32_t *peer_number) {
    unsigned char event[8];
    char endpoint[256];
    int fd;
    if (zmq_recv(c->monitor, event, sizeof event, ZMQ_DONTWAIT) < 0)
        return false;
    zmq_recv(c->monitor, endpoint, sizeof endpoint, ZMQ_DONTWAIT);
    memcpy(&fd, event + 2, sizeof fd);
    *peer_number = 0;
    if (!c->hub)
        return true;
    for (uint32_t k = c->n; k-- > 0;) {
        if (c->peers[k].fd == fd) {
            c->peers[k].fd = -1;
            *peer_number = k;
            return true;
        }
    }
    return false;
}

static long read_message(channel *c, uint32_t *from, void *bytes, size_t room) {
    zmq_msg_t name, body;
    long len = 0;
    zmq_msg_init(&name);
    zmq_msg_init(&body);
    *from = 0;
    bool ok = !c->hub || (zmq_msg_recv(&name, c->socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&name));
    if (ok && zmq_msg_recv(&body, c->socket, ZMQ_DONTWAIT) >= 0 && !zmq_msg_more(&body)) {
        size_t n = zmq_msg_size(&body);
        if (!c->hub || find_peer(c, zmq_msg_data(&name), zmq_msg_size(&name),
                                 zmq_msg_get(&body, ZMQ_SRCFD), from)) {
            n = n < room ? n : room;
            memcpy(bytes, zmq_msg_data(&body), n);
            len = (long)n;
        }
    }
    zmq_msg_close(&name);
    zmq_msg_close(&body);
    return len;
}

static long receive(void *of, int timeout_ms, uint32_t *from, void *bytes, size_t room) {
    channel *c = of;
    zmq_pollitem_t items[] = {{c->socket, 0, ZMQ_POLLIN, 0}, {c->monitor, 0, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, 2, timeout_ms) <= 0)
        return 0;
    /* What was sent before a connection went comes first. */
    if (items[0].revents)
        return read_message(c, from, bytes, room);
    return read_event(c, from) ? -1 : 0;
}

__attribute__((visibility("default"))) extern const td_channel_calls td_late_channel;
const td_channel_calls td_late_channel = {
    .listen = listen_for,
    .connect = connect_to,
    .send = send_to,
    .receive = receive,
    .close = close_channel,
};
