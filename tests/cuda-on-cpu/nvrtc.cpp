/* nvrtc.cpp: programs compiled at run time by the host's compiler, in a folder of their own that
 * goes when they are done, and what loads them. */
#include "include/nvrtc.h"
#include "runtime.h"

#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
using namespace td_played;

struct _nvrtcProgram {
    std::string text, log, object;
    std::vector<std::pair<std::string, std::string>> headers; /* name, text */
};

namespace {

/* A folder that goes with what was written into it. */
struct folder {
    std::string path;
    std::vector<std::string> files;
    folder() {
        const char *parent = getenv("TMPDIR");
        path = std::string(parent && *parent ? parent : "/tmp") + "/tide-nvrtc-XXXXXX";
        if (!mkdtemp(&path[0]))
            die("no folder for a program can be made: %s", path.c_str());
    }
    folder(const folder &) = delete;
    folder &operator=(const folder &) = delete;
    ~folder() {
        for (const std::string &file : files)
            unlink(file.c_str());
        rmdir(path.c_str());
    }
    std::string add(const std::string &name) {
        files.push_back(path + "/" + name);
        return files.back();
    }
    std::string write(const std::string &name, const std::string &text) {
        std::string file = add(name);
        FILE *out = fopen(file.c_str(), "wb");
        if (!out || fwrite(text.data(), 1, text.size(), out) != text.size() || fclose(out))
            die("a program's file can't be written: %s", file.c_str());
        return file;
    }
};

std::string read_file(const std::string &file) {
    std::string text;
    char piece[4096];
    FILE *in = fopen(file.c_str(), "rb");
    for (size_t n; in && (n = fread(piece, 1, sizeof piece, in)) > 0;)
        text.append(piece, n);
    if (in)
        fclose(in);
    return text;
}

/* Runs a command; its exit code, and what it said on stderr in `log`. */
int run(const std::vector<std::string> &words, const std::string &log) {
    std::vector<char *> argv;
    for (const std::string &word : words)
        argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child;
    int status = -1,
        failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The compiler's words for an option, or false for one that NVRTC does not know. */
bool translate(const std::string &option, std::vector<std::string> *words) {
    auto begins = [&](const char *with) { return option.compare(0, strlen(with), with) == 0; };
    if (begins("-D") || begins("-U"))
        words->push_back(option);
    else if (begins("--define-macro="))
        words->push_back("-D" + option.substr(15));
    else if (begins("--std=") || begins("-std="))
        words->push_back("-std=" + option.substr(option.find('=') + 1));
    else
        return begins("--gpu-architecture=sm_") || begins("--gpu-architecture=compute_") ||
               begins("-arch=sm_") || begins("-arch=compute_") || begins("--fmad=") ||
               begins("-fmad=") || begins("--ftz=") || begins("--prec-div=") ||
               begins("--prec-sqrt=") || option == "--use_fast_math" ||
               option == "-use_fast_math" || option == "--device-as-default-execution-space" ||
               option == "-default-device" || option == "-lineinfo" ||
               option == "--generate-line-info" || option == "-w" || begins("--diag-suppress=") ||
               begins("--split-compile=") || option == "-dopt=on" ||
               begins("--extra-device-vectorization") || begins("--maxrregcount=");
    return true;
}

/* Reads a text word by word: names whole, other characters one by one. */
struct words_of {
    const std::string &text;
    size_t at = 0;
    std::string next() {
        while (at < text.size() && isspace((unsigned char)text[at]))
            at++;
        size_t from = at;
        while (at < text.size() && (isalnum((unsigned char)text[at]) || text[at] == '_'))
            at++;
        at += at == from && at < text.size();
        return text.substr(from, at - from);
    }
    /* The next word behind `__launch_bounds__(...)`, where that stands. */
    std::string behind_bounds() {
        std::string word = next();
        if (word != "__launch_bounds__")
            return word;
        int depth = 0;
        do {
            word = next();
            depth += (word == "(") - (word == ")");
        } while (depth && !word.empty());
        return next();
    }
};

/* The first header that the program includes and nobody gave. */
std::string stranger(const _nvrtcProgram &program) {
    for (size_t at = 0; (at = program.text.find('#', at)) != std::string::npos; at++) {
        words_of words{program.text, at + 1};
        if (words.next() != "include")
            continue;
        size_t from = program.text.find_first_of("<\"", at);
        size_t to = from == std::string::npos ? from : program.text.find_first_of(">\"", from + 1);
        if (to == std::string::npos)
            continue;
        std::string name = program.text.substr(from + 1, to - from - 1);
        bool given = name == "cuda_fp16.h" || name == "cuda_bf16.h";
        for (const auto &header : program.headers)
            given = given || header.first == name;
        if (!given)
            return name;
    }
    return "";
}

std::set<std::string> kernels_of(const std::string &text) {
    std::set<std::string> names;
    for (size_t at = 0; (at = text.find("__global__", at)) != std::string::npos; at++) {
        words_of words{text, at};
        words.next();
        if (words.behind_bounds() != "void")
            continue;
        std::string name = words.behind_bounds();
        if (words.next() == "(")
            names.insert(name);
    }
    return names;
}

bool meets(const std::string &text) {
    for (const char *word : {"__syncthreads", "__syncwarp", "__shfl_", "__ballot_sync",
                             "__any_sync", "__all_sync", "__match_", "__reduce_", "__activemask"})
        if (text.find(word) != std::string::npos)
            return true;
    return false;
}

/* The text of the file that is compiled: the program, and a table of its kernels behind it. */
std::string whole_text(const _nvrtcProgram &program) {
    std::string text = program.text + "\nextern \"C\" {\nextern const td_played_entry "
                                      "td_played_entries[];\nconst td_played_entry "
                                      "td_played_entries[] = {\n";
    for (const std::string &name : kernels_of(program.text))
        text += "    td_played::entry<" + name + ">(\"" + name + "\"),\n";
    return text +
           "    {nullptr, 0, nullptr, nullptr}};\nextern const bool td_played_together;\n"
           "const bool td_played_together = " +
           (meets(program.text) ? "true" : "false") + ";\n}\n";
}

nvrtcResult compile(_nvrtcProgram *program, const std::vector<std::string> &options) {
    const char *play = getenv("TIDE_PLAYED_NVRTC");
    {
        std::unique_lock<std::mutex> hold(S.lock);
        S.counts.compilations++;
    }
    if (play && strcmp(play, "fail") == 0) {
        program->log = "error: TIDE_PLAYED_NVRTC asks for this";
        return NVRTC_ERROR_COMPILATION;
    }
    std::string missing = stranger(*program);
    if (!missing.empty()) {
        program->log = "error: cannot open source file \"" + missing + "\"";
        return NVRTC_ERROR_COMPILATION;
    }
    folder place;
    std::vector<std::string> words = {TIDE_PLAYED_CXX,
                                      "-std=c++17",
                                      "-O1",
                                      "-g0",
                                      "-fPIC",
                                      "-shared",
                                      "-fwrapv",
                                      "-ffp-contract=off",
                                      "-fno-math-errno",
                                      "-w",
                                      "-DTIDE_PLAYED_COMPILED=1"};
    words.insert(words.end(), options.begin(), options.end());
    for (const auto &header : program->headers)
        place.write(header.first, header.second);
    std::string object = place.add("program.so"), log = place.add("log");
    for (const std::string &word :
         {"-I" + place.path, std::string("-I" TIDE_PLAYED_INCLUDE), std::string("-include"),
          std::string("cuda_runtime.h"), place.write("program.cpp", whole_text(*program)),
          std::string("-o"), object})
        words.push_back(word);
    int code = run(words, log);
    program->log = read_file(log);
    if (code)
        return NVRTC_ERROR_COMPILATION;
    program->object = read_file(object);
    return NVRTC_SUCCESS;
}

} // namespace

bool td_played_has_compiler(void) {
    return run({TIDE_PLAYED_CXX, "--version"}, "/dev/null") == 0;
}

const char *nvrtcGetErrorString(nvrtcResult result) {
    switch (result) {
    case NVRTC_SUCCESS:
        return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_PROGRAM_CREATION_FAILURE:
        return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case NVRTC_ERROR_INVALID_INPUT:
        return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM:
        return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION:
        return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_INTERNAL_ERROR:
        return "NVRTC_ERROR_INTERNAL_ERROR";
    }
    return "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int *major, int *minor) {
    *major = CUDART_VERSION / 1000;
    *minor = CUDART_VERSION % 1000 / 10;
    return NVRTC_SUCCESS;
}

/* What the library keeps is made with its first program and goes when the process ends: no program
 * may be compiled then. */
static std::atomic<bool> gone;
static void keep_until_the_end() {
    static struct kept {
        ~kept() { gone = true; }
    } kept;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name,
                               int nheaders, const char *const *headers, const char *const *names) {
    (void)name;
    if (!program || !text || nheaders < 0)
        return NVRTC_ERROR_INVALID_INPUT;
    keep_until_the_end();
    *program = new _nvrtcProgram{text, "", "", {}};
    for (int k = 0; k < nheaders; k++)
        (*program)->headers.emplace_back(names[k], headers[k]);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
    if (!program || !*program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    delete *program;
    *program = nullptr;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int noptions, const char *const *options) {
    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    std::vector<std::string> words;
    for (int k = 0; k < noptions; k++)
        if (!translate(options[k], &words)) {
            program->log = std::string("error: unrecognized option ") + options[k];
            return NVRTC_ERROR_INVALID_OPTION;
        }
    nvrtcResult result = compile(program, words);
    if (gone)
        die("a program is compiled while the process ends");
    return result;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes) {
    *bytes = program->log.size() + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
    memcpy(log, program->log.c_str(), program->log.size() + 1);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes) {
    *bytes = program->object.size();
    return program->object.empty() ? NVRTC_ERROR_INVALID_PROGRAM : NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin) {
    memcpy(cubin, program->object.data(), program->object.size());
    return program->object.empty() ? NVRTC_ERROR_INVALID_PROGRAM : NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes) {
    return nvrtcGetCUBINSize(program, bytes);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx) {
    return nvrtcGetCUBIN(program, ptx);
}

/* ---- loading ---- */

namespace {

struct library;

struct kernel {
    library *of;
    const td_played_entry *entry;
};

struct library {
    void *object;
    bool together;
    std::vector<std::unique_ptr<kernel>> kernels;
};

std::set<library *> libraries;
std::set<const void *> kernels;

td_played_place *here() {
    return &td_played_here;
}

void trap(const char *why) {
    td_played_trap(why);
}

/* A launch's copies of its arguments; holds the library, which may be unloaded before it runs. */
struct arguments {
    const td_played_entry *entry;
    std::vector<std::vector<unsigned char>> values;
    std::vector<void *> pointers;
};

void run_arguments(void *p) {
    auto *a = static_cast<arguments *>(p);
    a->entry->run(a->pointers.data());
}

void destroy_arguments(void *p) {
    delete static_cast<arguments *>(p);
}

size_t elf_size(const void *code) {
    Elf64_Ehdr head;
    memcpy(&head, code, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return 0;
    return head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
}

void *open_object(const void *code, size_t bytes) {
    folder place;
    std::string file = place.write("program.so", std::string((const char *)code, bytes));
    return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

} // namespace

cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *code, cudaJitOption *, void **,
                                unsigned int, cudaLibraryOption *, void **, unsigned int) {
    ENTER_WHOLE
    size_t bytes = code ? elf_size(code) : 0;
    void *object = bytes ? open_object(code, bytes) : nullptr;
    auto *table = object ? (td_played_calls *)dlsym(object, "td_played_table") : nullptr;
    auto *entries = object ? (const td_played_entry *)dlsym(object, "td_played_entries") : nullptr;
    if (!table || !entries) {
        if (object)
            dlclose(object);
        return answer(cudaErrorInvalidKernelImage);
    }
    *table = {
        here, td_played_shared, td_played_meet_block, td_played_meet_warp, td_played_active_mask,
        trap};
    auto *made = new library{object, *(const bool *)dlsym(object, "td_played_together"), {}};
    for (; entries->name; entries++) {
        made->kernels.push_back(std::make_unique<kernel>(kernel{made, entries}));
        kernels.insert(made->kernels.back().get());
    }
    libraries.insert(made);
    *out = reinterpret_cast<cudaLibrary_t>(made);
    return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t handle) {
    ENTER_WHOLE
    library *l = reinterpret_cast<library *>(handle);
    if (!libraries.erase(l))
        return answer(cudaErrorInvalidResourceHandle);
    for (int d = 0; d < S.ndevices; d++)
        wait_for_device(hold, d);
    for (const auto &k : l->kernels)
        kernels.erase(k.get());
    dlclose(l->object);
    delete l;
    return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t handle, const char *name) {
    ENTER_WHOLE
    library *l = reinterpret_cast<library *>(handle);
    if (!libraries.count(l))
        return answer(cudaErrorInvalidResourceHandle);
    for (const auto &k : l->kernels)
        if (strcmp(k->entry->name, name) == 0) {
            *out = reinterpret_cast<cudaKernel_t>(k.get());
            return cudaSuccess;
        }
    return answer(cudaErrorSymbolNotFound);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
                             size_t shared, cudaStream_t stream) {
    const kernel *k = static_cast<const kernel *>(function);
    auto *a = new arguments{};
    {
        std::unique_lock<std::mutex> hold(S.lock);
        if (!kernels.count(function)) {
            delete a;
            return answer(cudaErrorInvalidDeviceFunction);
        }
        a->entry = k->entry;
        for (size_t j = 0; j < k->entry->nparameters; j++) {
            const auto *from = static_cast<const unsigned char *>(args[j]);
            a->values.emplace_back(from, from + k->entry->sizes[j]);
        }
        for (auto &value : a->values)
            a->pointers.push_back(value.data());
    }
    return td_played_launch_function(function, k->entry->name, run_arguments, a, destroy_arguments,
                                     grid, block, shared, stream, k->of->together);
}
