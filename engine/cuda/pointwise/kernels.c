/* kernels.c: the kernels that programs were given at run time: found by what they were written for,
 * compiled when a program has been run often enough, kept until the process ends.
 *
 * A program is interpreted while it is new and while its kernel is being compiled, by a thread that
 * does nothing else. What could not be compiled is remembered and not tried again. Kernels that are
 * there are never let go, since work that was queued or recorded may hold them; where there is no
 * room for another, its program stays interpreted. TIDE_CUDA_COMPILE says when to compile: `never`,
 * `now` (before a program is first run) or `later`; TIDE_CUDA_KERNELS, how many are kept. */
#include "engine/cuda/pointwise/compiled.h"

#include "cmake/embedded.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/limits.h"
#include "engine/cuda/loaded_libraries/nvrtc.h"
#include "engine/cuda/runtime/loaded_libraries.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TD_CUDA_NVRTC
#define TD_CUDA_NVRTC "" /* the module's file, beside ours: built without it */
#endif
#ifndef TD_CUDA_COMPILE
#define TD_CUDA_COMPILE "later"
#endif
/* Runtimes before that load no code by themselves. */
#define LOADS (CUDART_VERSION >= 12080)

enum {
    SETS = 64,
    WAYS = 16, /* programs of a set */
    KEPT = 512,
    HEADERS = 8
};

/* The headers that texts include, with their names without ending; and the one of C's that these
 * include, which the compiler lacks. */
extern const tide_embedded TD_CUDA_TEXTS[];
static const char stdint[] = "#ifdef __CUDACC_RTC__\n"
                             "typedef long long int64_t;\n"
                             "typedef unsigned long long uint64_t;\n"
                             "#else\n"
                             "#include_next <stdint.h>\n"
                             "#endif\n";

typedef enum state { EMPTY, COUNTED, WAITING, READY, FAILED } state;

/* A program in a form, for a kind of device. */
typedef struct program {
    unsigned char *key;
    size_t bytes;
    uint64_t hash;
    state state;
    int runs, device;
    int64_t elements;
    char *text; /* while it waits */
    struct program *next;
    void *library;
    const void *kernel;
} program;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static program programs[SETS][WAYS];
static program *waiting, **last = &waiting;
static int kept; /* that wait, are ready or failed */
static const td_late_nvrtc *compiler;
static pthread_t worker;
static bool works, ends;

/* ---- what is asked for ---- */

typedef enum when { NEVER, NOW, LATER } when;

static when when_to_compile(void) {
    static int known = -1;
    if (known < 0) {
        const char *asked = getenv("TIDE_CUDA_COMPILE");
        asked = asked && *asked ? asked : TD_CUDA_COMPILE;
        known = !strcmp(asked, "never") ? NEVER : !strcmp(asked, "now") ? NOW : LATER;
    }
    return (when)known;
}

static int most_kept(void) {
    static int known = -1;
    if (known < 0) {
        const char *asked = getenv("TIDE_CUDA_KERNELS");
        long n = asked && *asked ? strtol(asked, NULL, 10) : KEPT;
        known = n < 0 ? 0 : n < KEPT ? (int)n : KEPT;
    }
    return known;
}

/* 90 for 9.0. */
static int capability_of(int device) {
    static int known[TD_CUDA_DEVICES];
    int major = 0, minor = 0;
    if (device >= TD_CUDA_DEVICES)
        return 0;
    if (known[device] == 0 &&
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess)
        known[device] = 10 * major + minor;
    return known[device];
}

static void end(void);

/* With the lock held. What is to be done at exit is asked for behind what the compiler itself asked
 * for, and so is done before the compiler goes: its thread may be at work. */
static bool has_compiler(int device) {
    static td_cuda_late library = {.file = TD_CUDA_NVRTC, .symbol = TD_LATE_NVRTC};
    static bool asked;
    compiler = td_cuda_late_table(&library);
    if (compiler && !asked) {
        compiler->prepare(capability_of(device));
        asked = atexit(end) == 0;
    }
    return compiler != NULL && asked;
}

