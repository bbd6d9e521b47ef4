/* history.c: inputs, in memory and in a file that several sessions append to at once.
 *
 * The file is text, an entry a line:
 *
 *     SESSION TAB LINE TAB INPUT NEWLINE
 *
 * SESSION is a name that no other session has (start time in microseconds, dot, process id), LINE
 * the number of the input in its session, INPUT the whole input with \n, \t, \r, \0 and \\ written
 * so. Sessions count in the order in which they first appear. Each entry is appended with one
 * write(), so entries of several sessions mix but don't tear; a line of any other form (a torn
 * one, a comment) is skipped. The file is read when the past is first asked for, and of a long one
 * only the end.
 */
#include "repl/session/history.h"
#include "repl/session/output.h"
#include "repl/session/result.h"
#include "repl/session/state.h"

#include "engine/core/map.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { READ_LIMIT = 8 << 20 };    /* bytes of the file that are looked at */
enum { OUTPUT_LIMIT = 64 << 10 }; /* bytes of one output that are kept */

typedef struct entry {
    long session; /* as in tide_history_entry, once read */
    int line;
    char *input;
    size_t len;
    char *output; /* of this session's inputs; NULL: none */
} entry;

typedef struct entry_list {
    entry *items;
    size_t n, room;
} entry_list;

struct history {
    entry_list past, present;
    char *path;
    char session[48];
    bool read;   /* the file has been read into `past` */
    bool warned; /* that it can't be written */
    bool torn;   /* the last write left half a line */
};

/* ---- in memory ---- */

history *history_new(void) {
    history *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(h->session, sizeof h->session, "%lld%06ld.%ld", (long long)now.tv_sec,
             now.tv_nsec / 1000, (long)getpid());
    return h;
}

static void entries_clear(entry_list *list) {
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].input), free(list->items[i].output);
    free(list->items);
    *list = (entry_list){0};
}

void history_free(history *h) {
    if (!h)
        return;
    entries_clear(&h->past);
    entries_clear(&h->present);
    free(h->path);
    free(h);
}

/* Takes `input` over; frees it when memory is out. */
static void entries_push(entry_list *list, long session, int line, char *input, size_t len) {
    if (input && list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        entry *items = realloc(list->items, room * sizeof *items);
        if (items) {
            list->items = items;
            list->room = room;
        }
    }
    if (input && list->n < list->room)
        list->items[list->n++] = (entry){session, line, input, len, NULL};
    else
        free(input);
}

const char *history_input(const tide_session *s, int line, size_t *len) {
    const entry_list *present = &s->history->present;
    for (size_t i = present->n; i-- > 0;)
        if (present->items[i].line == line) {
            *len = present->items[i].len;
            return present->items[i].input;
        }
    return NULL;
}

/* ---- the form of a line ---- */

static const char escaped[] = "\\\n\t\r"; /* and NUL, which is \0 */
static const char letters[] = "\\ntr";

/* SESSION TAB LINE TAB INPUT NEWLINE, malloc'ed; *len is its length. A newline before it ends the
 * torn line that the file ends with. */
static char *encode(const history *h, const entry *e, bool torn, size_t *len) {
    size_t room = 2 * e->len + sizeof h->session + 32;
    char *line = malloc(room);
    if (!line)
        return NULL;
    int head = snprintf(line, room, "%s%s\t%d\t", torn ? "\n" : "", h->session, e->line);
    char *at = line + head;
    for (size_t i = 0; i < e->len; i++) {
        char c = e->input[i];
        const char *found = c ? strchr(escaped, c) : NULL;
        if (found || !c)
            *at++ = '\\';
        *at++ = found ? letters[found - escaped] : c ? c : '0';
    }
    *at++ = '\n';
    *len = (size_t)(at - line);
    return line;
}

/* INPUT as it was, malloc'ed; NULL when it is malformed. */
static char *decode(const char *text, size_t len, size_t *out_len) {
    char *input = malloc(len + 1);
    if (!input)
        return NULL;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\\') {
            const char *found = ++i < len && text[i] ? strchr(letters, text[i]) : NULL;
            if (!found && !(i < len && text[i] == '0')) {
                free(input);
                return NULL;
            }
            c = found ? escaped[found - letters] : '\0';
        } else if ((unsigned char)c < ' ') {
            free(input);
            return NULL;
        }
        input[n++] = c;
    }
    input[n] = '\0';
    *out_len = n;
    return input;
}

/* ---- the file ---- */

const char *tide_session_history_default_path(void) {
    static char path[PATH_MAX];
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (state && state[0] == '/')
        n = snprintf(path, sizeof path, "%s/tide/history", state);
    else if (home && home[0])
        n = snprintf(path, sizeof path, "%s/.local/state/tide/history", home);
    return n > 0 && (size_t)n < sizeof path ? path : NULL;
}

