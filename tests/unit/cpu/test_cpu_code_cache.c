/* test_cpu_code_cache.c: machine code from one process to the next: found again, not found where it
 * is damaged, cut short, another's or out of reach; two processes at once; a kill in the middle;
 * no compiler; a fork and an exit while code is made. The program runs itself for each process. */
#include "engine/cpu/code/code.h"
#include "engine/cpu/code/llvm.h"
#include "engine/cpu/code/object.h"
#include "engine/cpu/cpu.h"
#include "engine/io/code_cache.h"
#include "engine/td.h"

#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAMS = 3, ELEMENTS = 500 };

static char folder[] = "/tmp/tide_code_XXXXXX";

static void must(td_status status) {
    if (status) {
        fprintf(stderr, "%s\n", td_error_message());
        exit(1);
    }
}

/* ---- what a process does ---- */

/* Programs that nothing else has: their constants are no part of code, so their steps differ. */
static const td_program *program_of(int k) {
    static const char *const formulas[PROGRAMS] = {"x * y + x * 3 - y * x * x",
                                                   "maximum(x, y) * minimum(x, 2) + abs(x) - y",
                                                   "tanh(x * y) * x + exp(0 - y * y)"};
    static const char *const names[] = {"x", "y"};
    const td_program *p;
    must(td_program_compile(formulas[k], 2, names, &p));
    return p;
}

/* The sum of what a program makes. */
static double run_program(int k) {
    const td_program *p = program_of(k);
    const int64_t n = ELEMENTS;
    td_tensor *x, *out;
    double sum = 0;
    must(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 1, &n, &x));
    must(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 1, &n, &out));
    for (int64_t i = 0; i < n; i++)
        ((double *)x->data)[i] = (double)i / 256 - 1;
    const td_operand operands[] = {{.tensor = x}, {.f = 0.75}};
    must(td_cpu_pointwise(
        &(td_pointwise_plan){.program = p, .operands = operands, .compute = TD_F64, .out = out}));
    for (int64_t i = 0; i < n; i++)
        sum += ((double *)out->data)[i] * (double)(i % 7);
    td_release(x);
    td_release(out);
    td_program_release(p);
    return sum;
}

/* Prints: compiled, loaded, refused, sums. */
static int be_process(const char *what) {
    must(td_init());
    td_code_set_when(strcmp(what, "never") ? TD_CODE_NOW : TD_CODE_NEVER);
    if (!strcmp(what, "exit")) { /* while code is made */
        td_code_set_when(TD_CODE_LATER);
        for (int k = 0; k < PROGRAMS; k++)
            for (int run = 0; run < 200; run++)
                run_program(k);
        return 0;
    }
    double sums[PROGRAMS];
    for (int k = 0; k < PROGRAMS; k++)
        sums[k] = run_program(k);
    td_code_finish();
    printf("%lld %lld %lld %a %a %a\n", (long long)atomic_load(&td_code_counts.compiled),
           (long long)atomic_load(&td_code_counts.loaded),
           (long long)atomic_load(&td_code_counts.refused), sums[0], sums[1], sums[2]);
    return 0;
}

/* ---- processes ---- */

typedef struct process {
    pid_t id;
    int out;
} process;

