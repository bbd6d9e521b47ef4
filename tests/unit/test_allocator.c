/* test_allocator.c: blocks are as large as asked for; under the address sanitizer, what lies beside
 * a tensor's memory, and memory that waits in the cache, can't be touched unnoticed. */
#include "engine/core/modes.h"
#include "engine/core/poison.h"
#include "engine/ops/make/copy.h"
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static td_tensor *bytes(int64_t n) {
    td_tensor *x = NULL;
    CHECK_INT(td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &n, &x), TD_OK);
    return x;
}

static void check_block(int64_t n) {
    td_tensor *x = bytes(n);
    int64_t granted = (int64_t)x->storage->granted;
    CHECK(granted >= n && granted <= n + n / 4 + 64 && granted % 16 == 0);
    CHECK_INT((int64_t)((uintptr_t)x->data % 64), 0);
    memset(x->data, 1, (size_t)n);
    td_release(x);
}

TEST(a_block_has_room_for_what_was_asked_and_little_more) {
    for (int64_t n = 65; n < 3000; n++)
        check_block(n);
    for (int64_t power = 4096; power <= 8 << 20; power *= 2)
        for (int64_t step = 0; step < 4; step++)
            for (int64_t beside = -1; beside <= 1; beside++)
                check_block(power + step * power / 4 + beside);
}

/* Of the blocks that are cached, one that is large enough and was given back last. */
TEST(a_brief_request_takes_the_newest_block_that_is_not_far_too_large) {
    td_memory_empty_cache(TD_DEVICE_CPU);
    td_tensor *small = bytes(300 << 10), *large = bytes(1 << 20), *huge = bytes(5 << 20);
    void *const at[] = {small->data, large->data, huge->data};
    td_release(small);
    td_release(large);
    td_release(huge);
    td_tensor *lasting = bytes(300 << 10);
    CHECK(lasting->data == at[0]);
    td_modes_current.brief = true;
    td_tensor *brief = bytes(300 << 10), *another = bytes(300 << 10);
    td_modes_current.brief = false;
    CHECK(brief->data == at[1]);
    CHECK_INT((int64_t)brief->storage->granted, 1 << 20);
    CHECK(another->data != at[2]);
    memset(brief->data, 1, 300 << 10);
    td_release(lasting);
    td_release(another);
    td_release(brief);
    td_tensor *again = bytes(1 << 20);
    CHECK(again->data == at[1]);
    td_release(again);
}

/* Blocks that share a region, with the byte that each is full of. */
static void check_full_of(const td_tensor *x, int byte) {
    const unsigned char *p = x->data;
    CHECK(p[0] == byte && p[x->numel / 2] == byte && p[x->numel - 1] == byte);
}

TEST(a_block_that_goes_back_to_the_system_leaves_those_beside_it) {
    enum { BLOCKS = 90 }; /* more than a region holds */
    td_tensor *x[BLOCKS];
    for (int k = 0; k < BLOCKS; k++) {
        x[k] = bytes((256 << 10) + k * 40000);
        memset(x[k]->data, k, (size_t)x[k]->numel);
    }
    for (int k = 0; k < BLOCKS; k += 2)
        td_release(x[k]);
    td_memory_empty_cache(TD_DEVICE_CPU);
    for (int k = 1; k < BLOCKS; k += 2)
        check_full_of(x[k], k);
    for (int k = 0; k < BLOCKS; k += 2) {
        x[k] = bytes((256 << 10) + k * 30000);
        memset(x[k]->data, 255 - k, (size_t)x[k]->numel);
    }
    for (int k = 0; k < BLOCKS; k++) {
        check_full_of(x[k], k % 2 ? k : 255 - k);
        td_release(x[k]);
    }
    td_memory_empty_cache(TD_DEVICE_CPU);
}

/* ---- what the sanitizer must see ---- */

enum { N = 1000 }; /* of a class of 1,024 */

