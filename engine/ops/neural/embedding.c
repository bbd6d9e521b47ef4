/* embedding.c: rows of a table by their numbers, one by one or reduced by bags. Composites of
 * indexing; what they add is the gradient of rows that are padding, or that are named often, and
 * rows that are made shorter when they are read. */
#include "engine/ops/element_checks.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/shape/shape.h"

#include <string.h>

#define TD_FAMILY "embedding"

/* ---- checks ---- */

static td_refusal negative_row = {
    {"lt(x, 0)", NULL}, TD_EINDEX, "rows count from 1: an index must not be negative"};

static td_status check_table(const td_tensor *weight, const td_tensor *index) {
    td_status status = td_check_ndim(weight, "weight", 2);
    if (status == TD_OK)
        status = td_check_index(index);
    return status || !index->numel ? status : td_refuse(&negative_row, index);
}

/* The row whose gradient is 0, -1: none. */
static td_status read_padding(td_value padding, const td_tensor *weight, int64_t *row) {
    int64_t n = weight->sizes[0];
    *row = -1;
    if (td_is_nil(padding))
        return TD_OK;
    *row = padding.i < 0 ? padding.i + n : padding.i;
    if (*row < 0 || *row >= n)
        return td_fail(TD_EINDEX, "padding_idx %lld is not a row from 1 to %lld",
                       (long long)(padding.i < 0 ? padding.i : padding.i + 1), (long long)n);
    return TD_OK;
}

/* Make the rows that are named no longer than max_norm, in place and unrecorded. */
static td_status shorten(td_tensor *weight, td_value index, td_value max_norm, td_value type) {
    td_tensor *table = NULL, *flat = NULL, *rows = NULL, *length = NULL;
    const int64_t all = -1;
    td_status status = TD_OK;
    if (td_is_nil(max_norm) || index.tensor->numel == 0)
        return TD_OK;
    TD_TRY(td_tensor_alias(weight, &table));
    TD_TRY(TD_APPLY(&flat, reshape, index, TD_INTS(1, &all)));
    TD_TRY(TD_APPLY(&rows, index_select, TD_T(table), TD_I(0), TD_T(flat)));
    TD_TRY(TD_APPLY(&length, shortening, TD_T(rows), max_norm, type));
    TD_STEP(&rows, mul, TD_T(rows), TD_T(length));
    status = TD_APPLY_INPLACE(index_copy, TD_T(table), TD_I(0), TD_T(flat), TD_T(rows));
done:
    td_release(table);
    td_release(flat);
    td_release(rows);
    td_release(length);
    return status;
}

/* ---- rows ---- */

static td_status run_embedding(td_call *call) {
    const td_value *a = call->args;
    int64_t padding;
    td_status status = check_table(a[0].tensor, a[1].tensor);
    if (status == TD_OK)
        status = read_padding(a[2], a[0].tensor, &padding);
    if (status == TD_OK)
        status = shorten(a[0].tensor, a[1], a[5], a[6]);
    return status ? status
                  : TD_APPLY(&call->out[0], embedding_rows, a[0], a[1], TD_I(padding), a[3], a[4]);
}

/* ---- bags ---- */

enum { WEIGHT, INDEX, OFFSETS, MODE, SAMPLES, LAST, PADDING, MAX_NORM, TYPE, BY_FREQ, SPARSE };

static td_status check_bags(const td_value *a) {
    const td_tensor *index = a[INDEX].tensor, *samples = td_arg_tensor(a[SAMPLES]);
    const char *mode = a[MODE].string;
    char shape[TD_SHAPE_TEXT];
    if (strcmp(mode, "sum") != 0 && strcmp(mode, "mean") != 0 && strcmp(mode, "max") != 0)
        return td_fail(TD_EVALUE, "mode is sum, mean or max, got %s", mode);
    if (index->ndim != 1 && index->ndim != 2)
        return td_fail(TD_ESHAPE, "index must have 1 or 2 dims, got shape %s",
                       td_tensor_shape_text(index, shape));
    if (index->ndim == 2 && !td_is_nil(a[OFFSETS]))
        return td_fail(TD_EVALUE, "an index of 2 dims has a bag in each row: no offsets");
    if (index->ndim == 1 && (td_is_nil(a[OFFSETS]) || a[OFFSETS].tensor->ndim != 1))
        return td_fail(TD_EVALUE, "an index of 1 dim needs offsets, a row of them");
    if (a[SPARSE].b && !strcmp(mode, "max"))
        return td_fail(TD_EVALUE, "mode max has no sparse gradients");
    if (samples && strcmp(mode, "sum") != 0)
        return td_fail(TD_EVALUE, "per_sample_weights are for mode sum, not %s", mode);
    if (samples)
        return td_check_same_shape(samples, "per_sample_weights", index, "index");
    return TD_OK;
}

