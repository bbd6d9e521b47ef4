/* channel.c: the module of sockets, and how addresses are written. */
#include "engine/distributed/channel.h"

#include "engine/core/load.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

td_status td_channel_load(const td_channel_calls **out) {
    static const td_library library = {.name = "the control channel",
                                       .file = "libtide-channel.so",
                                       .table = TD_CHANNEL_TABLE,
                                       .room = 64 << 20};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const void *table;
    pthread_mutex_lock(&lock);
    td_status status = table ? TD_OK : td_library_load(&library, &table);
    *out = table;
    pthread_mutex_unlock(&lock);
    return status;
}

void td_address_write(const td_address *a, char text[TD_ADDRESS]) {
    snprintf(text, TD_ADDRESS, "%s %d %s", a->host, a->port, a->secret);
}

bool td_address_read(const char *text, td_address *a) {
    size_t host = strcspn(text, " ");
    char *end;
    if (host >= TD_HOST || !text[host])
        return false;
    memcpy(a->host, text, host);
    a->host[host] = '\0';
    long port = strtol(text + host + 1, &end, 10);
    if (port < 1 || port > 65535 || *end != ' ' || strlen(end + 1) != TD_SECRET)
        return false;
    a->port = (int)port;
    memcpy(a->secret, end + 1, TD_SECRET + 1);
    return true;
}

void td_address_reach(const td_address *a, char text[TD_ADDRESS]) {
    char here[TD_HOST] = "";
    gethostname(here, sizeof here - 1);
    snprintf(text, TD_ADDRESS, "%s:%d", strcmp(here, a->host) == 0 ? "127.0.0.1" : a->host,
             a->port);
}
