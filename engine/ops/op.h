/* op.h: what an operator is, and how one is called.
 *
 * An operator is one td_op in the file of its family. Everything else (dispatch, Lua function and
 * method, in-place and out= forms, help, completion, profiler names, generic tests) follows from
 * it.
 *
 * The way of a call (dispatch.c): rule, results, node of the graph with what it saves, and only
 * then the kernel, which writes memory, and the publication of what it wrote. Whatever can fail for
 * want of memory fails before the first byte is written, so that a call may be made again. Kernels
 * know nothing of gradients; gradients are expressions over operators (expression.h) or backward
 * functions that call operators only, so that gradients of gradients come by themselves.
 */
#ifndef TD_OPS_OP_H
#define TD_OPS_OP_H

#include "engine/core/tensor.h"

typedef struct td_op td_op;
typedef struct td_call td_call;
typedef struct td_grad td_grad;

/* ---- values: what arguments are ---- */

typedef enum td_kind {
    TD_KIND_NIL,
    TD_KIND_TENSOR,
    TD_KIND_INT, /* also dims and indices, counted from 0, negative from the end */
    TD_KIND_FLOAT,
    TD_KIND_BOOL,
    TD_KIND_INTS,
    TD_KIND_TENSORS,
    TD_KIND_DTYPE,
    TD_KIND_DEVICE,
    TD_KIND_STRING,
    TD_KIND_GENERATOR,
    TD_KIND_FLOATS
} td_kind;

struct td_generator;

/* An argument; everything in it is borrowed for the call. */
typedef struct td_value {
    uint8_t kind;
    uint16_t from_one; /* indices: bit k: the elements of tensor k count from 1, not from 0 */
    int32_t n;         /* length of ints or tensors */
    union {
        td_tensor *tensor;
        int64_t i;
        double f;
        bool b;
        const int64_t *ints;
        const double *floats;
        td_tensor *const *tensors; /* entries may be NULL where the schema says Tensor?[] */
        td_dtype dtype;
        td_device device;
        const char *string;
        struct td_generator *generator;
    };
} td_value;

#define TD_NIL               ((td_value){.kind = TD_KIND_NIL})
#define TD_T(x)              ((td_value){.kind = TD_KIND_TENSOR, .tensor = (x)}) /* x is not NULL */
#define TD_I(x)              ((td_value){.kind = TD_KIND_INT, .i = (x)})
#define TD_F(x)              ((td_value){.kind = TD_KIND_FLOAT, .f = (x)})
#define TD_B(x)              ((td_value){.kind = TD_KIND_BOOL, .b = (x)})
#define TD_INTS(count, p)    ((td_value){.kind = TD_KIND_INTS, .n = (count), .ints = (p)})
#define TD_FLOATS(count, p)  ((td_value){.kind = TD_KIND_FLOATS, .n = (count), .floats = (p)})
#define TD_TENSORS(count, p) ((td_value){.kind = TD_KIND_TENSORS, .n = (count), .tensors = (p)})
/* x, whose elements are indices that count as those of `like` do. */
#define TD_INDEX(x, like)                                                                          \
    ((td_value){.kind = TD_KIND_TENSOR, .from_one = (like).from_one, .tensor = (x)})
#define TD_DTYPE(x)  ((td_value){.kind = TD_KIND_DTYPE, .dtype = (x)})
#define TD_DEVICE(x) ((td_value){.kind = TD_KIND_DEVICE, .device = (x)})
#define TD_STRING(x) ((td_value){.kind = TD_KIND_STRING, .string = (x)})
static inline td_value td_tensor_or_nil(td_tensor *x) {
    return x ? TD_T(x) : TD_NIL;
}

static inline bool td_is_nil(td_value v) {
    return v.kind == TD_KIND_NIL;
}
static inline td_tensor *td_arg_tensor(td_value v) {
    return v.kind == TD_KIND_TENSOR ? v.tensor : NULL;
}
/* Of a number, or of a bool where one may stand for it. */
static inline double td_arg_double(td_value v) {
    return v.kind == TD_KIND_INT ? (double)v.i : v.kind == TD_KIND_BOOL ? (double)v.b : v.f;
}