/* Offsets begin at 0 and do not pass the end. */
static td_status check_offsets(const td_tensor *offsets, int64_t n) {
    td_tensor *one = NULL;
    int64_t first = 0, last = 0;
    td_status status = TD_OK;
    if (offsets->numel == 0)
        return n ? td_fail(TD_EVALUE, "offsets are empty, but there are indices") : TD_OK;
    if (!td_has_elements(offsets))
        return TD_OK;
    TD_TRY(TD_APPLY(&one, select, TD_T((td_tensor *)offsets), TD_I(0), TD_I(0)));
    TD_TRY(td_tensor_item_int(one, &first));
    td_release(one);
    one = NULL;
    TD_TRY(TD_APPLY(&one, amax, TD_T((td_tensor *)offsets)));
    TD_TRY(td_tensor_item_int(one, &last));
    if (first != 0)
        status =
            td_fail(TD_EVALUE, "the first bag must begin at 1, got %lld", (long long)first + 1);
    else if (last > n)
        status = td_fail(TD_EVALUE, "a bag begins at %lld, behind the %lld indices",
                         (long long)last + 1, (long long)n);
done:
    td_release(one);
    return status;
}

/* The bag of each of n indices, and how many bags there are. */
static td_status number_bags(const td_value *a, int64_t n, td_tensor **bag, int64_t *bags) {
    td_tensor *index = a[INDEX].tensor, *offsets = td_arg_tensor(a[OFFSETS]);
    td_status status = TD_OK;
    *bags = offsets ? offsets->numel - a[LAST].b : index->sizes[0];
    if (*bags < 0)
        return td_fail(TD_EVALUE, "include_last_offset needs at least one offset");
    if (!offsets)
        return TD_APPLY(bag, bags_of_rows, a[INDEX]);
    TD_TRY(check_offsets(offsets, n));
    TD_TRY(TD_APPLY(bag, narrow, TD_T(offsets), TD_I(0), TD_I(0), TD_I(*bags)));
    TD_STEP(bag, bags_of_offsets, TD_T(*bag), TD_I(n));
done:
    return status;
}

/* Largest elements: every bag becomes a row of as many places as the longest has. */
static td_status largest(const td_value *a, td_tensor *flat, td_tensor *bag, int64_t bags,
                         int64_t padding, td_tensor **out) {
    td_tensor *place = NULL, *most = NULL;
    int64_t longest = 0;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&place, places_in_bags, TD_T(bag)));
    TD_TRY(TD_APPLY(&most, amax, TD_T(place)));
    if (td_may_look(most))
        TD_TRY(td_tensor_item_int(most, &longest));
    status = TD_APPLY(out, bag_largest, a[WEIGHT], TD_T(flat), TD_T(bag), TD_T(place), TD_I(bags),
                      TD_I(longest + 1), TD_I(padding), a[BY_FREQ]);
done:
    td_release(place);
    td_release(most);
    return status;
}

