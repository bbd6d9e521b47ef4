/* recurrent.c: all times of a recurrent layer: for each a product with the state, then the gates of
 * each row, from the sums to the new state while they are in the first-level cache. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/recurrent_times.h"

enum {
    UNITS = 256, /* of a row that are taken at a time */
    GATES = 4,   /* that are kept, of all but Elman's cells */
    COST = 4     /* of a gate of a unit, in additions */
};

/* Room for a unit's values in any dtype of computation. */
typedef double lanes[UNITS];

/* One time. All are row-major. */
typedef struct moment {
    const td_recurrent_plan *p;
    td_dtype dtype, kept, wide; /* of sums; of results; of what is computed */
    int64_t units, width;       /* of a state's row, and of one of x and of sums */
    const char *x, *sums, *before, *cell_before;
    char *state, *cell, *gates;
    char *factor; /* the state in the dtype of w; NULL: `state` is in it */
} moment;

static void compute(const moment *m, int primitive, int64_t n, void *out, const void *a,
                    const void *b) {
    td_cpu->pointwise->primitive[primitive][m->wide](n, out, a, b, NULL, 0);
}

/* n elements as they are computed with: where they lie, or in the room. */
static const void *read(const moment *m, td_dtype from, const char *src, int64_t at, int64_t n,
                        void *room) {
    src += at * (int64_t)td_dtype_size(from);
    if (from == m->wide)
        return src;
    td_block_read(m->wide, room, from, src, 1, n);
    return room;
}

static void write(const moment *m, td_dtype to, char *dst, int64_t at, const void *from,
                  int64_t n) {
    td_block_write(to, dst + at * (int64_t)td_dtype_size(to), 1, m->wide, from, n);
}

/* out = what x and the state give to a gate of a row's units from `unit` on. */
static void add_sums(const moment *m, int64_t row, int gate, int64_t unit, int64_t n, void *out) {
    int64_t at = row * m->width + gate * m->units + unit;
    lanes a, b;
    compute(m, TD_PW_add, n, out, read(m, m->dtype, m->x, at, n, a),
            read(m, m->dtype, m->sums, at, n, b));
}

static void keep_gates(const moment *m, int64_t row, int64_t unit, int64_t n, lanes *gates) {
    for (int k = 0; k < GATES; k++)
        write(m, m->kept, m->gates, (row * GATES + k) * m->units + unit, gates[k], n);
}

static void elman_units(const moment *m, int64_t row, int64_t unit, int64_t n, void *state) {
    add_sums(m, row, 0, unit, n, state);
    compute(m, m->p->rectified ? TD_PW_relu : TD_PW_tanh, n, state, state, NULL);
}

static void gru_units(const moment *m, int64_t row, int64_t unit, int64_t n, void *state) {
    lanes gates[GATES], room;
    double *reset = gates[0], *update = gates[1], *made = gates[2], *given = gates[3];
    int64_t at = row * m->width + 2 * m->units + unit;
    for (int k = 0; k < 2; k++) {
        add_sums(m, row, k, unit, n, gates[k]);
        compute(m, TD_PW_sigmoid, n, gates[k], gates[k], NULL);
    }
    compute(m, TD_PW_mul, n, given, reset, read(m, m->dtype, m->sums, at, n, room));
    compute(m, TD_PW_add, n, made, read(m, m->dtype, m->x, at, n, room), given);
    compute(m, TD_PW_tanh, n, made, made, NULL);
    keep_gates(m, row, unit, n, gates);
    const void *before = read(m, m->kept, m->before, row * m->units + unit, n, room);
    compute(m, TD_PW_sub, n, state, before, made);
    compute(m, TD_PW_mul, n, state, update, state);
    compute(m, TD_PW_add, n, state, made, state);
}

static void lstm_units(const moment *m, int64_t row, int64_t unit, int64_t n, void *state) {
    lanes gates[GATES], cell, room;
    double *input = gates[0], *forget = gates[1], *new = gates[2], *output = gates[3];
    int64_t at = row * m->units + unit;
    for (int k = 0; k < GATES; k++) {
        add_sums(m, row, k, unit, n, gates[k]);
        compute(m, k == 2 ? TD_PW_tanh : TD_PW_sigmoid, n, gates[k], gates[k], NULL);
    }
    keep_gates(m, row, unit, n, gates);
    compute(m, TD_PW_mul, n, cell, forget, read(m, m->kept, m->cell_before, at, n, room));
    compute(m, TD_PW_mul, n, room, input, new);
    compute(m, TD_PW_add, n, cell, cell, room);
    write(m, m->kept, m->cell, at, cell, n);
    compute(m, TD_PW_tanh, n, room, cell, NULL);
    compute(m, TD_PW_mul, n, state, output, room);
}

