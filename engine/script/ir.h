/* ir.h: graphs of calls: what a function becomes when it is traced or scripted.
 *
 * A graph is in static single assignment form. A block is a list of nodes in the order in which
 * they run; a node reads values and makes values, each of which is made once: by a node, or as an
 * input of a block. A node may have blocks of its own (prim::If, prim::Loop, prim::With), whose
 * nodes see the values made before it in the blocks around, and whose outputs become the node's. A
 * node is an operator, written aten::NAME, or one of the prim:: kinds below.
 *
 * The printed form is TorchScript's, so that people can read it and tools compare it:
 *
 *     graph(%x.1 : Float(*),
 *           %n : int):
 *       %2 : float = prim::Constant[value=0.5]()
 *       %3 : Float(*) = aten::mul(%x.1, %2) # cell.lua:2:9
 *       return (%3)
 *
 * A graph owns all that is in it, and nothing of it is freed before the graph is. Functions that
 * make something return NULL where memory has run out and take NULL for what could not be made; the
 * graph remembers, and td_ir_status says so at the end. While a graph is made or rewritten one
 * thread holds it; a finished one is only read, by any number of threads.
 */
#ifndef TD_SCRIPT_IR_H
#define TD_SCRIPT_IR_H

#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/op.h"

typedef struct td_ir_graph td_ir_graph;
typedef struct td_ir_block td_ir_block;
typedef struct td_ir_node td_ir_node;
typedef struct td_ir_value td_ir_value;
typedef struct td_ir_type td_ir_type;
typedef struct td_scalar td_scalar; /* scalars.h */

/* ---- types ---- */

typedef enum td_ir_type_kind {
    TD_IR_TENSOR,
    TD_IR_INT,
    TD_IR_FLOAT,
    TD_IR_BOOL,
    TD_IR_NUMBER, /* an int, a float or a bool: "Scalar" */
    TD_IR_STRING,
    TD_IR_NONE,
    TD_IR_DTYPE,
    TD_IR_DEVICE,
    TD_IR_GENERATOR,
    TD_IR_ANY,
    TD_IR_LIST,     /* int[] */
    TD_IR_OPTIONAL, /* int? */
    TD_IR_FUTURE,   /* Future(int) */
    TD_IR_DICT,     /* Dict(str, int): parts are str and the values' type */
    TD_IR_TUPLE,    /* (int, Tensor) */
    TD_IR_TYPE_KINDS
} td_ir_type_kind;

/* A size, a stride, a number of dims, whether a tensor requires grad: not known. */
enum { TD_IR_UNKNOWN = -1 };

struct td_ir_type {
    uint8_t kind;         /* td_ir_type_kind */
    uint8_t dtype;        /* of a tensor: TD_DTYPE_NONE: not known */
    int8_t requires_grad; /* of a tensor: 0, 1 or TD_IR_UNKNOWN */
    bool placed;          /* of a tensor: `device` is known */
    td_device device;
    int n;                  /* dims of a tensor, or TD_IR_UNKNOWN; parts of another type */
    const int64_t *sizes;   /* of a tensor whose dims are known; of each its size or UNKNOWN */
    const int64_t *strides; /* likewise; NULL: none is known */
    const td_ir_type *const
        *parts; /* of a list, optional or future one; of a dict two; of a tuple n */
};

/* A type without parts; of a tensor nothing is known then. Lives for ever. */
const td_ir_type *td_ir_simple_type(td_ir_type_kind kind);
/* One with n parts; in the graph's memory. */
const td_ir_type *td_ir_type_of_parts(td_ir_graph *g, td_ir_type_kind kind, int n,
                                      const td_ir_type *const *parts);
/* A copy of what a tensor's type says; in the graph's memory. */
const td_ir_type *td_ir_type_copy(td_ir_graph *g, const td_ir_type *type);
/* All that there is to know of a tensor. */
const td_ir_type *td_ir_type_of_tensor(td_ir_graph *g, const td_tensor *x);
bool td_ir_type_equal(const td_ir_type *a, const td_ir_type *b);
/* May a value of type `from` stand where `to` is expected? What is not known fits everything. */
bool td_ir_type_fits(const td_ir_type *from, const td_ir_type *to);
/* May a value of type `entry` become a part of a list or tuple whose part has that type? As above;
 * but where anything may be, nothing that has parts itself or could have: so no value nests deeper
 * than its type says, and no list comes to hold itself. */
bool td_ir_type_may_enter(const td_ir_type *entry, const td_ir_type *part);
/* "Float(2, *, requires_grad=0, device=cpu)"; cut where the buffer ends. Returns the buffer. */
const char *td_ir_type_text(const td_ir_type *type, char *buffer, size_t size);
/* "Float", "Long": TorchScript's name of a dtype. */
const char *td_ir_dtype_name(td_dtype dtype);

/* ---- graphs ---- */

