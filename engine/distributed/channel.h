/* channel.h: the control channel: small messages between each process of a job and one hub, beside
 * the transport, over ZeroMQ. The calls of its sockets are a module (loaded/channel.c); what is
 * said is declared here. */
#ifndef TD_DISTRIBUTED_CHANNEL_H
#define TD_DISTRIBUTED_CHANNEL_H

#include "engine/distributed/flight.h"

enum { TD_ADDRESS = 160, TD_HOST = 64, TD_SECRET = 32, TD_TEXT = 4096, TD_NEWS = 32 };

/* ---- sockets ---- */

typedef struct td_channel_calls {
    /* The hub's socket, open to this machine alone or to all; its port. NULL, and why. */
    void *(*listen)(bool local, int *port, char why[TD_WHY]);
    /* A process's socket to the hub at "host:port". */
    void *(*connect)(const char *address, char why[TD_WHY]);
    /* From a process to its hub; from the hub to the process that a number stands for. False: it
     * can't be sent now. */
    bool (*send)(void *socket, uint32_t peer, const void *bytes, size_t n);
    /* Wait so long for a message: its length, cut to `room`, and whose it is; 0: none; -1: the
     * connection to that peer (of a process: to its hub) is gone. */
    long (*receive)(void *socket, int timeout_ms, uint32_t *peer, void *bytes, size_t room);
    /* Waits a moment for what is still to be sent. */
    void (*close)(void *socket);
} td_channel_calls;

#define TD_CHANNEL_TABLE "td_late_channel"

td_status td_channel_load(const td_channel_calls **out) TD_MUST_CHECK;

/* ---- addresses: "HOST PORT SECRET" ---- */

typedef struct td_address {
    char host[TD_HOST], secret[TD_SECRET + 1];
    int port;
} td_address;

void td_address_write(const td_address *a, char text[TD_ADDRESS]);
bool td_address_read(const char *text, td_address *a);
/* "host:port" as this machine reaches it. */
void td_address_reach(const td_address *a, char text[TD_ADDRESS]);

/* ---- messages ---- */

typedef enum td_word {
    TD_HELLO,   /* a rank is there */
    TD_STATE,   /* what it does, and what it has begun since the last message */
    TD_TROUBLE, /* its transport failed: `text` */
    TD_GONE,    /* it ends, or has ended: `text`; said by itself, or by who watched its process */
    TD_VERDICT, /* of the hub: the job ends, `text` says why */
    TD_BEAT,    /* of the hub: it is there */
    TD_DONE     /* of the hub: all ranks have left the job, and agreed all along */
} td_word;

typedef struct td_message {
    uint32_t word; /* td_word */
    int32_t rank, size, pid;
    char secret[TD_SECRET + 1], host[TD_HOST];
    double timeout;     /* seconds that a collective may wait */
    uint8_t waits;      /* `now` is under way; else it is the last that was */
    uint8_t over;       /* the job's shutdown has arrived: leaving is no trouble */
    int32_t news_count; /* records in `news` */
    td_flight_record now;
    char text[TD_TEXT];
    td_flight_record news[TD_NEWS]; /* last, so that only those that are there are sent */
} td_message;

/* Bytes of a message with its news. */
static inline size_t td_message_size(const td_message *m) {
    return offsetof(td_message, news) + (size_t)m->news_count * sizeof(td_flight_record);
}

#endif