void tide_session_history_open(tide_session *s, const char *path) {
    free(s->history->path);
    s->history->path = path ? copy_string(path) : NULL;
    s->history->read = false;
    entries_clear(&s->history->past);
}

/* The folders above a file, for the user alone. */
static void make_folders(const char *path) {
    char folder[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder)
        return;
    for (char *slash = folder + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(folder, 0700);
    }
}

static void warn_once(tide_session *s) {
    if (s->history->warned)
        return;
    s->history->warned = true;
    char text[PATH_MAX + 128];
    int n = snprintf(text, sizeof text, "tide: history is not saved: %s: %s\n", s->history->path,
                     strerror(errno));
    output_write(s, TIDE_STDERR, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

/* Does the file end within a line (a session died while writing)? */
static bool ends_torn(int file) {
    struct stat info;
    char last;
    return fstat(file, &info) == 0 && info.st_size > 0 &&
           pread(file, &last, 1, info.st_size - 1) == 1 && last != '\n';
}

static void append(tide_session *s, const entry *e) {
    history *h = s->history;
    int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;
    int file = open(h->path, flags, 0600);
    if (file < 0 && errno == ENOENT) {
        make_folders(h->path);
        file = open(h->path, flags, 0600);
    }
    if (file < 0) {
        warn_once(s);
        return;
    }
    size_t len;
    char *line = encode(h, e, h->torn || ends_torn(file), &len);
    if (line) {
        ssize_t written = write(file, line, len);
        h->torn = written > 0 && (size_t)written < len;
        if (written < 0 || h->torn) {
            errno = h->torn ? ENOSPC : errno;
            warn_once(s);
        }
    }
    free(line);
    close(file);
}

void history_add(tide_session *s, int line, const char *input, size_t len) {
    entry_list *present = &s->history->present;
    size_t before = present->n;
    entries_push(present, 0, line, copy_bytes(input, len), len);
    if (present->n > before && s->history->path)
        append(s, &present->items[before]);
}

void history_add_output(tide_session *s, int line, const char *text, size_t len) {
    entry_list *present = &s->history->present;
    entry *last = present->n ? &present->items[present->n - 1] : NULL;
    if (!last || last->line != line || last->output)
        return;
    if (len > OUTPUT_LIMIT)
        for (len = OUTPUT_LIMIT; len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80; len--)
            ;
    last->output = copy_visible(text, len);
}

/* The end of the file, from the start of a line on; malloc'ed. */
static char *read_end(const char *path, size_t *len) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat info;
    char *text = NULL;
    *len = 0;
    if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
        off_t from = info.st_size > READ_LIMIT ? info.st_size - READ_LIMIT : 0;
        text = malloc((size_t)(info.st_size - from) + 1);
        ssize_t n = text ? pread(file, text, (size_t)(info.st_size - from), from) : 0;
        *len = n > 0 ? (size_t)n : 0;
        char *newline = from > 0 && *len ? memchr(text, '\n', *len) : NULL;
        if (newline) {
            *len -= (size_t)(newline + 1 - text);
            memmove(text, newline + 1, *len);
        }
    }
    if (file >= 0)
        close(file);
    return text;
}

typedef struct seen_session {
    struct seen_session *before;
    long number;
    char name[48];
} seen_session;

typedef struct session_names {
    td_map map; /* a file may hold as many sessions as lines */
    seen_session *last;
    long n;
} session_names;

static bool is_named(const void *session, const void *name) {
    return strcmp(((const seen_session *)session)->name, name) == 0;
}

/* Number of a session from 0 on in order of appearance; -1: memory is out. */
static long session_number(session_names *seen, const char *name) {
    uint64_t hash = td_hash_text(name);
    const seen_session *known = td_map_find(&seen->map, hash, is_named, name);
    if (known)
        return known->number;
    seen_session *made = malloc(sizeof *made);
    if (!made || td_map_add(&seen->map, hash, made)) {
        free(made);
        return -1;
    }
    made->before = seen->last;
    made->number = seen->n++;
    snprintf(made->name, sizeof made->name, "%s", name);
    seen->last = made;
    return made->number;
}

static void session_names_clear(session_names *seen) {
    td_map_clear(&seen->map);
    for (seen_session *before; seen->last; seen->last = before) {
        before = seen->last->before;
        free(seen->last);
    }
}

