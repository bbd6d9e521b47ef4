/* code_symbols.c: an object file without contents but names: the code is where it is, and its
 * section says so by its address. */
#include "engine/cpu/code/code_symbols.h"

#include "engine/core/memory.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

enum { TEXT = 1, SYMBOLS, STRINGS, ABBREVIATIONS, INFO, LINES, SECTIONS };
static const char section_names[] =
    "\0.text\0.symtab\0.strtab\0.debug_abbrev\0.debug_info\0.debug_line";
static const uint8_t name_places[SECTIONS] = {0, 1, 7, 15, 23, 37, 49};

/* What is written, and how much of it there is; with no bytes it is only counted. */
typedef struct writing {
    unsigned char *bytes;
    size_t n;
} writing;

static void put(writing *w, const void *from, size_t n) {
    if (w->bytes)
        memcpy(w->bytes + w->n, from, n);
    w->n += n;
}

static void put_byte(writing *w, unsigned char byte) {
    put(w, &byte, 1);
}

static void put_text(writing *w, const char *text) {
    put(w, text, strlen(text) + 1);
}

static void put_u16(writing *w, uint16_t value) {
    put(w, &value, sizeof value);
}

static void put_u32(writing *w, uint32_t value) {
    put(w, &value, sizeof value);
}

static void put_u64(writing *w, uint64_t value) {
    put(w, &value, sizeof value);
}

/* DWARF's numbers of seven bits a byte. */
static void put_unsigned(writing *w, uint64_t value) {
    for (; value > 127; value >>= 7)
        put_byte(w, (unsigned char)(value | 128));
    put_byte(w, (unsigned char)value);
}

static void put_signed(writing *w, int64_t value) {
    while (value < -64 || value > 63) {
        put_byte(w, (unsigned char)((value & 127) | 128));
        value >>= 7;
    }
    put_byte(w, (unsigned char)(value & 127));
}

/* A length that stands before what it counts. */
static size_t begin_part(writing *w) {
    put_u32(w, 0);
    return w->n;
}

static void end_part(writing *w, size_t begin) {
    uint32_t n = (uint32_t)(w->n - begin);
    if (w->bytes)
        memcpy(w->bytes + begin - sizeof n, &n, sizeof n);
}

/* ---- DWARF, version 2 ---- */

enum {
    UNIT = 0x11,
    SUBPROGRAM = 0x2e,
    NAME = 0x03,
    LINE_TABLE = 0x10,
    LOW = 0x11,
    HIGH = 0x12,
    FILE_NUMBER = 0x3a,
    LINE = 0x3b,
    AS_ADDRESS = 0x01,
    AS_U32 = 0x06,
    AS_TEXT = 0x08
};

static void put_abbreviations(writing *w) {
    static const unsigned char unit[] = {
        1, UNIT, 1, NAME, AS_TEXT, LOW, AS_ADDRESS, HIGH, AS_ADDRESS, LINE_TABLE, AS_U32, 0, 0};
    static const unsigned char function[] = {
        2,          SUBPROGRAM,  0,      NAME, AS_TEXT, LOW, AS_ADDRESS, HIGH,
        AS_ADDRESS, FILE_NUMBER, AS_U32, LINE, AS_U32,  0,   0,          0};
    put(w, unit, sizeof unit);
    put(w, function, sizeof function);
}

static void put_info(writing *w, const char *name, uint64_t code, size_t n, const char *file,
                     int line) {
    size_t begin = begin_part(w);
    put_u16(w, 2);
    put_u32(w, 0); /* of the abbreviations */
    put_byte(w, sizeof(uint64_t));
    put_unsigned(w, 1);
    put_text(w, file);
    put_u64(w, code);
    put_u64(w, code + n);
    put_u32(w, 0); /* of the lines */
    put_unsigned(w, 2);
    put_text(w, name);
    put_u64(w, code);
    put_u64(w, code + n);
    put_u32(w, 1);
    put_u32(w, (uint32_t)line);
    put_byte(w, 0);
    end_part(w, begin);
}

