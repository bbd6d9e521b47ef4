/* run.c: steps run one after the other on registers, one for each value.
 *
 * A register owns what it holds, but those of the graph's inputs, which mostly are the caller's.
 * Types of graphs say less than what there is, so a step looks at the kinds of its inputs before it
 * uses them.
 */
#include "engine/script/run.h"

#include "engine/calls/autocast.h"
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/script/code.h"
#include "engine/script/future.h"
#include "engine/script/kinds.h"
#include "engine/script/operands.h"
#include "engine/script/row_kernel.h"
#include "engine/script/value_call.h"

#include <stdio.h>
#include <string.h>

/* Calls within one another, each of which takes some kilobytes of the stack. */
enum { MOST_DEPTH = 200, ON_STACK = 64 };
#define TD_COLD __attribute__((cold, noinline))
static _Thread_local int depth;

struct td_shared_host {
    atomic_int refs;
    td_script_host calls;
};

typedef td_code_step step;
typedef td_code_frame frame;

static td_status run_block(const td_code_block *c, frame *f);

/* ---- hosts ---- */

td_shared_host *td_shared_host_new(const td_script_host *calls) {
    td_shared_host *host = td_malloc(sizeof *host);
    if (!host) {
        if (calls->release)
            calls->release(calls->ctx);
        return NULL;
    }
    *host = (td_shared_host){.calls = *calls};
    atomic_init(&host->refs, 1);
    return host;
}

td_shared_host *td_shared_host_retain(td_shared_host *host) {
    if (host)
        atomic_fetch_add_explicit(&host->refs, 1, memory_order_relaxed);
    return host;
}

void td_shared_host_release(td_shared_host *host) {
    if (!host || !td_was_last(&host->refs))
        return;
    if (host->calls.release)
        host->calls.release(host->calls.ctx);
    td_free(host);
}

/* ---- values between registers ---- */

static td_value take_value(const td_code_block *c, int k, frame *f) {
    td_value *v = c->outputs[k] >= 0 ? &f->registers[c->outputs[k]] : NULL;
    if (!v || !c->moves[k])
        return td_value_retain(*td_frame_value(f, c->outputs[k]));
    td_value taken = *v;
    *v = TD_NIL;
    return taken;
}

/* The outputs of a block that has run, from the `first` on, into other registers. */
static void leave_block(const td_code_block *c, int first, const int *to, frame *f) {
    for (int k = first; k < c->noutputs; k++)
        f->registers[to[k - first]] = take_value(c, k, f);
}

/* ---- operators ---- */

/* In anomaly mode: what is recorded, and what backward of it runs, knows the node's line. */
static TD_COLD td_status call_placed(const td_ir_node *node, td_call *call) {
    td_origin origin = {.line = node->place.line};
    const td_origin *before = td_origin_in_force;
    const char *file = node->place.file;
    if (!file)
        return td_op_call(call);
    size_t length = strlen(file), most = sizeof origin.source - 1;
    snprintf(origin.source, sizeof origin.source, "%s%s", length > most ? "..." : "",
             length > most ? file + length - (most - 3) : file);
    td_origin_in_force = &origin;
    td_status status = td_op_call(call);
    td_origin_in_force = before;
    return status;
}

static td_status run_operator(const step *s, frame *f) {
    td_value args[TD_MAX_PARAMS];
    td_argument_room room;
    const td_op *op = s->node->op;
    bool inplace = s->node->inplace || op->flags & TD_OP_INPLACE_ONLY;
    uint64_t fit = 1;
    for (int k = 0; k < s->ninputs; k++) {
        args[k] = *td_frame_value(f, s->inputs[k]);
        fit &= s->kinds[k] >> args[k].kind;
    }
    td_status status = TD_LIKELY(fit) ? TD_OK : td_fit_arguments(op, s->ninputs, &room, args);
    if (TD_UNLIKELY(status))
        return status;
    td_tensor *self = inplace ? td_arg_tensor(args[0]) : NULL;
    td_call call = {.op = op,
                    .args = args,
                    .inplace = inplace,
                    .given = &self,
                    .ngiven = inplace,
                    .brief = s->brief};
    if (inplace && !self)
        return td_fail(TD_ETYPE, "%s: a tensor is written in place", op->name);
    status =
        TD_UNLIKELY(td_modes_current.anomaly) ? call_placed(s->node, &call) : td_op_call(&call);
    if (TD_UNLIKELY(status))
        return status;
    if (TD_UNLIKELY(op->result_type != TD_RESULT_TENSOR))
        return op->result_type == TD_RESULT_NOTHING
                   ? TD_OK
                   : td_take_result(&call, &f->registers[s->outputs[0]]);
    for (int k = 0; k < op->nresults; k++)
        f->registers[s->outputs[k]] = td_tensor_or_nil(call.out[k]);
    return TD_OK;
}

