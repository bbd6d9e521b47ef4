/* chrome_trace.c: writes the trace event format. */
#include "profiler/chrome_trace.h"

#include "engine/calls/event_parts.h"
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/io/json.h"
#include "profiler/whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const categories[TIDE_EVENT_KINDS] = {
    [TD_EVENT_OP] = "cpu_op",
    [TD_EVENT_KERNEL] = "cpu_kernel",
    [TD_EVENT_BACKWARD] = "autograd",
    [TD_EVENT_RANGE] = "user_annotation",
    [TD_EVENT_ALLOC] = "cpu_instant_event",
    [TD_EVENT_ACTIVITY] = "kernel",
    [TD_EVENT_LOAD] = "loading",
    [TIDE_EVENT_STEP] = "user_annotation",
    [TIDE_EVENT_FUNCTION] = "lua_function",
    [TIDE_EVENT_OPTIMIZER] = "optimizer",
    [TIDE_EVENT_DATA] = "data",
    [TIDE_EVENT_COPY] = "copy",
    [TIDE_EVENT_COLLECT] = "gc",
    [TIDE_EVENT_RUNTIME] = "cuda_runtime",
    [TIDE_EVENT_TRANSFER] = "gpu_memcpy",
    [TIDE_EVENT_SET] = "gpu_memset",
    [TIDE_EVENT_COMPILE] = "compile",
    [TIDE_EVENT_COLLECTIVE] = "collective",
    [TIDE_EVENT_WAIT] = "wait",
};

const char *tide_event_category(int kind) {
    return categories[kind];
}

static void write_us(FILE *f, int64_t ns) {
    fprintf(f, "%lld.%03lld", (long long)(ns / 1000), (long long)(ns % 1000));
}

static void write_moment(FILE *f, const tide_trace_process *p, int64_t ns) {
    write_us(f, ns + p->shift_ns);
}

static void write_inputs(FILE *f, const tide_event *e) {
    const int64_t *at = e->inputs;
    fprintf(f, ",\"Input Dims\":[");
    for (int k = 0; k < e->ninputs; k++) {
        tide_input in = tide_input_next(&at);
        fprintf(f, k ? ",[" : "[");
        for (int d = 0; d < in.ndim; d++)
            fprintf(f, d ? ",%lld" : "%lld", (long long)in.sizes[d]);
        fputc(']', f);
    }
    fprintf(f, "],\"Input type\":[");
    at = e->inputs;
    for (int k = 0; k < e->ninputs; k++) {
        tide_input in = tide_input_next(&at);
        fprintf(f, k ? ",\"%s\"" : "\"%s\"", tide_input_dtype(&in));
    }
    fputc(']', f);
}

/* What is taken or given back, and how much is in use then: a counter for viewers. */
static void write_memory(FILE *f, const tide_event *e, const tide_trace_process *p) {
    fprintf(f,
            ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\","
            "\"pid\":%d,\"tid\":%d,\"ts\":",
            p->number, e->thread);
    write_moment(f, p, e->start_ns);
    fprintf(f, ",\"args\":{\"Bytes\":%lld,\"Total Allocated\":%lld}}", (long long)e->bytes,
            (long long)e->total);
    fprintf(f, ",\n{\"ph\":\"C\",\"name\":\"memory\",\"pid\":%d,\"ts\":", p->number);
    write_moment(f, p, e->start_ns);
    fprintf(f, ",\"args\":{\"bytes\":%lld}}", (long long)e->total);
}

/* What joins it with who asked for it: the trace's own number, or the asker's. */
static int64_t correlation_of(const tide_trace_process *p, const tide_event *e) {
    return e->correlation ? e->correlation : e->launcher ? p->ids + e->launcher : 0;
}

/* Ranks call a collective by the same numbers. */
static void write_collective(FILE *f, const tide_trace_process *p, const tide_event *e) {
    fprintf(f, ",\"bytes\":%lld", (long long)e->bytes);
    if (e->correlation)
        fprintf(f, ",\"group\":%lld,\"number\":%lld", (long long)(e->correlation >> 32),
                (long long)(e->correlation & UINT32_MAX));
    if (e->launcher)
        fprintf(f, ",\"External id\":%lld", (long long)(p->ids + e->launcher));
}

/* Who asked for it goes by its number ("External id", as in PyTorch's traces), which it bears too.
 */
static void write_device(FILE *f, const tide_trace_process *p, const tide_recording *r,
                         const tide_event *e) {
    const tide_track *track = r->tracks ? &r->tracks[e->thread - 1] : NULL;
    fprintf(f, ",\"device\":%lld,\"stream\":%lld", track ? (long long)track->process : 0,
            track ? (long long)track->thread : 0);
    if (correlation_of(p, e))
        fprintf(f, ",\"correlation\":%lld", (long long)correlation_of(p, e));
    if (e->launcher)
        fprintf(f, ",\"External id\":%lld", (long long)(p->ids + e->launcher));
    if (e->bytes)
        fprintf(f, ",\"bytes\":%lld", (long long)e->bytes);
}

