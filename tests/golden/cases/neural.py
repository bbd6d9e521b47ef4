"""Normalisations, attention, tables of rows, recurrent cells."""
import math

import torch
import torch.nn.functional as F

from cases import case, family, torch_function
from operands import At, X, constant, fixed, index, lit, mask, pos, unit

family("neural")

for name in """layer_norm rms_norm group_norm batch_norm instance_norm local_response_norm normalize
        scaled_dot_product_attention""".split():
    torch_function(name, getattr(F, name))

# ---- rows ----

case("layer_norm", X(2, 3), [3])
case("layer_norm", X(2, 3, 4), [3, 4], X(3, 4), X(3, 4))
case("layer_norm", X(2, 3), [3], X(3), None, 0.1)
case("layer_norm", X(2, 3), [3], None, X(3))
case("layer_norm", X(1, 1), [1], X(1), X(1))
case("layer_norm", X(0, 3), [3], X(3), X(3))
case("layer_norm", X(131, 67), [67], X(67), X(67))
case("layer_norm", X(2, 5003), [5003], X(5003), X(5003))
case("layer_norm", lit([1e8, 1e8 + 1, 1e8 + 2, math.nan, 1.0, 2.0, math.inf, 1.0, 2.0], 3, 3), [3], grad=False)
case("rms_norm", X(2, 3), [3])
case("rms_norm", X(2, 3, 4), [3, 4], X(3, 4), 0.01)
case("rms_norm", X(2, 3), [3], X(3))
case("rms_norm", lit([0.0, 0.0, 0.0, 1e-30, -1e-30, 0.0], 2, 3), [3])
case("rms_norm", X(3, 4099), [4099], X(4099))
case("group_norm", X(2, 4, 3), 2)
case("group_norm", X(2, 4, 3, 2), 2, X(4), X(4))
case("group_norm", X(3, 6), 3, X(6), X(6), 0.1)
case("group_norm", X(2, 6, 35, 3), 1, X(6), None)
case("group_norm", X(130, 4, 3), 4, None, X(4))
case("group_norm", X(0, 4, 3), 2, X(4), X(4))

# ---- channels ----


def still(*shape):
    """Statistics, which nothing is differentiated by."""
    return constant(pos(*shape))


case("batch_norm", X(3, 2), still(2), still(2), X(2), X(2))
case("batch_norm", X(3, 2), None, None, X(2), X(2), True)
case("batch_norm", X(2, 3, 4), still(3), still(3), X(3), None, True, 0.3)
case("batch_norm", X(2, 3, 4, 5), still(3), still(3), None, X(3), True, 0.1, 0.01)
case("batch_norm", X(2, 3, 2, 2, 2), still(3), still(3), None, None)
case("batch_norm", X(40, 70, 3), None, None, X(70), X(70), True)
case("batch_norm", X(3000, 67), None, None, X(67), X(67), True)
case("batch_norm", X(2, 3, 2100), None, None, X(3), X(3), True)
case("batch_norm", X(0, 3, 4), still(3), still(3), X(3), X(3))
case("instance_norm", X(2, 3, 4))
case("instance_norm", X(2, 3, 4, 5), still(3), still(3), X(3), X(3), True, 0.3)
case("instance_norm", X(2, 3, 4), still(3), still(3), X(3), X(3), False)
case("instance_norm", X(2, 3, 2, 2, 2), None, None, X(3), None, True, 0.1, 0.05)
case("local_response_norm", X(2, 5, 3), 2)
case("local_response_norm", X(2, 5, 3, 2), 3, 0.5, 0.6, 2.0)
case("local_response_norm", X(2, 3, 2), 9, 0.5)
case("local_response_norm", X(0, 3, 2), 2)
case("normalize", X(2, 3))
case("normalize", X(2, 3, 4), 1.0, At(-1))
case("normalize", X(2, 3), math.inf, At(0))
case("normalize", lit([0.0, 0.0, 3.0, 4.0], 2, 2), eps=10.0)

# ---- attention ----

attention = "scaled_dot_product_attention"
case(attention, X(2, 3, 4), X(2, 5, 4), X(2, 5, 6))
case(attention, X(3, 4), X(5, 4), X(5, 2), None, 0.0, True)
case(attention, X(2, 2, 3, 4), X(2, 2, 5, 4), X(2, 2, 5, 4), mask(3, 5))
case(attention, X(2, 3, 4), X(2, 5, 4), X(2, 5, 4), lit([True, False, True, True, False] + [False] * 5 +
     [True] * 5, 3, 5, dtype=torch.bool))
case(attention, X(2, 3, 4), X(2, 5, 4), X(2, 5, 4), X(2, 3, 5), scale=0.3)
case(attention, X(2, 1, 3, 4), X(3, 5, 4), X(5, 4))
case(attention, X(1, 4, 3, 2), X(1, 2, 5, 2), X(1, 2, 5, 2), enable_gqa=True)
case(attention, X(1, 2, 0, 4), X(1, 2, 5, 4), X(1, 2, 5, 4))
case(attention, X(4, 700, 3), X(4, 701, 3), X(4, 701, 2))
case(attention, X(4, 700, 3), X(4, 690, 3), X(4, 690, 2), None, 0.0, True)
case(attention, X(4, 600, 3), X(4, 800, 3), X(4, 800, 2), None, 0.0, True)
case(attention, X(3, 700, 3), X(3, 701, 3), X(3, 701, 2), constant(X(700, 701)))

