/* autograd.c: x:backward() and tide.autograd's C part. What runs here may call functions of the
 * script (hooks): tensors are held by handles on the stack, whatever those do. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/script.h"
#include "lua-bindings/tensor/tensor.h"

/* retain_graph is create_graph unless it is given. */
static td_backward_options read_options(const tide_frame *f, int retain_graph, int create_graph) {
    bool create = f->args[create_graph].b;
    td_value retain = f->args[retain_graph];
    return (td_backward_options){.retain_graph = td_is_nil(retain) ? create : retain.b,
                                 .create_graph = create};
}

static int run_backward(lua_State *L, int n, td_tensor *const *outputs, td_tensor *const *gradients,
                        td_value inputs, td_backward_options options) {
    if (!td_is_nil(inputs) && inputs.n == 0)
        return tide_error(L, "backward: inputs is an empty list");
    struct tide_home *before = tide_script_enter(L);
    td_status status = td_is_nil(inputs) ? td_backward(n, outputs, gradients, options)
                                         : td_backward_into(n, outputs, gradients, inputs.n,
                                                            (td_tensor **)inputs.tensors, options);
    tide_script_leave(before);
    TIDE_CHECK(L, status);
    if (n > 0) /* gradients are where outputs are, which may be small */
        tide_pressure_note(&TIDE_STATE(L)->pressure, td_tensor_device(outputs[0]));
    tide_pressure_after_backward(L, &TIDE_STATE(L)->pressure);
    return 0;
}

/* x:backward([gradient] [, {retain_graph, create_graph, inputs}]) */
int tide_backward(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    td_tensor *gradient = td_arg_tensor(f.args[1]);
    return run_backward(L, 1, &f.args[0].tensor, gradient ? &gradient : NULL, f.args[4],
                        read_options(&f, 2, 3));
}

/* Gradients for outputs: as many, or none at all. */
static td_tensor **gradients_for(lua_State *L, const tide_frame *f, int param) {
    td_value outputs = f->args[0], gradients = f->args[param];
    if (td_is_nil(gradients))
        return NULL;
    if (gradients.n != outputs.n)
        tide_error(L, "%s: %d %s for %d %s", f->name, gradients.n, f->op->params[param].name,
                   outputs.n, f->op->params[0].name);
    return (td_tensor **)gradients.tensors;
}

enum {
    OUTPUTS,
    INPUTS,
    GRAD_OUTPUTS,
    RETAIN_GRAPH,
    CREATE_GRAPH,
    ALLOW_UNUSED,
    MATERIALIZE,
    BATCHED
};

/* A list of n empty handles (pushed), and where they are (a userdata on the stack). */
static tide_handle **push_handles(lua_State *L, int n) {
    tide_handle **handles = lua_newuserdatauv(L, sizeof *handles * (size_t)(n ? n : 1), 0);
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        handles[k] = tide_push_handle(L);
        lua_rawseti(L, -2, k + 1);
    }
    return handles;
}

static void check_grad_options(lua_State *L, const tide_frame *f) {
    if (f->args[BATCHED].b)
        tide_error(L, "grad: is_grads_batched is not supported: call grad for one grad_outputs "
                      "after the other, with retain_graph");
    if (f->args[MATERIALIZE].b && !td_is_nil(f->args[ALLOW_UNUSED]) && !f->args[ALLOW_UNUSED].b)
        tide_error(L, "grad: materialize_grads gives zeros for unused inputs, and allow_unused = "
                      "false refuses them");
}

/* What stands for gradients that there are not: zeros, made beforehand, or false. */
static void fill_with_zeros(lua_State *L, const tide_frame *f, tide_handle **handles) {
    for (int k = 0; k < f->args[INPUTS].n && f->args[MATERIALIZE].b; k++)
        TIDE_CHECK(L, TD_APPLY(&handles[k]->tensor, zeros_like, TD_T(f->args[INPUTS].tensors[k])));
}

static void put_gradients(lua_State *L, int n, td_tensor **results, tide_handle **handles) {
    for (int k = 0; k < n; k++) {
        if (results[k]) {
            td_release(handles[k]->tensor);
            handles[k]->tensor = results[k];
            tide_check_pressure(L, TIDE_STATE(L), results[k]);
        } else if (!handles[k]->tensor) {
            lua_pushboolean(L, 0);
            lua_rawseti(L, -2, k + 1);
        }
    }
}

/* autograd.grad(outputs, inputs [, options]): a list, one gradient per input. */
static int autograd_grad(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    check_grad_options(L, &f);
    int n = f.args[INPUTS].n;
    td_tensor **results = lua_newuserdatauv(L, sizeof *results * (size_t)(n ? n : 1), 0);
    tide_handle **handles = push_handles(L, n);
    tide_load_tensors(L, &f);
    bool unused =
        f.args[MATERIALIZE].b || (!td_is_nil(f.args[ALLOW_UNUSED]) && f.args[ALLOW_UNUSED].b);
    td_tensor **gradients = gradients_for(L, &f, GRAD_OUTPUTS);
    fill_with_zeros(L, &f, handles);
    struct tide_home *before = tide_script_enter(L);
    td_status status =
        td_autograd_grad(f.args[OUTPUTS].n, (td_tensor **)f.args[OUTPUTS].tensors, gradients, n,
                         (td_tensor **)f.args[INPUTS].tensors,
                         read_options(&f, RETAIN_GRAPH, CREATE_GRAPH), unused, results);
    tide_script_leave(before);
    TIDE_CHECK(L, status);
    put_gradients(L, n, results, handles);
    return 1;
}

/* autograd.backward(tensors [, gradients [, options]]) */
static int autograd_backward(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    return run_backward(L, f.args[0].n, (td_tensor **)f.args[0].tensors, gradients_for(L, &f, 1),
                        f.args[4], read_options(&f, 2, 3));
}

void tide_open_autograd(lua_State *L) {
    static const tide_function functions[] = {
        {"grad(Tensor|Tensor[] outputs, Tensor|Tensor[] inputs, *, Tensor|Tensor?[] "
         "grad_outputs=nil, bool? retain_graph=nil, bool create_graph=false, bool? "
         "allow_unused=nil, bool materialize_grads=false, bool is_grads_batched=false) -> list",
         "Gradients of the sum of the outputs with respect to each input; leaves' .grad stays as "
         "it is.",
         autograd_grad},
        {"backward(Tensor|Tensor[] tensors, Tensor|Tensor?[] gradients=nil, *, bool? "
         "retain_graph=nil, bool create_graph=false, Tensor|Tensor[]? inputs=nil)",
         "backward of several tensors at once.", autograd_backward},
        {NULL, NULL, NULL},
    };
    tide_open_graph(L);
    lua_createtable(L, 0, 8);
    tide_declare(L, functions);
    tide_open_autograd_modes(L);
    tide_open_custom(L);
    lua_setfield(L, -2, "_autograd");
}
