"""What PyTorch's arguments and results mean: which of them count (dims, indices, labels), so that the
call can be said in Lua, where these count from 1. Names are PyTorch's; nothing here looks at Tide."""

DIMS = {"dim", "dims", "dimension", "dim0", "dim1", "dim2", "axis", "axis0", "axis1", "start_dim", "end_dim", "source",
        "destination", "batch_dim", "randomized_dim"}
# (function, parameter) that bear such a name and are none.
NO_DIMS = {("tile", "dims"), ("index_copy", "source"), ("index_add", "source"), ("index_reduce", "source"),
           ("masked_scatter", "source"), ("put", "source")}

# Tensors and numbers whose values are positions or labels. Those below 0 stay: they count from the end, or
# are marks (ignore_index = -100).
INDICES = {
    "gather": ("index",), "scatter": ("index",), "scatter_add": ("index",), "scatter_reduce": ("index",),
    "index_select": ("index",), "index_add": ("index",), "index_copy": ("index",), "index_fill": ("index",),
    "index_reduce": ("index",), "take": ("index",), "put": ("index",), "take_along_dim": ("indices",),
    "index_put": ("indices",), "select": ("index",), "select_scatter": ("index",), "narrow": ("start",),
    "narrow_copy": ("start",), "slice": ("start",), "slice_scatter": ("start",),
    "embedding": ("input", "padding_idx"), "embedding_bag": ("input", "offsets", "padding_idx"),
    "one_hot": ("input", "tensor", "self"), "nll_loss": ("target", "ignore_index"),
    "cross_entropy": ("target", "ignore_index"), "multi_margin_loss": ("target",),
    "multilabel_margin_loss": ("target",), "ctc_loss": ("targets", "blank"), "unravel_index": ("indices",),
    "bincount": ("input", "self"),
    "max_unpool1d": ("indices",), "max_unpool2d": ("indices",), "max_unpool3d": ("indices",),
}

# Results that are positions: all of them, or those behind the first.
INDEX_RESULTS = {"argmax", "argmin", "argsort", "nonzero", "argwhere", "searchsorted", "bucketize", "multinomial",
                 "tril_indices", "triu_indices", "unravel_index", "randperm"}
SECOND_INDEX_RESULTS = {"sort", "topk", "max", "min", "kthvalue", "mode", "median", "nanmedian", "cummax", "cummin",
                        "max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
                        "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d"}

# Where equal values may be found at any of their places, unless `stable` says otherwise.
ANY_PLACE = {"sort", "msort", "argsort", "topk", "kthvalue", "mode", "median", "nanmedian", "cummax", "cummin"}

# Decompositions whose vectors may have either sign.
UP_TO_SIGNS = {"svd", "eigh"}

# What differs from call to call: shapes, dtypes and strides are compared, values are not.
RANDOM = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "normal_",
          "bernoulli", "bernoulli_", "multinomial", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
          "feature_alpha_dropout", "rrelu", "rrelu_", "uniform", "uniform_", "exponential_", "cauchy_", "geometric_",
          "log_normal_", "random_", "fractional_max_pool2d", "fractional_max_pool3d", "empty", "empty_like", "empty_strided",
          "empty_permuted", "new_empty", "new_empty_strided", "native_dropout", "svd_lowrank", "pca_lowrank", "resize_",
          "resize_as_"}


# Ends of ranges, which Lua counts in.
STOPS = {("slice", "end"), ("slice_scatter", "end")}

# PyTorch itself does not write (gelu) or writes elsewhere (tril, triu) where out= lies in another order.
OUT_IN_ORDER = {"gelu", "nn.functional.gelu", "tril", "triu", "log_softmax"}

# Functions of torch.nn.functional whose name is another function's elsewhere.
NOT_SHORT = {"nn.functional.embedding", "nn.functional.embedding_bag", "nn.functional.unfold"}


def base_name(function):
    """add_ and add are one function here; so are linalg_cross and cross."""
    name = function.rsplit(".", 1)[-1]
    if name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    return name


def is_dim(function, parameter, value):
    name = base_name(function)
    if parameter not in DIMS or (name, parameter) in NO_DIMS:
        return False
    if name == "tensordot" and isinstance(value, int):
        return False
    return parameter not in ("source", "destination") or name in ("movedim", "moveaxis")


def is_index(function, parameter):
    return parameter in INDICES.get(base_name(function), ())


def index_results(function, kwargs, count):
    """The places of the results (in one flat list) that are positions."""
    name = base_name(function)
    if name in INDEX_RESULTS or name == "where" and "other" not in kwargs:
        return set(range(count))
    if name in SECOND_INDEX_RESULTS:
        return set(range(1, count))
    if name in ("unique", "unique_consecutive") and kwargs.get("return_inverse"):
        return {1}
    return set()


def is_random(function, options):
    """Whether what a function gives under these options (by name) differs from call to call."""
    return function.rsplit(".", 1)[-1] in RANDOM or base_name(function) in RANDOM or options.get("dropout_p", 0) > 0
