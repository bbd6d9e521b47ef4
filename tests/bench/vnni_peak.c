/* vnni_peak.c: products of bytes a second that one core of an x86 processor with AVX-512 VNNI can
 * do at most: independent vpdpbusd that wait for no memory, the least time of 200 turns.
 *
 *   cc -O2 -mavx512f tests/bench/vnni_peak.c -o vnni_peak && ./vnni_peak
 */
#include <stdio.h>
#include <time.h>

enum { TURNS = 200, ROUNDS = 200000, REGISTERS = 24, PRODUCTS = 64 };

#define ONE(n)           "vpdpbusd %%zmm30, %%zmm31, %%zmm" #n "\n"
#define FOUR(a, b, c, d) ONE(a) ONE(b) ONE(c) ONE(d)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void) {
    double best = 1e9;
    for (int turn = 0; turn < TURNS; turn++) {
        double start = now();
        for (int k = 0; k < ROUNDS; k++)
            __asm__ volatile(FOUR(0, 1, 2, 3) FOUR(4, 5, 6, 7) FOUR(8, 9, 10, 11)
                                 FOUR(12, 13, 14, 15) FOUR(16, 17, 18, 19) FOUR(20, 21, 22, 23)
                             :
                             :
                             : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                               "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
                               "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",
                               "xmm23");
        double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%.1f products of bytes a nanosecond\n",
           (double)ROUNDS * REGISTERS * PRODUCTS / best / 1e9);
    return 0;
}
