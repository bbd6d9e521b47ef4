/* test_ops_chain.c: programs of simple steps give the same bits as chains, which long operands are
 * run as, and step by step, as short ones are. */
#include "engine/cpu/pointwise/chain.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/td.h"

#include "tests/check.h"
#include "tests/unit/ops/pieces.h"

#include <stdlib.h>
#include <string.h>

enum { LISTS = 4 };

static const char *const names[] = {"a", "b", "c", "s"};

/* What the updates `text` make of three tensors of n elements, as a whole or in pieces. */
static void update(const char *text, td_dtype dtype, int64_t n, bool whole, td_tensor **lists) {
    const td_program *p;
    uint32_t written;
    must(td_program_compile_updates(text, LISTS, names, &written, &p));
    for (int64_t from = 0, m; from < n; from += m) {
        td_operand operands[LISTS] = {{0}};
        td_tensor *outs[LISTS], *pieces[LISTS - 1];
        int nouts = 0;
        m = whole || n - from < PIECE ? n - from : PIECE;
        for (int k = 0; k < LISTS - 1; k++) {
            pieces[k] = piece(lists[k], from, m);
            operands[k].tensor = pieces[k];
            if (written >> k & 1)
                outs[nouts++] = pieces[k];
        }
        operands[LISTS - 1].f = 0.7;
        run(p, dtype, operands, outs);
        for (int k = 0; k < LISTS - 1; k++)
            td_release(pieces[k]);
    }
    td_program_release(p);
}

static bool same_bits(const char *text, td_dtype dtype, int64_t n) {
    bool same = true;
    td_tensor *x[LISTS - 1], *y[LISTS - 1];
    for (int k = 0; k < LISTS - 1; k++) {
        x[k] = fill(dtype, n, 17 * k);
        y[k] = fill(dtype, n, 17 * k);
    }
    update(text, dtype, n, true, x);
    update(text, dtype, n, false, y);
    for (int k = 0; k < LISTS - 1; k++) {
        same &= is_same(x[k], y[k]);
        td_release(x[k]);
        td_release(y[k]);
    }
    return same;
}

static void check_in(const char *text, td_dtype dtype) {
    static const int64_t lengths[] = {256, 257, 300, 1000, 1024, 1111, 5000};
    for (int k = 0; k < 7; k++)
        if (!same_bits(text, dtype, lengths[k]))
            check_fail(__FILE__, __LINE__, "%s: %s of %d elements differs", text,
                       td_dtype_name(dtype), (int)lengths[k]);
}

static void check(const char *text) {
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_F16, TD_BF16};
    for (int d = 0; d < 4; d++)
        check_in(text, dtypes[d]);
}

/* Of whole numbers; that it is a chain is not taken for granted. */
static void check_whole(const char *text) {
    const td_program *p;
    uint32_t written;
    must(td_program_compile_updates(text, LISTS, names, &written, &p));
    if (!td_chain_takes(p, TD_I64))
        check_fail(__FILE__, __LINE__, "%s: no chain of int64", text);
    td_program_release(p);
    check_in(text, TD_I64);
}

TEST(chains_of_each_simple_step_equal_its_loop) {
    static const char *const binary[] = {"add",     "sub",      "mul",  "div",      "maximum",
                                         "minimum", "copysign", "fmax", "nextafter"};
    static const char *const unary[] = {"neg",  "abs",   "sign",  "square", "reciprocal", "sqrt",
                                        "relu", "floor", "trunc", "round",  "ceil"};
    char text[200];
    for (size_t k = 0; k < sizeof binary / sizeof *binary; k++) {
        snprintf(text, sizeof text, "a = %s(a, b) + s; b = %s(s * b, %s(b, c))", binary[k],
                 binary[k], binary[k]);
        check(text);
    }
    for (size_t k = 0; k < sizeof unary / sizeof *unary; k++) {
        snprintf(text, sizeof text, "a = %s(a + b); c = s - %s(%s(c))", unary[k], unary[k],
                 unary[k]);
        check(text);
    }
}

TEST(chains_keep_values_that_are_read_again) {
    check("t = a - b; a = t * t; b = t + a; c = t / b");
    check("t = a + b; u = t * s; a = t - u; b = u / t; c = a * b + t");
    check("a = muladd(a, b, c); b = muladd(s, c, b); c = muladd(c, c, c)");
    check("t = a - s; b = muladd(t, b, c)");
    check("t = b * c; a = a + t; b = t + t; c = (t * a) * (t * b)");
}

