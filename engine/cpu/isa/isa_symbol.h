/* isa_symbol.h: names of what is built once per instruction set (TD_ISA, given by the build). */
#ifndef TD_CPU_ISA_SYMBOL_H
#define TD_CPU_ISA_SYMBOL_H

#define TD_ISA_PASTE2(a, b) a##_##b
#define TD_ISA_PASTE(a, b)  TD_ISA_PASTE2(a, b)
/* The name of an external symbol in this build of the file. */
#define TD_ISA_SYMBOL(name) TD_ISA_PASTE(name, TD_ISA)

#endif