/* ---- schemas ----
 *
 *   (TYPE name[=default], ..., *, TYPE option[=default]) -> RESULT
 *
 * TYPE: Tensor, Tensor[] (list), number (Lua integer or float), Tensor|number (or bool, which then
 *   is a number of the lowest category), number|bool, int, float, bool,
 *   dim (counts from 1 in Lua), dim[] (one or a list), index (an int that counts from 1), int[]
 *   (a list, or the rest of the positional arguments when it is the last positional parameter),
 *   int[2] (two ints; one int is taken twice), int?[2] (some may be left out: false in Lua,
 *   TD_LEFT_OUT here), int[2]|"same"|"valid" (or one of these strings), number[] (one or a list),
 *   int|int[] and int|dim[] (one int stays an int), dtype, device, str, generator,
 *   number|"a"|"b", "a"|"b" (one of these strings), Tensor?[] (entries may be missing),
 *   Tensor... (a list, or the rest of the positional arguments),
 *   index Tensor (elements count from 1 in Lua), class Tensor (the same, for labels),
 *   index Tensor?[] (the same in a list, where masks may stand as well).
 * A range may follow int and number: int(1..), number(0..1), int(0..)[2].
 * Functions of a front end that are no operators have these besides (schema.h):
 *   any, table, list (of anything), data (numbers, nested lists of them, a tensor), function,
 *   NAME (an object of that class: Module), NAME[] (a list, or the rest of the arguments) and
 *   Tensor|Tensor[] (one stands for a list of one); entries that are missing are false;
 *   `...` as the last parameter takes what is left as it is.
 * A `?` after the type lets nil in (the default is then nil). After `*` come options, given by name
 * in the trailing table only. Every parameter may be given by name there.
 * Defaults: nil, numbers, true, false, "text", {1, 1}.
 * RESULT: Tensor, index Tensor, Tensor[], number, bool, nothing, or (Tensor a, index Tensor b). */

typedef enum td_param_type {
    TD_PARAM_TENSOR,
    TD_PARAM_TENSORS,
    TD_PARAM_NUMBER,
    TD_PARAM_TENSOR_OR_NUMBER,
    TD_PARAM_INT,
    TD_PARAM_FLOAT,
    TD_PARAM_BOOL,
    TD_PARAM_DIM,
    TD_PARAM_DIMS,
    TD_PARAM_INDEX,
    TD_PARAM_INTS,
    TD_PARAM_DTYPE,
    TD_PARAM_DEVICE,
    TD_PARAM_STRING,
    TD_PARAM_GENERATOR,
    TD_PARAM_ANY,
    TD_PARAM_TABLE,
    TD_PARAM_LIST,
    TD_PARAM_DATA,
    TD_PARAM_FUNCTION,
    TD_PARAM_OBJECT,
    TD_PARAM_OBJECTS,
    TD_PARAM_NUMBERS
} td_param_type;

/* An entry of an int?[2] that is left out. */
#define TD_LEFT_OUT INT64_MIN

typedef enum td_base { TD_BASE_NONE, TD_BASE_INDEX, TD_BASE_CLASS } td_base;
/* What is said of a class 0 among those that count from 1. */
#define TD_CLASS_ZERO "class 0: classes count from 1 (PyTorch's 0 is 1): target + 1"

typedef struct td_param {
    char *name;
    uint8_t type;     /* td_param_type */
    uint8_t base;     /* td_base: elements of this tensor count from 1 in Lua */
    uint8_t length;   /* int[2]: 2; 0: any */
    bool optional;    /* nil is allowed */
    bool has_default; /* may be left out */
    bool option;      /* after the star */
    bool alone;       /* Tensor|Tensor[]: one stands for a list of one; int|int[]: it stays one */
    bool rest;        /* Tensor...: takes the rest of the positional arguments */
    bool holes;       /* Tensor?[], int?[2]: entries may be missing */
    bool truth;       /* number|bool */
    bool ranged;      /* low and high say what is allowed */
    int64_t low, high;
    char *word;      /* class of an object; or the strings allowed, "mean|sum|none" (of an
                        int[] or number that may be one of them, too) */
    td_value preset; /* the default */
    int64_t preset_ints[4];
} td_param;

typedef enum td_result_type {
    TD_RESULT_TENSOR,
    TD_RESULT_TENSORS,
    TD_RESULT_NUMBER,
    TD_RESULT_BOOL,
    TD_RESULT_NOTHING
} td_result_type;

#define TD_MAX_PARAMS  18
#define TD_MAX_RESULTS 4

/* ---- the descriptor ---- */

