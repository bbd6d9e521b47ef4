/* code_cache.c: the folder of files that keep machine code. */
#include "engine/io/code_cache.h"

#include "engine/core/draft.h"
#include "engine/core/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST = 64 << 20,     /* bytes of all files, */
    LEFT = MOST / 4 * 3, /* and how many are left when there are more */
    LARGEST = 4 << 20,   /* of a file */
    OFTEN = 16,          /* writes from one look at the whole folder to the next */
    FORM = 1             /* of the files: a change here makes older ones no more found */
};

td_code_counters td_code_counts;

td_code_tally td_code_tally_now(void) {
    return (td_code_tally){.compiled = atomic_load(&td_code_counts.compiled),
                           .loaded = atomic_load(&td_code_counts.loaded),
                           .refused = atomic_load(&td_code_counts.refused),
                           .runs = atomic_load(&td_code_counts.runs),
                           .microseconds = atomic_load(&td_code_counts.microseconds)};
}

/* What a file begins with. */
typedef struct header {
    char magic[8];
    uint32_t form, unused;
    td_code_key key;
    uint64_t bytes;
    td_code_key sum; /* of what follows */
} header;
static const char magic[8] = "TIDECODE";

/* ---- digests ---- */

static uint64_t mixed(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 29;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 32;
}

/* Two words that take in each word of the bytes in different ways; no protection against those who
 * choose the bytes, who may run what they like as this user anyway. */
td_code_key td_code_key_add(td_code_key key, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    uint64_t a = key.word[0] ^ (n * 0x9e3779b97f4a7c15u), b = key.word[1] + n;
    for (size_t k = 0; k < n; k += 8) {
        uint64_t word = 0;
        memcpy(&word, at + k, n - k < 8 ? n - k : 8);
        a = mixed(a ^ word);
        b = mixed(b + (word << 23 | word >> 41)) + a;
    }
    return (td_code_key){{mixed(a + b), mixed(b ^ a >> 7)}};
}

/* ---- the folder ---- */

typedef struct path {
    char text[768];
} path;

/* The parts of the folder's name that are made where they lack: all behind `given`. */
static bool find_folder(path *p, size_t *given) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = cache && *cache == '/' ? snprintf(p->text, sizeof p->text, "%s/tide/code", cache)
            : home && *home == '/' ? snprintf(p->text, sizeof p->text, "%s/.cache/tide/code", home)
                                   : -1;
    *given = cache && *cache == '/' ? strlen(cache) : home ? strlen(home) : 0;
    return n > 0 && n < 512;
}

/* Code that others could have written is not run: the folder is closed to them. */
static bool is_ours(int fd, bool folder) {
    struct stat facts;
    return fstat(fd, &facts) == 0 && facts.st_uid == geteuid() &&
           (folder ? S_ISDIR(facts.st_mode) && !(facts.st_mode & 077) : S_ISREG(facts.st_mode));
}

static void make_folder(path *p, size_t given) {
    for (char *c = p->text + (given ? given : 1); *c; c++) {
        if (*c != '/' || c == p->text)
            continue;
        *c = 0;
        (void)mkdir(p->text, 0700);
        *c = '/';
    }
    (void)mkdir(p->text, 0700);
}

