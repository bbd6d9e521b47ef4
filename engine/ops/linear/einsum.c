/* einsum.c: sums of products over named dims. Operands are brought to one order of dims, one dim
 * for each label; pairs are then contracted as batches of matrices. Knows no dtypes: products and
 * sums say what they take. */
#include "engine/core/memory.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "products"

/* ---- two tensors of the same dims ---- */

enum { IN_BOTH, IN_LEFT, IN_RIGHT, SUMMED, GROUPS };

/* Which dims are in which group, in their order; a dim that only one of the two has is of size 1
 * in the other. */
typedef struct pairing {
    int n[GROUPS];
    int64_t dims[GROUPS][TD_MAX_DIMS], size[GROUPS];
} pairing;

static void add_dim(pairing *p, int group, int d, int64_t size) {
    p->dims[group][p->n[group]++] = d;
    p->size[group] *= size;
}

static void sort_dims(const td_tensor *a, const td_tensor *b, uint32_t summed, pairing *p) {
    *p = (pairing){.size = {1, 1, 1, 1}};
    for (int d = 0; d < a->ndim; d++) {
        bool left = a->sizes[d] != 1, right = b->sizes[d] != 1;
        int group = summed >> d & 1  ? SUMMED
                    : left && !right ? IN_LEFT
                    : right && !left ? IN_RIGHT
                                     : IN_BOTH;
        add_dim(p, group, d, left ? a->sizes[d] : b->sizes[d]);
    }
}

/* x's dims in the order of three groups, those that x lacks last, joined to a batch of matrices. */
static td_status as_matrices(td_tensor *x, const pairing *p, int rows, int columns, int none,
                             td_tensor **out) {
    const int order[GROUPS] = {IN_BOTH, rows, columns, none};
    const int64_t sizes[3] = {p->size[IN_BOTH], p->size[rows], p->size[columns]};
    int64_t dims[TD_MAX_DIMS];
    td_tensor *y = NULL;
    int n = 0;
    for (int k = 0; k < GROUPS; k++) {
        memcpy(dims + n, p->dims[order[k]], sizeof(int64_t) * (size_t)p->n[order[k]]);
        n += p->n[order[k]];
    }
    td_status status = TD_APPLY(&y, permute, TD_T(x), TD_INTS(n, dims));
    if (status == TD_OK)
        status = TD_APPLY(out, reshape, TD_T(y), TD_INTS(3, sizes));
    td_release(y);
    return status;
}

/* Sum x over the summed dims that the other lacks. */
static td_status sum_alone(td_tensor **x, const td_tensor *other, uint32_t summed) {
    int64_t dims[TD_MAX_DIMS];
    int n = 0;
    td_status status = TD_OK;
    for (int d = 0; d < (*x)->ndim; d++)
        if (summed >> d & 1 && (*x)->sizes[d] != 1 && other->sizes[d] == 1)
            dims[n++] = d;
    if (n)
        TD_STEP(x, sum, TD_T(*x), TD_INTS(n, dims), TD_B(true), TD_DTYPE((td_dtype)(*x)->dtype));
done:
    return status;
}

static td_status check_pair(const td_tensor *a, const td_tensor *b) {
    char ta[TD_SHAPE_TEXT], tb[TD_SHAPE_TEXT];
    for (int d = 0; d < a->ndim; d++)
        if (a->sizes[d] != b->sizes[d] && a->sizes[d] != 1 && b->sizes[d] != 1)
            return td_fail(TD_ESHAPE, "operands of shapes %s and %s don't broadcast",
                           td_tensor_shape_text(a, ta), td_tensor_shape_text(b, tb));
    return TD_OK;
}

