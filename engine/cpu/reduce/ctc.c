/* ctc.c: connectionist temporal classification on the CPU: the sums over all alignments forwards
 * and backwards in time, in double and by logarithms (Graves et al. 2006, section 4), sequence by
 * sequence. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/ops/make/copy.h"

#include <math.h>

typedef struct job {
    int64_t steps, batch, classes, width, blank, states; /* states: 2 width + 1 */
    bool joined, finite;
    const double *log_probs;
    const int64_t *targets, *inputs, *lengths;
    double *loss, *alpha, *beta; /* beta: two rows for each sequence */
    double *dx;
    const double *g;
} job;

/* One sequence: its targets, and the class of each state (blanks lie between the targets). */
typedef struct sequence {
    const int64_t *targets;
    int64_t time, length, blank;
} sequence;

static int64_t class_of(const sequence *s, int64_t state) {
    return state % 2 ? s->targets[state / 2] : s->blank;
}
/* May a state be reached from the one two before it? Not over a blank between equals. */
static bool skips(const sequence *s, int64_t state) {
    return state > 1 && state % 2 && s->targets[state / 2] != s->targets[state / 2 - 1];
}

static sequence sequence_of(const job *j, int64_t n) {
    int64_t at = n * j->width;
    if (j->joined)
        for (int64_t k = at = 0; k < n; k++)
            at += j->lengths[k];
    return (sequence){j->targets + at, j->inputs[n], j->lengths[n], j->blank};
}

static double add_logs(double a, double b, double c) {
    double m = a > b ? a : b;
    m = m > c ? m : c;
    if (m == -INFINITY)
        return m;
    return m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

/* ---- what can be said of the arguments ---- */

static td_status check_sequence(const job *j, int64_t n, int64_t total) {
    int64_t time = j->inputs[n], length = j->lengths[n];
    if (time < 0 || time > j->steps)
        return td_fail(TD_EVALUE, "input_lengths: %lld at position %lld, expected 0 to %lld",
                       (long long)time, (long long)n + 1, (long long)j->steps);
    int64_t most = j->joined ? total : j->width;
    if (length < 0 || length > most)
        return td_fail(TD_EVALUE, "target_lengths: %lld at position %lld, expected 0 to %lld",
                       (long long)length, (long long)n + 1, (long long)most);
    return TD_OK;
}

static td_status check_targets(const job *j, int64_t n) {
    sequence s = sequence_of(j, n);
    for (int64_t k = 0; k < s.length; k++)
        if (s.targets[k] < 0 || s.targets[k] >= j->classes)
            return td_fail(TD_EINDEX, "target %lld of sequence %lld is not a class from 1 to %lld",
                           (long long)(s.targets[k] < 0 ? s.targets[k] : s.targets[k] + 1),
                           (long long)n + 1, (long long)j->classes);
    return TD_OK;
}

static td_status check_all(const job *j, int64_t ntargets) {
    int64_t total = 0;
    for (int64_t n = 0; n < j->batch; n++) {
        td_status status = check_sequence(j, n, ntargets);
        if (status)
            return status;
        total += j->lengths[n];
    }
    if (j->joined && total != ntargets)
        return td_fail(TD_EVALUE, "target_lengths add up to %lld, but there are %lld targets",
                       (long long)total, (long long)ntargets);
    for (int64_t n = 0; n < j->batch; n++) {
        td_status status = check_targets(j, n);
        if (status)
            return status;
    }
    return TD_OK;
}

/* ---- forwards ---- */

static void run_sequence(const job *j, int64_t n) {
    sequence s = sequence_of(j, n);
    int64_t states = 2 * s.length + 1, step = j->batch * j->classes;
    const double *lp = j->log_probs + n * j->classes;
    double *alpha = j->alpha + n * j->steps * j->states;
    for (int64_t k = 0; k < j->steps * j->states; k++)
        alpha[k] = -INFINITY;
    if (s.time == 0) {
        j->loss[n] = s.length ? INFINITY : 0;
        return;
    }
    for (int64_t k = 0; k < states && k < 2; k++)
        alpha[k] = lp[class_of(&s, k)];
    for (int64_t t = 1; t < s.time && !td_interrupt_requested(); t++) {
        const double *before = alpha + (t - 1) * j->states, *now = lp + t * step;
        for (int64_t k = 0; k < states; k++)
            alpha[t * j->states + k] =
                now[class_of(&s, k)] + add_logs(before[k], k ? before[k - 1] : -INFINITY,
                                                skips(&s, k) ? before[k - 2] : -INFINITY);
    }
    const double *last = alpha + (s.time - 1) * j->states + states;
    j->loss[n] = -add_logs(last[-1], s.length ? last[-2] : -INFINITY, -INFINITY);
}

static void run_sequences(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t n = begin; n < end; n++)
        run_sequence(ctx, n);
}

/* ---- backwards ---- */

/* What state k is followed by, from the log probabilities `after` of the endings one step later. */
static double endings(const sequence *s, const double *after, int64_t states, int64_t k) {
    return add_logs(after[k], k + 1 < states ? after[k + 1] : -INFINITY,
                    k + 2 < states && skips(s, k + 2) ? after[k + 2] : -INFINITY);
}