/* Inputs of a step, in a block of `few` where they fit in; NULL: out of memory. */
static td_value *gather(const step *s, const frame *f, td_value *few, int nfew) {
    td_value *list = s->ninputs <= nfew ? few : td_malloc(sizeof *list * (size_t)s->ninputs);
    for (int k = 0; list && k < s->ninputs; k++)
        list[k] = *td_frame_value(f, s->inputs[k]);
    if (!list)
        (void)td_fail(TD_ENOMEM, "out of memory for arguments");
    return list;
}

static td_status run_scalar(const step *s, frame *f) {
    td_value few[4] = {TD_NIL}, *args = gather(s, f, few, 4);
    const td_scalar *row = s->node->scalar;
    uint64_t fit = 1;
    if (!args)
        return TD_ENOMEM;
    for (int k = 0; k < s->ninputs; k++)
        fit &= s->kinds[k] >> args[k].kind;
    td_value *out = &f->registers[s->outputs[0]];
    td_status status = TD_LIKELY(fit) ? row->run(s->ninputs, args, out)
                                      : td_scalar_call(row, s->ninputs, args, out);
    if (args != few)
        td_free(args);
    return status;
}

/* ---- blocks ---- */

static td_status read_bool(const frame *f, int index, bool *value) {
    return td_value_truth(*td_frame_value(f, index), value);
}

static td_status run_if(const step *s, frame *f) {
    bool yes = false;
    td_status status = read_bool(f, s->inputs[0], &yes);
    if (status)
        return status;
    const td_code_block *c = &s->blocks[yes ? 0 : 1];
    status = run_block(c, f);
    if (status == TD_OK)
        leave_block(c, 0, s->outputs, f);
    return status;
}

/* What is carried lies in the node's outputs between the trips. */
static td_status run_loop(const step *s, frame *f) {
    const td_code_block *c = &s->blocks[0];
    td_value most = *td_frame_value(f, s->inputs[0]);
    bool go = false;
    td_status status = read_bool(f, s->inputs[1], &go);
    if (status == TD_OK && most.kind != TD_KIND_INT)
        status = td_fail(TD_ETYPE, "a loop's trips are an int");
    for (int k = 0; k < s->noutputs && status == TD_OK; k++)
        f->registers[s->outputs[k]] = td_value_retain(*td_frame_value(f, s->inputs[k + 2]));
    for (int64_t trip = 0; status == TD_OK && go && trip < most.i; trip++) {
        f->registers[c->inputs[0]] = TD_I(trip);
        for (int k = 0; k < s->noutputs; k++) {
            f->registers[c->inputs[k + 1]] = f->registers[s->outputs[k]];
            f->registers[s->outputs[k]] = TD_NIL;
        }
        status = run_block(c, f);
        if (status == TD_OK)
            status = read_bool(f, c->outputs[0], &go);
        if (status == TD_OK)
            leave_block(c, 1, s->outputs, f);
        if (status == TD_OK && TD_UNLIKELY(td_interrupt_requested()))
            status = td_interrupted();
    }
    return status;
}

/* The outermost autocast keeps casts of weights to its end. */
static td_status run_with(const step *s, frame *f) {
    const td_ir_mode *mode = &s->node->mode;
    td_modes before = td_get_modes(), modes = td_ir_mode_apply(before, mode);
    uint32_t region = 0;
    if (mode->kind == TD_IR_AUTOCAST && !td_autocast_region_holds(before.region))
        modes.region = region = td_autocast_region_begin();
    td_set_modes(modes);
    td_status status = run_block(&s->blocks[0], f);
    td_set_modes(before);
    if (region)
        td_autocast_region_end(region);
    if (status == TD_OK)
        leave_block(&s->blocks[0], 0, s->outputs, f);
    return status;
}

/* ---- lists, tuples, other values ---- */

static td_status run_list(const step *s, frame *f) {
    td_value few[16] = {TD_NIL}, *values = gather(s, f, few, 16);
    if (!values)
        return TD_ENOMEM;
    td_status status = td_value_list_of(td_entries_of_type(s->node->outputs[0]->type->parts[0]),
                                        s->ninputs, values, &f->registers[s->outputs[0]]);
    if (values != few)
        td_free(values);
    return status;
}

