/* choose.c: which instruction set's kernels run, decided once when the engine starts. */
#include "engine/cpu/isa/isa.h"

#include <stdlib.h>
#include <string.h>

extern const td_isa td_isa_baseline;
#if defined(__x86_64__)
extern const td_isa td_isa_avx2, td_isa_avx512;
#endif

const td_isa *td_cpu = &td_isa_baseline;

typedef struct choice {
    const td_isa *isa;
    bool there;
} choice;

/* AMX comes with AVX-512 BF16 always. */
uint16_t td_cpu_quick(void) {
#if defined(__x86_64__)
    return td_cpu == &td_isa_avx512 && __builtin_cpu_supports("avx512bf16") ? TD_DTYPE_BIT(BF16)
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
