/* flight.c: a ring of records behind a lock. */
#include "engine/distributed/flight.h"

#include "engine/core/draft.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static td_flight_record ring[TD_FLIGHT];
static uint64_t last;   /* number of the newest */
static uint64_t oldest; /* none before it is under way */

double td_flight_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void td_flight_clear(void) {
    pthread_mutex_lock(&lock);
    last = 0;
    oldest = 1;
    pthread_mutex_unlock(&lock);
}

uint64_t td_flight_begin(td_flight_record *record) {
    record->posted = td_flight_clock();
    record->arrived = 0;
    pthread_mutex_lock(&lock);
    record->number = ++last;
    ring[last % TD_FLIGHT] = *record;
    pthread_mutex_unlock(&lock);
    return record->number;
}

void td_flight_end(uint64_t number) {
    pthread_mutex_lock(&lock);
    td_flight_record *r = &ring[number % TD_FLIGHT];
    if (r->number == number)
        r->arrived = td_flight_clock();
    pthread_mutex_unlock(&lock);
}

static uint64_t first_kept(void) {
    return last > TD_FLIGHT ? last - TD_FLIGHT + 1 : 1;
}

int td_flight_read(uint64_t behind, td_flight_record *records, int room) {
    int n = 0;
    pthread_mutex_lock(&lock);
    uint64_t at = behind + 1 > first_kept() ? behind + 1 : first_kept();
    for (; at <= last && n < room; at++)
        records[n++] = ring[at % TD_FLIGHT];
    pthread_mutex_unlock(&lock);
    return n;
}

bool td_flight_oldest(td_flight_record *record) {
    bool found = false;
    pthread_mutex_lock(&lock);
    if (oldest < first_kept())
        oldest = first_kept();
    while (oldest <= last && ring[oldest % TD_FLIGHT].arrived > 0)
        oldest++;
    found = oldest <= last;
    uint64_t number = found ? oldest : last;
    *record = number ? ring[number % TD_FLIGHT] : (td_flight_record){0};
    pthread_mutex_unlock(&lock);
    return found;
}

const char *td_flight_text(const td_flight_record *record, char *buffer, size_t size) {
    char group[32] = "", order[32] = "";
    if (record->group)
        snprintf(group, sizeof group, " of group %u", record->group);
    if (record->sequence)
        snprintf(order, sizeof order, " #%u", record->sequence);
    else
        snprintf(order, sizeof order, " %s rank %d", record->kind == TD_SEND ? "to" : "from",
                 record->peer);
    const char *kind =
        record->kind < TD_COLLECTIVES ? td_collective_names[record->kind] : "something unknown";
    snprintf(buffer, size, "%s%s%s%s%.*s", kind, order, group, record->place[0] ? ", " : "",
             TD_PLACE, record->place);
    return buffer;
}

/* ---- ranks beside each other ---- */

bool td_flight_agree(const td_flight_record *a, const td_flight_record *b) {
    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->peer == b->peer &&
           a->lane == b->lane && (a->count == b->count || a->count < 0 || b->count < 0);
}

void td_flight_add(char *text, size_t size, const char *format, ...) {
    size_t n = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, size - n, format, args);
    va_end(args);
}

void td_flight_describe(const td_flight_record *r, char *text, size_t size) {
    if (r->kind == TD_SHUTDOWN) {
        td_flight_add(text, size, "at the end of its script");
        return;
    }
    td_flight_add(text, size, "in %s", td_collective_names[r->kind]);
    if (r->kind == TD_BARRIER) {
        td_flight_add(text, size, ", %.*s", TD_PLACE, r->place);
        return;
    }
    td_flight_add(text, size, " of ");
    for (int d = 0; d < r->ndim && d < TD_FLIGHT_DIMS; d++)
        td_flight_add(text, size, "%s%lld", d ? "x" : "", (long long)r->sizes[d]);
    td_flight_add(text, size, " %s", td_dtype_name(r->dtype));
    if (r->kind == TD_ALL_REDUCE || r->kind == TD_REDUCE_SCATTER)
        td_flight_add(text, size, " (%s)", td_across_names[r->op]);
    else if (r->kind != TD_ALL_GATHER && r->kind != TD_ALL_TO_ALL)
        td_flight_add(text, size, " (rank %d)", (int)r->peer);
    if (r->lane)
        td_flight_add(text, size, " on CUDA");
    if (r->lane > 1)
        td_flight_add(text, size, " (the group's device %d)", r->lane);
    td_flight_add(text, size, ", %.*s", TD_PLACE, r->place);
}

/* ---- the file ---- */

static void put_shape(const td_flight_record *r, char *buffer, size_t size) {
    size_t n = 0;
    buffer[0] = '\0';
    for (int d = 0; d < r->ndim && d < TD_FLIGHT_DIMS && n < size; d++)
        n +=
            (size_t)snprintf(buffer + n, size - n, "%s%lld", d ? ", " : "", (long long)r->sizes[d]);
    if (r->ndim > TD_FLIGHT_DIMS && n < size)
        snprintf(buffer + n, size - n, ", ...");
}

/* A place's bytes as they may stand in JSON. */
static void put_plain(const char *text, char *buffer, size_t size) {
    size_t n = 0;
    for (; *text && n + 1 < size; text++)
        buffer[n++] = *text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '_' : *text;
    buffer[n] = '\0';
}

static td_status write_record(td_draft *draft, const td_flight_record *r, int rank, bool first) {
    char line[640], name[200], shape[120], place[TD_PLACE];
    bool arrived = r->arrived > 0;
    td_flight_record bare = *r;
    bare.place[0] = '\0';
    put_shape(r, shape, sizeof shape);
    put_plain(r->place, place, sizeof place);
    double end = arrived ? r->arrived : td_flight_clock();
    int n = snprintf(
        line, sizeof line,
        "%s{\"name\":\"%s\",\"cat\":\"distributed\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%"
        "d,"
        "\"tid\":%u,\"args\":{\"number\":%llu,\"op\":\"%s\",\"dtype\":\"%s\",\"shape\":\"(%s)\","
        "\"peer\":%d,\"line\":\"%s\",\"arrived\":%s}}",
        first ? "" : ",\n", td_flight_text(&bare, name, sizeof name), r->posted * 1e6,
        (end - r->posted) * 1e6, rank, r->group, (unsigned long long)r->number,
        td_across_names[r->op], td_dtype_name(r->dtype), shape, r->peer, place,
        arrived ? "true" : "false");
    return td_draft_write(draft, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

td_status td_flight_write(const char *path, int rank) {
    td_status status = TD_OK;
    td_draft *draft = NULL;
    td_flight_record record;
    uint64_t behind = 0;
    TD_TRY(td_draft_open(path, &draft));
    TD_TRY(td_draft_write(draft, "{\"traceEvents\":[\n", 17));
    for (bool first = true; td_flight_read(behind, &record, 1) == 1; first = false) {
        TD_TRY(write_record(draft, &record, rank, first));
        behind = record.number;
    }
    TD_TRY(td_draft_write(draft, "\n]}\n", 4));
    TD_TRY(td_draft_commit(draft));
done:
    td_draft_close(draft);
    return status;
}
