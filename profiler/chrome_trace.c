/* chrome_trace.c: writes the trace event format. */
#include "profiler/chrome_trace.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "profiler/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const categories[TIDE_EVENT_KINDS] = {
    [TD_EVENT_OP] = "cpu_op",         [TD_EVENT_KERNEL] = "cpu_kernel",
    [TD_EVENT_BACKWARD] = "autograd", [TD_EVENT_RANGE] = "user_annotation",
    [TD_EVENT_ALLOC] = "memory",
};

/* Bytes of the character that begins here; 0 where none does. */
static size_t utf8_length(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80)
        return 1;
    size_t n = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
    unsigned low = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;  /* no longer than needed */
    unsigned high = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF; /* no surrogates */
    if (u[0] < 0xC2 || u[0] > 0xF4 || u[1] < low || u[1] > high)
        return 0;
    for (size_t k = 2; k < n; k++)
        if ((u[k] & 0xC0) != 0x80)
            return 0;
    return n;
}

static void write_string(FILE *f, const char *s) {
    fputc('"', f);
    for (size_t n; *s; s += n) {
        unsigned char c = (unsigned char)*s;
        n = utf8_length(s);
        if (n == 0) {
            fputs("\\ufffd", f);
            n = 1;
        } else if (c == '"' || c == '\\') {
            fprintf(f, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(f, "\\u%04x", c);
        } else {
            fwrite(s, 1, n, f);
        }
    }
    fputc('"', f);
}

static void write_us(FILE *f, int64_t ns) {
    fprintf(f, "%lld.%03lld", (long long)(ns / 1000), (long long)(ns % 1000));
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
    for (int k = 0; k < e->ninputs; k++)
        fprintf(f, k ? ",\"%s\"" : "\"%s\"", td_dtype_name(tide_input_next(&at).dtype));
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
    if (e->line) {
        fprintf(f, ",\"line\":");
        write_string(f, e->line);
    }
    if (e->kind == TD_EVENT_OP)
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

static void write_arrow_end(FILE *f, const char *phase, const tide_event *e, int64_t id, int pid) {
    fprintf(f,
            ",\n{\"ph\":\"%s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":%lld,\"pid\":%d,"
            "\"tid\":%d%s,\"ts\":",
            phase, (long long)id, pid, e->thread, *phase == 'f' ? ",\"bp\":\"e\"" : "");
    write_us(f, e->start_ns);
    fprintf(f, "}");
}

static void write_arrows(FILE *f, const tide_recording *r, const forward_list *forward, int pid) {
    for (int64_t k = 0; k < r->count && !td_interrupt_requested(); k++) {
        const tide_event *e = &r->events[k];
        const tide_event *from = e->kind == TD_EVENT_BACKWARD ? forward_of(forward, e) : NULL;
        if (from) {
            write_arrow_end(f, "s", from, k, pid);
            write_arrow_end(f, "f", e, k, pid);
        }
    }
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

static void write_trace(FILE *f, const tide_recording *r, const forward_list *forward) {
    int pid = (int)getpid();
    fprintf(f, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    write_names(f, r, pid);
    for (int64_t k = 0; k < r->count && !td_interrupt_requested(); k++)
        write_event(f, &r->events[k], pid);
    write_arrows(f, r, forward, pid);
    fprintf(f, "\n]}\n");
}

static td_status fail_write(const char *path, int error) {
    return td_fail(TD_EIO, "%s: %s", path, strerror(error));
}

/* Write to `file`, which is `path` itself or a draft that takes its place when it is whole. */
static td_status write_file(const tide_recording *r, const forward_list *forward, const char *path,
                            const char *file) {
    FILE *f = fopen(file, "w");
    if (!f)
        return fail_write(path, errno);
    errno = 0;
    write_trace(f, r, forward);
    int error = ferror(f) ? (errno ? errno : EIO) : 0;
    if (fclose(f) != 0 && !error)
        error = errno;
    td_status status = td_interrupt_check();
    if (!error && !status && file != path && rename(file, path) != 0)
        error = errno;
    if ((error || status) && file != path)
        unlink(file);
    if (status)
        return status;
    return error ? fail_write(path, error) : TD_OK;
}

td_status tide_write_chrome_trace(const tide_recording *r, const char *path) {
    struct stat there;
    forward_list forward;
    td_status status = find_forward(r, &forward);
    if (status)
        return status;
    char *target = realpath(path, NULL); /* a link stays, the file that it leads to is replaced */
    const char *end = target ? target : path;
    size_t len = strlen(end) + 32;
    char *draft = td_malloc(len);
    if (!draft) {
        status = td_fail(TD_ENOMEM, "out of memory");
    } else if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        status = write_file(r, &forward, path, path); /* a pipe or a device: nothing to replace */
    } else {
        snprintf(draft, len, "%s.%d.part", end, (int)getpid());
        status = write_file(r, &forward, end, draft);
    }
    td_free(draft);
    free(target);
    td_free(forward.ops);
    return status;
}