static td_status run_embedding_bag(td_call *call) {
    const td_value *a = call->args;
    td_tensor *flat = NULL, *bag = NULL, *samples = NULL;
    int64_t padding, bags, n = a[INDEX].tensor->numel;
    td_status status = TD_OK;
    TD_TRY(check_table(a[WEIGHT].tensor, a[INDEX].tensor));
    TD_TRY(td_check_float((td_dtype)a[WEIGHT].tensor->dtype));
    TD_TRY(check_bags(a));
    TD_TRY(read_padding(a[PADDING], a[WEIGHT].tensor, &padding));
    TD_TRY(shorten(a[WEIGHT].tensor, a[INDEX], a[MAX_NORM], a[TYPE]));
    TD_TRY(number_bags(a, n, &bag, &bags));
    TD_TRY(TD_APPLY(&flat, reshape, a[INDEX], TD_INTS(1, &n)));
    if (!td_is_nil(a[SAMPLES]))
        TD_TRY(TD_APPLY(&samples, reshape, a[SAMPLES], TD_INTS(1, &n)));
    if (!strcmp(a[MODE].string, "max") && n > 0)
        status = largest(a, flat, bag, bags, padding, &call->out[0]);
    else
        status = TD_APPLY(&call->out[0], bag_sums, a[WEIGHT], TD_T(flat), TD_T(bag),
                          td_tensor_or_nil(samples), TD_I(bags), TD_I(padding), a[BY_FREQ],
                          a[SPARSE], TD_B(!strcmp(a[MODE].string, "mean")),
                          TD_DTYPE(td_dtype_wide((td_dtype)a[WEIGHT].tensor->dtype)));
done:
    td_release(flat);
    td_release(bag);
    td_release(samples);
    return status;
}

/* ---- the table ---- */

#define PART(name, parameters, text, expression)                                                   \
    TD_OPERATOR(name) = {.schema = parameters " -> Tensor",                                        \
                         .doc = text,                                                              \
                         .formula = expression,                                                    \
                         .flags = TD_OP_INTERNAL}