static td_status run_dict(const step *s, frame *f) {
    td_value *out = &f->registers[s->outputs[0]];
    td_status status = td_box_dict_new(out);
    for (int k = 0; k < s->ninputs && status == TD_OK; k += 2) {
        td_value key = *td_frame_value(f, s->inputs[k]);
        if (!td_value_text(key, NULL))
            return td_fail(TD_ETYPE, "a key is a string, and %s was given", td_kind_noun(key.kind));
        status = td_dict_set(td_value_dict(*out), key, *td_frame_value(f, s->inputs[k + 1]));
    }
    return status;
}

static td_status run_tuple(const step *s, frame *f) {
    td_value few[16] = {TD_NIL}, *values = gather(s, f, few, 16);
    if (!values)
        return TD_ENOMEM;
    td_status status = td_value_tuple_of(s->ninputs, values, &f->registers[s->outputs[0]]);
    if (values != few)
        td_free(values);
    return status;
}

/* The parts of a list or tuple, each into its register. */
static td_status run_unpack(const step *s, frame *f) {
    td_value few[16] = {TD_NIL}, of = *td_frame_value(f, s->inputs[0]);
    int n = s->noutputs;
    td_value *parts = n <= 16 ? few : td_malloc(sizeof *parts * (size_t)n);
    if (!parts)
        return td_fail(TD_ENOMEM, "out of memory for the parts of a list");
    td_status status = s->node->kind == TD_IR_LIST_UNPACK ? td_value_entries(of, n, parts)
                                                          : td_value_parts(of, 0, n, parts);
    for (int k = 0; k < n && status == TD_OK; k++)
        f->registers[s->outputs[k]] = parts[k];
    if (parts != few)
        td_free(parts);
    return status;
}

static td_status run_tuple_index(const step *s, frame *f) {
    int index = (int)td_frame_value(f, s->inputs[1])->i; /* a constant, verified */
    return td_value_parts(*td_frame_value(f, s->inputs[0]), index, 1, &f->registers[s->outputs[0]]);
}

static td_status run_cast(const step *s, frame *f) {
    td_value v = *td_frame_value(f, s->inputs[0]);
    td_status status =
        td_value_check("value", s->node->inputs[0]->name, s->node->outputs[0]->type, &v);
    if (status == TD_OK)
        f->registers[s->outputs[0]] = td_value_retain(v);
    return status;
}

static td_status run_raise(const step *s, frame *f) {
    const char *text = td_value_text(*td_frame_value(f, s->inputs[0]), NULL);
    return td_fail(TD_ESCRIPT, "%s", text ? text : "error");
}

/* ---- calls ---- */

static td_status run_script(const td_script *s, td_shared_host *host, const td_value *inputs,
                            td_value *outputs, bool *placed);

/* Does a group run operator by operator, for that is faster? */
static bool runs_apart(const td_script_kernel *k, int n, const td_value *inputs,
                       td_kernel_trial *trial) {
    td_kernel_ways *ways = td_script_kernel_ways(k);
    int64_t elements = 0;
    *trial = (td_kernel_trial){NULL, 0};
    for (int j = 0; j < n && ways; j++) {
        const td_tensor *x = td_arg_tensor(inputs[j]);
        if (!x || td_tensor_device(x).type != TD_CPU)
            return false;
        elements = x->numel > elements ? x->numel : elements;
    }
    return ways && td_kernel_ways_apart(ways, elements, trial);
}

/* As one kernel; operator by operator where that does not take these inputs. */
static td_status run_group(const step *s, frame *f) {
    td_value inputs[TD_CODE_MOST], outputs[TD_CODE_MOST];
    bool taken = false;
    const td_script *group = s->script;
    for (int k = 0; k < s->ninputs; k++)
        inputs[k] = *td_frame_value(f, s->inputs[k]);
    td_kernel_trial trial = {NULL, 0};
    td_status status = TD_OK;
    if (TD_LIKELY(group->kernel && !runs_apart(group->kernel, s->ninputs, inputs, &trial))) {
        status = td_script_kernel_run_alike(group->kernel, inputs, outputs, &taken);
        if (status == TD_OK && !taken)
            status = td_script_kernel_run(group->kernel, inputs, outputs, &taken);
    }
    if (group->rows)
        status = td_row_kernel_run(group->rows, inputs, outputs, &taken);
    if (status == TD_OK && !taken)
        status = run_script(group, f->host, inputs, outputs, &f->placed);
    td_kernel_trial_end(&trial);
    for (int k = 0; k < s->noutputs && status == TD_OK; k++)
        f->registers[s->outputs[k]] = outputs[k];
    return status;
}