TEST(chains_read_what_was_there_before_they_write_it) {
    check("t = b; b = a + s; a = t * s; c = c - b");
    check("b = b + s * (a - b); c = c * s + s * a * a; a = a - s * b / (sqrt(c) / s + s)");
}

TEST(chains_choose_by_masks) {
    static const char *const compare[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    char text[200];
    for (size_t k = 0; k < sizeof compare / sizeof *compare; k++) {
        const char *op = compare[k];
        snprintf(text, sizeof text, "a = where(%s(a, b), a, c); b = where(%s(s, b), 2, b * c)", op,
                 op);
        check(text);
        snprintf(text, sizeof text, "a = a + %s(b, c); c = 0.5 * %s(c, s) - %s(a, b)", op, op, op);
        check(text);
    }
    check("m = gt(a, b); t = a * s; a = where(m, t, b); b = where(m, b, t); c = where(m, c, c)");
    check("t = a * b; a = where(lt(b, c), t, a); c = where(t, s, c)");
    check("t = a * b; b = where(lt(b, c), a, t); c = where(logical_not(t), t, s)");
    check("m = gt(a, 0); w = lt(b, c); a = where(logical_and(m, w), a, b);"
          "b = where(logical_or(w, m), s, b); c = where(logical_xor(m, w), c, a) + logical_not(m)");
    check("a = where(a, where(gt(b, 0), b, c), where(gt(c, 0), c, b)); c = maximum(a, c)");
}

TEST(chains_of_whole_numbers_equal_their_loops) {
    static const char *const binary[] = {"add",     "sub",  "mul",  "bitwise_and", "bitwise_or",
                                         "maximum", "fmin", "fmax", "bitwise_xor", "minimum"};
    static const char *const unary[] = {"neg", "abs", "sign", "square", "relu", "bitwise_not"};
    static const char *const compare[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    char text[200];
    for (size_t k = 0; k < sizeof binary / sizeof *binary; k++) {
        snprintf(text, sizeof text, "a = %s(a, b) + s; b = %s(c * b, %s(b, c))", binary[k],
                 binary[k], binary[k]);
        check_whole(text);
    }
    for (size_t k = 0; k < sizeof unary / sizeof *unary; k++) {
        snprintf(text, sizeof text, "a = %s(a + b); c = b - %s(%s(c))", unary[k], unary[k],
                 unary[k]);
        check_whole(text);
    }
    for (size_t k = 0; k < sizeof compare / sizeof *compare; k++) {
        const char *op = compare[k];
        snprintf(text, sizeof text,
                 "t = a * 3; a = where(%s(t, b), t, c); b = where(%s(b, 7), 2, t)", op, op);
        check_whole(text);
        snprintf(text, sizeof text,
                 "m = %s(a, b); c = where(m, a, c) + m; a = where(%s(c, 1), s, a)", op, op);
        check_whole(text);
    }
    CHECK(same_bits("a = maximum(minimum(a, 6), 0)", TD_I64, 100001));
}

/* A choice makes the comparison itself where nothing else reads the mask. */
TEST(chains_compare_as_they_choose) {
    static const char *const compare[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const char *const forms[] = {
        "t = a - b; a = where(%s(t, s), c, b)",
        "t = a - b; a = where(%s(s, t), c, b)",
        "t = a - b; a = where(%s(t, t), c, t)",
        "t = a * s; a = where(%s(b, c), t, a)",
        "t = a * s; a = where(%s(b, s), c, t); b = where(%s(s, 0.25), t, 1)",
        "t = a * s; u = t + b; a = where(%s(t, u), u, t); c = u",
        "m = %s(a, b); b = b + s; a = where(m, c, a)",
        "m = %s(a, c); a = a * s; t = a + b; b = where(m, t, b)",
        "t = a * s; m = %s(t, b); u = c * c; v = u + t; c = where(m, v, u)",
        "t = a * s; m = %s(t, b); u = c * c; v = u + b; c = where(m, v, u)",
        "m = %s(a, b); c = where(m, a, where(%s(b, 0), s, where(%s(a, 1), b, c)))",
    };
    for (size_t k = 0; k < sizeof compare / sizeof *compare; k++)
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            char text[200];
            const char *op = compare[k];
            snprintf(text, sizeof text, forms[f], op, op, op);
            check(text);
        }
}

TEST(chains_over_more_than_a_cache_equal_their_loops) {
    static const char adam[] =
        "b = b + s * (a - b); c = c * s + s * a * a; a = a - b / (sqrt(c) / s + s)";
    CHECK(same_bits(adam, TD_F32, 100000));
    CHECK(same_bits(adam, TD_F64, 50001));
}

/* Three tensors of 3 x ROWS x n elements: one that lies densely, one that is a single number along
 * each row, and one that is the same in all rows; then with all elements in memory. */
enum { ROWS = 400 };

static void run_rows(const char *text, td_dtype dtype, int64_t n, bool dense, td_tensor **x) {
    static const bool moves[LISTS - 1][3] = {
        {true, true, true}, {true, true, false}, {false, false, true}};
    const td_program *p;
    const int64_t sizes[3] = {3, ROWS, n};
    uint32_t written;
    td_operand operands[LISTS] = {{0}};
    td_tensor *views[LISTS - 1];
    must(td_program_compile_updates(text, LISTS, names, &written, &p));
    CHECK(written == 1); /* the tensor that lies densely */
    for (int k = 0; k < LISTS - 1; k++) {
        int64_t strides[3], step = 1;
        for (int d = 2; d >= 0; d--) {
            strides[d] = dense || moves[k][d] ? step : 0;
            step *= dense || moves[k][d] ? sizes[d] : 1;
        }
        must(td_tensor_view(x[k], 3, sizes, strides, 0, &views[k]));
        operands[k].tensor = views[k];
    }
    operands[LISTS - 1].f = 0.7;
    run(p, dtype, operands, views);
    for (int k = 0; k < LISTS - 1; k++)
        td_release(views[k]);
    td_program_release(p);
}

static bool rows_equal_copies(const char *text, td_dtype dtype, int64_t n) {
    const int64_t numel = 3 * ROWS * n, size = (int64_t)td_dtype_size(dtype);
    td_tensor *x[3] = {fill(dtype, numel, 0), fill(dtype, 3 * ROWS, 17), fill(dtype, n, 34)};
    td_tensor *y[3] = {fill(dtype, numel, 0), fill(dtype, numel, 0), fill(dtype, numel, 0)};
    for (int64_t i = 0; i < numel; i++) {
        memcpy((char *)y[1]->data + i * size, (char *)x[1]->data + i / n * size, (size_t)size);
        memcpy((char *)y[2]->data + i * size, (char *)x[2]->data + i % n * size, (size_t)size);
    }
    run_rows(text, dtype, n, false, x);
    run_rows(text, dtype, n, true, y);
    bool same = is_same(x[0], y[0]);
    for (int k = 0; k < 3; k++) {
        td_release(x[k]);
        td_release(y[k]);
    }
    return same;
}

TEST(chains_along_rows_equal_those_over_copies) {
    static const char *const texts[] = {"a = a * b + c * s", "a = where(lt(b, c), a, s) * c - b"};
    static const int64_t lengths[] = {7, 8, 20, 64, 100, 200};
    for (int t = 0; t < 2; t++)
        for (int k = 0; k < 6; k++)
            for (int d = 0; d < 2; d++)
                if (!rows_equal_copies(texts[t], d ? TD_F64 : TD_F32, lengths[k]))
                    check_fail(__FILE__, __LINE__, "%s: %s, rows of %d elements differ", texts[t],
                               d ? "float64" : "float32", (int)lengths[k]);
}

/* Of 16-bit floats, where each output is written and read again. */
TEST(chains_have_room_for_all_their_operations) {
    static const char text[] = "a = muladd(s, s, s); b = muladd(s, s, a); c = muladd(s, s, b)";
    const td_program *p;
    uint32_t written;
    must(td_program_compile_updates(text, LISTS, names, &written, &p));
    td_chain chain = {.code = calloc(2 * td_chain_most(p), sizeof(td_chain_op))};
    td_chain_make(&chain, p, TD_F32, 0, false, 4096, 0,
                  (td_narrow){.registers = ~(uint64_t)0, .dtype = TD_BF16});
    CHECK(chain.run && chain.ncode > 0 && (size_t)chain.ncode <= td_chain_most(p));
    free(chain.code);
    td_program_release(p);
}

int main(void) {
    must(td_init());
    RUN(chains_along_rows_equal_those_over_copies);
    RUN(chains_have_room_for_all_their_operations);
    RUN(chains_over_more_than_a_cache_equal_their_loops);
    RUN(chains_of_each_simple_step_equal_its_loop);
    RUN(chains_keep_values_that_are_read_again);
    RUN(chains_choose_by_masks);
    RUN(chains_of_whole_numbers_equal_their_loops);
    RUN(chains_compare_as_they_choose);
    RUN(chains_read_what_was_there_before_they_write_it);
    return check_finish();
}