typedef enum td_ir_kind {
    TD_IR_OPERATOR,        /* aten::NAME */
    TD_IR_CONSTANT,        /* () -> value */
    TD_IR_IF,              /* (condition); two blocks without inputs */
    TD_IR_LOOP,            /* (most trips, condition, carried...); one block, (trip, carried...) ->
                              (condition, carried...) */
    TD_IR_LIST_CONSTRUCT,  /* (entries...) -> list */
    TD_IR_LIST_UNPACK,     /* (list) -> entries... */
    TD_IR_TUPLE_CONSTRUCT, /* (parts...) -> tuple */
    TD_IR_TUPLE_UNPACK,    /* (tuple) -> parts... */
    TD_IR_FUSION_GROUP,    /* (inputs...) -> outputs... of a graph of its own, run as one kernel */
    TD_IR_SCALAR,          /* aten::NAME of scalars.def */
    TD_IR_TUPLE_INDEX,     /* (tuple, constant int from 0) -> part */
    TD_IR_CAST,            /* (value) -> the same value of another type, which it must be of */
    TD_IR_RAISE,           /* (string): the run fails with this message */
    TD_IR_PRINT,           /* (anything...): a line for the host */
    TD_IR_CALL,            /* (inputs...) -> outputs... of a graph of its own */
    TD_IR_FORK,            /* (inputs...) -> Future of what a graph of its own gives, which runs on
                              another thread: its only output, or a tuple of all */
    TD_IR_HOST_CALL,       /* (inputs...) -> outputs... of a function of the host's */
    TD_IR_DICT_CONSTRUCT,  /* (key, value, key, value...) -> dict */
    TD_IR_WITH,            /* (); one block without inputs, which runs in a mode of the thread */
    TD_IR_KINDS
} td_ir_kind;

/* "prim::If"; of TD_IR_OPERATOR and TD_IR_SCALAR "aten::". Those that have a graph of their own are
 * printed with its number: prim::FusionGroup_0, prim::CallFunction_1, prim::fork_2. */
const char *td_ir_kind_name(td_ir_kind kind);
/* Has a node of this kind a graph of its own? */
bool td_ir_kind_has_graph(td_ir_kind kind);

/* A mode that holds for a block. */
typedef enum td_ir_mode_kind {
    TD_IR_NO_GRAD,
    TD_IR_ENABLE_GRAD,
    TD_IR_INFERENCE_MODE,
    TD_IR_AUTOCAST,
    TD_IR_MODE_KINDS
} td_ir_mode_kind;
typedef struct td_ir_mode {
    uint8_t kind;   /* td_ir_mode_kind */
    bool enabled;   /* of inference_mode and autocast: false: it does not hold in there */
    uint8_t device; /* of autocast: td_device_type, */
    uint8_t dtype;  /* float16 or bfloat16, */
    bool cached;    /* and whether casts of weights are kept to the end of its region */
} td_ir_mode;

/* "no_grad", "enable_grad", "inference_mode", "autocast". */
const char *td_ir_mode_name(td_ir_mode_kind kind);
/* Modes of a thread with this one in force. */
td_modes td_ir_mode_apply(td_modes modes, const td_ir_mode *mode);
/* The innermost prim::With around a block, or NULL. What two nodes compute is the same, and equally
 * recorded, only where this is. */
const td_ir_node *td_ir_with_around(const td_ir_block *block);

/* The mode of a prim::With holds from here on, of other nodes none; returns the former modes, for
 * td_set_modes behind its block. */
td_modes td_ir_enter(const td_ir_node *node);

/* Where in a source text. */
typedef struct td_ir_place {
    const char *file; /* NULL: not known */
    int line, column; /* from 1; column 0: not known */
} td_ir_place;

/* A place where a value is read: an input of a node, or, where `node` is NULL, an output of a
 * block. */
typedef struct td_ir_use {
    struct td_ir_use *next;
    td_ir_node *node;
    td_ir_block *block;
    int index;
} td_ir_use;

struct td_ir_value {
    const td_ir_type *type;
    const char *name;   /* without %, unique in its graph */
    td_ir_node *node;   /* that makes it; NULL: it is an input of `block` */
    td_ir_block *block; /* whose nodes see it */
    td_ir_use *uses;
};

struct td_ir_node {
    td_ir_node *previous, *next;
    td_ir_block *block;      /* NULL: in none now */
    uint8_t kind;            /* td_ir_kind */
    bool inplace;            /* of an operator: its form NAME_ */
    const td_op *op;         /* of an operator */
    const td_scalar *scalar; /* of TD_IR_SCALAR */
    int id;                  /* of TD_IR_HOST_CALL: which function, prim::HostCall[id=3] */
    bool typed;              /* TD_IR_LIST_UNPACK of a specialisation: its types are the inputs' */
    td_ir_mode mode;         /* of TD_IR_WITH: prim::With[mode="no_grad"] */
    int ninputs, noutputs, nblocks;
    td_ir_value **inputs, **outputs;
    td_ir_block **blocks;
    td_value constant; /* of TD_IR_CONSTANT: NIL, a number, a bool, a string, a dtype, a device, a
                          list of numbers, or a tensor, which it holds */
    td_ir_graph *subgraph; /* of a kind that has a graph: a reference, but to the node's own graph,
                              which a function has that calls itself */
    td_ir_place place;
    td_ir_node *made; /* the node made before it in its graph */
};

