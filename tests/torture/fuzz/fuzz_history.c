/* fuzz_history.c: a history file of any bytes: what is read of it can be asked for in every way. */
#include "tests/torture/fuzz/bytes.h"

#include "repl/session/session.h"

#include <stdlib.h>
#include <string.h>

static void check_list(tide_history_list *list, bool sorted) {
    for (int k = 0; k < list->n; k++) {
        HOLDS(list->entries[k].input && list->entries[k].session <= 0);
        HOLDS(!sorted || k == 0 || list->entries[k - 1].session <= list->entries[k].session);
    }
    tide_history_list_clear(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_history_list list;
    tide_session *s = bytes_session();
    char *pattern = bytes_text(data, size < 20 ? size : 20);
    tide_session_history_open(s, bytes_file(data, size));
    tide_session_history_tail(s, 1000, &list);
    check_list(&list, true);
    tide_session_history_range(s, -1, 0, 100, &list);
    check_list(&list, true);
    tide_session_history_search(s, "*a*", 0, true, &list);
    check_list(&list, true);
    tide_session_history_search(s, pattern, 10, false, &list);
    check_list(&list, true);
    tide_session_history_open(s, NULL);
    free(pattern);
    return 0;
}
