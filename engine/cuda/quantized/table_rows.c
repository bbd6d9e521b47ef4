/* table_rows.c: tables whose rows are bytes or halves of bytes: packed, and added up by bags. */
#include "engine/cuda/quantized/table_rows_code.h"

#include "engine/cuda/cuda.h"

static td_status pack_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->pack_rows(plan);
}

td_status td_cuda_pack_rows(const td_pack_rows_plan *p) {
    const int64_t rows = p->x->sizes[0];
    cudaStream_t s;
    if (rows > INT32_MAX) /* a warp each */
        return td_cuda_fall_back("pack_rows", p, sizeof *p, pack_on_cpu, 2, 1);
    td_status status = td_cuda_begin(p->stream, 2, p->tensors, &s);
    if (status != TD_OK || rows == 0)
        return status;
    return td_cuda_status(td_cu_run_pack_rows(&(td_cu_pack_rows){.out = p->out->data,
                                                                 .x = p->x->data,
                                                                 .rows = rows,
                                                                 .n = p->x->sizes[1],
                                                                 .bytes = p->out->sizes[1],
                                                                 .bits = p->bits},
                                              s),
                          "packing rows");
}

td_status td_cuda_add_rows(const td_add_rows_plan *p) {
    const td_tensor *table = p->table, *out = p->out;
    td_cu_add_rows a = {.out = out->data,
                        .table = table->data,
                        .index = p->index->data,
                        .starts = p->starts ? p->starts->data : NULL,
                        .weights = p->weights ? p->weights->data : NULL,
                        .bags = out->sizes[0],
                        .n = out->sizes[1],
                        .rows = table->sizes[0],
                        .bytes = table->sizes[1],
                        .places = p->index->numel,
                        .nstarts = p->starts ? p->starts->numel : 0,
                        .length = p->length,
                        .padding = p->padding,
                        .bits = p->bits,
                        .mean = p->mean};
    a.words = (uintptr_t)a.table % 4 == 0 && a.n * a.bits % 32 == 0;
    cudaStream_t s;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 5, p->tensors, &s));
    if (out->numel == 0 && a.places == 0)
        goto done;
    TD_TRY(td_cuda_report(p->stream, TD_EINDEX, "index %lld is not a row from 1 to %lld",
                          &a.bad_index));
    TD_TRY(td_cuda_report(p->stream, TD_EVALUE,
                          "offsets: a bag begins at %lld and ends before %lld, which falls or "
                          "leaves the index",
                          &a.bad_start));
    status = td_cuda_status(td_cu_run_add_rows(&a, s), "adding rows");
done:
    return status;
}
