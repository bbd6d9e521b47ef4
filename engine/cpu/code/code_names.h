/* code_names.h: machine code made known to debuggers and profilers, which can't see by themselves
 * what it is.
 *
 * Code is called by the operators of its program and the place in a script where that is from:
 * fused_mul_add_tanh.float32[cell.lua:12]. Programs that do the same share code, so the place is
 * that of the first.
 *
 * gdb and lldb learn of every piece, by the interface for compilers at run time that both know:
 * backtraces, disassembly and breakpoints have the name, and the place where it is a file's line.
 * perf is told where TIDE_CODE_PERF says how: `map` (or 1) writes a line for each piece into
 * /tmp/perf-PID.map, which perf report reads; `dump` writes jit-PID.dump into $JITDUMPDIR (or the
 * working folder), for perf record -k mono and perf inject --jit, with the code and the lines.
 */
#ifndef TD_CPU_CODE_CODE_NAMES_H
#define TD_CPU_CODE_CODE_NAMES_H

#include "engine/cpu/code/code_text.h"

enum { TD_CODE_NAME = 256 };

/* The name of a form's code. Returns the buffer. */
const char *td_code_name(const td_code_form *form, char name[TD_CODE_NAME]);

/* Code that is there for good, before it runs first: `n` bytes. Only on one thread at a time. What
 * can't be told is left untold. */
void td_code_announce(const td_code_form *form, const void *code, size_t n);

#endif
