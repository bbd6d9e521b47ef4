/* code_symbols.h: an object file in memory that says what some code is, for a debugger. */
#ifndef TD_CPU_CODE_CODE_SYMBOLS_H
#define TD_CPU_CODE_CODE_SYMBOLS_H

#include <stddef.h>

/* Of `n` bytes of code: an ELF file with a symbol, and DWARF that says the line where `file` is not
 * NULL. New, from td_malloc; NULL: out of memory. */
unsigned char *td_code_symbols(const char *name, const void *code, size_t n, const char *file,
                               int line, size_t *bytes);

#endif
