/* check.h: the assertions of the C tests, and the count that closes each test program.
 *
 *     TEST(add_broadcasts_rows) { CHECK_INT(td_dim(x), 2); }
 *     int main(int argc, char **argv) {
 *         RUN(add_broadcasts_rows);
 *         return check_finish();
 *     }
 *
 * A check that fails prints file:line and the values, marks the running test as failed and lets it
 * go on; a REQUIRE that fails also returns from it (in TEST bodies and void helpers). Checks may be
 * made from several threads. A header of one file, included once by each test program; it knows
 * nothing of the engine.
 */
#ifndef TIDE_TESTS_CHECK_H
#define TIDE_TESTS_CHECK_H

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#include <atomic>
using std::atomic_fetch_add;
using std::atomic_int;
using std::atomic_load;
using std::atomic_store;
#else
#include <stdatomic.h>
#endif

/* Exit code that tells ctest that a program was skipped (SKIP_RETURN_CODE in CMakeLists.txt). */
#define CHECK_SKIP_CODE 77

#define CHECK_HELPER static __attribute__((unused))

static atomic_int check_failures; /* failed checks of the running test */
static int check_passed;          /* tests */
static int check_failed;
static const char *check_running = "(outside a test)";

/* Print one failed check and count it. Used by the macros. */
CHECK_HELPER void __attribute__((format(printf, 3, 4)))
check_fail(const char *file, int line, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, check_running, text);
    atomic_fetch_add(&check_failures, 1);
}

CHECK_HELPER bool check_true(const char *file, int line, const char *expr, bool ok) {
    if (!ok)
        check_fail(file, line, "not true: %s", expr);
    return ok;
}

CHECK_HELPER bool check_int(const char *file, int line, const char *expr, int64_t got,
                            int64_t want) {
    if (got != want)
        check_fail(file, line, "%s is %" PRId64 ", expected %" PRId64, expr, got, want);
    return got == want;
}

CHECK_HELPER bool check_str(const char *file, int line, const char *expr, const char *got,
                            const char *want) {
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    if (!same)
        check_fail(file, line, "%s is \"%s\", expected \"%s\"", expr, got ? got : "(NULL)",
                   want ? want : "(NULL)");
    return same;
}

CHECK_HELPER bool check_contains(const char *file, int line, const char *expr, const char *got,
                                 const char *part) {
    bool found = got && part && strstr(got, part);
    if (!found)
        check_fail(file, line, "%s is \"%s\", which lacks \"%s\"", expr, got ? got : "(NULL)",
                   part ? part : "(NULL)");
    return found;
}

/* Within `tol` of the expected value; nan is close to nan, an infinity only to itself. */
CHECK_HELPER bool check_close(const char *file, int line, const char *expr, double got, double want,
                              double tol) {
    bool close = got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tol;
    if (!close)
        check_fail(file, line, "%s is %.17g, expected %.17g within %g", expr, got, want, tol);
    return close;
}

#define CHECK(cond)                 check_true(__FILE__, __LINE__, #cond, (cond))
#define CHECK_INT(got, want)        check_int(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(want))
#define CHECK_STR(got, want)        check_str(__FILE__, __LINE__, #got, (got), (want))
#define CHECK_CONTAINS(got, part)   check_contains(__FILE__, __LINE__, #got, (got), (part))
#define CHECK_CLOSE(got, want, tol) check_close(__FILE__, __LINE__, #got, (got), (want), (tol))

/* A check without which the rest of the test has no meaning. */
#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!CHECK(cond))                                                                          \
            return;                                                                                \
    } while (0)

#define TEST(name) static void test_##name(void)
#define RUN(name)  check_run(#name, test_##name)

CHECK_HELPER void check_run(const char *name, void (*test)(void)) {
    check_running = name;
    atomic_store(&check_failures, 0);
    test();
    if (atomic_load(&check_failures)) {
        check_failed++;
        printf("FAILED %s\n", name);
    } else {
        check_passed++;
    }
    check_running = "(outside a test)";
    atomic_store(&check_failures, 0);
}

/* Print the count; the exit code of the program. A program that ran no test has failed. */
CHECK_HELPER int check_finish(void) {
    printf("%d passed, %d failed\n", check_passed, check_failed);
    return check_failed || !check_passed ? 1 : 0;
}

/* Leave the program saying why nothing could be tested: return check_skip("no CUDA device"); */
CHECK_HELPER int check_skip(const char *why) {
    printf("skipped: %s\n", why);
    return CHECK_SKIP_CODE;
}

#endif