static td_status run_call(const step *s, frame *f) {
    td_value few[16], results[8];
    td_value *inputs = gather(s, f, few, 16), *outputs = results;
    if (s->noutputs > 8)
        outputs = td_malloc(sizeof *outputs * (size_t)s->noutputs);
    td_status status = inputs && outputs
                           ? run_script(s->script, f->host, inputs, outputs, &f->placed)
                           : td_fail(TD_ENOMEM, "out of memory for a call");
    for (int k = 0; k < s->noutputs && status == TD_OK; k++)
        f->registers[s->outputs[k]] = outputs[k];
    if (inputs != few)
        td_free(inputs);
    if (outputs != results)
        td_free(outputs);
    return status;
}

static td_status run_fork(const step *s, frame *f) {
    td_value few[16] = {TD_NIL}, *inputs = gather(s, f, few, 16);
    td_status status =
        inputs ? td_script_fork(s->script, f->host, inputs, &f->registers[s->outputs[0]])
               : td_fail(TD_ENOMEM, "out of memory for a fork");
    if (inputs != few)
        td_free(inputs);
    return status;
}

/* ---- the host ---- */

static td_status run_host_call(const step *s, frame *f) {
    td_value few[16] = {TD_NIL}, results[8] = {TD_NIL}, *outputs = results;
    if (!f->host || !f->host->calls.call)
        return td_fail(TD_EVALUE, "a call of function %d of the host, which is not there",
                       s->node->id);
    td_value *inputs = gather(s, f, few, 16);
    if (s->noutputs > 8)
        outputs = td_calloc((size_t)s->noutputs, sizeof *outputs);
    td_status status = TD_OK;
    if (inputs && outputs)
        status = f->host->calls.call(f->host->calls.ctx, s->node->id, s->ninputs, inputs,
                                     s->noutputs, outputs);
    else
        status = td_fail(TD_ENOMEM, "out of memory for a call");
    for (int k = 0; outputs && k < s->noutputs; k++) {
        const td_ir_value *output = s->node->outputs[k];
        if (status == TD_OK)
            status =
                td_value_check("what the host gives for", output->name, output->type, &outputs[k]);
        if (status)
            td_value_drop(&outputs[k]);
        else
            f->registers[s->outputs[k]] = outputs[k];
    }
    if (inputs != few)
        td_free(inputs);
    if (outputs != results)
        td_free(outputs);
    return status;
}

static td_status run_print(const step *s, frame *f) {
    td_value few[16] = {TD_NIL}, *inputs = gather(s, f, few, 16);
    td_status status = TD_OK;
    if (!inputs)
        return td_fail(TD_ENOMEM, "out of memory for a call");
    if (f->host && f->host->calls.print)
        status = f->host->calls.print(f->host->calls.ctx, s->ninputs, inputs);
    if (inputs != few)
        td_free(inputs);
    return status;
}

/* ---- steps ---- */

static td_status run_unknown(const step *s, frame *f) {
    (void)f;
    return td_fail(TD_EINTERNAL, "%s can't be run", td_ir_kind_name((td_ir_kind)s->node->kind));
}

td_step_fn td_step_of_kind(td_ir_kind kind) {
    static const td_step_fn steps[TD_IR_KINDS] = {
        [TD_IR_OPERATOR] = run_operator,   [TD_IR_IF] = run_if,
        [TD_IR_LOOP] = run_loop,           [TD_IR_LIST_CONSTRUCT] = run_list,
        [TD_IR_LIST_UNPACK] = run_unpack,  [TD_IR_TUPLE_CONSTRUCT] = run_tuple,
        [TD_IR_TUPLE_UNPACK] = run_unpack, [TD_IR_FUSION_GROUP] = run_group,
        [TD_IR_SCALAR] = run_scalar,       [TD_IR_TUPLE_INDEX] = run_tuple_index,
        [TD_IR_CAST] = run_cast,           [TD_IR_RAISE] = run_raise,
        [TD_IR_PRINT] = run_print,         [TD_IR_CALL] = run_call,
        [TD_IR_FORK] = run_fork,           [TD_IR_HOST_CALL] = run_host_call,
        [TD_IR_DICT_CONSTRUCT] = run_dict, [TD_IR_WITH] = run_with};
    return steps[kind] ? steps[kind] : run_unknown;
}

