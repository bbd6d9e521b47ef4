/* test_ops_script_gradient.c: gradients of graphs: against finite differences in float64, against
 * the same calls recorded one by one bit for bit, of second order, and where memory runs out. */
#include "engine/core/memory.h"

#include "tests/unit/script/gradient_scenes.h"

/* ---- graphs ---- */

typedef struct example {
    const char *name;
    int64_t shapes[MOST][3]; /* of the inputs; sizes end at 0 */
    const char *text;

} example;

/* clang-format off */
static const example examples[] = {
    {"chain", {{3, 4}, {3, 4}, {3, 4}},
     "graph(%x : Tensor, %y : Tensor, %z : Tensor):\n"
     "  %a : Tensor = aten::mul(%x, %y)\n"
     "  %b : Tensor = aten::add(%a, %z, %one)\n"
     "  %c : Tensor = aten::mul(%b, %x)\n"
     "  %d : Tensor = aten::tanh(%c)\n"
     "  return (%d)\n"},
    {"powers", {{5}},
     "graph(%x : Tensor):\n"
     "  %a : Tensor = aten::mul(%x, %x)\n"
     "  %b : Tensor = aten::mul(%a, %x)\n"
     "  %c : Tensor = aten::mul(%b, %a)\n"
     "  %d : Tensor = aten::mul(%c, %c)\n"
     "  return (%d)\n"},
    {"broadcast", {{3, 1}, {4}, {2, 3, 4}},
     "graph(%x : Tensor, %y : Tensor, %z : Tensor):\n"
     "  %a : Tensor = aten::mul(%x, %y)\n"
     "  %b : Tensor = aten::sub(%z, %a, %one)\n"
     "  %c : Tensor = aten::exp(%b)\n"
     "  %d : Tensor = aten::div(%c, %y, %none)\n"
     "  return (%d)\n"},
    {"product", {{3, 4}, {4, 2}, {2}},
     "graph(%x : Tensor, %w : Tensor, %b : Tensor):\n"
     "  %a : Tensor = aten::matmul(%x, %w)\n"
     "  %c : Tensor = aten::add(%a, %b, %one)\n"
     "  %d : Tensor = aten::sigmoid(%c)\n"
     "  %e : Tensor = aten::mul(%d, %a)\n"
     "  return (%e)\n"},
    {"softmax", {{2, 5}, {2, 5}},
     "graph(%x : Tensor, %y : Tensor):\n"
     "  %dim : int = prim::Constant[value=1]()\n"
     "  %a : Tensor = aten::mul(%x, %y)\n"
     "  %b : Tensor = aten::softmax(%a, %dim, %none)\n"
     "  %c : Tensor = aten::log(%b)\n"
     "  %d : Tensor = aten::mul(%c, %y)\n"
     "  return (%d)\n"},
    {"reductions", {{3, 4}, {3, 4}},
     "graph(%x : Tensor, %y : Tensor):\n"
     "  %dim : int[] = prim::Constant[value=[1]]()\n"
     "  %a : Tensor = aten::mul(%x, %y)\n"
     "  %m : Tensor = aten::mean(%a, %dim, %yes, %none)\n"
     "  %b : Tensor = aten::sub(%a, %m, %one)\n"
     "  %s : Tensor = aten::square(%b)\n"
     "  %v : Tensor = aten::mean(%s, %dim, %yes, %none)\n"
     "  %r : Tensor = aten::rsqrt(%v)\n"
     "  %c : Tensor = aten::mul(%b, %r)\n"
     "  return (%c)\n"},
    {"views", {{3, 4}, {4, 3}},
     "graph(%x : Tensor, %y : Tensor):\n"
     "  %zero : int = prim::Constant[value=0]()\n"
     "  %i : int = prim::Constant[value=1]()\n"
     "  %t : Tensor = aten::transpose(%x, %zero, %i)\n"
     "  %a : Tensor = aten::mul(%t, %y)\n"
     "  %s : Tensor = aten::select(%a, %zero, %i)\n"
     "  %b : Tensor = aten::mul(%s, %y)\n"
     "  %c : Tensor = aten::transpose(%b, %zero, %i)\n"
     "  return (%c)\n"},
    {"lists", {{2, 3}, {2, 3}},
     "graph(%x : Tensor, %y : Tensor):\n"
     "  %zero : int = prim::Constant[value=0]()\n"
     "  %l : Tensor[] = prim::ListConstruct(%x, %y, %x)\n"
     "  %j : Tensor = aten::cat(%l, %zero)\n"
     "  %n : int = prim::Constant[value=3]()\n"
     "  %p : Tensor[] = aten::chunk(%j, %n, %zero)\n"
     "  %a : Tensor, %b : Tensor, %c : Tensor = prim::ListUnpack(%p)\n"
     "  %d : Tensor = aten::mul(%a, %b)\n"
     "  %e : Tensor = aten::div(%d, %c, %none)\n"
     "  %f : Tensor = aten::sin(%e)\n"
     "  return (%f)\n"},
    {"composites", {{3, 3}, {3, 3}},
     "graph(%x : Tensor, %y : Tensor):\n"
     "  %a : Tensor = aten::logaddexp(%x, %y)\n"
     "  %b : Tensor = aten::relu(%a)\n"
     "  %c : Tensor = aten::silu(%b)\n"
     "  %d : Tensor = aten::maximum(%c, %y)\n"
     "  return (%d)\n"},
    {"two outputs", {{3, 4}, {3, 4}},
     "graph(%x : Tensor, %y : Tensor):\n"
     "  %a : Tensor = aten::exp(%x)\n"
     "  %b : Tensor = aten::mul(%a, %y)\n"
     "  %c : Tensor = aten::sin(%b)\n"
     "  return (%a, %c)\n"},
    {"a write in place", {{3, 4}, {3, 4}},
     "graph(%x : Tensor, %y : Tensor):\n"
     "  %zero : int = prim::Constant[value=0]()\n"
     "  %a : Tensor = aten::mul(%x, %y)\n"
     "  %b : Tensor = aten::add_(%a, %y, %one)\n"
     "  %s : Tensor = aten::select(%b, %zero, %zero)\n"
     "  %t : Tensor = aten::mul_(%s, %three)\n"
     "  %c : Tensor = aten::exp(%b)\n"
     "  return (%c)\n"},
    {"control flow", {{3}, {3}},
     "graph(%x : Tensor, %y : Tensor):\n"
     "  %n : int = prim::Constant[value=4]()\n"
     "  %z : Tensor = prim::Loop(%n, %yes, %x)\n"
     "    block0(%k : int, %a : Tensor):\n"
     "      %b : Tensor = aten::mul(%a, %y)\n"
     "      %c : Tensor = aten::sin(%b)\n"
     "      -> (%yes, %c)\n"
     "  return (%z)\n"},
};
/* clang-format on */
enum { EXAMPLES = sizeof examples / sizeof *examples };

