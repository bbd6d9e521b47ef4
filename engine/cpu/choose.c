/* choose.c: which instruction set's kernels run, decided once when the engine starts. */
#include "engine/cpu/isa/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

extern const td_isa td_isa_baseline;
#if defined(__x86_64__)
extern const td_isa td_isa_avx2, td_isa_avx512;
#endif

const td_isa *td_cpu = &td_isa_baseline;

typedef struct choice {
    const td_isa *isa;
    bool there;
} choice;

#if defined(__x86_64__)
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
#if defined(__x86_64__)
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
#if defined(__x86_64__)
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

td_status td_cpu_choose(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("bmi2");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    const choice choices[] = {
        {&td_isa_avx512, avx512}, {&td_isa_avx2, avx2}, {&td_isa_baseline, true}};
#else
    const choice choices[] = {{&td_isa_baseline, true}};
#endif
    const char *wanted = getenv("TIDE_CPU");
    if (wanted && !*wanted)
        wanted = NULL;
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        if (wanted ? strcmp(wanted, choices[k].isa->name) != 0 : !choices[k].there)
            continue;
        if (!choices[k].there)
            return td_fail(TD_EVALUE, "TIDE_CPU=%s: this machine does not have it", wanted);
        td_cpu = choices[k].isa;
        return TD_OK;
    }
    return td_fail(TD_EVALUE, "TIDE_CPU=%s: expected baseline, avx2 or avx512", wanted);
}
