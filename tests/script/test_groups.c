/* test_groups.c: groups of pointwise operators on tensors of every pair of dtypes, with dims and
 * without, do what the operators do one by one, as programs and as machine code; and fast ones
 * nearly that. */
#include "engine/cpu/code/code.h"
#include "engine/cpu/code/llvm.h"
#include "engine/io/code_cache.h"
#include "engine/script/kernel.h"
#include "engine/script/passes/copy.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"
#include "engine/script/scripted.h"
#include "engine/td.h"

#include "tests/check.h"
#include "tests/script/graph_runs.h"

#include <stdlib.h>

static const td_dtype dtypes[] = {TD_BOOL, TD_U8,  TD_I8,   TD_I16, TD_I32,
                                  TD_I64,  TD_F16, TD_BF16, TD_F32, TD_F64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- graphs ---- */

static td_ir_value *add_input(td_ir_graph *g, td_dtype dtype, int shape) {
    static const struct {
        int n;
        int64_t sizes[2], strides[2];
    } shapes[] = {{2, {9, 5}, {5, 1}}, {2, {9, 5}, {5, 1}}, {0, {0}, {0}},
                  {1, {5}, {1}},       {2, {9, 1}, {1, 1}}, {2, {9, 5}, {1, 9}}};
    const int s = shape % (int)(sizeof shapes / sizeof *shapes);
    td_ir_type type = {.kind = TD_IR_TENSOR,
                       .dtype = (uint8_t)dtype,
                       .placed = true,
                       .device = TD_DEVICE_CPU,
                       .n = shapes[s].n,
                       .sizes = shapes[s].sizes,
                       .strides = shapes[s].strides};
    return td_ir_add_input(g->block, td_ir_type_copy(g, &type), "x");
}

/* NULL: such a call would be refused. */
static td_ir_value *add_call(td_ir_graph *g, const td_op *op, td_ir_value **inputs) {
    td_inferred made = {.n = -1};
    td_ir_node *draft = td_ir_append(g->block, TD_IR_OPERATOR, op->nparams, inputs, 0, NULL);
    if (!draft)
        return NULL;
    draft->op = op;
    td_infer_node(g, draft, &made);
    td_ir_remove(draft);
    if (!made.exact)
        return NULL;
    td_ir_node *node = td_ir_append(g->block, TD_IR_OPERATOR, op->nparams, inputs, 1, made.types);
    if (!node)
        return NULL;
    node->op = op;
    return node->outputs[0];
}

static td_ir_value *add_cast(td_ir_graph *g, td_ir_value *x, td_dtype dtype) {
    td_ir_block *b = g->block;
    td_ir_value *inputs[6] = {x,
                              td_ir_add_constant(b, TD_DTYPE(dtype)),
                              td_ir_add_constant(b, TD_NIL),
                              td_ir_add_constant(b, TD_B(false)),
                              td_ir_add_constant(b, TD_STRING("preserve")),
                              td_ir_add_constant(b, TD_B(false))};
    return add_call(g, TD_OP(to), inputs);
}

static bool add_argument(td_ir_graph *g, const td_param *param, int k, const td_dtype *two,
                         int shape, td_ir_value **out) {
    const uint8_t type = param->type;
    const bool number = type == TD_PARAM_TENSOR_OR_NUMBER && k && shape % 4 == 3;
    if (type == TD_PARAM_TENSOR || (type == TD_PARAM_TENSOR_OR_NUMBER && !number))
        *out = add_input(g, two[k % 2], k ? shape + k : 0);
    else if ((param->has_default || param->optional) && !(number && shape % 8 == 7))
        *out = td_ir_add_constant(g->block, param->preset);
    else if (number || type == TD_PARAM_NUMBER || type == TD_PARAM_FLOAT)
        *out = td_ir_add_constant(g->block, shape % 8 == 3 ? TD_F(1.1) : TD_I(3));
    else if (type == TD_PARAM_INT)
        *out = td_ir_add_constant(g->block, TD_I(2));
    else
        return false;
    return *out != NULL;
}

/* An operator of two dtypes, what it makes as a third, and the larger of the two. */
static td_ir_graph *make_graph(const td_op *op, const td_dtype *two, td_dtype third, int shape) {
    td_ir_value *inputs[TD_MAX_PARAMS], *made[3] = {NULL};
    td_ir_graph *g = td_ir_graph_new();
    bool good = g != NULL;
    for (int k = 0; k < op->nparams && good; k++)
        good = add_argument(g, &op->params[k], k, two, shape, &inputs[k]);
    made[0] = good ? add_call(g, op, inputs) : NULL;
    made[1] = made[0] && made[0]->type->dtype != third ? add_cast(g, made[0], third) : made[0];
    td_ir_value *pair[2] = {made[0], made[1]};
    made[2] = made[1] ? add_call(g, TD_OP(maximum), pair) : NULL;
    if (!made[2]) {
        td_ir_graph_release(g);
        return NULL;
    }
    td_ir_set_outputs(g->block, 3, made);
    return g;
}

/* ---- groups ---- */

static int grouped[TD_DTYPE_COUNT]; /* operators by the dtype of their first operand */

/* What the pass takes into a group must become a kernel. */
static void check_groups(const td_ir_graph *g, const td_op *op) {
    td_ir_graph *copy = td_ir_graph_copy(g);
    REQUIRE(copy != NULL && td_passes_run(copy, NULL, NULL) == TD_OK);
    for (const td_ir_node *node = copy->block->first; node; node = node->next) {
        td_script_kernel *kernel;
        if (node->kind != TD_IR_FUSION_GROUP)
            continue;
        if (td_script_kernel_new(node->subgraph, &kernel))
            check_fail(__FILE__, __LINE__, "%s: %s", op->name, td_error_message());
        td_script_kernel_free(kernel);
        for (const td_ir_node *in = node->subgraph->block->first; in; in = in->next)
            if (in->kind == TD_IR_OPERATOR && in->op == op)
                grouped[g->block->inputs[0]->type->dtype]++;
    }
    td_ir_graph_release(copy);
}

static void compare(const td_ir_graph *g, const td_op *op, uint64_t seed, const char *how) {
    char why[1400] = "";
    graph_run one_by_one, together;
    bool ran = graph_run_make(g, seed, &one_by_one) && graph_run_scripted(g, seed, &together);
    if (!ran || !graph_run_same(&one_by_one, &together, why, sizeof why)) {
        char *text = td_ir_print(g);
        check_fail(__FILE__, __LINE__, "%s as %s: %.300s in\n%.700s", op->name, how,
                   ran ? why : td_error_message(), text);
        td_free(text);
    }
    graph_run_clear(&one_by_one);
    graph_run_clear(&together);
}

static bool is_drawn(const td_op *op) {
    return (op->pointwise || op == TD_OP(clamp)) && op->nresults == 1 &&
           !(op->flags & TD_OP_INTERNAL);
}

TEST(groups_of_all_dtypes_have_their_operators_bits) {
    enum { EVERY = 61 }; /* one of so many graphs runs as machine code, too */
    const long long before = atomic_load(&td_code_counts.runs);
    uint64_t seed = 0;
    for (int number = 0; number < td_op_count(); number++) {
        const td_op *op = td_op_get(number);
        for (int pair = 0; is_drawn(op) && pair < DTYPES * DTYPES; pair++) {
            const td_dtype two[2] = {dtypes[pair / DTYPES], dtypes[pair % DTYPES]};
            const int shape = (int)(seed++ % 24);
            td_ir_graph *g = make_graph(op, two, dtypes[(pair * 7 + number) % DTYPES], shape);
            if (!g)
                continue;
            check_groups(g, op);
            compare(g, op, seed, "a program");
            td_code_set_when(TD_CODE_NOW);
            if (seed % EVERY == 0)
                compare(g, op, seed, "machine code");
            td_code_set_when(TD_CODE_NEVER);
            td_ir_graph_release(g);
        }
    }
    if (!td_llvm_load())
        CHECK(atomic_load(&td_code_counts.runs) > before + 100);
    for (int k = 0; k < DTYPES; k++)
        if (grouped[dtypes[k]] < 200)
            check_fail(__FILE__, __LINE__, "only %d operators on %s were in groups",
                       grouped[dtypes[k]], td_dtype_name(dtypes[k]));
}

/* ---- divisions ---- */

/* What fails for an element must fail as the operator does. */
TEST(divisions_that_may_fail_are_no_part_of_a_group) {
    const td_dtype two[2] = {TD_I32, TD_I32};
    td_ir_graph *g = make_graph(TD_OP(remainder), two, TD_F32, 0);
    REQUIRE(g != NULL);
    compare(g, TD_OP(remainder), 1, "a program");
    graph_run run; /* of small integers, zeros among them */
    CHECK(graph_run_scripted(g, 1, &run) && run.status == TD_EVALUE);
    graph_run_clear(&run);
    td_ir_graph_release(g);
}

/* ---- fast ones ---- */

static td_scripted *make_function(const char *text) {
    td_ir_graph *g = NULL;
    td_scripted *f = NULL;
    if (td_ir_parse(text, &g) || td_scripted_new(g, "f", &f))
        check_fail(__FILE__, __LINE__, "%s", td_error_message());
    td_ir_graph_release(g);
    return f;
}

static td_tensor *filled(td_dtype dtype, int64_t n, double step) {
    td_tensor *x = NULL;
    if (td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x))
        return NULL;
    for (int64_t k = 0; k < n; k++)
        td_store_double(dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x),
                        1 + step * (double)(k % 97));
    return x;
}

