/* output.c: see output.h. */
#include "jupyter-kernel/output.h"
#include "jupyter-kernel/channels.h"
#include "jupyter-kernel/flood.h"
#include "jupyter-kernel/gather.h"
#include "jupyter-kernel/log.h"
#include "jupyter-kernel/utf8.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLUSH_MS    50
#define LOOK_MS     1000 /* between looks at a flood */
#define FLUSH_BYTES ((size_t)1 << 16)
#define WRITE_BYTES ((size_t)1 << 20)      /* of one text that go out under one hold of the lock */
#define SLOW_BYTES  (TK_PENDING_BYTES / 2) /* that wait for front ends: a cell may wait for them */
#define SLOW_MS     2000                   /* that it does so at a time */
#define STALL_MS    1000                   /* without any being read: nobody reads */
#define TOPIC_BYTES 256

struct tk_output {
    void *socket;
    tk_sender *sender;
    pthread_t flusher;
    pthread_mutex_t lock; /* all below, and the socket */
    pthread_cond_t wake;  /* text was collected where none was, or the end has come */
    bool ending;
    char *parent;     /* header of the request that text belongs to */
    bool text_is_err; /* the stream of `text` */
    tk_buffer text;
    tk_utf8_rest rests[TK_SOURCES];
    tk_flood flood;
    tk_gather *gather;     /* the widget that output goes into; NULL: none */
    long gathered;         /* when its front end may be told again, in milliseconds */
    long looked;           /* when the flood was looked at, in milliseconds */
    unsigned long lost;    /* messages that were not sent, since too much waits */
    atomic_size_t stalled; /* bytes that waited when nobody read them any more; 0: they are read */
};

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

typedef struct message {
    const char *type, *parent;
    json_t *metadata, *content; /* taken; metadata may be NULL */
    const tk_frame *buffers;    /* bytes behind it */
    size_t n_buffers;
} message;

/* With the lock held, as all down to `flusher`. `topic` is what subscriptions are held against. */
static void send(tk_output *output, tk_frame topic, const message *m) {
    tk_envelope envelope;
    if (!tk_envelope_write(output->sender, m->type, m->parent, m->metadata, m->content,
                           &envelope)) {
        tk_log("lost a %s message: out of memory", m->type);
        return;
    }
    envelope.buffers = m->buffers;
    envelope.n_buffers = m->n_buffers;
    tk_channels_send(output->socket, &topic, 1, &envelope);
    tk_envelope_clear(&envelope);
}

/* The topic of a welcome is the subscription, so that it meets it. */
static void welcome(tk_output *output) {
    char topic[TOPIC_BYTES];
    size_t len;
    while (tk_channels_subscription(output->socket, topic, sizeof topic, &len))
        send(output, (tk_frame){topic, len},
             &(message){.type = "iopub_welcome",
                        .content = json_pack("{s:o?}", "subscription", json_stringn(topic, len))});
}

static void send_to_all(tk_output *output, const message *m) {
    char topic[128];
    int len = snprintf(topic, sizeof topic, "kernel.%s.%s", output->sender->session, m->type);
    welcome(output);
    send(output, (tk_frame){topic, (size_t)len}, m);
    welcome(output); /* sending may have noticed one, and then the descriptor says nothing */
}