/* The sum over `summed` of a * b, of as many dims; the summed ones stay as dims of size 1. */
static td_status sum_product(td_tensor *left, td_tensor *right, uint32_t summed, td_tensor **out) {
    td_tensor *a = td_retain(left), *b = td_retain(right), *x = NULL, *y = NULL;
    int64_t sizes[TD_MAX_DIMS], back[TD_MAX_DIMS];
    pairing p;
    int n = 0;
    td_status status = TD_OK;
    TD_TRY(check_pair(a, b));
    TD_TRY(sum_alone(&a, b, summed));
    TD_TRY(sum_alone(&b, a, summed));
    sort_dims(a, b, summed, &p);
    if (p.n[SUMMED] == 0 || p.size[SUMMED] == 1) {
        status = TD_APPLY(out, mul, TD_T(a), TD_T(b));
        goto done;
    }
    TD_TRY(as_matrices(a, &p, IN_LEFT, SUMMED, IN_RIGHT, &x));
    TD_TRY(as_matrices(b, &p, SUMMED, IN_RIGHT, IN_LEFT, &y));
    TD_STEP(&x, bmm, TD_T(x), TD_T(y));
    for (int group = 0; group < GROUPS; group++)
        for (int k = 0; k < p.n[group]; k++) {
            int64_t d = p.dims[group][k];
            sizes[n] = group == SUMMED ? 1 : a->sizes[d] != 1 ? a->sizes[d] : b->sizes[d];
            back[d] = n++;
        }
    TD_STEP(&x, reshape, TD_T(x), TD_INTS(n, sizes));
    TD_TRY(TD_APPLY(out, permute, TD_T(x), TD_INTS(n, back)));
done:
    td_release(a);
    td_release(b);
    td_release(x);
    td_release(y);
    return status;
}

/* ---- equations ---- */

enum { LETTERS = 52, ELLIPSIS = LETTERS };

/* A subscript: labels in their order, ELLIPSIS for "...". */
typedef struct subscript {
    int n;
    uint8_t labels[TD_MAX_DIMS + 1];
} subscript;

typedef struct equation {
    subscript *inputs, output;
    bool arrow;
    int counts[LETTERS + 1]; /* in how many places of the inputs */
    int64_t sizes[LETTERS];  /* of the dims that a label names; 0: none yet, 1 fits every other */
    int place[LETTERS];      /* of a label among the dims of all, -1: none */
    int ellipsis, first;     /* dims that "..." stands for, at most; the place of its first */
    int ndim, kept;          /* dims of all; those of the result come first */
} equation;

static int label_of(char c) {
    return c >= 'a' && c <= 'z' ? 26 + c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}
static char letter_of(int label) {
    return (char)(label < 26 ? 'A' + label : 'a' + label - 26);
}

/* Up to a comma, an arrow or the end. */
static td_status read_subscript(const char **at, subscript *s) {
    const char *p = *at;
    s->n = 0;
    for (; *p && *p != ',' && strncmp(p, "->", 2); p++) {
        int label = *p == '.' ? ELLIPSIS : label_of(*p);
        if (*p == ' ')
            continue;
        if (label == ELLIPSIS && strncmp(p, "...", 3))
            return td_fail(TD_EVALUE, "a '.' that is not part of \"...\" in the equation");
        if (label < 0)
            return td_fail(TD_EVALUE, "letters, \"...\", ',' and \"->\" expected, got '%c'", *p);
        if (s->n > TD_MAX_DIMS)
            return td_fail(TD_EVALUE, "more than %d labels in a subscript", TD_MAX_DIMS);
        if (label == ELLIPSIS && memchr(s->labels, ELLIPSIS, (size_t)s->n))
            return td_fail(TD_EVALUE, "\"...\" stands twice in a subscript");
        s->labels[s->n++] = (uint8_t)label;
        p += label == ELLIPSIS ? 2 : 0;
    }
    *at = p;
    return TD_OK;
}

