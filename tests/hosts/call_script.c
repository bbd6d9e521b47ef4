/* call_script.c: a function that was saved by f:save(path) in Lua, called by a program in C.
 * usage: call_script FILE; the function takes a vector of two float32. */
#include "engine/td.h"

#include <stdio.h>

static int fail(void) {
    fprintf(stderr, "%s\n", td_error_message());
    return 1;
}

int main(int argc, char **argv) {
    static const int64_t sizes[] = {2};
    td_scripted *f;
    td_tensor *x;
    td_value out;
    double sum;
    if (argc != 2 || td_init() || td_script_load(argv[1], &f) ||
        td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, sizes, &x))
        return fail();
    ((float *)x->data)[0] = 0.5F;
    ((float *)x->data)[1] = -2;
    if (td_script_call(f, 1, &TD_T(x), 1, &out) || td_tensor_item(out.tensor, &sum))
        return fail();
    printf("%s gives %.4f\n", td_scripted_name(f), sum);
    td_value_drop(&out);
    td_release(x);
    td_scripted_release(f);
    return 0;
}