/* The most that a result is off what the same function gives in float64, relative to it. */
static double off(td_scripted *f, td_dtype dtype) {
    td_tensor *x = filled(dtype, 1000, 0x1.3p-4), *wide = NULL;
    td_value out = TD_NIL, right = TD_NIL;
    double most = 0, a, b;
    if (TD_APPLY(&wide, to, TD_T(x), TD_DTYPE(TD_F64)) || td_scripted_call(f, &TD_T(x), &out) ||
        td_scripted_call(f, &TD_T(wide), &right))
        return INFINITY;
    for (int64_t k = 0; k < 1000; k++) {
        a = td_load_double(dtype, (char *)out.tensor->data + (size_t)k * td_dtype_size(dtype));
        b = td_load_double(TD_F64, (char *)right.tensor->data + (size_t)k * 8);
        most = fabs(a - b) / fabs(b) > most ? fabs(a - b) / fabs(b) : most;
    }
    td_value_drop(&out);
    td_value_drop(&right);
    td_release(x);
    td_release(wide);
    return most;
}

static const char chain[] = "graph(%x : Tensor):\n"
                            "  %one : int = prim::Constant[value=1]()\n"
                            "  %a : Tensor = aten::mul(%x, %x)\n"
                            "  %b : Tensor = aten::add(%a, %x, %one)\n"
                            "  %c : Tensor = aten::mul(%b, %x)\n"
                            "  %d : Tensor = aten::add(%c, %a, %one)\n"
                            "  return (%d)\n";

