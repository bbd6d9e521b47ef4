/* object.c: joins the sections of an object file, which all refer to one another by distance. */
#include "engine/cpu/code/object.h"

#include "engine/core/memory.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SECTIONS = 64, MOST = 1 << 24, PAGE = 4096 };

typedef struct joining {
    const unsigned char *file;
    size_t n;
    Elf64_Ehdr head;
    Elf64_Shdr sections[SECTIONS];
    size_t places[SECTIONS]; /* of sections in the image */
    bool placed[SECTIONS];
    td_object_image *image;
} joining;

static bool has(const joining *j, uint64_t at, uint64_t bytes) {
    return at <= j->n && bytes <= j->n - at;
}

static const char *read_sections(joining *j) {
    if (!has(j, 0, sizeof j->head))
        return "not an object file";
    memcpy(&j->head, j->file, sizeof j->head);
    if (memcmp(j->head.e_ident, ELFMAG, SELFMAG) || j->head.e_ident[EI_CLASS] != ELFCLASS64 ||
        j->head.e_shentsize != sizeof(Elf64_Shdr) || j->head.e_shnum > SECTIONS ||
        !has(j, j->head.e_shoff, sizeof(Elf64_Shdr) * (uint64_t)j->head.e_shnum))
        return "not an object file";
    memcpy(j->sections, j->file + j->head.e_shoff, sizeof(Elf64_Shdr) * j->head.e_shnum);
    for (int k = 0; k < j->head.e_shnum; k++)
        if (j->sections[k].sh_type != SHT_NOBITS &&
            !has(j, j->sections[k].sh_offset, j->sections[k].sh_size))
            return "a section beyond the end";
    return NULL;
}

/* Sections behind one another, each as it wants to be aligned; the image begins at a page. */
static const char *place_sections(joining *j) {
    size_t at = 0;
    for (int k = 0; k < j->head.e_shnum; k++) {
        const Elf64_Shdr *s = &j->sections[k];
        if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0)
            continue;
        size_t align = s->sh_addralign ? s->sh_addralign : 1;
        if (s->sh_flags & SHF_WRITE || s->sh_type != SHT_PROGBITS || align > PAGE ||
            (align & (align - 1)) || s->sh_size > MOST - at)
            return "a section that is no code and no constant";
        at = (at + align - 1) & ~(align - 1);
        j->places[k] = at;
        j->placed[k] = true;
        at += s->sh_size;
    }
    j->image->n = (at + 7) & ~(size_t)7;
    j->image->bytes = td_calloc(1, j->image->n + 8);
    if (!j->image->bytes)
        return "out of memory";
    for (int k = 0; k < j->head.e_shnum; k++)
        if (j->placed[k])
            memcpy(j->image->bytes + j->places[k], j->file + j->sections[k].sh_offset,
                   j->sections[k].sh_size);
    return NULL;
}

static bool read_symbol(const joining *j, const Elf64_Shdr *table, uint64_t k, Elf64_Sym *symbol) {
    if (k >= table->sh_size / sizeof *symbol)
        return false;
    memcpy(symbol, j->file + table->sh_offset + k * sizeof *symbol, sizeof *symbol);
    return true;
}

/* Where a symbol is in the image; false: it is another's. */
static bool find_symbol(const joining *j, const Elf64_Sym *symbol, size_t *place) {
    int section = symbol->st_shndx;
    if (section >= j->head.e_shnum || !j->placed[section] ||
        symbol->st_value > j->sections[section].sh_size)
        return false;
    *place = j->places[section] + symbol->st_value;
    return true;
}

/* ---- distances ---- */

static bool put_word(joining *j, size_t at, int64_t value) {
    const int32_t word = (int32_t)value;
    if (at + sizeof word > j->image->n || word != value)
        return false;
    memcpy(j->image->bytes + at, &word, sizeof word);
    return true;
}

#if defined(__aarch64__)
/* The bits of an instruction from `first` on. */
static void put_bits(joining *j, size_t at, int first, int count, uint64_t value) {
    uint32_t word, mask = (((uint32_t)1 << count) - 1) << first;
    memcpy(&word, j->image->bytes + at, sizeof word);
    word = (word & ~mask) | ((uint32_t)(value << first) & mask);
    memcpy(j->image->bytes + at, &word, sizeof word);
}