TD_OPERATOR(embedding) = {
    .schema = "(Tensor weight, index Tensor index, index? padding_idx=nil, "
              "bool scale_grad_by_freq=false, bool sparse=false, *, float? max_norm=nil, "
              "float norm_type=2) -> Tensor",
    .doc = "The rows of a table that index names, made no longer than max_norm.",
    .shapes = "weight (V, D), index (...) -> (..., D)",
    .notes = "An index is from 1 to V: 0, beyond and negative ones are errors. The row padding_idx "
             "gets no gradient; scale_grad_by_freq divides a row's by how often it is asked for. "
             "max_norm writes: rows that are longer are shortened in weight.",
    .run = run_embedding,
    .flags = TD_OP_ANY_BASE,
};
TD_OPERATOR(embedding_bag) = {
    .schema = "(Tensor weight, index Tensor index, index Tensor? offsets=nil, *, "
              "str mode=\"mean\", Tensor? per_sample_weights=nil, "
              "bool include_last_offset=false, index? padding_idx=nil, float? max_norm=nil, "
              "float norm_type=2, bool scale_grad_by_freq=false, bool sparse=false) -> Tensor",
    .doc = "Sums, means or largest elements of the rows that the indices of each bag name.",
    .shapes = "weight (V, D), index (N, L), per_sample_weights (N, L) -> (N, D) if offsets == nil "
              "| weight (V, D), index (n), offsets (B), per_sample_weights (n) -> (B - 1 if "
              "include_last_offset else B, D)",
    .takes = "floating, one dtype",
    .run = run_embedding_bag,
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(embedding_rows) = {
    .schema =
        "(Tensor weight, index Tensor index, int padding, bool by_freq, bool sparse) -> Tensor",
    .doc = "Rows of a table.",
    .formula = "advanced_index(weight, {index})",
    .gradient = "weight: if(sparse, if(by_freq,"
                "              error(\"scale_grad_by_freq is not for sparse gradients\"),"
                "              embedding_slope_sparse(g, index, weight.size(0), weight.size(1),"
                "                                     padding)),"
                "           embedding_slope(g, index, weight.size(0), weight.size(1), padding,"
                "                           by_freq))",
    .flags = TD_OP_INTERNAL | TD_OP_ANY_BASE,
};
PART(embedding_slope,
     "(Tensor gy, index Tensor index, int rows, int width, int padding, bool by_freq)",
     "Gradients of rows added up in the table; none for padding, over the count where by_freq.",
     "flat = reshape(index, {index.numel}); each = reshape(gy, {index.numel, width});"
     "counts = index_add(zeros({rows}, dtype=gy.dtype, device=gy.device), 0, flat,"
     "                   to(ones_like(flat), gy.dtype));"
     "even = if(by_freq, each / unsqueeze(index_select(counts, 0, flat), 1), each);"
     "index_add(zeros({rows, width}, dtype=gy.dtype, device=gy.device), 0, flat,"
     "          if(padding < 0, even, where(unsqueeze(flat == padding, 1), 0.0, even)))");
PART(shortening, "(Tensor rows, float max_norm, float norm_type)",
     "What makes rows no longer than max_norm.",
     "n = norm(rows, norm_type, 1, keepdim=true); where(n > max_norm, max_norm / (n + 1e-7), 1.0)");
PART(bags_of_rows, "(index Tensor index)", "The row of each index, as one row.",
     "if(index.numel == 0, reshape(index, {0}),"
     "   flatten(expand(unsqueeze(cumsum(ones_like(select(index, 1, 0)), 0) - 1, 1), "
     "index.shape)))");
PART(bags_of_offsets, "(index Tensor offsets, int n)", "The bag of each of n indices.",
     "narrow(cumsum(index_add(zeros({n + 1}, dtype=offsets.dtype, device=offsets.device), 0,"
     "                        offsets, ones_like(offsets)), 0), 0, 0, n) - 1");
PART(places_in_bags, "(index Tensor bag)", "The place of each index in its bag.",
     "all = cumsum(ones_like(bag), 0) - 1;"
     "all - index_select(bag_begins(bag, all), 0, bag)");
PART(bag_begins, "(index Tensor bag, Tensor all)", "Where each bag begins, by its number.",
     "sizes = index_add(zeros_like(all), 0, clamp_max(bag, bag.numel - 1), ones_like(bag));"
     "cumsum(sizes, 0) - sizes");
PART(bag_sums,
     "(Tensor weight, index Tensor flat, index Tensor bag, Tensor? samples, int bags, "
     "int padding, bool by_freq, bool sparse, bool mean, dtype wide)",
     "Sums or means of the bags' rows, made in a dtype that they fit into.",
     "rows = to(embedding_rows(weight, flat, padding, by_freq, sparse), wide);"
     "heavy = if(samples == nil, rows, rows * unsqueeze(samples, 1));"
     "kept = if(padding < 0, heavy, where(unsqueeze(flat == padding, 1), 0.0, heavy));"
     "total = index_add(zeros({bags, weight.size(1)}, dtype=wide, device=weight.device), 0, bag,"
     "                  kept);"
     "to(if(mean, total / unsqueeze(clamp_min(bag_counts(total, flat, bag, bags, padding), 1), 1),"
     "      total), weight.dtype)");
PART(bag_counts, "(Tensor weight, index Tensor flat, index Tensor bag, int bags, int padding)",
     "Indices of each bag that are no padding.",
     "index_add(zeros({bags}, dtype=weight.dtype, device=weight.device), 0, bag,"
     "          to(flat ~= padding, weight.dtype))");
PART(bag_largest,
     "(Tensor weight, index Tensor flat, index Tensor bag, index Tensor place, int bags, "
     "int longest, int padding, bool by_freq)",
     "Largest elements of the bags' rows, 0 in empty bags.",
     "rows = embedding_rows(weight, flat, padding, by_freq, false);"
     "kept = if(padding < 0, rows, where(unsqueeze(flat == padding, 1), -inf, rows));"
     "table = reshape(index_copy(full({bags * longest}, flat.numel, dtype=flat.dtype,"
     "                                device=flat.device), 0, bag * longest + place,"
     "                           cumsum(ones_like(flat), 0) - 1), {bags, longest});"
     "none = full({1, weight.size(1)}, -inf, dtype=weight.dtype, device=weight.device);"
     "most = max_dim(advanced_index(cat({kept, none}, 0), {table}), 1).values;"
     "where(unsqueeze(bag_counts(weight, flat, bag, bags, padding) == 0, 1), 0.0, most)");
