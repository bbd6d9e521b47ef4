/* aborting.c: see aborting.h. */
#include "jupyter-kernel/aborting.h"

#include <string.h>
#include <time.h>

/* ---- dates ---- */

/* Exactly `n` digits; moves *at behind them. -1: there are none. */
static int take_number(const char **at, int n) {
    int value = 0;
    for (int i = 0; i < n; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return -1;
        value = 10 * value + (**at - '0');
    }
    return value;
}

/* Numbers of these many digits, each behind its separator ('\0': none). */
static bool take_fields(const char **at, const char *separators, const int *digits, int n,
                        int *to) {
    for (int i = 0; i < n; i++) {
        if (separators[i] && *(*at)++ != separators[i])
            return false;
        if ((to[i] = take_number(at, digits[i])) < 0)
            return false;
    }
    return true;
}

static int take_fraction(const char **at) {
    int us = 0, scale = 100000;
    if (**at != '.' && **at != ',')
        return 0;
    for ((*at)++; **at >= '0' && **at <= '9'; (*at)++, scale /= 10)
        us += (**at - '0') * scale;
    return us;
}

/* Seconds east of Greenwich. */
static bool take_zone(const char **at, int *seconds) {
    int field[2] = {0};
    char sign = **at;
    *seconds = 0;
    if (sign == '\0' || strcmp(*at, "Z") == 0)
        return true;
    if (sign != '+' && sign != '-')
        return false;
    (*at)++;
    bool colon = strlen(*at) == 5;
    if (!take_fields(at, colon ? "\0:" : "\0\0", (const int[]){2, 2}, 2, field) || **at)
        return false;
    *seconds = (sign == '-' ? -1 : 1) * (60 * field[0] + field[1]) * 60;
    return true;
}

bool tk_aborting_date(const char *text, int64_t *us) {
    int f[6], zone;
    if (!take_fields(&text, "\0--T::", (const int[]){4, 2, 2, 2, 2, 2}, 6, f))
        return false;
    int fraction = take_fraction(&text);
    if (!take_zone(&text, &zone))
        return false;
    struct tm tm = {.tm_year = f[0] - 1900,
                    .tm_mon = f[1] - 1,
                    .tm_mday = f[2],
                    .tm_hour = f[3],
                    .tm_min = f[4],
                    .tm_sec = f[5]};
    *us = ((int64_t)timegm(&tm) - zone) * 1000000 + fraction;
    return true;
}

/* ---- front ends ---- */

static bool header_date(const json_t *header, int64_t *us) {
    const char *text = json_string_value(json_object_get(header, "date"));
    return text && tk_aborting_date(text, us);
}

/* FNV-1a of header.session, never 0. */
static uint64_t header_session(const json_t *header) {
    const json_t *session = json_object_get(header, "session");
    const char *text = json_string_value(session);
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; text && i < json_string_length(session); i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash ? hash : 1;
}

static int find(const tk_aborting *a, uint64_t session) {
    int i = 0;
    while (i < TK_ABORT_SESSIONS && a->entries[i].session != session)
        i++;
    return i < TK_ABORT_SESSIONS ? i : -1;
}

static tk_abort_entry *entry_of(tk_aborting *a, const json_t *header) {
    uint64_t session = header_session(header);
    int i = find(a, session);
    if (i < 0) {
        i = a->next;
        a->next = (a->next + 1) % TK_ABORT_SESSIONS;
        a->entries[i] = (tk_abort_entry){.session = session};
    }
    return &a->entries[i];
}

void tk_aborting_hear(tk_aborting *a, const json_t *header, tk_moment now) {
    tk_abort_entry *entry = entry_of(a, header);
    int64_t date;
    if (!header_date(header, &date))
        return;
    if (!entry->has_offset || now.wall_us - date < entry->offset_us)
        entry->offset_us = now.wall_us - date;
    entry->has_offset = true;
}

void tk_aborting_begin(tk_aborting *a, const json_t *header) {
    entry_of(a, header)->failed = true;
}

static bool has_our_clock(const tk_abort_entry *entry) {
    return entry->has_offset && entry->offset_us >= 0 &&
           entry->offset_us < INT64_C(1000) * TK_ABORT_SAME_MS;
}

void tk_aborting_answered(tk_aborting *a, const json_t *header, tk_moment now) {
    int i = find(a, header_session(header));
    tk_abort_entry *entry = i < 0 ? NULL : &a->entries[i];
    if (!entry)
        return;
    if (entry->failed) {
        entry->covers = true;
        entry->left_us = now.steady_us;
        entry->until_us = now.wall_us;
    } else if (entry->aborts && has_our_clock(entry) &&
               now.steady_us < entry->left_us + INT64_C(1000) * TK_ABORT_TRUST_MS) {
        entry->until_us = now.wall_us + TK_ABORT_REACTION_US; /* a row does not go on for ever */
    }
    entry->failed = entry->aborts = false;
}

void tk_aborting_rest(tk_aborting *a, tk_moment now) {
    a->rested_us = now.steady_us;
}

/* Was the request of this header on its way when the failed cell was answered? */
static bool was_on_its_way(const tk_aborting *a, const tk_abort_entry *entry, const json_t *header,
                           bool notebook, tk_moment now) {
    const int64_t between = notebook ? INT64_C(1000) * TK_ABORT_ROW_MS : 0;
    const int64_t doubt = INT64_C(1000) * TK_ABORT_FIRST_MS + between;
    int64_t date;
    if (!entry->has_offset || !header_date(header, &date)) /* it may have waited in the socket */
        return a->rested_us < entry->left_us || now.steady_us < entry->left_us + doubt;
    if (!has_our_clock(entry))
        return date + entry->offset_us < entry->until_us + doubt;
    return date < entry->until_us + between;
}

bool tk_aborting_covers(tk_aborting *a, const json_t *header, bool notebook, tk_moment now) {
    int i = find(a, header_session(header));
    tk_abort_entry *entry = i < 0 ? NULL : &a->entries[i];
    if (!entry || !entry->covers)
        return false;
    /* What came in so long a wait is new, whatever a clock that was set may say. */
    if (a->rested_us > entry->left_us + INT64_C(1000) * TK_ABORT_TRUST_MS)
        return false;
    entry->aborts = was_on_its_way(a, entry, header, notebook, now);
    return entry->aborts;
}
