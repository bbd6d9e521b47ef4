/* frontend.h: the session's front end: where its text, displays and questions go. */
#ifndef TIDE_KERNEL_FRONTEND_H
#define TIDE_KERNEL_FRONTEND_H

#include "jupyter-kernel/kernel.h"

/* The functions a session of this kernel is created with. */
tide_frontend tk_frontend(tk_kernel *kernel);

#endif