/* Reads one line of the file into `past`, or skips it. */
static void read_line(history *h, session_names *seen, const char *line, size_t len) {
    char name[48];
    const char *tab = memchr(line, '\t', len);
    if (!tab || tab == line || (size_t)(tab - line) >= sizeof name)
        return;
    memcpy(name, line, (size_t)(tab - line));
    name[tab - line] = '\0';
    if (strspn(name, "0123456789.") != strlen(name) || strcmp(name, h->session) == 0)
        return;
    const char *digits = tab + 1, *end = line + len;
    long number = 0;
    for (tab = digits; tab < end && *tab >= '0' && *tab <= '9' && number < INT_MAX / 10; tab++)
        number = 10 * number + (*tab - '0');
    if (tab == digits || tab == end || *tab != '\t')
        return;
    size_t n;
    char *input = decode(tab + 1, (size_t)(end - tab - 1), &n);
    if (!input)
        return;
    long session = session_number(seen, name);
    if (session >= 0)
        entries_push(&h->past, session, (int)number, input, n);
    else
        free(input);
}

static int by_session(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->session != y->session)
        return x->session < y->session ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* Reads the file once. Sessions before this one become -1, -2, … from the newest on. */
static void read_past(history *h) {
    if (h->read || !h->path)
        return;
    h->read = true;
    size_t len;
    char *text = read_end(h->path, &len);
    session_names seen = {0};
    for (size_t at = 0; at < len;) {
        char *newline = memchr(text + at, '\n', len - at);
        size_t end = newline ? (size_t)(newline - text) : len;
        if (newline) /* a line without its end is torn */
            read_line(h, &seen, text + at, end - at);
        at = end + 1;
    }
    for (size_t i = 0; i < h->past.n; i++)
        h->past.items[i].session -= seen.n;
    if (h->past.n)
        qsort(h->past.items, h->past.n, sizeof *h->past.items, by_session);
    session_names_clear(&seen);
    free(text);
}

/* ---- asking ---- */

static size_t history_length(const history *h) {
    return h->past.n + h->present.n;
}

static const entry *history_at(const history *h, size_t i) {
    return i < h->past.n ? &h->past.items[i] : &h->present.items[i - h->past.n];
}

static void list_push(tide_history_list *list, const entry *e) {
    tide_history_entry item = {.session = e->session,
                               .line = e->line,
                               .input = copy_bytes(e->input, e->len),
                               .len = e->len,
                               .output = e->output ? copy_string(e->output) : NULL};
    tide_history_entry *entries =
        item.input ? realloc(list->entries, (size_t)(list->n + 1) * sizeof item) : NULL;
    if (!entries) {
        free(item.input);
        free(item.output);
        return;
    }
    list->entries = entries;
    entries[list->n++] = item;
}

static void list_reverse(tide_history_list *list) {
    for (int i = 0, j = list->n - 1; i < j; i++, j--) {
        tide_history_entry swap = list->entries[i];
        list->entries[i] = list->entries[j];
        list->entries[j] = swap;
    }
}

void tide_session_history_tail(tide_session *s, int n, tide_history_list *list) {
    *list = (tide_history_list){0};
    read_past(s->history);
    size_t total = history_length(s->history);
    size_t wanted = n < 0 ? 0 : (size_t)n < total ? (size_t)n : total;
    for (size_t i = total - wanted; i < total; i++)
        list_push(list, history_at(s->history, i));
}

void tide_session_history_range(tide_session *s, long session, int start, int stop,
                                tide_history_list *list) {
    *list = (tide_history_list){0};
    if (session < 0)
        read_past(s->history);
    for (size_t i = 0; i < history_length(s->history); i++) {
        const entry *e = history_at(s->history, i);
        if (e->session == session && e->line >= start && e->line < stop)
            list_push(list, e);
    }
}

/* Does all of text match a pattern in which * stands for any bytes and ? for one? */
static bool glob_matches(const char *pattern, const char *text) {
    const char *star = NULL, *retry = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool is_input(const void *known, const void *input) {
    return strcmp(known, input) == 0;
}

/* Is this input the first of its kind? Where memory is out, a second one may be taken for it. */
static bool is_new(td_map *seen, const char *input) {
    uint64_t hash = td_hash_text(input);
    if (td_map_find(seen, hash, is_input, input))
        return false;
    td_status status = td_map_add(seen, hash, (void *)input);
    (void)status;
    return true;
}

void tide_session_history_search(tide_session *s, const char *pattern, int n, bool unique,
                                 tide_history_list *list) {
    *list = (tide_history_list){0};
    td_map seen = {0};
    read_past(s->history);
    for (size_t i = history_length(s->history); i-- > 0 && (n <= 0 || list->n < n);) {
        const entry *e = history_at(s->history, i);
        if (glob_matches(pattern, e->input) && (!unique || is_new(&seen, e->input)))
            list_push(list, e);
    }
    td_map_clear(&seen);
    list_reverse(list);
}