struct td_ir_block {
    td_ir_graph *graph;
    td_ir_node *owner; /* NULL: the graph itself */
    td_ir_node *first, *last;
    int ninputs, noutputs;
    td_ir_value **inputs, **outputs;
};

struct td_ir_graph {
    atomic_int refs;
    td_ir_block *block;         /* inputs and outputs are the graph's */
    td_ir_node *made;           /* all nodes ever made, the last first */
    struct td_ir_chunk *chunks; /* its memory */
    td_map names;               /* of its values */
    td_map stems;               /* of names with numbers: the last number given */
    int nnames;                 /* numbers given as names so far */
    bool failed;                /* memory ran out */
    bool fits;                  /* shapes and numbers are such that no call refuses them */
    bool fast; /* kernels of its groups need not have the bits of their operators */
};

/* New, with an empty block; NULL: out of memory (no message is set). */
td_ir_graph *td_ir_graph_new(void);
td_ir_graph *td_ir_graph_retain(td_ir_graph *g);
void td_ir_graph_release(td_ir_graph *g); /* NULL is fine */
/* ENOMEM where something could not be made. */
td_status td_ir_status(const td_ir_graph *g) TD_MUST_CHECK;
/* Memory of the graph, zeroed; NULL: there is none. */
void *td_ir_alloc(td_ir_graph *g, size_t bytes);
void td_ir_free_memory(td_ir_graph *g); /* for td_ir_graph_release only */
/* A copy of a text of that length, terminated; NULL for NULL. */
const char *td_ir_text(td_ir_graph *g, const char *text, size_t length);

/* ---- making and rewriting ---- */

/* One more input of a block. Of a name that is taken a new one is made: x, x.1, x.2. NULL: a
 * number. */
td_ir_value *td_ir_add_input(td_ir_block *block, const td_ir_type *type, const char *name);
/* A node at the end of a block; `types` of what it makes. */
td_ir_node *td_ir_append(td_ir_block *block, td_ir_kind kind, int ninputs,
                         td_ir_value *const *inputs, int noutputs, const td_ir_type *const *types);
/* A node that makes this constant; its lists and strings are copied, its tensor is held. */
td_ir_value *td_ir_add_constant(td_ir_block *block, td_value constant);
void td_ir_set_constant(td_ir_node *node, td_value constant); /* of one that has none yet */
td_ir_block *td_ir_add_block(td_ir_node *node);
void td_ir_set_outputs(td_ir_block *block, int n, td_ir_value *const *outputs);
void td_ir_set_name(td_ir_graph *g, td_ir_value *value, const char *name);
void td_ir_set_input(td_ir_node *node, int index, td_ir_value *value);
/* Whatever read `from` reads `to`. */
void td_ir_replace(td_ir_value *from, td_ir_value *to);
/* Out of its block; nothing may read what it makes. What it read it reads no more. */
void td_ir_remove(td_ir_node *node);
/* Before another node, of whatever block of the same graph. */
void td_ir_move_before(td_ir_node *node, td_ir_node *at);
/* Is a value made before a node, where that sees it? */
bool td_ir_sees(const td_ir_node *node, const td_ir_value *value);

/* ---- texts, checks ---- */

/* The printed form: new, from td_malloc, ends with a line end; NULL: out of memory. */
char *td_ir_print(const td_ir_graph *g);
/* The same, with constant tensors by number, prim::Constant[tensor=0](): each goes into the list,
 * which the caller begins empty (of td_tensor *, borrowed from the graph) and clears. NULL: out of
 * memory. */
char *td_ir_print_with(const td_ir_graph *g, td_list *tensors);
/* The graph of a printed form, new. EVALUE names line, column and what is wrong there; ENOMEM. */
td_status td_ir_parse(const char *text, td_ir_graph **out) TD_MUST_CHECK;
/* The same of a text that numbers constant tensors: those of this table, which are held. */
td_status td_ir_parse_with(const char *text, int ntensors, td_tensor *const *tensors,
                           td_ir_graph **out) TD_MUST_CHECK;
/* Does everything hold that this header says: values are seen where they are read, uses are
 * complete, blocks and types fit their nodes? EINTERNAL names the node and why. */
td_status td_ir_verify(const td_ir_graph *g) TD_MUST_CHECK;

#endif
