/* storage_overlap.c: which tensors of a call over lists share memory: a table of storages, so that
 * thousands of tensors are looked through once and not each beside each. */
#include "engine/ops/storage_overlap.h"

#include "engine/core/memory.h"

#include <string.h>

td_status td_storages_init(td_storages *s, int n) {
    uint32_t slots = 16;
    while (slots < 2 * (uint32_t)n)
        slots *= 2;
    s->mask = slots - 1;
    s->slots = td_calloc(slots, sizeof *s->slots);
    return s->slots ? TD_OK : td_fail(TD_ENOMEM, "out of memory for a list of %d tensors", n);
}

void td_storages_clear(td_storages *s) {
    td_free(s->slots);
    s->slots = NULL;
}

/* The slot of a storage, or the free one where it would be. */
static td_storage_owner *slot_of(const td_storages *s, const td_storage *storage) {
    uint64_t key = (uint64_t)(uintptr_t)storage * 0x9E3779B97F4A7C15u;
    uint32_t at = (uint32_t)(key >> 32) & s->mask;
    while (s->slots[at].storage && s->slots[at].storage != storage)
        at = (at + 1) & s->mask;
    return &s->slots[at];
}

int td_storages_put(td_storages *s, const td_storage *storage, int item) {
    td_storage_owner *slot = slot_of(s, storage);
    if (slot->storage)
        return slot->item;
    *slot = (td_storage_owner){storage, item};
    return -1;
}

int td_storages_find(const td_storages *s, const td_storage *storage) {
    const td_storage_owner *slot = slot_of(s, storage);
    return slot->storage ? slot->item : -1;
}

bool td_tensors_meet(const td_tensor *a, const td_tensor *b) {
    if (a->storage != b->storage || a->numel == 0 || b->numel == 0)
        return false;
    if (a->data == b->data)
        return true;
    if (!td_tensor_is_dense(a) || !td_tensor_is_dense(b))
        return false;
    const char *at = a->data, *other = b->data;
    return at < other + b->numel * (int64_t)td_tensor_itemsize(b) &&
           other < at + a->numel * (int64_t)td_tensor_itemsize(a);
}