/* The image begins at a page, so places are addresses within pages. */
static bool relocate(joining *j, uint32_t type, size_t at, int64_t target) {
    const int64_t pages = (target >> 12) - ((int64_t)at >> 12), within = target & 0xFFF;
    if (at + 4 > j->image->n)
        return false;
    switch (type) {
    case R_AARCH64_ADR_PREL_PG_HI21:
        put_bits(j, at, 29, 2, (uint64_t)pages & 3);
        put_bits(j, at, 5, 19, (uint64_t)(pages >> 2));
        return true;
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
        put_bits(j, at, 10, 12, (uint64_t)within);
        return true;
    case R_AARCH64_LDST16_ABS_LO12_NC:
        put_bits(j, at, 10, 12, (uint64_t)within >> 1);
        return true;
    case R_AARCH64_LDST32_ABS_LO12_NC:
        put_bits(j, at, 10, 12, (uint64_t)within >> 2);
        return true;
    case R_AARCH64_LDST64_ABS_LO12_NC:
        put_bits(j, at, 10, 12, (uint64_t)within >> 3);
        return true;
    case R_AARCH64_LDST128_ABS_LO12_NC:
        put_bits(j, at, 10, 12, (uint64_t)within >> 4);
        return true;
    case R_AARCH64_PREL32:
        return put_word(j, at, target - (int64_t)at);
    }
    return false;
}
#else
static bool relocate(joining *j, uint32_t type, size_t at, int64_t target) {
    return (type == R_X86_64_PC32 || type == R_X86_64_PLT32) &&
           put_word(j, at, target - (int64_t)at);
}
#endif

static bool relocate_section(joining *j, const Elf64_Shdr *s) {
    Elf64_Rela given;
    Elf64_Sym symbol;
    const size_t into = s->sh_info;
    if (s->sh_link >= j->head.e_shnum || into >= j->head.e_shnum)
        return false;
    for (uint64_t k = 0; k < s->sh_size / sizeof given; k++) {
        size_t place;
        memcpy(&given, j->file + s->sh_offset + k * sizeof given, sizeof given);
        if (given.r_offset > j->sections[into].sh_size ||
            !read_symbol(j, &j->sections[s->sh_link], ELF64_R_SYM(given.r_info), &symbol) ||
            !find_symbol(j, &symbol, &place) ||
            !relocate(j, (uint32_t)ELF64_R_TYPE(given.r_info), j->places[into] + given.r_offset,
                      (int64_t)place + given.r_addend))
            return false;
    }
    return true;
}

static const char *relocate_all(joining *j) {
    for (int k = 0; k < j->head.e_shnum; k++) {
        const Elf64_Shdr *s = &j->sections[k];
        bool concerns = s->sh_info < j->head.e_shnum && j->placed[s->sh_info];
        if (s->sh_type == SHT_REL && concerns)
            return "addresses of another kind";
        if (s->sh_type == SHT_RELA && concerns && !relocate_section(j, s))
            return "code that calls others";
    }
    return NULL;
}

static const char *find_entry(joining *j, const char *function) {
    Elf64_Sym symbol;
    for (int k = 0; k < j->head.e_shnum; k++) {
        const Elf64_Shdr *s = &j->sections[k];
        if (s->sh_type != SHT_SYMTAB || s->sh_link >= j->head.e_shnum)
            continue;
        const Elf64_Shdr *names = &j->sections[s->sh_link];
        const size_t length = strlen(function) + 1;
        for (uint64_t n = 0; read_symbol(j, s, n, &symbol); n++)
            if (symbol.st_name < names->sh_size && length <= names->sh_size - symbol.st_name &&
                !memcmp(j->file + names->sh_offset + symbol.st_name, function, length) &&
                find_symbol(j, &symbol, &j->image->entry))
                return NULL;
    }
    return "no such function";
}

const char *td_object_join(const unsigned char *file, size_t n, const char *function,
                           td_object_image *image) {
    joining *j = td_calloc(1, sizeof *j);
    const char *why = j ? NULL : "out of memory";
    *image = (td_object_image){.bytes = NULL};
    if (!why) {
        j->file = file;
        j->n = n;
        j->image = image;
        why = read_sections(j);
    }
    if (!why)
        why = place_sections(j);
    if (!why)
        why = relocate_all(j);
    if (!why)
        why = find_entry(j, function);
    if (why) {
        td_free(image->bytes);
        image->bytes = NULL;
    }
    td_free(j);
    return why;
}

const unsigned char *td_object_map(const unsigned char *bytes, size_t n) {
    unsigned char *pages =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    memcpy(pages, bytes, n);
    if (mprotect(pages, n, PROT_READ | PROT_EXEC)) {
        munmap(pages, n);
        return NULL;
    }
    __builtin___clear_cache((char *)pages, (char *)pages + n);
    return pages;
}
