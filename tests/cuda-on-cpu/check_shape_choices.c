/* check_shape_choices.c: the cache of what libraries chose for shapes keeps all of a network's
 * beside one another, gives back each one's own, and replaces what was asked for least recently. */
#include "engine/cuda/runtime/shape_choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int32_t n, c, size, direction;
} shape;

static td_cuda_ways ways = {.shape_bytes = sizeof(shape)};
static int failures;

static void check(bool ok, const char *what, int k) {
    if (ok)
        return;
    failures++;
    fprintf(stderr, "FAILED %s (shape %d)\n", what, k);
}

/* As a large network's: few numbers, much alike. */
static shape shape_of(int k) {
    return (shape){128, 64 << k % 6, 7 << k / 6 % 6, k / 36};
}

int main(void) {
    enum { SHAPES = 1000, MANY = 200000 };
    static int values[MANY];
    bool known;
    for (int round = 0; round < 3; round++)
        for (int k = 0; k < SHAPES; k++) {
            shape s = shape_of(k);
            void **place = td_cuda_ways_place(&ways, &s, &known);
            check(known == (round > 0), "a shape is known from the second time on", k);
            check(!known || *place == &values[k], "a shape has its own way", k);
            *place = &values[k];
            check(td_cuda_ways_known(&ways, &s), "what was placed is known", k);
        }
    /* Two that are always asked for stay while many others pass. */
    shape first = shape_of(0), second = shape_of(1);
    for (int k = SHAPES; k < MANY; k++) {
        shape s = shape_of(k);
        *td_cuda_ways_place(&ways, &s, &known) = &values[k];
        check(*td_cuda_ways_place(&ways, &first, &known) == &values[0] && known, "one in use stays",
              k);
        check(*td_cuda_ways_place(&ways, &second, &known) == &values[1] && known,
              "one in use stays", k);
    }
    shape old = shape_of(2);
    check(!td_cuda_ways_known(&ways, &old), "what nobody asks for goes", 2);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
