/* flood.c: see flood.h. */
#include "jupyter-kernel/flood.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far from where it would be a cut is moved for the sake of a whole line. */
#define NEAR_BYTES ((size_t)4 << 10)

static bool is_continuation(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

size_t tk_flood_pass(tk_flood *flood, const char *text, size_t len) {
    size_t room = flood->shown < TK_FLOOD_HEAD ? TK_FLOOD_HEAD - flood->shown : 0;
    if (flood->off)
        return len;
    if (tk_flood_holds(flood))
        room = 0; /* what came before it is not shown yet */
    if (len <= room) {
        flood->shown += len;
        return len;
    }
    flood->shown = TK_FLOOD_HEAD; /* a cut is made once */
    size_t cut = room;
    while (cut > 0 && room - cut < NEAR_BYTES && text[cut - 1] != '\n')
        cut--;
    if (cut > 0 && text[cut - 1] == '\n')
        return cut;
    for (cut = room; cut > 0 && is_continuation(text[cut]); cut--)
        ;
    return cut;
}

/* The oldest n bytes of a ring are left out. */
static void leave_out(tk_held *held, size_t n) {
    for (size_t i = 0; i < n; i++)
        held->lines += held->ring[(held->start + i) % TK_FLOOD_TAIL] == '\n';
    held->bytes += n;
    held->start = (held->start + n) % TK_FLOOD_TAIL;
    held->len -= n;
}

static void skip_text(tk_held *held, const char *text, size_t len) {
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + len - at))); at++)
        held->lines++;
    held->bytes += len;
}

void tk_flood_hold(tk_flood *flood, int stream, const char *text, size_t len) {
    tk_held *held = &flood->streams[stream];
    if (!held->ring)
        held->ring = malloc(TK_FLOOD_TAIL);
    size_t room = held->ring ? TK_FLOOD_TAIL : 0;
    if (len > room) {
        leave_out(held, held->len);
        skip_text(held, text, len - room);
        flood->running = true;
        text += len - room;
        len = room;
    }
    if (len > room - held->len) {
        leave_out(held, len - (room - held->len));
        flood->running = true;
    }
    size_t end = room ? (held->start + held->len) % room : 0;
    size_t first = len < room - end ? len : room - end;
    if (len > 0) {
        memcpy(held->ring + end, text, first);
        memcpy(held->ring, text + first, len - first);
    }
    held->len += len;
}

static bool holds(const tk_held *held) {
    return held->len > 0 || held->bytes > 0;
}

bool tk_flood_holds(const tk_flood *flood) {
    return holds(&flood->streams[0]) || holds(&flood->streams[1]);
}

bool tk_flood_rests(tk_flood *flood) {
    size_t waiting = flood->streams[0].len + flood->streams[1].len;
    bool rests = !flood->running && flood->later + waiting <= TK_FLOOD_LATER;
    flood->running = false;
    if (rests)
        flood->later += waiting;
    return rests;
}

/* 1234567 as "1,234,567". */
static const char *with_commas(unsigned long long n, char text[32]) {
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

/* Behind what was left out the text begins with a whole line or character. */
static void leave_out_rest_of_line(tk_held *held) {
    size_t n = 0;
    while (n < held->len && n < NEAR_BYTES && held->ring[(held->start + n) % TK_FLOOD_TAIL] != '\n')
        n++;
    if (n < held->len && n < NEAR_BYTES) {
        leave_out(held, n + 1);
        return;
    }
    for (n = 0; n < held->len && is_continuation(held->ring[(held->start + n) % TK_FLOOD_TAIL]);)
        n++;
    leave_out(held, n);
}

void tk_flood_take(tk_flood *flood, int stream, tk_buffer *text) {
    tk_held *held = &flood->streams[stream];
    char line[160], bytes[32], lines[32];
    if (held->bytes > 0) {
        leave_out_rest_of_line(held);
        int n = snprintf(line, sizeof line,
                         "\n… %s bytes in %s lines are left out here; %%flood off shows all …\n",
                         with_commas(held->bytes, bytes), with_commas(held->lines, lines));
        (void)!tk_buffer_add(text, line, (size_t)n);
    }
    size_t first = TK_FLOOD_TAIL - held->start;
    first = held->len < first ? held->len : first;
    /* Without memory there is less to see; the line above is seen first. */
    if (held->ring && tk_buffer_add(text, held->ring + held->start, first))
        (void)!tk_buffer_add(text, held->ring, held->len - first);
    *held = (tk_held){.ring = held->ring};
}

void tk_flood_reset(tk_flood *flood) {
    flood->shown = flood->later = 0;
    flood->running = false;
    for (int i = 0; i < 2; i++)
        flood->streams[i] = (tk_held){.ring = flood->streams[i].ring};
}

void tk_flood_clear(tk_flood *flood) {
    for (int i = 0; i < 2; i++)
        free(flood->streams[i].ring);
    *flood = (tk_flood){0};
}
