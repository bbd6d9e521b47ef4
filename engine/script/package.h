/* package.h: functions in files, for programs in C as for scripts: no Lua is needed to call one.
 *
 * A file is an archive of zip, stored as it is: `script` names the format and the function,
 * `graph.txt` is the graph's printed form with its places, `tensors.safetensors` holds the constant
 * tensors by number. The same function is the same bytes, and so is one that was loaded and is
 * saved again.
 *
 *     td_scripted *f;
 *     td_tensor *x = ...;
 *     td_value in = TD_T(x), out;
 *     if (td_script_load("f.tide", &f) || td_script_call(f, 1, &in, 1, &out))
 *         puts(td_error_message());
 */
#ifndef TD_SCRIPT_PACKAGE_H
#define TD_SCRIPT_PACKAGE_H

#include "engine/script/scripted.h"

enum { TD_SCRIPT_FORMAT = 1 }; /* of the files that are written, and the newest that is read */

/* Write a function's graph, whole or not at all. Tensors of other devices, and those that don't lie
 * row by row, are written as they are on the CPU row by row. EVALUE: it calls functions of the
 * front end, or a constant is no strided tensor; EIO, ENOMEM, EINTR. */
td_status td_script_save(const td_scripted *f, const char *path) TD_MUST_CHECK;

/* The function of a file, new. Nothing of the file is believed before it is checked. EVALUE: what
 * is wrong with it; a format that is newer names both; EIO, ENOMEM, EINTR. */
td_status td_script_load(const char *path, td_scripted **out) TD_MUST_CHECK;

/* td_scripted_call with the numbers of inputs and outputs checked. ETYPE. */
td_status td_script_call(td_scripted *f, int ninputs, const td_value *inputs, int noutputs,
                         td_value *outputs) TD_MUST_CHECK;

#endif
