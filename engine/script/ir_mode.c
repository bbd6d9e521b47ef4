/* ir_mode.c: the modes of prim::With. */
#include "engine/calls/autocast.h"
#include "engine/script/ir.h"

const char *td_ir_mode_name(td_ir_mode_kind kind) {
    static const char *const names[TD_IR_MODE_KINDS] = {[TD_IR_NO_GRAD] = "no_grad",
                                                        [TD_IR_ENABLE_GRAD] = "enable_grad",
                                                        [TD_IR_INFERENCE_MODE] = "inference_mode",
                                                        [TD_IR_AUTOCAST] = "autocast"};
    return names[kind];
}

td_modes td_ir_mode_apply(td_modes modes, const td_ir_mode *mode) {
    switch ((td_ir_mode_kind)mode->kind) {
    case TD_IR_NO_GRAD:
    case TD_IR_ENABLE_GRAD:
        modes.grad_disabled = mode->kind == TD_IR_NO_GRAD;
        break;
    case TD_IR_INFERENCE_MODE: /* nothing is recorded, so grad mode is off in it as well */
        modes.inference = modes.grad_disabled = mode->enabled;
        break;
    case TD_IR_AUTOCAST:
        td_autocast_set(&modes, mode->device, mode->enabled ? (td_dtype)mode->dtype : (td_dtype)0);
        modes.uncached = !mode->cached;
        break;
    case TD_IR_MODE_KINDS:
        break;
    }
    return modes;
}

td_modes td_ir_enter(const td_ir_node *node) {
    td_modes before = td_get_modes();
    if (node->kind == TD_IR_WITH)
        td_set_modes(td_ir_mode_apply(before, &node->mode));
    return before;
}

const td_ir_node *td_ir_with_around(const td_ir_block *block) {
    const td_ir_node *node = block->owner;
    while (node && node->kind != TD_IR_WITH)
        node = node->block->owner;
    return node;
}