static td_status read_equation(const char *text, int noperands, equation *e) {
    int n = 0;
    for (;; text++) {
        if (n == noperands)
            return td_fail(TD_EVALUE,
                           "the equation has more subscripts than there are operands, %d",
                           noperands);
        td_status status = read_subscript(&text, &e->inputs[n++]);
        if (status)
            return status;
        if (*text != ',')
            break;
    }
    if (n != noperands)
        return td_fail(TD_EVALUE, "the equation has %d subscripts for %d operands", n, noperands);
    e->arrow = *text == '-';
    if (!e->arrow)
        return TD_OK;
    text += 2;
    td_status status = read_subscript(&text, &e->output);
    if (status == TD_OK && *text)
        status = td_fail(TD_EVALUE, "the output of the equation is one subscript");
    return status;
}

/* How many dims "..." stands for in a subscript of x; ESHAPE unless it has a label for each dim. */
static td_status count_labels(equation *e, const subscript *s, const td_tensor *x, int k) {
    int named = 0, dots = 0;
    for (int i = 0; i < s->n; i++) {
        named += s->labels[i] != ELLIPSIS;
        dots += s->labels[i] == ELLIPSIS;
        e->counts[s->labels[i]]++;
    }
    if (dots ? named > x->ndim : named != x->ndim)
        return td_fail(TD_ESHAPE, "operand %d has %d dims, its subscript names %d", k + 1, x->ndim,
                       named);
    if (x->ndim - named > e->ellipsis)
        e->ellipsis = x->ndim - named;
    return TD_OK;
}

/* A label names dims of one size in all operands. */
static td_status check_sizes(equation *e, const subscript *s, const td_tensor *x, int k) {
    int dots = x->ndim - (s->n - 1);
    for (int i = 0, d = 0; i < s->n; i++) {
        int label = s->labels[i];
        if (label == ELLIPSIS) {
            d += dots;
            continue;
        }
        int64_t *size = &e->sizes[label];
        if (*size > 1 && x->sizes[d] != 1 && x->sizes[d] != *size)
            return td_fail(TD_ESHAPE,
                           "'%c' names dims of different sizes: %lld in operand %d, %lld before",
                           letter_of(label), (long long)x->sizes[d], k + 1, (long long)*size);
        if (*size <= 1)
            *size = x->sizes[d];
        d++;
    }
    return TD_OK;
}

/* Without an arrow: "..." and then the labels that stand once, in the order of letters, capitals
 * first. */
static void imply_output(equation *e) {
    e->output.n = 0;
    if (e->counts[ELLIPSIS])
        e->output.labels[e->output.n++] = ELLIPSIS;
    for (int label = 0; label < LETTERS && e->output.n < TD_MAX_DIMS; label++)
        if (e->counts[label] == 1)
            e->output.labels[e->output.n++] = (uint8_t)label;
}

/* Places of labels: those of the output, then those that are summed. */
static td_status place_labels(equation *e) {
    bool dots = false;
    for (int label = 0; label < LETTERS; label++)
        e->place[label] = -1;
    for (int k = 0; k < e->output.n; k++) {
        int label = e->output.labels[k];
        if (label == ELLIPSIS) {
            e->first = e->ndim;
            e->ndim += e->ellipsis;
            dots = true;
            continue;
        }
        if (e->place[label] >= 0 || e->counts[label] == 0)
            return td_fail(TD_EVALUE, "the output names '%c', which %s", letter_of(label),
                           e->place[label] >= 0 ? "it names already" : "no operand has");
        e->place[label] = e->ndim++;
    }
    e->kept = e->ndim;
    if (!dots) {
        e->first = e->ndim;
        e->ndim += e->ellipsis;
    }
    for (int label = 0; label < LETTERS; label++)
        if (e->counts[label] && e->place[label] < 0)
            e->place[label] = e->ndim++;
    return e->ndim <= TD_MAX_DIMS ? TD_OK
                                  : td_fail(TD_EVALUE, "%d different dims, at most %d are possible",
                                            e->ndim, TD_MAX_DIMS);
}

/* ---- operands ---- */