/* The open folder; -1: there is none. */
static int open_folder(path *p, bool make) {
    size_t given;
    if (!find_folder(p, &given))
        return -1;
    int fd = open(p->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && make && errno == ENOENT) {
        make_folder(p, given);
        fd = open(p->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd >= 0 && !is_ours(fd, true)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void name_file(char *text, size_t size, const char *kind, td_code_key key) {
    snprintf(text, size, "%s-%016llx%016llx.code", kind, (unsigned long long)key.word[0],
             (unsigned long long)key.word[1]);
}

/* ---- reading ---- */

static bool read_all(int fd, void *to, size_t n) {
    unsigned char *at = to;
    while (n > 0) {
        ssize_t done = read(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

/* Is the file whole, and what its name says? */
static bool read_file(int fd, td_code_key key, void **bytes, size_t *n) {
    header h;
    struct stat facts;
    if (!is_ours(fd, false) || fstat(fd, &facts) || !read_all(fd, &h, sizeof h) ||
        memcmp(h.magic, magic, sizeof magic) || h.form != FORM ||
        memcmp(&h.key, &key, sizeof key) || h.bytes > LARGEST ||
        (uint64_t)facts.st_size != sizeof h + h.bytes)
        return false;
    void *read = td_malloc(h.bytes ? h.bytes : 1);
    if (!read)
        return false;
    td_code_key sum = {{0, 0}};
    bool whole = read_all(fd, read, h.bytes);
    if (whole)
        sum = td_code_key_add(sum, read, h.bytes);
    if (!whole || memcmp(&sum, &h.sum, sizeof sum)) {
        td_free(read);
        return false;
    }
    *bytes = read;
    *n = h.bytes;
    return true;
}

bool td_code_cache_read(const char *kind, td_code_key key, void **bytes, size_t *n) {
    path p;
    char name[96];
    int folder = open_folder(&p, false);
    bool whole = false;
    if (folder < 0)
        return false;
    name_file(name, sizeof name, kind, key);
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        whole = read_file(fd, key, bytes, n);
        if (whole)
            (void)futimens(fd, NULL); /* it was used now */
        else
            (void)unlinkat(folder, name, 0);
        close(fd);
    }
    close(folder);
    return whole;
}

/* ---- what is kept ---- */

typedef struct kept {
    char name[96];
    int64_t bytes;
    struct timespec used;
} kept;

/* Files, and drafts that a kill left behind. */
static bool is_name(const char *name) {
    size_t n = strlen(name);
    return n > 6 && n < sizeof((kept *)0)->name &&
           (!strcmp(name + n - 5, ".code") || !strcmp(name + n - 6, ".draft"));
}

/* All files of the folder, which is given back with the list. Their bytes. */
static int64_t list_files(int folder, td_list *files) {
    int64_t bytes = 0;
    int copy = dup(folder);
    DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;
    *files = (td_list){0};
    if (!entries && copy >= 0)
        close(copy);
    if (entries)
        rewinddir(entries);
    while (entries && (e = readdir(entries))) {
        struct stat facts;
        if (!is_name(e->d_name) || fstatat(folder, e->d_name, &facts, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(facts.st_mode))
            continue;
        kept *k = td_list_add(files, sizeof *k);
        if (!k)
            break;
        snprintf(k->name, sizeof k->name, "%.95s", e->d_name);
        k->bytes = (int64_t)facts.st_size;
        k->used = facts.st_mtim;
        bytes += k->bytes;
    }
    if (entries)
        closedir(entries);
    return bytes;
}

static int by_use(const void *a, const void *b) {
    const kept *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

/* Files that were used longest ago go until no more than `left` bytes remain. */
static int64_t remove_files(int folder, int64_t most, int64_t left) {
    td_list files;
    int64_t removed = 0, bytes = list_files(folder, &files);
    if (bytes > most && files.n > 0) {
        kept *all = files.items;
        qsort(all, (size_t)files.n, sizeof *all, by_use);
        for (int k = 0; k < files.n && bytes > left; k++) {
            removed += unlinkat(folder, all[k].name, 0) == 0;
            bytes -= all[k].bytes;
        }
    }
    td_list_clear(&files);
    return removed;
}

/* One process at a time; who finds another at it need not. */
static void bound_folder(int folder) {
    static atomic_uint writes;
    if (atomic_fetch_add(&writes, 1) % OFTEN != 0 || flock(folder, LOCK_EX | LOCK_NB))
        return;
    (void)remove_files(folder, MOST, LEFT);
    (void)flock(folder, LOCK_UN);
}

void td_code_cache_look(td_code_cache_facts *facts) {
    path p;
    td_list files;
    *facts = (td_code_cache_facts){.most = MOST};
    int folder = open_folder(&p, false);
    size_t given;
    if (find_folder(&p, &given))
        snprintf(facts->folder, sizeof facts->folder, "%.511s", p.text);
    if (folder < 0)
        return;
    facts->bytes = list_files(folder, &files);
    facts->files = files.n;
    td_list_clear(&files);
    close(folder);
}

int64_t td_code_cache_clear(void) {
    path p;
    int folder = open_folder(&p, false);
    if (folder < 0)
        return 0;
    int64_t removed = remove_files(folder, -1, -1);
    close(folder);
    return removed;
}

/* ---- writing ---- */

static bool write_file(const path *p, const char *kind, td_code_key key, const void *bytes,
                       size_t n) {
    char name[96], whole[sizeof p->text + sizeof name];
    td_draft *draft = NULL;
    header h = {.form = FORM, .key = key, .bytes = n};
    memcpy(h.magic, magic, sizeof magic);
    h.sum = td_code_key_add(h.sum, bytes, n);
    name_file(name, sizeof name, kind, key);
    snprintf(whole, sizeof whole, "%s/%s", p->text, name);
    bool done = td_draft_open(whole, &draft) == TD_OK &&
                td_draft_write(draft, &h, sizeof h) == TD_OK &&
                td_draft_write(draft, bytes, n) == TD_OK && td_draft_replace(draft) == TD_OK;
    td_draft_close(draft);
    return done;
}

bool td_code_cache_write(const char *kind, td_code_key key, const void *bytes, size_t n) {
    path p;
    int folder = n <= LARGEST ? open_folder(&p, true) : -1;
    if (folder < 0)
        return false;
    bool done = write_file(&p, kind, key, bytes, n);
    if (done)
        bound_folder(folder);
    close(folder);
    return done;
}
