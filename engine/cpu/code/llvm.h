/* llvm.h: LLVM as a compiler from text to an object file, loaded when it is first wanted.
 *
 * The library is used through the C functions that all its versions from 15 on have; its headers
 * are not needed. Not for several threads at once. */
#ifndef TD_CPU_CODE_LLVM_H
#define TD_CPU_CODE_LLVM_H

#include "engine/core/status.h"

#include <stddef.h>

/* Load the library: the one that TIDE_LLVM names, or the first of those that are known. NULL, or
 * why there is none, which stays so. It is never unloaded. */
const char *td_llvm_load(void);

/* Compile a module's text for a set of instructions ("avx2"). *object is td_malloc's. NULL, or what
 * failed, good until the next call. */
const char *td_llvm_compile(const char *text, size_t length, const char *isa,
                            unsigned char **object, size_t *bytes);

/* "19.1.7", or NULL before it is loaded. */
const char *td_llvm_version(void);

#endif