/* A label that stands twice names a diagonal: the later dim goes, its place is the last one's. */
static td_status take_diagonal(td_tensor **x, int64_t *places, int *n, int first, int second) {
    char text[TD_SHAPE_TEXT];
    td_status status = TD_OK;
    if ((*x)->sizes[first] != (*x)->sizes[second])
        return td_fail(TD_ESHAPE, "a repeated label names dims of different sizes of shape %s",
                       td_tensor_shape_text(*x, text));
    TD_STEP(x, diagonal, TD_T(*x), TD_I(0), TD_I(first), TD_I(second));
    int64_t place = places[first];
    memmove(places + second, places + second + 1, sizeof(int64_t) * (size_t)(*n - second - 1));
    memmove(places + first, places + first + 1, sizeof(int64_t) * (size_t)(*n - first - 2));
    *n -= 1;
    places[*n - 1] = place;
done:
    return status;
}

/* The places of x's dims among those of all. */
static int places_of(const equation *e, const subscript *s, const td_tensor *x, int64_t *places) {
    int n = 0, dots = x->ndim - (s->n - 1);
    for (int i = 0; i < s->n; i++)
        if (s->labels[i] == ELLIPSIS)
            for (int k = 0; k < dots; k++)
                places[n++] = e->first + e->ellipsis - dots + k;
        else
            places[n++] = e->place[s->labels[i]];
    return n;
}

/* An operand with its dims in their places and dims of size 1 in the others. */
static td_status arrange(const equation *e, const subscript *s, td_tensor *operand,
                         td_tensor **out) {
    td_tensor *x = td_retain(operand);
    int64_t places[TD_MAX_DIMS], order[TD_MAX_DIMS];
    int n = places_of(e, s, x, places), m = 0;
    td_status status = TD_OK;
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            if (places[i] == places[k]) {
                TD_TRY(take_diagonal(&x, places, &n, i, k));
                i = -1;
                break;
            }
    for (int place = 0; place < e->ndim; place++)
        for (int k = 0; k < n; k++)
            if (places[k] == place)
                order[m++] = k;
    TD_STEP(&x, permute, TD_T(x), TD_INTS(n, order));
    for (int place = 0; place < e->ndim; place++) {
        bool there = false;
        for (int k = 0; k < n; k++)
            there |= places[k] == place;
        if (!there)
            TD_STEP(&x, unsqueeze, TD_T(x), TD_I(place));
    }
    *out = td_retain(x);
done:
    td_release(x);
    return status;
}

/* The summed dims that no operand from `next` on has. */
static uint32_t ready(const equation *e, td_tensor *const *operands, int next, int n) {
    uint32_t dims = 0;
    for (int d = e->kept; d < e->ndim; d++) {
        bool later = false;
        for (int k = next; k < n; k++)
            later |= operands[k]->sizes[d] != 1;
        dims |= later ? 0 : 1u << d;
    }
    return dims;
}

/* From left to right, each dim summed as soon as nobody else has it. */
static td_status contract(const equation *e, td_tensor **operands, int n, td_tensor **out) {
    td_tensor *y = td_retain(operands[0]);
    int64_t dims[TD_MAX_DIMS];
    int nsummed = 0;
    td_status status = TD_OK;
    for (int k = 1; k < n; k++) {
        td_tensor *next = NULL;
        TD_TRY(sum_product(y, operands[k], ready(e, operands, k + 1, n), &next));
        td_release(y);
        y = next;
    }
    for (int d = e->kept; d < e->ndim; d++)
        dims[nsummed++] = d;
    bool all = true;
    for (int k = 0; k < nsummed; k++)
        all &= y->sizes[dims[k]] == 1;
    if (nsummed && all && n > 1)
        TD_STEP(&y, squeeze, TD_T(y), TD_INTS(nsummed, dims));
    else if (nsummed)
        TD_STEP(&y, sum, TD_T(y), TD_INTS(nsummed, dims));
    *out = td_retain(y);
done:
    td_release(y);
    return status;
}

