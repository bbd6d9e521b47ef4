/* package.c: functions in files: what goes into the archive, and what is believed of one. */
#include "engine/script/package.h"

#include "engine/autograd/autograd.h"
#include "engine/core/layout.h"
#include "engine/core/memory.h"
#include "engine/core/version.h"
#include "engine/io/safetensors.h"
#include "engine/io/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_FILE    "script"
#define GRAPH_FILE   "graph.txt"
#define TENSORS_FILE "tensors.safetensors"

enum {
    MOST_HEAD = 4096,
    MOST_GRAPH = 256 << 20, /* bytes of a graph's text */
    DIGITS = 12             /* of a tensor's name */
};
static const char magic[] = "tide script ";
static const char grad_note[] = "requires_grad"; /* the numbers of tensors that do */

/* ---- what is saved ---- */

typedef struct saving {
    td_ir_graph *copy; /* where tensors had to be laid out otherwise: a graph of those; owned */
    char *text;
    td_tensor **tensors; /* references, row by row on the CPU */
    td_named *named;     /* the same with their names */
    char (*names)[DIGITS];
    int n;
    char *grads; /* the numbers of those that require grad, with spaces between them */
    char head[MOST_HEAD];
} saving;

static bool calls_host(const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (node->kind == TD_IR_HOST_CALL)
            return true;
        if (node->subgraph && node->subgraph != block->graph && calls_host(node->subgraph->block))
            return true;
        for (int b = 0; b < node->nblocks; b++)
            if (calls_host(node->blocks[b]))
                return true;
    }
    return false;
}

/* Where constants are laid out otherwise, or on another device, than they were, so is what is made
 * of them: types say nothing of that any more. */
static void forget_layout(td_ir_graph *g, int n, td_ir_value *const *values) {
    for (int k = 0; k < n; k++) {
        td_ir_type type = *values[k]->type;
        if (type.kind != TD_IR_TENSOR)
            continue;
        type.strides = NULL;
        type.placed = false;
        const td_ir_type *copy = td_ir_type_copy(g, &type);
        if (copy)
            values[k]->type = copy;
    }
}

static void forget_layouts(td_ir_block *block) {
    forget_layout(block->graph, block->ninputs, block->inputs);
    for (td_ir_node *node = block->first; node; node = node->next) {
        forget_layout(block->graph, node->noutputs, node->outputs);
        if (node->subgraph && node->subgraph != block->graph)
            forget_layouts(node->subgraph->block);
        for (int b = 0; b < node->nblocks; b++)
            forget_layouts(node->blocks[b]);
    }
}

