/* test_script_package.c: functions in files: what was saved is called, the same bytes come out
 * again, and what is damaged, cut, newer or hostile is refused without a loss. */
#include "engine/td.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/tide_package_XXXXXX", other[] = "/tmp/tide_package_XXXXXX";

static void make_paths(void) {
    static bool made;
    if (!made) {
        close(mkstemp(path));
        close(mkstemp(other));
        made = true;
    }
}

/* ---- files ---- */

static char *read_file(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    char *bytes = malloc(1 << 16);
    *size = file && bytes ? fread(bytes, 1, 1 << 16, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static void write_file(const char *name, const char *bytes, size_t size) {
    FILE *file = fopen(name, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size);
    if (file)
        fclose(file);
}

static td_tensor *vector(double a, double b) {
    static const int64_t sizes[] = {2};
    td_tensor *x = NULL;
    CHECK(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 1, sizes, &x) == TD_OK);
    ((double *)x->data)[0] = a;
    ((double *)x->data)[1] = b;
    return x;
}

static const char *const text = "graph(%x : Tensor,\n"
                                "      %n : int):\n"
                                "  %w : Tensor = prim::Constant[tensor=0]()\n"
                                "  %b : Tensor = prim::Constant[tensor=1]()\n"
                                "  %1 : Tensor = aten::mul(%x, %w) # cell.lua:2:9\n"
                                "  %2 : int = prim::Constant[value=1]()\n"
                                "  %3 : Tensor = aten::add(%1, %b, %2) # cell.lua:3\n"
                                "  %4 : Tensor = aten::mul(%3, %n)\n"
                                "  return (%4, %w)\n";

static td_scripted *make(void) {
    td_tensor *constants[] = {vector(2, 3), vector(10, 20)};
    td_ir_graph *g = NULL;
    td_scripted *f = NULL;
    CHECK(td_set_requires_grad(constants[1], true) == TD_OK);
    CHECK(td_ir_parse_with(text, 2, constants, &g) == TD_OK);
    CHECK(td_scripted_new(g, "cell", &f) == TD_OK);
    td_ir_graph_release(g);
    td_release(constants[0]);
    td_release(constants[1]);
    return f;
}

/* (x * {2, 3} + {10, 20}) * n of x = {1, 2}, n = 3: {36, 78}. */
static void check_call(td_scripted *f) {
    td_tensor *x = vector(1, 2);
    td_value in[] = {TD_T(x), TD_I(3)}, out[2];
    CHECK(td_script_call(f, 2, in, 2, out) == TD_OK);
    const double *y = out[0].tensor->data;
    CHECK(y[0] == 36 && y[1] == 78);
    CHECK(out[0].tensor->requires_grad); /* since the second constant does */
    CHECK(!out[1].tensor->requires_grad);
    td_value_drop(&out[0]);
    td_value_drop(&out[1]);
    td_release(x);
}

/* ---- tests ---- */

TEST(a_saved_function_gives_known_numbers_and_the_same_bytes_again) {
    size_t n, m;
    make_paths();
    td_scripted *f = make(), *g = NULL;
    CHECK(td_script_save(f, path) == TD_OK);
    CHECK(td_script_load(path, &g) == TD_OK);
    CHECK(!strcmp(td_scripted_name(g), "cell"));
    check_call(f);
    check_call(g);
    CHECK(td_script_save(g, other) == TD_OK);
    char *a = read_file(path, &n), *b = read_file(other, &m);
    CHECK(n > 500 && n == m && !memcmp(a, b, n));
    char *printed = td_ir_print(td_scripted_graph(g));
    CHECK(printed && strstr(printed, "# cell.lua:2:9") && strstr(printed, "# cell.lua:3\n"));
    td_free(printed);
    free(a);
    free(b);
    td_scripted_release(f);
    td_scripted_release(g);
}

TEST(wrong_numbers_of_inputs_are_refused) {
    td_scripted *f = make();
    td_value in[] = {TD_I(1), TD_I(2)}, out[2];
    CHECK(td_script_call(f, 1, in, 2, out) == TD_ETYPE);
    CHECK(strstr(td_error_message(), "cell: 2 inputs and 2 outputs, called with 1 and 2"));
    CHECK(td_script_call(f, 2, in, 2, out) == TD_ETYPE); /* the first is no tensor */
    td_scripted_release(f);
}

TEST(constants_that_do_not_lie_row_by_row_are_written_so) {
    static const int64_t sizes[] = {2, 2};
    td_tensor *x = NULL, *turned = NULL;
    td_ir_graph *g = NULL;
    td_scripted *f = NULL, *loaded = NULL;
    td_value out;
    size_t n, m;
    make_paths();
    CHECK(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 2, sizes, &x) == TD_OK);
    for (int k = 0; k < 4; k++)
        ((double *)x->data)[k] = k;
    CHECK(TD_APPLY(&turned, transpose, TD_T(x), TD_I(0), TD_I(1)) == TD_OK);
    CHECK(td_ir_parse_with("graph():\n"
                           "  %0 : Double(2, 2, strides=[1, 2], device=cpu) = "
                           "prim::Constant[tensor=0]()\n"
                           "  %1 : Double(2, 2, strides=[1, 2], device=cpu) = aten::neg(%0)\n"
                           "  return (%1)\n",
                           1, &turned, &g) == TD_OK);
    CHECK(td_scripted_new(g, "turned", &f) == TD_OK);
    CHECK(td_script_save(f, path) == TD_OK);
    CHECK(td_script_load(path, &loaded) == TD_OK);
    CHECK(td_script_call(loaded, 0, NULL, 1, &out) == TD_OK);
    const double *y = out.tensor->data;
    CHECK(out.tensor->contiguous && y[0] == 0 && y[1] == -2 && y[2] == -1 && y[3] == -3);
    td_value_drop(&out);
    CHECK(td_script_save(loaded, other) == TD_OK);
    char *a = read_file(path, &n), *b = read_file(other, &m);
    CHECK(n == m && !memcmp(a, b, n));
    free(a);
    free(b);
    td_scripted_release(f);
    td_scripted_release(loaded);
    td_ir_graph_release(g);
    td_release(turned);
    td_release(x);
}