static td_status run_equation(equation *e, const char *text, td_value operands, td_tensor **list,
                              td_tensor **out) {
    td_status status = read_equation(text, operands.n, e);
    for (int k = 0; k < operands.n && status == TD_OK; k++)
        status = count_labels(e, &e->inputs[k], operands.tensors[k], k);
    if (status == TD_OK && !e->arrow)
        imply_output(e);
    if (status == TD_OK)
        status = place_labels(e);
    for (int k = 0; k < operands.n && status == TD_OK; k++)
        status = check_sizes(e, &e->inputs[k], operands.tensors[k], k);
    for (int k = 0; k < operands.n && status == TD_OK; k++)
        status = arrange(e, &e->inputs[k], operands.tensors[k], &list[k]);
    return status ? status : contract(e, list, operands.n, out);
}

static td_status run_einsum(td_call *call) {
    td_value operands = call->args[1];
    equation e = {.inputs = NULL};
    if (operands.n == 0)
        return td_fail(TD_EVALUE, "at least one operand expected");
    e.inputs = td_calloc((size_t)operands.n, sizeof *e.inputs);
    td_tensor **list = td_calloc((size_t)operands.n, sizeof *list);
    td_status status = e.inputs && list ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    if (status == TD_OK)
        status = run_equation(&e, call->args[0].string, operands, list, &call->out[0]);
    for (int k = 0; list && k < operands.n; k++)
        td_release(list[k]);
    td_free(list);
    td_free(e.inputs);
    return status;
}

/* ---- tensordot ---- */

/* The dims that are contracted: the last of a and the first of b, or those given. */
static td_status contracted_dims(const td_call *call, int *n, int *left, int *right) {
    const td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor;
    td_value ours = call->args[2], theirs = call->args[3];
    if (ours.kind == TD_KIND_INT) {
        if (ours.i < 0 || ours.i > a->ndim || ours.i > b->ndim)
            return td_fail(TD_EVALUE, "%lld dims can't be contracted of tensors of %d and %d dims",
                           (long long)ours.i, a->ndim, b->ndim);
        *n = (int)ours.i;
        for (int k = 0; k < *n; k++) {
            left[k] = a->ndim - *n + k;
            right[k] = k;
        }
        return TD_OK;
    }
    if (td_is_nil(theirs) || theirs.n != ours.n || ours.n > TD_MAX_DIMS)
        return td_fail(TD_EVALUE, "%d dims of the first tensor given and %d of the second", ours.n,
                       td_is_nil(theirs) ? 0 : theirs.n);
    *n = ours.n;
    for (int k = 0; k < *n; k++) {
        td_status status = td_wrap_dim(ours.ints[k], a->ndim, &left[k]);
        if (status == TD_OK)
            status = td_wrap_dim(theirs.ints[k], b->ndim, &right[k]);
        if (status)
            return status;
    }
    return TD_OK;
}

/* The order that brings the listed dims to the end, or to the front, and how large both parts are;
 * sizes of the others are appended to the result's. */
static td_status part_dims(const td_tensor *x, int n, const int *listed, bool end, int64_t *order,
                           td_meta *result, int64_t *free_size) {
    uint32_t taken = 0;
    int others = x->ndim - n, at = end ? 0 : n;
    *free_size = 1;
    for (int k = 0; k < n; k++) {
        if (taken >> listed[k] & 1)
            return td_fail(TD_EVALUE, "dim %d is given twice", listed[k] + 1);
        taken |= 1u << listed[k];
        order[end ? others + k : k] = listed[k];
    }
    for (int d = 0; d < x->ndim; d++) {
        if (taken >> d & 1)
            continue;
        order[at++] = d;
        if (result->ndim == TD_MAX_DIMS)
            return td_fail(TD_ESHAPE, "the result would have more than %d dims", TD_MAX_DIMS);
        result->sizes[result->ndim++] = x->sizes[d];
        *free_size *= x->sizes[d];
    }
    return TD_OK;
}