static process start(const char *what, const char *llvm) {
    int ends[2];
    process p = {.id = -1};
    if (pipe(ends))
        return p;
    p.id = fork();
    if (p.id == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        setenv("XDG_CACHE_HOME", folder, 1);
        if (llvm)
            setenv("TIDE_LLVM", llvm, 1);
        alarm(300);
        execl("/proc/self/exe", "test_cpu_code_cache", what, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    p.out = ends[0];
    return p;
}

typedef struct outcome {
    int status; /* of wait */
    long long compiled, loaded, refused;
    double sums[PROGRAMS];
} outcome;

static outcome finish(process p) {
    outcome o = {.status = -1};
    char text[400];
    size_t n = 0;
    ssize_t got;
    while (n < sizeof text - 1 && (got = read(p.out, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    close(p.out);
    waitpid(p.id, &o.status, 0);
    if (sscanf(text, "%lld %lld %lld %la %la %la", &o.compiled, &o.loaded, &o.refused, &o.sums[0],
               &o.sums[1], &o.sums[2]) != 6)
        o.compiled = -1;
    return o;
}

static outcome run(const char *what, const char *llvm) {
    return finish(start(what, llvm));
}

static double right[PROGRAMS]; /* by programs */

static void check_sums(const outcome *o) {
    CHECK_INT(o->status, 0);
    for (int k = 0; k < PROGRAMS; k++)
        CHECK(o->sums[k] == right[k]);
}

#define CHECK_OUTCOME(o, c, l, r)                                                                  \
    do {                                                                                           \
        outcome o_ = (o);                                                                          \
        CHECK_INT(o_.compiled, c);                                                                 \
        CHECK_INT(o_.loaded, l);                                                                   \
        CHECK_INT(o_.refused, r);                                                                  \
        check_sums(&o_);                                                                           \
    } while (0)

/* ---- files ---- */

static void path_of(const char *name, char *path, size_t size) {
    snprintf(path, size, "%s/tide/code%s%s", folder, *name ? "/" : "", name);
}

/* Does something with each file of code. */
static int each_file(void (*fn)(const char *path)) {
    char path[600];
    int n = 0;
    path_of("", path, sizeof path);
    DIR *entries = opendir(path);
    struct dirent *e;
    while (entries && (e = readdir(entries)))
        if (strstr(e->d_name, ".code")) {
            path_of(e->d_name, path, sizeof path);
            if (fn)
                fn(path);
            n++;
        }
    if (entries)
        closedir(entries);
    return n;
}

static void remove_file(const char *path) {
    unlink(path);
}

static void change_middle(const char *path) {
    struct stat facts;
    unsigned char byte;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &facts) || pread(fd, &byte, 1, facts.st_size / 2) != 1)
        exit(1);
    byte ^= 0x40;
    if (pwrite(fd, &byte, 1, facts.st_size / 2) != 1)
        exit(1);
    close(fd);
}

static void cut_short(const char *path) {
    struct stat facts;
    if (stat(path, &facts) || truncate(path, facts.st_size * 2 / 3))
        exit(1);
}

static void make_empty(const char *path) {
    if (truncate(path, 0))
        exit(1);
}

/* ---- with a compiler ---- */

TEST(code_is_found_again_by_the_next_process) {
    CHECK_OUTCOME(run("now", NULL), PROGRAMS, 0, 0);
    CHECK_INT(each_file(NULL), PROGRAMS);
    CHECK_OUTCOME(run("now", NULL), 0, PROGRAMS, 0);
}

TEST(what_is_kept_runs_without_a_compiler) {
    CHECK_OUTCOME(run("now", "/nonexistent/libLLVM.so"), 0, PROGRAMS, 0);
}

TEST(damaged_files_are_noticed_and_made_anew) {
    static void (*const damages[])(const char *) = {change_middle, cut_short, make_empty};
    for (size_t k = 0; k < sizeof damages / sizeof *damages; k++) {
        CHECK_INT(each_file(damages[k]), PROGRAMS);
        CHECK_OUTCOME(run("now", NULL), PROGRAMS, 0, 0);
        CHECK_OUTCOME(run("now", NULL), 0, PROGRAMS, 0);
    }
}

TEST(damaged_files_are_removed_where_nothing_can_be_made) {
    CHECK_INT(each_file(change_middle), PROGRAMS);
    CHECK_OUTCOME(run("now", "/nonexistent/libLLVM.so"), 0, 0, PROGRAMS);
    CHECK_INT(each_file(NULL), 0);
}

TEST(two_processes_at_once_keep_whole_files) {
    each_file(remove_file);
    process one = start("now", NULL), two = start("now", NULL);
    outcome a = finish(one), b = finish(two);
    check_sums(&a);
    check_sums(&b);
    CHECK_INT(a.compiled + a.loaded, PROGRAMS);
    CHECK_INT(b.compiled + b.loaded, PROGRAMS);
    CHECK_OUTCOME(run("now", NULL), 0, PROGRAMS, 0);
}

TEST(a_kill_in_the_middle_leaves_nothing_wrong) {
    for (int k = 0; k < 8; k++) {
        each_file(remove_file);
        process p = start("now", NULL);
        usleep((useconds_t)(k * 12000));
        kill(p.id, SIGKILL);
        finish(p);
        outcome after = run("now", NULL);
        check_sums(&after);
        CHECK_INT(after.compiled + after.loaded, PROGRAMS);
        CHECK_OUTCOME(run("now", NULL), 0, PROGRAMS, 0);
    }
}

TEST(an_exit_while_code_is_made_is_clean) {
    for (int k = 0; k < 5; k++) {
        each_file(remove_file);
        outcome o = run("exit", NULL);
        CHECK_INT(o.status, 0);
    }
}

TEST(a_child_of_a_fork_gets_code_or_works_without) {
    each_file(remove_file);
    td_code_set_when(TD_CODE_LATER);
    for (int run_ = 0; run_ < 200; run_++)
        run_program(2); /* it waits to be compiled, or is */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        td_code_set_when(TD_CODE_NOW);
        bool same = true;
        for (int k = 0; k < PROGRAMS; k++)
            same &= run_program(k) == right[k];
        td_code_stop();
        _exit(same ? 0 : 1); /* what the parent's thread held when it forked is nobody's here */
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    td_code_stop();
    td_code_set_when(TD_CODE_NEVER);
}

/* ---- without ---- */

TEST(without_a_compiler_programs_run_as_programs) {
    each_file(remove_file);
    CHECK_OUTCOME(run("now", "/nonexistent/libLLVM.so"), 0, 0, PROGRAMS);
    CHECK_OUTCOME(run("now", "/proc/self/exe"), 0, 0, PROGRAMS); /* a library of other functions */
}

TEST(a_folder_that_others_may_read_is_not_used) {
    char path[600];
    td_code_key key = {{1, 2}};
    void *bytes;
    size_t n;
    path_of("", path, sizeof path);
    CHECK(td_code_cache_write("cpu", key, "abcdefgh", 8));
    CHECK(td_code_cache_read("cpu", key, &bytes, &n));
    CHECK_INT(n, 8);
    CHECK(memcmp(bytes, "abcdefgh", 8) == 0);
    free(bytes);
    CHECK_INT(chmod(path, 0755), 0);
    CHECK(!td_code_cache_read("cpu", key, &bytes, &n));
    CHECK(!td_code_cache_write("cpu", key, "abcdefgh", 8));
    CHECK_INT(chmod(path, 0700), 0);
    CHECK(td_code_cache_read("cpu", key, &bytes, &n));
    free(bytes);
}

TEST(a_folder_that_cannot_be_written_keeps_nothing) {
    char path[600];
    td_code_key key = {{3, 4}};
    path_of("", path, sizeof path);
    CHECK_INT(chmod(path, 0500), 0);
    if (geteuid() != 0) /* whom nothing stops */
        CHECK(!td_code_cache_write("cpu", key, "a", 1));
    CHECK_INT(chmod(path, 0700), 0);
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    CHECK(!td_code_cache_write("cpu", key, "a", 1));
    setenv("XDG_CACHE_HOME", folder, 1);
}

TEST(the_folder_is_looked_at_and_cleared) {
    td_code_cache_facts facts;
    char path[600];
    path_of("", path, sizeof path);
    td_code_cache_clear();
    for (uint64_t k = 0; k < 5; k++)
        CHECK(td_code_cache_write("cpu", (td_code_key){{k, k}}, "abc", 3));
    td_code_cache_look(&facts);
    CHECK_STR(facts.folder, path);
    CHECK_INT(facts.files, 5);
    CHECK(facts.bytes > 15 && facts.bytes < facts.most);
    CHECK_INT(td_code_cache_clear(), 5);
    td_code_cache_look(&facts);
    CHECK_INT(facts.files, 0);
}

TEST(the_files_of_the_folder_are_bounded) {
    enum { LARGE = 3 << 20, FILES = 40 };
    char *bytes = calloc(1, LARGE);
    td_code_cache_facts facts;
    for (uint64_t k = 0; bytes && k < FILES; k++)
        CHECK(td_code_cache_write("cpu", (td_code_key){{k, 9}}, bytes, LARGE));
    td_code_cache_look(&facts);
    CHECK(facts.bytes <= facts.most + 16 * (int64_t)LARGE); /* looked at every 16th time */
    CHECK(facts.files < FILES && facts.files > 4);
    td_code_cache_clear();
    free(bytes);
}

TEST(digests_differ_with_each_byte) {
    unsigned char bytes[40] = {0};
    td_code_key zero = {{0, 0}}, whole = td_code_key_add(zero, bytes, sizeof bytes);
    for (size_t k = 0; k < sizeof bytes; k++) {
        td_code_key shorter = td_code_key_add(zero, bytes, k);
        bytes[k] = 1;
        td_code_key other = td_code_key_add(zero, bytes, sizeof bytes);
        bytes[k] = 0;
        CHECK(other.word[0] != whole.word[0] && other.word[1] != whole.word[1]);
        CHECK(shorter.word[0] != whole.word[0] && shorter.word[1] != whole.word[1]);
    }
}

/* An object file that was cut anywhere is refused or joined, never read beyond its end. */
TEST(object_files_that_are_cut_are_survived) {
    static const char text[] =
        "define i32 @kernel(i32 %x) nounwind {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n";
    unsigned char *object;
    size_t n;
    CHECK_STR(td_llvm_compile(text, sizeof text - 1, "baseline", &object, &n), NULL);
    for (size_t k = 0; k <= n; k++) {
        td_object_image image;
        unsigned char *cut = malloc(k ? k : 1);
        memcpy(cut, object, k);
        const char *why = td_object_join(cut, k, "kernel", &image);
        if (k == n)
            CHECK_STR(why, NULL);
        free(image.bytes);
        free(cut);
    }
    free(object);
    CHECK(td_llvm_compile("nonsense", 8, "baseline", &object, &n) != NULL);
    static const char calls[] =
        "declare void @other()\ndefine void @kernel() nounwind {\n  call void "
        "@other()\n  ret void\n}\n";
    td_object_image image;
    CHECK_STR(td_llvm_compile(calls, sizeof calls - 1, "baseline", &object, &n), NULL);
    CHECK(td_object_join(object, n, "kernel", &image) != NULL);
    free(object);
}

static void remove_folder(void) {
    char path[600];
    each_file(remove_file);
    path_of("", path, sizeof path);
    rmdir(path);
    snprintf(path, sizeof path, "%s/tide", folder);
    rmdir(path);
    rmdir(folder);
}

int main(int argc, char **argv) {
    if (argc > 1)
        return be_process(argv[1]);
    if (!mkdtemp(folder))
        return 1;
    setenv("XDG_CACHE_HOME", folder, 1);
    must(td_init());
    td_code_set_when(TD_CODE_NEVER);
    for (int k = 0; k < PROGRAMS; k++)
        right[k] = run_program(k);
    RUN(without_a_compiler_programs_run_as_programs);
    if (td_llvm_load()) {
        printf("without LLVM the rest is left out: %s\n", td_llvm_load());
    } else {
        RUN(object_files_that_are_cut_are_survived);
        RUN(code_is_found_again_by_the_next_process);
        RUN(what_is_kept_runs_without_a_compiler);
        RUN(damaged_files_are_noticed_and_made_anew);
        RUN(damaged_files_are_removed_where_nothing_can_be_made);
        RUN(two_processes_at_once_keep_whole_files);
        RUN(a_kill_in_the_middle_leaves_nothing_wrong);
        RUN(an_exit_while_code_is_made_is_clean);
        RUN(a_child_of_a_fork_gets_code_or_works_without);
    }
    td_code_cache_clear();
    RUN(the_folder_is_looked_at_and_cleared);
    RUN(a_folder_that_others_may_read_is_not_used);
    RUN(a_folder_that_cannot_be_written_keeps_nothing);
    RUN(the_files_of_the_folder_are_bounded);
    RUN(digests_differ_with_each_byte);
    remove_folder();
    return check_finish();
}