static void run_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    static void (*const run[])(const moment *, int64_t, int64_t, int64_t, void *) = {
        [TD_CELL_ELMAN] = elman_units, [TD_CELL_GRU] = gru_units, [TD_CELL_LSTM] = lstm_units};
    const moment *m = ctx;
    lanes state;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        for (int64_t unit = 0, n; unit < m->units; unit += n) {
            n = m->units - unit < UNITS ? m->units - unit : UNITS;
            run[m->p->kind](m, row, unit, n, state);
            write(m, m->kept, m->state, row * m->units + unit, state, n);
            if (m->factor)
                write(m, m->dtype, m->factor, row * m->units + unit, state, n);
        }
}

static bool takes(const td_recurrent_plan *p) {
    td_dtype dtype = (td_dtype)p->w->dtype, kept = (td_dtype)p->states->dtype;
    return p->x->dtype == dtype && (!p->bias || p->bias->dtype == dtype) && p->states->numel > 0 &&
           td_dtype_is_float(dtype) && (kept == dtype || kept == td_dtype_compute(dtype));
}

/* Of a layer's tensors what each time reads, new, and room for the sums and for a factor. */
typedef struct layer {
    td_tensor *x, *h, *cell, *bias, *sums, *factor;
} layer;

static td_status open_layer(const td_recurrent_plan *p, layer *l) {
    td_dtype dtype = (td_dtype)p->w->dtype, kept = (td_dtype)p->states->dtype;
    const int64_t sizes[] = {p->x->sizes[1], p->x->sizes[2]};
    td_status status = TD_OK;
    TD_TRY(td_contiguous(p->x, &l->x));
    TD_TRY(td_contiguous_as(p->h, kept, &l->h));
    TD_TRY(td_contiguous_or_none(p->cell, kept, &l->cell));
    TD_TRY(td_contiguous_or_none(p->bias, dtype, &l->bias));
    TD_TRY(td_tensor_empty(dtype, TD_DEVICE_CPU, 2, sizes, &l->sums));
    if (kept != dtype) {
        TD_TRY(td_tensor_empty(dtype, TD_DEVICE_CPU, 2, l->h->sizes, &l->factor));
        status = td_copy_into(l->factor, l->h);
    }
done:
    return status;
}

static void close_layer(layer *l) {
    td_release(l->x);
    td_release(l->h);
    td_release(l->cell);
    td_release(l->bias);
    td_release(l->sums);
    td_release(l->factor);
}

/* The sums of a state, a row-major tensor of the states before. */
static td_status multiply(const td_recurrent_plan *p, const layer *l, td_tensor *state) {
    const int64_t units = p->w->sizes[1], width = p->w->sizes[0];
    const td_product_plan product = {.out = l->sums,
                                     .a = state,
                                     .b = p->w,
                                     .bias = l->bias,
                                     .batch = 1,
                                     .m = p->states->sizes[1],
                                     .n = width,
                                     .k = units,
                                     .as_out = {0, width, 1},
                                     .as_a = {0, units, 1},
                                     .as_b = {0, p->w->strides[1], p->w->strides[0]}};
    return td_cpu_product(&product);
}

td_status td_cpu_recurrent(const td_recurrent_plan *p) {
    if (!takes(p))
        return TD_OK;
    int64_t times = p->x->sizes[0], units = p->w->sizes[1];
    const int64_t strides[] = {units, 1};
    layer l = {.x = NULL};
    td_tensor *state = NULL;
    td_status status = TD_OK;
    moment m = {.p = p, .dtype = (td_dtype)p->w->dtype, .kept = (td_dtype)p->states->dtype};
    m.wide = td_dtype_compute(m.kept);
    m.units = units;
    m.width = p->w->sizes[0];
    TD_TRY(open_layer(p, &l));
    m.before = l.h->data;
    m.cell_before = l.cell ? l.cell->data : NULL;
    m.sums = l.sums->data;
    m.factor = l.factor ? l.factor->data : NULL;
    state = td_retain(l.factor ? l.factor : l.h);
    for (int64_t k = 0; k < times; k++) {
        int64_t t = td_time_at(p->backwards, times, k);
        TD_TRY(td_interrupt_check());
        TD_TRY(multiply(p, &l, state));
        m.x = td_part_at(l.x, t);
        m.state = td_part_at(p->states, t);
        m.cell = td_part_at(p->cells, t);
        m.gates = td_part_at(p->gates, t);
        TD_TRY(td_parallel_for(l.h->sizes[0], COST * m.width, run_rows, &m));
        m.before = m.state;
        m.cell_before = m.cell;
        if (l.factor)
            continue;
        td_release(state);
        TD_TRY(td_tensor_view(p->states, 2, l.h->sizes, strides, t * p->states->sizes[1] * units,
                              &state));
    }
    *p->done = true;
done:
    td_release(state);
    close_layer(&l);
    return status;
}
