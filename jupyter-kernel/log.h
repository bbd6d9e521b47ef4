/* log.h: one line on the standard error the kernel was started with.
 *
 * Descriptor 2 itself belongs to the cells (see capture.h), so the log keeps a descriptor of its
 * own. Knows nothing of messages or sockets. */
#ifndef TIDE_KERNEL_LOG_H
#define TIDE_KERNEL_LOG_H

/* Where lines go from now on; a duplicate of descriptor 2 taken before it was redirected. The
 * descriptor is borrowed. Until this is called lines go to descriptor 2. */
void tk_log_to(int fd);

/* One line, "tide-kernel: " before it; control characters become spaces, so that what a peer sent
 * cannot forge lines. Thread-safe, at most 1023 bytes. */
void tk_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