static void check_fast(td_dtype dtype, double epsilon) {
    td_scripted *exact = make_function(chain), *fast = make_function(chain);
    REQUIRE(exact && fast);
    td_scripted_set_fast(fast, true);
    char *before = td_scripted_why(exact);
    CHECK(off(fast, dtype) < 2 * epsilon);
    CHECK(off(exact, dtype) < 4 * epsilon);
    char *why = td_scripted_why(fast);
    CHECK(before && !strstr(before, "fast") && why && strstr(why, "fast: at most "));
    td_free(before);
    td_free(why);
    td_scripted_release(exact);
    td_scripted_release(fast);
}

TEST(fast_functions_are_near_and_say_how_near) {
    td_code_set_when(TD_CODE_NOW);
    check_fast(TD_F32, 0x1p-23);
    check_fast(TD_F64, 0x1p-52);
    check_fast(TD_BF16, 0x1p-8); /* rounded once, at the end */
    check_fast(TD_F16, 0x1p-11);
    td_code_set_when(TD_CODE_NEVER);
    check_fast(TD_BF16, 0x1p-8);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    td_code_set_when(TD_CODE_NEVER);
    RUN(groups_of_all_dtypes_have_their_operators_bits);
    RUN(divisions_that_may_fail_are_no_part_of_a_group);
    RUN(fast_functions_are_near_and_say_how_near);
    return check_finish();
}
