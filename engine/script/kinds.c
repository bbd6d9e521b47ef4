/* kinds.c: is a value what a type says? */
#include "engine/script/kinds.h"

const char *td_kind_noun(uint8_t kind) {
    static const char *const names[] = {[TD_KIND_NIL] = "nil",
                                        [TD_KIND_TENSOR] = "a tensor",
                                        [TD_KIND_INT] = "an int",
                                        [TD_KIND_FLOAT] = "a float",
                                        [TD_KIND_BOOL] = "a bool",
                                        [TD_KIND_INTS] = "a list of ints",
                                        [TD_KIND_TENSORS] = "a list of tensors",
                                        [TD_KIND_DTYPE] = "a dtype",
                                        [TD_KIND_DEVICE] = "a device",
                                        [TD_KIND_STRING] = "a string",
                                        [TD_KIND_GENERATOR] = "a generator",
                                        [TD_KIND_FLOATS] = "a list of floats",
                                        [TD_VALUE_QUANTIZED_DTYPE] = "a dtype of quantized tensors",
                                        [TD_BOX_STRING] = "a string",
                                        [TD_BOX_LIST] = "a list",
                                        [TD_BOX_TUPLE] = "a tuple",
                                        [TD_BOX_FUTURE] = "a future",
                                        [TD_BOX_DICT] = "a dict"};
    return names[kind];
}

static bool entries_are(const td_box_list *list, const td_ir_type *entry) {
    const td_ir_type *type = entry->kind == TD_IR_OPTIONAL ? entry->parts[0] : entry;
    if (list->entries == TD_ENTRIES_INTS)
        return type->kind == TD_IR_INT || type->kind == TD_IR_NUMBER || type->kind == TD_IR_ANY;
    if (list->entries == TD_ENTRIES_FLOATS)
        return type->kind == TD_IR_FLOAT || type->kind == TD_IR_NUMBER || type->kind == TD_IR_ANY;
    for (int k = 0; k < list->n; k++)
        if (!td_value_is(td_list_entry(list, k), entry))
            return false;
    return list->entries == TD_ENTRIES_VALUES || type->kind == TD_IR_TENSOR;
}

static bool is_list(td_value v, const td_ir_type *entry) {
    const td_box_list *list = td_value_list(v);
    if (v.kind == TD_KIND_INTS)
        return entry->kind == TD_IR_INT;
    if (v.kind == TD_KIND_FLOATS)
        return entry->kind == TD_IR_FLOAT;
    bool hole = entry->kind == TD_IR_OPTIONAL;
    for (int k = 0; v.kind == TD_KIND_TENSORS && k < v.n; k++)
        if (!hole && !v.tensors[k])
            return false;
    if (v.kind == TD_KIND_TENSORS)
        return (hole ? entry->parts[0] : entry)->kind == TD_IR_TENSOR;
    return list && entries_are(list, entry);
}

static bool is_tuple(td_value v, const td_ir_type *type) {
    const td_box_tuple *tuple = td_value_tuple(v);
    if (!tuple || tuple->n != type->n)
        return false;
    for (int k = 0; k < type->n; k++)
        if (!td_value_is(tuple->parts[k], type->parts[k]))
            return false;
    return true;
}

static bool is_dict(td_value v, const td_ir_type *value) {
    const td_box_dict *dict = td_value_dict(v);
    for (td_dict_entry *entry = dict ? dict->first : NULL; entry; entry = entry->next)
        if (!td_value_is(entry->value, value))
            return false;
    return dict;
}

bool td_value_is(td_value v, const td_ir_type *type) {
    switch ((td_ir_type_kind)type->kind) {
    case TD_IR_TENSOR:
        return v.kind == TD_KIND_TENSOR;
    case TD_IR_INT:
        return v.kind == TD_KIND_INT;
    case TD_IR_FLOAT:
        return v.kind == TD_KIND_FLOAT;
    case TD_IR_BOOL:
        return v.kind == TD_KIND_BOOL;
    case TD_IR_NUMBER:
        return v.kind == TD_KIND_INT || v.kind == TD_KIND_FLOAT || v.kind == TD_KIND_BOOL;
    case TD_IR_STRING:
        return v.kind == TD_KIND_STRING || v.kind == TD_BOX_STRING;
    case TD_IR_NONE:
        return v.kind == TD_KIND_NIL;
    case TD_IR_DTYPE:
        return v.kind == TD_KIND_DTYPE || v.kind == TD_VALUE_QUANTIZED_DTYPE;
    case TD_IR_DEVICE:
        return v.kind == TD_KIND_DEVICE;
    case TD_IR_GENERATOR:
        return v.kind == TD_KIND_GENERATOR;
    case TD_IR_OPTIONAL:
        return v.kind == TD_KIND_NIL || td_value_is(v, type->parts[0]);
    case TD_IR_LIST:
        return is_list(v, type->parts[0]);
    case TD_IR_TUPLE:
        return is_tuple(v, type);
    case TD_IR_FUTURE:
        return v.kind == TD_BOX_FUTURE;
    case TD_IR_DICT:
        return is_dict(v, type->parts[1]);
    case TD_IR_ANY:
    case TD_IR_TYPE_KINDS:
        break;
    }
    return true;
}

bool td_value_fit(td_value *v, const td_ir_type *type) {
    const td_ir_type *inner = type->kind == TD_IR_OPTIONAL ? type->parts[0] : type;
    if (inner->kind == TD_IR_FLOAT && v->kind == TD_KIND_INT)
        *v = TD_F((double)v->i);
    return td_value_is(*v, type);
}

td_status td_fail_kind(const char *what, const char *name, const td_ir_type *type, td_value v) {
    char text[200];
    return td_fail(TD_ETYPE, "%s %s is %s, and %s was given", what, name,
                   td_ir_type_text(type, text, sizeof text), td_kind_noun(v.kind));
}