static volatile unsigned char sink;

static void write_behind(void) {
    unsigned char *p = bytes(N)->data;
    p[N] = 1;
}

static void read_far_behind(void) {
    unsigned char *p = bytes(N)->data;
    sink = p[1023];
}

static void write_behind_a_full_class(void) {
    unsigned char *p = bytes(1024)->data;
    p[1024] = 1;
}

static void write_before(void) {
    unsigned char *p = bytes(N)->data;
    p[-1] = 1;
}

static void write_behind_mapped_memory(void) {
    unsigned char *p = bytes(1 << 20)->data;
    p[1 << 20] = 1;
}

static void read_freed(void) {
    td_tensor *x = bytes(N);
    unsigned char *p = x->data;
    td_release(x);
    sink = p[0];
}

static void write_freed_mapped_memory(void) {
    td_tensor *x = bytes(2 << 20);
    unsigned char *p = x->data;
    td_release(x);
    p[12345] = 1;
}

/* A block that is used again for fewer bytes. */
static void write_behind_in_used_memory(void) {
    td_release(bytes(N));
    td_tensor *x = bytes(900);
    unsigned char *p = x->data;
    p[900] = 1;
}

/* A copy that is too long, made by the library's memcpy. */
static void copy_too_much(void) {
    td_tensor *x = bytes(N), *y = bytes(N);
    memcpy(x->data, y->data, N + 1);
}

/* Does a child that does this die with a report? */
static bool is_reported(void (*fault)(void)) {
    int ends[2], status = 0;
    char report[4096] = "";
    size_t n = 0;
    if (!CHECK_INT(pipe(ends), 0))
        return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        fault();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; n < sizeof report - 1; n += (size_t)got)
        if ((got = read(ends[0], report + n, sizeof report - 1 - n)) <= 0)
            break;
    close(ends[0]);
    waitpid(child, &status, 0);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0) && strstr(report, "use-after-poison");
}

TEST(memory_that_is_not_a_tensor_s_is_not_touched_unnoticed) {
    CHECK(is_reported(write_behind));
    CHECK(is_reported(read_far_behind));
    CHECK(is_reported(write_behind_a_full_class));
    CHECK(is_reported(write_before));
    CHECK(is_reported(write_behind_mapped_memory));
    CHECK(is_reported(read_freed));
    CHECK(is_reported(write_freed_mapped_memory));
    CHECK(is_reported(write_behind_in_used_memory));
    CHECK(is_reported(copy_too_much));
}

/* No page more for anybody: what needs a large frame finds it, or memory is out. */
static void work_without_addresses(void) {
    td_tensor *x = NULL, *turned = NULL, *dense = NULL;
    struct rlimit none = {1 << 20, 1 << 20};
    if (TD_APPLY(&x, ones, TD_INTS(2, ((int64_t[]){9, 11}))) ||
        TD_APPLY(&turned, transpose, TD_T(x), TD_I(0), TD_I(1)) || setrlimit(RLIMIT_AS, &none))
        _exit(2);
    td_status status = td_contiguous(turned, &dense);
    _exit(status == TD_OK || status == TD_ENOMEM ? 0 : 3);
}

TEST(the_stack_has_room_where_addresses_are_out) {
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        work_without_addresses();
    if (CHECK(child > 0) && CHECK(waitpid(child, &status, 0) == child)) {
        CHECK(WIFEXITED(status));
        CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(a_block_has_room_for_what_was_asked_and_little_more);
    RUN(a_brief_request_takes_the_newest_block_that_is_not_far_too_large);
    RUN(a_block_that_goes_back_to_the_system_leaves_those_beside_it);
    if (!TD_SANITIZED) /* which wants addresses itself */
        RUN(the_stack_has_room_where_addresses_are_out);
    if (TD_SANITIZED)
        RUN(memory_that_is_not_a_tensor_s_is_not_touched_unnoticed);
    return check_finish();
}
