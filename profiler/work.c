/* work.c: see work.h. */
#include "profiler/work.h"

#include <string.h>

/* What the formulas need of a call. */
typedef struct call {
    tide_input in[3], out;
    int nin;
    bool has_out;
} call;

static double size_at(const tide_input *in, int from_end) {
    return in->ndim >= from_end ? (double)in->sizes[in->ndim - from_end] : 1;
}

static double numel(const tide_input *in) {
    double n = 1;
    for (int d = 0; d < in->ndim; d++)
        n *= (double)in->sizes[d];
    return n;
}

/* (..., m, k) times (..., k, n), the second and third of the arguments where something is added. */
static double product(const call *c, int first) {
    if (c->nin < first + 2)
        return 0;
    const tide_input *x = &c->in[first], *y = &c->in[first + 1];
    double k = size_at(x, 1);
    if (c->has_out)
        return 2 * numel(&c->out) * k;
    return 2 * numel(x) * (y->ndim > 1 ? size_at(y, 1) : 1);
}

static double mm(const call *c) {
    return product(c, 0);
}

static double addmm(const call *c) {
    return product(c, 1);
}

/* The weight is (n, k). */
static double linear(const call *c) {
    return c->nin < 2 ? 0 : 2 * numel(&c->in[0]) * (c->in[1].ndim > 1 ? size_at(&c->in[1], 2) : 1);
}

/* Of all times: the weight (g, n) by the state that each of so many gates begins with. */
static double recurrent(const call *c) {
    return c->nin < 3 ? 0 : 2 * numel(&c->in[0]) * size_at(&c->in[2], 1);
}

/* Each element of the result is a sum over channels and window. */
static double convolution(const call *c) {
    bool known = c->nin >= 2 && c->has_out && c->in[1].ndim && c->in[1].sizes[0];
    return known ? 2 * numel(&c->out) * numel(&c->in[1]) / (double)c->in[1].sizes[0] : 0;
}

/* Each element of the input goes everywhere in its window. */
static double transposed(const call *c) {
    bool known = c->nin >= 2 && c->in[1].ndim && c->in[1].sizes[0];
    return known ? 2 * numel(&c->in[0]) * numel(&c->in[1]) / (double)c->in[1].sizes[0] : 0;
}

static double elements(const call *c) {
    if (c->has_out)
        return numel(&c->out);
    double n = 0;
    for (int k = 0; k < c->nin; k++)
        n = numel(&c->in[k]) > n ? numel(&c->in[k]) : n;
    return n;
}

static const struct {
    const char *name;
    double (*flops)(const call *c);
} formulas[] = {
    {"mm", mm},
    {"bmm", mm},
    {"int_mm", mm},
    {"matmul", mm},
    {"mv", mm},
    {"dot", mm},
    {"addmm", addmm},
    {"baddbmm", addmm},
    {"linear", linear},
    {"elman_times", recurrent},
    {"gru_times", recurrent},
    {"lstm_times", recurrent},
    {"conv1d", convolution},
    {"conv2d", convolution},
    {"conv3d", convolution},
    {"convolution", convolution},
    {"conv_transpose1d", transposed},
    {"conv_transpose2d", transposed},
    {"conv_transpose3d", transposed},
    {"add", elements},
    {"sub", elements},
    {"mul", elements},
    {"div", elements},
    {"add_", elements},
    {"sub_", elements},
    {"mul_", elements},
    {"div_", elements},
};

static double bytes_of(const int64_t *at, int n) {
    double bytes = 0;
    for (int k = 0; k < n; k++) {
        tide_input in = tide_input_next(&at);
        if (in.dtype < TD_DTYPE_COUNT)
            bytes += numel(&in) * (double)td_dtype_size(in.dtype);
    }
    return bytes;
}

tide_work tide_work_of(const tide_event *e) {
    tide_work work = {0, 0};
    call c = {.has_out = e->nresults > 0};
    if (e->kind != TD_EVENT_OP || !e->ninputs)
        return work;
    const int64_t *at = e->inputs, *results = e->results;
    for (c.nin = 0; c.nin < e->ninputs && c.nin < 3; c.nin++)
        c.in[c.nin] = tide_input_next(&at);
    if (c.has_out) {
        c.out = tide_input_next(&results);
        work.bytes = bytes_of(e->inputs, e->ninputs) + bytes_of(e->results, e->nresults);
    }
    const char *name = strncmp(e->name, "aten::", 6) == 0 ? e->name + 6 : e->name;
    for (size_t k = 0; k < sizeof formulas / sizeof *formulas; k++)
        if (strcmp(name, formulas[k].name) == 0) {
            work.flops = formulas[k].flops(&c);
            break;
        }
    return work;
}
