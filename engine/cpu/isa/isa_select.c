/* isa_select.c: which instruction set's kernels run, decided once when the engine starts. */
#include "engine/cpu/isa/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

extern const td_isa td_isa_baseline, td_isa_avx2, td_isa_avx512;

const td_isa *td_cpu = &td_isa_baseline;

#ifdef TD_HAS_avx512
enum { ROUNDS = 8 };

static double seconds_of(void (*trial)(void)) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    trial();
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

/* The least of some rounds: a processor may need a few to get up to speed. */
static bool measure_pairs(void) {
    const td_product_kernels *k = td_isa_avx512.product;
    double least[2] = {1, 1};
    for (int r = 0; r < ROUNDS; r++)
        for (int pairs = 0; pairs < 2; pairs++) {
            double s = seconds_of(pairs ? k->try_pairs : k->try_floats);
            if (s < least[pairs])
                least[pairs] = s;
        }
    return least[1] < 1.5 * least[0]; /* an instruction of pairs is two */
}

static bool has_amx(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 22);
}
#endif

bool td_cpu_pairs_bfloats(void) {
#ifdef TD_HAS_avx512
    enum { UNKNOWN, SLOW, QUICK };
    static atomic_int pairs;
    int unknown = UNKNOWN;
    if (!__builtin_cpu_supports("avx512bf16"))
        return false;
    if (atomic_load(&pairs) == UNKNOWN) /* who is first tells all others */
        atomic_compare_exchange_strong(&pairs, &unknown, measure_pairs() ? QUICK : SLOW);
    return atomic_load(&pairs) == QUICK;
#else
    return false;
#endif
}

uint16_t td_cpu_quick(void) {
#ifdef TD_HAS_avx512
    return td_cpu == &td_isa_avx512 && (has_amx() || td_cpu_pairs_bfloats()) ? TD_DTYPE_BIT(BF16)
                                                                             : 0;
#else
    return 0;
#endif
}

bool td_cpu_has_vnni(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

/* The sets that are built (TIDE_ISA), the best first. */
static const td_isa *const sets[] = {
#ifdef TD_HAS_avx512
    &td_isa_avx512,
#endif
#ifdef TD_HAS_avx2
    &td_isa_avx2,
#endif
    &td_isa_baseline,
};
enum { SETS = sizeof sets / sizeof *sets };

bool td_cpu_has_set(const char *name) {
    bool there = true;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (strcmp(name, "baseline") != 0)
        there = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("bmi2");
    if (strcmp(name, "avx512") == 0)
        there &= __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
    for (int k = 0; k < SETS; k++)
        if (strcmp(sets[k]->name, name) == 0)
            return there;
    return false;
}

td_status td_cpu_choose(void) {
    const char *wanted = getenv("TIDE_CPU");
    if (wanted && !*wanted)
        wanted = NULL;
    for (int k = 0; k < SETS; k++) {
        bool there = td_cpu_has_set(sets[k]->name);
        if (wanted ? strcmp(wanted, sets[k]->name) != 0 : !there)
            continue;
        if (!there)
            return td_fail(TD_EVALUE, "TIDE_CPU=%s: this machine does not have it", wanted);
        td_cpu = sets[k];
        return TD_OK;
    }
    if (strcmp(wanted, "avx2") == 0 || strcmp(wanted, "avx512") == 0)
        return td_fail(TD_EVALUE, "TIDE_CPU=%s: Tide was built without it (-DTIDE_ISA=all has it)",
                       wanted);
    return td_fail(TD_EVALUE, "TIDE_CPU=%s: expected baseline, avx2 or avx512", wanted);
}