/* The innermost place is told; an interrupt has none. */
static td_status fail_at(const td_ir_node *node, frame *f, td_status status) {
    char message[600];
    if (f->placed || !node->place.file || status == TD_EINTR)
        return status;
    f->placed = true;
    snprintf(message, sizeof message, "%s", td_error_message());
    return td_fail(status, "%.160s:%d: %s", node->place.file, node->place.line, message);
}

static td_status run_block(const td_code_block *c, frame *f) {
    for (int k = 0; k < c->nunread; k++)
        td_value_drop(&f->registers[c->unread[k]]);
    for (const step *s = c->steps, *end = s + c->nsteps; s < end; s++) {
        td_status status = s->run(s, f);
        if (TD_UNLIKELY(status))
            return fail_at(s->node, f, status);
        for (int d = 0; d < s->ndead; d++)
            td_value_drop(&f->registers[s->dead[d]]);
    }
    return TD_OK;
}

/* ---- scripts ---- */

static td_status take_inputs(const td_ir_block *block, const td_value *inputs,
                             td_value *registers) {
    for (int k = 0; k < block->ninputs; k++)
        registers[k] = inputs[k];
    for (int k = 0; k < block->ninputs; k++) {
        const td_ir_value *input = block->inputs[k];
        if (TD_LIKELY(input->type->kind == TD_IR_TENSOR && inputs[k].kind == TD_KIND_TENSOR))
            continue;
        td_status status = td_value_check("input", input->name, input->type, &registers[k]);
        if (status)
            return status;
    }
    return TD_OK;
}

/* What is borrowed is the caller's own then. */
static td_status give_outputs(const td_code_block *c, frame *f, td_value *outputs) {
    for (int k = 0; k < c->noutputs; k++) {
        td_value v = take_value(c, k, f);
        outputs[k] = v;
        if (TD_LIKELY(v.kind >= TD_KIND_BOX || v.kind == TD_KIND_TENSOR))
            continue;
        td_status status = td_value_keep(v, &outputs[k]);
        if (TD_UNLIKELY(status)) {
            outputs[k] = TD_NIL;
            for (int j = 0; j < k; j++)
                td_value_drop(&outputs[j]);
            return status;
        }
    }
    return TD_OK;
}

/* After a failure: nothing is left in registers, nor in outputs, which hold nothing. */
static TD_COLD td_status clean_up(const td_script *s, frame *f, td_value *outputs,
                                  td_status status) {
    for (int k = s->takes ? 0 : s->code.ninputs; k < s->nregisters; k++)
        td_value_drop(&f->registers[k]);
    for (int k = 0; k < s->code.noutputs; k++)
        outputs[k] = TD_NIL;
    return status;
}

static inline td_status run_registers(const td_script *s, frame *f, const td_value *inputs,
                                      td_value *outputs) {
    int n = s->code.ninputs;
    _Static_assert(TD_KIND_NIL == 0, "nil is all zeros");
    memset(f->registers + n, 0, sizeof *f->registers * (size_t)(s->nregisters - n));
    td_status status = take_inputs(s->graph->block, inputs, f->registers);
    if (TD_LIKELY(status == TD_OK))
        status = run_block(&s->code, f);
    if (TD_LIKELY(status == TD_OK))
        status = give_outputs(&s->code, f, outputs);
    return TD_LIKELY(status == TD_OK) ? TD_OK : clean_up(s, f, outputs, status);
}

/* Those that a script takes and has no registers for. */
static void drop_inputs(const td_script *s, const td_value *inputs) {
    for (int k = 0; s->takes && k < s->code.ninputs; k++) {
        td_value v = inputs[k];
        td_value_drop(&v);
    }
}

static TD_COLD td_status refuse(const td_script *s, const td_value *inputs, td_value *outputs,
                                td_status code, const char *why) {
    drop_inputs(s, inputs);
    for (int k = 0; k < s->code.noutputs; k++)
        outputs[k] = TD_NIL;
    return td_fail(code, "%s", why);
}

/* With registers that are too many for the stack. */
static td_status run_large(const td_script *s, frame *f, const td_value *inputs,
                           td_value *outputs) {
    f->registers = td_malloc(sizeof *f->registers * (size_t)s->nregisters);
    if (!f->registers)
        return refuse(s, inputs, outputs, TD_ENOMEM, "out of memory for a script");
    td_status status = run_registers(s, f, inputs, outputs);
    td_free(f->registers);
    return status;
}