/* ---- keys ---- */

/* All that a text follows from: the form, the code but for its constants, and the device's kind. */
typedef struct key {
    size_t bytes;
    unsigned char at[sizeof(td_cuda_form) + sizeof(int32_t) + sizeof(td_cu_code)];
} key;

static void add_to_key(key *k, const void *from, size_t bytes) {
    memcpy(k->at + k->bytes, from, bytes);
    k->bytes += bytes;
}

static void make_key(key *k, const td_cu_code *code, const td_cuda_form *form, int32_t capability) {
    k->bytes = 0;
    add_to_key(k, form, sizeof *form);
    add_to_key(k, &capability, sizeof capability);
    add_to_key(k, code, offsetof(td_cu_code, constants));
    add_to_key(k, code->steps, sizeof *code->steps * code->nsteps);
}

static uint64_t hash_of(const key *k) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t at = 0; at < k->bytes; at += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, k->at + at, k->bytes - at < sizeof word ? k->bytes - at : sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* ---- compiling and loading ---- */

#if LOADS
static cudaError_t load(program *p, const char *image) {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    struct cudaFuncAttributes facts;
    cudaError_t error = cudaLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
    if (error != cudaSuccess)
        return error;
    p->library = library;
    error = cudaLibraryGetKernel(&kernel, library, TD_CUDA_PROGRAM);
    if (error == cudaSuccess) /* brings it onto the device now, not when it is launched first */
        error = cudaFuncGetAttributes(&facts, (const void *)kernel);
    p->kernel = error == cudaSuccess ? kernel : NULL;
    return error;
}

/* Whatever some stream records meanwhile is not concerned. */
static void load_image(program *p, const char *image) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    if (load(p, image) != cudaSuccess)
        (void)cudaGetLastError();
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
}

static void unload(program *p) {
    if (p->library && cudaLibraryUnload(p->library) != cudaSuccess)
        (void)cudaGetLastError();
}
#else
static void load_image(program *p, const char *image) {
    (void)p, (void)image;
}

static void unload(program *p) {
    (void)p;
}
#endif

/* A text with the headers that source.c names; 0 where it compiled. */
static int build(const char *text, int capability, void **built) {
    char names[HEADERS][40];
    const char *texts[HEADERS] = {stdint}, *ways[HEADERS] = {"stdint.h"};
    int n = 1;
    for (const tide_embedded *given = TD_CUDA_TEXTS; given->name && n < HEADERS; given++, n++) {
        snprintf(names[n], sizeof names[n], "td_%s.h", given->name);
        texts[n] = given->bytes;
        ways[n] = names[n];
    }
    return compiler->compile(text, n, texts, ways, capability, built);
}

/* Into `made`, whose library and kernel are NULL where that fails. Reads nothing that the lock
 * guards. */
static void compile(const char *text, int device, program *made) {
    void *built = NULL;
    if (build(text, capability_of(device), &built) != 0)
        return;
    size_t bytes = compiler->size(built);
    char *image = bytes ? td_malloc(bytes) : NULL;
    if (image && compiler->read(built, image) == 0)
        load_image(made, image);
    compiler->drop(built);
    td_free(image);
}

/* With the lock held. */
static void take_result(program *p, const program *made) {
    p->library = made->library;
    p->kernel = made->kernel;
    p->state = made->kernel ? READY : FAILED;
    td_free(p->text);
    p->text = NULL;
}

