/* handshake.h: the kernel that chooses its ports itself and tells its launcher (JEP 66).
 *
 * A registration file names one socket of the launcher's. The kernel binds five free ports, sends
 * them there as a handshake_request, and leaves when no handshake_reply comes. Other front ends
 * find it by the connection file that it writes into Jupyter's runtime folder. */
#ifndef TIDE_KERNEL_HANDSHAKE_H
#define TIDE_KERNEL_HANDSHAKE_H

#include "jupyter-kernel/kernel.h"

/* To be called when the sockets are bound and the sender has its key and name. False with a line in
 * the log. */
bool tk_handshake(tk_kernel *kernel);

/* Removes the connection file that was written, if one was. */
void tk_handshake_forget(tk_kernel *kernel);

#endif
