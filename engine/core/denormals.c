/* denormals.c: the bits of a processor's control register. */
#include "engine/core/denormals.h"

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>

/* Results that are denormal become zero (FTZ), operands count as zero (DAZ). */
enum { FLUSH = 0x8040 };

bool td_flush_denormal(void) {
    return (_mm_getcsr() & FLUSH) == FLUSH;
}

bool td_set_flush_denormal(bool on) {
    unsigned now = _mm_getcsr();
    _mm_setcsr(on ? now | FLUSH : now & ~(unsigned)FLUSH);
    return true;
}

#elif defined(__aarch64__)

#define FLUSH ((uint64_t)1 << 24) /* FPCR.FZ: both */

static uint64_t control(void) {
    uint64_t now;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    return now;
}

bool td_flush_denormal(void) {
    return control() & FLUSH;
}

bool td_set_flush_denormal(bool on) {
    uint64_t now = control();
    __asm__ volatile("msr fpcr, %0" : : "r"(on ? now | FLUSH : now & ~FLUSH));
    return true;
}

#else

bool td_flush_denormal(void) {
    return false;
}

bool td_set_flush_denormal(bool on) {
    (void)on;
    return false;
}

#endif
