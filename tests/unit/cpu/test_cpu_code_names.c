/* test_cpu_code_names.c: machine code as gdb and perf are told of it: names, the object file in
 * memory, lines of a map, a dump; links and files of others are left alone. Needs no LLVM: any
 * bytes are code here. */
#include "engine/cpu/code/code_names.h"
#include "engine/cpu/code/code_symbols.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/td.h"

#include "tests/check.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned char code[64] = {0xc3};

static const td_program *program_of(const char *label, int steps) {
    const td_program *p = NULL;
    td_builder *b = td_builder_new(2);
    int x = td_builder_operand(b, 0), y = td_builder_operand(b, 1);
    for (int k = 0; k < steps; k++)
        x = td_builder_step(b, k % 2 ? TD_PW_add : TD_PW_mul, x, y, 0);
    td_builder_output(b, x, TD_OUTPUT_ELEMENTS);
    if (label)
        td_builder_label(b, label);
    if (td_builder_finish(b, &p))
        exit(1);
    return p;
}

static const char *name_of(const char *label, int steps, td_dtype narrow) {
    static char name[TD_CODE_NAME];
    const td_program *p = program_of(label, steps);
    td_code_name(&(td_code_form){.program = p, .compute = TD_F32, .narrow = narrow}, name);
    td_program_release(p);
    return name;
}

TEST(names_say_operators_dtype_and_place) {
    CHECK_STR(name_of("cell.lua:12", 3, TD_DTYPE_NONE), "fused_mul_add_mul.float32[cell.lua:12]");
    CHECK_STR(name_of(NULL, 1, TD_BF16), "fused_mul.bfloat16");
    CHECK_STR(name_of("a\nffff 1 b:3", 1, TD_F16), "fused_mul.float16[a?ffff 1 b:3]");
    const char *many = name_of("cell.lua:12", 200, TD_DTYPE_NONE);
    CHECK(strlen(many) < TD_CODE_NAME);
    CHECK(strstr(many, "_more.float32[cell.lua:12]") != NULL);
    char path[400];
    memset(path, 'd', sizeof path);
    memcpy(path + sizeof path - 6, "/x:77", 6);
    CHECK(strstr(name_of(path, 200, TD_DTYPE_NONE), "d/x:77]") != NULL);
}

TEST(programs_of_operators_bear_their_names) {
    const int64_t n = 1;
    td_tensor *x = NULL;
    CHECK_INT(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x), TD_OK);
    const td_program *p = td_pointwise_program(TD_OP(mish), &TD_T(x));
    CHECK(p != NULL && p->label != NULL);
    CHECK_STR(p && p->label ? p->label : "", "mish");
    td_release(x);
}

/* ---- the object file ---- */

static Elf64_Shdr find_section(const unsigned char *file, const char *name) {
    Elf64_Ehdr head;
    Elf64_Shdr s, names;
    memcpy(&head, file, sizeof head);
    memcpy(&names, file + head.e_shoff + sizeof s * head.e_shstrndx, sizeof names);
    for (int k = 1; k < head.e_shnum; k++) {
        memcpy(&s, file + head.e_shoff + sizeof s * (size_t)k, sizeof s);
        if (!strcmp((const char *)file + names.sh_offset + s.sh_name, name))
            return s;
    }
    return (Elf64_Shdr){.sh_type = SHT_NULL};
}

static void check_symbol(const unsigned char *file, size_t bytes, const char *name) {
    Elf64_Sym symbol;
    Elf64_Shdr text = find_section(file, ".text"), symbols = find_section(file, ".symtab"),
               strings = find_section(file, ".strtab");
    CHECK_INT(text.sh_type, SHT_NOBITS);
    CHECK(text.sh_addr == (uint64_t)(uintptr_t)code && text.sh_size == sizeof code);
    CHECK_INT((int)(symbols.sh_size / sizeof symbol), 2);
    CHECK(strings.sh_offset + strings.sh_size <= bytes);
    memcpy(&symbol, file + symbols.sh_offset + sizeof symbol, sizeof symbol);
    CHECK_STR((const char *)file + strings.sh_offset + symbol.st_name, name);
    CHECK(symbol.st_size == sizeof code && symbol.st_value == 0);
}

