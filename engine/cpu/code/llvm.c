/* llvm.c: LLVM behind a table of the few functions of its C interface that are used. */
#include "engine/cpu/code/llvm.h"

#include "engine/core/memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__)
#define TARGET(what) "LLVMInitializeAArch64" what
static const char triple[] = "aarch64-unknown-linux-gnu", processor[] = "generic";
#else
#define TARGET(what) "LLVMInitializeX86" what
static const char triple[] = "x86_64-unknown-linux-gnu", processor[] = "x86-64";
#endif

/* Of LLVM's headers, where they have not changed since version 8. */
enum { OPTIMISE = 2, POSITION_INDEPENDENT = 2, SMALL = 3, OBJECT = 1 };
typedef struct context *context;
typedef struct module *module;
typedef struct buffer *buffer;
typedef struct machine *machine;
typedef struct layout *layout;
typedef struct target *target;

/* name, result, parameters */
#define FUNCTIONS(X)                                                                               \
    X(ContextCreate, context, (void))                                                              \
    X(ContextDispose, void, (context))                                                             \
    X(ContextSetDiagnosticHandler, void, (context, void (*)(void *, void *), void *))              \
    X(CreateMemoryBufferWithMemoryRangeCopy, buffer, (const char *, size_t, const char *))         \
    X(ParseIRInContext, int, (context, buffer, module *, char **))                                 \
    X(DisposeModule, void, (module))                                                               \
    X(SetTarget, void, (module, const char *))                                                     \
    X(SetModuleDataLayout, void, (module, layout))                                                 \
    X(GetTargetFromTriple, int, (const char *, target *, char **))                                 \
    X(CreateTargetMachine, machine,                                                                \
      (target, const char *, const char *, const char *, int, int, int))                           \
    X(DisposeTargetMachine, void, (machine))                                                       \
    X(CreateTargetDataLayout, layout, (machine))                                                   \
    X(DisposeTargetData, void, (layout))                                                           \
    X(TargetMachineEmitToMemoryBuffer, int, (machine, module, int, char **, buffer *))             \
    X(GetBufferStart, const char *, (buffer))                                                      \
    X(GetBufferSize, size_t, (buffer))                                                             \
    X(DisposeMemoryBuffer, void, (buffer))                                                         \
    X(DisposeMessage, void, (char *))

static struct {
#define MEMBER(name, result, parameters) result(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
} llvm;

static bool tried;
static char absence[160], failure[200], version[24];

/* ---- loading ---- */

/* Those that Tide was tried with first. */
static const char *const files[] = {
    "libLLVM.so.19.1", "libLLVM-19.so",   "libLLVM-19.so.1", "libLLVM.so.18.1", "libLLVM-18.so.1",
    "libLLVM-18.so",   "libLLVM-17.so.1", "libLLVM-17.so",   "libLLVM.so.20.1", "libLLVM.so.21.1",
    "libLLVM-16.so.1", "libLLVM-16.so",   "libLLVM-15.so.1", "libLLVM-15.so"};

static void *open_library(void) {
    const char *given = getenv("TIDE_LLVM");
    if (given && *given)
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        void *library = dlopen(files[k], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

/* dlsym gives data pointers, which POSIX lets be functions'. */
static void *find(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol && !absence[0])
        snprintf(absence, sizeof absence, "the library is not LLVM 15 or later: it has no %s",
                 name);
    return symbol;
}

static void initialize(void *library) {
    static const char *const parts[] = {TARGET("TargetInfo"), TARGET("Target"), TARGET("TargetMC"),
                                        TARGET("AsmPrinter")};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        void *symbol = find(library, parts[k]);
        void (*start)(void);
        memcpy(&start, &symbol, sizeof start);
        if (symbol)
            start();
    }
}

static void note_version(void *library) {
    void *symbol = dlsym(library, "LLVMGetVersion"); /* from 16 on */
    void (*get)(unsigned *, unsigned *, unsigned *);
    unsigned major = 0, minor = 0, patch = 0;
    memcpy(&get, &symbol, sizeof get);
    if (!symbol) {
        snprintf(version, sizeof version, "15");
        return;
    }
    get(&major, &minor, &patch);
    snprintf(version, sizeof version, "%u.%u.%u", major, minor, patch);
}