/* dx = (p - probability that this class is passed at this time) g, at one time. */
static void step_gradient(const job *j, const sequence *s, int64_t n, int64_t t,
                          const double *beta) {
    int64_t row = (t * j->batch + n) * j->classes, states = 2 * s->length + 1;
    const double *lp = j->log_probs + row, *alpha = j->alpha + (n * j->steps + t) * j->states;
    double *dx = j->dx + row;
    for (int64_t c = 0; c < j->classes; c++)
        dx[c] = exp(lp[c]);
    for (int64_t k = 0; k < states; k++) {
        int64_t c = class_of(s, k);
        if (alpha[k] != -INFINITY && beta[k] != -INFINITY)
            dx[c] -= exp(alpha[k] + beta[k] - lp[c] + j->loss[n]);
    }
    for (int64_t c = 0; c < j->classes; c++)
        dx[c] *= j->g[n];
}

static void back_sequence(const job *j, int64_t n) {
    sequence s = sequence_of(j, n);
    int64_t states = 2 * s.length + 1, step = j->batch * j->classes;
    double *rows = j->beta + n * 2 * j->states;
    bool none = isinf(j->loss[n]); /* no alignment fits: there is no slope */
    for (int64_t t = j->steps - 1; t >= 0 && !td_interrupt_requested(); t--) {
        const double *lp = j->log_probs + t * step + n * j->classes;
        double *beta = rows + t % 2 * j->states, *after = rows + (t + 1) % 2 * j->states;
        if (t >= s.time || none) {
            for (int64_t c = 0; c < j->classes; c++)
                j->dx[t * step + n * j->classes + c] = t < s.time && !j->finite ? NAN : 0;
            continue;
        }
        for (int64_t k = 0; k < states; k++)
            beta[k] = lp[class_of(&s, k)] + (t < s.time - 1   ? endings(&s, after, states, k)
                                             : k + 2 < states ? -INFINITY
                                                              : 0);
        step_gradient(j, &s, n, t, beta);
    }
}

static void back_sequences(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t n = begin; n < end; n++)
        back_sequence(ctx, n);
}

/* ---- the two functions ---- */

/* Row-major forms of the inputs that both directions read. */
static td_status read_inputs(job *j, td_tensor *const *inputs, td_tensor **own) {
    const td_tensor *log_probs = inputs[0];
    td_status status = td_contiguous_as(inputs[0], TD_F64, &own[0]);
    for (int k = 1; k < 4 && status == TD_OK; k++)
        status = td_contiguous_as(inputs[k], TD_I64, &own[k]);
    if (status)
        return status;
    j->steps = log_probs->sizes[0];
    j->batch = log_probs->sizes[1];
    j->classes = log_probs->sizes[2];
    j->states = 2 * j->width + 1;
    j->log_probs = own[0]->data;
    j->targets = own[1]->data;
    j->inputs = own[2]->data;
    j->lengths = own[3]->data;
    return TD_OK;
}

static void release_all(td_tensor **own, int n) {
    for (int k = 0; k < n; k++)
        td_release(own[k]);
}

td_status td_cpu_ctc(const td_ctc_plan *plan) {
    td_tensor *own[5] = {NULL};
    job j = {.width = plan->width, .blank = plan->blank, .joined = plan->joined};
    td_status status = TD_OK;
    TD_TRY(read_inputs(&j, plan->tensors + 2, own));
    TD_TRY(check_all(&j, plan->targets->numel));
    TD_TRY(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 1, &j.batch, &own[4]));
    j.loss = own[4]->data;
    j.alpha = plan->alpha->data;
    TD_TRY(td_parallel_for(j.batch, 64 * j.steps * j.states, run_sequences, &j));
    TD_TRY(td_copy_into(plan->loss, own[4]));
done:
    release_all(own, 5);
    return status;
}

td_status td_cpu_ctc_backward(const td_ctc_backward_plan *plan) {
    td_tensor *own[9] = {NULL};
    job j = {
        .width = plan->width, .blank = plan->blank, .joined = plan->joined, .finite = plan->finite};
    td_status status = TD_OK;
    TD_TRY(read_inputs(&j, plan->tensors + 2, own));
    TD_TRY(td_contiguous_as(plan->g, TD_F64, &own[4]));
    TD_TRY(td_contiguous_as(plan->loss, TD_F64, &own[5]));
    TD_TRY(td_contiguous_as(plan->alpha, TD_F64, &own[6]));
    const int64_t sizes[3] = {j.batch, 2, j.states};
    TD_TRY(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 3, sizes, &own[7]));
    TD_TRY(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 3, plan->log_probs->sizes, &own[8]));
    j.g = own[4]->data;
    j.loss = own[5]->data;
    j.alpha = own[6]->data;
    j.beta = own[7]->data;
    j.dx = own[8]->data;
    TD_TRY(td_parallel_for(j.batch, 64 * j.steps * (j.states + j.classes), back_sequences, &j));
    TD_TRY(td_copy_into(plan->dx, own[8]));
done:
    release_all(own, 9);
    return status;
}