/* What autocast does to the floating arguments of an operator. */
typedef enum td_autocast_class {
    TD_AUTOCAST_NONE,        /* nothing: what differs is promoted as anywhere else */
    TD_AUTOCAST_LOWER,       /* to the low dtype: matmul, convolution */
    TD_AUTOCAST_FP32,        /* to float32 */
    TD_AUTOCAST_FP32_RESULT, /* its option dtype becomes float32 where it is not given */
    TD_AUTOCAST_PROMOTE,     /* to the widest among them */
    TD_AUTOCAST_BANNED,      /* refused, with advice */
    TD_AUTOCAST_CLASSES
} td_autocast_class;

/* What else a row says of its operator, a bit each: TD_OP_VIEW and so on. */
/* clang-format off */
#define TD_OP_FLAGS(X)                                                                             \
    X(VIEW)          /* its result shares storage with the first argument */                       \
    X(INPLACE)       /* a form `name_` exists, which writes the first argument */                  \
    X(INPLACE_ONLY)  /* that form alone exists; the name ends in _ */                              \
    X(OUT)           /* takes the option out= */                                                   \
    X(OUT_EXACT)     /* out= must have the dtype of the result */                                  \
    X(OUT_APART)     /* out= may not share memory with an argument (in place: but the first) */    \
    X(FUNCTION_ONLY) /* not a method (creation) */                                                 \
    X(METHOD_ONLY)   /* not a function */                                                          \
    X(INTERNAL)      /* for backward functions and bindings: not shown to Lua */                   \
    X(NONDIFF)       /* its results never require grad */                                          \
    X(RANDOM)        /* reads the generator: never the same twice */                               \
    X(CREATES)       /* makes a new leaf: takes requires_grad as creation does */                  \
    X(ANY_LAYOUT)    /* `run` takes tensors that are not strided as it takes others */             \
    X(ANY_DEVICE)    /* takes tensors of several devices */                                        \
    X(ANY_BASE)      /* reads td_value.from_one on the CPU; others are given what counts from 0 */ \
    X(WRITES_SELF)   /* the kernel may be given its first argument as its result */                \
    X(TURNS)         /* a view; in place the tensor itself becomes that view */                    \
    X(PART)          /* a view of elements of x, none twice; the gradient is zero elsewhere */     \
    X(REFUSES)       /* the kernel may refuse elements: out= is written when it is done */         \
    X(BY_ELEMENTS)   /* what its results are may depend on elements (calls/infer.h) */             \
    X(ALIKE)         /* its first two tensors broadcast, but are meant to be of one shape */       \
    X(REST)          /* takes more arguments than its schema names, which sets it (schema.h) */
/* clang-format on */
enum {
#define TD_OP_FLAG_NUMBER(name) TD_OP_NUMBER_##name,
    TD_OP_FLAGS(TD_OP_FLAG_NUMBER)
#undef TD_OP_FLAG_NUMBER
#define TD_OP_FLAG_BIT(name) TD_OP_##name = 1 << TD_OP_NUMBER_##name,
        TD_OP_FLAGS(TD_OP_FLAG_BIT)
#undef TD_OP_FLAG_BIT
};

/* Shape and dtype rule: read call->args, fill out[0 .. nresults), and what it has worked out of the
 * plan: TD_PLAN(call, td_reduce_plan) is the plan that the kernel of this call finds again. */
typedef td_status (*td_rule_fn)(const td_call *call, td_meta *out);
/* Kernel: results call->out[] are allocated as the rule said, or given by the user, of that shape
 * and any strides, where the operator has TD_OP_OUT or TD_OP_INPLACE. They share no memory with the
 * arguments, but for out[0] being args[0] under TD_OP_WRITES_SELF. It puts tensors into its plan
 * and hands that to the device with TD_RUN. */
typedef td_status (*td_kernel_fn)(td_call *call);
/* What a call of these arguments really is: *op, which is the operator itself at first. Its
 * parameters are the first ones of the operator's, so the arguments stay where they are. May refuse
 * them. */
typedef td_status (*td_variant_fn)(const td_value *args, const td_op **op);
/* Gradient: fill grad->in[]; see td_grad. */
typedef td_status (*td_backward_fn)(td_grad *grad);