static int make_inputs(const example *e, td_dtype dtype, td_tensor **x) {
    int n = 0;
    for (; n < MOST && e->shapes[n][0]; n++) {
        x[n] = make(dtype, e->shapes[n]);
        if (td_set_requires_grad(x[n], true))
            check_fail(__FILE__, __LINE__, "%s", td_error_message());
    }
    return n;
}

/* ---- tests of first order ---- */

static void check_differences(const example *e, const td_script *s, int n, td_tensor **x,
                              td_tensor **grads) {
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < x[k]->numel; i++) {
            const double h = 1e-6;
            double *at = (double *)x[k]->data + i, was = *at;
            *at = was + h;
            double more = value_of(s, n, x);
            *at = was - h;
            double less = value_of(s, n, x);
            *at = was;
            double want = (more - less) / (2 * h), got = grads[k] ? element(grads[k], i) : 0;
            if (!(fabs(want - got) <= 1e-6 * (1 + fabs(want))))
                check_fail(__FILE__, __LINE__, "%s: input %d: %g for %g", e->name, k + 1, got,
                           want);
        }
}

TEST(gradients_are_those_of_finite_differences) {
    for (int c = 0; c < EXAMPLES; c++) {
        const example *e = &examples[c];
        td_tensor *x[MOST] = {NULL}, *grads[MOST] = {NULL};
        int n = make_inputs(e, TD_F64, x);
        td_script *s = script_of(e->text);
        REQUIRE(s != NULL);
        td_gradient *d = derive(s, n, x);
        if (d && gradients(s, d, n, x, -1, false, grads) == TD_OK)
            check_differences(e, s, n, x, grads);
        else
            check_fail(__FILE__, __LINE__, "%s: %s", e->name, td_error_message());
        drop(n, grads);
        drop(n, x);
        td_gradient_release(d);
        td_script_release(s);
    }
}

TEST(gradients_have_the_bits_of_eager_mode) {
    for (int c = 0; c < EXAMPLES; c++)
        for (int dtype = 0; dtype < 2; dtype++)
            for (int which = -1; which < 2; which++) {
                const example *e = &examples[c];
                td_tensor *x[MOST] = {NULL}, *want[MOST] = {NULL}, *got[MOST] = {NULL};
                int n = make_inputs(e, dtype ? TD_F64 : TD_F32, x);
                td_script *s = script_of(e->text);
                REQUIRE(s != NULL);
                td_gradient *d = derive(s, n, x);
                if (which < td_script_graph(s)->block->noutputs) {
                    CHECK_INT(gradients(s, NULL, n, x, which, false, want), TD_OK);
                    if (gradients(s, d, n, x, which, false, got))
                        check_fail(__FILE__, __LINE__, "%s: %s", e->name, td_error_message());
                    for (int k = 0; k < n; k++)
                        if (!same_bits(want[k], got[k]))
                            check_fail(__FILE__, __LINE__, "%s: input %d differs", e->name, k + 1);
                }
                drop(n, want);
                drop(n, got);
                drop(n, x);
                td_gradient_release(d);
                td_script_release(s);
            }
}

