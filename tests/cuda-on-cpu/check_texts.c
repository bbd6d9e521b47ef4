/* check_texts.c: the toolkit's own compiler takes what source.c writes: every primitive, in floats
 * and integers, as dense lists and as walks, for old devices and new ones. Needs no device. */
#include "cmake/embedded.h"
#include "engine/core/memory.h"
#include "engine/cuda/loaded_libraries/nvrtc.h"
#include "engine/cuda/pointwise/source.h"
#include "engine/ops/language/program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADERS = 8, SKIPPED = 77 };

extern const tide_embedded TD_CUDA_TEXTS[];

static void add_step(td_cu_code *code, int primitive, td_dtype from, td_dtype to, int dst, int a,
                     int b, int c) {
    code->steps[code->nsteps++] = (td_cu_step){(uint8_t)primitive,
                                               (uint8_t)from,
                                               (uint8_t)to,
                                               (uint8_t)dst,
                                               {(uint8_t)a, (uint8_t)b, (uint8_t)c}};
}

static bool is_for(int p, td_dtype dtype) {
    td_signature signature = td_primitive_signature((td_primitive)p);
    return td_primitive_text((td_primitive)p, td_dtype_is_float(dtype)) &&
           !td_primitive_is_special((td_primitive)p) && signature != TD_SIGNATURE_LOGIC &&
           signature != TD_SIGNATURE_SELECT;
}

/* A program of three loads, a constant and a result, in which every second primitive makes a step
 * whose result is added to the first load. */
static td_cu_code program_of(td_dtype dtype, td_dtype memory, int half) {
    td_cu_code code;
    memset(&code, 0, sizeof code);
    code.nloads = 3;
    code.nconstants = code.nouts = 1;
    for (int k = 0; k < 3; k++) {
        code.load_from[k] = (uint8_t)memory;
        code.load_as[k] = (uint8_t)dtype;
    }
    code.out_from[0] = (uint8_t)dtype;
    code.out_to[0] = (uint8_t)memory;
    for (int p = half; p < TD_PRIMITIVES && code.nsteps + 4 < TD_CU_STEPS; p += 2) {
        bool compares = td_primitive_signature((td_primitive)p) == TD_SIGNATURE_COMPARE;
        if (!is_for(p, dtype))
            continue;
        add_step(&code, p, dtype, compares ? TD_BOOL : dtype, 5, 0, 3, 2);
        if (compares)
            add_step(&code, TD_PW_where, dtype, dtype, 5, 5, 1, 2);
        add_step(&code, TD_PW_add, dtype, dtype, 0, 0, 5, 0);
    }
    add_step(&code, TD_PW_copy, dtype, dtype, 4, 0, 0, 0);
    return code;
}

/* 1 where the text does not compile. */
static int check(const td_late_nvrtc *compiler, const td_cu_code *code, const td_cuda_form *form,
                 int capability) {
    static const char stdint[] =
        "typedef long long int64_t;\ntypedef unsigned long long uint64_t;\n";
    const char *texts[HEADERS] = {stdint}, *names[HEADERS] = {"stdint.h"};
    char room[HEADERS][40];
    void *program = NULL;
    int n = 1;
    for (const tide_embedded *given = TD_CUDA_TEXTS; given->name && n < HEADERS; given++, n++) {
        snprintf(room[n], sizeof room[n], "td_%s.h", given->name);
        names[n] = room[n];
        texts[n] = given->bytes;
    }
    char *text = td_cuda_source(code, form);
    int failed = text ? compiler->compile(text, n, texts, names, capability, &program) : -1;
    if (failed || compiler->size(program) == 0)
        printf("for sm_%d, error %d:\n%s\n", capability, failed, text ? text : "no text");
    if (program)
        compiler->drop(program);
    td_free(text);
    return failed != 0;
}

int main(void) {
    static const struct {
        td_dtype dtype, memory;
        td_cuda_form form;
        int capability;
    } cases[] = {
        {TD_F32, TD_BF16, {.way = TD_CUDA_WALK, .ndim = 3, .vector = 4, .repeated = 2}, 90},
        {TD_F32, TD_F16, {.way = TD_CUDA_ONE, .vector = 4}, 75},
        {TD_F64, TD_F64, {.way = TD_CUDA_MANY, .vector = 4}, 80},
        {TD_I32, TD_I32, {.way = TD_CUDA_WALK, .ndim = 2, .vector = 1, .wide = 1}, 75},
        {TD_I64, TD_U8, {.way = TD_CUDA_ONE, .vector = 4}, 90},
    };
    const char *file = getenv("TIDE_NVRTC");
    void *module = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    const td_late_nvrtc *compiler = module ? dlsym(module, TD_LATE_NVRTC) : NULL;
    int wrong = 0;
    if (!compiler) {
        printf("skipped: NVRTC can't be loaded\n");
        return SKIPPED;
    }
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int half = 0; half < 2; half++) {
            td_cu_code code = program_of(cases[k].dtype, cases[k].memory, half);
            wrong += check(compiler, &code, &cases[k].form, cases[k].capability);
        }
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
