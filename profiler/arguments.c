/* arguments.c: see arguments.h. */
#include "profiler/arguments.h"

#include "engine/ops/op.h"

#include <string.h>

typedef struct word_list {
    int64_t used; /* with the first, which counts the others */
    int64_t *words;
} word_list;

static void add_words(word_list *to, const void *from, size_t n) {
    if (n > (size_t)(TIDE_ARGUMENT_WORDS - to->used))
        n = (size_t)(TIDE_ARGUMENT_WORDS - to->used);
    if (n > 0) /* an empty list may lie nowhere */
        memcpy(&to->words[to->used], from, n * sizeof *to->words);
    to->used += (int64_t)n;
}

static void add_text(word_list *to, const char *text) {
    int64_t words[9] = {0};
    size_t len = strlen(text), most = 8 * sizeof *words;
    words[0] = (int64_t)(len < most ? len : most);
    memcpy(&words[1], text, (size_t)words[0]);
    add_words(to, words, 1 + ((size_t)words[0] + sizeof *words - 1) / sizeof *words);
}

static void add_argument(word_list *to, const td_value *v) {
    bool list = v->kind == TD_KIND_INTS || v->kind == TD_KIND_FLOATS || v->kind == TD_KIND_TENSORS;
    int64_t head = v->kind | (int64_t)(list ? v->n : 1) << 8, word = 0;
    add_words(to, &head, 1);
    switch ((td_kind)v->kind) {
    case TD_KIND_INT:
        word = v->i;
        break;
    case TD_KIND_FLOAT:
        memcpy(&word, &v->f, sizeof word);
        break;
    case TD_KIND_BOOL:
        word = v->b;
        break;
    case TD_KIND_DTYPE:
        word = v->dtype;
        break;
    case TD_KIND_INTS:
        add_words(to, v->ints, (size_t)v->n);
        return;
    case TD_KIND_FLOATS:
        add_words(to, v->floats, (size_t)v->n);
        return;
    case TD_KIND_STRING:
        add_text(to, v->string);
        return;
    case TD_KIND_NIL:
    case TD_KIND_TENSOR:
    case TD_KIND_TENSORS:
    case TD_KIND_DEVICE:
    case TD_KIND_GENERATOR:
        return;
    }
    add_words(to, &word, 1);
}

size_t tide_arguments_write(const td_event *event, int64_t words[TIDE_ARGUMENT_WORDS]) {
    word_list list = {1, words};
    for (int k = 0; k < event->nargs; k++)
        add_argument(&list, &event->args[k]);
    words[0] = list.used - 1;
    return (size_t)list.used;
}