/* What a front end can't do without. */
static bool is_vital(const char *type) {
    static const char *const types[] = {"status", "error", "execute_input", "shutdown_reply"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

/* Is there no room for this message? */
static bool lose(tk_output *output, const char *type) {
    if (is_vital(type) || tk_channels_pending() <= TK_PENDING_BYTES)
        return false;
    if (output->lost++ == 0)
        tk_log("a front end does not read what it was sent: output is lost from now on");
    return true;
}

static void publish_message(tk_output *output, const message *m) {
    if (output->gather && tk_gather_add(output->gather, m->type, m->content)) {
        json_decref(m->metadata);
        json_decref(m->content);
        pthread_cond_signal(&output->wake);
        return;
    }
    if (lose(output, m->type)) {
        json_decref(m->metadata);
        json_decref(m->content);
        return;
    }
    if (output->lost > 0 && tk_channels_pending() < SLOW_BYTES) {
        char line[128];
        snprintf(line, sizeof line,
                 "tide: %lu messages of output were lost: a front end did not read them\n",
                 output->lost);
        output->lost = 0;
        send_to_all(output,
                    &(message){.type = "stream",
                               .parent = output->parent,
                               .content = json_pack("{s:s, s:s}", "name", "stderr", "text", line)});
    }
    send_to_all(output, m);
}

static void publish(tk_output *output, const char *type, const char *parent, json_t *content) {
    publish_message(output, &(message){.type = type, .parent = parent, .content = content});
}

static void publish_text(tk_output *output, bool err, const char *text, size_t len) {
    if (len > 0)
        publish(output, "stream", output->parent,
                json_pack("{s:s, s:o}", "name", err ? "stderr" : "stdout", "text",
                          json_stringn(text, len)));
}

/* Sends the collected text, or holds it where there is a flood. */
static void flush(tk_output *output) {
    tk_buffer *text = &output->text;
    if (text->len == 0)
        return;
    size_t pass = tk_flood_pass(&output->flood, text->data, text->len);
    publish_text(output, output->text_is_err, text->data, pass);
    if (pass < text->len) {
        if (!tk_flood_holds(&output->flood))
            output->looked = now_ms();
        tk_flood_hold(&output->flood, output->text_is_err, text->data + pass, text->len - pass);
    }
    text->len = 0;
}

static bool has_gathered(const tk_output *output) {
    return output->gather && output->gather->dirty;
}

/* Tells of all that was gathered, and leaves it at that for ten times as long as it took. */
static void tell_gathered(tk_output *output) {
    if (!has_gathered(output))
        return;
    long began = now_ms();
    publish(output, "comm_msg", output->parent, tk_gather_update(output->gather));
    output->gathered = now_ms() + FLUSH_MS + 10 * (now_ms() - began);
}

/* Shows the end of a flood. */
static void show_held(tk_output *output) {
    for (int stream = 0; tk_flood_holds(&output->flood) && stream < 2; stream++) {
        tk_buffer text = {0};
        tk_flood_take(&output->flood, stream, &text);
        publish_text(output, stream == 1, text.data, text.len);
        tk_buffer_clear(&text);
    }
    pthread_cond_signal(&output->wake); /* there is nothing to look at any more */
}

static bool is_err(tk_source source) {
    return source == TK_PRINTED_ERR || source == TK_CAUGHT_ERR;
}

/* Makes `text` that of the source's stream. */
static void turn_to(tk_output *output, tk_source source) {
    if (output->text_is_err != is_err(source)) {
        flush(output);
        output->text_is_err = is_err(source);
    }
}

/* Milliseconds until the flusher has something to do; -1: when it is woken. */
static long patience(const tk_output *output) {
    if (output->text.len > 0)
        return FLUSH_MS;
    if (has_gathered(output)) {
        long left = output->gathered - now_ms();
        return left > FLUSH_MS ? left : FLUSH_MS;
    }
    if (!tk_flood_holds(&output->flood))
        return -1;
    long left = output->looked + LOOK_MS - now_ms();
    return left > 1 ? left : 1;
}

/* Waits so long, or until the end, or until there is no flood to look at. */
static void wait_ms(tk_output *output, long ms) {
    bool collecting = output->text.len > 0 || has_gathered(output);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!output->ending && pthread_cond_timedwait(&output->wake, &output->lock, &until) == 0)
        if (!collecting && !tk_flood_holds(&output->flood))
            return;
}

static void *flusher(void *arg) {
    tk_output *output = arg;
    pthread_mutex_lock(&output->lock);
    while (!output->ending) {
        long ms = patience(output);
        if (ms < 0) {
            pthread_cond_wait(&output->wake, &output->lock);
            continue;
        }
        bool collecting = output->text.len > 0;
        wait_ms(output, ms);
        if (collecting)
            flush(output);
        if (now_ms() >= output->gathered)
            tell_gathered(output);
        if (tk_flood_holds(&output->flood) && now_ms() - output->looked >= LOOK_MS) {
            output->looked = now_ms();
            if (tk_flood_rests(&output->flood))
                show_held(output);
        }
    }
    pthread_mutex_unlock(&output->lock);
    return NULL;
}

tk_output *tk_output_new(void *socket, tk_sender *sender) {
    tk_output *output = calloc(1, sizeof *output);
    pthread_condattr_t attr;
    if (!output)
        return NULL;
    output->socket = socket;
    output->sender = sender;
    pthread_mutex_init(&output->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&output->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&output->flusher, NULL, flusher, output) != 0) {
        pthread_cond_destroy(&output->wake);
        pthread_mutex_destroy(&output->lock);
        free(output);
        return NULL;
    }
    return output;
}

void tk_output_free(tk_output *output) {
    if (!output)
        return;
    tk_output_flush(output, true);
    pthread_mutex_lock(&output->lock);
    output->ending = true;
    pthread_cond_signal(&output->wake);
    pthread_mutex_unlock(&output->lock);
    pthread_join(output->flusher, NULL);
    pthread_cond_destroy(&output->wake);
    pthread_mutex_destroy(&output->lock);
    tk_flood_clear(&output->flood);
    tk_buffer_clear(&output->text);
    while (output->gather)
        output->gather = tk_gather_free(output->gather);
    free(output->parent);
    free(output);
}

void tk_output_parent(tk_output *output, const char *parent) {
    char *copy = parent ? strdup(parent) : NULL;
    pthread_mutex_lock(&output->lock);
    flush(output);
    show_held(output);
    tk_flood_reset(&output->flood);
    free(output->parent);
    output->parent = copy;
    pthread_mutex_unlock(&output->lock);
}

