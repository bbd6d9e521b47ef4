/* log.c: see log.h. */
#include "jupyter-kernel/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static int log_fd = STDERR_FILENO;

void tk_log_to(int fd) {
    log_fd = fd;
}

void tk_log(const char *format, ...) {
    char line[1024];
    int len = snprintf(line, sizeof line - 1, "tide-kernel: ");
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + len, sizeof line - 1 - (size_t)len, format, args);
    va_end(args);
    if (more < 0)
        return;
    size_t end = (size_t)len + (size_t)more;
    if (end > sizeof line - 2)
        end = sizeof line - 2;
    for (size_t i = 0; i < end; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    line[end++] = '\n';
    /* A log that cannot be written is no reason to stop. */
    ssize_t written = write(log_fd, line, end);
    (void)written;
}