/* A file of these three texts, as another program would write it. */
static td_status put_text(const void *content, td_sink *to) {
    return td_sink_put(to, content, strlen(content));
}

static td_status put_no_tensors(const void *content, td_sink *to) {
    (void)content;
    return td_safetensors_put(to, 0, NULL, 0, NULL);
}

static void write_package(const char *head, const char *graph) {
    const td_zip_file files[] = {{"script", 6, "", put_text, head},
                                 {"graph.txt", 9, "", put_text, graph},
                                 {"tensors.safetensors", 19, "", put_no_tensors, NULL}};
    make_paths();
    CHECK(td_zip_write(path, 3, files) == TD_OK);
}

static void check_refused(const char *head, const char *graph, const char *why) {
    td_scripted *f = NULL;
    write_package(head, graph);
    CHECK(td_script_load(path, &f) == TD_EVALUE && f == NULL);
    CHECK(strstr(td_error_message(), why));
}

TEST(what_is_wrong_with_a_file_is_said) {
    static const char *const good = "tide script 1\nname f\n", *const empty =
                                                                   "graph():\n  return ()\n";
    td_scripted *f = NULL;
    write_package(good, empty);
    CHECK(td_script_load(path, &f) == TD_OK);
    td_scripted_release(f);
    check_refused("tide script 7\nname f\n", empty, "it has format 7, and Tide ");
    check_refused("tide script 7\nname f\n", empty, " reads format 1: a newer Tide wrote it");
    check_refused("tide script 0\nname f\n", empty, "does not begin with \"tide script 1\"");
    check_refused("tide script 1x\nname f\n", empty, "does not begin with");
    check_refused("tide script 1\nnam f\n", empty, "names no function");
    check_refused("tide script 1\nname f\nmore\n", empty, "names no function");
    check_refused(good, "graph(:\n", "of the graph");
    check_refused(good, "graph():\n  %0 : Tensor = prim::Constant[tensor=0]()\n  return (%0)\n",
                  "tensor");
    CHECK(td_script_load("/nowhere/f.tide", &f) == TD_EIO && f == NULL);
}

/* Cut at every byte, and with every byte changed: refused, or as good as it was. */
TEST(damaged_files_are_survived) {
    size_t n;
    make_paths();
    td_scripted *f = make();
    CHECK(td_script_save(f, path) == TD_OK);
    td_scripted_release(f);
    char *bytes = read_file(path, &n);
    for (size_t k = 0; k < n; k++) {
        write_file(other, bytes, k);
        CHECK(td_script_load(other, &f) != TD_OK && f == NULL);
    }
    for (size_t k = 0; k < n; k += 3) {
        bytes[k] ^= 0x55;
        write_file(other, bytes, n);
        bytes[k] ^= 0x55;
        if (td_script_load(other, &f) == TD_OK)
            check_call(f); /* a field that nobody reads, as dates */
        td_scripted_release(f);
    }
    free(bytes);
}

TEST(memory_that_runs_out_loses_nothing) {
    make_paths();
    td_scripted *f = make(), *g = NULL;
    bool saved = false, loaded = false;
    for (int64_t k = 0; k < 2000 && !saved; k++) {
        td_memory_fail_after(k);
        saved = td_script_save(f, path) == TD_OK;
        td_memory_fail_after(-1);
    }
    for (int64_t k = 0; k < 2000 && !loaded; k++) {
        td_memory_fail_after(k);
        loaded = td_script_load(path, &g) == TD_OK;
        td_memory_fail_after(-1);
        CHECK(loaded == (g != NULL));
    }
    CHECK(saved && loaded);
    check_call(g);
    td_scripted_release(f);
    td_scripted_release(g);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(a_saved_function_gives_known_numbers_and_the_same_bytes_again);
    RUN(wrong_numbers_of_inputs_are_refused);
    RUN(constants_that_do_not_lie_row_by_row_are_written_so);
    RUN(what_is_wrong_with_a_file_is_said);
    RUN(damaged_files_are_survived);
    RUN(memory_that_runs_out_loses_nothing);
    unlink(path);
    unlink(other);
    return check_finish();
}