/* A script that is one group, of inputs that are alike, from the caller's values to the caller's.
 */
static inline td_status run_whole(const td_script *s, const td_value *inputs, td_value *outputs,
                                  bool *taken, bool *placed) {
    td_status status = td_script_kernel_run_alike(s->whole->script->kernel, inputs, outputs, taken);
    if (TD_LIKELY(status == TD_OK))
        return TD_OK;
    frame f = {.placed = false};
    status = fail_at(s->whole->node, &f, status);
    *placed = f.placed;
    for (int k = 0; k < s->code.noutputs; k++)
        outputs[k] = TD_NIL;
    return status;
}

static td_status run_registers_of(const td_script *s, td_shared_host *host, const td_value *inputs,
                                  td_value *outputs, bool *placed) {
    td_value few[ON_STACK];
    frame f = {.registers = few, .constants = s->constants, .host = host};
    if (TD_UNLIKELY(depth == MOST_DEPTH))
        return refuse(s, inputs, outputs, TD_EVALUE,
                      "calls nest deeper than 200: a function calls itself without end?");
    depth++;
    td_status status = TD_LIKELY(s->nregisters <= ON_STACK) ? run_registers(s, &f, inputs, outputs)
                                                            : run_large(s, &f, inputs, outputs);
    depth--;
    *placed = f.placed;
    return status;
}

static td_status run_script(const td_script *s, td_shared_host *host, const td_value *inputs,
                            td_value *outputs, bool *placed) {
    bool taken = false;
    *placed = false;
    if (s->whole) {
        td_status status = run_whole(s, inputs, outputs, &taken, placed);
        if (TD_LIKELY(taken)) {
            if (s->takes)
                drop_inputs(s, inputs);
            return status;
        }
    }
    return run_registers_of(s, host, inputs, outputs, placed);
}

td_status td_script_run_with(const td_script *s, td_shared_host *host, const td_value *inputs,
                             td_value *outputs) {
    bool placed;
    return run_script(s, host, inputs, outputs, &placed);
}

td_status td_script_run(const td_script *s, const td_value *inputs, td_value *outputs) {
    return td_script_run_with(s, NULL, inputs, outputs);
}

/* ---- forks ---- */

typedef struct forked {
    td_script *script;    /* a reference */
    td_shared_host *host; /* likewise, or NULL */
    int ninputs;
    td_value inputs[]; /* owned */
} forked;

static void free_forked(void *ctx) {
    forked *c = ctx;
    for (int k = 0; k < c->ninputs; k++)
        td_value_drop(&c->inputs[k]);
    td_script_release(c->script);
    td_shared_host_release(c->host);
    td_free(c);
}

/* The only output, or a tuple of all. */
static td_status run_forked(void *ctx, td_value *out) {
    const forked *c = ctx;
    int n = c->script->code.noutputs;
    td_value all = TD_NIL, *outputs = out;
    if (n != 1) {
        td_status status = td_box_tuple_new(n, &all);
        if (status)
            return status;
        outputs = td_value_tuple(all)->parts;
    }
    td_status status = td_script_run_with(c->script, c->host, c->inputs, outputs);
    if (status)
        td_value_drop(&all);
    else if (n != 1)
        *out = all;
    return status;
}

td_status td_script_fork(const td_script *s, td_shared_host *host, const td_value *inputs,
                         td_value *future) {
    const td_ir_block *block = s->graph->block;
    size_t n = (size_t)block->ninputs;
    for (size_t k = 0; k < n; k++)
        if (inputs[k].kind == TD_KIND_GENERATOR)
            return td_fail(TD_EVALUE, "a generator stays on its thread: a fork takes none");
    forked *c = td_malloc(sizeof *c + sizeof *c->inputs * n);
    if (!c)
        return td_fail(TD_ENOMEM, "out of memory for a fork");
    *c = (forked){.script = td_script_retain((td_script *)s)};
    bool shared = host && host->calls.any_thread;
    c->host = td_shared_host_retain(shared ? host : NULL);
    td_status status = TD_OK;
    for (int k = 0; k < block->ninputs && status == TD_OK; k++) {
        c->inputs[k] = TD_NIL;
        status = td_value_copy(inputs[k], &c->inputs[k]);
        c->ninputs++;
    }
    if (status) {
        free_forked(c);
        return status;
    }
    td_future_work work = {.run = run_forked, .free = free_forked, .ctx = c};
    return td_future_begin(&work, future);
}
