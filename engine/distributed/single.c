/* single.c: the transport of a job of one process: what it gives is what it takes. */
#include "engine/core/memory.h"
#include "engine/distributed/transport.h"

#include <stdio.h>
#include <string.h>

static const char *version(void) {
    return "one process";
}

static bool open_job(const td_transport_host *host, int *rank, int *size, char why[TD_WHY]) {
    (void)host;
    (void)why;
    *rank = 0;
    *size = 1;
    return true;
}

static bool make_group(int n, const int *ranks, int tag, void **group, char why[TD_WHY]) {
    (void)n;
    (void)ranks;
    (void)tag;
    (void)why;
    *group = NULL;
    return true;
}

static void end_group(void *group) {
    (void)group;
}

/* What was sent to oneself and not received yet, in its order. */
typedef struct letter {
    struct letter *next;
    int tag;
    size_t bytes;
    char body[];
} letter;

static letter *letters;

static bool send_letter(const td_transfer *t, size_t bytes, char why[TD_WHY]) {
    letter *l = td_malloc(sizeof *l + bytes), **end = &letters;
    if (!l) {
        snprintf(why, TD_WHY, "out of memory");
        return false;
    }
    *l = (letter){.tag = t->tag, .bytes = bytes};
    if (bytes)
        memcpy(l->body, t->send, bytes);
    while (*end)
        end = &(*end)->next;
    *end = l;
    return true;
}

static bool receive_letter(const td_transfer *t, size_t bytes, char why[TD_WHY]) {
    letter **at = &letters;
    while (*at && (*at)->tag != t->tag)
        at = &(*at)->next;
    letter *l = *at;
    if (!l || l->bytes > bytes) {
        snprintf(why, TD_WHY,
                 l ? "%zu bytes were sent, %zu are expected"
                   : "nothing was sent to this process, which is the only one",
                 l ? l->bytes : 0, bytes);
        return false;
    }
    if (l->bytes)
        memcpy(t->recv, l->body, l->bytes);
    *at = l->next;
    td_free(l);
    return true;
}

static bool start(void *group, const td_transfer *t, void **token, char why[TD_WHY]) {
    (void)group;
    size_t bytes = (size_t)t->count * td_dtype_size(t->dtype);
    *token = NULL;
    if (t->kind == TD_SEND)
        return send_letter(t, bytes, why);
    if (t->kind == TD_RECV)
        return receive_letter(t, bytes, why);
    if (bytes && t->send && t->recv && t->send != t->recv)
        memmove(t->recv, t->send, bytes);
    return true;
}

static td_progress test(void *token, char why[TD_WHY]) {
    (void)token;
    (void)why;
    return TD_ARRIVED;
}

static void close_job(void) {
    while (letters) {
        letter *l = letters;
        letters = l->next;
        td_free(l);
    }
}

const td_transport td_transport_single = {
    .name = "self",
    .version = version,
    .open = open_job,
    .group = make_group,
    .ungroup = end_group,
    .start = start,
    .test = test,
    .close = close_job,
};
