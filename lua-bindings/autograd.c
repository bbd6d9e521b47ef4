/* autograd.c: x:backward() and tide.autograd's C part. */
#include "lua-bindings/function.h"
#include "lua-bindings/modules.h"
#include "lua-bindings/tensor.h"

/* x:backward([gradient] [, {retain_graph, create_graph}]) */
int tide_backward(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    td_tensor *gradient = td_arg_tensor(f.args[1]);
    td_backward_options options = {.retain_graph = f.args[2].b, .create_graph = f.args[3].b};
    TIDE_CHECK(L, td_backward(1, &f.args[0].tensor, gradient ? &gradient : NULL, options));
    return 0;
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

enum { OUTPUTS, INPUTS, GRAD_OUTPUTS, RETAIN_GRAPH, CREATE_GRAPH, ALLOW_UNUSED };

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

/* autograd.grad(outputs, inputs [, options]): a list, one gradient per input. */
static int autograd_grad(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    int n = f.args[INPUTS].n;
    td_tensor **results = lua_newuserdatauv(L, sizeof *results * (size_t)(n ? n : 1), 0);
    tide_handle **handles = push_handles(L, n);
    tide_load_tensors(L, &f);
    td_backward_options options = {.retain_graph = f.args[RETAIN_GRAPH].b,
                                   .create_graph = f.args[CREATE_GRAPH].b};
    TIDE_CHECK(L, td_autograd_grad(f.args[OUTPUTS].n, (td_tensor **)f.args[OUTPUTS].tensors,
                                   gradients_for(L, &f, GRAD_OUTPUTS), n,
                                   (td_tensor **)f.args[INPUTS].tensors, options,
                                   f.args[ALLOW_UNUSED].b, results));
    for (int k = 0; k < n; k++)
        handles[k]->tensor = results[k];
    for (int k = 0; k < n; k++)
        if (!results[k]) { /* unused: no gradient */
            lua_pushboolean(L, 0);
            lua_rawseti(L, -2, k + 1);
        }
    return 1;
}

/* autograd.backward(tensors [, gradients [, options]]) */
static int autograd_backward(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    td_backward_options options = {.retain_graph = f.args[2].b, .create_graph = f.args[3].b};
    TIDE_CHECK(L, td_backward(f.args[0].n, (td_tensor **)f.args[0].tensors, gradients_for(L, &f, 1),
                              options));
    return 0;
}

void tide_open_autograd(lua_State *L) {
    static const tide_function functions[] = {
        {"grad(Tensor|Tensor[] outputs, Tensor|Tensor[] inputs, *, Tensor|Tensor?[] "
         "grad_outputs=nil, "
         "bool retain_graph=false, bool create_graph=false, bool allow_unused=false) -> list",
         "Gradients of the sum of the outputs with respect to each input; leaves' .grad stays as "
         "it is.",
         autograd_grad},
        {"backward(Tensor|Tensor[] tensors, Tensor|Tensor?[] gradients=nil, *, bool "
         "retain_graph=false, "
         "bool create_graph=false)",
         "backward of several tensors at once.", autograd_backward},
        {NULL, NULL, NULL},
    };
    lua_createtable(L, 0, 2);
    tide_declare(L, functions);
    lua_setfield(L, -2, "_autograd");
}
