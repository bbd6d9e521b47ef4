/* test_ops_script_rows.c: groups along rows as texts, whose types may say what is not so: what runs
 * is what the operators one by one give, values and errors. */
#include "engine/td.h"

#include "tests/check.h"

#include <string.h>

#define X "Float(6, 5, strides=[5, 1], requires_grad=0, device=cpu)"
#define R "Float(6, 1, strides=[1, 1], requires_grad=0, device=cpu)"

#define HEAD(type, inner)                                                                          \
    "graph(%x : " X "):\n"                                                                         \
    "  %y : " type " = prim::FusionGroup_0(%x)\n"                                                  \
    "  return (%y)\n"                                                                              \
    "with prim::FusionGroup_0 = graph(%x : " X "):\n"                                              \
    "  %d : int[] = prim::Constant[value=[1]]()\n"                                                 \
    "  %size : int[] = prim::Constant[value=[6, 1]]()\n"                                           \
    "  %yes : bool = prim::Constant[value=1]()\n"                                                  \
    "  %no : bool = prim::Constant[value=0]()\n"                                                   \
    "  %none : NoneType = prim::Constant()\n"                                                      \
    "  %one : int = prim::Constant[value=1]()\n" inner

#define OFF                                                                                        \
    "with prim::FusionGroup_1 = graph(%x : Tensor, %m : Tensor):\n"                                \
    "  %one : int = prim::Constant[value=1]()\n"                                                   \
    "  %y : " X " = aten::sub(%x, %m, %one)\n"                                                     \
    "  return (%y)\n"

static const char *const texts[] = {
    /* a mean along dim 1, whatever dim that is of what is given */
    HEAD(X, "  %m : " R " = aten::mean(%x, %d, %yes, %none)\n"
            "  %y : " X " = prim::FusionGroup_1(%x, %m)\n"
            "  return (%y)\n") OFF,
    /* for 6 rows alone */
    HEAD(X, "  %m : " R " = aten::sum_to(%x, %size)\n"
            "  %y : " X " = prim::FusionGroup_1(%x, %m)\n"
            "  return (%y)\n") OFF,
    /* a result without the dim is said to have it */
    HEAD(R, "  %y : " R " = aten::amax(%x, %d, %no)\n"
            "  return (%y)\n"),
    /* what has the whole shape is said to be one for each row */
    HEAD(X, "  %m : " R " = aten::exp(%x)\n"
            "  %s : " R " = aten::amax(%x, %d, %yes)\n"
            "  %y : " X " = prim::FusionGroup_1(%s, %m)\n"
            "  return (%y)\n") OFF,
    HEAD(X, "  %m : " X " = prim::FusionGroup_1(%x, %x)\n"
            "  %y : " X " = aten::softmax(%m, %one, %none)\n"
            "  return (%y)\n") OFF,
    /* an output that is an input, and a sum that something reads */
    HEAD(X, "  %m : " R " = aten::amax(%x, %d, %yes)\n"
            "  return (%x)\n"),
    HEAD(X, "  %m : Float(strides=[], requires_grad=0, device=cpu) = aten::mean(%x, %none, %no, "
            "%none)\n"
            "  %r : " R " = aten::amax(%x, %d, %yes)\n"
            "  %y : " X " = prim::FusionGroup_1(%x, %m)\n"
            "  return (%y)\n") OFF,
};

static td_tensor *make(int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    if (td_tensor_empty(TD_F32, TD_DEVICE_CPU, ndim, sizes, &x))
        return NULL;
    for (int64_t k = 0; k < x->numel; k++)
        ((float *)x->data)[k] = (float)(k * 7 % 11) - 3.5F;
    return x;
}

/* The text without its groups: a call in the place of each. */
static char *as_calls(const char *text) {
    static const char group[] = "FusionGroup", call[] = "CallFunction";
    size_t size = strlen(text) + 64, used = 0;
    char *other = td_malloc(size);
    for (const char *c = text; other && *c;) {
        if (!strncmp(c, group, sizeof group - 1)) {
            memcpy(other + used, call, sizeof call - 1);
            used += sizeof call - 1;
            c += sizeof group - 1;
        } else {
            other[used++] = *c++;
        }
    }
    if (other)
        other[used] = 0;
    return other;
}

static td_status run(const char *text, td_tensor *x, td_value *out) {
    td_ir_graph *g = NULL;
    td_script *s = NULL;
    td_value input = TD_T(x);
    *out = TD_NIL;
    td_status status = td_ir_parse(text, &g);
    if (status == TD_OK)
        status = td_script_new(g, &s);
    if (status)
        check_fail(__FILE__, __LINE__, "%s in\n%s", td_error_message(), text);
    if (status == TD_OK)
        status = td_script_run(s, &input, out);
    td_script_release(s);
    td_ir_graph_release(g);
    return status;
}

static bool same(td_value a, td_value b) {
    if (a.kind != b.kind)
        return false;
    return a.kind != TD_KIND_TENSOR ||
           (td_tensor_same_shape(a.tensor, b.tensor) && a.tensor->dtype == b.tensor->dtype &&
            !memcmp(a.tensor->data, b.tensor->data, (size_t)a.tensor->numel * sizeof(float)));
}

TEST(groups_whose_types_are_not_so_do_what_their_operators_do) {
    static const struct {
        int ndim;
        int64_t sizes[6];
    } shapes[] = {{2, {6, 5}},
                  {2, {7, 5}},
                  {2, {6, 1}},
                  {2, {1, 5}},
                  {2, {0, 5}},
                  {3, {6, 5, 5}},
                  {6, {1, 6, 1, 2, 5, 5}},
                  {1, {6}},
                  {0, {0}}};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        char *calls = as_calls(texts[t]);
        REQUIRE(calls != NULL);
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            td_tensor *x = make(shapes[k].ndim, shapes[k].sizes);
            td_value want, got;
            td_status expected = run(calls, x, &want), status = run(texts[t], x, &got);
            if (expected != status || !same(want, got))
                check_fail(__FILE__, __LINE__, "text %d, shape %d: %s", (int)t, (int)k,
                           status ? td_error_message() : "another result");
            td_value_drop(&want);
            td_value_drop(&got);
            td_release(x);
        }
        td_free(calls);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(groups_whose_types_are_not_so_do_what_their_operators_do);
    return check_finish();
}