struct td_op {
    /* Written by the family. */
    const char *schema;
    const char *doc;                      /* one line, ends with a full stop */
    const char *shapes;                   /* of arguments and results, in help.h's language; NULL
                                             where the kind of the row says them */
    const char *takes;                    /* dtypes of its tensors in words (help.h); NULL where
                                             `dtypes` or the kind of the row says them */
    const char *notes;                    /* errors that matter, and what differs from PyTorch;
                                             sentences, or NULL */
    td_rule_fn rule;                      /* with kernels; or NULL with `run` */
    td_kernel_fn kernel;                  /* makes a plan, hands it to the device (TD_RUN) */
    td_kernel_fn run;                     /* instead of rule and kernel: makes call->out itself.
                                             With `backward` it runs below autograd; without, the
                                             operators it calls record themselves (composite). */
    const char *formula;                  /* instead of run: the same as an expression over
                                             operators (ops/language/expression.h) */
    td_backward_fn backward;              /* NULL: `gradient`, composite or not differentiable */
    const char *gradient;                 /* instead of backward: "a: g * b; b: g * a"; what it
                                             reads is saved (ops/language/expression.h) */
    const char *saves;                    /* what backward reads: "x, out"; others are not kept */
    const struct td_pointwise *pointwise; /* pointwise operators (ops/pointwise/pointwise.h) */
    td_variant_fn variant;                /* NULL: none; div's rounding_mode and such */
    td_kernel_fn forms[TD_LAYOUTS];       /* where an argument is not strided, by its layout and
                                             instead of all else: makes call->out of operators that
                                             record themselves (its first target, where that is
                                             strided, may be the result). NULL: refused */
    uint8_t autocast[TD_CUDA + 1];        /* td_autocast_class by type of device; those beyond
                                             CUDA are cast as it is */
    uint32_t flags;                       /* TD_OP_FLAGS */
    uint64_t dtypes; /* with `kernel`: what its tensors may be (TD_DTYPES_ALL, ...), but for those
                        that the schema calls index or class; with `pointwise`: what they may be
                        promoted to, 0 standing for all */

    /* Filled at registration. */
    const char *name;
    const char *family;
    td_param *params;
    uint8_t nparams, npositional, nresults, result_type;
    uint8_t nlooks; /* parameters up to the last that is a tensor, a list of them or a device */
    uint8_t result_base[TD_MAX_RESULTS];
    char *result_names[TD_MAX_RESULTS]; /* NULL for a single result */
    uint32_t save_args;                 /* bit per parameter */
    uint8_t save_outs;                  /* bit per result */
    uint16_t id;
    struct td_formula *programs;                  /* pointwise: its formulas, compiled */
    struct td_expression *composite, *derivative; /* `formula` and `gradient`, compiled */
    const char *inplace_name;                     /* "add_" or NULL */
    const char *backward_name;                    /* "AddBackward", unless the row says another */
};

/* ---- calls ---- */

/* How far a call goes. */
typedef enum td_call_mode {
    TD_CALL_RUN,    /* to its end, and is not recorded */
    TD_CALL_RECORD, /* to its end, with a node for backward: `record` */
    TD_CALL_CHECK,  /* to where nothing refuses it any more: td_op_check */
    TD_CALL_CHECKED /* it came there */
} td_call_mode;

struct td_call {
    const td_op *op;
    const td_value *args; /* op->nparams of them, in the schema's order, defaults filled in */
    td_tensor *out[TD_MAX_RESULTS]; /* results: new references */
    td_tensor **list;               /* for Tensor[] results: td_malloc'ed array of new references */
    int nlist;
    td_value result;         /* for number and bool results */
    td_tensor *const *given; /* what is to be written, result by result: targets in place, or out=;
                                borrowed; the results then hold other references to them. Behind
                                them stand nbeside tensors that arguments were made from: out= is
                                compared with these as with arguments */
    int ngiven;
    bool inplace;
    uint8_t nbeside;
    uint8_t mode;             /* td_call_mode */
    bool brief;               /* nobody keeps its results for long */
    td_device device;         /* of its first tensor, else of its device option, else the CPU */
    void *plan;               /* room for the plan of an operator with a rule; see TD_PLAN */
    struct td_record *record; /* the node that this call will be, with TD_CALL_RECORD */
};

/* Between the allocation of a call's results and its kernel, for those who run kernels: make the
 * node, save what backward reads. A call that is only checked ends here: a failure that its caller
 * understands. */
