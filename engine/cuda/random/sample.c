/* sample.c: Poisson numbers and weighted choices: the CPU's from the same seed, to the last bit. */
#include "engine/cuda/order/sort.h"
#include "engine/cuda/random/sample_code.h"

td_status td_cuda_poisson(const td_poisson_plan *p) {
    cudaStream_t stream;
    td_status status = td_cuda_begin(p->stream, 2, p->tensors, &stream);
    td_cu_poisson run = {.out = p->out->data,
                         .means = p->x->data,
                         .n = p->out->numel,
                         .seed = p->seed,
                         .offset = p->offset,
                         .blocks = TD_POISSON_BLOCKS};
    if (status != TD_OK || run.n == 0)
        return status;
    return td_cuda_status(td_cu_run_poisson(&run, stream), "drawing Poisson numbers");
}

/* Places by their waiting times: the first so many of each row. */
static td_status choose_apart(const td_cu_choice *c, td_stream stream, cudaStream_t s) {
    td_status status = td_cuda_status(td_cu_choice_times(c, s), "drawing");
    td_cu_sort sort = {.lines = {.outer = c->rows, .n = c->n, .inner = 1},
                       .first = c->draws,
                       .keys = td_cuda_keys_of(TD_F64, false),
                       .x = c->sums,
                       .index = c->out};
    return status == TD_OK ? td_cuda_sort_lines(&sort, stream, s) : status;
}

static td_status multinomial_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->multinomial(plan);
}

td_status td_cuda_multinomial(const td_multinomial_plan *p) {
    td_cu_choice c = {.out = p->out->data,
                      .weights = p->x->data,
                      .rows = p->x->sizes[0],
                      .n = p->x->sizes[1],
                      .draws = p->out->sizes[1],
                      .seed = p->seed,
                      .offset = p->offset,
                      .per_row = td_multinomial_blocks(p)};
    td_cuda_scratch room = {.data = NULL};
    cudaStream_t s;
    td_status status;
    if (!p->replacement && !td_cuda_can_sort(c.n))
        return td_cuda_fall_back("multinomial", p, sizeof *p, multinomial_on_cpu, 2, 1);
    TD_TRY(td_cuda_begin(p->stream, 2, p->tensors, &s));
    if (p->out->numel == 0)
        goto done;
    TD_TRY(td_cuda_scratch_take(&room, p->stream, sizeof(double) * (size_t)p->x->numel));
    c.sums = room.data;
    TD_TRY(td_cuda_report(p->stream, TD_EVALUE, "weights must be finite and not negative",
                          &c.no_weight));
    TD_TRY(td_cuda_report(p->stream, TD_EVALUE, "the weights of a row must have a sum above 0",
                          &c.no_sum));
    TD_TRY(td_cuda_status(td_cu_choice_sums(&c, s), "adding up weights"));
    status = p->replacement ? td_cuda_status(td_cu_choose(&c, s), "drawing")
                            : choose_apart(&c, p->stream, s);
done:
    td_cuda_scratch_drop(&room);
    return status;
}