/* One row: all of the code is of one line. */
static void put_lines(writing *w, uint64_t code, size_t n, const char *file, int line) {
    enum { LEAST = 1, IS_STATEMENT = 1, LINE_BASE = 1, LINE_RANGE = 1, FIRST_SPECIAL = 10 };
    enum { COPY = 1, ADVANCE = 2, ADVANCE_LINE = 3, END = 1, SET_ADDRESS = 2 };
    static const unsigned char operands[FIRST_SPECIAL - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1};
    size_t begin = begin_part(w);
    put_u16(w, 2);
    size_t header = begin_part(w);
    put_byte(w, LEAST);
    put_byte(w, IS_STATEMENT);
    put_byte(w, LINE_BASE);
    put_byte(w, LINE_RANGE);
    put_byte(w, FIRST_SPECIAL);
    put(w, operands, sizeof operands);
    put_byte(w, 0); /* no folders */
    put_text(w, file);
    put(w, "\0\0\0", 4); /* its folder, time and length; the end of the files */
    end_part(w, header);
    put_byte(w, 0);
    put_unsigned(w, 1 + sizeof code);
    put_byte(w, SET_ADDRESS);
    put_u64(w, code);
    put_byte(w, ADVANCE_LINE);
    put_signed(w, line - 1);
    put_byte(w, COPY);
    put_byte(w, ADVANCE);
    put_unsigned(w, n);
    put_byte(w, 0);
    put_unsigned(w, 1);
    put_byte(w, END);
    end_part(w, begin);
}

/* ---- ELF ---- */

static void align(writing *w) {
    while (w->n % 8)
        put_byte(w, 0);
}

static Elf64_Shdr section(int k, uint32_t type, size_t at, size_t n) {
    return (Elf64_Shdr){.sh_name = name_places[k],
                        .sh_type = type,
                        .sh_offset = at,
                        .sh_size = n,
                        .sh_addralign = 1};
}

static void put_head(writing *w, int nsections) {
    Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                                   EV_CURRENT, ELFOSABI_SYSV},
                       .e_type = ET_REL,
                       .e_version = EV_CURRENT,
                       .e_shoff = sizeof head,
                       .e_ehsize = sizeof head,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = (Elf64_Half)nsections,
                       .e_shstrndx = STRINGS};
#if defined(__aarch64__)
    head.e_machine = EM_AARCH64;
#else
    head.e_machine = EM_X86_64;
#endif
    put(w, &head, sizeof head);
}

static void put_file(writing *w, const char *name, const void *code, size_t n, const char *file,
                     int line) {
    const uint64_t address = (uint64_t)(uintptr_t)code;
    Elf64_Shdr s[SECTIONS] = {{0}};
    const int nsections = file ? SECTIONS : ABBREVIATIONS;
    put_head(w, nsections);
    const size_t table = w->n;
    put(w, s, sizeof *s * (size_t)nsections);
    size_t begin = w->n;
    const Elf64_Sym symbols[2] = {{0},
                                  {.st_name = sizeof section_names,
                                   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                   .st_shndx = TEXT,
                                   .st_size = n}};
    put(w, symbols, sizeof symbols);
    s[TEXT] = section(TEXT, SHT_NOBITS, begin, n);
    s[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    s[TEXT].sh_addr = address;
    s[TEXT].sh_addralign = 16;
    s[SYMBOLS] = section(SYMBOLS, SHT_SYMTAB, begin, w->n - begin);
    s[SYMBOLS].sh_link = STRINGS;
    s[SYMBOLS].sh_info = 1;
    s[SYMBOLS].sh_entsize = sizeof *symbols;
    s[SYMBOLS].sh_addralign = 8;
    begin = w->n;
    put(w, section_names, sizeof section_names);
    put_text(w, name);
    s[STRINGS] = section(STRINGS, SHT_STRTAB, begin, w->n - begin);
    if (file) {
        begin = w->n;
        put_abbreviations(w);
        s[ABBREVIATIONS] = section(ABBREVIATIONS, SHT_PROGBITS, begin, w->n - begin);
        begin = w->n;
        put_info(w, name, address, n, file, line);
        s[INFO] = section(INFO, SHT_PROGBITS, begin, w->n - begin);
        begin = w->n;
        put_lines(w, address, n, file, line);
        s[LINES] = section(LINES, SHT_PROGBITS, begin, w->n - begin);
    }
    align(w);
    if (w->bytes)
        memcpy(w->bytes + table, s, sizeof *s * (size_t)nsections);
}

unsigned char *td_code_symbols(const char *name, const void *code, size_t n, const char *file,
                               int line, size_t *bytes) {
    writing w = {.bytes = NULL};
    put_file(&w, name, code, n, file, line);
    *bytes = w.n;
    w = (writing){.bytes = td_malloc(*bytes)};
    if (w.bytes)
        put_file(&w, name, code, n, file, line);
    return w.bytes;
}