/* ---- second order ---- */

/* The weighed sum of all first gradients, recorded. */
static td_status weigh_gradients(const td_script *s, td_gradient *d, int n, td_tensor *const *x,
                                 td_tensor **total) {
    td_tensor *grads[MOST] = {NULL}, *sum = NULL, *more = NULL;
    td_status status = gradients(s, d, n, x, -1, true, grads);
    *total = NULL;
    for (int k = 0; k < n && status == TD_OK; k++) {
        status = grads[k] ? weigh(grads[k], &sum) : TD_OK;
        if (status || !sum)
            continue;
        if (*total) {
            status = TD_APPLY(&more, add, TD_T(*total), TD_T(sum));
            td_release(*total);
            td_release(sum);
            *total = more;
        } else {
            *total = sum;
        }
        sum = NULL;
    }
    drop(n, grads);
    return status;
}

TEST(second_derivatives_are_those_of_eager_mode) {
    for (int c = 0; c < EXAMPLES; c++) {
        const example *e = &examples[c];
        td_tensor *x[MOST] = {NULL}, *grads[2][MOST] = {{NULL}};
        int n = make_inputs(e, TD_F64, x);
        td_script *s = script_of(e->text);
        REQUIRE(s != NULL);
        td_gradient *d = derive(s, n, x);
        for (int k = 0; k < 2; k++) {
            td_tensor *total = NULL;
            td_status status = weigh_gradients(s, k ? d : NULL, n, x, &total);
            if (status == TD_OK)
                status = td_autograd_grad(1, &total, NULL, n, x, (td_backward_options){0}, true,
                                          grads[k]);
            if (status)
                check_fail(__FILE__, __LINE__, "%s: %s", e->name, td_error_message());
            td_release(total);
        }
        for (int k = 0; k < n; k++) {
            CHECK(!grads[0][k] == !grads[1][k]);
            for (int64_t i = 0; grads[0][k] && grads[1][k] && i < x[k]->numel; i++) {
                double want = element(grads[0][k], i), got = element(grads[1][k], i);
                if (!(fabs(want - got) <= 1e-11 * (1 + fabs(want))))
                    check_fail(__FILE__, __LINE__, "%s: input %d: %g for %g", e->name, k + 1, got,
                               want);
            }
        }
        drop(n, grads[0]);
        drop(n, grads[1]);
        drop(n, x);
        td_gradient_release(d);
        td_script_release(s);
    }
}

/* ---- memory ---- */

TEST(memory_that_runs_out_is_said_and_nothing_leaks) {
    static const int chosen[] = {2, 6, 9, 10};
    for (size_t e = 0; e < sizeof chosen / sizeof *chosen; e++) {
        td_tensor *x[MOST] = {NULL};
        int count = make_inputs(&examples[chosen[e]], TD_F32, x);
        td_script *s = script_of(examples[chosen[e]].text);
        REQUIRE(s != NULL);
        for (int64_t n = 1;; n += 1 + n / 16) {
            td_value inputs[MOST];
            td_tensor *grads[MOST] = {NULL};
            td_gradient *d = NULL;
            for (int k = 0; k < count; k++)
                inputs[k] = TD_T(x[k]);
            td_memory_fail_after(n);
            td_status status = td_gradient_new(s, inputs, &d);
            if (status == TD_OK)
                status = gradients(s, d, count, x, -1, true, grads);
            td_memory_fail_after(0);
            if (status != TD_OK && status != TD_ENOMEM)
                check_fail(__FILE__, __LINE__, "%s", td_error_message());
            CHECK(td_get_modes().dispatcher == NULL);
            drop(count, grads);
            td_gradient_release(d);
            if (status != TD_ENOMEM)
                break;
        }
        td_script_release(s);
        for (int k = 0; k < count; k++)
            CHECK_INT(atomic_load(&x[k]->refs), 1);
        drop(count, x);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(gradients_are_those_of_finite_differences);
    RUN(gradients_have_the_bits_of_eager_mode);
    RUN(second_derivatives_are_those_of_eager_mode);
    RUN(memory_that_runs_out_is_said_and_nothing_leaks);
    return check_finish();
}