const char *td_llvm_load(void) {
    if (tried)
        return absence[0] ? absence : NULL;
    tried = true;
    void *library = open_library();
    if (!library) {
        const char *why = dlerror();
        snprintf(absence, sizeof absence, "LLVM 15 to 21 is not there: %.100s", why ? why : "");
        return absence;
    }
#define FIND(name, result, parameters)                                                             \
    {                                                                                              \
        void *symbol = find(library, "LLVM" #name);                                                \
        memcpy(&llvm.name, &symbol, sizeof llvm.name);                                             \
    }
    FUNCTIONS(FIND)
#undef FIND
    (void)find(library, "LLVMPointerTypeIsOpaque"); /* before 15 pointers had types */
    if (!absence[0])
        initialize(library);
    note_version(library);
    return absence[0] ? absence : NULL;
}

const char *td_llvm_version(void) {
    return version[0] ? version : NULL;
}

/* ---- compiling ---- */

static const char *features_of(const char *isa) {
    if (!strcmp(isa, "avx512"))
        return "+avx2,+fma,+f16c,+bmi,+bmi2,+avx512f,+avx512bw,+avx512vl,+avx512dq";
    return !strcmp(isa, "avx2") ? "+avx2,+fma,+f16c,+bmi,+bmi2" : "";
}

static const char *fail(const char *what, char *why) {
    snprintf(failure, sizeof failure, "LLVM: %s: %.150s", what, why ? why : "");
    if (why)
        llvm.DisposeMessage(why);
    return failure;
}

/* What LLVM has to say comes back from its functions; it is not printed. */
static void hear_nothing(void *diagnostic, void *unused) {
    (void)diagnostic, (void)unused;
}

/* The text's buffer is the parser's from here on. */
static const char *emit(module m, machine to, unsigned char **object, size_t *bytes) {
    char *why = NULL;
    buffer made = NULL;
    if (llvm.TargetMachineEmitToMemoryBuffer(to, m, OBJECT, &why, &made))
        return fail("no object", why);
    *bytes = llvm.GetBufferSize(made);
    *object = td_malloc(*bytes);
    if (*object)
        memcpy(*object, llvm.GetBufferStart(made), *bytes);
    llvm.DisposeMemoryBuffer(made);
    return *object ? NULL : "out of memory";
}

static const char *compile_in(context c, machine to, const char *text, size_t length,
                              unsigned char **object, size_t *bytes) {
    char *why = NULL;
    module m = NULL;
    buffer source = llvm.CreateMemoryBufferWithMemoryRangeCopy(text, length, "program");
    if (llvm.ParseIRInContext(c, source, &m, &why)) /* takes the buffer */
        return fail("not read", why);
    layout data = llvm.CreateTargetDataLayout(to);
    llvm.SetTarget(m, triple);
    llvm.SetModuleDataLayout(m, data);
    llvm.DisposeTargetData(data);
    const char *failed = emit(m, to, object, bytes);
    llvm.DisposeModule(m);
    return failed;
}

const char *td_llvm_compile(const char *text, size_t length, const char *isa,
                            unsigned char **object, size_t *bytes) {
    char *why = NULL;
    target found;
    *object = NULL;
    if (td_llvm_load())
        return absence;
    if (llvm.GetTargetFromTriple(triple, &found, &why))
        return fail("no such target", why);
    machine to = llvm.CreateTargetMachine(found, triple, processor, features_of(isa), OPTIMISE,
                                          POSITION_INDEPENDENT, SMALL);
    if (!to)
        return fail("no such machine", NULL);
    context c = llvm.ContextCreate();
    llvm.ContextSetDiagnosticHandler(c, hear_nothing, NULL);
    const char *failed = compile_in(c, to, text, length, object, bytes);
    llvm.ContextDispose(c);
    llvm.DisposeTargetMachine(to);
    return failed;
}
