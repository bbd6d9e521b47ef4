/* lane.c: memory for records: new chunks, old ones used again. */
#include "profiler/lane.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"

#include <string.h>

static bool lies_in(const tide_record *record, const tide_record *records, int n) {
    return record >= records && record < records + n;
}

/* ---- old chunks ---- */

static const int64_t *copy_tensors(tide_words **words, const int64_t *tensors, uint8_t *count) {
    const int64_t *end = tensors;
    for (int k = 0; k < *count; k++)
        (void)tide_input_next(&end);
    size_t n = (size_t)(end - tensors);
    int64_t *copy = n ? tide_words_new(words, n) : NULL;
    if (copy)
        memcpy(copy, tensors, n * sizeof *copy);
    else
        *count = 0;
    return copy;
}

/* A record with all that it points at, which is to go. */
static void move(tide_record *to, const tide_record *from, tide_words **words) {
    *to = *from;
    if (from->kind == TD_EVENT_RANGE || from->kind >= TD_EVENT_KINDS) {
        to->name = tide_words_text(words, from->name, strlen(from->name));
        to->name = to->name ? to->name : "range";
    }
    if (from->line)
        to->line = tide_words_text(words, from->line, strlen(from->line));
    if (from->ninputs)
        to->inputs = copy_tensors(words, from->inputs, &to->ninputs);
    if (from->nresults)
        to->results = copy_tensors(words, from->results, &to->nresults);
}

/* Move what has not ended from the first chunk, and of what was kept before, out of the way. */
static bool keep_open(tide_lane *l) {
    tide_chunk *c = l->first;
    int n = 0;
    for (int k = 0; k < l->nopen; k++) {
        const tide_record *r = l->open[k].record;
        n += r && (lies_in(r, c->records, c->n) || lies_in(r, l->kept, l->nkept));
    }
    tide_record *kept = n ? td_malloc((size_t)n * sizeof *kept) : NULL;
    tide_words *words = NULL;
    if (n && !kept)
        return false;
    n = 0;
    for (int k = 0; k < l->nopen; k++) {
        tide_record *r = l->open[k].record;
        if (r && (lies_in(r, c->records, c->n) || lies_in(r, l->kept, l->nkept))) {
            move(&kept[n], r, &words);
            l->open[k].record = &kept[n++];
        }
    }
    l->evicted += c->n + l->nkept - n;
    td_free(l->kept);
    tide_words_free(l->kept_words);
    l->kept = kept;
    l->nkept = n;
    l->kept_words = words;
    return true;
}

/* Take the first chunk out of the list, empty. NULL: memory is out. */
static tide_chunk *evict(tide_lane *l) {
    if (!keep_open(l))
        return NULL;
    tide_chunk *c = l->first;
    l->cut = c->next->records[0].start;
    l->first = c->next;
    tide_words_free(c->words);
    return c;
}

/* ---- new ones ---- */

static tide_chunk *chunk_new(tide_lane *l) {
    enum { FEWEST = 2 }; /* that a lane has, whatever others took */
    bool full = atomic_load_explicit(l->chunks, memory_order_relaxed) >= l->most_chunks;
    if (full && l->mine_chunks >= FEWEST)
        return evict(l);
    tide_chunk *c = tide_chunk_new();
    if (c) {
        atomic_fetch_add_explicit(l->chunks, 1, memory_order_relaxed);
        l->mine_chunks++;
    }
    return c;
}

tide_record *tide_lane_grow(tide_lane *l) {
    tide_chunk *c = chunk_new(l);
    if (!c)
        return NULL;
    c->next = NULL;
    c->words = NULL;
    c->n = 1;
    if (l->last)
        l->last->next = c;
    else
        l->first = c;
    l->last = c;
    memset(l->recent, 0, sizeof l->recent);
    memset(l->recent_texts, 0, sizeof l->recent_texts);
    l->recent_line = NULL;
    return c->records;
}

bool tide_lane_grow_open(tide_lane *l) {
    int room = l->open_room ? 2 * l->open_room : 64;
    tide_open *open = td_realloc(l->open, (size_t)room * sizeof *open);
    if (!open)
        return false;
    l->open = open;
    l->open_room = room;
    return true;
}

const char *tide_lane_text(tide_lane *l, const char *text) {
    const char **recent = &l->recent_texts[td_hash_text(text) % TIDE_RECENT_TEXTS];
    if (!*recent || strcmp(*recent, text) != 0)
        *recent = tide_words_text(&l->last->words, text, strlen(text));
    return *recent;
}

int64_t tide_lane_count(const tide_lane *l) {
    int64_t n = l->nkept;
    for (const tide_chunk *c = l->first; c; c = c->next)
        n += c->n;
    return n;
}

void tide_lane_clear(tide_lane *l) {
    for (tide_chunk *c = l->first, *next; c; c = next) {
        next = c->next;
        tide_words_free(c->words);
        tide_chunk_free(c);
    }
    td_free(l->open);
    td_free(l->kept);
    tide_words_free(l->kept_words);
    l->first = l->last = NULL;
    l->open = NULL;
    l->kept = NULL;
    l->kept_words = NULL;
    l->nopen = l->open_room = l->nkept = l->mine_chunks = 0;
    l->dropped = l->evicted = l->untimed = l->tiny = l->lost = 0;
    l->cut = l->last_ticks = 0;
    atomic_store(&l->generation, 0);
}