void tk_output_gather(tk_output *output, const char *comm, json_t *outputs) {
    pthread_mutex_lock(&output->lock);
    flush(output);
    show_held(output);
    tell_gathered(output);
    tk_gather *inner = tk_gather_new(comm, outputs, output->gather);
    if (inner)
        output->gather = inner;
    else
        tk_log("output goes beside its widget: out of memory");
    pthread_mutex_unlock(&output->lock);
}

char *tk_output_gathered(tk_output *output) {
    char *text = NULL;
    pthread_mutex_lock(&output->lock);
    flush(output);
    show_held(output);
    if (output->gather) {
        tell_gathered(output);
        text = json_dumps(output->gather->outputs, JSON_COMPACT);
        output->gather = tk_gather_free(output->gather);
    }
    pthread_mutex_unlock(&output->lock);
    return text;
}

void tk_output_gather_none(tk_output *output) {
    pthread_mutex_lock(&output->lock);
    tell_gathered(output);
    while (output->gather)
        output->gather = tk_gather_free(output->gather);
    pthread_mutex_unlock(&output->lock);
}

void tk_output_limit(tk_output *output, bool on) {
    pthread_mutex_lock(&output->lock);
    flush(output);
    show_held(output);
    output->flood.off = !on;
    pthread_mutex_unlock(&output->lock);
}

/* Gives front ends that are slower than the cell time to read; not those that do not read at all,
 * of which one is waited for once. A signal, an interrupt perhaps, ends the wait. */
static void let_them_read(tk_output *output) {
    size_t least = tk_channels_pending(), stalled = atomic_load(&output->stalled);
    if (least < SLOW_BYTES || (stalled && least >= stalled)) {
        if (least < SLOW_BYTES)
            atomic_store(&output->stalled, 0);
        return;
    }
    long began = now_ms(), progress = began, now = began;
    while (now - began < SLOW_MS && now - progress < STALL_MS) {
        if (nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL) != 0)
            return;
        now = now_ms();
        size_t pending = tk_channels_pending();
        if (pending < SLOW_BYTES)
            return;
        if (pending < least) {
            least = pending;
            progress = now;
        }
    }
    atomic_store(&output->stalled, now - progress < STALL_MS ? 0 : least);
}

/* With the lock held. In pieces, so that one huge text needs no huge copies. */
static void add_text(tk_output *output, tk_source source, const char *bytes, size_t len) {
    while (len > 0) {
        size_t piece = len < FLUSH_BYTES ? len : FLUSH_BYTES;
        if (!tk_utf8_repair(&output->rests[source], bytes, piece, &output->text)) {
            tk_log("lost %zu bytes of output: out of memory", len);
            return;
        }
        if (output->text.len >= FLUSH_BYTES)
            flush(output);
        bytes += piece;
        len -= piece;
    }
}

void tk_output_write(tk_output *output, tk_source source, const char *bytes, size_t len) {
    while (len > 0) {
        size_t part = len < WRITE_BYTES ? len : WRITE_BYTES;
        let_them_read(output);
        pthread_mutex_lock(&output->lock);
        turn_to(output, source);
        bool was_empty = output->text.len == 0;
        add_text(output, source, bytes, part);
        if (was_empty && output->text.len > 0)
            pthread_cond_signal(&output->wake);
        pthread_mutex_unlock(&output->lock);
        bytes += part;
        len -= part;
    }
}

void tk_output_flush(tk_output *output, bool whole) {
    pthread_mutex_lock(&output->lock);
    for (int i = 0; whole && i < TK_SOURCES; i++) {
        if (output->rests[i].n == 0)
            continue;
        turn_to(output, (tk_source)i);
        if (!tk_utf8_finish(&output->rests[i], &output->text))
            tk_log("lost an unfinished character: out of memory");
    }
    flush(output);
    if (whole)
        show_held(output);
    pthread_mutex_unlock(&output->lock);
}

void tk_output_publish(tk_output *output, const char *type, const char *parent, json_t *content) {
    tk_output_publish_buffers(output, type, parent, NULL, content, NULL, 0);
}

void tk_output_publish_buffers(tk_output *output, const char *type, const char *parent,
                               json_t *metadata, json_t *content, const tk_frame *buffers,
                               size_t n) {
    if (!is_vital(type))
        let_them_read(output);
    pthread_mutex_lock(&output->lock);
    flush(output);
    if (strcmp(type, "display_data") == 0 && tk_flood_rests(&output->flood))
        show_held(output);
    else if (strcmp(type, "clear_output") == 0)
        tk_flood_reset(&output->flood);
    publish_message(output, &(message){type, parent, metadata, content, buffers, n});
    pthread_mutex_unlock(&output->lock);
}

void tk_output_welcome(tk_output *output) {
    pthread_mutex_lock(&output->lock);
    welcome(output);
    pthread_mutex_unlock(&output->lock);
}

int tk_output_descriptor(tk_output *output) {
    pthread_mutex_lock(&output->lock);
    int descriptor = tk_channels_descriptor(output->socket);
    pthread_mutex_unlock(&output->lock);
    return descriptor;
}