TEST(the_object_file_has_the_symbol_and_its_line) {
    size_t bytes;
    unsigned char *file = td_code_symbols("fused_mul", code, sizeof code, NULL, 0, &bytes);
    check_symbol(file, bytes, "fused_mul");
    CHECK_INT((int)find_section(file, ".debug_line").sh_type, SHT_NULL);
    td_free(file);
    file = td_code_symbols("fused_add", code, sizeof code, "dir/cell.lua", 300, &bytes);
    check_symbol(file, bytes, "fused_add");
    Elf64_Shdr lines = find_section(file, ".debug_line"), info = find_section(file, ".debug_info");
    uint32_t length;
    memcpy(&length, file + lines.sh_offset, sizeof length);
    CHECK(length + sizeof length == lines.sh_size);
    memcpy(&length, file + info.sh_offset, sizeof length);
    CHECK(length + sizeof length == info.sh_size);
    const unsigned char advance[] = {3, 0xab, 0x02, 1}; /* by 299 lines, then a row */
    CHECK(memmem(file + lines.sh_offset, lines.sh_size, advance, sizeof advance) != NULL);
    CHECK(memmem(file + lines.sh_offset, lines.sh_size, "dir/cell.lua", 13) != NULL);
    CHECK(lines.sh_offset + lines.sh_size <= bytes);
    td_free(file);
}

/* ---- what processes are told ---- */

extern struct {
    uint32_t version, action;
    struct listed {
        struct listed *next, *previous;
        const unsigned char *file;
        uint64_t bytes;
    } * changed, *first;
} __jit_debug_descriptor;

static int announced(void) {
    int n = 0;
    for (const struct listed *e = __jit_debug_descriptor.first; e; e = e->next, n++)
        if (e->next && e->next->previous != e)
            return -1;
    return n;
}

static void announce(const char *label) {
    const td_program *p = program_of(label, 2);
    td_code_announce(&(td_code_form){.program = p, .compute = TD_F64, .narrow = TD_DTYPE_NONE},
                     code, sizeof code);
    td_program_release(p);
}

TEST(a_debugger_finds_all_in_a_list) {
    CHECK_INT((int)__jit_debug_descriptor.version, 1);
    int before = announced();
    announce("cell.lua:7");
    announce(NULL);
    CHECK_INT(announced(), before + 2);
    CHECK(__jit_debug_descriptor.changed == __jit_debug_descriptor.first);
    check_symbol(__jit_debug_descriptor.first->file, __jit_debug_descriptor.first->bytes,
                 "fused_mul_add.float64");
}

/* A child that is told how perf is to be told, and announces; the files that it wrote, read back
 * by `look`. */
typedef void (*look_fn)(pid_t child, const char *folder);

static void path_of_map(pid_t id, char path[64]) {
    snprintf(path, 64, "/tmp/perf-%d.map", (int)id);
}

static void in_child(const char *way, void (*before)(const char *folder), look_fn look) {
    char folder[] = "/tmp/tide_names_XXXXXX", path[600];
    int status = -1;
    CHECK(mkdtemp(folder) != NULL);
    pid_t id = fork();
    if (id == 0) {
        setenv("TIDE_CODE_PERF", way, 1);
        setenv("JITDUMPDIR", folder, 1);
        if (before)
            before(folder);
        announce("cell.lua:7");
        announce("other.lua:8");
        _exit(0);
    }
    waitpid(id, &status, 0);
    CHECK_INT(status, 0);
    look(id, folder);
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, (int)id);
    unlink(path);
    path_of_map(id, path);
    unlink(path);
    snprintf(path, sizeof path, "%s/other", folder);
    unlink(path);
    rmdir(folder);
}

static size_t read_file(const char *path, char *bytes, size_t most) {
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(bytes, 1, most - 1, file) : 0;
    if (file)
        fclose(file);
    bytes[n] = 0;
    return n;
}

