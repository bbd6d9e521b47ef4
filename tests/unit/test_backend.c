/* test_backend.c: a kind of device that registers itself: what it lacks, what it refuses, and the
 * streams that plans and storages carry. Its memory is the host's. */
#include "engine/td.h"

#include "engine/ops/plan/plan.h"
#include "tests/check.h"

#include <stdlib.h>

static int calls_until_failure = -1; /* -1: never */
static uint16_t last_stream;
static int allocated_in[4];

static int count(void) {
    return 2;
}

static void *allocate(td_stream stream, size_t bytes, size_t *granted) {
    *granted = (bytes + 63) / 64 * 64 + 64;
    allocated_in[stream.id & 3]++;
    return aligned_alloc(64, *granted);
}

static void release(td_stream stream, void *block, size_t granted) {
    (void)granted;
    allocated_in[stream.id & 3]--;
    free(block);
}

static void empty_cache(int index) {
    (void)index;
}

static td_status copy(td_stream stream, void *dst, const void *src, size_t bytes) {
    (void)stream;
    memcpy(dst, src, bytes);
    return TD_OK;
}

static td_status synchronize(td_stream stream) {
    (void)stream;
    return TD_OK;
}

static td_status pointwise(const td_pointwise_plan *plan) {
    last_stream = plan->stream.id;
    if (calls_until_failure > 0 && --calls_until_failure == 0) {
        calls_until_failure = -1;
        return td_fail(TD_EIO, "the device fell over");
    }
    return td_backends[TD_CPU]->pointwise(plan);
}

/* A progression is all that it can't do without; most functions are missing. */
static const td_backend toy = {
    .name = "toy",
    .count = count,
    .allocate = allocate,
    .release = release,
    .empty_cache = empty_cache,
    .copy = copy,
    .upload = copy,
    .download = copy,
    .synchronize = synchronize,
    .pointwise = pointwise,
};

static td_device toy_device(const char *text) {
    td_device device = TD_DEVICE_CPU;
    CHECK_INT(td_device_parse(text, &device), TD_OK);
    return device;
}

static td_tensor *ones(int64_t n) {
    td_tensor *x = NULL;
    CHECK_INT(TD_APPLY(&x, ones, TD_INTS(1, &n), TD_DTYPE(TD_F32), TD_DEVICE(toy_device("toy"))),
              TD_OK);
    return x;
}

static double at(td_tensor *x, int64_t k) {
    td_tensor *part = NULL;
    double value = -1;
    CHECK_INT(TD_APPLY(&part, select, TD_T(x), TD_I(0), TD_I(k)), TD_OK);
    CHECK_INT(td_tensor_item(part, &value), TD_OK);
    td_release(part);
    return value;
}

TEST(a_device_is_known_by_its_name) {
    td_device device;
    CHECK_STR(td_device_name(toy_device("toy")), "toy:0");
    CHECK_STR(td_device_name(toy_device("toy:1")), "toy:1");
    CHECK_INT(td_device_parse("toy:2", &device), TD_EDEVICE);
    CHECK_INT(td_device_parse("toys", &device), TD_EVALUE);
    CHECK_INT(td_backend_register(&toy), TD_EVALUE);
    CHECK_CONTAINS(td_error_message(), "registered already");
}

static td_status fail_to_start(void) {
    return td_fail(TD_EDEVICE, "the driver is too old");
}

TEST(a_kind_of_device_that_does_not_start_is_not_there) {
    static const td_backend broken = {.name = "broken", .start = fail_to_start};
    td_device device;
    CHECK_INT(td_backend_register(&broken), TD_EDEVICE);
    CHECK_STR(td_error_message(), "the driver is too old");
    CHECK_INT(td_device_parse("broken", &device), TD_EVALUE);
}

TEST(the_cpu_says_which_kernels_run) {
    const char *wanted = getenv("TIDE_CPU");
    td_backend_facts facts = td_backends[TD_CPU]->describe(0);
    CHECK_CONTAINS(wanted ? wanted : "baseline avx2 avx512", facts.kernels);
    CHECK_CONTAINS(facts.libraries, "OpenBLAS ");
}

