/* chunk.c: memory for chunks of records: pages of 2 MiB where the system gives them, since a page
 * that is touched for the first time costs as much as the records of many events, and kept warm
 * for the next recording.
 */
#include "engine/core/memory.h"
#include "profiler/lane.h"

#include <pthread.h>
#include <sys/mman.h>

#define PAGE ((size_t)2 << 20)
enum { CHUNK_BYTES = 65536, WARM = 256 };

_Static_assert(sizeof(tide_chunk) <= CHUNK_BYTES, "TIDE_CHUNK records fit");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tide_chunk *warm; /* with memory behind them, nwarm */
static int nwarm;
static unsigned char *page; /* whose first `used` bytes were given out */
static size_t used = PAGE;
static void **cold; /* addresses without memory, ncold */
static int ncold, cold_room;

/* A page of address space, aligned to its size. */
static unsigned char *map_page(void) {
    unsigned char *at =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    size_t before = (PAGE - (uintptr_t)at % PAGE) % PAGE;
    if (before)
        munmap(at, before);
    munmap(at + before + PAGE, PAGE - before);
#ifdef MADV_HUGEPAGE
    madvise(at + before, PAGE, MADV_HUGEPAGE);
#endif
    return at + before;
}

/* Never used, or given back cold. */
static tide_chunk *find_fresh(void) {
    if (ncold)
        return cold[--ncold];
    if (used == PAGE) {
        unsigned char *next = map_page();
        if (!next)
            return NULL;
        page = next;
        used = 0;
    }
    tide_chunk *c = (tide_chunk *)(void *)(page + used);
    used += CHUNK_BYTES;
    return c;
}

tide_chunk *tide_chunk_new(void) {
    if (td_memory_should_fail())
        return NULL;
    pthread_mutex_lock(&lock);
    tide_chunk *c = warm;
    if (c) {
        warm = c->next;
        nwarm--;
    } else {
        c = find_fresh();
    }
    pthread_mutex_unlock(&lock);
    return c;
}

static bool has_cold_room(void) {
    if (ncold < cold_room)
        return true;
    int room = cold_room ? 2 * cold_room : 1024;
    void **grown = td_realloc(cold, (size_t)room * sizeof *grown);
    if (!grown)
        return false;
    cold = grown;
    cold_room = room;
    return true;
}

void tide_chunk_warm(void) {
    tide_chunk *c = tide_chunk_new();
    if (!c)
        return;
    *(volatile int *)&c->n = 0;
    tide_chunk_free(c);
}

void tide_chunk_free(tide_chunk *c) {
    pthread_mutex_lock(&lock);
    if (nwarm < WARM || !has_cold_room()) {
        c->next = warm;
        warm = c;
        nwarm++;
    } else {
        madvise(c, CHUNK_BYTES, MADV_DONTNEED);
        cold[ncold++] = c;
    }
    pthread_mutex_unlock(&lock);
}
