/* fuzz_script.c: functions in files: after a first byte that chooses, the bytes are a file of one,
 * or a graph's text that is put into one. What is loaded is saved, and then the same bytes again.
 */
#include "tests/torture/fuzz/bytes.h"

#include "engine/td.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char first[] = "/tmp/tide_fuzz_XXXXXX", second[] = "/tmp/tide_fuzz_XXXXXX";

static void remove_files(void) {
    unlink(first);
    unlink(second);
}

static void start(void) {
    static bool started;
    if (started)
        return;
    started = true;
    HOLDS(td_init() == TD_OK && atexit(remove_files) == 0);
    close(mkstemp(first));
    close(mkstemp(second));
}

static bool same_files(void) {
    char a[4096], b[4096];
    ssize_t n, m;
    int x = open(first, O_RDONLY | O_CLOEXEC), y = open(second, O_RDONLY | O_CLOEXEC);
    do {
        n = read(x, a, sizeof a);
        m = read(y, b, sizeof b);
    } while (n > 0 && n == m && !memcmp(a, b, (size_t)n));
    close(x);
    close(y);
    return n == 0 && m == 0;
}

static td_status put_text(const void *content, td_sink *to) {
    return td_sink_put(to, content, strlen(content));
}

static td_status put_no_tensors(const void *content, td_sink *to) {
    (void)content;
    return td_safetensors_put(to, 0, NULL, 0, NULL);
}

static const char *package(const uint8_t *data, size_t size) {
    char *text = bytes_text(data, size);
    const td_zip_file files[] = {{"script", 6, "", put_text, "tide script 1\nname f\n"},
                                 {"graph.txt", 9, "", put_text, text},
                                 {"tensors.safetensors", 19, "", put_no_tensors, NULL}};
    HOLDS(td_zip_write(second, 3, files) == TD_OK);
    free(text);
    return second;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    td_scripted *f = NULL, *g = NULL;
    start();
    uint8_t choice = bytes_choice(&data, &size);
    const char *path = choice % 2 ? package(data, size) : bytes_file(data, size);
    if (td_script_load(path, &f)) {
        HOLDS(f == NULL && *td_error_message() && !strchr(td_error_message(), '\n'));
        return 0;
    }
    HOLDS(td_script_save(f, first) == TD_OK);
    HOLDS(td_script_load(first, &g) == TD_OK);
    HOLDS(td_script_save(g, second) == TD_OK);
    HOLDS(same_files());
    td_scripted_release(f);
    td_scripted_release(g);
    return 0;
}
