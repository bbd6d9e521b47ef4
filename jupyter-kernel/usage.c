/* usage.c: usage_request: processor and memory of the kernel, its children and the machine.
 *
 * The fields are those that JupyterLab's resource panel shows. Control thread only: processor time
 * is counted from one request to the next. What /proc does not say is left out. */
#include "jupyter-kernel/content.h"
#include "jupyter-kernel/handlers.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PROCESSES = 256 };

/* The beginning of a file of /proc as a string; false: it can't be read. */
static bool read_text(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    return n > 0;
}

/* The number behind "name:" at the beginning of a line; 0: there is none. */
static long long field(const char *text, const char *name) {
    size_t len = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0 && line[len] == ':')
            return strtoll(line + len + 1, NULL, 10);
    }
    return 0;
}

/* ---- processes ---- */

/* Adds the children that a thread started to the list; their number. */
static int add_children(const char *path, pid_t *list, int n) {
    char text[4096], *at = text, *end;
    if (!read_text(path, text, sizeof text))
        return n;
    for (long pid; (pid = strtol(at, &end, 10)) > 0 && end != at; at = end)
        if (n < MAX_PROCESSES)
            list[n++] = (pid_t)pid;
    return n;
}

/* The kernel and all that descends from it. */
static int list_processes(pid_t list[MAX_PROCESSES]) {
    int n = 1;
    list[0] = getpid();
    for (int i = 0; i < n; i++) {
        char path[320];
        snprintf(path, sizeof path, "/proc/%ld/task", (long)list[i]);
        DIR *tasks = opendir(path);
        for (struct dirent *task; tasks && (task = readdir(tasks));) {
            if (task->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "/proc/%ld/task/%s/children", (long)list[i], task->d_name);
            n = add_children(path, list, n);
        }
        if (tasks)
            closedir(tasks);
    }
    return n;
}

/* Bytes a process has in memory, shared pages divided among those who share them. */
static long long memory_of(pid_t pid) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", (long)pid);
    if (read_text(path, text, sizeof text))
        return field(text, "Pss") * 1024;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    return read_text(path, text, sizeof text) ? field(text, "VmRSS") * 1024 : 0;
}

/* Processor time in ticks of the system's clock. */
static long long ticks_of(pid_t pid) {
    char path[64], text[1024];
    unsigned long long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    const char *behind = read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    if (behind) /* the name may hold anything, the rest is numbers */
        sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
               &system);
    return (long long)(user + system);
}

/* ---- the machine ---- */

/* Ticks that all processors worked, and how many there were. */
static bool read_machine(long long *busy, long long *all) {
    char text[512];
    long long f[8] = {0};
    if (!read_text("/proc/stat", text, sizeof text) ||
        sscanf(text, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", f, f + 1, f + 2, f + 3, f + 4,
               f + 5, f + 6, f + 7) < 4)
        return false;
    *all = 0;
    for (int i = 0; i < 8; i++)
        *all += f[i];
    *busy = *all - f[3] - f[4]; /* idle, waiting for disks */
    return true;
}

static json_t *machine_memory(void) {
    char text[4096];
    if (!read_text("/proc/meminfo", text, sizeof text))
        return json_null();
    json_int_t total = field(text, "MemTotal") * 1024;
    json_int_t available = field(text, "MemAvailable") * 1024;
    json_int_t free_bytes = field(text, "MemFree") * 1024;
    double percent = total > 0 ? 100.0 * (double)(total - available) / (double)total : 0;
    return json_pack("{s:I, s:I, s:f, s:I, s:I}", "total", total, "available", available, "percent",
                     percent, "used", total - available, "free", free_bytes);
}

/* ---- since the last request ---- */

static double percent_of(long long part, long long whole) {
    return whole > 0 && part > 0 ? 100.0 * (double)part / (double)whole : 0;
}

json_t *tk_handle_usage(tk_kernel *kernel, const tk_request *request) {
    static struct {
        long long own, busy, all;
        int64_t at_us;
    } last;
    (void)kernel;
    (void)request;
    pid_t list[MAX_PROCESSES];
    char host[256] = "";
    long long own = 0, memory = 0, busy = 0, all = 0;
    int n = list_processes(list);
    for (int i = 0; i < n; i++) {
        own += ticks_of(list[i]);
        memory += memory_of(list[i]);
    }
    int64_t now = tk_kernel_now_us();
    long long passed = (now - last.at_us) * sysconf(_SC_CLK_TCK) / 1000000;
    bool machine = read_machine(&busy, &all);
    gethostname(host, sizeof host - 1);
    json_t *content = json_pack(
        "{s:s, s:o, s:i, s:f, s:I, s:i, s:o}", "status", "ok", "hostname", tk_json_string(host),
        "pid", (int)getpid(), "kernel_cpu", last.at_us ? percent_of(own - last.own, passed) : 0.0,
        "kernel_memory", (json_int_t)memory, "cpu_count", (int)sysconf(_SC_NPROCESSORS_ONLN),
        "host_virtual_memory", machine_memory());
    if (machine && last.at_us)
        json_object_set_new(content, "host_cpu_percent",
                            json_real(percent_of(busy - last.busy, all - last.all)));
    last.own = own;
    last.busy = busy;
    last.all = all;
    last.at_us = now;
    return content;
}