static void look_at_map(pid_t child, const char *folder) {
    char path[64], text[400], wanted[400];
    struct stat facts;
    (void)folder;
    path_of_map(child, path);
    read_file(path, text, sizeof text);
    snprintf(wanted, sizeof wanted,
             "%llx 40 fused_mul_add.float64[cell.lua:7]\n"
             "%llx 40 fused_mul_add.float64[other.lua:8]\n",
             (unsigned long long)(uintptr_t)code, (unsigned long long)(uintptr_t)code);
    CHECK_STR(text, wanted);
    CHECK(stat(path, &facts) == 0 && (facts.st_mode & 077) == 0);
}

TEST(the_map_has_a_line_for_each) {
    in_child("map", NULL, look_at_map);
    in_child("1", NULL, look_at_map);
}

static void put_link(const char *folder) {
    char path[64], other[100];
    snprintf(other, sizeof other, "%s/other", folder);
    path_of_map(getpid(), path);
    FILE *file = fopen(other, "w");
    if (!file || fclose(file) || symlink(other, path))
        _exit(3);
}

static void put_second_name(const char *folder) {
    char path[64], other[100];
    snprintf(other, sizeof other, "%s/other", folder);
    path_of_map(getpid(), path);
    FILE *file = fopen(other, "w");
    if (!file || fclose(file) || link(other, path))
        _exit(3);
}

static void look_at_other(pid_t child, const char *folder) {
    char path[100], text[400];
    (void)child;
    snprintf(path, sizeof path, "%s/other", folder);
    CHECK(access(path, F_OK) == 0);
    CHECK_INT((int)read_file(path, text, sizeof text), 0);
}

TEST(a_link_that_others_put_there_is_not_written) {
    in_child("map", put_link, look_at_other);
    in_child("map", put_second_name, look_at_other);
}

static void look_at_dump(pid_t child, const char *folder) {
    char path[600], bytes[1200];
    uint32_t words[2];
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, (int)child);
    size_t n = read_file(path, bytes, sizeof bytes), at = 40;
    int kinds[4] = {-1, -1, -1, -1}, records = 0;
    memcpy(words, bytes, sizeof words);
    CHECK(n > 40 && words[0] == 0x4a695444 && words[1] == 1);
    while (n >= at + sizeof words && records < 4) {
        memcpy(words, bytes + at, sizeof words);
        kinds[records++] = (int)words[0];
        at += words[1];
    }
    CHECK(at == n);
    CHECK_INT(records, 4);
    CHECK(kinds[0] == 2 && kinds[1] == 0 && kinds[2] == 2 && kinds[3] == 0); /* lines, code */
    CHECK(memmem(bytes, n, "fused_mul_add.float64[other.lua:8]", 35) != NULL);
    CHECK(memmem(bytes, n, code, sizeof code) != NULL);
    path_of_map(child, path);
    CHECK(access(path, F_OK) != 0);
}

TEST(the_dump_has_lines_and_code_in_turn) {
    in_child("dump", NULL, look_at_dump);
}

static void look_at_nothing(pid_t child, const char *folder) {
    char path[600];
    path_of_map(child, path);
    CHECK(access(path, F_OK) != 0);
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, (int)child);
    CHECK(access(path, F_OK) != 0);
}

TEST(unasked_nothing_is_written) {
    in_child("", NULL, look_at_nothing);
    in_child("never", NULL, look_at_nothing);
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    if (td_init())
        return 1;
    RUN(names_say_operators_dtype_and_place);
    RUN(programs_of_operators_bear_their_names);
    RUN(the_object_file_has_the_symbol_and_its_line);
    RUN(the_map_has_a_line_for_each);
    RUN(a_link_that_others_put_there_is_not_written);
    RUN(the_dump_has_lines_and_code_in_turn);
    RUN(unasked_nothing_is_written);
    RUN(a_debugger_finds_all_in_a_list);
    return check_finish();
}
