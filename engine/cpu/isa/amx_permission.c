/* amx_permission.c: may this process use AMX's tiles? The processor has to have them, the system
 * has to keep them when it changes threads, and wants to be asked. */
#include "engine/cpu/isa/isa.h"

#include <stdatomic.h>

#if defined(TD_HAS_avx512) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ASK = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_CONFIG = 17, TILE_DATA = 18 };

/* The bits of XCR0 (Intel SDM vol. 1, 13.3): states that the system saves. */
static uint32_t saved_states(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Leaf 7 names the instructions, leaf 1dh the tiles of palette 1 (vectors/amx.h). */
static bool processor_has(void) {
    const uint32_t both = 1u << TILE_CONFIG | 1u << TILE_DATA;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || (saved_states() & both) != both)
        return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & 1u << 24) || !(d & 1u << 25))
        return false;
    return __get_cpuid_count(0x1d, 1, &a, &b, &c, &d) && a == (1024u << 16 | 8192u) &&
           b == (8u << 16 | 64u) && (c & 0xffff) == 16;
}

/* For all threads, those that are there and those to come, and for processes that are forked. It is
 * refused while a thread has a stack for signals on which the tiles would not fit, and once it is
 * given, such stacks are refused: it is asked for when tiles are to be used, not before. */
static bool ask(void) {
    return syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}

bool td_cpu_has_amx_bytes(void) {
    enum { UNKNOWN, NO, YES };
    static atomic_int has;
    int known = atomic_load_explicit(&has, memory_order_relaxed);
    if (known == UNKNOWN) { /* whoever asks at the same time hears the same */
        known = processor_has() && ask() ? YES : NO;
        atomic_store_explicit(&has, known, memory_order_relaxed);
    }
    return known == YES;
}
#else
bool td_cpu_has_amx_bytes(void) {
    return false;
}
#endif