td_status td_call_record(td_call *call) TD_MUST_CHECK;
static inline td_status td_call_ready(td_call *call) {
    return TD_LIKELY(call->mode == TD_CALL_RUN) ? TD_OK : td_call_record(call);
}
/* The given tensor of a result; NULL when it is made afresh. */
static inline td_tensor *td_call_given(const td_call *call, int result) {
    return result < call->ngiven ? call->given[result] : NULL;
}
/* May the n results of a call be written into what it was given? Changes nothing. EVALUE: there are
 * not as many, they share memory with one another, or with an argument where that is refused;
 * EDTYPE, and in place ESHAPE. */
td_status td_check_given(const td_call *call, int n, const td_meta *results) TD_MUST_CHECK;
/* After that check: bring what was given for the k-th result into its shape. */
td_status td_fit_given(const td_call *call, int k, const td_meta *result) TD_MUST_CHECK;

/* The room for the plan of a call as a struct of ops/plan/plan.h; uninitialised in the rule. */
#define TD_PLAN_BYTES 1536
#define TD_PLAN(call, type)                                                                        \
    (__extension__({                                                                               \
        _Static_assert(sizeof(type) <= TD_PLAN_BYTES, "TD_PLAN_BYTES");                            \
        (type *)(call)->plan;                                                                      \
    }))

/* Make a prepared call. On failure nothing is left in out or list and the message begins with the
 * operator's name. On success out[] (or list) hold new references.
 *
 * The one door for calls of operators: front ends, composites, lists, optimizers, backward. While
 * the thread's modes hold a dispatcher (td_modes.dispatcher) that gets every call, and decides what
 * becomes of it. */
td_status td_op_call(td_call *call) TD_MUST_CHECK;

/* Takes calls in hand, as a tracer, a graph that is run later or other forms of operators do. Its
 * `call` has td_op_call's contract. It may run the call, unchanged or another one, by td_op_run,
 * under which the calls that a composite makes come to it in turn; take itself out of
 * td_modes.dispatcher for what it doesn't want to see; or fill out[] without running anything.
 * Embedded in a struct of its owner, which lives as long as the modes name it. */
typedef struct td_dispatcher td_dispatcher;
struct td_dispatcher {
    td_status (*call)(const td_dispatcher *self, td_call *call);
};

/* Let go of what a call has made. */
void td_call_drop(td_call *call);

/* Make a call as if no dispatcher had been there for it. */
td_status td_op_run(td_call *call) TD_MUST_CHECK;

/* Will an operator with a gradient that reads x be recorded? */
bool td_op_records(const td_tensor *x);

/* Would td_op_call refuse this call in place of a pointwise operator or one with a rule? Writes
 * nothing. */
td_status td_op_check(td_call *call) TD_MUST_CHECK;

/* Run an operator from C: missing arguments at the end take their defaults. `out` takes
 * op->nresults tensors (new references), all NULL on failure. */
td_status td_op_apply(const td_op *op, td_tensor **out, int nargs,
                      const td_value *args) TD_MUST_CHECK;
/* The in-place form: writes `self`, which is args[0]. */
td_status td_op_apply_inplace(const td_op *op, int nargs, const td_value *args) TD_MUST_CHECK;

/* Defines the operator `id`, in a file that has defined TD_FAMILY (a string):
 *
 *   TD_OPERATOR(relu) = {.schema = "(Tensor x) -> Tensor", .doc = "max(x, 0).", ...};
 *
 * The definition registers itself: a section of the library holds one entry per operator. */
typedef struct td_operator_entry {
    const char *name, *family;
    td_op *op;
} td_operator_entry;
#define TD_OPERATOR(id)                                                                            \
    extern td_op td_operator_##id;                                                                 \
    static const td_operator_entry entry_of_##id = {#id, TD_FAMILY, &td_operator_##id};            \
    static const td_operator_entry *const place_of_##id                                            \
        __attribute__((section("td_operators"), used)) = &entry_of_##id;                           \
    td_op td_operator_##id

/* Make operators known that a library brings which is loaded after td_init: its entries are those
 * between the two symbols that TD_OPERATOR_LIBRARY hands out. All or none; those that are known
 * already are left alone. The library stays loaded for ever. EINTERNAL, EVALUE: a name that is
 * taken, a row that is wrong. */
td_status td_op_register(int n, const td_operator_entry *const *entries) TD_MUST_CHECK;

/* Once in such a library, at file scope: a function by which a front end finds its operators (Lua:
 * tide.load_library). */