# ---- rows of a table ----

torch_function("embedding", lambda weight, i, padding_idx=None, scale_grad_by_freq=False, sparse=False,
               **options: F.embedding(i, weight if "max_norm" not in options else weight * 1, padding_idx,
                                      scale_grad_by_freq=scale_grad_by_freq, **options))
torch_function("embedding_bag", lambda weight, i, offsets=None, **options: F.embedding_bag(i, weight, offsets,
                                                                                           **options))
case("embedding", X(4, 3), index([2, 0, 2, 1]), padding_idx=At(2))
case("embedding", X(4, 3), index([2, 0, 2, 1]), At(-4), True)
case("embedding", constant(X(4, 3)), index([2, 0, 2]), max_norm=1.0)
case("embedding", constant(X(4, 3)), index([2, 0, 3, 3], 2, 2), max_norm=0.5, norm_type=1.0)
for mode in ("sum", "mean", "max"):
    case("embedding_bag", X(5, 3), index([1, 2, 4, 4, 0, 3]), index([0, 2, 2, 5]), mode=mode)
    case("embedding_bag", X(5, 3), index([1, 2, 4, 4, 0, 3], 2, 3), mode=mode)
    case("embedding_bag", X(5, 3), index([1, 2, 4, 4, 0, 3]), index([0, 2, 3, 6]), mode=mode, padding_idx=At(4),
         include_last_offset=True)
    case("embedding_bag", X(5, 3), index([], 0), index([0, 0]), mode=mode)
case("embedding_bag", X(5, 3), index([1, 2, 4, 4, 0, 3]), index([0, 2, 5]), mode="sum", per_sample_weights=X(6))
case("embedding_bag", X(5, 3), index([1, 2, 4, 4, 0, 3], 3, 2), mode="sum", per_sample_weights=X(3, 2))
case("embedding_bag", X(5, 3), index([1, 2, 4, 4, 0, 4]), index([0, 2, 5]), mode="mean", scale_grad_by_freq=True)
case("embedding_bag", constant(X(5, 3)), index([1, 2, 4, 4]), index([0, 3]), mode="sum", max_norm=0.5)

# ---- recurrent cells ----

for name, gates in (("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3)):
    case(name, X(2, 3), X(2, 4), X(4 * gates, 3), X(4 * gates, 4), X(4 * gates), X(4 * gates))
    case(name, X(2, 3), X(2, 4), X(4 * gates, 3), X(4 * gates, 4))
    case(name, X(1, 1), X(1, 1), X(gates, 1), X(gates, 1), X(gates), X(gates))
    case(name, X(0, 3), X(0, 4), X(4 * gates, 3), X(4 * gates, 4), X(4 * gates), X(4 * gates))
torch_function("lstm_cell", torch.lstm_cell)
case("lstm_cell", X(2, 3), [X(2, 4), X(2, 4)], X(16, 3), X(16, 4), X(16), X(16))
case("lstm_cell", X(2, 3), [X(2, 4), X(2, 4)], X(16, 3), X(16, 4))
case("lstm_cell", X(0, 3), [X(0, 4), X(0, 4)], X(16, 3), X(16, 4), X(16), X(16))
case("lstm_cell", X(1, 1), [X(1, 1), X(1, 1)], X(4, 1), X(4, 1), X(4), X(4))


def sequence(function):
    def call(x, hx, params, has_biases=True, num_layers=1, dropout=0.0, train=False, bidirectional=False,
             batch_first=False):
        return function(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return call


def parameters(gates, inputs, hidden, layers=1, directions=1, biases=True):
    params = []
    for layer in range(layers):
        for _ in range(directions):
            params += [unit(gates * hidden, hidden * directions if layer else inputs), unit(gates * hidden, hidden)]
            params += [unit(gates * hidden), unit(gates * hidden)] if biases else []
    return params


for name, gates in (("rnn_tanh", 1), ("rnn_relu", 1), ("gru", 3), ("lstm", 4)):
    torch_function(name, sequence(getattr(torch, name)))

    def state(*shape):
        return [X(*shape), X(*shape)] if name == "lstm" else X(*shape)
    case(name, X(4, 2, 3), state(1, 2, 2), parameters(gates, 3, 2))
    case(name, X(2, 4, 3), state(2, 2, 2), parameters(gates, 3, 2, layers=2), num_layers=2, batch_first=True)
    case(name, X(4, 2, 3), state(2, 2, 2), parameters(gates, 3, 2, directions=2), bidirectional=True)
    case(name, X(3, 2, 1), state(4, 2, 2), parameters(gates, 1, 2, 2, 2, False), has_biases=False, num_layers=2,
         bidirectional=True)