TEST(tensors_live_and_move_between_devices) {
    td_tensor *x = ones(100), *y = NULL, *back = NULL;
    CHECK_INT(td_memory_allocated(toy_device("toy")), 448 + 64);
    CHECK_INT(TD_APPLY(&y, add, TD_T(x), TD_F(2)), TD_OK);
    CHECK_CLOSE(at(y, 99), 3, 0);
    CHECK_INT(TD_APPLY(&back, to, TD_T(y), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)), TD_OK);
    CHECK_CLOSE(((float *)back->data)[42], 3, 0);
    td_release(back);
    td_release(y);
    td_release(x);
    CHECK_INT(td_memory_allocated(toy_device("toy")), 0);
}

TEST(what_a_device_lacks_is_said_by_name) {
    td_tensor *x = ones(3), *y = NULL;
    CHECK_INT(TD_APPLY(&y, sum, TD_T(x)), TD_EDEVICE);
    CHECK_STR(td_error_message(), "sum: toy:0 can't do this: its backend has no 'reduce'");
    CHECK(y == NULL);
    td_release(x);
}

TEST(a_device_that_fails_in_mid_call_leaves_all_as_it_was) {
    td_tensor *leaf = ones(3), *x = NULL;
    CHECK_INT(td_set_requires_grad(leaf, true), TD_OK);
    CHECK_INT(TD_APPLY(&x, mul, TD_T(leaf), TD_F(2)), TD_OK);
    unsigned version = td_tensor_version(x);
    calls_until_failure = 1;
    CHECK_INT(TD_APPLY_INPLACE(exp, TD_T(x)), TD_EIO);
    CHECK_STR(td_error_message(), "exp_: the device fell over");
    CHECK_INT(td_tensor_version(x), version);
    CHECK_STR(td_grad_fn_name(x), "MulBackward");
    CHECK_CLOSE(at(x, 0), 2, 0);
    td_release(x);
    td_release(leaf);
    CHECK_INT(td_memory_allocated(toy_device("toy")), 0);
}

TEST(devices_do_not_mix) {
    int64_t n = 3;
    td_tensor *x = ones(3), *host = NULL, *y = NULL, *scalar = NULL;
    CHECK_INT(TD_APPLY(&host, zeros, TD_INTS(1, &n)), TD_OK);
    CHECK_INT(TD_APPLY(&y, add, TD_T(x), TD_T(host)), TD_EDEVICE);
    CHECK_INT(td_tensor_scalar(TD_F32, 5, &scalar), TD_OK);
    CHECK_INT(TD_APPLY(&y, add, TD_T(x), TD_T(scalar)), TD_OK);
    CHECK_CLOSE(at(y, 1), 6, 0);
    td_release(y);
    td_release(scalar);
    td_release(host);
    td_release(x);
}

TEST(plans_and_storages_know_the_thread_s_stream) {
    td_stream third = {toy_device("toy"), 3};
    CHECK_INT(td_stream_set_current(third), 0);
    td_tensor *x = ones(50);
    CHECK_INT(x->storage->stream, 3);
    CHECK_INT(last_stream, 3);
    CHECK_INT(allocated_in[3], 1);
    CHECK_INT(td_stream_set_current((td_stream){toy_device("toy"), 0}), 3);
    td_release(x); /* given back in the order of its own stream */
    CHECK_INT(allocated_in[3], 0);
}

int main(void) {
    if (td_init() || td_backend_register(&toy)) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(a_device_is_known_by_its_name);
    RUN(a_kind_of_device_that_does_not_start_is_not_there);
    RUN(the_cpu_says_which_kernels_run);
    RUN(tensors_live_and_move_between_devices);
    RUN(what_a_device_lacks_is_said_by_name);
    RUN(a_device_that_fails_in_mid_call_leaves_all_as_it_was);
    RUN(devices_do_not_mix);
    RUN(plans_and_storages_know_the_thread_s_stream);
    return check_finish();
}