#define TD_OPERATOR_LIBRARY                                                                        \
    extern const td_operator_entry *const __start_td_operators[]                                   \
        __attribute__((visibility("hidden")));                                                     \
    extern const td_operator_entry *const __stop_td_operators[]                                    \
        __attribute__((visibility("hidden")));                                                     \
    int td_library_operators(const td_operator_entry *const **entries);                            \
    int td_library_operators(const td_operator_entry *const **entries) {                           \
        *entries = __start_td_operators;                                                           \
        return (int)(__stop_td_operators - __start_td_operators);                                  \
    }                                                                                              \
    _Static_assert(sizeof(td_operator_entry) > 0, "ends with a semicolon")

/* The operator of a name: a symbol, so that a name that does not exist fails to link. */
#define TD_OP(id)                                                                                  \
    (__extension__({                                                                               \
        extern td_op td_operator_##id;                                                             \
        (const td_op *)&td_operator_##id;                                                          \
    }))
/* TD_APPLY(&y, mul, TD_T(a), TD_T(b)) */
#define TD_APPLY(out, id, ...)                                                                     \
    td_op_apply(TD_OP(id), (out), (int)(sizeof((td_value[]){__VA_ARGS__}) / sizeof(td_value)),     \
                (td_value[]){__VA_ARGS__})
#define TD_APPLY_INPLACE(id, ...)                                                                  \
    td_op_apply_inplace(TD_OP(id), (int)(sizeof((td_value[]){__VA_ARGS__}) / sizeof(td_value)),    \
                        (td_value[]){__VA_ARGS__})

/* Another name of an operator and of its in-place form: TD_ALIAS(clip, clamp); */
typedef struct td_alias {
    const char *name, *inplace_name;
    const td_op *op;
} td_alias;
#define TD_ALIAS(alias, id)                                                                        \
    extern td_op td_operator_##id;                                                                 \
    static const td_alias alias_##alias = {#alias, #alias "_", &td_operator_##id};                 \
    static const td_alias *const place_of_alias_##alias                                            \
        __attribute__((section("td_aliases"), used)) = &alias_##alias

/* For composites that are another operator: run it with the call's first nargs arguments and what
 * the call was given. */
td_status td_call_as(td_call *call, const td_op *op, int nargs) TD_MUST_CHECK;

/* Find by a name that is known at run time only; NULL when there is none. Not by an alias. */
const td_op *td_op_find(const char *name);

/* All aliases, from 0, and the one of a name, of an in-place form too; NULL when there is none. */
int td_alias_count(void);
const td_alias *td_alias_get(int k);
const td_alias *td_alias_find(const char *name);

/* EDTYPE: the operator is not for this dtype, in the words of its `dtypes`. */
td_status td_op_refuse_dtype(const td_op *op, td_dtype dtype);

/* All operators, by id from 0. */
int td_op_count(void);
const td_op *td_op_get(int id);

/* Build the table of operators; called by td_init. */
td_status td_op_register_all(void);

/* The dtype that tensors, numbers and bools among values are promoted to; at least one of them. */
td_dtype td_promote_operands(int n, const td_value *args);

/* Start the engine: CPU variant, operators, threads. Cheap, idempotent, thread-safe. EVALUE for a
 * TIDE_CPU that this machine does not have. Everything else here needs it first. */
td_status td_init(void) TD_MUST_CHECK;

/* ---- backward ---- */

struct td_grad {
    const td_op *op;
    const td_value *args;   /* as in the forward call; tensors that `saves` does not name are NULL
                               (kind stays TENSOR), lists of tensors likewise entry by entry */
    td_tensor *const *out;  /* results named in `saves`; others NULL */
    td_tensor *const *gout; /* incoming gradient per result; NULL: zero */
    td_tensor **in;         /* to fill: gradient per input slot, new references; NULL: none.
                               Slot = parameter number; an element of a Tensor[] parameter sits at
                               td_grad_slot(grad, parameter, element). */
    const struct td_node *node;
};

/* Does the input in this slot want a gradient? */
bool td_grad_needs(const td_grad *grad, int slot);
int td_grad_slot(const td_grad *grad, int param, int element);
/* Shape (and ndim) of the input in this slot, saved or not. */
const int64_t *td_grad_shape(const td_grad *grad, int slot, int *ndim);
td_dtype td_grad_dtype(const td_grad *grad, int slot);

#endif