static void *work(void *unused) {
    pthread_mutex_lock(&lock);
    while (!ends) {
        program *p = waiting;
        if (!p) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        waiting = p->next;
        last = waiting ? last : &waiting;
        pthread_mutex_unlock(&lock);
        program made = {.library = NULL};
        if (cudaSetDevice(p->device) == cudaSuccess)
            compile(p->text, p->device, &made);
        (void)atexit(
            end); /* before what compiling made goes, should that be more than was prepared */
        pthread_mutex_lock(&lock);
        take_result(p, &made);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

/* What is being compiled is waited for, since it can't be stopped; what waits goes on when
 * something else is to be compiled. */
void td_cuda_stop_compiling(void) {
    pthread_mutex_lock(&lock);
    bool there = works;
    ends = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    if (there)
        (void)pthread_join(worker, NULL);
    pthread_mutex_lock(&lock);
    ends = works = false;
    pthread_mutex_unlock(&lock);
}

/* When the process ends. */
static void end(void) {
    td_cuda_stop_compiling();
    pthread_mutex_lock(&lock);
    kept = KEPT; /* nothing more is compiled */
    for (int k = 0; k < SETS * WAYS; k++) {
        program *p = &programs[0][0] + k;
        unload(p);
        td_free(p->key);
        td_free(p->text);
        *p = (program){.state = EMPTY};
    }
    waiting = NULL;
    pthread_mutex_unlock(&lock);
}

/* Signals are other threads' business. With the lock held. */
static bool has_worker(void) {
    sigset_t all, before;
    if (works)
        return true;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    works = pthread_create(&worker, NULL, work, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return works;
}

/* ---- programs ---- */

/* The program's place, or one that is free for it: of those that are only counted, the one that was
 * run least. NULL where all are taken. */
static program *find_place(const key *k, uint64_t hash) {
    program *set = programs[hash % SETS], *least = NULL;
    for (int way = 0; way < WAYS; way++) {
        program *p = &set[way];
        if (p->state != EMPTY && p->hash == hash && p->bytes == k->bytes &&
            memcmp(p->key, k->at, k->bytes) == 0)
            return p;
        if (p->state <= COUNTED && (!least || p->state < least->state ||
                                    (p->state == least->state && p->runs < least->runs)))
            least = p;
    }
    return least;
}

/* The program of a key; NULL where there is no room for it. With the lock held. */
static program *find_program(const key *k, int device) {
    uint64_t hash = hash_of(k);
    program *p = find_place(k, hash);
    if (!p || (p->state != EMPTY && p->hash == hash && p->bytes == k->bytes &&
               memcmp(p->key, k->at, k->bytes) == 0))
        return p;
    unsigned char *bytes = td_malloc(k->bytes);
    if (!bytes)
        return NULL;
    td_free(p->key);
    memcpy(bytes, k->at, k->bytes);
    *p = (program){
        .key = bytes, .bytes = k->bytes, .hash = hash, .state = COUNTED, .device = device};
    return p;
}

/* With the lock held. */
static void begin_to_compile(program *p, const td_cu_code *code, const td_cuda_form *form,
                             bool now) {
    if (kept >= most_kept() || !has_compiler(p->device) || (!now && !has_worker()))
        return;
    p->text = td_cuda_source(code, form);
    p->state = p->text ? WAITING : FAILED;
    kept++;
    if (p->text && now) {
        program made = {.library = NULL};
        td_loading loading; /* the worker's compiling keeps nobody waiting */
        td_loading_begin(&loading, "NVRTC's kernel");
        compile(p->text, p->device, &made);
        td_loading_end(&loading);
        take_result(p, &made);
    } else if (p->text) {
        *last = p;
        last = &p->next;
        pthread_cond_signal(&changed);
    }
}

const void *td_cuda_kernel(int device, const td_cu_code *code, const td_cuda_form *form,
                           int64_t elements) {
    when wanted = when_to_compile();
    int capability = wanted == NEVER || !LOADS ? 0 : capability_of(device);
    key k;
    if (capability == 0)
        return NULL;
    make_key(&k, code, form, capability);
    pthread_mutex_lock(&lock);
    program *p = find_program(&k, device);
    if (p && p->state == COUNTED) {
        p->runs++;
        p->elements += elements;
        if (wanted == NOW || p->runs >= TD_LIMIT(COMPILE_RUNS) ||
            p->elements >= TD_LIMIT(COMPILE_ELEMENTS))
            begin_to_compile(p, code, form, wanted == NOW);
    }
    const void *kernel = p && p->state == READY ? p->kernel : NULL;
    pthread_mutex_unlock(&lock);
    return kernel;
}
