/* storage_overlap.h: which storages the tensors of a list use, and whether two tensors overlap. */
#ifndef TD_OPS_STORAGE_OVERLAP_H
#define TD_OPS_STORAGE_OVERLAP_H

#include "engine/core/tensor.h"

/* Storages and the item of the list (from 0) that each belongs to. */
typedef struct td_storage_owner {
    const td_storage *storage;
    int item;
} td_storage_owner;
typedef struct td_storages {
    td_storage_owner *slots;
    uint32_t mask;
} td_storages;

/* Room for n storages; clear() lets it go. */
td_status td_storages_init(td_storages *s, int n) TD_MUST_CHECK;
void td_storages_clear(td_storages *s);
/* Note a storage. Returns the item that had it already, or -1. */
int td_storages_put(td_storages *s, const td_storage *storage, int item);
/* The item that has this storage, or -1. */
int td_storages_find(const td_storages *s, const td_storage *storage);

/* Do a and b surely have an element in common? Of views with gaps only the same one is known to. */
bool td_tensors_meet(const td_tensor *a, const td_tensor *b);

#endif
