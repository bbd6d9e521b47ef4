/* processors.c: what the scheduler's mask and control groups leave of the machine. */
#include "engine/core/processors.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, TEXT_BYTES = 4096, MOST = 8192 };

/* A small file as text; empty where it can't be read. */
static void read_text(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, size - 1, file) : 0;
    text[n] = '\0';
    if (file)
        fclose(file);
}

/* The number at the head of a text, and the place behind it; -1 where there is none ("max"). */
static int64_t read_number(const char **at) {
    int64_t n = 0;
    const char *c = *at + strspn(*at, " ");
    if (*c < '0' || *c > '9')
        return -1;
    for (; *c >= '0' && *c <= '9'; c++)
        n = n < INT64_MAX / 16 ? n * 10 + (*c - '0') : n;
    *at = c;
    return n;
}

static int64_t read_number_file(const char *folder, const char *name) {
    char path[PATH_BYTES + 64], text[64];
    const char *at = text;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    read_text(path, text, sizeof text);
    return read_number(&at);
}

/* Quota and period in one file (version 2), or in one each. */
static int group_quota(const char *folder, bool two, int none) {
    int64_t quota, period;
    if (two) {
        char path[PATH_BYTES + 64], text[64];
        const char *at = text;
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        read_text(path, text, sizeof text);
        quota = read_number(&at);
        period = quota > 0 ? read_number(&at) : -1;
    } else {
        quota = read_number_file(folder, "cpu.cfs_quota_us");
        period = read_number_file(folder, "cpu.cfs_period_us");
    }
    if (quota <= 0 || period <= 0)
        return none;
    int64_t share = quota / period + (quota % period != 0);
    return share < none ? (int)share : none;
}

/* The least of a group and those around it, up to the root. */
static int path_quota(const char *root, const char *path, bool two, int none) {
    char folder[PATH_BYTES];
    size_t least = strlen(root);
    if (snprintf(folder, sizeof folder, "%s%s", root, path) >= (int)sizeof folder)
        return none;
    for (;;) {
        none = group_quota(folder, two, none);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < least)
            return none;
        *slash = '\0';
    }
}

/* Is "cpu" in a list of controllers? */
static bool has_cpu(const char *list) {
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        if (n == 3 && !strncmp(at, "cpu", 3))
            return true;
        at += n;
        if (!*at)
            return false;
    }
}

/* A line is NUMBER:CONTROLLERS:PATH, with no controllers in version 2. */
int td_processors_quota(const char *groups, const char *root, int none) {
    char line[PATH_BYTES], base[PATH_BYTES];
    for (const char *at = groups; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        bool two = list[1] == '\0';
        if (!two && !has_cpu(list + 1))
            continue;
        snprintf(base, sizeof base, two ? "%s" : "%s/cpu", root);
        none = path_quota(base, path, two, none);
    }
    return none;
}

static int in_mask(void) {
    unsigned long mask[MOST / 8 / sizeof(unsigned long)] = {0};
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) == 0)
        return CPU_COUNT_S(sizeof mask, (cpu_set_t *)mask);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int td_processors_allowed(void) {
    char groups[TEXT_BYTES];
    int n = in_mask();
    read_text("/proc/self/cgroup", groups, sizeof groups);
    n = td_processors_quota(groups, "/sys/fs/cgroup", n);
    return n > 0 ? n : 1;
}