/* A constant row by row on the CPU. */
static td_status lay_out(td_tensor *x, td_tensor **out, bool *changed) {
    if (x->layout != TD_STRIDED)
        return td_fail(TD_EVALUE, "a constant is a %s tensor, which no file holds",
                       td_layout_of(x)->noun);
    if (x->contiguous && td_tensor_device(x).type == TD_CPU) {
        *out = td_retain(x);
        return TD_OK;
    }
    td_tensor *near = NULL, *detached = NULL;
    td_status status = TD_OK;
    *changed = true;
    TD_TRY(TD_APPLY(&detached, detach, TD_T(x)));
    TD_TRY(TD_APPLY(&near, to, TD_T(detached), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
    TD_TRY(TD_APPLY(out, contiguous, TD_T(near)));
done:
    td_release(near);
    td_release(detached);
    return status;
}

static td_status take_tensors(saving *s, const td_list *found, bool *changed) {
    td_tensor *const *tensors = found->items;
    size_t room = (size_t)found->n + 1;
    size_t grads = 0;
    s->tensors = td_calloc(room, sizeof *s->tensors);
    s->named = td_calloc(room, sizeof *s->named);
    s->names = td_calloc(room, sizeof *s->names);
    s->grads = td_calloc(room, DIGITS);
    if (!s->tensors || !s->named || !s->names || !s->grads)
        return td_fail(TD_ENOMEM, "out of memory");
    for (; s->n < found->n; s->n++) {
        int k = s->n;
        td_status status = lay_out(tensors[k], &s->tensors[k], changed);
        if (status)
            return status;
        snprintf(s->names[k], DIGITS, "%d", k);
        s->named[k] = (td_named){{s->names[k], strlen(s->names[k])}, s->tensors[k]};
        if (tensors[k]->requires_grad)
            grads += (size_t)snprintf(s->grads + grads, DIGITS, grads ? " %d" : "%d", k);
    }
    return TD_OK;
}

/* The text again, of a graph of the tensors as they are written. */
static td_status print_again(saving *s) {
    td_list found = {0};
    td_status status = td_ir_parse_with(s->text, s->n, s->tensors, &s->copy);
    if (status)
        return status;
    forget_layouts(s->copy->block);
    status = td_ir_status(s->copy);
    td_free(s->text);
    s->text = status ? NULL : td_ir_print_with(s->copy, &found);
    td_list_clear(&found);
    if (status == TD_OK && !s->text)
        status = td_fail(TD_ENOMEM, "out of memory");
    return status;
}

static void write_head(saving *s, const char *name) {
    int n = snprintf(s->head, sizeof s->head, "%s%d\nname ", magic, TD_SCRIPT_FORMAT);
    for (; *name && n < MOST_HEAD - 2; name++)
        s->head[n++] = (unsigned char)*name < ' ' || *name == 127 ? '?' : *name;
    s->head[n++] = '\n';
    s->head[n] = 0;
}

static td_status put_text(const void *content, td_sink *to) {
    return td_sink_put(to, content, strlen(content));
}

static td_status put_tensors(const void *content, td_sink *to) {
    const saving *s = content;
    td_note note = {{grad_note, strlen(grad_note)}, {s->grads, strlen(s->grads)}};
    return td_safetensors_put(to, s->n, s->named, *s->grads != 0, &note);
}

static td_status save_prepared(saving *s, const char *path) {
    const td_zip_file files[] = {
        {HEAD_FILE, strlen(HEAD_FILE), "", put_text, s->head},
        {GRAPH_FILE, strlen(GRAPH_FILE), "", put_text, s->text},
        {TENSORS_FILE, strlen(TENSORS_FILE), "", put_tensors, s},
    };
    return td_zip_write(path, sizeof files / sizeof *files, files);
}

static void clear_saving(saving *s) {
    for (int k = 0; k < s->n; k++)
        td_release(s->tensors[k]);
    td_free(s->tensors);
    td_free(s->named);
    td_free(s->names);
    td_free(s->grads);
    td_free(s->text);
    td_ir_graph_release(s->copy);
}

td_status td_script_save(const td_scripted *f, const char *path) {
    const td_ir_graph *g = td_scripted_graph(f);
    td_list found = {0};
    saving s = {.n = 0};
    bool changed = false;
    td_status status = TD_OK;
    if (calls_host(g->block))
        return td_fail(TD_EVALUE, "it calls functions of the front end, which no file holds");
    s.text = td_ir_print_with(g, &found);
    if (!s.text)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    TD_TRY(take_tensors(&s, &found, &changed));
    if (changed)
        TD_TRY(print_again(&s));
    write_head(&s, td_scripted_name(f));
    TD_TRY(save_prepared(&s, path));
done:
    td_list_clear(&found);
    clear_saving(&s);
    return status;
}

/* ---- what is loaded ---- */

typedef struct loading {
    td_file *file;
    td_zip zip;
    char *head, *text;
    td_safetensors *archive;
    td_tensor **tensors;
    int n;
    td_ir_graph *graph;
} loading;

/* The entry of a name; its bytes are all there and have their sum. */
static td_status find_entry(const loading *l, const char *name, const td_zip_entry **out,
                            int64_t *at) {
    td_status status = TD_OK;
    *out = td_zip_find(&l->zip, name);
    if (!*out)
        return td_fail(TD_EVALUE, "no file of a function: '%s' is not in it, or is twice", name);
    TD_TRY(td_zip_place(&l->zip, *out, at));
    TD_TRY(td_zip_check(&l->zip, *out));
done:
    return status;
}

/* An entry as a text, from td_malloc. */
static td_status read_text(const loading *l, const char *name, int64_t most, char **out) {
    const td_zip_entry *e;
    int64_t at;
    td_status status = find_entry(l, name, &e, &at);
    if (status)
        return status;
    if (e->size > most)
        return td_fail(TD_EVALUE, "'%s' has %lld bytes; at most %lld are read", name,
                       (long long)e->size, (long long)most);
    *out = td_malloc((size_t)e->size + 1);
    if (!*out)
        return td_fail(TD_ENOMEM, "out of memory");
    status = td_file_read(l->file, *out, e->size, at);
    (*out)[e->size] = 0;
    if (status == TD_OK && strlen(*out) != (size_t)e->size)
        status = td_fail(TD_EVALUE, "'%s' is no text", name);
    return status;
}

/* The format, and the name behind it. */
static td_status read_head(char *head, const char **name) {
    char *end = head;
    long format = 0;
    if (!strncmp(head, magic, strlen(magic)))
        format = strtol(head + strlen(magic), &end, 10);
    if (format < 1 || *end != '\n')
        return td_fail(TD_EVALUE, "no file of a function: '%s' does not begin with \"%s1\"",
                       HEAD_FILE, magic);
    if (format > TD_SCRIPT_FORMAT)
        return td_fail(TD_EVALUE,
                       "it has format %ld, and Tide %s reads format %d: a newer Tide wrote it",
                       format, td_version(), TD_SCRIPT_FORMAT);
    char *line = end + 1, *stop = strchr(line, '\n');
    if (strncmp(line, "name ", 5) != 0 || !stop || stop[1])
        return td_fail(TD_EVALUE, "'%s' names no function", HEAD_FILE);
    *stop = 0;
    *name = line + 5;
    return TD_OK;
}

/* A number from 0 to most, as a text has it without signs or zeros in front; -1: it is none. */
static int64_t read_number(const char *at, const char *end, int64_t most) {
    int64_t value = 0;
    if (at == end || (*at == '0' && end - at > 1))
        return -1;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return -1;
        value = 10 * value + (*at - '0');
        if (value > most)
            return -1;
    }
    return value;
}

static td_status read_grads(loading *l) {
    td_status status = TD_OK;
    for (int64_t k = 0; k < l->archive->nnotes; k++) {
        const td_note *note = &l->archive->notes[k];
        if (note->key.len != strlen(grad_note) ||
            memcmp(note->key.at, grad_note, note->key.len) != 0)
            continue;
        const char *at = note->value.at, *end = at + note->value.len;
        while (at < end && status == TD_OK) {
            const char *space = memchr(at, ' ', (size_t)(end - at));
            int64_t number = read_number(at, space ? space : end, l->n - 1);
            status = number < 0 ? td_fail(TD_EVALUE, "'%s' is no list of tensors", grad_note)
                                : td_set_requires_grad(l->tensors[number], true);
            at = space ? space + 1 : end;
        }
    }
    return status;
}

static td_status read_tensors(loading *l) {
    const td_zip_entry *e;
    int64_t at;
    td_status status = TD_OK;
    TD_TRY(find_entry(l, TENSORS_FILE, &e, &at));
    TD_TRY(td_safetensors_open_part(l->file, at, e->size, &l->archive));
    if (l->archive->nentries > INT32_MAX)
        TD_TRY(td_fail(TD_EVALUE, "more tensors than can be numbered"));
    l->n = (int)l->archive->nentries;
    l->tensors = td_calloc((size_t)l->n + 1, sizeof *l->tensors);
    if (!l->tensors)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    for (int k = 0; k < l->n; k++) {
        const td_entry *entry = &l->archive->entries[k];
        const char *name = entry->name.at;
        int64_t number = read_number(name, name + entry->name.len, l->n - 1);
        if (number < 0 || l->tensors[number]) /* names differ, so that all numbers are there */
            TD_TRY(td_fail(TD_EVALUE, "a tensor of the file is called otherwise than 0 to %d",
                           l->n - 1));
        if (entry->dtype == TD_DTYPE_NONE)
            TD_TRY(
                td_fail(TD_EVALUE, "tensor %lld has a dtype that Tide has not", (long long)number));
        TD_TRY(td_safetensors_get(l->archive, k, &l->tensors[number]));
    }
    TD_TRY(read_grads(l));
done:
    return status;
}

/* Passes believe what a constant's type says. */
static td_status check_constants(const td_ir_block *block) {
    td_status status = TD_OK;
    for (const td_ir_node *node = block->first; node && status == TD_OK; node = node->next) {
        if (node->kind == TD_IR_CONSTANT && node->constant.kind == TD_KIND_TENSOR) {
            const td_ir_type *is = td_ir_type_of_tensor(block->graph, node->constant.tensor);
            if (!is)
                return td_fail(TD_ENOMEM, "out of memory");
            if (!td_ir_type_fits(is, node->outputs[0]->type))
                return td_fail(TD_EVALUE, "constant %%%s has another type than its tensor",
                               node->outputs[0]->name);
        }
        if (node->subgraph && node->subgraph != block->graph)
            status = check_constants(node->subgraph->block);
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = check_constants(node->blocks[b]);
    }
    return status;
}

static td_status load(loading *l, const char *path, td_scripted **out) {
    const char *name = NULL;
    td_status status = TD_OK;
    TD_TRY(td_file_open(path, false, &l->file));
    TD_TRY(td_zip_open(l->file, &l->zip));
    TD_TRY(read_text(l, HEAD_FILE, MOST_HEAD, &l->head));
    TD_TRY(read_head(l->head, &name));
    TD_TRY(read_text(l, GRAPH_FILE, MOST_GRAPH, &l->text));
    TD_TRY(read_tensors(l));
    TD_TRY(td_ir_parse_with(l->text, l->n, l->tensors, &l->graph));
    TD_TRY(td_ir_verify(l->graph));
    TD_TRY(check_constants(l->graph->block));
    if (calls_host(l->graph->block))
        TD_TRY(td_fail(TD_EVALUE, "it calls functions of a front end, which no file holds"));
    TD_TRY(td_scripted_new(l->graph, name, out));
done:
    return status;
}

td_status td_script_load(const char *path, td_scripted **out) {
    loading l = {.file = NULL};
    *out = NULL;
    td_status status = load(&l, path, out);
    for (int k = 0; k < l.n && l.tensors; k++)
        td_release(l.tensors[k]);
    td_free(l.tensors);
    td_safetensors_close(l.archive);
    td_free(l.text);
    td_free(l.head);
    td_zip_close(&l.zip);
    td_file_release(l.file);
    td_ir_graph_release(l.graph);
    return status;
}

td_status td_script_call(td_scripted *f, int ninputs, const td_value *inputs, int noutputs,
                         td_value *outputs) {
    if (ninputs != td_scripted_ninputs(f) || noutputs != td_scripted_noutputs(f))
        return td_fail(TD_ETYPE, "%s: %d inputs and %d outputs, called with %d and %d",
                       td_scripted_name(f), td_scripted_ninputs(f), td_scripted_noutputs(f),
                       ninputs, noutputs);
    return td_scripted_call(f, inputs, outputs);
}
