/* control.h: the thread of the control channel and the heartbeat.
 *
 * Interrupt, shutdown, kernel_info and usage on control are answered while a cell computes; the
 * heartbeat echoes; subscribers of iopub are welcomed; the death of the parent ends the kernel. It
 * never touches the session but to interrupt. */
#ifndef TIDE_KERNEL_CONTROL_H
#define TIDE_KERNEL_CONTROL_H

#include "jupyter-kernel/kernel.h"

typedef struct tk_control tk_control;

/* NULL with a line in the log when there is no thread to be had. */
tk_control *tk_control_start(tk_kernel *kernel);

/* Ends the thread. Until then it waits for a kernel that stops, and ends the process when that
 * takes too long. NULL is allowed. */
void tk_control_stop(tk_control *control);

#endif
