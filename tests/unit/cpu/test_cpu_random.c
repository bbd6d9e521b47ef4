/* test_cpu_random.c: what a seed gives: the numbers of each stream, and random orders against a
 * sort by keys, whatever the instruction set and the number of threads. */
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>

typedef struct numbered {
    uint64_t key;
    int64_t number;
} numbered;

static int by_key(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The order as core/random.h's generator defines it. */
static numbered *sorted(uint64_t seed, int64_t n) {
    numbered *all = calloc((size_t)n + 1, sizeof *all);
    uint32_t w[4] = {0};
    for (int64_t k = 0; k < n; k++) {
        if (k % 2 == 0)
            td_philox(seed, (uint64_t)k / 2, w);
        all[k] = (numbered){(uint64_t)w[k % 2 * 2] << 32 | w[k % 2 * 2 + 1], k};
    }
    qsort(all, (size_t)n, sizeof *all, by_key);
    return all;
}

static void check_order(uint64_t seed, int64_t n) {
    td_tensor *x = NULL;
    td_manual_seed(seed);
    numbered *want = sorted(seed, n);
    if (CHECK_INT(TD_APPLY(&x, randperm, TD_I(n)), TD_OK)) {
        const int64_t *got = x->data;
        int64_t wrong = 0;
        for (int64_t k = 0; k < n; k++)
            wrong += got[k] != want[k].number;
        CHECK_INT(wrong, 0);
    }
    free(want);
    td_release(x);
}

TEST(a_random_order_is_that_of_the_generators_keys) {
    static const int64_t lengths[] = {0,  1,   2,   3,    12,   13,   24,
                                      25, 100, 511, 2048, 2049, 5000, 300001};
    int threads = td_get_num_threads();
    for (int k = 1; k <= 3; k += 2) {
        CHECK_INT(td_set_num_threads(k), TD_OK);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            check_order(5, lengths[i]);
    }
    CHECK_INT(td_set_num_threads(threads), TD_OK);
}

/* What shares a digit is exchanged with its neighbours, vector by vector. */
TEST(short_random_orders_of_every_length_are_those_of_the_keys) {
    for (int64_t n = 0; n < 700; n++)
        check_order((uint64_t)n, n);
}

/* The keys of 159222 and 680039 agree in their highest 44 bits, and are not in their order. */
TEST(keys_that_are_nearly_alike_go_by_their_last_bits) {
    check_order(118, 1000003);
}

static void check_numbers(td_tensor *x, int n, const double *want) {
    for (int k = 0; k < n; k++)
        CHECK_CLOSE(
            td_load_double((td_dtype)x->dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x)),
            want[k], 1e-6);
    td_release(x);
}

TEST(a_seed_gives_the_same_numbers_for_ever) {
    const int64_t five = 5, six = 6;
    td_tensor *x = NULL;
    td_manual_seed(0);
    CHECK_INT(TD_APPLY(&x, rand, TD_INTS(1, &five)), TD_OK);
    check_numbers(x, 5,
                  (double[]){0.399046421, 0.880520165, 0.735712767, 0.605481803, 0.972241163});
    CHECK_INT(TD_APPLY(&x, randn, TD_INTS(1, &five)), TD_OK);
    check_numbers(x, 5,
                  (double[]){-0.0837631822, 0.179626882, -0.0750852153, 0.546086609, -1.51521027});
    CHECK_INT(TD_APPLY(&x, rand, TD_INTS(1, &five), TD_DTYPE(TD_F64)), TD_OK);
    check_numbers(x, 5, (double[]){0.934536179, 0.942129537, 0.450326203, 0.67027781, 0.713612316});
    CHECK_INT(TD_APPLY(&x, randn, TD_INTS(1, &five), TD_DTYPE(TD_F64)), TD_OK);
    check_numbers(x, 5,
                  (double[]){-0.274173987, -1.44099788, 0.705084592, -0.275477986, 1.26162947});
    CHECK_INT(TD_APPLY(&x, randint, TD_I(1), TD_I(100), TD_INTS(1, &five)), TD_OK);
    check_numbers(x, 5, (double[]){84, 81, 17, 78, 63});
    td_manual_seed(0);
    CHECK_INT(TD_APPLY(&x, zeros, TD_INTS(1, &six)), TD_OK);
    CHECK_INT(TD_APPLY_INPLACE(uniform_, TD_T(x)), TD_OK);
    check_numbers(x, 5,
                  (double[]){0.399046421, 0.880520165, 0.735712767, 0.605481803, 0.972241163});
}

/* Every second element is filled, in the same order. */
TEST(draws_into_strided_tensors_leave_the_gaps_alone) {
    const int64_t ten = 10, five = 5, two = 2;
    td_tensor *x = NULL, *view = NULL;
    CHECK_INT(TD_APPLY(&x, zeros, TD_INTS(1, &ten)), TD_OK);
    CHECK_INT(td_tensor_view(x, 1, &five, &two, 0, &view), TD_OK);
    td_manual_seed(0);
    CHECK_INT(TD_APPLY_INPLACE(uniform_, TD_T(view)), TD_OK);
    td_release(view);
    check_numbers(
        x, 10,
        (double[]){0.399046421, 0, 0.880520165, 0, 0.735712767, 0, 0.605481803, 0, 0.972241163, 0});
}

TEST(probabilities_outside_0_and_1_are_refused) {
    const double bad[] = {-0.25, 1.5, (double)NAN};
    for (int k = 0; k < 3; k++) {
        td_tensor *p = NULL, *y = NULL;
        CHECK_INT(td_tensor_scalar(TD_F32, bad[k], &p), TD_OK);
        CHECK_INT(TD_APPLY(&y, bernoulli, TD_T(p)), TD_EVALUE);
        CHECK_STR(td_error_message(), "bernoulli: probabilities must lie between 0 and 1");
        td_release(p);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(a_random_order_is_that_of_the_generators_keys);
    RUN(short_random_orders_of_every_length_are_those_of_the_keys);
    RUN(keys_that_are_nearly_alike_go_by_their_last_bits);
    RUN(a_seed_gives_the_same_numbers_for_ever);
    RUN(draws_into_strided_tensors_leave_the_gaps_alone);
    RUN(probabilities_outside_0_and_1_are_refused);
    return check_finish();
}
