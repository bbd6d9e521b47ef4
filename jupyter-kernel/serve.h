/* serve.h: the life of a kernel, from its connection file to its exit code. */
#ifndef TIDE_KERNEL_SERVE_H
#define TIDE_KERNEL_SERVE_H

/* Runs the kernel of a connection file until it is shut down, its parent dies or a cell calls
 * os.exit. Gives the exit code of the program; problems are logged. */
int tk_serve(const char *connection_file);

#endif