/* x summed over contracted dims of which the other has one place, since that is spread over them.
 */
static td_status sum_beside_ones(td_tensor *x, const td_tensor *other, int n, const int *ours,
                                 const int *theirs, td_tensor **out) {
    int64_t dims[TD_MAX_DIMS];
    int summed = 0;
    for (int k = 0; k < n; k++) {
        int64_t size = x->sizes[ours[k]], beside = other->sizes[theirs[k]];
        if (size != beside && size != 1 && beside != 1)
            return td_fail(TD_ESHAPE, "dim %d has size %lld, dim %d of the other %lld", ours[k] + 1,
                           (long long)size, theirs[k] + 1, (long long)beside);
        if (size != 1 && beside == 1)
            dims[summed++] = ours[k];
    }
    if (summed)
        return TD_APPLY(out, sum, TD_T(x), TD_INTS(summed, dims), TD_B(true),
                        TD_DTYPE((td_dtype)x->dtype));
    *out = td_retain(x);
    return TD_OK;
}

static td_status run_tensordot(td_call *call) {
    td_tensor *a = NULL, *b = call->args[1].tensor, *x = NULL, *y = NULL;
    int n = 0, left[TD_MAX_DIMS], right[TD_MAX_DIMS];
    int64_t order_a[TD_MAX_DIMS], order_b[TD_MAX_DIMS], rows, columns, inner = 1;
    td_meta result = {.ndim = 0};
    td_status status = TD_OK;
    TD_TRY(contracted_dims(call, &n, left, right));
    TD_TRY(sum_beside_ones(call->args[0].tensor, b, n, left, right, &a));
    TD_TRY(sum_beside_ones(b, a, n, right, left, &y));
    TD_TRY(part_dims(a, n, left, true, order_a, &result, &rows));
    TD_TRY(part_dims(y, n, right, false, order_b, &result, &columns));
    for (int k = 0; k < n; k++)
        inner *= a->sizes[left[k]];
    TD_TRY(TD_APPLY(&x, permute, TD_T(a), TD_INTS(a->ndim, order_a)));
    TD_STEP(&x, reshape, TD_T(x), TD_INTS(2, ((const int64_t[]){rows, inner})));
    TD_STEP(&y, permute, TD_T(y), TD_INTS(b->ndim, order_b));
    TD_STEP(&y, reshape, TD_T(y), TD_INTS(2, ((const int64_t[]){inner, columns})));
    TD_STEP(&x, mm, TD_T(x), TD_T(y));
    TD_TRY(TD_APPLY(&call->out[0], reshape, TD_T(x), TD_INTS(result.ndim, result.sizes)));
done:
    td_release(a);
    td_release(x);
    td_release(y);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(einsum) = {
    .schema = "(str equation, Tensor... operands) -> Tensor",
    .doc =
        "Sums of products by Einstein's convention: \"bij,bjk->bik\"; \"...\" stands for any dims.",
    .shapes = "operands {(sizes...)} -> (result...); sizes: one for each letter of the operand in "
              "the equation; result: one for each letter behind the arrow",
    .takes = "floating and integers, one dtype",
    .notes = "Letters name dims, ... stands for those without a name; a letter twice in one "
             "operand is its diagonal. A letter has one size, or 1 in places. Without -> the "
             "result has the letters that stand once, in order of the alphabet.",
    .run = run_einsum,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(tensordot) = {
    .schema = "(Tensor a, Tensor b, int|dim[] dims=2, dim[]? dims_b=nil) -> Tensor",
    .doc = "Products summed over so many of the last dims of a and the first of b, or over dims of "
           "both.",
    .shapes = "a (left...), b (right...) -> (sizes...); sizes: left without the summed dims, then "
              "right without them",
    .takes = "floating and integers, one dtype",
    .run = run_tensordot,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE},
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
