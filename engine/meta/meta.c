/* meta.c: the backend without elements: every function succeeds and does nothing, but for those
 * that would have to read what is not there. */
#include "engine/meta/meta.h"

static td_status fail_reading(void) {
    return td_fail(TD_EDEVICE, "a tensor on meta has a shape, but no elements to read");
}

static int count(void) {
    return 1;
}

/* An address that nobody may follow. What is granted counts as nothing. */
static void *allocate(td_stream stream, size_t bytes, size_t *granted) {
    (void)stream;
    (void)bytes;
    *granted = 0;
    return (void *)((uintptr_t)1 << 20);
}

static void release(td_stream stream, void *block, size_t granted) {
    (void)stream;
    (void)block;
    (void)granted;
}

static void empty_cache(int index) {
    (void)index;
}

static td_status take(td_stream stream, void *dst, const void *src, size_t bytes) {
    (void)stream;
    (void)dst;
    (void)src;
    (void)bytes;
    return TD_OK;
}

static td_status download(td_stream stream, void *host, const void *src, size_t bytes) {
    (void)stream;
    (void)host;
    (void)src;
    return bytes ? fail_reading() : TD_OK;
}

static td_status synchronize(td_stream stream) {
    (void)stream;
    return TD_OK;
}

#define TD_META_FUNCTION(function, plan, ntensors, nwritten)                                       \
    static td_status run_##function(const struct plan *given) {                                    \
        (void)given;                                                                               \
        return TD_OK;                                                                              \
    }
TD_BACKEND_WORK(TD_META_FUNCTION)
#undef TD_META_FUNCTION

static td_status run_reduce_lists(const struct td_reduce_lists_plan *given) {
    (void)given;
    return TD_OK;
}

const td_backend td_meta_backend = {.name = "meta",
                                    .count = count,
                                    .allocate = allocate,
                                    .release = release,
                                    .empty_cache = empty_cache,
                                    .copy = take,
                                    .upload = take,
                                    .download = download,
                                    .synchronize = synchronize,
                                    .reduce_lists = run_reduce_lists,
#define TD_META_ENTRY(function, plan, ntensors, nwritten) .function = run_##function,
                                    TD_BACKEND_WORK(TD_META_ENTRY)
#undef TD_META_ENTRY
};