/* Who asked devices for something. */
typedef struct askers {
    bool *asked;  /* by event; NULL: nobody */
    bool runtime; /* calls of a device's library were recorded, and say what they launched */
} askers;

static td_status find_askers(const tide_recording *r, askers *list) {
    *list = (askers){NULL, false};
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        list->runtime = list->runtime || (e->kind == TIDE_EVENT_RUNTIME && e->correlation);
        if (!tide_is_apart_kind(e->kind) || !e->launcher)
            continue;
        if (!list->asked && !(list->asked = td_calloc((size_t)r->count, sizeof *list->asked)))
            return td_fail(TD_ENOMEM, "out of memory");
        list->asked[e->launcher - 1] = true;
    }
    return TD_OK;
}

/* Where no call of a library says what it launched, who asked for it does. */
static void write_event(FILE *f, const tide_recording *r, const askers *list, int64_t k,
                        const tide_trace_process *p) {
    const tide_event *e = &r->events[k];
    bool asked = list->asked && list->asked[k];
    int64_t correlation = asked && !list->runtime ? p->ids + k + 1 : 0;
    if (e->kind == TD_EVENT_ALLOC) {
        write_memory(f, e, p);
        return;
    }
    fprintf(f, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", categories[e->kind]);
    td_json_print(f, e->name);
    fprintf(f, ",\"pid\":%d,\"tid\":%d,\"ts\":", p->number, e->thread);
    write_moment(f, p, e->start_ns);
    fprintf(f, ",\"dur\":");
    write_us(f, e->end_ns - e->start_ns);
    fprintf(f, ",\"args\":{\"Self us\":");
    write_us(f, e->self_ns);
    if (e->kind == TIDE_EVENT_COLLECTIVE)
        write_collective(f, p, e);
    else if (tide_is_device_kind(e->kind))
        write_device(f, p, r, e);
    else if (e->kind == TIDE_EVENT_RUNTIME)
        correlation = e->correlation;
    else if (e->sequence && e->kind != TD_EVENT_KERNEL)
        fprintf(f, ",\"Sequence number\":%llu", (unsigned long long)e->sequence);
    if (e->line) {
        fprintf(f, ",\"line\":");
        td_json_print(f, e->line);
    }
    if (e->kind == TD_EVENT_OP && td_event_parts(e->name)) {
        fprintf(f, ",\"operators\":");
        td_json_print(f, td_event_parts(e->name));
    }
    if (e->step)
        fprintf(f, ",\"step\":%d", e->step);
    if (asked)
        fprintf(f, ",\"External id\":%lld", (long long)(p->ids + k + 1));
    if (correlation)
        fprintf(f, ",\"correlation\":%lld", (long long)correlation);
    if (e->ninputs)
        write_inputs(f, e);
    fprintf(f, "}}");
}

/* Operators that have a sequence number, by number, then by start. */
typedef struct forward_list {
    const tide_event **ops;
    size_t count;
} forward_list;

static int by_sequence(const void *a, const void *b) {
    const tide_event *x = *(const tide_event *const *)a, *y = *(const tide_event *const *)b;
    if (x->sequence != y->sequence)
        return (x->sequence > y->sequence) - (x->sequence < y->sequence);
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static td_status find_forward(const tide_recording *r, forward_list *list) {
    *list = (forward_list){.ops = td_malloc((size_t)(r->count + 1) * sizeof *list->ops)};
    if (!list->ops)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int64_t k = 0; k < r->count; k++)
        if (r->events[k].kind == TD_EVENT_OP && r->events[k].sequence)
            list->ops[list->count++] = &r->events[k];
    if (list->count > 0)
        qsort(list->ops, list->count, sizeof *list->ops, by_sequence);
    return TD_OK;
}

/* The operator that recorded the node: the last begun with its number before the node ran. */
static const tide_event *forward_of(const forward_list *list, const tide_event *backward) {
    size_t low = 0,
           high = list->count; /* ops before low come before `backward`, from high on not */
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (by_sequence(&list->ops[mid], &backward) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    const tide_event *found = low > 0 ? list->ops[low - 1] : NULL;
    return found && found->sequence == backward->sequence ? found : NULL;
}

static void write_arrow_end(FILE *f, const char *phase, const char *kind, const tide_event *e,
                            int64_t id, const tide_trace_process *p) {
    fprintf(f,
            ",\n{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":\"%s\",\"id\":%lld,\"pid\":%d,"
            "\"tid\":%d%s,\"ts\":",
            phase, kind, kind, (long long)(p->ids + id), p->number, e->thread,
            *phase == 'f' ? ",\"bp\":\"e\"" : "");
    write_moment(f, p, e->start_ns);
    fprintf(f, "}");
}

static void write_arrows(FILE *f, const tide_recording *r, const forward_list *forward,
                         const tide_trace_process *p) {
    for (int64_t k = 0; k < r->count && !td_interrupt_requested(); k++) {
        const tide_event *e = &r->events[k];
        const tide_event *from = e->kind == TD_EVENT_BACKWARD ? forward_of(forward, e) : NULL;
        const char *kind = "fwdbwd";
        if (tide_is_apart_kind(e->kind) && e->launcher) {
            from = &r->events[e->launcher - 1];
            kind = "ac2g"; /* what PyTorch calls those from the host to a device */
        }
        if (from) {
            write_arrow_end(f, "s", kind, from, k, p);
            write_arrow_end(f, "f", kind, e, k, p);
        }
    }
}

static void write_name(FILE *f, const char *what, const tide_trace_process *p, int thread,
                       const char *key, const char *prefix, const char *name) {
    char text[256];
    snprintf(text, sizeof text, "%s%s", prefix, name);
    fprintf(f, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"%s\":", what,
            p->number, thread, key);
    td_json_print(f, text);
    fprintf(f, "}}");
}

static void write_names(FILE *f, const tide_recording *r, const tide_trace_process *p) {
    int last = 0;
    write_name(f, "process_name", p, 0, "name", "", p->name);
    if (*p->note) {
        fprintf(f, ",\n");
        write_name(f, "process_labels", p, 0, "labels", "", p->note);
    }
    for (int64_t k = 0; k < r->count; k++) {
        if (r->events[k].thread <= last)
            continue;
        last = r->events[k].thread;
        char text[32];
        snprintf(text, sizeof text, "thread %d", last);
        fprintf(f, ",\n");
        write_name(f, "thread_name", p, last, "name", p->rows,
                   r->tracks ? r->tracks[last - 1].name : text);
    }
}

/* How often machine code ran, and where it came from: a counter for viewers, at both ends. */
static void write_code(FILE *f, const tide_recording *r, const tide_trace_process *p) {
    const td_code_tally *c = &r->code;
    if (!c->runs && !c->compiled && !c->loaded)
        return;
    for (int at_end = 0; at_end < 2; at_end++) {
        fprintf(f, ",\n{\"ph\":\"C\",\"name\":\"machine code\",\"pid\":%d,\"ts\":", p->number);
        write_moment(f, p, at_end ? r->wall_ns : 0);
        fprintf(f, ",\"args\":{\"runs\":%lld,\"compiled\":%lld,\"read from disk\":%lld}}",
                at_end ? (long long)c->runs : 0, at_end ? (long long)c->compiled : 0,
                at_end ? (long long)c->loaded : 0);
    }
}

/* What is written, and what was found out beforehand. */
typedef struct trace {
    const tide_recording *recording;
    const tide_trace_process *process;
    forward_list forward;
    askers askers;
} trace;

static void trace_clear(trace *t) {
    td_free(t->askers.asked);
    td_free(t->forward.ops);
}

static td_status trace_init(trace *t, const tide_recording *r, const tide_trace_process *p) {
    *t = (trace){.recording = r, .process = p};
    td_status status = find_forward(r, &t->forward);
    if (status == TD_OK)
        status = find_askers(r, &t->askers);
    if (status)
        trace_clear(t);
    return status;
}

static void write_part(FILE *f, const trace *t) {
    const tide_recording *r = t->recording;
    write_names(f, r, t->process);
    for (int64_t k = 0; k < r->count && !td_interrupt_requested(); k++)
        write_event(f, r, &t->askers, k, t->process);
    write_arrows(f, r, &t->forward, t->process);
    write_code(f, r, t->process);
}

static void write_trace(FILE *f, const void *ctx) {
    fprintf(f, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    write_part(f, ctx);
    fprintf(f, "\n]}\n");
}

td_status tide_write_chrome_trace(const tide_recording *r, const char *path) {
    tide_trace_process process = {.number = (int)getpid(), .name = "tide", .note = "", .rows = ""};
    trace t;
    td_status status = trace_init(&t, r, &process);
    if (status)
        return status;
    status = tide_write_whole(path, write_trace, &t);
    trace_clear(&t);
    return status;
}

char *tide_trace_part(const tide_recording *r, const tide_trace_process *process) {
    char *text = NULL;
    size_t size = 0;
    trace t;
    if (trace_init(&t, r, process))
        return NULL;
    FILE *out = open_memstream(&text, &size);
    if (out)
        write_part(out, &t);
    bool whole = out && !ferror(out);
    if (out && fclose(out) != 0)
        whole = false;
    trace_clear(&t);
    char *copy = whole ? td_strdup(text) : NULL;
    free(text);
    if (!copy)
        td_fail(TD_ENOMEM, "out of memory");
    if (copy && td_interrupt_requested()) {
        td_free(copy);
        copy = NULL;
        (void)td_interrupted();
    }
    return copy;
}
