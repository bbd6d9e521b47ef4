/* chrome_trace.c: writes the trace event format. */
#include "profiler/chrome_trace.h"

#include "engine/core/memory.h"
#include "profiler/table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const categories[TD_EVENT_KINDS] = {
    [TD_EVENT_OP] = "cpu_op",         [TD_EVENT_KERNEL] = "cpu_kernel",
    [TD_EVENT_BACKWARD] = "autograd", [TD_EVENT_RANGE] = "user_annotation",
    [TD_EVENT_ALLOC] = "memory",
};

static void write_string(FILE *f, const char *s) {
    fputc('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void write_us(FILE *f, int64_t ns) {
    fprintf(f, "%lld.%03lld", (long long)(ns / 1000), (long long)(ns % 1000));
}

static void write_inputs(FILE *f, const tide_event *e) {
    fprintf(f, ",\"Input Dims\":[");
    for (int k = 0; k < e->ninputs; k++) {
        const tide_input *in = &e->inputs[k];
        fprintf(f, k ? ",[" : "[");
        for (int d = 0; d < in->ndim && d < TIDE_MAX_INPUT_DIMS; d++)
            fprintf(f, d ? ",%d" : "%d", in->sizes[d]);
        fputc(']', f);
    }
    fprintf(f, "],\"Input type\":[");
    for (int k = 0; k < e->ninputs; k++)
        fprintf(f, k ? ",\"%s\"" : "\"%s\"", td_dtype_name((td_dtype)e->inputs[k].dtype));
    fputc(']', f);
}

static void write_event(FILE *f, const tide_event *e, int pid) {
    fprintf(f, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", categories[e->kind]);
    write_string(f, e->name);
    fprintf(f, ",\"pid\":%d,\"tid\":%d,\"ts\":", pid, e->thread);
    write_us(f, e->start_ns);
    fprintf(f, ",\"dur\":");
    write_us(f, e->end_ns - e->start_ns);
    fprintf(f, ",\"args\":{\"Self us\":");
    write_us(f, e->self_ns);
    if (e->sequence && e->kind != TD_EVENT_KERNEL)
        fprintf(f, ",\"Sequence number\":%llu", (unsigned long long)e->sequence);
    if (e->kind == TD_EVENT_OP)
        write_inputs(f, e);
    fprintf(f, "}}");
}

/* The operator that recorded the node: of those begun with its number the last. */
static const tide_event *forward_of(const tide_recording *r, const tide_event *backward) {
    const tide_event *found = NULL;
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        if (e->kind == TD_EVENT_OP && e->sequence == backward->sequence &&
            e->start_ns < backward->start_ns && (!found || e->start_ns > found->start_ns))
            found = e;
    }
    return found;
}

static void write_arrow(FILE *f, const tide_event *from, const tide_event *to, int pid) {
    static const char *const form =
        ",\n{\"ph\":\"%s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":%llu,\"pid\":%d,"
        "\"tid\":%d%s,\"ts\":";
    fprintf(f, form, "s", (unsigned long long)to->sequence, pid, from->thread, "");
    write_us(f, from->start_ns);
    fprintf(f, "}");
    fprintf(f, form, "f", (unsigned long long)to->sequence, pid, to->thread, ",\"bp\":\"e\"");
    write_us(f, to->start_ns);
    fprintf(f, "}");
}

static void write_names(FILE *f, const tide_recording *r, int pid) {
    int last = 0;
    fprintf(f,
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,\"args\":"
            "{\"name\":\"tide\"}}",
            pid);
    for (int64_t k = 0; k < r->count; k++) {
        if (r->events[k].thread <= last)
            continue;
        last = r->events[k].thread;
        fprintf(f,
                ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":"
                "{\"name\":\"thread %d\"}}",
                pid, last, last);
    }
}

static void write_trace(FILE *f, const tide_recording *r) {
    int pid = (int)getpid();
    fprintf(f, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    write_names(f, r, pid);
    for (int64_t k = 0; k < r->count; k++)
        write_event(f, &r->events[k], pid);
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        const tide_event *from = e->kind == TD_EVENT_BACKWARD ? forward_of(r, e) : NULL;
        if (from)
            write_arrow(f, from, e, pid);
    }
    fprintf(f, "\n]}\n");
}

static td_status fail_write(const char *path) {
    return td_fail(TD_EIO, "%s: %s", path, strerror(errno));
}

td_status tide_write_chrome_trace(const tide_recording *r, const char *path) {
    size_t len = strlen(path) + 32;
    char *draft = td_malloc(len);
    if (!draft)
        return td_fail(TD_ENOMEM, "out of memory");
    snprintf(draft, len, "%s.%d.part", path, (int)getpid());
    td_status status = TD_OK;
    FILE *f = fopen(draft, "w");
    if (!f) {
        status = fail_write(path);
    } else {
        write_trace(f, r);
        bool failed = ferror(f) != 0;
        failed |= fclose(f) != 0;
        if (failed || rename(draft, path) != 0) {
            status = fail_write(path);
            unlink(draft);
        }
    }
    td_free(draft);
    return status;
}
