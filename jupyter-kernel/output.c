/* output.c: see output.h. */
#include "jupyter-kernel/output.h"
#include "jupyter-kernel/channels.h"
#include "jupyter-kernel/log.h"
#include "jupyter-kernel/utf8.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLUSH_MS    50
#define FLUSH_BYTES ((size_t)1 << 16)

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
};

/* With the lock held. */
static void publish_all(tk_output *output, const char *type, const char *parent, json_t *metadata,
                        json_t *content, const tk_frame *buffers, size_t n) {
    char topic[128];
    tk_envelope envelope;
    int len = snprintf(topic, sizeof topic, "kernel.%s.%s", output->sender->session, type);
    if (!tk_envelope_write(output->sender, type, parent, metadata, content, &envelope)) {
        tk_log("lost a %s message: out of memory", type);
        return;
    }
    envelope.buffers = buffers;
    envelope.n_buffers = n;
    tk_channels_send(output->socket, &(tk_frame){topic, (size_t)len}, 1, &envelope);
    tk_envelope_clear(&envelope);
}

static void publish(tk_output *output, const char *type, const char *parent, json_t *content) {
    publish_all(output, type, parent, NULL, content, NULL, 0);
}

/* With the lock held: sends the collected text. */
static void flush(tk_output *output) {
    if (output->text.len == 0)
        return;
    publish(output, "stream", output->parent,
            json_pack("{s:s, s:o}", "name", output->text_is_err ? "stderr" : "stdout", "text",
                      json_stringn(output->text.data, output->text.len)));
    output->text.len = 0;
}

static bool is_err(tk_source source) {
    return source == TK_PRINTED_ERR || source == TK_CAUGHT_ERR;
}

/* With the lock held: makes `text` that of the source's stream. */
static void turn_to(tk_output *output, tk_source source) {
    if (output->text_is_err != is_err(source)) {
        flush(output);
        output->text_is_err = is_err(source);
    }
}

static void *flusher(void *arg) {
    tk_output *output = arg;
    pthread_mutex_lock(&output->lock);
    while (!output->ending) {
        if (output->text.len == 0) {
            pthread_cond_wait(&output->wake, &output->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += FLUSH_MS * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        while (!output->ending && pthread_cond_timedwait(&output->wake, &output->lock, &until) == 0)
            ;
        flush(output);
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
    tk_buffer_clear(&output->text);
    free(output->parent);
    free(output);
}

void tk_output_parent(tk_output *output, const char *parent) {
    char *copy = parent ? strdup(parent) : NULL;
    pthread_mutex_lock(&output->lock);
    flush(output);
    free(output->parent);
    output->parent = copy;
    pthread_mutex_unlock(&output->lock);
}

void tk_output_write(tk_output *output, tk_source source, const char *bytes, size_t len) {
    pthread_mutex_lock(&output->lock);
    turn_to(output, source);
    bool was_empty = output->text.len == 0;
    /* In pieces, so that one huge text needs no huge copies. */
    while (len > 0) {
        size_t piece = len < FLUSH_BYTES ? len : FLUSH_BYTES;
        if (!tk_utf8_repair(&output->rests[source], bytes, piece, &output->text)) {
            tk_log("lost %zu bytes of output: out of memory", len);
            break;
        }
        if (output->text.len >= FLUSH_BYTES)
            flush(output);
        bytes += piece;
        len -= piece;
    }
    if (was_empty && output->text.len > 0)
        pthread_cond_signal(&output->wake);
    pthread_mutex_unlock(&output->lock);
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
    pthread_mutex_unlock(&output->lock);
}

void tk_output_publish(tk_output *output, const char *type, const char *parent, json_t *content) {
    pthread_mutex_lock(&output->lock);
    flush(output);
    publish(output, type, parent, content);
    pthread_mutex_unlock(&output->lock);
}

void tk_output_publish_buffers(tk_output *output, const char *type, const char *parent,
                               json_t *metadata, json_t *content, const tk_frame *buffers,
                               size_t n) {
    pthread_mutex_lock(&output->lock);
    flush(output);
    publish_all(output, type, parent, metadata, content, buffers, n);
    pthread_mutex_unlock(&output->lock);
}
